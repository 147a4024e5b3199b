"""Where the engine gets its scenarios, and long work in threads beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from .store import Work


class Supply(Protocol):
    """Gives work piece by piece."""

    async def take(self) -> Work | None:
        """The next piece, when there is one; `None` if there will be no more."""
        ...


class Listed:
    """Work that can be listed; the list is read only as far as it is asked for."""

    def __init__(self, work: Iterator[Work]) -> None:
        self._work = work

    async def take(self) -> Work | None:
        """The next piece."""
        return next(self._work, None)


Result = TypeVar("Result")


async def in_thread(work: Callable[[Callable[[], bool]], Result], is_stopped: Callable[[], bool]) -> Result:
    """What work comes to that is carried out in a thread.

    Whoever awaits it may be cancelled: the work is told to give up then, and waited for, as it must not go on with
    files that are closed behind its back.

    Args:
        work: Is given a function by which it asks whether to give up.
        is_stopped: Whether somebody else wants it to give up.
    """
    is_dropped = threading.Event()
    working = asyncio.ensure_future(asyncio.to_thread(work, lambda: is_dropped.is_set() or is_stopped()))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        is_dropped.set()
        await asyncio.wait([working])
        raise
