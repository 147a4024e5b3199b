"""A description cut into its sentences, and which of them a line gives away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..lazy import Lazy
from .person import Speaker, as_told_by
from .words import telling

_END = Lazy(
    r"(?<=[.!?…])(?<!\b[A-Z]\.)(?<!\b(?:Mr|St|Dr|vs)\.)(?<!\bMrs\.)(?<!e\.g\.)[\"”')]*\s+|\s*\n\s*|\s*;\s*\n?(?=[A-Z])"
)
_LEANS = Lazy(
    r"(?:(?:she|he|i) \w+ (?:them|it)\b|it|its|they|their|this (?!(?:winter|summer|spring|autumn|year|week|"
    r"month|person))|that|these|those|"
    r"there|both|the (?:dog|cat|boy|girl|two|other)s?)\b",
    re.IGNORECASE,
)
_KNOWN_SHARE = 0.45


@dataclass(frozen=True)
class Fact:
    """One sentence of a description.

    Attributes:
        source: The sentence exactly as it stands there.
        told: The same in the first person, without its full stop.
        words: What it is about, as stems.
        joint: What stands between it and the sentence before it: a space or a line break.
        leans: Whether it only makes sense after the sentence before it.
    """

    source: str
    told: str
    words: frozenset[str]
    joint: str
    leans: bool


@lru_cache(maxsize=512)
def facts_of(text: str, speaker: Speaker) -> tuple[Fact, ...]:
    """Cut a description into its facts, in its order."""
    found: list[Fact] = []
    at = 0
    joint = ""
    ends = [*_END.finditer(text), None]
    for end in ends:
        source = text[at : end.start() if end else len(text)].strip()
        if re.search(r"\w", source):
            told = as_told_by(source, speaker).strip().rstrip(".;").rstrip()
            # A pronoun of the person itself leans on nothing.
            leans = (
                bool(found)
                and bool(_LEANS.match(source))
                and not re.match(rf"{speaker.pronoun or '-'} (?!\w+ (?:them|it)\b)", source.lower())
            )
            leans = leans and not (speaker.pronoun == "they" and source.lower().startswith("their"))
            found.append(Fact(source, told, telling(told), joint, leans))
        if end:
            joint = "\n" if "\n" in end.group() else " "
            at = end.end()
    return tuple(found)


def joined_as_written(facts: Iterable[Fact]) -> str:
    """Put facts of one description together again, as they stood there."""
    done = ""
    for fact in facts:
        done += (fact.joint or " " if done else "") + fact.source
    return done


class Weights:
    """How much each word says within one description: a word of several facts is shared between them."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._counts = Counter(word for fact in facts for word in fact.words)

    def of(self, words: Iterable[str]) -> float:
        """Give the weight of some words together."""
        return sum(1 / (self._counts[word] or 1) for word in words)


def given_away(facts: Sequence[Fact], lines: Iterable[str]) -> set[int]:
    """Tell the places of the facts that any single line gives away; more lines never make it fewer."""
    weights = Weights(facts)
    return {at for line in lines for at in _in_line(facts, weights, telling(line))}


def _in_line(facts: Sequence[Fact], weights: Weights, words: frozenset[str]) -> list[int]:
    """The fact that explains most of a line takes its words with it; another must be known by words of its own."""
    left, found = set(words), []
    open_ = {at: fact for at, fact in enumerate(facts) if fact.words & words}
    while open_:
        at = max(open_, key=lambda each: (_share(open_[each].words, left, weights), -each))
        fact = open_.pop(at)
        hits = fact.words & left
        enough = min(2, len(fact.words))
        if len(hits) >= enough and _share(fact.words, left, weights) >= _KNOWN_SHARE:
            found.append(at)
            left -= hits
    return found


def _share(words: frozenset[str], left: set[str], weights: Weights) -> float:
    whole = weights.of(words)
    return weights.of(words & left) / whole if whole else 0.0
