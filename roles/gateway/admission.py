"""One request is made ready after the other: the first is on its way while the next is prepared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PATIENCE = 0.05
"""Seconds after which the next may pass, whatever has become of the one before: a provider of which LiteLLM does not
say when its request is sent must not have its calls made one by one."""


class AdmissionGate:
    """Lets so many through at once, in the order in which they came.

    LiteLLM takes a millisecond or two of a processor to make a request ready. When a hundred replies arrive together,
    their hundred next requests would share the processor in small turns, and all be late by as much as the last; the
    provider would then stand idle for that long, and answer all of them together again.

    Args:
        width: How many may be inside; a few, so that one goes on while another changes threads.
    """

    def __init__(self, width: int = 4) -> None:
        self._places = asyncio.Semaphore(width)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Callable[[], None]]:
        """Inside until the yielded function is called, from any thread; the block goes on after that."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        is_inside = True

        def leave() -> None:
            nonlocal is_inside
            if is_inside:
                is_inside = False
                impatience.cancel()
                self._places.release()

        impatience = loop.call_later(PATIENCE, leave)
        try:
            yield lambda: _soon(loop, leave)
        finally:
            leave()


def _soon(loop: asyncio.AbstractEventLoop, leave: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(leave)
