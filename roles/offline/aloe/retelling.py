"""A sentence about somebody as that person tells it, and as it is told to that person.

The rules turn what is certain: the person as subject with its verb, what the person owns, a second verb behind `and`. A
sentence is cut before a clause in which it is uncertain who is meant; where that leaves nothing, it is not turned at
all, and whoever needs it quotes it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache

from ..verbs import third_person
from .english import listed

_POSSESSORS = {"she": "her", "he": "his", "they": "their"}
_OBJECTS = {"she": "her", "he": "him", "they": "them"}
_AGREEING = {"is": "am", "are": "am", "were": "was", "isn't": "am not", "aren't": "am not", "weren't": "wasn't"}
_AGREEING |= {"has": "have", "does": "do", "doesn't": "don't", "hasn't": "haven't"}
_TO_YOU = {"i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself"}
_TO_YOU |= {"we": "you", "us": "you", "our": "your", "ours": "yours", "am": "are", "i'm": "you're", "i've": "you've"}
_TO_YOU |= {"i'd": "you'd", "i'll": "you'll", "we're": "you're", "we've": "you've", "ourselves": "yourselves"}
_LINKS = frozenset("and but or then nor".split())
_CLAUSES = frozenset("who which that whose because when if while although though where since as until after".split())
_DETERMINERS = frozenset("a an the her his their my some no every it them him each two three four both all".split())
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_ADVERBIAL = re.compile(
    r"(?:on|in|at|every|each|most|once|twice|for|during|since|when|whenever|before|after|last|this|by|from|until)\b",
    re.I,
)
_CUT_BACK = re.compile(
    r"(?:\s*[,;:–—(]+\s*|\s+)(?:(?:and|but|or|because|when|if|while|as|since|so|that|until|where|than|whom)\s*)?$", re.I
)


@dataclass(frozen=True)
class Speaker:
    """How a description calls the person: `she`, `he`, `they`, `i` or nothing at all; and its name, if it says that."""

    pronoun: str = ""
    name: str = ""


@lru_cache(maxsize=512)
def speaker_of(text: str) -> Speaker:
    """Find out how a whole description calls the person."""
    starts = re.findall(r"(?:^|[.!?;]\s+|\n[\s•*-]*)([A-Z][\w’']*)", text)
    counts = Counter({"she": 0, "he": 0, "they": 0, "i": 0})
    own = {"she": "she", "her": "she", "he": "he", "his": "he", "i": "i", "my": "i", "they": "they", "their": "they"}
    for word in starts:
        counts[own.get(re.split("['’]", word.lower())[0], "")] += 3
    for word in re.findall(r"[\w]+", text.lower()):
        if word in own and own[word] != "they":
            counts[own[word]] += 1
    counts["they"] += 3 * len(re.findall(r"\bThis person\b", text))
    del counts[""]
    best = max(counts, key=lambda word: counts[word])
    repeated = [word for word in starts if text.count(word) > 1 and word.lower() not in own]
    named = next((word for word in starts[:1] if word in {re.split("['’]", each)[0] for each in repeated}), "")
    return Speaker(best if counts[best] else "", "" if named in ("This", "The", "A", "An", "Two") else named)


@lru_cache(maxsize=4096)
def told_by(sentence: str, speaker: Speaker) -> str:
    """Give a sentence of a description in the first person, without its full stop; empty if that is uncertain."""
    text = re.sub(r"^[\s*•\-–\d.)]+(?=\D)", "", sentence.strip()).rstrip(".;! ")
    if not text or speaker.pronoun == "i" or re.search(r"\b(?:I|My|my)\b", text):
        return text
    pronoun = speaker.pronoun or "they"
    subject, possessor = pronoun.capitalize(), _POSSESSORS[pronoun].capitalize()
    for called in filter(None, ("This person", speaker.name)):
        text = re.sub(rf"^{called}['’]s\b", possessor, text)
        text = re.sub(rf"^{called}\b", subject, text)
    told = _together(text) or _Walk(_with_subject(text, subject), pronoun).told()
    return told[:1].upper() + told[1:]


@lru_cache(maxsize=4096)
def told_to(text: str) -> str:
    """Give words of the first person in the second; a small letter first, unless a name may stand there."""

    def other(found: re.Match[str]) -> str:
        word = found.group()
        return _TO_YOU.get(word.lower().replace("’", "'"), word)

    text = re.sub(r"\bI((?: \w+ly| \w{4,6})?) was\b", r"you\1 were", text)
    return lowered(_WORD.sub(other, text))


def lowered(text: str) -> str:
    """Lower the first letter of a statement if its first word is no name."""
    first = re.split(r"[\s'’,]", text, maxsplit=1)[0].lower()
    return text[:1].lower() + text[1:] if first in listed("openers") or first == "your" else text


def _together(text: str) -> str:
    """Turn `She and her husband run an inn` into `My husband and I run an inn`."""
    kin = "|".join(listed("kin"))
    found = re.match(rf"(?:She|He|They) and (?:her|his|their) ((?:\w+ )?(?:{kin})) ", text)
    if not found:
        return ""
    ours = {"they": "we", "their": "our", "them": "us", "her": "my", "his": "my", "are": "are"}
    rest = _WORD.sub(lambda word: ours.get(word.group().lower(), word.group()), text[found.end() :])
    return f"My {found.group(1)} and I {rest}"


def _with_subject(text: str, subject: str) -> str:
    """Give a bare phrase the subject that it lacks: `Likes tea` becomes `She likes tea`."""
    words = [word.lower() for word in _WORD.findall(text)]
    at = 0
    while at < len(words) - 1 and (words[at] in listed("adverbs") or re.fullmatch(r"\w{3,}ly", words[at])):
        at += 1
    head, after = words[at] if words else "", words[at + 1] if at + 1 < len(words) else ""
    small = text[:1].lower() + text[1:]
    finite = after in _AGREEING or after in ("was", "have") or (head in listed("nounish") and after in listed("verbs"))
    if (head in _thirds() or head in listed("past") or (at and head in listed("verbs"))) and not finite:
        return f"{subject} {small}"
    if words and words[0] in listed("adjectives") and not any(word in _thirds() for word in words[1:4]):
        return f"{subject} is {small}"
    return text


class _Walk:
    """One pass over a sentence in the third person."""

    def __init__(self, text: str, pronoun: str) -> None:
        self._text, self._pronoun = text, pronoun
        self._words = [*_WORD.finditer(text)]
        self._mine = self._verb_next = self._chained = self._linked = False
        self._certain = True

    def told(self) -> str:
        """Give the sentence in the first person, as far as that is certain."""
        done = ""
        last = 0
        for at, found in enumerate(self._words):
            gap = self._text[last : found.start()]
            word = self._word(at, found.group(), gap)
            if word is None:
                done = _CUT_BACK.sub("", done + gap) if _CUT_BACK.search(done + gap) else ""
                return done if self._certain and len(done.split()) > 2 else ""
            done += gap + word
            last = found.end()
        return done + self._text[last:]

    def _word(self, at: int, word: str, gap: str) -> str | None:
        """Give what becomes of a word; None where the sentence must be cut."""
        low = word.lower().replace("’", "'")
        head, _, ending = low.partition("'")
        if "," in gap or ";" in gap:
            self._linked = True
        if head in ("she", "he", "they"):
            return self._subject(head, ending, at, gap)
        if self._verb_next:
            if low in listed("adverbs") or re.fullmatch(r"\w{3,}ly", low):
                return word
            self._verb_next, self._chained = False, True
            return _first_person(word)
        if low in _CLAUSES:
            self._chained = self._mine = False
        if low in ("them", "their") and self._pronoun != "they" and (at == 0 or not self._plural_before(at)):
            self._certain = False
            return None
        if low in (_POSSESSORS[self._pronoun], _OBJECTS[self._pronoun], _OBJECTS[self._pronoun] + "self", "themselves"):
            return self._owned(at, low, word)
        if low in _LINKS:
            self._linked = self._linked or self._chained
            return word
        if self._linked and self._chained and (low in listed("adverbs") or re.fullmatch(r"\w{3,}ly", low)):
            return word
        linked, self._linked = self._linked, False
        if linked and self._chained:
            if self._pronoun == "they" and low in ("are", "were"):
                return _AGREEING[low]
            if low in _thirds() or (low.endswith("s") and self._after(at) in _DETERMINERS):
                return self._second_verb(at, low, word)
        return word

    def _subject(self, head: str, ending: str, at: int, gap: str) -> str | None:
        sure = self._mine or at == 0 or _ADVERBIAL.match(self._text)
        if head != self._pronoun or not (sure or self._chained):
            self._certain = bool(re.search(r"[,;:]", gap)) or self._words[at - 1].group().lower() in _LINKS | _CLAUSES
            return None
        self._mine, self._verb_next, self._linked = True, not ending, False
        been = self._after(at) in ("been", "got", "had", "always", "never")
        return {"": "I", "s": "I've" if been else "I'm", "re": "I'm"}.get(ending, f"I'{ending}")

    def _owned(self, at: int, low: str, word: str) -> str | None:
        """`her` is what the person owns, or the person as an object; behind its own verb it is somebody else."""
        after = self._after(at)
        if low.endswith(("self", "selves")):
            return "myself"
        if low == _POSSESSORS[self._pronoun] and (
            low != _OBJECTS[self._pronoun] or (after and after not in listed("not_owned"))
        ):
            return "My" if word[0].isupper() else "my"
        if not self._mine and not self._chained:
            return "me" if self._pronoun != "they" or not self._plural_before(at) else word
        if self._pronoun == "they":
            return word
        self._certain = False
        return None

    def _second_verb(self, at: int, low: str, word: str) -> str | None:
        """`and walks her dogs` goes on with the person; `crosswords and walks` may not."""
        clear = low not in listed("nounish") or self._after(at) in _DETERMINERS
        clear = clear or self._words[at - 1].group().lower() in listed("adverbs")
        return _first_person(word) if clear else None

    def _plural_before(self, at: int) -> bool:
        return any(found.group().lower().endswith("s") for found in self._words[:at])

    def _after(self, at: int) -> str:
        """Give the next word, unless a mark stands between."""
        if at + 1 >= len(self._words):
            return ""
        here, there = self._words[at], self._words[at + 1]
        return "" if self._text[here.end() : there.start()].strip() else there.group().lower()


@cache
def _thirds() -> dict[str, str]:
    """Give the plain form of each known verb by its third person."""
    return {third_person(verb): verb for verb in listed("verbs")} | {"is": "am", "has": "have", "does": "do"}


def _first_person(word: str) -> str:
    low = word.lower().replace("’", "'")
    known = _AGREEING.get(low) or _thirds().get(low)
    if known:
        return known
    if not low.endswith("s") or low.endswith(("ss", "us", "was")):
        return word
    return low[:-3] + "y" if low.endswith("ies") else re.sub(r"(?<=sh|ch|ss|zz)es$|(?<=x)es$|s$", "", word)
