"""Manners: what a trait is called, how it sounds in a chat, and how somebody speaks who suits it (`manners.toml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ..words import Words
from .english import DATA, beginnings, pattern

MANNERS = Words(DATA / "manners.toml")
GRAVE = frozenset(("hardship", "dislike"))
"""Subjects that are nothing to be merry about."""


@lru_cache(maxsize=4096)
def manners_of(trait: str) -> tuple[str, ...]:
    """Give the manners that a sentence about somebody's character names, first named first; denied, their opposites."""
    named: list[tuple[int, str]] = []
    for name, found in _found("called", trait):
        denied = pattern("denied").search(found.string[: found.start()])
        named.append((found.start(), MANNERS.get(f"{name}.opposite", "") if denied else name))
    return tuple(dict.fromkeys(name for _, name in sorted(named, key=lambda each: each[0]) if name))


@lru_cache(maxsize=4096)
def shown_in(line: str, what: str = "shown") -> tuple[str, ...]:
    """Give the manners that a line of the person shows; or, with "suited", those that an answer suits."""
    return tuple(name for name, _ in _found(what, line))


def fitting(manners: Iterable[str], subject: str) -> list[str]:
    """Give the manners whose remarks fit a subject."""
    return [name for name in manners if subject not in GRAVE or MANNERS.get(f"{name}.grave", False)]


def _found(kind: str, text: str) -> list[tuple[str, re.Match[str]]]:
    small = text.lower().replace("’", "'")
    each = ((name, beginnings(tuple(entry[kind])).search(small)) for name, entry in MANNERS.table.items())
    return [(name, found) for name, found in each if found]
