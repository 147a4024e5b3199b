"""A statement of somebody about their own life, in the forms in which a chat comes back to it."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from ..verbs import ing_form
from ..words import Words
from .english import DATA, ENGLISH, beginnings, listed, pattern, sentences, stem, telling
from .manners import GRAVE, shown_in
from .retelling import lowered, told_to

SUBJECTS = Words(DATA / "subjects.toml")
_LONGEST = 26


class Statement(NamedTuple):
    """Something that somebody told.

    The slots are what fills templates: `you`, the same said to its owner; `doing`, what its owner does; `who` or `pet`,
    somebody in its owner's life. Each is empty where it could be wrong, and has a form `my_...` for its owner.
    """

    text: str  # as its owner says it, without an end mark
    subject: str  # the name of what it is about
    words: frozenset[str]  # what it is about, as stems
    slots: dict[str, str]


@lru_cache(maxsize=8192)
def stated(text: str) -> Statement:
    """Find the forms of one statement in the first person."""
    text = re.sub(r"\s+", " ", text).strip().rstrip(".!;,")
    subject = subject_of(text)
    mine = {"fact": text, "inside": _inside(text)}
    if subject not in GRAVE:
        mine["doing"] = _doing(text)
        mine |= _somebody(text) if subject != "origin" else {}
    yours = {"you" if name == "fact" else name: told_to(each) for name, each in mine.items() if each}
    if len(text.split()) > 15:
        yours["you"] = told_to(re.split(r"(?<=\w{4})[,;:–—]| (?:because|but|although|which) ", text)[0])
    if not mine["inside"]:
        yours["you"] = ""
    return Statement(text, subject, telling(text), yours | {f"my_{name}": each for name, each in mine.items()})


@lru_cache(maxsize=8192)
def statement_in(line: str) -> Statement | None:
    """Give what a chat line tells about its writer: its sentence that tells most; nothing if it tells nothing."""
    best: tuple[float, str] = (0, "")
    for at, part in enumerate(sentences(line)):
        bare = pattern("lead").sub("", part)
        about_me = pattern("own").search(bare) and not pattern("vague").match(bare) and not pattern("your").search(bare)
        if about_me and not (part.endswith("?") and bare == part) and _inside(bare[:1].upper() + bare[1:]):
            # What comes first is the news; what follows is what its writer thinks of it.
            weight = len(telling(bare)) - 3 * bool(shown_in(part)) - 0.6 * at
            best = max(best, (weight, bare[:1].upper() + bare[1:]), key=lambda each: each[0])
    return stated(best[1].rstrip("? ")) if best[1] and len(best[1].split()) <= _LONGEST else None


def _inside(text: str) -> str:
    """Give a statement as it stands inside a sentence; empty if it may begin with a name."""
    small = lowered(text)
    return small if re.match(r"I\b|[^A-Z]", small) else ""


@lru_cache(maxsize=4096)
def subject_of(text: str) -> str:
    """Give the subject that a text is about: of which it has a pattern, or else the most words."""
    for name, entry in SUBJECTS.table.items():
        if "patterns" in entry and beginnings(tuple(entry["patterns"])).search(text):
            return name
    named = {name: len(telling(text) & words) for name, words in _subject_words().items()}
    best = max(named, key=lambda name: named[name])
    return best if named[best] else "anything"


@cache
def _subject_words() -> dict[str, frozenset[str]]:
    entries = SUBJECTS.table.items()
    return {name: frozenset(map(stem, entry["words"].split())) for name, entry in entries if "words" in entry}


def _doing(text: str) -> str:
    found = pattern("doing").match(text)
    if not found:
        return ""
    verb, rest = found.groups()
    rest = pattern("clause").split(rest)[0].strip()
    if verb not in ("like", "love", "enjoy") or not re.match(r"[a-z]{3,}ing\b", rest):
        rest = f"{ing_form(verb)} {rest}" if verb in listed("verbs") and verb not in listed("states") else ""
    return rest if 1 < len(rest.split()) <= 12 else ""


def _somebody(text: str) -> dict[str, str]:
    for each in ENGLISH.get("somebody"):
        found = re.search(each["pattern"], text)
        if found:
            return {each["slot"]: each["say"].format(found[1])}
    return {}
