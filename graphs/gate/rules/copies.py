"""Copies of what was said before, and conversations that go round in circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import TypeVar

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import LONGEST, STRETCH, Said, Talk
from dialoom.graphs.gate.vocabulary import spelt, words_of

_FEWEST_WORDS, _FEWEST_LONG = 6, 5
"""Shorter lines are alike in sound conversations, too: thanks, yes please, all done. So are names that are spelt."""

_LIKE_WORDS, _LIKE_PAIRS = 0.8, 0.65
"""Shared words and shared neighbours (Dice's coefficient) from which on two lines are copies."""

_AGAIN_SHARE = 0.5
"""A line is a copy, too, if so much of it stands in long stretches in one earlier line."""

_SPOKEN_AS = 2
"""So many words for oneself that two speakers share tell that the second one has not turned them into the first's."""

_LOOKED_BACK = 12
"""A near-copy is looked for among so many lines; an exact one among all."""

_LOOP = 6
"""Messages in a row, three turns, that bring nothing new."""

_NEW_SHARE = 0.1
_T = TypeVar("_T", bound=Hashable)


def copied_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Near-copies of a line of one's own (`repetition`) or of the other's (`echo`); a line may be both.

    Of texts that nobody says only exact copies are told: how near they may come to each other is for their recipe.
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
    """Three turns in which nobody says a word that was not said before: the fault of all who speak in them."""
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
    if line.role == before.role:  # the same request for another thing is no copy, nor is who insists
        if words.reminders.search(spelt(line.own)):
            return False
        exchanged = mine - words.stop and yours - words.stop
        content = (Counter(_asked(each) - words.stop) for each in (line, before))
        return not exchanged or _dice(*content) > _LIKE_WORDS or again >= 2 * STRETCH
    # Who reads a wish back turns `my` into `your`, and does not say `I` where the other did.
    is_turned = mine & words.persons and yours & words.persons
    return not is_turned or sum(line.counted[word] for word in words.oneself & before.counted.keys()) >= _SPOKEN_AS


def _asked(line: Said) -> set[str]:
    """The words of what a line asks, without the choices that may follow; all its words if it asks nothing."""
    question, mark, _ = line.text[:LONGEST].partition("?")
    return set(words_of(question)) if mark else set(line.words)


def _is_near(line: Said, before: Said) -> bool:
    """Whether two lines are nearly the same as a whole."""
    shorter, longer = sorted((len(line.words), len(before.words)))
    if longer > 1.4 * shorter:
        return False
    return _dice(line.counted, before.counted) >= _LIKE_WORDS and _dice(line.pairs, before.pairs) >= _LIKE_PAIRS


def _said_again(line: Said, before: Said) -> int:
    """How many words of a line stand in an earlier one in long stretches, whatever comes before and after them."""
    there = set(before.stretches)
    again = (place for place, stretch in enumerate(line.stretches) if stretch in there)
    return len({place + step for place in again for step in range(STRETCH)})


def _dice(one: Counter[_T], other: Counter[_T]) -> float:
    return 2 * (one & other).total() / (one.total() + other.total())
