"""Waiting that ends when the work is to stop: between attempts, for a Retry-After, for a rate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dialoom.roles.errors import DrainedError


class Pauses:
    """All pauses of one gateway.

    Attributes:
        is_drained: Whether there are to be no more of them.
    """

    def __init__(self) -> None:
        self.is_drained = False
        self._over = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> float:
        """Seconds, by the clock of the event loop, which is that of the pauses."""
        return asyncio.get_running_loop().time()

    def when_drained(self, listener: Callable[[], None]) -> None:
        """Have it called when the pauses end."""
        self._listeners.append(listener)

    def drain(self) -> None:
        """End every pause, those to come included. Called in the event loop's thread."""
        self.is_drained = True
        self._over.set()
        for listener in self._listeners:
            listener()

    def ensure_open(self) -> None:
        """Look whether one may still wait.

        Raises:
            DrainedError: If not.
        """
        if self.is_drained:
            raise DrainedError("given up while it had to wait, as the work is to stop")

    async def sleep(self, seconds: float) -> None:
        """Wait so long.

        Raises:
            DrainedError: If the work is to stop.
        """
        self.ensure_open()
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
        self.ensure_open()
