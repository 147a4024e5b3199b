"""A sentence about somebody as that person tells it, and as it is told to that person.

It is no grammar: the person becomes `I`, what the person owns becomes `my`, and a known verb behind it loses its `s`. A
sentence ends before a clause in which it is uncertain who is meant; where that leaves nothing, it cannot be told.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from ..verbs import third_person
from .english import ENGLISH, listed, pattern

_OWN = {"she": "her", "he": "his", "they": "their"}
_OBJECT = {"she": "her", "he": "him", "they": "them"}
_PLURAL = re.compile(r"\w{3,}s$")
_EITHER = re.compile(r"\b(he|his|him|himself)/(?:she|hers?|herself)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


Speaker = tuple[str, str]
"""How a description calls the person: she, he, they or i, or nothing; and its name, if it repeats that."""


@lru_cache(maxsize=512)
def speaker_of(text: str) -> Speaker:
    """Find out how a whole description calls the person."""
    text = _one_pronoun(text)
    starts = re.findall(r"(?:^|[.!?;]\s+|\n[\s•*-]*)([A-Z]\w*)", text.replace("This person", "They"))
    calls = {"She": "she", "Her": "she", "He": "he", "His": "he", "They": "they", "Their": "they", "I": "i", "My": "i"}
    repeated = [
        word for word in starts[:1] if starts.count(word) > 1 and not {word, word.lower()} & {*calls, "a", "the"}
    ]
    return next((calls[word] for word in starts if word in calls), ""), "".join(repeated)


@lru_cache(maxsize=4096)
def told_by(sentence: str, speaker: Speaker) -> str:
    """Give a sentence of a description in the first person, without its full stop; empty if that is uncertain."""
    text = re.sub(r"^[\s*•\-–\d.)]+(?=\D)", "", _one_pronoun(sentence).strip()).rstrip(".;! ")
    for short, full in (("s(?= been| got| had)", "has"), ("s", "is"), ("re", "are"), ("ve", "have"), ("ll", "will")):
        text = re.sub(rf"\b([Ss]he|[Hh]e|[Tt]hey)['’]{short}\b", rf"\1 {full}", text)
    called_by, name = speaker
    if called_by == "i" or re.search(r"\b(?:I|My|my)\b", text):
        return text
    pronoun = called_by or ("he" if re.search(r"\bhis\b", text) else "she" if "her " in text else "they")
    subject, own = pronoun.capitalize(), _OWN[pronoun].capitalize()
    for called in filter(None, ("This person", name)):
        text = re.sub(rf"^{called}\b", subject, re.sub(rf"^{called}['’]s\b", own, text))
    head = next((word for word in text.split() if word.lower() not in listed("adverbs")), "").lower().strip(",")
    if not called_by and (head in _thirds() or head in listed("past") or head in listed("adjectives")):
        text = f"{subject} {'is ' if head in listed('adjectives') else ''}{text[:1].lower()}{text[1:]}"
    told = _turned(text, pronoun)
    return told[:1].upper() + told[1:]


@lru_cache(maxsize=4096)
def told_to(text: str) -> str:
    """Give words of the first person in the second; a small letter first, unless a name may stand there."""
    text = re.sub(r"\bI((?: \w+ly)?) was\b", r"you\1 were", text)
    return lowered(_WORD.sub(lambda word: ENGLISH.get("to_you").get(word[0].lower().replace("’", "'"), word[0]), text))


def lowered(text: str) -> str:
    """Lower the first letter of a statement if its first word is no name."""
    first = re.split(r"[\s'’,]", text, maxsplit=1)[0].lower()
    return text[:1].lower() + text[1:] if first in listed("openers") or first == "your" else text


def _one_pronoun(text: str) -> str:
    """Read `he/she` as the first of the two."""
    return _EITHER.sub(r"\1", text)


def _turned(text: str, pronoun: str) -> str:
    """Turn one sentence word by word, up to the first that is uncertain."""
    words = [*_WORD.finditer(text)]
    small = [word.group().lower().replace("’", "'") for word in words]
    aside = small[:1] and small[0] in listed("adverbials")  # "On Sundays she ..."
    mine = verb_next = going_on = linked = False
    done, last = "", 0
    for at, (found, low) in enumerate(zip(words, small, strict=True)):
        gap = text[last : found.start()]
        after = small[at + 1] if small[at + 1 :] and text[found.end() : found.end() + 1] == " " else ""
        names = text[found.end() + 1 : found.end() + 2].isupper()  # "Friends call her Bibi"
        linked = linked or "," in gap
        word: str | None = found.group()
        if low == pronoun:
            word = "I" if mine or aside or not at else None
            mine = verb_next = True
        elif low in listed("adverbs"):
            pass
        elif verb_next:
            word, verb_next, going_on, linked = _first_person(low, found.group()), False, True, False
        elif low == _OWN[pronoun] and (low != "her" or (after and not names and after not in listed("not_owned"))):
            word = "my" if at else "My"
        elif low == _OBJECT[pronoun] + "self" or (low == "themselves" and pronoun == "they"):
            word = "myself"
        elif low in (_OBJECT[pronoun], "they", "them", "their"):
            several = any(_PLURAL.match(each) and each not in _thirds() for each in small[:at])
            if not (several and low in ("them", "their") and (mine or pronoun != "they")):
                told_of = low == _OBJECT[pronoun] and not (mine or names or (several and low == "them"))
                word = "me" if told_of else None
        elif low in listed("clauses"):
            going_on = False
        elif low in ("and", "but", "or"):
            linked = True
        elif linked:
            linked = False
            if going_on and (low in _thirds() or low in ("are", "were") or after in listed("determiners")):
                word = _second_verb(low, after, small[at - 2 : at])
        if word is None:
            done += gap
            return pattern("hanging").sub("", done) if pattern("hanging").search(done) else ""
        done += gap + word
        last = found.end()
    return done


def _second_verb(word: str, after: str, before: list[str]) -> str | None:
    """`and walks her dogs` goes on with the person, so does `is 30 and walks`; `crosswords and walks` may not."""
    sure = after in listed("determiners") or before[-1] in listed("adverbs") or before[0].isdigit()
    if sure or word not in listed("nounish_thirds"):
        return _first_person(word, word)
    return None


@cache
def _thirds() -> dict[str, str]:
    """Give the plain form of each known verb by its third person."""
    return {third_person(verb): verb for verb in listed("verbs")} | {"is": "am", "has": "have", "does": "do"}


def _first_person(low: str, word: str) -> str:
    """Give the form of a verb that goes with "I"."""
    return str(ENGLISH.get("agreeing").get(low) or _thirds().get(low) or re.sub(r"(?<=\w{3})(?<![su])s$", "", word))
