"""Saved cases: a case is a branch with everything needed to replay it without a model, as a regression test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from dialoom.errors import Advice, first_problem
from dialoom.graphs import Outcome
from dialoom.inputs import DataError, Record, is_sqlite, read_json
from dialoom.outputs import OutputError, is_stream, text_output
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import message_identity
from dialoom.roles import Completion, ModelBinding
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.roles.gateway.completions import serialize_reply
from dialoom.runs.configuration.trust import (
    cast_references,
    compute_code_hashes,
    load_references,
    player_references,
    remember,
)
from dialoom.runs.errors import RunError
from dialoom.runs.store import StepCall
from dialoom.runs.store.checkpoints.values import encode_value, pack

from .context import START
from .stop import compute_changes
from .view import StepperView

_FORMAT = "dialoom case, version 1"


class RecordedCall(Record):
    """A recorded call in a case.

    Attributes:
        model: The model's name; `said` if a person wrote the reply.
        request: The SHA-256 of the request.
        is_edited: Whether a person wrote the request, so that it differs from the rendered prompt.
        reply: The reply as the run file stores it: a string, or an object with text and tool calls.
        finish_reason: The provider's reason for the end of the reply; `said` if a person wrote it.
        is_only_thoughts: Whether the reply has no text although the model has reasoned.
    """

    node: str
    ordinal: int
    ask: int
    role: str
    model: str
    request: str
    is_edited: bool = False
    reply: str
    finish_reason: str | None = None
    is_only_thoughts: bool = False


class RecordedStep(Record):
    """A step in a case: either nodes with their calls, or a person's edit with the new values of channels."""

    nodes: tuple[str, ...]
    calls: tuple[RecordedCall, ...] = ()
    edit: dict[str, Any] | None = None


class Case(Record):
    """A branch from its beginning to the checkpoint at which it was saved.

    Attributes:
        study: The study from which the recipe was created; `None` for other recipes.
        thread: The scenario's thread, from which its seeds are derived.
        session: The number of this conversation among those of the same person.
        code: The SHA-256 of each code file that the recipe and the models refer to, by its name in the recipe or model.
        outcome: The outcome at that checkpoint.
        is_end: Whether the conversation ended there.
        forked: The number of steps at the end that were played on a branch and not on `main`.
    """

    format: Literal["dialoom case, version 1"]
    recipe: str
    options: dict[str, Any]
    study: dict[str, Any] | None = None
    seed: int
    thread: str
    scenario: dict[str, Any]
    models: dict[str, ModelBinding]
    prompts: dict[str, str]
    session: int = 1
    code: dict[str, str] = Field(default_factory=dict)
    user_retries: int = 0
    steps: tuple[RecordedStep, ...]
    is_end: bool
    forked: int = 0
    outcome: Outcome

    @property
    def mark(self) -> str:
        """The mark by which this machine recognizes a case that its own user saved."""
        return "case " + hashlib.sha256(self.model_dump_json().encode()).hexdigest()


async def case_of(stepper: StepperView) -> Case:
    """Return the case of a stepper's or view's branch, from its beginning to the current checkpoint.

    Raises:
        RunError: If the checkpoint is the end, and functions of the study, which would score it, have changed.
    """
    context = stepper.context
    stops = await stepper.bare_stops()
    if stops[-1].is_end:
        context.ensure_unchanged()
    recorded: list[RecordedStep] = []
    line, main, forked = context.lineage(stops[-1].checkpoint), context.work.thread, 0
    for end, (before, stop) in enumerate(pairwise(stops), start=2):
        if stop.kind == "edit":
            edit = {
                name: json.loads(encode_value(pack(value)))
                for name, value in stop.state.items()
                if compute_changes({each: old for each, old in before.state.items() if each == name}, {name: value})
            }
            recorded.append(RecordedStep(nodes=await context.nodes_before(line[:end]), edit=edit))
        elif stop.kind == "step" and stop.ran != (START,):
            calls = tuple(map(_record_call, context.store.branches.with_texts(await context.step_calls(line[:end]))))
            recorded.append(RecordedStep(nodes=stop.ran, calls=calls))
        else:
            continue
        forked += main not in line[end - 1].threads
    config, scenario = context.store.config, context.work.scenario
    models = dict(context.models)
    for call in (call for step in recorded for call in step.calls):
        if call.role in models and call.model not in (WRITTEN_BY_PERSON, models[call.role].model):
            models[call.role] = context.binding(call.role, call.model)
    exchanged = [named for binding in models.values() for named in player_references(binding.model)]
    case = Case(
        format=_FORMAT,
        recipe=config.recipe,
        options=config.options,
        study=config.study,
        seed=config.seed,
        thread=context.work.thread,
        scenario=scenario.model_dump(mode="json"),
        models=models,
        prompts={id_: prompt.source for id_, prompt in context.store.prompts.items()},
        session=context.work.session,
        code={**compute_code_hashes(exchanged), **config.code},
        user_retries=config.user_retries,
        steps=tuple(recorded),
        is_end=stops[-1].is_end,
        forked=forked,
        outcome=(await stepper.outcome()).model_copy(
            update={"faults": None, "languages": ()}
        ),  # the gate's rules may change, but the content of a case must not
    )
    references = [*context.store.recipe_references(), *load_references(scenario.loads), *cast_references(models)]
    own = context.store.already_trusted(references)
    remember(case.mark, [named.mark for named in own])
    return case


def _record_call(call: StepCall) -> RecordedCall:
    completion = call.answer or Completion("")
    return RecordedCall(
        node=call.node,
        ordinal=call.ordinal,
        ask=call.ask,
        role=call.role,
        model=call.model,
        request=digest_messages(call.messages),
        is_edited=call.is_edited,
        reply=serialize_reply(completion),
        finish_reason=completion.finish_reason,
        is_only_thoughts=not completion.text.strip() and completion.reasoning is not None,
    )


def write_case(case: Case, path: Path, inputs: Sequence[Path] = ()) -> bool:
    """Write a case as JSON with one value per line, for readable diffs; return whether it replaced an earlier case.

    Args:
        case: The case.
        path: The file.
        inputs: The files from which the case was created, which must not be overwritten.

    Raises:
        OutputError: If the file is one of the inputs, if it exists and is not a case, or if it cannot be written.
    """
    with text_output(path, inputs) as file:
        if replaces := path.is_file() and not is_stream(path):
            try:
                read_case(path)
            except (DataError, RunError) as error:
                what = f"{path} exists and is not a saved case, so it is not replaced; give another file"
                raise OutputError(what) from error
        file.write(case.model_dump_json(indent=1) + "\n")
    return replaces


def read_case(path: Path) -> Case:
    """Read a case from its file.

    Raises:
        RunError: If the file does not contain a case.
    """
    if is_sqlite(path):
        raise RunError(
            f"{path} is a run, not a saved case",
            advice=Advice("save_case", "step through one of its conversations and save that as a case", {"path": path}),
        )
    try:
        return Case.model_validate(read_json(path))
    except ValidationError as error:
        place, message, _ = first_problem(error)
        raise RunError(f"{path} is not a saved case: {place or 'it'}: {message}") from error


def digest_messages(messages: Sequence[ChatMessage]) -> str:
    """Return the SHA-256 of a request's messages, by which a replay compares requests."""
    text = json.dumps([message_identity(message) for message in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
