"""Reports computed in the background: shared by all viewers, cancelled when none is left, and cached."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from dialoom import Report, Run, report
from dialoom.runs.store.connections import Signature, signature

_KEPT = 8
"""Reports that are cached: each holds tables, and no conversation."""

Question = tuple[tuple[tuple[str, Signature], ...], str | None, str | None]


class Viewer(Protocol):
    """Somebody who waits for a report: a page's client."""

    @property
    def is_deleted(self) -> bool:
        """True if the browser has gone away."""
        ...


class AbandonedError(Exception):
    """The computation of a report for which nobody waits any more."""


class Computation:
    """A report that is being computed in a thread.

    Args:
        runs: The runs.
        judging: The set of judgements; `None` for the default.
        where: Only scenarios that this expression holds of.

    Attributes:
        read: How many finished scenarios were read so far; each is read several times.
    """

    def __init__(self, runs: Sequence[Run], judging: str | None, where: str | None) -> None:
        self.read = 0
        self._viewers: list[Viewer] = []
        work = asyncio.to_thread(report, *runs, judging=judging, where=where, on_progress=self._progress)
        self.task = asyncio.ensure_future(work)

    @property
    def is_abandoned(self) -> bool:
        """True if the browsers of all who asked for it are gone."""
        return all(viewer.is_deleted for viewer in self._viewers)

    def join(self, viewer: Viewer) -> None:
        """Add a viewer who waits for the report."""
        self._viewers.append(viewer)

    async def result(self) -> Report:
        """Wait for the report.

        Raises:
            DialoomError: As `dialoom.report`.
            AbandonedError: If everybody had left.
        """
        return await asyncio.shield(self.task)

    def _progress(self, read: int) -> None:
        self.read = read
        if self.is_abandoned:
            raise AbandonedError


class Reports:
    """The reports of a studio, by their arguments and by the state of the runs' files."""

    def __init__(self) -> None:
        self._running: dict[Question, Computation] = {}
        self._done: OrderedDict[Question, Report] = OrderedDict()

    async def find(self, runs: Sequence[Run], judging: str | None, where: str | None) -> Report | Computation:
        """Return a report if it is known, or else its computation, which the caller joins.

        Args:
            runs: The runs.
            judging: As for `dialoom.report`.
            where: Likewise.
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
        while len(self._done) > _KEPT:
            self._done.popitem(last=False)
