"""The words that carry what a text is about, made comparable: endings off, doubles of a word as one."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path

from ..words import Words

DATA = Path(__file__).parent.parent / "data" / "aloe"
ENGLISH = Words(DATA / "english.toml")
LINES = Words(DATA / "lines.toml")
_ENDINGS = (("ings", 3), ("ing", 3), ("ied", 2), ("ies", 2), ("ers", 4), ("ed", 3), ("ly", 4), ("s", 3))


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


def quoted(text: str, most: int = 10) -> str:
    """Quote the beginning of a text."""
    words = text.split()
    return '"' + " ".join(words[:most]).rstrip(".,;:") + ('..."' if len(words) > most else '"')


def plain(text: str) -> str:
    """Give a text in small letters without accents and typographic apostrophes."""
    spelled = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return "".join(letter for letter in spelled if not unicodedata.combining(letter))


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Give what a word's forms have in common: `bake`, `bakes` and `baking` are one."""
    word = _same().get(word, word)
    for ending, left in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= left and not word.endswith(("ss", "us")):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    word = word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word
    return _same().get(word, word)


@lru_cache(maxsize=16384)
def telling(text: str) -> frozenset[str]:
    """Give the stems of a text's words that say what it is about."""
    words = re.findall(r"[^\W_]+", re.sub(r"'\w+", "", plain(text)))
    return frozenset(stem(word) for word in words if word not in listed("stop") and (len(word) > 1 or word.isdigit()))


@cache
def _same() -> dict[str, str]:
    return {word: as_one for as_one, words in ENGLISH.get("same").items() for word in words.split()}
