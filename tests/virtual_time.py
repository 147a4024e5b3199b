"""An event loop whose clock jumps to the next timer when there is nothing else to do: hours pass in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from dialoom.roles.gateway.limits import Pauses

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout:
            self.now += timeout
        return events


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping_selector = _JumpingSelector()
        super().__init__(self._jumping_selector)

    def time(self) -> float:
        return self._jumping_selector.now


def now() -> float:
    """Return the seconds since the loop started."""
    return asyncio.get_running_loop().time()


def run_in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in an event loop with a virtual clock."""
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(work)


class SkippedPauses(Pauses):
    """Pauses that take no time, on a clock that they advance themselves: for calls to a real server.

    Args:
        on_pause: Called in each pause with the total of seconds passed.
    """

    def __init__(self, on_pause: Callable[[float], None]) -> None:
        super().__init__()
        self._on_pause = on_pause
        self._passed = 0.0

    def now(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.ensure_open()
        self._passed += seconds
        self._on_pause(self._passed)
        await asyncio.sleep(0.001)
        self.ensure_open()
