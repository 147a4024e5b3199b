"""How somebody speaks: manners, and a voice that says nothing twice.

`manners.toml` holds what a trait is called, how it sounds in a chat, and how somebody speaks who suits it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from ..draws import Draws
from ..matching import plain
from ..words import Words, say, tidy
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


class Voice:
    """Picks remarks for somebody who remembers the lines that they said."""

    def __init__(self, own: Sequence[str], draws: Draws) -> None:
        self._said = _bare(" ".join(own))
        self._draws = draws

    def of(self, bank: Iterable[str], slots: Mapping[str, str] | None = None) -> str:
        """Give a remark of the bank that its slots can fill and that is new; else an empty text."""
        for template in self._draws.shuffled(tuple(bank)):
            head = _bare(re.split(r"[{<\[]", template)[0])
            if len(head.split()) >= 3 and head in self._said:
                continue
            text = say([template], self._draws, slots)
            if text and _bare(text) not in self._said:
                return text
        return ""


def new_line(own: Sequence[str], draws: Draws, remarks: Callable[[Draws], Iterable[str]]) -> str:
    """Put remarks together to a line that was not said before, if one comes up in eight tries."""
    line = ""
    for attempt in range(8):
        parts = [part.strip() for part in remarks(draws.fork(attempt)) if part.strip()]
        line = tidy(" ".join(part if part[-1] in ".!?…" else part + "." for part in parts))
        if line and line not in own:
            break
    return line


def _bare(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", plain(text).replace("'", ""))
    return f" {' '.join(words)} " if words else ""
