"""Words as they are compared: whole, case-folded, without their endings."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W\d_]+")
_ENDINGS = ("ings", "ing", "ies", "ers", "er", "ed", "es", "s", "ly", "y", "e")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its ending, if three letters stay."""
    word = word.casefold()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def words_of(text: str) -> list[str]:
    """A text's words, as they are."""
    return _WORD.findall(text)


def stems(text: str) -> frozenset[str]:
    """The stems of a text's words."""
    return frozenset(map(stem, words_of(text)))
