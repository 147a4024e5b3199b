"""Manners: what a trait is called, how it sounds in a chat, and how somebody speaks who suits it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ..words import Words
from .english import DATA, beginnings

_MANNERS = Words(DATA / "manners.toml")
_DENIED = re.compile(
    r"(?:\b(?:not|never|rarely|seldom|hardly|isn't|doesn't|without|no|little|far from|lacks?|hates?|dislikes?|cannot)\b)"
    r"(?:(?!\band\b|\bbut\b)[^,;]){0,24}$"
)
_LONG = re.compile(
    r"\b(i am|i have|i will|i would|is not|do not|cannot|could not|will not|(?:it|that|there|what|nobody) is|you have|"
    r"you are)\b"
)
_SHORT = {"am": "'m", "have": "'ve", "will": "'ll", "would": "'d", "is": "'s", "are": "'re"}


@dataclass(frozen=True, eq=False)
class Manner:
    """One way to be.

    Attributes:
        name: Its name.
        called: Finds what descriptions call it.
        shown: Finds what gives it away in somebody's lines.
        suited: Finds what suits such a person in an answer.
        says: Remarks of somebody who is like that, true of any subject.
        replies: Remarks of an answer that suits such a person.
        opposite: The manner that is meant where this one is denied; an empty text if none is.
        grave: Whether its remarks also fit a sad subject.
    """

    name: str
    called: re.Pattern[str]
    shown: re.Pattern[str]
    suited: re.Pattern[str]
    says: tuple[str, ...]
    replies: tuple[str, ...]
    opposite: str
    grave: bool


@cache
def manners() -> Mapping[str, Manner]:
    """Give all manners by name."""
    return {
        name: Manner(
            name,
            *(beginnings(tuple(entry[key])) for key in ("called", "shown", "suited")),
            tuple(entry["says"]),
            tuple(entry["replies"]),
            entry.get("opposite", ""),
            entry.get("grave", False),
        )
        for name, entry in _MANNERS.table.items()
    }


@lru_cache(maxsize=4096)
def manners_of(trait: str) -> tuple[Manner, ...]:
    """Give the manners that a sentence about somebody's character names, first named first."""
    text = _small(trait)
    named: list[tuple[int, Manner]] = []
    for manner in manners().values():
        found = manner.called.search(text)
        if found and not _DENIED.search(text[: found.start()]):
            named.append((found.start(), manner))
        elif found and manner.opposite:
            named.append((found.start(), manners()[manner.opposite]))
    return tuple(dict.fromkeys(manner for _, manner in sorted(named, key=lambda each: each[0])))


@lru_cache(maxsize=4096)
def shown_in(line: str) -> tuple[Manner, ...]:
    """Give the manners that a line of the person shows, with contractions or without."""
    both = _both(line)
    return tuple(manner for manner in manners().values() if any(map(manner.shown.search, both)))


def suits(manner: Manner, answer: str) -> bool:
    """Tell whether an answer is made for somebody like that."""
    return any(map(manner.suited.search, _both(answer)))


def _small(text: str) -> str:
    return text.lower().replace("’", "'")


@lru_cache(maxsize=4096)
def _both(text: str) -> tuple[str, ...]:
    """Give a text in small letters as it is, and with its long forms drawn together."""

    def short(found: re.Match[str]) -> str:
        first, _, second = found.group().partition(" ")
        if second == "not":
            return "won't" if first == "will" else f"{first}n't"
        return f"{first}{_SHORT[second]}" if second else "can't"

    small = _small(text)
    return tuple(dict.fromkeys((small, _LONG.sub(short, small))))
