"""An event loop whose clock jumps to the next timer when nothing else is to do: hours pass in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout:
            self.now += timeout
        return events


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def now() -> float:
    """Seconds since the loop began."""
    return asyncio.get_running_loop().time()


def passing(work: Coroutine[Any, Any, Result]) -> Result:
    """Carry out work on such a loop."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
