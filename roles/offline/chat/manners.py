"""Manners: what a trait is called, how it sounds in a chat, and how somebody speaks who suits it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..lazy import Lazy


@dataclass(frozen=True)
class Manner:
    """One way to be.

    Attributes:
        name: Its name.
        called: What descriptions call it, a pattern of word beginnings.
        shown: Words that give it away in somebody's lines, a pattern.
        says: Remarks of somebody who is like that, true of any subject.
        suited: Words that suit such a person in an answer, a pattern.
        replies: Remarks of an answer that suits such a person.
        opposite: The manner that is meant where this one is denied; an empty text if none is.
        grave: Whether its remarks also fit a sad subject.
    """

    name: str
    called: str
    shown: str
    says: tuple[str, ...]
    suited: str
    replies: tuple[str, ...]
    opposite: str = ""
    grave: bool = False

    @cached_property
    def _called(self) -> Lazy:
        return Lazy(rf"\b(?:{self.called})")

    @cached_property
    def _shown(self) -> Lazy:
        return Lazy(rf"\b(?:{self.shown})")

    @cached_property
    def _suited(self) -> Lazy:
        return Lazy(rf"\b(?:{self.suited})")

    def named_in(self, text: str) -> int | None:
        """Give the place in a text, in small letters, that names this manner."""
        found = self._called.search(text)
        return found.start() if found else None

    def shows_in(self, text: str) -> bool:
        """Tell whether a line of the person shows it, with contractions or without."""
        plain = _plain(text)
        return bool(self._shown.search(plain) or self._shown.search(_contracted(plain)))

    def suits(self, answer: str) -> bool:
        """Tell whether an answer is made for somebody like that."""
        plain = _plain(answer)
        return bool(self._suited.search(plain) or self._suited.search(_contracted(plain)))


_DENIED = Lazy(
    r"(?:\b(?:not|never|rarely|seldom|hardly|isn't|doesn't|without|no|little|far from|lacks?|hates?|dislikes?|"
    r"cannot|hardly ever)\b)"
    r"(?:(?!\band\b|\bbut\b)[^,;]){0,24}$"
)


_LONG_FORMS = Lazy(
    r"\b(i am|i have|i will|i would|is not|do not|cannot|could not|will not|(?:it|that|there|what|nobody) is|"
    r"you have|you are)\b"
)
_SHORT = {"am": "'m", "have": "'ve", "will": "'ll", "would": "'d", "is": "'s", "are": "'re"}


def _contracted(text: str) -> str:
    """Give a text in small letters with its long forms drawn together."""

    def short(found: re.Match[str]) -> str:
        first, _, second = found.group().partition(" ")
        if second == "not":
            return "won't" if first == "will" else f"{first}n't"
        return f"{first}{_SHORT[second]}" if second else "can't"

    return _LONG_FORMS.sub(short, text)


def _plain(text: str) -> str:
    return text.lower().replace("’", "'")


@lru_cache(maxsize=4096)
def manners_of(trait: str) -> tuple[Manner, ...]:
    """Give the manners that a sentence about somebody's character names, first named first."""
    from .mannerbank import MANNERS

    text = _plain(trait)
    named: list[tuple[int, Manner]] = []
    for manner in MANNERS.values():
        at = manner.named_in(text)
        if at is None:
            continue
        if not _DENIED.search(text[:at]):
            named.append((at, manner))
        elif manner.opposite:
            named.append((at, MANNERS[manner.opposite]))
    return tuple(dict.fromkeys(manner for _, manner in sorted(named, key=lambda each: each[0])))


def shown_in(lines: Iterable[str]) -> list[Manner]:
    """Give the manners that lines show, in the order in which they showed first."""
    from .mannerbank import MANNERS

    return list(dict.fromkeys(manner for line in lines for manner in MANNERS.values() if manner.shows_in(line)))
