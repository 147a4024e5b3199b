"""Private, reproducible random draws, derived from the values that seed them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of random choices seeded by the SHA-256 of its parts: equal parts give equal choices on any machine."""

    def __init__(self, *parts: object) -> None:
        """Seed the stream with the string forms of `parts`."""
        self._parts = parts
        text = "\x1f".join(str(part) for part in parts)
        self._random = Random(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))

    def fork(self, *parts: object) -> Draws:
        """Return an independent stream, which does not depend on earlier draws from this one."""
        return Draws(*self._parts, *parts)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`, which must not be empty."""
        return options[self._random.randrange(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return all `options` in random order."""
        return self._random.sample(list(options), len(options))

    def chance(self, probability: float) -> bool:
        """Return `True` with the given probability, 0 to 1."""
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Return a random whole number from `low` to `high`, both included."""
        return self._random.randint(low, high)
