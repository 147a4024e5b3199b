"""How work goes, whoever carries it out: what has come out, what has failed, and when that is the end of it."""

from __future__ import annotations

from collections.abc import Callable

from .errors import Fault
from .events import Event, ScenarioDone, ScenarioFailed, Stopping
from .limits import FailOnError

SAME_IN_A_ROW = 5
"""So many scenarios in a row that fail by the same permanent error of a provider stop the work."""


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
        self._cause: str | None = None
        self._in_a_row = 0
        self.done = self.failed = 0
        self.stopped: Stopping | None = None
        self.is_draining = False

    def count(self, result: ScenarioDone | ScenarioFailed) -> None:
        """Count a result; stop when too many have failed, or several in a row by the same lasting cause."""
        if isinstance(result, ScenarioDone):
            self.done += 1
            self._cause = None
        else:
            self.failed += 1
            self._in_a_row = self._in_a_row + 1 if result.cause == self._cause else 1
            self._cause = result.cause
        self._on_event(result)
        if reason := self._fail_on_error.exceeded(self.failed, self.failed + self.done):
            self.stop(Stopping(None, reason, "fail_on_error"))
        elif isinstance(result, ScenarioFailed) and result.cause is not None and self._in_a_row >= SAME_IN_A_ROW:
            said = f"{SAME_IN_A_ROW} scenarios in a row failed with the same permanent error: {result.error}"
            self.stop(Stopping(Fault.PROVIDER_PERMANENT, said))

    def stop(self, stopping: Stopping) -> None:
        """Stop as an interrupt does; the first reason is the one that counts."""
        if not self.is_draining:
            self.stopped = stopping
            self._on_event(stopping)
            self._drain()
