"""A description cut into its sentences, which of them a line gives away, and the induction.

The rule: a line gives away a fact if it holds two of its telling words (or all, if it has only one) and 45 % of their
weight. A word of several facts is shared between them; the fact that explains most of a line takes its words with it,
so that a paraphrase gives away its own fact and no other. A trait is also known once a manner that it names shows. Only
the person's own lines are evidence, and what is known is given in the description's own words, but for the pronoun: see
`pronouns.py`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ..draws import Draws
from ..request import MarkedRequest
from ..understudy import understudy
from .english import pattern, telling
from .manners import manners_of, shown_in
from .pronouns import called, pronoun_known
from .retelling import speaker_of, told_by

_ENOUGH = 0.45
_PARTS = 720720  # divisible by 1 to 16: whole numbers add up to the same in any order


class Fact(NamedTuple):
    """One sentence of a description."""

    source: str  # exactly as it stands there
    told: str  # the same in the first person, without its full stop; empty if that cannot be told with certainty
    words: frozenset[str]  # what it is about, as stems
    leans: bool  # whether it only makes sense after the sentence before it


Facts = tuple[Fact, ...]


@understudy("aloe", "induction")
def induce(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with one JSON object: the known sentences of `profile` and `personality`, or null."""
    lines = request.said_by("user")
    facts, traits = facts_of(request.part("profile")), facts_of(request.part("personality"))
    shown = {name for line in lines for name in shown_in(line)}
    showing = {at for at, trait in enumerate(traits) if shown & {*manners_of(trait.source)}}
    profile, personality = given_away(facts, lines), given_away(traits, lines) | showing
    pronoun = pronoun_known(request.part("profile"), lines)
    found: dict[str, str | None] = {}
    for tag, each, known in (("profile", facts, profile), ("personality", traits, personality)):
        whole = request.part(tag)
        joint = "\n" if "\n" in whole else " "
        found[tag] = joint.join(called(each[at].source, whole, pronoun) for at in sorted(known)) or None
    return json.dumps(found, ensure_ascii=False)


@lru_cache(maxsize=512)
def facts_of(text: str) -> Facts:
    """Cut a description into its facts, in its order."""
    found: list[Fact] = []
    for source in pattern("end").split(text.strip()):
        told, words = told_by(source, speaker_of(text)), telling(source)
        if len(words & telling(told)) < max(_ENOUGH * len(words), min(2, len(words))):
            told = ""  # cut so short that it would not give the fact away
        found.append(Fact(source, told, words, bool(found and pattern("leans").match(source))))
    return tuple(fact for fact in found if re.search(r"\w", fact.source))


def traits_of(personality: str) -> list[str]:
    """Give the manners that a personality names."""
    return list(dict.fromkeys(name for fact in facts_of(personality) for name in manners_of(fact.source)))


def weight(words: Iterable[str], facts: Facts) -> float:
    """Tell how much some words say within one description: a word of several facts is shared between them."""
    return sum(_PARTS // (_counts(facts)[word] or 1) for word in words) / _PARTS


def given_away(facts: Facts, lines: Iterable[str]) -> set[int]:
    """Tell the places of the facts that any single line gives away; more lines never make it fewer."""
    return {at for line in lines for at in _in_line(facts, line)}


@lru_cache(maxsize=64)
def _counts(facts: Facts) -> Counter[str]:
    return Counter(word for fact in facts for word in fact.words)


@lru_cache(maxsize=4096)
def _in_line(facts: Facts, line: str) -> tuple[int, ...]:
    left, found = set(telling(line)), []
    whole = {at: weight(fact.words, facts) for at, fact in enumerate(facts) if fact.words & left}
    while whole:
        shares = {at: weight(facts[at].words & left, facts) / whole[at] for at in whole}
        at = max(shares, key=lambda each: (shares[each], -each))
        if len(facts[at].words & left) >= min(2, len(facts[at].words)) and shares[at] >= _ENOUGH:
            found.append(at)
            left -= facts[at].words
        del whole[at]
    return tuple(found)
