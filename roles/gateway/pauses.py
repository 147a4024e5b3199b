"""Pauses that end when the run is stopping: between attempts, for a Retry-After, for a rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dialoom.roles.errors import DrainedError


class Pauses:
    """All pauses of one gateway.

    Attributes:
        is_drained: Whether no more pauses are allowed.
    """

    def __init__(self) -> None:
        self.is_drained = False
        self._over = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> float:
        """Return the time in seconds, by the event loop's clock, which times the pauses."""
        return asyncio.get_running_loop().time()

    def when_drained(self, listener: Callable[[], None]) -> None:
        """Register a function that is called when the pauses end."""
        self._listeners.append(listener)

    def drain(self) -> None:
        """End every pause, including future ones. Must be called in the event loop's thread."""
        self.is_drained = True
        self._over.set()
        for listener in self._listeners:
            listener()

    def ensure_open(self) -> None:
        """Check that waiting is still allowed.

        Raises:
            DrainedError: If it is not.
        """
        if self.is_drained:
            raise DrainedError("given up while it had to wait, as the work is to stop")

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds.

        Raises:
            DrainedError: If the run is stopping.
        """
        self.ensure_open()
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
        self.ensure_open()
