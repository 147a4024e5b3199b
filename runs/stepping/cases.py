"""Saved cases: a branch with all that is needed to replay it without any model, as a regression test; and replays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Outcome, Recipe, Scenario, Stage
from dialoom.graphs.capabilities import WithGate, WithPrompts
from dialoom.graphs.gate import Gate
from dialoom.graphs.recipe import finished
from dialoom.inputs import read_json
from dialoom.outputs import text_output
from dialoom.prompts import ChatMessage, PromptLibrary
from dialoom.prompts.messages import identity
from dialoom.roles import CallPlace, Cast, Completion, ModelBinding
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.completions import kept_text, read_reply
from dialoom.runs.configuration.recipe_checks import graph_of
from dialoom.runs.configuration.recipes import load_recipe
from dialoom.runs.configuration.trust import Trust, load_references, recipe_references, remember
from dialoom.runs.errors import RunError
from dialoom.runs.store.checkpoints.values import pack, revived, text_of

from .context import START, Compiled, at, updates
from .stop import change_text, changes
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
            channels = [
                name
                for name in stop.state
                if changes(_only_channel(before.state, name), _only_channel(stop.state, name))
            ]
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
    own = context.store.known([*context.store.recipe_references(), *load_references(scenario.loads)])
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
        raise RunError(f"{path} is no saved case: {_problem_text(error)}") from error


def digest(messages: Sequence[ChatMessage]) -> str:
    """Return the SHA-256 of a request's messages, by which a case compares it."""
    text = json.dumps([identity(message) for message in messages], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _only_channel(state: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: state[name]} if name in state else {}


def _problem_text(error: ValidationError) -> str:
    place, message, _ = first_problem(error)
    return f"{place or 'it'}: {message}"


_WIDTH = 200


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        steps: Number of steps played.
        calls: Number of recorded replies used.
        departures: Differences from the recording, one line each; empty if the result is the same.
    """

    steps: int
    calls: int
    departures: Sequence[str]


async def replay(case: Case, trust: Trust | None = None) -> ReplayResult:
    """Play a case with the current code from its recorded replies. Nothing is sent and no run is touched.

    Args:
        case: The case.
        trust: The trust in code that it names; by default, code is trusted if this user saved the case here.

    Raises:
        RunError, RecipeError: If its recipe cannot be loaded, or no longer accepts its options or scenario.
        TrustError: If its recipe is a file that only its author has named.
    """
    return await _Replay(case, trust or Trust()).play()


class _Replay:
    """One replay of a case."""

    def __init__(self, case: Case, trust: Trust) -> None:
        self._case = case
        trust.check("the case", case.mark, recipe_references(case.recipe), {})
        self._recipe: Recipe = load_recipe(case.recipe, study=case.study)
        trust.check("the case", case.mark, recipe_references(case.recipe, recipe=self._recipe), {})
        try:
            self._scenario: Scenario = self._recipe.scenario_type.model_validate(case.scenario)
            options = self._recipe.options_type.model_validate(case.options)
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise RunError(
                f"recipe {case.recipe!r} cannot take the case any more: {place or 'it'}: {message}"
            ) from error
        trust.check("the case", case.mark, load_references(self._scenario.loads), {})
        self._graph: Compiled = graph_of(self._recipe, options).compile(checkpointer=InMemorySaver())
        self._departures: list[str] = []
        self._used = self._others = 0

    async def play(self) -> ReplayResult:
        config = at(self._case.thread)
        initial = self._recipe.initial(self._scenario)
        await self._graph.ainvoke(initial, config, context=self._stage(_RecordedGateway(()), 0), interrupt_before="*")
        number = 0
        for number, step in enumerate(self._case.steps, start=1):
            if not await self._played(step, number):
                break
        else:
            await self._compare()
        if self._others > 1:  # besides the first, which is listed in full
            self._departures.append(f"{self._others - 1} more requests are other ones than those recorded")
        return ReplayResult(number, self._used, self._departures)

    async def _played(self, step: RecordedStep, number: int) -> bool:
        """Return whether the step could be played, so that the next one can be."""
        config = at(self._case.thread)
        if step.edit is not None:
            return await self._edited(step, number)
        tasks = (await self._graph.aget_state(config)).tasks
        coming = tuple(dict.fromkeys(task.name for task in tasks))
        if coming != step.nodes:
            self._departures.append(
                f"step {number}: {_node_names(coming)} came, where {_node_names(step.nodes)} was recorded"
            )
            return False
        recorded = _RecordedGateway(step.calls)
        played = sum(each.edit is None for each in self._case.steps[: number - 1])
        try:
            context = self._stage(recorded, played + 1)
            await self._graph.ainvoke(None, config, context=context, interrupt_after="*")
        except _NotRecordedError as error:
            self._departures.append(f"step {number}: {error}")
            return False
        except Exception as error:  # any error of the current code is a departure
            self._departures.append(f"step {number}: {_node_names(coming)} failed: {_failure(error)}")
            return False
        finally:
            self._used += len(recorded.used)
        if recorded.others and not self._others:
            self._departures.append(f"step {number}: {recorded.others[0]}")
        self._others += len(recorded.others)
        self._departures += [f"step {number}: {each}" for each in recorded.missing()]
        return True

    async def _edited(self, step: RecordedStep, number: int) -> bool:
        values = {name: revived(value) for name, value in (step.edit or {}).items()}
        try:
            await self._graph.abulk_update_state(at(self._case.thread), [updates(self._graph, values, step.nodes)])
        except Exception as error:  # e.g. the graph no longer has such a node or channel
            self._departures.append(
                f"step {number}: the edit of {_node_names(tuple(values))} failed: {_failure(error)}"
            )
            return False
        return True

    async def _compare(self) -> None:
        snapshot = await self._graph.aget_state(at(self._case.thread))
        is_end = not snapshot.tasks
        if is_end != self._case.is_end:
            names = _node_names(tuple(task.name for task in snapshot.tasks))
            self._departures.append(f"the end: it {'came' if is_end else f'did not come, {names} would follow'}")
        try:
            outcome = finished(self._recipe, self._scenario, dict(snapshot.values), failed=not is_end)
        except Exception as error:  # the recipe's own
            self._departures.append(f"the outcome: it cannot be told: {_failure(error)}")
            return
        differing = changes(self._case.outcome.model_dump(mode="json"), outcome.model_dump(mode="json"))
        self._departures += [f"the outcome: {change_text(change, _WIDTH)}" for change in differing]

    def _stage(self, recorded: _RecordedGateway, step: int) -> Stage:
        library = PromptLibrary.from_sources(self._case.prompts)
        models = self._case.models
        used = PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
        cast = Cast(used, models, recorded, WithPrompts.of(self._recipe).reply_types)
        gate, retries = Gate(WithGate.of(self._recipe), library.values()), self._case.user_retries
        return Stage(self._scenario, cast, self._case.thread, self._case.seed, step=step, gate=gate, retries=retries)


class _NotRecordedError(Exception):
    """A call that the case does not contain."""


class _RecordedGateway:
    """A gateway that answers the calls of one step from the case, and compares the requests.

    Attributes:
        others: Requests that differ from the recorded ones, one line each.
        used: The numbers of the calls that were made.
    """

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self._calls = calls
        self.others: list[str] = []
        self.used: set[int] = set()

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        asked = digest(request.messages)
        number = self._number(request, place, asked)
        call = self._calls[number]
        self.used.add(number)
        if not call.is_edited and call.request != asked:
            self.others.append(f"{place.node} asked {request.role} something else than what was recorded")
        return read_reply(Completion(call.reply))

    def _number(self, request: Request, place: CallPlace, asked: str) -> int:
        """Return the number of the recorded call at this place; of a node's several tasks, one with the same request.

        If there is none, it may be one whose request a person wrote.
        """
        where = (place.node, place.ordinal, place.ask, request.role)
        here = [
            number
            for number, call in enumerate(self._calls)
            if (call.node, call.ordinal, call.ask, call.role) == where and number not in self.used
        ]
        if here:
            calls = self._calls
            return min(here, key=lambda number: (calls[number].request != asked, not calls[number].is_edited))
        if place.ask > 1:
            raise _NotRecordedError(f"{place.node} cannot use the recorded reply of {request.role}, and asked again")
        recorded = ", ".join(f"{each.node} asked {each.role}" for each in self._calls) or "no call"
        raise _NotRecordedError(f"{place.node} asked {request.role}, where {recorded} was recorded")

    def missing(self) -> list[str]:
        """Return the recorded calls that were not made, one line each."""
        left = [call for number, call in enumerate(self._calls) if number not in self.used]
        return [f"{call.node} did not ask {call.role}, which was recorded" for call in left]


def _failure(error: Exception) -> str:
    """Format an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_WIDTH]


def _node_names(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) or "the end"
