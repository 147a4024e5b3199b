"""Watching a run: its file is read once for all browsers, seldom enough that reading costs little beside playing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from dialoom import Run
from dialoom.runs.progress import RunProgress
from dialoom.runs.store.connections import Signature, signature

_LEAST = 1.0
"""Seconds from one reading to the next, at the least."""
_MOST = 15.0
"""At the most, however long reading takes."""
_SHARE = 10
"""Reading takes no more than one part in so many of the time."""
_WINDOW = 60.0
"""Seconds over which rates are told."""
_SOON = 3.0
"""Seconds that have to pass before there is a rate."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a run gets on while it is watched.

    Attributes:
        scenarios: Finished per second.
        tokens: Read and written per second; `None` if unknown.
        cost: US dollars per second; `None` if unknown.
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
    """The progress of one run, as it was read last, and its rate."""

    run: Run
    _progress: RunProgress | None = None
    _seen: Signature = ()
    _due: float = 0.0
    _readings: deque[_Reading] = field(default_factory=deque)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self) -> RunProgress:
        """How it gets on; read anew only if it is time, and something may have changed."""
        async with self._reading:
            now = time.monotonic()
            if self._progress is None or (now >= self._due and self._may_have_changed()):
                is_first = self._progress is None
                self._seen = signature(self.run.path)
                self._progress = await asyncio.to_thread(self.run.progress)
                self._keep(self._progress, now)
                took = 0.0 if is_first else time.monotonic() - now  # the first one imports what it needs
                self._due = time.monotonic() + min(max(_LEAST, _SHARE * took), _MOST)
            return self._progress

    def _may_have_changed(self) -> bool:
        """A run that is played by somebody may end without a change."""
        return (self._progress is not None and self._progress.is_played) or signature(self.run.path) != self._seen

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
        """Over the last minute; `None` while nobody plays, or it is too soon to say."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        seconds = last.at - first.at
        if seconds < _SOON or last.finished < first.finished:
            return None
        tokens = None if first.tokens is None or last.tokens is None else (last.tokens - first.tokens) / seconds
        cost = None if first.cost is None or last.cost is None else (last.cost - first.cost) / seconds
        return Pace((last.finished - first.finished) / seconds, tokens, cost)
