"""The words by which rules know a language, and what is said in it: data, in a file for each language."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEVER = re.compile(r"(?!)")

UNDETERMINED = "und"
"""The ISO 639 code of a language that nobody says and that cannot be told."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What rules know of a language. Patterns are for words as `spelt` writes them.

    Attributes:
        code: As ISO 639 has it.
        sizes: How many entries each of the following has.
        is_spaced: Whether blanks stand between its words.
        scripts: The scripts it is written in, as Unicode names their letters.
        stop: Its commonest words, which say nothing by themselves.
        unfinished: Words with which no sentence ends.
        trailing: Words with which hardly a long one does.
        fillers: Words of greetings and of waiting, which move nothing forward.
        persons: Words for oneself and for the other.
        oneself: Words for oneself as the one who does something.
        offers: Ways of offering help, which a user does not.
        requests: Ways of asking to be served, which an assistant does not.
        likes: Ways of stating a preference.
        closings: Ways of saying that one is content and goes.
        dealt: Ways of saying that something is done, or cannot be.
        asks: Words with which a question begins that wants more than a yes.
        reminders: Ways of saying that one says something again.
    """

    code: str
    sizes: Mapping[str, int]
    is_spaced: bool = True
    scripts: frozenset[str] = frozenset({"LATIN"})
    stop: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    trailing: frozenset[str] = frozenset()
    fillers: frozenset[str] = frozenset()
    persons: frozenset[str] = frozenset()
    oneself: frozenset[str] = frozenset()
    offers: re.Pattern[str] = _NEVER
    requests: re.Pattern[str] = _NEVER
    likes: re.Pattern[str] = _NEVER
    closings: re.Pattern[str] = _NEVER
    dealt: re.Pattern[str] = _NEVER
    asks: re.Pattern[str] = _NEVER
    reminders: re.Pattern[str] = _NEVER


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case, with one kind of apostrophe."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def spelt(text: str) -> str:
    """A text as the patterns of a vocabulary expect it: in lower case, with one kind of apostrophe and of blank."""
    return " ".join(text.lower().replace("’", "'").split())


@cache
def vocabularies() -> Mapping[str, Vocabulary]:
    """All that there are, by the language's code."""
    found = {}
    for file in (resources.files(__package__) / "data").iterdir():
        if file.name.endswith(".toml"):
            code = file.name.removesuffix(".toml")
            found[code] = _vocabulary(code, tomllib.loads(file.read_text(encoding="utf-8")))
    return dict(sorted(found.items()))


def vocabulary(languages: Sequence[str]) -> Vocabulary:
    """The words of the first of some languages that there are words of; else of English."""
    known = vocabularies()
    return next((known[code] for code in languages if code in known), known["en"])


def commonest_words(words: Sequence[str]) -> Counter[str]:
    """How many of some words are among the commonest of each language, by its code; words of one letter are not."""
    languages = _languages_of_words()
    return Counter(code for word in words for code in languages.get(word, ()))


def language_of(text: str) -> str | None:
    """Return the code of the language whose commonest words a text has most of; `None` of one with fewer than three.

    Languages that are written without blanks between words are told by their letters.
    """
    for code, count in commonest_words(words_of(text)).most_common(1):
        if count >= 3:
            return code
    if text.isascii():
        return None
    scripts = Counter(script_of(letter) for letter in text if letter.isalpha() and not letter.isascii())
    script = scripts.most_common(1)[0][0] if scripts else "LATIN"
    return next((code for code, each in vocabularies().items() if script in each.scripts and script != "LATIN"), None)


@cache
def _languages_of_words() -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for code, each in vocabularies().items():
        for word in each.stop:
            if len(word) > 1:
                found.setdefault(word, []).append(code)
    return found


@cache
def script_of(letter: str) -> str:
    """The script of a letter, as the first word of its Unicode name: `LATIN`, `CYRILLIC`, `CJK`, ..."""
    return unicodedata.name(letter, "UNKNOWN").split(maxsplit=1)[0].split("-")[0]


def _vocabulary(code: str, data: Mapping[str, str | list[str] | bool]) -> Vocabulary:
    made: dict[str, object] = {}
    sizes = {"scripts": 1, "is_spaced": 1}
    for key, value in data.items():
        if isinstance(value, bool):
            made[key], sizes[key] = value, int(value)
            continue
        sizes[key] = len(value.split() if isinstance(value, str) else value)
        if isinstance(value, str):
            made[key] = frozenset(value.split())
        else:
            made[key] = re.compile(r"(?<!\w)(?:" + "|".join(value) + r")(?!\w)")
    return Vocabulary(code, sizes, **made)  # type: ignore[arg-type]
