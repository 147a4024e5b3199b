"""The progress of a run, and reports computed in the background; each is read once for all browsers."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dialoom import Report, Run, report
from dialoom.runs.control import RunProgress
from dialoom.runs.store.connections import Signature, signature

_MIN_INTERVAL_SECONDS = 1.0
"""Minimum seconds between two readings."""
_MAX_INTERVAL_SECONDS = 15.0
"""Maximum seconds between two readings, however long a reading takes."""
_MIN_INTERVAL_RATIO = 10
"""The minimum ratio of the time between readings to the time that a reading takes."""
_RATE_WINDOW_SECONDS = 60.0
"""Seconds over which rates are computed."""
_MIN_RATE_SECONDS = 3.0
"""Seconds of watching after which the first rate is shown."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a run while it is watched.

    Attributes:
        scenarios: Finished scenarios per second.
        tokens: Input and output tokens per second; `None` if unknown.
        cost: Cost in US dollars per second; `None` if unknown.
    """

    scenarios: float
    tokens: float | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class _Reading:
    time: float
    finished: int
    tokens: int | None
    cost: float | None


@dataclass(slots=True)
class ProgressMonitor:
    """The last reading of one run's progress, and the run's rate."""

    run: Run
    _progress: RunProgress | None = None
    _signature: Signature = ()
    _next_reading: float = 0.0
    _readings: deque[_Reading] = field(default_factory=deque)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> RunProgress:
        """Return the progress; it is read again only if enough time has passed and the file may have changed."""
        async with self._lock:
            now = time.monotonic()
            # While a run is played, its progress is read even if the file is the same, as the play may end.
            if self._progress is None or (
                now >= self._next_reading and (self._progress.is_played or signature(self.run.path) != self._signature)
            ):
                is_first = self._progress is None
                current_signature = signature(self.run.path)
                self._progress = await asyncio.to_thread(self.run.progress)
                self._signature = current_signature
                self._record(self._progress, now)
                elapsed = 0.0 if is_first else time.monotonic() - now  # the first report imports the libraries it needs
                self._next_reading = time.monotonic() + min(
                    max(_MIN_INTERVAL_SECONDS, _MIN_INTERVAL_RATIO * elapsed), _MAX_INTERVAL_SECONDS
                )
            return self._progress

    def _record(self, progress: RunProgress, now: float) -> None:
        if not progress.is_played:
            self._readings.clear()
            return
        usage = progress.status.usage
        is_known = usage.input_tokens is not None and usage.output_tokens is not None
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if is_known else None
        self._readings.append(_Reading(now, progress.status.done + progress.status.failed, tokens, usage.cost))
        while now - self._readings[0].time > _RATE_WINDOW_SECONDS:
            self._readings.popleft()

    @property
    def rates(self) -> Rates | None:
        """The rates over the last minute; `None` while the run is not played, or if playing has just begun."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        seconds = last.time - first.time
        if seconds < _MIN_RATE_SECONDS or last.finished < first.finished:
            return None
        tokens = None if first.tokens is None or last.tokens is None else (last.tokens - first.tokens) / seconds
        cost = None if first.cost is None or last.cost is None else (last.cost - first.cost) / seconds
        return Rates((last.finished - first.finished) / seconds, tokens, cost)


_MAX_CACHED_REPORTS = 8
"""The number of cached reports; a report contains tables, but no conversations."""

ReportKey = tuple[tuple[tuple[str, Signature], ...], str | None, str | None]


class Viewer(Protocol):
    """The client of a page, which waits for a report."""

    @property
    def is_deleted(self) -> bool:
        """Return whether the browser has left the page."""
        ...


class AbandonedError(Exception):
    """The error that ends a computation because no page waits for its report any more."""


class Computation:
    """A report that is being computed in a thread.

    Args:
        runs: The runs.
        judging: The set of judgements; `None` for the default.
        where: Only scenarios that match this expression.

    Attributes:
        scenarios_read: The number of finished scenarios read so far; each is read several times.
    """

    def __init__(self, runs: Sequence[Run], judging: str | None, where: str | None) -> None:
        self.scenarios_read = 0
        self._viewers: list[Viewer] = []
        computing = asyncio.to_thread(report, *runs, judging=judging, where=where, on_progress=self._progress)
        self.task = asyncio.ensure_future(computing)

    @property
    def is_abandoned(self) -> bool:
        """Return whether browsers have left all pages that requested the report."""
        return all(viewer.is_deleted for viewer in self._viewers)

    def add_viewer(self, viewer: Viewer) -> None:
        """Add a viewer who waits for the report."""
        self._viewers.append(viewer)

    async def result(self) -> Report:
        """Wait for the report.

        Raises:
            DialoomError: In the same cases as `dialoom.report`.
            AbandonedError: If all waiting pages were left.
        """
        return await asyncio.shield(self.task)

    def _progress(self, scenarios_read: int) -> None:
        self.scenarios_read = scenarios_read
        if self.is_abandoned:
            raise AbandonedError


class ReportCache:
    """The cached reports of a studio, by their arguments and by the state of the runs' files."""

    def __init__(self) -> None:
        self._running: dict[ReportKey, Computation] = {}
        self._done: OrderedDict[ReportKey, Report] = OrderedDict()

    async def find(self, runs: Sequence[Run], judging: str | None, where: str | None) -> Report | Computation:
        """Return a report if it is cached, or otherwise its computation, to which the caller adds its viewer.

        Args:
            runs: The runs.
            judging: As for `dialoom.report`.
            where: As for `dialoom.report`.
        """
        signatures = await asyncio.to_thread(lambda: tuple((str(each.path), signature(each.path)) for each in runs))
        key = (signatures, judging, where)
        if (cached := self._done.get(key)) is not None:
            self._done.move_to_end(key)
            return cached
        running = self._running.get(key)
        if running is None or running.is_abandoned:
            running = self._running[key] = Computation(runs, judging, where)
            running.task.add_done_callback(lambda task: self._store_result(key, task))
        return running

    def _store_result(self, key: ReportKey, task: asyncio.Future[Report]) -> None:
        if (running := self._running.get(key)) is not None and running.task is task:
            del self._running[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._done[key] = task.result()
        while len(self._done) > _MAX_CACHED_REPORTS:
            self._done.popitem(last=False)
