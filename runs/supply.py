"""Where the engine gets its work: from the run's file, page by page, or as it is dealt to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

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
