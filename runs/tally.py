"""How work goes, whoever carries it out: what has come out, what has failed, and when that is the end of it."""

from __future__ import annotations

from collections.abc import Callable

from .events import Event, ScenarioDone, ScenarioFailed, Stopping
from .limits import FailOnError


class WorkTally:
    """Counts results, passes them on, and stops the work when going on makes no sense.

    Args:
        on_event: Is told of each result.
        fail_on_error: When failures stop the work.
        drain: Has the work stop as an interrupt does.

    Attributes:
        done: Scenarios that came out.
        failed: Scenarios that failed.
        stopped: Why the work stopped of its own accord.
        is_draining: Whether it was asked to stop, by anybody.
    """

    def __init__(
        self, on_event: Callable[[Event], None], fail_on_error: FailOnError, drain: Callable[[], None]
    ) -> None:
        self._on_event = on_event
        self._fail_on_error = fail_on_error
        self._drain = drain
        self.done = self.failed = 0
        self.stopped: Stopping | None = None
        self.is_draining = False

    def count(self, result: ScenarioDone | ScenarioFailed) -> None:
        """Count a result; too many failures are the end."""
        if isinstance(result, ScenarioDone):
            self.done += 1
        else:
            self.failed += 1
        self._on_event(result)
        if reason := self._fail_on_error.exceeded(self.failed, self.failed + self.done):
            self.stop(Stopping(None, reason, "fail_on_error"))

    def stop(self, stopping: Stopping) -> None:
        """Stop as an interrupt does; the first reason is the one that counts."""
        if not self.is_draining:
            self.stopped = stopping
            self._on_event(stopping)
            self._drain()
