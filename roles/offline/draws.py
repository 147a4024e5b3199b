"""Private, reproducible random draws: every choice follows from the text that seeded it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of choices seeded by a SHA-256 of its parts, so equal parts give equal choices anywhere."""

    def __init__(self, *parts: object) -> None:
        """Seed the stream with `parts`, compared by their text."""
        self._parts = parts
        text = "\x1f".join(str(part) for part in parts)
        self._random = Random(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))

    def fork(self, *parts: object) -> Draws:
        """Give an independent stream; it does not depend on what was drawn from this one."""
        return Draws(*self._parts, *parts)

    def pick(self, options: Sequence[T]) -> T:
        """Choose one of `options`, which must not be empty."""
        return options[self._random.randrange(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Give all `options` in a drawn order."""
        return self._random.sample(list(options), len(options))

    def chance(self, probability: float) -> bool:
        """Say yes with the given probability, 0 to 1."""
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Choose a whole number from `low` to `high`, both included."""
        return self._random.randint(low, high)
