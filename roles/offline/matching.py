"""Matching of values in a text, independent of inflection, spelling and surrounding words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"\d[\d:.,+½]*\w*|[^\W\d_]+(?:['’ʻ&][^\W\d_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:St|Mr|Dr|vs)\.)[\"”]?\s+")
_ENDINGS = (("ings", 3), ("ing", 3), ("ied", 2), ("ies", 2), ("ers", 4), ("ed", 3), ("ly", 4), ("s", 3))
_STOP = frozenset(
    "a an the of and or in on at to for with by from per my your his her their our only one preference preferred type "
    "style sound tone music genre place time times".split()
)


def sentences(text: str) -> list[str]:
    """Split prose into sentences; initials and usual abbreviations do not end one."""
    return [part.strip() for part in _SENTENCE.split(text.strip()) if part.strip()]


def plain(text: str) -> str:
    """Return a text in lower case without accents and typographic apostrophes."""
    spelled = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return "".join(letter for letter in spelled if not unicodedata.combining(letter))


def stem(word: str) -> str:
    """Return the stem of a word in lower case: `bake`, `bakes` and `baking` have the same."""
    for ending, left in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= left and not word.endswith(("ss", "us")):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    word = word[:-1] if word.endswith("e") and len(word) > 3 else word
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


@lru_cache(maxsize=16384)
def words_of(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words, in lower case, without accents."""
    small = re.sub(r"\b0?(\d{1,2}:\d\d)\s*([ap])\.?m\b\.?", r"\1\2m", plain(text))
    return tuple(stem(word.rstrip(".,:")) for word in _WORD.findall(small))


@lru_cache(maxsize=16384)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of content words: no articles, prepositions, or words common to all values."""
    return frozenset(word for word in words_of(text) if word not in _STOP)


@lru_cache(maxsize=16384)
def _words_by_sentence(text: str) -> tuple[frozenset[str], ...]:
    return tuple(content_words(part) for part in sentences(text))


def mentions(text: str, value: str) -> bool:
    """Return whether `text` names `value`: all its content words occur in one sentence."""
    telling = content_words(value)
    if not telling:
        return bool(words_of(value)) and set(words_of(value)) <= set(words_of(text))
    return any(telling <= words for words in _words_by_sentence(text))


def mentions_any(text: str, values: Iterable[str]) -> bool:
    """Return whether `text` names at least one of `values`."""
    return any(mentions(text, value) for value in values)


def quoted(text: str, most: int = 14) -> str:
    """Quote the beginning of a text."""
    words = text.split()
    return '"' + " ".join(words[:most]).rstrip(".,;:") + ('..."' if len(words) > most else '"')
