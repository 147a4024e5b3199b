"""The words that carry what a text is about, made comparable: endings off, doubles of a word as one."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

from .. import matching
from ..words import Words

DATA = Path(__file__).parent.parent / "data" / "aloe"
ENGLISH = Words(DATA / "english.toml")
LINES = Words(DATA / "lines.toml")


@cache
def listed(name: str) -> frozenset[str]:
    """Give the words of one of the lists in `english.toml`."""
    return frozenset(ENGLISH.get(name).split())


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Give one of the patterns in `english.toml`."""
    return re.compile(ENGLISH.get(f"patterns.{name}"))


@cache
def beginnings(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Give the pattern that finds any of some beginnings of words."""
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Cut a line into its sentences."""
    return [part for part in pattern("stop").split(text.replace("’", "'").strip()) if part]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Give what a word's forms, and words that mean the same, have in common."""
    bare = matching.stem(_same().get(word, word))
    return _same().get(bare, bare)


@lru_cache(maxsize=16384)
def telling(text: str) -> frozenset[str]:
    """Give the stems of a text's words that say what it is about."""
    words = re.findall(r"[^\W_]+", re.sub(r"'\w+", "", matching.plain(text)))
    return frozenset(stem(word) for word in words if word not in listed("stop") and (len(word) > 1 or word.isdigit()))


@cache
def _same() -> dict[str, str]:
    return {word: as_one for as_one, words in ENGLISH.get("same").items() for word in words.split()}
