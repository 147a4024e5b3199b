"""Read-only views of a scenario at a checkpoint, and the conditions of `until` and `break`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from jinja2 import TemplateError

from dialoom.errors import DialoomError
from dialoom.graphs import Outcome, WithProgress
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import NotYetError, UndefinedName, compile_expression
from dialoom.runs.store import MAIN, Branch, Point, RunFile
from dialoom.runs.store.corruption import reporting_corruption
from dialoom.settings import PlayerObject

from .context import START, ScenarioContext, count_steps, interrupt_options, open_read_only, thread_config
from .gateway import NextRequest, NotSentError, RecordingGateway, SteppingError
from .stop import PLAYERS_KEY, Stop, compute_changes
from .values import to_plain

_COUNTER = re.compile(r"(\w+)\s+(\d+)")


class ConditionError(DialoomError):
    """A condition that cannot be parsed, or cannot be evaluated on a state."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a conversation, for which conditions are evaluated.

    Attributes:
        next_nodes: The nodes that run next.
        next_roles: The roles that these nodes will call.
        counts: The progress of the conversation, in the recipe's units.
        state: The values of the graph's channels.
    """

    next_nodes: tuple[str, ...]
    next_roles: frozenset[str]
    counts: Mapping[str, int]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition.

    Attributes:
        text: Its text.
        is_met: A function that returns whether the condition is met. A condition on an item beyond the end of a list is
            not met. The function raises `ConditionError` if an expression cannot be evaluated, e.g. because it uses a
            name that the state does not have.
        is_counter: Whether it is a counter and a number. Such a condition stays met once the number is reached.
    """

    text: str
    is_met: Callable[[Position], bool] = field(repr=False, compare=False)
    is_counter: bool = False

    @classmethod
    def parse(
        cls,
        text: str,
        nodes: Collection[str],
        roles: Collection[str],
        counted: Collection[str],
        channels: Collection[str] = (),
    ) -> Condition:
        """Parse a condition: a node, a role, `COUNTER N` or a Jinja2 expression over the state.

        Args:
            text: The text. If a node and a role have the same name, the name means the node.
            nodes: The graph's nodes.
            roles: The recipe's roles.
            counted: The recipe's counters, e.g. `turn`.
            channels: The names that a state can have, if they are known. Then other names are rejected at once, and a
                condition on a name that has no value yet is not met.

        Raises:
            ConditionError: If the text is none of these.
        """
        text = text.strip()
        counter = _COUNTER.fullmatch(text)
        if text in nodes:
            return cls(text, lambda at: text in at.next_nodes)
        if text in roles:
            return cls(text, lambda at: text in at.next_roles)
        if counter and counter[1] in counted:
            word, least = counter[1], int(counter[2])
            return cls(text, lambda at: at.counts.get(word, 0) >= least, is_counter=True)
        try:
            return cls(text, _compile_expression(text, channels))
        except TemplateError as error:
            counters = ", ".join(f"{word} N" for word in counted) or "none here"
            raise ConditionError(
                f"{text!r} is not a condition ({error.message}); give a node ({', '.join(nodes)}), a role "
                f"({', '.join(roles)}), a counter and a number ({counters}), or an expression over the state, such as "
                "messages[-1].role == 'assistant'"
            ) from error

    def __str__(self) -> str:
        return self.text


def _compile_expression(text: str, channels: Collection[str]) -> Callable[[Position], bool]:
    """Return a function that tests an expression; raise `TemplateError` if it is invalid or does not use the state."""
    value, names = compile_expression(text)
    if not names:
        raise TemplateError("it uses no channel of the state")
    if unknown := sorted(names.difference(channels)) if channels else []:
        raise TemplateError(f"there is no {unknown[0]!r}; the state has {', '.join(channels)}")

    def holds(at: Position) -> bool:
        later = {name: UndefinedName(name=name, exc=NotYetError) for name in channels}
        try:
            return bool(value({**later, **to_plain(at.state)}))
        except NotYetError:
            return False
        except Exception as error:  # any error is caused by the expression
            raise ConditionError(
                f"{text!r} cannot be evaluated: {error}; the state has {', '.join(at.state)}"
            ) from error

    return holds


class HistoryEntry(NamedTuple):
    """A checkpoint in the history.

    Attributes:
        number: The checkpoint's number.
        parent: The parent checkpoint's number.
        stop: The stop, without calls and transcript.
        branches: The branches of which it is the latest checkpoint.
    """

    number: int
    parent: int | None
    stop: Stop
    branches: tuple[str, ...]


class StepperView:
    """A view of a scenario at one checkpoint of a branch; it never changes a run.

    Args:
        context: The scenario's context.
        branch: The branch.
        head: The checkpoint's id.
    """

    def __init__(self, context: ScenarioContext, branch: Branch, head: str) -> None:
        self.context = context
        self._branch = branch
        self._head = head

    @property
    def scenario(self) -> str:
        """The scenario's id."""
        return str(self.context.work.scenario.id)

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return self._branch.name

    @property
    def roles(self) -> list[str]:
        """The roles of the run."""
        return list(self.context.models)

    @property
    def nodes(self) -> list[str]:
        """The nodes of the graph."""
        return [name for name in self.context.graph.builder.nodes if name != START]

    async def here(self) -> Stop:
        """Return the current stop."""
        return await self._build_stop(self.context.lineage(self._head))

    @property
    def state(self) -> dict[str, Any]:
        """The values of the graph's channels here."""
        return dict(self.context.states[self._head])

    async def outcome(self) -> Outcome:
        """Return the outcome of the conversation so far, as it would be exported."""
        stop = await self.here()
        return self.context.outcome_at(stop.checkpoint, stop.state, stop.is_end)

    async def stops(self) -> list[Stop]:
        """Return every stop from the beginning of this branch to here."""
        line = self.context.lineage(self._head)
        return [await self._build_stop(line[:end]) for end in range(1, len(line) + 1)]

    async def bare_stops(self) -> list[Stop]:
        """Return the same stops as `stops`, without calls, counts, reasons, faults and transcripts, which take time."""
        line = self.context.lineage(self._head)
        return [await self._build_bare_stop(line[max(end - 2, 0) : end]) for end in range(1, len(line) + 1)]

    @property
    def is_pending(self) -> bool:
        """Return whether the scenario has no outcome yet."""
        return self.context.is_pending

    @property
    def outcome_branch(self) -> str:
        """The branch from which the scenario's outcome comes."""
        return self.context.store.outcome_branch(self.context.work.position)

    async def history(self) -> list[HistoryEntry]:
        """Return every checkpoint of the scenario, on all branches, in the order of creation."""
        points = self.context.points()
        heads = group_pairs(
            (each.head or self.context.latest_checkpoint(each.thread), each.name) for each in self.branches()
        )
        found = []
        for point in points.values():
            if point.source == "fork" and point.id not in heads and point.id != self._head:
                continue  # a checkpoint that LangGraph adds on a rewind: not a step
            parent = point.parent
            while parent is not None and parent in points and points[parent].source == "fork":
                parent = points[parent].parent
            before = () if point.parent is None else (points[point.parent],)
            stop = await self._build_bare_stop((*before, point))
            number = points[parent].number if parent in points else None
            found.append(HistoryEntry(point.number, number, stop, tuple(heads.get(point.id, ()))))
        return found

    def parsed_replies(self, stop: Stop) -> dict[int, Any]:
        """Return the parsed forms of typed replies, by the calls' rows in the ledger."""
        return {call.id: known for call in stop.calls if (known := self.context.parsed_reply(call)) is not None}

    def branches(self) -> list[Branch]:
        """Return all branches of the scenario, `main` first."""
        return self.context.branches()

    async def next_requests(self) -> list[NextRequest]:
        """Return the first requests of each node in the next step, without sending or storing anything."""
        line = self.context.lineage(self._head)
        coming = await self.context.nodes_after(line[-1])
        gateway = RecordingGateway(self.context.bindings(self._branch))
        stage = replace(self.context.stage(gateway, self._branch, count_steps(line)), tell=lambda _text: None)
        config = thread_config(self._branch.thread, self._head)
        with suppress(NotSentError):
            await self.context.scratch.ainvoke(None, config, context=stage, **interrupt_options(coming))
        return gateway.requests()

    async def meets(self, conditions: Sequence[Condition], stop: Stop) -> bool:
        """Return whether one of the conditions is met at the current stop."""
        if not conditions:
            return False
        is_of_role = any(condition.text in self.roles for condition in conditions) and not stop.is_end
        roles = frozenset(request.role for request in await self.next_requests()) if is_of_role else frozenset()
        position = Position(stop.next, roles, stop.counts, stop.state)
        return any(condition.is_met(position) for condition in conditions)

    def condition(self, text: str) -> Condition:
        """Parse a condition in the syntax of `until`.

        Raises:
            ConditionError: If it is invalid.
        """
        counts = WithProgress.of(self.context.recipe).counted(self.context.recipe.initial(self.context.work.scenario))
        return Condition.parse(text, self.nodes, self.roles, counts, self.context.graph.stream_channels_list)

    async def find_stop(self, condition: Condition) -> Stop:
        """Return the first stop on this branch where a condition is met.

        Raises:
            SteppingError: If the condition is not met at any stop of this branch.
        """
        line = self.context.lineage(self._last_checkpoint())
        for end in range(1, len(line) + 1):
            there = StepperView(self.context, self._branch, line[end - 1].id)
            stop = await self._build_bare_stop(line[max(end - 2, 0) : end])
            stop = replace(stop, counts=self.context.count_progress(stop.state))
            if await there.meets([condition], stop):
                return await there.here()
        counts = "".join(f", {word} {count}" for word, count in stop.counts.items())
        raise SteppingError(
            f"{condition} is not met anywhere on {self.branch}; its last checkpoint is {stop.number}{counts}"
        )

    async def _build_stop(self, line: Sequence[Point]) -> Stop:
        context, reached = self.context, await self._build_bare_stop(line)
        if context.has_stateful_players:
            calls, earlier_calls = await context.lineage_calls(line), await context.lineage_calls(line[:-1])
            after, before = await context.player_states(calls), await context.player_states(earlier_calls)
            state = context.states[line[-1].id] = {**reached.state, PLAYERS_KEY: after}
            found = [*reached.changes, *compute_changes({PLAYERS_KEY: before}, {PLAYERS_KEY: after})]
            reached = replace(reached, state=state, changes=found)
        with reporting_corruption(context.store.path, context.recipe.name):
            outcome = context.outcome_at(reached.checkpoint, reached.state, reached.is_end)
            return replace(
                reached,
                why=context.explain(await context.nodes_before(line), reached.next),
                calls=context.store.branches.with_texts(await context.step_calls(line)),
                counts=context.count_progress(reached.state),
                faults=outcome.faults or (),
                transcript=context.transcript(outcome),
            )

    async def _build_bare_stop(self, line: Sequence[Point]) -> Stop:
        """Return a stop without its calls and its outcome, which take time to compute; its parent is enough as line."""
        context, point = self.context, line[-1]
        snapshot = await context.snapshot(point)
        state = dict(snapshot.values)
        before = dict((await context.snapshot(line[-2])).values) if len(line) > 1 else {}
        ran = await context.nodes_after(line[-2]) if point.source == "loop" and len(line) > 1 else ()
        return Stop(
            branch=self.branch,
            number=point.number,
            checkpoint=point.id,
            kind={"loop": "step", "update": "edit"}.get(point.source, point.source),
            ran=ran,
            next=await context.nodes_after(point),
            why={},
            changes=compute_changes(before, state),
            calls=(),
            counts={},
            state=state,
        )

    def _last_checkpoint(self) -> str:
        """Return the newest checkpoint of this branch that descends from the current one, or the current one itself."""
        points, ends = self.context.points(), {self._head}
        for point in points.values():
            if point.parent in ends and self._branch.thread in point.threads:
                ends.add(point.id)
        return max(ends, key=lambda id_: points[id_].number)


class NotBegunError(SteppingError):
    """The error for a scenario that has no checkpoint yet, not even of its initial state."""


class ReadOnlyStepper(StepperView):
    """A read-only view at a checkpoint, like a `Stepper`. It does not move branches, which others may be using.

    A view is opened by `ReadOnlyStepper.open`; `at` returns further views of the same scenario.
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        run: RunFile,
        scenario: str | int,
        *,
        branch: str = MAIN,
        checkpoint: str | int | None = None,
        players: dict[str, PlayerObject] | None = None,
    ) -> AsyncIterator[ReadOnlyStepper]:
        """Open a view of a scenario.

        Args:
            run: The run, which must be open for reading. It stays open.
            scenario: Its id, a prefix of its id, or its position in the plan (from 1).
            branch: The branch to inspect.
            checkpoint: A checkpoint's number or id; by default the branch's latest one.
            players: The stateful players whose own databases can be read, by model. Those that are in a module or file
                are added when they are first needed.

        Raises:
            StoreError: If there is no such scenario.
            NotBegunError: If the scenario has not begun.
            SteppingError: If there is no such branch or checkpoint.
            TrustError: If a model is code or an address that is specified only by the author of the run's file.
        """
        async with open_read_only(run, run.resolve(str(scenario)), players) as context:
            yield await cls._open(context, branch, checkpoint)

    async def at(self, branch: str, checkpoint: str | int | None = None) -> ReadOnlyStepper:
        """Return a view of another branch or checkpoint of the same scenario, given as in `open`."""
        return await ReadOnlyStepper._open(self.context, branch, checkpoint)

    def checkpoint_numbers(self) -> list[int]:
        """Return the numbers of this branch's checkpoints from its beginning to its end."""
        return [point.number for point in self.context.lineage(self._last_checkpoint()) if point.source != "fork"]

    def number_before(self, step: int) -> int:
        """Return the number of this branch's checkpoint from which the step to a checkpoint was played.

        Args:
            step: The step's number as recorded in calls; the first is 0.

        Raises:
            SteppingError: If this branch has no such step.
        """
        line = self.context.lineage(self._last_checkpoint())
        found = [point.number for end, point in enumerate(line, start=1) if count_steps(line[:end]) == step]
        if not found:
            raise SteppingError(f"{self.branch} has no step {step}; it has {count_steps(line)}")
        return found[-1]

    @classmethod
    async def _open(cls, context: ScenarioContext, name: str, checkpoint: str | int | None) -> ReadOnlyStepper:
        branch = context.branch(name)
        head = branch.head or context.latest_checkpoint(branch.thread)
        if head is None:
            raise NotBegunError(f"{context.work.scenario.id} has not begun yet")
        if checkpoint is not None:
            branch, point = context.find_checkpoint(branch, checkpoint)
            head = point.id
        stepper = cls(context, branch, head)
        await stepper.here()
        return stepper
