"""A description cut into its sentences, and which of them a line gives away.

The rule: a line gives away a fact if it holds two of its telling words (or all, if it has only one) and 45 % of their
weight. A word of several facts is shared between them; the fact that explains most of a line takes its words with it,
so that a paraphrase gives away its own fact and no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .english import telling
from .manners import Manner, manners_of
from .retelling import speaker_of, told_by

_END = re.compile(
    r"(?<=[.!?…])(?<!\b[A-Z]\.)(?<!\b(?:Mr|St|Dr|vs)\.)(?<!\bMrs\.)(?<!e\.g\.)[\"”')]*\s+|\s*\n\s*|\s*;\s*\n?(?=[A-Z])"
)
_LEANS = re.compile(
    r"(?:(?:she|he|i) \w+ (?:them|it)\b|it|its|they|their|this (?!(?:winter|summer|spring|autumn|year|week|month|person))|"
    r"that|these|those|there|both|the (?:dog|cat|boy|girl|two|other)s?)\b",
    re.IGNORECASE,
)
_KNOWN_SHARE = 0.45


@dataclass(frozen=True)
class Fact:
    """One sentence of a description.

    Attributes:
        source: The sentence exactly as it stands there.
        told: The same in the first person, without its full stop; empty if that cannot be told with certainty.
        words: What it is about, as stems.
        joint: What stands between it and the sentence before it: a space or a line break.
        leans: Whether it only makes sense after the sentence before it.
    """

    source: str
    told: str
    words: frozenset[str]
    joint: str
    leans: bool


def _is_enough(words: frozenset[str], told: frozenset[str]) -> bool:
    """Whether a statement, perhaps cut short, still gives its fact away."""
    return len(words & told) >= max(_KNOWN_SHARE * len(words), min(2, len(words)))


@lru_cache(maxsize=512)
def facts_of(text: str) -> tuple[Fact, ...]:
    """Cut a description into its facts, in its order."""
    speaker = speaker_of(text)
    found: list[Fact] = []
    at, joint = 0, ""
    for end in (*_END.finditer(text), None):
        source = text[at : end.start() if end else len(text)].strip()
        if re.search(r"\w", source):
            words = telling(source)
            told = told_by(source, speaker)
            if not _is_enough(words, telling(told)):
                told = ""
            own = source.lower().startswith((f"{speaker.pronoun or '-'} ", "their ")) and speaker.pronoun == "they"
            leans = bool(found) and bool(_LEANS.match(source)) and not own
            found.append(Fact(source, told, words, joint, leans))
        if end:
            joint = "\n" if "\n" in end.group() else " "
            at = end.end()
    return tuple(found)


def traits_of(personality: str) -> list[tuple[Fact, tuple[Manner, ...]]]:
    """Cut a personality into its sentences, each with the manners that it names."""
    return [(fact, manners_of(fact.source)) for fact in facts_of(personality)]


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
    return {at for line in lines for at in _in_line(tuple(facts), line)}


@lru_cache(maxsize=4096)
def _in_line(facts: tuple[Fact, ...], line: str) -> tuple[int, ...]:
    weights = Weights(facts)
    left, found = set(telling(line)), []
    open_ = {at: fact for at, fact in enumerate(facts) if fact.words & left}
    while open_:
        at = max(open_, key=lambda each: (_share(open_[each].words, left, weights), -each))
        fact = open_.pop(at)
        hits = fact.words & left
        if len(hits) >= min(2, len(fact.words)) and _share(fact.words, left, weights) >= _KNOWN_SHARE:
            found.append(at)
            left -= hits
    return tuple(found)


def _share(words: frozenset[str], left: set[str], weights: Weights) -> float:
    whole = weights.of(words)
    return weights.of(words & left) / whole if whole else 0.0
