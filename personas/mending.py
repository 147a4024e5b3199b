"""Repairs that readers of real files make: counted by kind and summarised in one line, never silent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

STRAY_KEY = "domain names with stray characters mended"
EMPTY = "empty affinities left out"
WITHHELD = "'[Redacted]' or 'N/A' values left out"
UNTOLD = "'[Redacted]' or 'N/A' values of demographics or situations, which no prompt shows"
OUTSIDE = "values that the schema does not list"
FOREIGN_AFFINITY = "affinities that a task names but its domains lack"
RESPELT_AFFINITY = "affinities matched by another spelling (Favourite/Favorite)"
TAGGED_AFFINITY = "affinities matched without their '(Domain)' suffix"
NON_ASCII = "profiles with letters beyond ASCII"
FREE_SITUATION = "devices, days or times told in free words"
HALVES = "values with half a character in a text, which was replaced"
MASKED_TASK = "tasks left out because one of the domains is masked"

_THINGS = "names values profiles devices days times tasks files texts lines marks"
_ONE = {"affinities": "affinity", **{things: things[:-1] for things in _THINGS.split()}}
_NOUNS = re.compile(rf"\b(?:{'|'.join(_ONE)})\b(?:, (?:{'|'.join(_ONE)})\b)*(?: or (?:{'|'.join(_ONE)})\b)?")

_FINE = frozenset({OUTSIDE, NON_ASCII, FREE_SITUATION})
"""Kinds that are kept unchanged and need no action; they are listed because users may not expect them."""

_WITHHELD = re.compile(r"^\W*(redacted|n\s*/\s*a)\W*$", re.IGNORECASE)
_BLOT = re.compile(r"\[\s*redacted\s*\]", re.IGNORECASE)
_SUFFIX = re.compile(r"\s*\([^)]*\)\s*$")
_DAYS = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}
_TIMES = {"early morning", "morning", "midday", "afternoon", "evening", "night"}
_DEVICES = {"smartphone", "laptop", "tablet", "desktop", "desktop computer", "smart speaker", "smartwatch"}


class Mendings(Counter[str]):
    """The number of repairs by kind."""

    def summary(self) -> str:
        """Return one line, or an empty text without repairs."""
        met = {kind: f"{self[kind]:,} {_one(kind) if self[kind] == 1 else kind}" for kind in sorted(self) if self[kind]}
        parts = [text for kind, text in met.items() if kind not in _FINE]
        if fine := [text for kind, text in met.items() if kind in _FINE]:
            parts.append(f"kept as they are, nothing needs to be done: {', '.join(fine)}")
        return "; ".join(parts)


def _one(kind: str) -> str:
    """Return the singular form of a kind of repair."""
    return _NOUNS.sub(lambda found: re.sub(r"\w{3,}", lambda noun: _ONE[noun[0]], found[0]), kind, count=1)


def domain_name(key: str, known: Iterable[str]) -> str:
    """Return the domain that a key names: itself, or the known name that remains without stray characters."""
    if key in known:
        return key
    bare = re.sub(r"[^A-Za-z ]", "", key).strip().casefold()
    return next((name for name in known if name.casefold() == bare), key)


def is_withheld(value: str) -> bool:
    """Return whether a value stands for an answer that was withheld."""
    return bool(_WITHHELD.match(value))


def is_untold(value: str) -> bool:
    """Return whether a value of demographics or a situation is withheld, or contains a redacted part."""
    return is_withheld(value) or bool(_BLOT.search(value))


def resolve_affinity(name: str, known: Iterable[str]) -> tuple[str | None, str | None]:
    """Return the known affinity that a task's name refers to, and the kind of repair it took (both may be `None`)."""
    by_spelling = {_spelling(each): each for each in known}
    if name in by_spelling.values():
        return name, None
    if found := by_spelling.get(_spelling(name)):
        return found, RESPELT_AFFINITY
    bare = _SUFFIX.sub("", name)
    if bare != name and (found := by_spelling.get(_spelling(bare))):
        return found, TAGGED_AFFINITY
    return None, FOREIGN_AFFINITY


def free_form(device: str, day: str, time: str) -> int:
    """Return how many of the three values are none of the usual words."""
    return sum(
        value.strip().casefold() not in usual for value, usual in ((device, _DEVICES), (day, _DAYS), (time, _TIMES))
    )


def _spelling(name: str) -> str:
    return name.casefold().replace("favourite", "favorite").strip()
