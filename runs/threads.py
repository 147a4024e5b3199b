"""Long work beside an event loop that goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

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
