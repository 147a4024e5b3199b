"""The unrelated turns of a run: a pool's chats joined in its order, cut where an item has enough of them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from itertools import accumulate
from pathlib import Path

from dialoom.graphs.outcome import Line
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.shared import Shared
from dialoom.personas.preferences import read_chats
from dialoom.roles.tokens import tokens

from .conversation import LINES_PER_TURN


class Distractors:
    """A pool of unrelated turns.

    Args:
        path: A file of chats.

    Raises:
        DataError: If the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = [Line(role=each.speaker, content=each.content) for chat in read_chats(path) for each in chat]
        self._lines = tuple(lines)
        counts = [tokens(line.content) for line in lines]
        by_turn = [sum(counts[at : at + LINES_PER_TURN]) for at in range(0, len(counts), LINES_PER_TURN)]
        self._tokens = list(accumulate(by_turn, initial=0))
        self.first = cache(self._first)

    def check(self, turns: int) -> None:
        """Refuse more turns than there are.

        Raises:
            RecipeError: With how many there are.
        """
        if turns > self._most:
            raise RecipeError(
                f"turns {turns}: {self.path} has {self._most} turns; give no more, or another pool as distractors",
                setting="turns",
            )

    def fitting(self, most: int, taken: int, what: str) -> int:
        """The most turns that leave room.

        Args:
            most: The tokens that there is room for.
            taken: The tokens that something else takes.
            what: What takes them, for messages.

        Raises:
            RecipeError: If that takes more than there is room for, or the pool has too few turns to fill it.
        """
        if taken > most:
            raise RecipeError(f"tokens {most:,}: the preference of {what} alone takes {taken:,}", setting="tokens")
        turns = bisect_right(self._tokens, most - taken) - 1
        if turns == self._most and self.tokens(turns) + taken < most:
            raise RecipeError(
                f"tokens {most:,}: {self.path} has {self.tokens(turns):,} tokens in {turns} turns; give no more than "
                "that, or another pool as distractors",
                setting="tokens",
            )
        return turns

    def tokens(self, turns: int) -> int:
        """The tokens of the first turns."""
        return self._tokens[turns]

    def _first(self, turns: int) -> Shared[tuple[Line, ...]]:
        """The first turns, one object for all items of a length."""
        return Shared(self._lines[: turns * LINES_PER_TURN])

    @property
    def _most(self) -> int:
        return len(self._tokens) - 1
