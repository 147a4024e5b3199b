"""A handle on work in progress, for use from any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from dialoom.roles.gateway.availability import CallInFlight
from dialoom.roles.gateway.limits import LimitState


class _Stoppable(Protocol):
    def drain(self) -> None: ...

    def stop(self) -> None: ...


class Calls(Protocol):
    """The calls that work makes."""

    @property
    def states(self) -> Mapping[str, LimitState]:
        """The state of each model's rate limit."""
        ...

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls without a reply so far, the longest first."""
        ...


class Control:
    """A control that stops work from any thread, at once or gracefully, and reports its models' rate limits.

    It is passed to an operation of the API, can be used once, and works before the operation begins as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_draining = self._is_stopped = False
        self._work: _Stoppable | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: Calls | None = None

    @property
    def is_draining(self) -> bool:
        """Return whether the work was asked to stop."""
        return self._is_draining

    @property
    def limits(self) -> Mapping[str, LimitState]:
        """The state of each called model's rate limit: in flight, throttled, paused."""
        return {} if self._calls is None else self._calls.states

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls that were sent and have no reply yet, the longest first: their roles, models and ages."""
        return () if self._calls is None else self._calls.in_flight

    def drain(self) -> None:
        """Begin nothing new; let each conversation reach its next checkpoint, and stop there."""
        with self._lock:
            self._is_draining = True
        self._carry_on()

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are kept."""
        with self._lock:
            self._is_draining = self._is_stopped = True
        self._carry_on()

    def interrupt(self) -> None:
        """Handle Ctrl-C: the first one drains, the second one stops."""
        if self.is_draining:
            self.stop()
        else:
            self.drain()

    def attach(self, work: _Stoppable, calls: Calls) -> None:
        """Begin to control work that the running event loop carries out."""
        with self._lock:
            self._work, self._loop, self._calls = work, asyncio.get_running_loop(), calls
        if self.is_draining:
            self._carry_on()

    def detach(self) -> None:
        """End the control, as the work is over."""
        with self._lock:
            self._work = self._loop = None

    def _carry_on(self) -> None:
        """Notify the work, in its own thread."""
        with self._lock:
            if self._work is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._work.stop if self._is_stopped else self._work.drain)
