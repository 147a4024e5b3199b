"""The data of the step page, read in a single pass in a thread, without the file's lock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from dialoom import DialoomError, Outcome, Run
from dialoom.runs.stepping import Difference, NextRequest, NotBegunError, ReadOnlyStepper, Stop, case_of, diff
from dialoom.runs.stepping.gateway import text_from_reply
from dialoom.runs.stepping.values import to_plain
from dialoom.runs.stepping.view import HistoryEntry
from dialoom.runs.store.branches import Branch

from .actions import Position, find_read_only_reason

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StepData:
    """A position in a conversation, with the data that the page shows about it.

    Attributes:
        read_only_reason: The reason why the conversation is read-only; empty if it is not.
        stop: The current stop; `None` if nothing was played yet.
        branch_checkpoints: The numbers of this branch's checkpoints, from its beginning to its end.
        branches: Each branch, with its current stop.
        outcome_branch: The branch that the scenario's outcome comes from; `None` if it has none yet.
        requests: The requests of the next step, or the reason why they are unknown.
        parsed_replies: Parsed structured replies, by the calls' rows.
        recorded_replies: The recorded replies of the next step, if it was played, by `NextRequest.name`.
        outcome: The conversation's outcome at this position.
    """

    read_only_reason: str
    stop: Stop | None = None
    history: Sequence[HistoryEntry] = ()
    branch_checkpoints: Sequence[int] = ()
    branches: Sequence[tuple[Branch, Stop]] = ()
    outcome_branch: str | None = None
    roles: Sequence[str] = ()
    requests: Sequence[NextRequest] | str = ()
    parsed_replies: Mapping[int, Any] = field(default_factory=dict)
    recorded_replies: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None

    def find_neighbour(self, offset: int) -> int | None:
        """Return the checkpoint of this branch at an offset from the current one."""
        assert self.stop is not None
        at = (
            self.branch_checkpoints.index(self.stop.number) + offset
            if self.stop.number in self.branch_checkpoints
            else -1
        )
        return self.branch_checkpoints[at] if 0 <= at < len(self.branch_checkpoints) else None


def in_thread(function: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Awaitable[Result]]:
    """Make a coroutine function run in a thread, with an event loop of its own."""

    def run_in_thread(*arguments: Arguments.args, **named: Arguments.kwargs) -> Awaitable[Result]:
        return asyncio.to_thread(lambda: asyncio.run(function(*arguments, **named)))

    return run_in_thread


@in_thread
async def load_step_data(run: Run, scenario: str, position: Position) -> StepData:
    """Read the data that the step page shows for a position in a conversation.

    Raises:
        DialoomError: If there is no such position, or the run's recipe cannot be loaded.
    """
    read_only_reason = await asyncio.to_thread(find_read_only_reason, run.path)
    try:
        async with run.look(scenario, branch=position.branch, checkpoint=position.number) as stepper:
            return await _collect(stepper, read_only_reason)
    except NotBegunError:
        return StepData(read_only_reason)


@in_thread
async def compare_branches(run: Run, scenario: str, left: str, right: str) -> Difference:
    """Compare two branches side by side, at their ends.

    Raises:
        DialoomError: If there is no such branch.
    """
    async with run.look(scenario, branch=left) as ours:
        return await diff(ours, await ours.at(right))


@in_thread
async def export_case(run: Run, scenario: str, position: Position) -> str:
    """Return a branch up to a position as a case that can be replayed, in JSON."""
    async with run.look(scenario, branch=position.branch, checkpoint=position.number) as stepper:
        return (await case_of(stepper)).model_dump_json(indent=1) + "\n"


@in_thread
async def load_state(run: Run, scenario: str, position: Position) -> dict[str, Any]:
    """Return the state at a position, as plain values."""
    async with run.look(scenario, branch=position.branch, checkpoint=position.number) as stepper:
        return {name: to_plain(value) for name, value in stepper.state.items()}


@in_thread
async def find_checkpoint(run: Run, scenario: str, branch: str, where: str) -> int:
    """Return the first checkpoint of a branch where a condition, in the syntax of `until`, is met.

    Raises:
        DialoomError: If no checkpoint meets the condition.
        ConditionError: If the text is not a condition.
    """
    async with run.look(scenario, branch=branch) as stepper:
        return (await stepper.find_stop(stepper.condition(where))).number


@in_thread
async def find_step_start(run: Run, scenario: str, branch: str, step: int) -> int:
    """Return the checkpoint at which a step of a branch began.

    Raises:
        DialoomError: If the branch has no such step.
    """
    async with run.look(scenario, branch=branch) as stepper:
        return stepper.number_before(step)


@in_thread
async def check_condition(run: Run, scenario: str, where: str) -> None:
    """Raise a `ConditionError` if a text is not a condition."""
    async with run.look(scenario) as stepper:
        stepper.condition(where)


def format_state_value(value: Any) -> str:
    """Return a value of a state for editing: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


async def _collect(stepper: ReadOnlyStepper, read_only_reason: str) -> StepData:
    stop = await stepper.here()
    requests: Sequence[NextRequest] | str
    try:
        requests = await stepper.next_requests()
    except DialoomError as error:
        requests = str(error)
    return StepData(
        read_only_reason=read_only_reason,
        stop=stop,
        history=await stepper.history(),
        branch_checkpoints=stepper.checkpoint_numbers(),
        branches=[(each, await (await stepper.at(each.name)).here()) for each in stepper.branches()],
        outcome_branch=None if stepper.is_pending else stepper.outcome_branch,
        roles=stepper.roles,
        requests=requests,
        parsed_replies=stepper.parsed_replies(stop),
        recorded_replies=await _find_recorded_replies(stepper, stop.number, requests),
        outcome=await stepper.outcome(),
    )


async def _find_recorded_replies(
    stepper: ReadOnlyStepper, number: int, requests: Sequence[NextRequest] | str
) -> dict[str, str]:
    """Return the recorded replies to the next requests, in the form in which a person would enter a reply.

    The replies are those of this branch or, if it ends here, of the first branch that continues from here.
    """
    if isinstance(requests, str):
        return {}
    for name in dict.fromkeys([stepper.branch, *(each.name for each in stepper.branches())]):
        numbers = (await stepper.at(name)).checkpoint_numbers()
        if number in numbers[:-1]:
            stop = await (await stepper.at(name, numbers[numbers.index(number) + 1])).here()
            answers = {(call.node, call.ordinal): call.answer for call in stop.calls if call.answer is not None}
            keys = {each.name: (each.node, each.number) for each in requests}
            return {label: text_from_reply(answers[key]) for label, key in keys.items() if key in answers}
    return {}
