"""A sample of texts that come by one at a time, however many there are."""

from __future__ import annotations

import random

_SEED = 42


class DrawnTexts:
    """So many texts, each of those that came by as likely as any other (Vitter 1985, algorithm R), drawn with a seed.

    Args:
        size: How many are kept; fewer are all kept, in their order.

    Attributes:
        count: How many came by.
        texts: Those that are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._drawing = random.Random(_SEED)
        self.count = 0
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Take one in."""
        self.count += 1
        if len(self.texts) < self._size:
            self.texts.append(text)
        elif (place := self._drawing.randrange(self.count)) < self._size:
            self.texts[place] = text
