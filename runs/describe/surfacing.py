"""Which of a person's preferences ever come up in what is said, when, and who says them first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dialoom.graphs import Line

_WORD = re.compile(r"[^\W_]+")


@dataclass(slots=True)
class Surfacing:
    """Of many dialogues' preferences.

    Attributes:
        preferences: How many there are, over all dialogues.
        first: How many come up first in a turn (from 1), by the role that says them.
        turns: Of how many dialogues each turn is there.
    """

    preferences: int = 0
    first: dict[str, Counter[int]] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)

    def add(self, lines: Sequence[Line], preferences: Mapping[str, str]) -> None:
        """Take in a dialogue. A turn is a line of the user's and what follows until the next."""
        open_ = {name: _values(text) for name, text in preferences.items()}
        open_ = {name: values for name, values in open_.items() if values}
        self.preferences += len(open_)
        turn, opener = 0, lines[0].role if lines else ""
        for line in lines:
            turn += line.role == opener
            said = f" {' '.join(_WORD.findall(line.content.casefold()))} "
            for name in [name for name, values in open_.items() if any(f" {value} " in said for value in values)]:
                self.first.setdefault(line.role, Counter())[turn] += 1
                del open_[name]
        self.turns.update(range(1, turn + 1))

    @property
    def surfaced(self) -> int:
        """How many come up at all."""
        return sum(found.total() for found in self.first.values())


def _values(text: str) -> list[str]:
    """The values of a preference, each as its words; one that is told in a sentence is not looked for."""
    split: Iterable[list[str]] = (_WORD.findall(part.casefold()) for part in text.split(";"))
    return [" ".join(words) for words in split if 0 < len(words) <= 6]
