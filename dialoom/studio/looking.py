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
from dialoom.runs.stepping.values import plain
from dialoom.runs.stepping.view import HistoryEntry
from dialoom.runs.store.branches import Branch

from .acting import Spot, reason_read_only

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Looked:
    """A position in a conversation, with the data that the page shows about it.

    Attributes:
        closed: The reason why the conversation is read-only; empty if it is not.
        stop: The current stop; `None` if nothing was played yet.
        line: The numbers of this branch's checkpoints, from its beginning to its end.
        branches: Each branch, with its current stop.
        outcome_branch: The branch that the scenario's outcome comes from; `None` if it has none yet.
        requests: The requests of the next step, or the reason why they are unknown.
        parsed: Parsed structured replies, by the calls' rows.
        recorded: The recorded replies of the next step, if it was played, by `NextRequest.name`.
        outcome: The conversation's outcome at this position.
    """

    closed: str
    stop: Stop | None = None
    history: Sequence[HistoryEntry] = ()
    line: Sequence[int] = ()
    branches: Sequence[tuple[Branch, Stop]] = ()
    outcome_branch: str | None = None
    roles: Sequence[str] = ()
    requests: Sequence[NextRequest] | str = ()
    parsed: Mapping[int, Any] = field(default_factory=dict)
    recorded: Mapping[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None

    def neighbour(self, by: int) -> int | None:
        """Return the checkpoint of this branch at an offset from the current one."""
        assert self.stop is not None
        at = self.line.index(self.stop.number) + by if self.stop.number in self.line else -1
        return self.line[at] if 0 <= at < len(self.line) else None


def in_thread(look: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Awaitable[Result]]:
    """Make a coroutine function run in a thread, with an event loop of its own."""

    def looking(*arguments: Arguments.args, **named: Arguments.kwargs) -> Awaitable[Result]:
        return asyncio.to_thread(lambda: asyncio.run(look(*arguments, **named)))

    return looking


@in_thread
async def looked(run: Run, scenario: str, place: Spot) -> Looked:
    """Read the data that the step page shows for a position in a conversation.

    Raises:
        DialoomError: If there is no such position, or the run's recipe cannot be loaded.
    """
    closed = await asyncio.to_thread(reason_read_only, run.path)
    try:
        async with run.look(scenario, branch=place.branch, checkpoint=place.number) as looking:
            return await _around(looking, closed)
    except NotBegunError:
        return Looked(closed)


@in_thread
async def compared(run: Run, scenario: str, left: str, right: str) -> Difference:
    """Compare two branches side by side, at their ends.

    Raises:
        DialoomError: If there is no such branch.
    """
    async with run.look(scenario, branch=left) as ours:
        return await diff(ours, await ours.at(right))


@in_thread
async def saved(run: Run, scenario: str, place: Spot) -> str:
    """Return a branch up to a position as a case that can be replayed, in JSON."""
    async with run.look(scenario, branch=place.branch, checkpoint=place.number) as looking:
        return (await case_of(looking)).model_dump_json(indent=1) + "\n"


@in_thread
async def state_at(run: Run, scenario: str, place: Spot) -> dict[str, Any]:
    """Return the state at a position, as plain values."""
    async with run.look(scenario, branch=place.branch, checkpoint=place.number) as looking:
        return {name: plain(value) for name, value in looking.state.items()}


@in_thread
async def number_where(run: Run, scenario: str, branch: str, where: str) -> int:
    """Return the first checkpoint of a branch where a condition, in the syntax of `until`, is met.

    Raises:
        DialoomError: If no checkpoint meets the condition.
        ConditionError: If the text is not a condition.
    """
    async with run.look(scenario, branch=branch) as looking:
        return (await looking.first_where(looking.condition(where))).number


@in_thread
async def number_before(run: Run, scenario: str, branch: str, step: int) -> int:
    """Return the checkpoint at which a step of a branch began.

    Raises:
        DialoomError: If the branch has no such step.
    """
    async with run.look(scenario, branch=branch) as looking:
        return looking.number_before(step)


@in_thread
async def checked(run: Run, scenario: str, where: str) -> None:
    """Raise a `ConditionError` if a text is not a condition."""
    async with run.look(scenario) as looking:
        looking.condition(where)


def as_json(value: Any) -> str:
    """Return a value of a state for editing: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


async def _around(looking: ReadOnlyStepper, closed: str) -> Looked:
    stop = await looking.here()
    requests: Sequence[NextRequest] | str
    try:
        requests = await looking.next_requests()
    except DialoomError as error:
        requests = str(error)
    return Looked(
        closed=closed,
        stop=stop,
        history=await looking.history(),
        line=looking.numbers(),
        branches=[(each, await (await looking.at(each.name)).here()) for each in looking.branches()],
        outcome_branch=None if looking.is_pending else looking.outcome_branch,
        roles=looking.roles,
        requests=requests,
        parsed=looking.parsed_replies(stop),
        recorded=await _recorded(looking, stop.number, requests),
        outcome=await looking.outcome(),
    )


async def _recorded(looking: ReadOnlyStepper, number: int, requests: Sequence[NextRequest] | str) -> dict[str, str]:
    """Return the recorded replies to the next requests, in the form in which a person would enter a reply.

    The replies are those of this branch or, if it ends here, of the first branch that continues from here.
    """
    if isinstance(requests, str):
        return {}
    for name in dict.fromkeys([looking.branch, *(each.name for each in looking.branches())]):
        line = (await looking.at(name)).numbers()
        if number in line[:-1]:
            stop = await (await looking.at(name, line[line.index(number) + 1])).here()
            answers = {(call.node, call.ordinal): call.answer for call in stop.calls if call.answer is not None}
            keys = {each.name: (each.node, each.number) for each in requests}
            return {label: text_from_reply(answers[key]) for label, key in keys.items() if key in answers}
    return {}
