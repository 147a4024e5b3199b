"""Tell whether a text mentions a value, whatever its spelling, number or neighbours."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from .lazy import Lazy

_SAME = {
    "wi-fi": "wifi",
    "everyday": "every day",
    "daily": "every day",
    "centre": "center",
    "favourite": "favorite",
    "nonstop": "non-stop",
    "non stop": "non-stop",
    "direct flight": "non-stop flight",
    "theatre": "theater",
    "monday to friday": "weekday",
    "monday through friday": "weekday",
    "first-class": "first class",
    "sci-fi": "science-fiction",
    "science fiction": "science-fiction",
    "e-book": "ebook",
    "cosy": "cozy",
    "swimming pool": "pool",
    "movie": "film",
    "center of town": "city center",
    "biopic": "biography",
    "historical": "history",
    "hi-fi": "high definition",
    "doctor's": "doctor",
}
_SAME_PATTERN = Lazy(r"\b(?:" + "|".join(sorted(map(re.escape, _SAME), key=len, reverse=True)) + r")(?=s?\b)")
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "and",
        "or",
        "in",
        "on",
        "at",
        "to",
        "for",
        "with",
        "by",
        "from",
        "per",
        "my",
        "your",
        "his",
        "her",
        "their",
        "our",
        "only",
        "preference",
        "preferred",
        "type",
        "style",
        "sound",
        "tone",
        "music",
        "genre",
        "fiction",
        "companies",
        "company",
        "national",
        "local",
        "town",
        "city",
        "place",
        "time",
        "times",
    ]
)


def _stem(word: str) -> str:
    for ending, least in (("ies", 4), ("es", 5), ("s", 4), ("ly", 6), ("ed", 6), ("ing", 6)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word[:-1] if len(word) > 5 and word.endswith("e") else word


@lru_cache(maxsize=16384)
def words_of(text: str) -> tuple[str, ...]:
    """Give the stems of a text's words, with spellings made equal and accents removed."""
    plain = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = _SAME_PATTERN.sub(lambda found: _SAME[found.group()], plain)
    plain = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", plain)
    plain = re.sub(r"\b0?(\d{1,2}):(\d\d)\s*([ap])\.?m\b\.?", r"\1:\2\3m", plain)
    plain = re.sub(r"\b(\d{1,2})\s+([ap])\.?m\b\.?", r"\1:00\2m", plain)
    return tuple(
        _stem(word.rstrip(".,:")) for word in re.findall(r"\$?\d[\d:.,+]*\w*|[^\W\d_]+(?:[-'&][^\W_]+)*|\d+", plain)
    )


@lru_cache(maxsize=8192)
def content_words(text: str) -> frozenset[str]:
    """Give the stems that carry meaning: no articles, prepositions or words found in every value."""
    return frozenset(word for word in words_of(text) if word not in _STOP)


def _contains_run(haystack: tuple[str, ...], needle: tuple[str, ...]) -> bool:
    size = len(needle)
    return any(haystack[at : at + size] == needle for at in range(len(haystack) - size + 1))


def mentions(text: str, value: str) -> bool:
    """Tell whether `text` names `value`: the same words in a row, or all its telling words in one sentence."""
    needle = words_of(value)
    if not needle or not text:
        return False
    if _contains_run(words_of(text), needle):
        return True
    telling = content_words(value)
    if not telling or (len(telling) == 1 and len(needle) > 3):
        return False
    return any(telling <= set(words_of(part)) for part in re.split(r"(?<=[.!?;\n])\s", text))


def mentions_any(text: str, values: Iterable[str]) -> bool:
    """Tell whether `text` names at least one of `values`."""
    return any(mentions(text, value) for value in values)


def overlap(first: str, second: str) -> float:
    """Give the share, 0 to 1, of the shorter text's telling words that the other has too."""
    one, other = content_words(first), content_words(second)
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0
