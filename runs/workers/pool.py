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
from dialoom.runs.configuration.recipes import OBJECT_PREFIX
from dialoom.runs.control import Event, ScenarioDone, ScenarioFailed, Stopping, StopRule, Worked
from dialoom.runs.engine import WorkList, record_skipped
from dialoom.runs.errors import Fault, StoreError
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import JudgeWork, RunStore, Work
from dialoom.runs.store.transfer import Transfer

from .cluster import Cluster, WorkerDiedError, WorkerHandle, WorkerLostError, open_cluster
from .messages import WorkerConfig, WorkerLocation, WorkerReport, merge_leftovers, workers_folder
from .shared_state import SharedState

_MAX_DEATHS = 3
"""The number of worker deaths after which the scenario that they were playing counts as failed."""

_SUSPECT_DEATHS = 2
"""The number of deaths after which a scenario is played alone, to find out whether it causes them."""

_MAX_CONSECUTIVE_DEATHS = 10
"""The number of consecutive deaths, with no report between them, after which a worker is not restarted."""

_MAX_START_ATTEMPTS, _RETRY_DELAY_SECONDS = 300, 1.0
"""The maximum number of attempts to start a worker, and the seconds to wait after a failed attempt."""


@dataclass(slots=True)
class _Member:
    """The pool's record of one worker.

    Attributes:
        capacity: The maximum number of scenarios leased to it. A few of them are queued, so that it never waits for
            work.
        concurrency: The number of scenarios that it plays at once.
        handle: The handle for calls to it.
        location: Where it is and where its file is, once it has begun.
        leases: The work leased to it, by position, in the order in which it was leased.
        received: The number of the last report that was received from it.
        is_exclusive: Whether it plays only one scenario, which is suspected of killing workers.
        busy_seconds: For each of its incarnations, the seconds in which it had work.
    """

    capacity: int
    concurrency: int
    handle: WorkerHandle
    location: WorkerLocation | None = None
    leases: dict[int, Work] = field(default_factory=dict)
    received: int = 0
    is_exclusive: bool = False
    busy_seconds: list[float] = field(default_factory=lambda: [0.0])
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
        self._requeued: deque[Work] = deque()
        self._suspects: deque[Work] = deque()
        self._deaths: Counter[int] = Counter()
        self._members: list[_Member] = []
        self._isolated: _Member | None = None
        self._lost_workers = 0
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
            if member.location is not None:
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
        async with open_cluster(self._policy) as cluster:
            shares = _split_concurrency(
                self._policy.settings["concurrency"], self._policy.settings["workers"] or cluster.size
            )
            config = self._build_config(first, judging)
            self._shared_state = self._start_shared_state(cluster, len(shares))
            self._members = [self._start_member(cluster, config, number, share) for number, share in enumerate(shares)]
            started = time.monotonic()
            tasks = [asyncio.create_task(self._manage(cluster, member)) for member in self._members]
            try:
                await self._wait_until_done(tasks)
                seconds = time.monotonic() - (self._first_lease_at or started)
                self._on_event(Worked(seconds, tuple(sum(member.busy_seconds) for member in self._members)))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                ended, self._members = self._members, []  # a late stop must not call workers while Ray shuts down
                for member in ended:
                    member.handle.kill()
                with suppress(StoreError):  # the leases stay open, and are recovered when the run is opened next
                    await asyncio.to_thread(merge_leftovers, self._store)

    async def _wait_until_done(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait until the work has finished. If a worker has an error, raise it when the other workers have drained."""
        left = set(tasks)
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
        ready = [member for member in self._members if member.location is not None]
        await asyncio.gather(*(member.handle.end() for member in ready), return_exceptions=True)

    def _build_config(self, first: Work, judging: str | None) -> WorkerConfig:
        return WorkerConfig(
            file=self._store.for_worker(),
            folder=workers_folder(self._store.path).absolute(),
            cwd=Path(os.getcwd()),  # noqa: PTH109
            judging=judging,
            is_repeated=isinstance(first, JudgeWork) and first.is_repeated,
            models=self._models,
            recipe=self._store.recipe if self._store.config.recipe.startswith(OBJECT_PREFIX) else None,
            is_review=isinstance(self._recipe, Review),
            policy=self._policy.with_settings(cache=None, workers=None, ray=None),
            has_cache=self._policy.cache is not None,
        )

    def _start_shared_state(self, cluster: Cluster, gateways: int) -> SharedState:
        limits, cache = self._policy.limits, self._policy.cache
        spent = self._store.spend(limits.stated_prices) if limits.budget.is_bounded else Spend()
        path = self._store.path.absolute()
        return cluster.start_shared_state(
            path, limits.budget, spent, gateways, None if cache is None else cache.absolute()
        )

    def _start_member(self, cluster: Cluster, config: WorkerConfig, number: int, share: int) -> _Member:
        name, ahead = f"worker-{number + 1}", share // 4 + 1
        own = replace(config, policy=config.policy.with_settings(concurrency=share), ahead=ahead)
        return _Member(share + ahead, share, cluster.start_worker(own, name, self._shared_state))

    async def _manage(self, cluster: Cluster, member: _Member) -> None:
        """Manage one worker until all work is done, restarting it when it dies, unless the work is being stopped."""
        reason = ""
        for _ in range(_MAX_START_ATTEMPTS):
            if self.is_draining or self._is_over():
                return
            try:
                member.location = location = await member.handle.begin()
                await self._drive(member, location)
                return
            except WorkerDiedError as error:
                had_started, reason = member.location is not None, (str(error) or type(error).__name__).splitlines()[0]
                await self._recover_dead(cluster, member, error)
                if isinstance(error, WorkerLostError):
                    break
                if not had_started:
                    await asyncio.sleep(_RETRY_DELAY_SECONDS)  # Ray will restart the worker soon
                elif member.silent_deaths == _MAX_CONSECUTIVE_DEATHS:
                    break
        self._lost_workers += 1
        if self._lost_workers == len(self._members) and not self._is_over():
            raise StoreError(f"no worker is left (the last one: {reason:.200}); see Ray's logs for the causes")

    async def _drive(self, member: _Member, location: WorkerLocation) -> None:
        member.received = 0
        if self.is_draining:
            self.stop() if self._is_stopped else self.drain()
        while True:
            await self._lease_work(member, location)
            if not member.leases and not self.is_draining:
                if await self._wait_for_work(member):
                    return
                continue
            report = await member.handle.report(location, member.received)
            member.silent_deaths = 0
            await self._merge_report(member, report)
            if report.is_over:
                return

    async def _lease_work(self, member: _Member, location: WorkerLocation) -> None:
        """Lease scenarios to a worker until it has its maximum."""
        if self.is_draining or member.is_exclusive:
            return
        if works := self._select_work(member):
            member.leases |= {work.position: work for work in works}  # set before other workers look for open work
            self._first_lease_at = self._first_lease_at or time.monotonic()
            await member.handle.lease(location, await self._store.leases.lease(works))
        while self._blocked:
            work = self._blocked.pop()
            obstacle = self._work.find_obstacle(work)
            assert obstacle is not None
            self._handle_event(await record_skipped(self._store, work, obstacle))
            self._end_work(work)

    def _select_work(self, member: _Member) -> list[Work]:
        if self._suspects and self._isolated in (None, member):
            self._isolated = member
            if member.leases:
                return []  # the worker first finishes its scenarios, and then plays the suspected one alone
            member.is_exclusive = True
            return [self._suspects.popleft()]
        if self._isolated is member:
            self._isolated = None
        room = member.capacity - len(member.leases)
        works = [self._requeued.popleft() for _ in range(min(room, len(self._requeued)))]
        while len(works) < room and (work := self._work.take_nowait()) is not None:
            (works if self._work.find_obstacle(work) is None else self._blocked).append(work)
        return works

    async def _wait_for_work(self, member: _Member) -> bool:
        """Wait until there may be work for this worker again, or all work is done; return whether all work is done."""
        while not (
            self._is_over()
            or self.is_draining
            or self._requeued
            or self._work.can_begin
            or (self._suspects and self._isolated in (None, member))
        ):
            await self._changed.wait()
        return self._is_over()

    def _is_over(self) -> bool:
        """Return whether no work is left for any worker."""
        is_open = any(member.leases for member in self._members)
        if self.is_draining:
            return not is_open
        return self._work.is_over and not (is_open or self._requeued or self._suspects or self._blocked)

    async def _merge_report(self, member: _Member, report: WorkerReport) -> None:
        """Merge a worker's results, and then emit its events, because receivers of events may read the file."""
        member.received = report.number
        member.busy_seconds[-1] = report.busy
        if report.shapes and report.shapes != (known := self._store.shapes):
            # They are saved, so that the formats that models refused in a worker are not requested again.
            self._store.keep_shapes(
                {
                    place: sorted({*known.get(place, ()), *report.shapes.get(place, ())})
                    for place in {*known, *report.shapes}
                }
            )
        await self._store.leases.merge(report.transfers)
        for transfer in report.transfers:
            assert transfer.position is not None
            work = member.leases.pop(transfer.position, None)
            if work is None:
                continue
            if not self.is_draining and _is_unfinished(transfer, work):
                self._requeued.append(work)
            else:
                self._end_work(work)
        if not member.leases:
            member.is_exclusive = False
        for event in report.events:
            self._handle_event(event)
        if report.error is not None:
            raise report.error
        self._wake()

    def _handle_event(self, event: Event) -> None:
        match event:
            case ScenarioDone() | ScenarioFailed():
                self.stop_rule.count(event)
            case Stopping():
                self.stop_rule.stop(event)
            case _:
                self._on_event(event)

    async def _recover_dead(self, cluster: Cluster, member: _Member, error: WorkerDiedError) -> None:
        """Recover a dead worker's results, and return its other work to the queue."""
        if self._isolated is member:
            self._isolated = None
        location, leased = member.location, member.leases
        member.location, member.leases, member.is_exclusive = None, {}, False
        member.busy_seconds.append(0.0)
        member.silent_deaths += location is not None
        suspected = list(leased)[: member.concurrency]
        found = (
            {}
            if location is None
            else {each.position: each for each in await self._recover_leftovers(cluster, location)}
        )
        for position, work in leased.items():
            if (transfer := found.get(position)) is not None and not _is_unfinished(transfer, work):
                self._handle_event(_build_result_event(transfer, work))
                self._end_work(work)
                continue
            self._deaths[position] += position in suspected
            await self._requeue(work, str(error))
        self._wake()

    async def _recover_leftovers(self, cluster: Cluster, location: WorkerLocation) -> Sequence[Transfer]:
        try:
            transfers, spent = await cluster.read_leftovers(
                location, self._store.leases.read_open(), self._policy.limits.stated_prices
            )
        except (StoreError, WorkerDiedError):  # the worker's machine is unreachable, or its file cannot be read
            await self._store.leases.store_common_calls(await self._shared_state.end_worker(location.path.stem, None))
            return ()
        folded = await self._store.leases.merge(transfers)
        await self._shared_state.end_worker(
            location.path.stem, spent
        )  # those that wait for its common calls can look them up now
        return folded

    async def _requeue(self, work: Work, error: str) -> None:
        deaths = self._deaths[work.position]
        if deaths < _MAX_DEATHS:
            (self._suspects if deaths >= _SUSPECT_DEATHS else self._requeued).append(work)
            return
        text = f"{deaths} workers died while they played it; the last one: {error.splitlines()[0]:.200}"
        await self._store.results.fail(work, str(Fault.BUG), text, Outcome(messages=(), ended_by="error"))
        self._handle_event(ScenarioFailed(work.position + 1, work.id, Fault.BUG, text))
        self._end_work(work)

    def _end_work(self, work: Work) -> None:
        """Record that a piece of work has ended, so that its successor can begin."""
        self._work.mark_ended(work)
        self._wake()

    def _wake(self) -> None:
        """Wake all waiting tasks."""
        self._changed.set()
        self._changed = asyncio.Event()


def _split_concurrency(concurrency: int, workers: int) -> list[int]:
    """Divide the concurrency among the workers, of which each needs at least one scenario."""
    each, more = divmod(concurrency, workers)
    return [each + (number < more) for number in range(min(workers, concurrency))]


def _find_state_row(transfer: Transfer, work: Work) -> Mapping[str, object]:
    """Return the row in a transfer that holds the state of a piece of work."""
    if not isinstance(work, JudgeWork):
        return transfer.of("scenarios")[0]
    table = "rejudgings" if work.is_repeated else "judged"
    return next((row for row in transfer.of(table) if row["judging"] == work.judgement_set), {})


def _is_unfinished(transfer: Transfer, work: Work) -> bool:
    return _find_state_row(transfer, work).get("state", "pending") == "pending"


def _build_result_event(transfer: Transfer, work: Work) -> ScenarioDone | ScenarioFailed:
    """Return the event for a result that a dead worker could not report."""
    row = _find_state_row(transfer, work)
    if row["state"] == "done":
        return ScenarioDone(work.position + 1, work.id)
    fault = row.get("fault") or Fault.BUG
    return ScenarioFailed(work.position + 1, work.id, Fault(str(fault)), str(row.get("error") or "the scenario failed"))
