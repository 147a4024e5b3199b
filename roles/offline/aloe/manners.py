"""Manners: what a trait is called, how it sounds in a chat, and how somebody speaks who suits it (`manners.toml`)."""

from __future__ import annotations

import re
from functools import lru_cache

from ..words import Words
from .english import DATA, beginnings

MANNERS = Words(DATA / "manners.toml")
_DENIED = re.compile(
    r"\b(?:not|never|rarely|seldom|hardly|isn't|doesn't|without|no|little|far from|lacks?|hates?|dislikes?|cannot)\b"
    r"(?:(?!\band\b|\bbut\b)[^,;]){0,24}$"
)


@lru_cache(maxsize=4096)
def manners_of(trait: str) -> tuple[str, ...]:
    """Give the manners that a sentence about somebody's character names, first named first; denied, their opposites."""
    named: list[tuple[int, str]] = []
    text = _small(trait)
    for name, found in _found("called", text):
        meant = MANNERS.get(f"{name}.opposite", "") if _DENIED.search(text[: found.start()]) else name
        named += [(found.start(), meant)] if meant else []
    return tuple(dict.fromkeys(name for _, name in sorted(named, key=lambda each: each[0])))


@lru_cache(maxsize=4096)
def shown_in(line: str) -> tuple[str, ...]:
    """Give the manners that a line of the person shows."""
    return tuple(name for name, _ in _found("shown", _small(line)))


@lru_cache(maxsize=4096)
def suited_by(answer: str) -> tuple[str, ...]:
    """Give the manners of those for whom an answer is made."""
    return tuple(name for name, _ in _found("suited", _small(answer)))


def fits_grave(manner: str) -> bool:
    """Tell whether a manner's remarks also fit a sad subject."""
    return bool(MANNERS.get(f"{manner}.grave", False))


def _small(text: str) -> str:
    return text.lower().replace("’", "'")


def _found(kind: str, text: str) -> list[tuple[str, re.Match[str]]]:
    each = ((name, beginnings(tuple(entry[kind])).search(text)) for name, entry in MANNERS.table.items())
    return [(name, found) for name, found in each if found]
