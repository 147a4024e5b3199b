"""A handle on work that is under way, for any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from dialoom.roles.gateway.availability import UnderWay
from dialoom.roles.gateway.limits import LimitState


class _Stoppable(Protocol):
    def drain(self) -> None: ...

    def stop(self) -> None: ...


class Calls(Protocol):
    """What is known of the calls that work makes."""

    @property
    def states(self) -> Mapping[str, LimitState]:
        """How the limit of each model stands."""
        ...

    @property
    def under_way(self) -> Sequence[UnderWay]:
        """The calls that are not answered yet, the longest first."""
        ...


class Control:
    """Stops work from any thread, at once or gently, and tells how it stands to its models' limits.

    Given to an operation of the door; of use once, and before the operation begins as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_draining = self._is_stopped = False
        self._work: _Stoppable | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: Calls | None = None

    @property
    def is_draining(self) -> bool:
        """Whether the work was asked to stop."""
        return self._is_draining

    @property
    def limits(self) -> Mapping[str, LimitState]:
        """How the limit of each model stands that was called: in flight, throttled, paused."""
        return {} if self._calls is None else self._calls.states

    @property
    def under_way(self) -> Sequence[UnderWay]:
        """The calls that were sent and have no reply yet, the longest first: their roles, models and ages."""
        return () if self._calls is None else self._calls.under_way

    def drain(self) -> None:
        """Begin nothing new; let each conversation reach its next checkpoint, and stop there."""
        with self._lock:
            self._is_draining = True
        self._carry_on()

    def stop(self) -> None:
        """Drop what is in flight. What was committed is kept."""
        with self._lock:
            self._is_draining = self._is_stopped = True
        self._carry_on()

    def interrupt(self) -> None:
        """What Ctrl-C does: the first one drains, the second one stops."""
        if self.is_draining:
            self.stop()
        else:
            self.drain()

    def attach(self, work: _Stoppable, calls: Calls) -> None:
        """Begin to control work that is carried out by the running event loop."""
        with self._lock:
            self._work, self._loop, self._calls = work, asyncio.get_running_loop(), calls
        if self.is_draining:
            self._carry_on()

    def detach(self) -> None:
        """The work is over."""
        with self._lock:
            self._work = self._loop = None

    def _carry_on(self) -> None:
        """Tell the work, in its own thread."""
        with self._lock:
            if self._work is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._work.stop if self._is_stopped else self._work.drain)
