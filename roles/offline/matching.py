"""Tell whether a text mentions a value, whatever its number, spelling or neighbours."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_WORD = re.compile(r"\d[\d:.,+½]*\w*|[^\W\d_]+(?:['’ʻ&][^\W\d_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:St|Mr|Dr|vs)\.)[\"”]?\s+")
_STOP = frozenset(
    "a an the of and or in on at to for with by from per my your his her their our only one preference preferred type "
    "style sound tone music genre place time times".split()
)


def sentences(text: str) -> list[str]:
    """Split prose into sentences; initials and usual abbreviations do not end one."""
    return [part.strip() for part in _SENTENCE.split(text.strip()) if part.strip()]


def _stem(word: str) -> str:
    for ending, least in (("ies", 5), ("s", 4), ("ing", 6), ("ed", 6), ("ly", 6)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


@lru_cache(maxsize=16384)
def words_of(text: str) -> tuple[str, ...]:
    """Give the stems of a text's words, in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = re.sub(r"\b0?(\d{1,2}:\d\d)\s*([ap])\.?m\b\.?", r"\1\2m", plain)
    return tuple(_stem(word.rstrip(".,:")) for word in _WORD.findall(plain))


@lru_cache(maxsize=16384)
def content_words(text: str) -> frozenset[str]:
    """Give the stems that carry meaning: no articles, prepositions, or words that every value has."""
    return frozenset(word for word in words_of(text) if word not in _STOP)


@lru_cache(maxsize=16384)
def _words_by_sentence(text: str) -> tuple[frozenset[str], ...]:
    return tuple(content_words(part) for part in sentences(text))


def mentions(text: str, value: str) -> bool:
    """Tell whether `text` names `value`: all the words of it that carry meaning, in one sentence."""
    telling = content_words(value)
    if not telling:
        return bool(words_of(value)) and set(words_of(value)) <= set(words_of(text))
    return any(telling <= words for words in _words_by_sentence(text))


def mentions_any(text: str, values: Iterable[str]) -> bool:
    """Tell whether `text` names at least one of `values`."""
    return any(mentions(text, value) for value in values)
