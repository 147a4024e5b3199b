"""A handle on work that is under way, for any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from dialoom.roles.gateway.limits import LimitState


class _Stoppable(Protocol):
    def drain(self) -> None: ...

    def stop(self) -> None: ...


class Control:
    """Stops work from any thread, at once or gently, and tells how it stands to its models' limits.

    Given to an operation of the door; of use once, and before the operation begins as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_draining = self._is_stopped = False
        self._work: _Stoppable | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._states: Callable[[], Mapping[str, LimitState]] = dict

    @property
    def is_draining(self) -> bool:
        """Whether the work was asked to stop."""
        return self._is_draining

    @property
    def limits(self) -> Mapping[str, LimitState]:
        """How the limit of each model stands that was called: in flight, throttled, paused."""
        return self._states()

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

    def attach(self, work: _Stoppable, states: Callable[[], Mapping[str, LimitState]]) -> None:
        """Begin to control work that is carried out by the running event loop."""
        with self._lock:
            self._work, self._loop, self._states = work, asyncio.get_running_loop(), states
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
