"""Vocabularies of languages and phrases (one data file per language), and the texts of the prompts themselves."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dialoom.prompts import Prompt

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NEVER = re.compile(r"(?!)")

UNDETERMINED = "und"
"""The ISO 639 code of a language that is neither declared nor detected."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A language's word lists for the rules. Patterns match text as normalised by `spelt`.

    Attributes:
        code: The ISO 639 code.
        sizes: The number of entries of each of the following.
        is_spaced: Whether spaces separate its words.
        scripts: Its scripts, as in the Unicode names of their letters.
        stop: Its most common words, which carry no content.
        unfinished: Words that never end a sentence.
        trailing: Words that rarely end a long sentence.
        fillers: Words of greetings and of waiting, without content.
        persons: Words for oneself and for the other.
        oneself: Words for oneself as the subject of an action.
        offers: Phrases that offer help, which users do not say.
        requests: Phrases that ask for service, which assistants do not say.
        likes: Phrases that state a preference.
        closings: Phrases that express satisfaction and say goodbye.
        dealt: Phrases that say that something is done, or cannot be done.
        asks: Words that begin an open question.
        reminders: Phrases that say that something is repeated.
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
    """Return the words of a text, in lower case, with normalised apostrophes."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def spelt(text: str) -> str:
    """Return a text as a vocabulary's patterns expect it: lower case, normalised apostrophes and spaces."""
    return " ".join(text.lower().replace("’", "'").split())


@cache
def vocabularies() -> Mapping[str, Vocabulary]:
    """Return all vocabularies by language code."""
    found = {}
    for file in (resources.files(__package__) / "data").iterdir():
        if file.name.endswith(".toml"):
            code = file.name.removesuffix(".toml")
            found[code] = _vocabulary(code, tomllib.loads(file.read_text(encoding="utf-8")))
    return dict(sorted(found.items()))


def vocabulary(languages: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of the first language that has one, or that of English."""
    known = vocabularies()
    return next((known[code] for code in languages if code in known), known["en"])


def commonest_words(words: Sequence[str]) -> Counter[str]:
    """Return by language code how many words are among its most common; words of one letter do not count."""
    languages = _languages_of_words()
    return Counter(code for word in words for code in languages.get(word, ()))


def language_of(text: str) -> str | None:
    """Return the code of the language with the most common words in a text; `None` with fewer than three.

    Languages written without spaces between words are detected by their script.
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
    """Return the script of a letter, the first word of its Unicode name: `LATIN`, `CYRILLIC`, `CJK`, ..."""
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


RUN = 8
"""The number of consecutive words of a prompt that is no coincidence."""

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w-]*)")
_FORM = re.compile(r"\{\s*\"\w+\"\s*:.*?\}", re.DOTALL)
_VALUE = re.compile(r":\s*\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class PromptWords:
    """Texts of some prompts, indexed for look-up.

    Attributes:
        runs: The hashes of every `RUN` consecutive words of an instruction.
        tags: The names of their tags.
        forms: Placeholders of the reply forms, which stand where the answer belongs.
    """

    runs: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()

    @classmethod
    def of(cls, prompts: Iterable[Prompt]) -> PromptWords:
        """Return the words of prompts, without their inputs."""
        runs: set[int] = set()
        tags: set[str] = set()
        forms: set[str] = set()
        for prompt in prompts:
            for section in prompt.sections:
                tags.update(name.lower() for name in _TAG.findall(section.text))
                forms.update(normal(value) for form in _FORM.findall(section.text) for value in _VALUE.findall(form))
                for part in _TEMPLATE.sub("\0", section.text).split("\0"):
                    runs.update(runs_of(tuple(words_of(part))))
        return cls(frozenset(runs), frozenset(tags), frozenset(form for form in forms if " " in form))


NO_PROMPTS = PromptWords()


def runs_of(words: tuple[str, ...], length: int = RUN) -> list[int]:
    """Return the hashes of every `length` consecutive words, by their first word's index."""
    return [hash(words[place : place + length]) for place in range(len(words) - length + 1)]


def normal(text: str) -> str:
    """Return a text's words as one normalised text for comparison."""
    return " ".join(words_of(text))
