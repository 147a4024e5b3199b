"""Saved cases: a branch with all that it takes to play it again without any model, as a test of a conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Outcome
from dialoom.inputs import read_json
from dialoom.outputs import text_output
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import identity
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.completions import kept_text
from dialoom.runs.errors import RunError
from dialoom.runs.store.checkpoints.values import pack, text_of
from dialoom.runs.trust import loads_named, remember

from .context import START
from .stop import changes
from .view import SessionView

_FORMAT = "dialoom case, version 1"


class RecordedCall(BaseModel):
    """A call of a case.

    Attributes:
        model: Who was asked; `said` if a person wrote the reply.
        request: The SHA-256 of what was asked.
        is_edited: Whether a person wrote what was asked, so that it is not what the prompt gives.
        reply: As the run's file keeps it: its words, or an object of words and calls of tools.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    node: str
    ordinal: int
    ask: int
    role: str
    model: str
    request: str
    is_edited: bool = False
    reply: str


class RecordedStep(BaseModel):
    """A step of a case: nodes with their calls, or an edit of channels (as the checkpointer writes their values)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    nodes: tuple[str, ...]
    calls: tuple[RecordedCall, ...] = ()
    edit: dict[str, Any] | None = None


class Case(BaseModel):
    """A branch from its beginning to where it was saved.

    Attributes:
        thread: The scenario's thread, from which its seeds are drawn.
        outcome: What it had come to.
        is_end: Whether that was the end of the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["dialoom case, version 1"]
    recipe: str
    options: dict[str, Any]
    seed: int
    thread: str
    scenario: dict[str, Any]
    models: dict[str, ModelBinding]
    prompts: dict[str, str]
    user_retries: int = 0
    steps: tuple[RecordedStep, ...]
    is_end: bool
    outcome: Outcome

    @property
    def mark(self) -> str:
        """By which this machine knows a case of its own user."""
        return "case " + hashlib.sha256(self.model_dump_json().encode()).hexdigest()


async def case_of(session: SessionView) -> Case:
    """The case of a session's branch, or of one that is only looked at, from its beginning to where it stands."""
    context = session.context
    stops = await session.stops()
    recorded: list[RecordedStep] = []
    for before, stop in pairwise(stops):
        if stop.kind == "edit":
            channels = [name for name in stop.state if changes(_only(before.state, name), _only(stop.state, name))]
            edit = {name: json.loads(text_of(pack(stop.state[name]))) for name in channels}
            recorded.append(RecordedStep(nodes=await context.nodes_before(context.line(stop.checkpoint)), edit=edit))
        elif stop.kind == "step" and stop.ran != (START,):
            calls = tuple(
                RecordedCall(
                    node=call.node,
                    ordinal=call.ordinal,
                    ask=call.ask,
                    role=call.role,
                    model=call.model,
                    request=digest(call.messages),
                    is_edited=call.is_edited,
                    reply="" if call.answer is None else kept_text(call.answer),
                )
                for call in stop.calls
            )
            recorded.append(RecordedStep(nodes=stop.ran, calls=calls))
    config, scenario = context.store.config, context.work.scenario
    case = Case(
        format=_FORMAT,
        recipe=config.recipe,
        options=config.options,
        seed=config.seed,
        thread=context.work.thread,
        scenario=scenario.model_dump(mode="json"),
        models=dict(config.models),
        prompts={id_: prompt.source for id_, prompt in context.store.prompts.items()},
        user_retries=config.user_retries,
        steps=tuple(recorded),
        is_end=stops[-1].is_end,
        outcome=(await session.outcome()).model_copy(
            update={"faults": None, "languages": ()}
        ),  # rules may change, a case must not
    )
    own = context.store.known([*context.store.recipe_named(), *loads_named(scenario.loads)])
    remember(case.mark, [named.mark for named in own])
    return case


def write_case(case: Case, path: Path, inputs: Sequence[Path] = ()) -> None:
    """Write a case as JSON that reads well beside its next version.

    Args:
        case: The case.
        path: The file.
        inputs: The files that it comes from, which are not written over.

    Raises:
        OutputError: If the file is one of the inputs or any SQLite file, or cannot be written.
    """
    with text_output(path, inputs) as file:
        file.write(case.model_dump_json(indent=1) + "\n")


def read_case(path: Path) -> Case:
    """A case out of its file.

    Raises:
        RunError: If it is none.
    """
    try:
        return Case.model_validate(read_json(path))
    except ValidationError as error:
        raise RunError(f"{path} is no saved case: {_complaint(error)}") from error


def digest(messages: Sequence[ChatMessage]) -> str:
    """The SHA-256 of what a role is asked, by which a case knows it again."""
    text = json.dumps([identity(message) for message in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _only(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: state[name]} if name in state else {}


def _complaint(error: ValidationError) -> str:
    place, message, _ = first_problem(error)
    return f"{place or 'it'}: {message}"
