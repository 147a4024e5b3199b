"""A statement of somebody about their own life, in the forms in which a chat comes back to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ..verbs import ing_form
from ..words import Words
from .english import DATA, beginnings, listed, plain, sentences, stem, telling
from .manners import shown_in
from .retelling import lowered, told_to

_SUBJECTS = Words(DATA / "subjects.toml")
_ANYTHING = "anything"
_DOING = re.compile(
    r"^(?:(?:On|Every|In|At|Most|Once|Twice|Each) (?:[\w'-]+ ){1,4}?)?"
    r"I (?:(?:also|often|usually|still|sometimes|always|mostly|regularly|really|just|proudly) )*([a-z]+) (.+)$"
)
_CLAUSE = re.compile(
    r"[,;:–—(]|\s-\s|\s(?:because|but|so|since|while|when|whenever|although|though|which|who|where|until|unless|if|"
    r"after|before|even|as (?:I|it|he|she|they|if|soon|well)|to (?:avoid|save|help|keep)|"
    r"and (?:I|my|we|the|now|then|often|usually|always|never|sometimes|[a-z]+ (?:a|an|the|my|to|in|on|at|for|with|it|"
    r"them|every|up|out)))\b"
)
_LEAD = re.compile(
    r"^(?:(?:by the way|something else|on another note|what else|that reminds me|and then there's this|anyway|well|oh|"
    r"you may not know this yet|you know|honestly|so|also|actually|ah|hm+|hey|hi|and|but|ok(?:ay)?|yes|no)"
    r"[,:;?.!]*\s+|(?:did I say|I don't think I've mentioned|I told you|it came up again today),?(?: that)?\s+)+",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"I(?:'d| would) (?:rather not|have to|say|think)\b|I (?:suppose|think so|can guess|guess)\b", re.I)
_OWN = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Ww]e|[Oo]ur)\b")
_LONGEST = 26


@dataclass(frozen=True)
class Statement:
    """Something that somebody told.

    Attributes:
        text: As its owner says it, without an end mark.
        inside: The same with a small letter first; empty where that could be wrong.
        you: The same said to its owner, likewise.
        doing: What its owner does, `playing the cello in a small orchestra`; empty where that makes no sense.
        who: Somebody in its owner's life, as told to the owner: `your sister`, or an animal's name; or empty.
        is_pet: Whether `who` is an animal.
        subject: The name of the subject that it is about.
        words: What it is about, as stems.
    """

    text: str
    inside: str
    you: str
    doing: str
    who: str
    is_pet: bool
    subject: str
    words: frozenset[str]

    @property
    def is_grave(self) -> bool:
        """Whether it is nothing to be merry about."""
        return self.subject in ("hardship", "dislike")

    def slots(self) -> Mapping[str, str]:
        """Give what fills templates said to its owner."""
        return {"you": self.you, "doing": self.doing, "who": self.who}

    def own_slots(self) -> Mapping[str, str]:
        """Give what fills templates said by its owner."""
        mine = {"your": "my", "yours": "mine", "yourself": "myself", "you": "me"}
        doing, who = (re.sub(r"\byou\w*\b", lambda at: mine.get(at[0], at[0]), text) for text in (self.doing, self.who))
        return {"fact": self.text, "inside": self.inside, "doing": doing, "who": who}


@lru_cache(maxsize=8192)
def stated(text: str) -> Statement:
    """Find the forms of one statement in the first person."""
    text = re.sub(r"\s+", " ", text).strip().rstrip(".!;,")
    subject = subject_of(text)
    who, is_pet = ("", False) if subject in ("hardship", "origin") else _who(text)
    doing = "" if subject in ("hardship", "dislike") else _doing(text)
    safe = text[:2] in ("I ", "I'") or lowered(text)[:1].islower() or re.match(r"\d", text)
    inside, you = (lowered(text), told_to(_shortened(text))) if safe else ("", "")
    return Statement(text, inside, you, doing, who, is_pet, subject, telling(text))


@lru_cache(maxsize=8192)
def statement_in(line: str) -> Statement | None:
    """Give what a chat line tells about its writer: its sentence that tells most; nothing if it tells nothing."""
    best: tuple[float, str] = (0, "")
    for at, part in enumerate(sentences(line)):
        bare = _LEAD.sub("", part.replace("’", "'")).strip()
        asks = part.endswith("?") and bare[:1] == part[:1]
        if asks or _VAGUE.match(bare) or not _OWN.search(bare) or re.search(r"\b[Yy]ou(?:r|'\w+)?\b", bare):
            continue
        # What comes first is the news; what follows is what its writer thinks of it.
        weight = len(telling(bare)) - 3 * bool(shown_in(part)) - 0.6 * at
        best = max(best, (weight, bare), key=lambda each: each[0])
    text = best[1].rstrip(".!? ")
    return stated(text[:1].upper() + text[1:]) if text and len(text.split()) <= _LONGEST else None


@lru_cache(maxsize=4096)
def subject_of(text: str) -> str:
    """Give the subject that a text is about: of which it has a pattern, or else the most words."""
    for name, entry in _SUBJECTS.table.items():
        if "patterns" in entry and beginnings(tuple(entry["patterns"])).search(text):
            return name
    words = telling(text)
    best = max(_subject_words(), key=lambda name: len(words & _subject_words()[name]))
    return best if words & _subject_words()[best] else _ANYTHING


def remarks(subject: str, kind: str) -> list[str]:
    """Give the templates of one kind (says, again, reacts, asks, plain) for a subject."""
    found: list[str] = _SUBJECTS.get(f"{subject}.{kind}", [])
    return found


def circle_of(subject: str) -> str:
    """Give the larger circle of life that a subject belongs to."""
    return str(_SUBJECTS.get(f"{subject}.circle", ""))


@cache
def _subject_words() -> dict[str, frozenset[str]]:
    table: Mapping[str, Any] = _SUBJECTS.table
    return {name: frozenset(map(stem, entry["words"].split())) for name, entry in table.items() if "words" in entry}


def _doing(text: str) -> str:
    found = _DOING.match(text)
    if not found:
        return ""
    verb, rest = found.groups()
    cut = _CLAUSE.search(rest)
    rest = (rest[: cut.start()] if cut else rest).strip()
    if verb in ("like", "love", "enjoy", "adore", "prefer") and re.match(r"[a-z]{3,}ing\b", rest):
        doing = rest
    elif verb in listed("states") or verb not in listed("verbs"):
        return ""
    else:
        doing = f"{ing_form(verb)} {rest}"
    return told_to(doing) if 1 < len(doing.split()) <= 12 else ""


def _who(text: str) -> tuple[str, bool]:
    kin, kinds, pets = ("|".join(sorted(listed(name), reverse=True)) for name in ("kin", "kin_kind", "pets"))
    called = _pattern(rf"\b(?:{pets})s?\b(?:,| (?:called|named)) ([A-Z][\w-]+)").search(text)
    if called:
        return called[1], True
    found = _pattern(rf"\b(?:my|My) ((?:(?:{kinds}) )*(?:{kin}))\b(?!['’-])").search(text)
    if found and "late " not in found[1]:
        return f"your {found[1]}", False
    pet = _pattern(rf"\b(?:[Mm]y|an?) (?:[a-z-]+ ){{0,2}}({pets})\b(?! (?:show|food|hair|park|shelter))").search(text)
    return (f"your {pet[1]}", True) if pet and "allergic" not in plain(text) else ("", False)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _shortened(text: str, most: int = 15) -> str:
    """Cut a long statement where a clause ends, so that it can be taken up in passing."""
    if len(text.split()) <= most:
        return text
    for found in re.finditer(r"[,;:–—]|\s(?:because|but|so|while|although|though|which|and (?=I\b|my\b))", text):
        head = text[: found.start()].strip()
        if len(head.split()) >= 5 and not re.match(r"(?:On|In|At|When|Since|After|Before|Every|If|While|As)\b", head):
            return head
    return text
