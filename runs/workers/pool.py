"""The pool of workers in the run's own process: it leases scenarios, merges results, and recovers when workers die."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from dialoom.graphs import Outcome, Recipe
from dialoom.graphs.recipe import Review
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.budget import Spend
from dialoom.runs.configuration.recipes import OBJECT
from dialoom.runs.control import Event, ScenarioDone, ScenarioFailed, Stopping, StopRule, Worked
from dialoom.runs.engine import WorkList, skipped
from dialoom.runs.errors import Fault, StoreError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import JudgeWork, RunStore, Work
from dialoom.runs.store.transfer import Transfer

from .cluster import Cluster, WorkerDiedError, WorkerHandle, WorkerLostError, cluster
from .messages import Begun, Delivery, Order, folder_of, take_leftovers
from .shared_state import SharedState

_DEATHS = 3
"""The number of worker deaths after which the scenario that they were playing counts as failed."""

_SUSPECT = 2
"""The number of deaths after which a scenario is played alone, to find out whether it causes them."""

_IN_A_ROW = 10
"""The number of consecutive deaths, with no report between them, after which a worker is not restarted."""

_MOST_BEGINNINGS, _A_WHILE = 300, 1.0
"""The maximum number of attempts to start a worker, and the seconds to wait after a failed attempt."""


@dataclass(slots=True)
class _Member:
    """The pool's record of one worker.

    Attributes:
        most: The maximum number of scenarios leased to it. A few of them are queued, so that it never waits for work.
        share: The number of scenarios that it plays at once.
        handle: The handle for calls to it.
        begun: The location of its file, once it has begun.
        open: Its open leases, in the order in which they were made.
        received: The number of the last report that was received from it.
        is_alone: Whether it plays only one scenario, which is suspected of killing workers.
        busy: For each of its incarnations, the seconds in which it had work.
    """

    most: int
    share: int
    handle: WorkerHandle
    begun: Begun | None = None
    open: dict[int, Work] = field(default_factory=dict)
    received: int = 0
    is_alone: bool = False
    busy: list[float] = field(default_factory=lambda: [0.0])
    silent_deaths: int = 0


class WorkerPool:
    """The workers that carry out a run's work, in place of an engine.

    Args:
        store: The run's file.
        recipe: The recipe of the work: that of the run, or the review of its scenarios.
        models: The models by role.
        policy: The policy for calls, for all workers together.
        on_event: Called with each result, in the event loop's thread.

    Attributes:
        stop_rule: The counter of results, with the reason if the work stopped by itself.
    """

    def __init__(
        self,
        store: RunStore,
        recipe: Recipe,
        models: Mapping[str, ModelBinding],
        policy: CallPolicy,
        on_event: Callable[[Event], None],
    ) -> None:
        self._store = store
        self._recipe = recipe
        self._models = models
        self._policy = policy
        self._on_event = on_event
        self.stop_rule = StopRule(on_event, policy.settings["fail_on_error"], self.drain)
        self._is_stopped = False
        self._work = WorkList(iter(()), store)
        self._blocked: list[Work] = []
        self._again: deque[Work] = deque()
        self._suspects: deque[Work] = deque()
        self._deaths: Counter[int] = Counter()
        self._members: list[_Member] = []
        self._clearing: _Member | None = None
        self._given_up = 0
        self._first_lease_at: float | None = None
        self._changed = asyncio.Event()

    @property
    def is_draining(self) -> bool:
        """Return whether the workers were asked to stop."""
        return self.stop_rule.is_draining

    def drain(self) -> None:
        """Lease no further scenarios; ask each worker to finish the current steps and return everything."""
        self.stop_rule.is_draining = True
        self._for_each_worker(lambda handle: handle.drain())

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are still merged."""
        self.stop_rule.is_draining = self._is_stopped = True
        self._for_each_worker(lambda handle: handle.stop())

    def _for_each_worker(self, call: Callable[[WorkerHandle], None]) -> None:
        """Send a message to all live workers."""
        for member in self._members:
            if member.begun is not None:
                with suppress(WorkerDiedError):
                    call(member.handle)
        self._wake()

    async def run(self, work: Iterator[Work], judging: str | None) -> None:
        """Carry out all work.

        Args:
            work: The work; the next piece is taken only when there is room for it.
            judging: The set to which the judgements are added, if the work is judging.

        Raises:
            RunError: If no worker can be started.
            DialoomError: An error that would occur in every scenario; the work stays pending.
        """
        first = next(work, None)
        if first is None:
            return
        self._work = WorkList(chain([first], work), self._store)
        async with cluster(self._policy) as machines:
            shares = _shares(self._policy.settings["concurrency"], self._policy.settings["workers"] or machines.size)
            order = self._order(first, judging)
            self._line = self._commons(machines, len(shares))
            self._members = [self._hired(machines, order, number, share) for number, share in enumerate(shares)]
            started = time.monotonic()
            serving = [asyncio.create_task(self._serve(machines, member)) for member in self._members]
            try:
                await self._until_done(serving)
                seconds = time.monotonic() - (self._first_lease_at or started)
                self._on_event(Worked(seconds, tuple(sum(member.busy) for member in self._members)))
            finally:
                for task in serving:
                    task.cancel()
                await asyncio.gather(*serving, return_exceptions=True)
                ended, self._members = self._members, []  # a late stop must not call workers while Ray shuts down
                for member in ended:
                    member.handle.kill()
                with suppress(StoreError):  # the leases stay open, and are recovered when the run is opened next
                    await asyncio.to_thread(take_leftovers, self._store)

    async def _until_done(self, serving: Sequence[asyncio.Task[None]]) -> None:
        """Wait until the work has finished. If a worker has an error, raise it when the other workers have drained."""
        left = set(serving)
        error: BaseException | None = None
        while left:
            finished, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                if error is None and (error := task.exception()) is not None:
                    self.drain()
            if self._is_over():
                break
        if error is not None:
            if isinstance(error, StoreError) and error.advice is not None:  # which may name the worker's file
                error.advice = replace(error.advice, values={**error.advice.values, "path": self._store.path})
            raise error
        ready = [member for member in self._members if member.begun is not None]
        await asyncio.gather(*(member.handle.end() for member in ready), return_exceptions=True)

    def _order(self, first: Work, judging: str | None) -> Order:
        return Order(
            file=self._store.for_worker(),
            folder=folder_of(self._store.path).absolute(),
            cwd=Path(os.getcwd()),  # noqa: PTH109
            judging=judging,
            is_repeated=isinstance(first, JudgeWork) and first.is_repeated,
            models=self._models,
            recipe=self._store.recipe if self._store.config.recipe.startswith(OBJECT) else None,
            is_review=isinstance(self._recipe, Review),
            policy=self._policy.changed(cache=None, workers=None, ray=None),
            has_cache=self._policy.cache is not None,
        )

    def _commons(self, machines: Cluster, gateways: int) -> SharedState:
        limits, cache = self._policy.limits, self._policy.cache
        spent = self._store.spend(limits.stated_prices) if limits.budget.is_bounded else Spend()
        path = self._store.path.absolute()
        return machines.shared_state(path, limits.budget, spent, gateways, None if cache is None else cache.absolute())

    def _hired(self, machines: Cluster, order: Order, number: int, share: int) -> _Member:
        name, ahead = f"worker-{number + 1}", share // 4 + 1
        own = replace(order, policy=order.policy.changed(concurrency=share), ahead=ahead)
        return _Member(share + ahead, share, machines.start_worker(own, name, self._line))

    async def _serve(self, machines: Cluster, member: _Member) -> None:
        """Manage one worker until all work is done, restarting it when it dies, unless the work is being stopped."""
        why = ""
        for _ in range(_MOST_BEGINNINGS):
            if self.is_draining or self._is_over():
                return
            try:
                member.begun = begun = await member.handle.begin()
                await self._work_with(member, begun)
                return
            except WorkerDiedError as error:
                had_begun, why = member.begun is not None, (str(error) or type(error).__name__).splitlines()[0]
                await self._remove_dead(machines, member, error)
                if isinstance(error, WorkerLostError):
                    break
                if not had_begun:
                    await asyncio.sleep(_A_WHILE)  # Ray will restart the worker soon
                elif member.silent_deaths == _IN_A_ROW:
                    break
        self._given_up += 1
        if self._given_up == len(self._members) and not self._is_over():
            raise StoreError(f"no worker is left (the last one: {why:.200}); see Ray's logs for the causes")

    async def _work_with(self, member: _Member, begun: Begun) -> None:
        member.received = 0
        if self.is_draining:
            self.stop() if self._is_stopped else self.drain()
        while True:
            await self._deal(member, begun)
            if not member.open and not self.is_draining:
                if await self._nothing_left(member):
                    return
                continue
            report = await member.handle.report(begun, member.received)
            member.silent_deaths = 0
            await self._take(member, report)
            if report.is_over:
                return

    async def _deal(self, member: _Member, begun: Begun) -> None:
        """Lease scenarios to a worker until it has its maximum."""
        if self.is_draining or member.is_alone:
            return
        if works := self._works_for(member):
            member.open |= {work.position: work for work in works}  # set before other workers look for open work
            self._first_lease_at = self._first_lease_at or time.monotonic()
            await member.handle.lease(begun, await self._store.leases.lease(works))
        while self._blocked:
            work = self._blocked.pop()
            obstacle = self._work.obstacle(work)
            assert obstacle is not None
            self._hear(await skipped(self._store, work, obstacle))
            self._end_work(work)

    def _works_for(self, member: _Member) -> list[Work]:
        if self._suspects and self._clearing in (None, member):
            self._clearing = member
            if member.open:
                return []  # the worker first finishes its scenarios, and then plays the suspected one alone
            member.is_alone = True
            return [self._suspects.popleft()]
        if self._clearing is member:
            self._clearing = None
        room = member.most - len(member.open)
        works = [self._again.popleft() for _ in range(min(room, len(self._again)))]
        while len(works) < room and (work := self._work.take_now()) is not None:
            (works if self._work.obstacle(work) is None else self._blocked).append(work)
        return works

    async def _nothing_left(self, member: _Member) -> bool:
        """Wait until there may be work for this worker again, or all work is done; return whether all work is done."""
        while not (
            self._is_over()
            or self.is_draining
            or self._again
            or self._work.can_begin
            or (self._suspects and self._clearing in (None, member))
        ):
            await self._changed.wait()
        return self._is_over()

    def _is_over(self) -> bool:
        """Return whether no work is left for any worker."""
        is_open = any(member.open for member in self._members)
        if self.is_draining:
            return not is_open
        return self._work.is_over and not (is_open or self._again or self._suspects or self._blocked)

    async def _take(self, member: _Member, report: Delivery) -> None:
        """Merge a worker's results, and then emit its events, because receivers of events may read the file."""
        member.received = report.number
        member.busy[-1] = report.busy
        if report.shapes and report.shapes != (known := self._store.shapes):
            # They are saved, so that the formats that models refused in a worker are not requested again.
            self._store.keep_shapes(
                {
                    place: sorted({*known.get(place, ()), *report.shapes.get(place, ())})
                    for place in {*known, *report.shapes}
                }
            )
        await self._store.leases.fold(report.transfers)
        for transfer in report.transfers:
            assert transfer.position is not None
            work = member.open.pop(transfer.position, None)
            if work is None:
                continue
            if not self.is_draining and _is_unfinished(transfer, work):
                self._again.append(work)
            else:
                self._end_work(work)
        if not member.open:
            member.is_alone = False
        for event in report.events:
            self._hear(event)
        if report.error is not None:
            raise report.error
        self._wake()

    def _hear(self, event: Event) -> None:
        match event:
            case ScenarioDone() | ScenarioFailed():
                self.stop_rule.count(event)
            case Stopping():
                self.stop_rule.stop(event)
            case _:
                self._on_event(event)

    async def _remove_dead(self, machines: Cluster, member: _Member, error: WorkerDiedError) -> None:
        """Recover a dead worker's results, and return its other work to the queue."""
        if self._clearing is member:
            self._clearing = None
        begun, leased = member.begun, member.open
        member.begun, member.open, member.is_alone = None, {}, False
        member.busy.append(0.0)
        member.silent_deaths += begun is not None
        suspected = list(leased)[: member.share]
        found = {} if begun is None else {each.position: each for each in await self._left(machines, begun)}
        for position, work in leased.items():
            if (transfer := found.get(position)) is not None and not _is_unfinished(transfer, work):
                self._hear(_result(transfer, work))
                self._end_work(work)
                continue
            self._deaths[position] += position in suspected
            await self._try_again(work, str(error))
        self._wake()

    async def _left(self, machines: Cluster, begun: Begun) -> Sequence[Transfer]:
        try:
            transfers, spent = await machines.left(begun, self._store.leases.open(), self._policy.limits.stated_prices)
        except (StoreError, WorkerDiedError):  # the worker's machine is unreachable, or its file cannot be read
            await self._store.leases.keep_common(await self._line.ended(begun.path.stem, None))
            return ()
        folded = await self._store.leases.fold(transfers)
        await self._line.ended(begun.path.stem, spent)  # those that wait for its common calls can look them up now
        return folded

    async def _try_again(self, work: Work, error: str) -> None:
        deaths = self._deaths[work.position]
        if deaths < _DEATHS:
            (self._suspects if deaths >= _SUSPECT else self._again).append(work)
            return
        text = f"{deaths} workers died while they played it; the last one: {error.splitlines()[0]:.200}"
        await self._store.results.fail(work, str(Fault.BUG), text, Outcome(messages=(), ended_by="error"))
        self._hear(ScenarioFailed(work.position + 1, work.id, Fault.BUG, text))
        self._end_work(work)

    def _end_work(self, work: Work) -> None:
        """Record that a piece of work has ended, so that its successor can begin."""
        self._work.ended(work)
        self._wake()

    def _wake(self) -> None:
        """Wake all waiting tasks."""
        self._changed.set()
        self._changed = asyncio.Event()


def _shares(concurrency: int, workers: int) -> list[int]:
    """Divide the concurrency of one process among the workers, with at least one scenario for each."""
    each, more = divmod(concurrency, workers)
    return [max(1, each + (number < more)) for number in range(workers)]


def _row(transfer: Transfer, work: Work) -> Mapping[str, object]:
    """Return the row in a transfer that holds the state of a piece of work."""
    if not isinstance(work, JudgeWork):
        return transfer.of("scenarios")[0]
    table = "rejudgings" if work.is_repeated else "judged"
    return next((row for row in transfer.of(table) if row["judging"] == work.judgement_set), {})


def _is_unfinished(transfer: Transfer, work: Work) -> bool:
    return _row(transfer, work).get("state", "pending") == "pending"


def _result(transfer: Transfer, work: Work) -> ScenarioDone | ScenarioFailed:
    """Return the event for a result that a dead worker could not report."""
    row = _row(transfer, work)
    if row["state"] == "done":
        return ScenarioDone(work.position + 1, work.id)
    fault = row.get("fault") or Fault.BUG
    return ScenarioFailed(work.position + 1, work.id, Fault(str(fault)), str(row.get("error") or "the scenario failed"))
