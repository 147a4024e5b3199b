"""The engine's source of work, and long-running work in threads beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from .store import Work


class Supply(Protocol):
    """A source of work."""

    async def take(self) -> Work | None:
        """Return the next piece of work once there is one; `None` if there will be no more."""
        ...


class Listed:
    """A source of listed work, which is read on demand."""

    def __init__(self, work: Iterator[Work]) -> None:
        self._work = work

    async def take(self) -> Work | None:
        """Return the next piece of work; `None` at the end."""
        return next(self._work, None)


Result = TypeVar("Result")


async def in_thread(work: Callable[[Callable[[], bool]], Result], is_stopped: Callable[[], bool]) -> Result:
    """Run work in a thread and return its result.

    If the caller is cancelled, the work is told to stop and awaited, because it must not continue with files that are
    closed meanwhile.

    Args:
        work: Called with a function that returns whether to stop.
        is_stopped: Returns whether the work should stop for another reason.
    """
    is_dropped = threading.Event()
    working = asyncio.ensure_future(asyncio.to_thread(work, lambda: is_dropped.is_set() or is_stopped()))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        is_dropped.set()
        await asyncio.wait([working])
        raise
