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

_LEAST = 1.0
"""Minimum seconds between two readings."""
_MOST = 15.0
"""Maximum seconds between two readings, however long a reading takes."""
_SHARE = 10
"""The minimum ratio of the time between readings to the time that a reading takes."""
_WINDOW = 60.0
"""Seconds over which rates are computed."""
_SOON = 3.0
"""Seconds of watching after which the first rate is shown."""


@dataclass(frozen=True, slots=True)
class Pace:
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
    at: float
    finished: int
    tokens: int | None
    cost: float | None


@dataclass(slots=True)
class Watch:
    """The last reading of one run's progress, and the run's rate."""

    run: Run
    _progress: RunProgress | None = None
    _seen: Signature = ()
    _due: float = 0.0
    _readings: deque[_Reading] = field(default_factory=deque)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self) -> RunProgress:
        """Return the progress; it is read again only if enough time has passed and the file may have changed."""
        async with self._reading:
            now = time.monotonic()
            # While a run is played, its progress is read even if the file is the same, as the play may end.
            if self._progress is None or (
                now >= self._due and (self._progress.is_played or signature(self.run.path) != self._seen)
            ):
                is_first = self._progress is None
                seen = signature(self.run.path)
                self._progress = await asyncio.to_thread(self.run.progress)
                self._seen = seen
                self._keep(self._progress, now)
                took = 0.0 if is_first else time.monotonic() - now  # the first report imports the libraries it needs
                self._due = time.monotonic() + min(max(_LEAST, _SHARE * took), _MOST)
            return self._progress

    def _keep(self, progress: RunProgress, now: float) -> None:
        if not progress.is_played:
            self._readings.clear()
            return
        usage = progress.status.usage
        known = usage.input_tokens is not None and usage.output_tokens is not None
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if known else None
        self._readings.append(_Reading(now, progress.status.done + progress.status.failed, tokens, usage.cost))
        while now - self._readings[0].at > _WINDOW:
            self._readings.popleft()

    @property
    def rate(self) -> Pace | None:
        """The rates over the last minute; `None` while the run is not played, or if playing has just begun."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        seconds = last.at - first.at
        if seconds < _SOON or last.finished < first.finished:
            return None
        tokens = None if first.tokens is None or last.tokens is None else (last.tokens - first.tokens) / seconds
        cost = None if first.cost is None or last.cost is None else (last.cost - first.cost) / seconds
        return Pace((last.finished - first.finished) / seconds, tokens, cost)


_MOST_REPORTS = 8
"""The number of cached reports; a report contains tables, but no conversations."""

Question = tuple[tuple[tuple[str, Signature], ...], str | None, str | None]


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
        read: The number of finished scenarios read so far; each is read several times.
    """

    def __init__(self, runs: Sequence[Run], judging: str | None, where: str | None) -> None:
        self.read = 0
        self._viewers: list[Viewer] = []
        work = asyncio.to_thread(report, *runs, judging=judging, where=where, on_progress=self._progress)
        self.task = asyncio.ensure_future(work)

    @property
    def is_abandoned(self) -> bool:
        """Return whether browsers have left all pages that requested the report."""
        return all(viewer.is_deleted for viewer in self._viewers)

    def join(self, viewer: Viewer) -> None:
        """Add a viewer who waits for the report."""
        self._viewers.append(viewer)

    async def result(self) -> Report:
        """Wait for the report.

        Raises:
            DialoomError: In the same cases as `dialoom.report`.
            AbandonedError: If all waiting pages were left.
        """
        return await asyncio.shield(self.task)

    def _progress(self, read: int) -> None:
        self.read = read
        if self.is_abandoned:
            raise AbandonedError


class Reports:
    """The cached reports of a studio, by their arguments and by the state of the runs' files."""

    def __init__(self) -> None:
        self._running: dict[Question, Computation] = {}
        self._done: OrderedDict[Question, Report] = OrderedDict()

    async def find(self, runs: Sequence[Run], judging: str | None, where: str | None) -> Report | Computation:
        """Return a report if it is cached, or otherwise its computation, which the caller joins.

        Args:
            runs: The runs.
            judging: As for `dialoom.report`.
            where: As for `dialoom.report`.
        """
        states = await asyncio.to_thread(lambda: tuple((str(each.path), signature(each.path)) for each in runs))
        question = (states, judging, where)
        if (known := self._done.get(question)) is not None:
            self._done.move_to_end(question)
            return known
        running = self._running.get(question)
        if running is None or running.is_abandoned:
            running = self._running[question] = Computation(runs, judging, where)
            running.task.add_done_callback(lambda task: self._ended(question, task))
        return running

    def _ended(self, question: Question, task: asyncio.Future[Report]) -> None:
        if (running := self._running.get(question)) is not None and running.task is task:
            del self._running[question]
        if task.cancelled() or task.exception() is not None:
            return
        self._done[question] = task.result()
        while len(self._done) > _MOST_REPORTS:
            self._done.popitem(last=False)
