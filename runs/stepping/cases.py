"""Saved cases: a branch with all that is needed to replay it without any model, as a regression test."""

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
from dialoom.runs.configuration.trust import loads_named, remember
from dialoom.runs.errors import RunError
from dialoom.runs.store.checkpoints.values import pack, text_of

from .context import START
from .stop import changes
from .view import StepperView

_FORMAT = "dialoom case, version 1"


class RecordedCall(BaseModel):
    """A call of a case.

    Attributes:
        model: The model; `said` if a person wrote the reply.
        request: The SHA-256 of the request.
        is_edited: Whether a person wrote the request, so that it differs from the rendered prompt.
        reply: As stored in the run file: text, or an object of text and tool calls.
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
    """A step of a case: nodes with their calls, or an edit of channels (with values as the checkpointer has them)."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    nodes: tuple[str, ...]
    calls: tuple[RecordedCall, ...] = ()
    edit: dict[str, Any] | None = None


class Case(BaseModel):
    """A branch from its beginning to where it was saved.

    Attributes:
        study: The study that the recipe was made from; `None` for other recipes.
        thread: The scenario's thread, from which its seeds are derived.
        outcome: The outcome at that point.
        is_end: Whether that was the end of the conversation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["dialoom case, version 1"]
    recipe: str
    options: dict[str, Any]
    study: dict[str, Any] | None = None
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
        """The mark by which this machine recognizes a case saved by its own user."""
        return "case " + hashlib.sha256(self.model_dump_json().encode()).hexdigest()


async def case_of(stepper: StepperView) -> Case:
    """Return the case of a stepper's or view's branch, from its beginning to the current checkpoint."""
    context = stepper.context
    stops = await stepper.stops()
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
        study=config.study,
        seed=config.seed,
        thread=context.work.thread,
        scenario=scenario.model_dump(mode="json"),
        models=dict(config.models),
        prompts={id_: prompt.source for id_, prompt in context.store.prompts.items()},
        user_retries=config.user_retries,
        steps=tuple(recorded),
        is_end=stops[-1].is_end,
        outcome=(await stepper.outcome()).model_copy(
            update={"faults": None, "languages": ()}
        ),  # the gate's rules may change, a case must not
    )
    own = context.store.known([*context.store.recipe_named(), *loads_named(scenario.loads)])
    remember(case.mark, [named.mark for named in own])
    return case


def write_case(case: Case, path: Path, inputs: Sequence[Path] = ()) -> None:
    """Write a case as JSON with one value per line, for readable diffs.

    Args:
        case: The case.
        path: The file.
        inputs: The files that it comes from, which are not overwritten.

    Raises:
        OutputError: If the file is one of the inputs or any SQLite file, or cannot be written.
    """
    with text_output(path, inputs) as file:
        file.write(case.model_dump_json(indent=1) + "\n")


def read_case(path: Path) -> Case:
    """Read a case from its file.

    Raises:
        RunError: If it is not a case.
    """
    try:
        return Case.model_validate(read_json(path))
    except ValidationError as error:
        raise RunError(f"{path} is no saved case: {_complaint(error)}") from error


def digest(messages: Sequence[ChatMessage]) -> str:
    """Return the SHA-256 of a request's messages, by which a case compares it."""
    text = json.dumps([identity(message) for message in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _only(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: state[name]} if name in state else {}


def _complaint(error: ValidationError) -> str:
    place, message, _ = first_problem(error)
    return f"{place or 'it'}: {message}"
