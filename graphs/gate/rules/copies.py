"""Rules for copies of earlier lines, for conversations that loop, and for speakers who play the other's part."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import TypeVar

from dialoom.graphs.gate.talk import LONGEST, STRETCH, Said, Talk
from dialoom.graphs.gate.vocabulary import spelt, words_of
from dialoom.graphs.outcome import DialogueFault

_FEWEST_WORDS, _FEWEST_LONG = 6, 5
"""Shorter lines are alike in sound conversations, too: thanks, yes please, all done. So are spelled-out names."""

_LIKE_WORDS, _LIKE_PAIRS = 0.8, 0.65
"""The shares of common words and of common word pairs (Dice's coefficient) from which two lines are copies."""

_AGAIN_SHARE = 0.5
"""A line is also a copy if this share of it repeats long stretches of one earlier line."""

_SPOKEN_AS = 2
"""The number of shared first-person words that shows that the second speaker did not rephrase the first one's line."""

_LOOKED_BACK = 12
"""The number of earlier lines searched for a near-copy; exact copies are searched in all."""

_LOOP = 6
"""Consecutive messages, i.e. three turns, without anything new."""

_NEW_SHARE = 0.1
_T = TypeVar("_T", bound=Hashable)


def copied_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield near-copies of a line of one's own (`repetition`) or of the other's (`echo`); a line may be both.

    For texts that are not spoken, only exact copies are faults: their recipe decides how similar they may be.
    """
    seen: dict[tuple[bool, tuple[str, ...]], Said] = {}
    for place, line in enumerate(talk.lines):
        if len(line.words) < _FEWEST_WORDS or sum(len(word) > 1 for word in line.words) < _FEWEST_LONG:
            continue
        is_users = line.role == talk.facts.user
        if place >= talk.since:
            nearby = talk.lines[max(0, place - _LOOKED_BACK) : place]
            for kind, whose in (("echo", not is_users), ("repetition", is_users)):
                if (whose, line.words) in seen:
                    yield line.fault(kind, line.shown())
                elif talk.is_spoken and any(
                    (each.role == talk.facts.user) == whose and _are_alike(line, each, talk)
                    for each in reversed(nearby)
                ):
                    yield line.fault(kind, line.shown(), 0.9)
        seen.setdefault((is_users, line.words), line)


def loops(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a loop fault for each speaker of three turns without a new word."""
    stop = talk.vocabulary.stop
    known: set[str] = set()
    stale: list[Said] = []
    told: set[str] = set()
    for place, line in enumerate(talk.lines):
        content = set(line.words) - stop
        new = content - known
        known |= content
        if line.words and len(new) > _NEW_SHARE * len(content):
            stale = []
            continue
        stale.append(line)
        if len(stale) < _LOOP or place < talk.since:
            continue
        for each in talk.lines[max(talk.since, place - 1) : place + 1]:
            if each.role not in told:
                told.add(each.role)
                yield each.fault("loop", each.shown(), 0.9)


def _are_alike(line: Said, before: Said, talk: Talk) -> bool:
    if len(before.words) < _FEWEST_WORDS:
        return False
    again = _said_again(line, before)
    if not (_is_near(line, before) or again >= _AGAIN_SHARE * len(line.words)):
        return False
    mine, yours = line.counted.keys() - before.counted.keys(), before.counted.keys() - line.counted.keys()
    words = talk.vocabulary
    if line.role == before.role:  # a repeated request with another object, or an insistent one, is no copy
        if words.reminders.search(spelt(line.own)):
            return False
        exchanged = mine - words.stop and yours - words.stop
        content = (Counter(_asked(each) - words.stop) for each in (line, before))
        return not exchanged or _dice(*content) > _LIKE_WORDS or again >= 2 * STRETCH
    # A speaker who confirms a wish turns `my` into `your`, and does not say `I` where the other did.
    is_turned = mine & words.persons and yours & words.persons
    return not is_turned or sum(line.counted[word] for word in words.oneself & before.counted.keys()) >= _SPOKEN_AS


def _asked(line: Said) -> set[str]:
    """Return the words of a line's question, without the options that may follow; all its words if it asks nothing."""
    question, mark, _ = line.text[:LONGEST].partition("?")
    return set(words_of(question)) if mark else set(line.words)


def _is_near(line: Said, before: Said) -> bool:
    """Return whether two lines as a whole are nearly the same."""
    shorter, longer = sorted((len(line.words), len(before.words)))
    if longer > 1.4 * shorter:
        return False
    return _dice(line.counted, before.counted) >= _LIKE_WORDS and _dice(line.pairs, before.pairs) >= _LIKE_PAIRS


def _said_again(line: Said, before: Said) -> int:
    """Return how many words of a line repeat long stretches of an earlier one."""
    there = set(before.stretches)
    again = (place for place, stretch in enumerate(line.stretches) if stretch in there)
    return len({place + step for place in again for step in range(STRETCH)})


def _dice(one: Counter[_T], other: Counter[_T]) -> float:
    return 2 * (one & other).total() / (one.total() + other.total())


_NAMED = re.compile(
    r"(?:^|\n)[ \t>*_]{0,4}([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?)[*_]{0,3}:[*_]{0,3}[ \t]+([^\n]*)"
)
_LABEL = r"(?:user|human|customer|assistant|ai(?: assistant)?|bot|chatbot|system)"
_SPOKEN_BY = re.compile(
    rf"(?:^|\n|(?<=[.!?…\"”)])\s)[ \t>*_\-\[(]{{0,4}}({_LABEL})[\])*_]{{0,3}}\s?:[*_]{{0,3}}\s*([^\n]*)", re.IGNORECASE
)
_FEWEST_OF_LINE = 2


def glued_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that continue with another speaker's words, or carry their speaker's label."""
    both = _names_with_both(talk)
    for line in talk.checked_lines():
        for label in _SPOKEN_BY.finditer(line.prose):
            if len(label[2].split()) >= _FEWEST_OF_LINE:
                yield line.fault("glued_lines", " ".join(label[0].split()))
                break
        else:
            if (words := next((words for name, words in _named(line, talk) if name in both), None)) is not None:
                yield line.fault("glued_lines", words, 0.7)


def swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of a user who offers help or claims to be a model, or of an assistant who asks for help as users do.

    Quoted text does not count.
    """
    for line in talk.checked_lines():
        pattern = talk.vocabulary.offers if line.role == talk.facts.user else talk.vocabulary.requests
        if found := pattern.search(spelt(line.own)):
            yield line.fault("swapped_role", found[0], 0.9)


def _named(line: Said, talk: Talk) -> Iterator[tuple[str, str]]:
    """Yield names before first- or second-person text, and the text."""
    for found in _NAMED.finditer(line.prose):
        if talk.vocabulary.persons & set(words_of(found[2])):
            yield found[1], " ".join(found[0].split())


def _names_with_both(talk: Talk) -> set[str]:
    """Return the speakers' names that occur on both sides: they belong to a third person."""
    by_side: tuple[set[str], set[str]] = (set(), set())
    for line in talk.lines:
        by_side[line.role == talk.facts.user].update(name for name, _ in _named(line, talk))
    return by_side[0] & by_side[1]
