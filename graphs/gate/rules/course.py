"""Faults of a conversation's opening and its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.gate.vocabulary import spelt, words_of

_STEM = 5
"""Words that share this many first letters are treated as forms of one word."""

_LAST, _FAREWELLS = 6, 2
_FEW = 3
_EARLY = 2
"""An end after at most this many lines of the user is early."""


def early_preferences(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the opening reveals what it must keep back, beyond the task itself."""
    facts = talk.facts
    if talk.since or not talk.lines or not facts.kept_back:
        return
    opening, stop = talk.lines[0], talk.vocabulary.stop
    if opening.role != facts.user:
        return
    told = _stems(opening.words) - _stems(words_of(facts.task))
    kept = [item for text in facts.kept_back for item in text.split(",")]
    shown = [item.strip() for item in kept if _is_told(_stems(words_of(item)) - _stems(stop), told)]
    stated = talk.vocabulary.likes.search(spelt(opening.own))
    if stated is not None and not talk.vocabulary.likes.search(spelt(facts.task)):
        yield opening.fault("early_preferences", stated[0], 0.9 if shown else 0.7)
    elif any(len(words_of(item)) > 1 for item in shown) or len(shown) > 1:
        yield opening.fault("early_preferences", ", ".join(shown), 0.8)


def early_ends(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user ends a conversation before anything of the task was answered, asked about or done."""
    facts = talk.facts
    if not facts.user_ends or talk.ended_by != facts.user_ends:
        return
    users = [place for place, line in enumerate(talk.lines) if line.role == facts.user]
    if not users or len(users) > _EARLY:
        return
    last = talk.lines[users[-1]]
    before = [line for line in talk.lines[: users[-1]] if line.role != facts.user]
    if not any(_touches(line, talk) for line in before) or _leaves_unanswered(before, last, talk):
        yield last.fault("early_end", last.shown(), 0.8)


def endless_goodbyes(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user says goodbye repeatedly until the limit ends the conversation."""
    facts = talk.facts
    if not facts.limit or talk.ended_by != facts.limit:
        return
    lines = [line for line in talk.lines if line.role == facts.user][-_LAST:]
    farewells = [line for line in lines if _is_farewell(line, talk)]
    if len(farewells) >= _FAREWELLS:
        yield farewells[0].fault("no_end", farewells[0].shown(), 0.9)


def _is_farewell(line: Said, talk: Talk) -> bool:
    """Return whether a line is a goodbye with hardly any other content."""
    words, text = talk.vocabulary, spelt(line.own)
    rest = set(words_of(words.closings.sub(" ", text))) - words.stop
    return words.closings.search(text) is not None and "?" not in text and len(rest) < _FEW


def _touches(line: Said, talk: Talk) -> bool:
    """Return whether a line is more than a greeting: it has content, or says that something was done."""
    words = talk.vocabulary
    return bool(set(line.words) - words.stop - words.fillers) or words.dealt.search(spelt(line.own)) is not None


def _leaves_unanswered(before: list[Said], last: Said, talk: Talk) -> bool:
    """Return whether the user ends the conversation instead of answering a question that blocks the task."""
    words = talk.vocabulary
    if any(words.dealt.search(spelt(line.own)) for line in before):
        return False
    question = spelt(before[-1].own[-300:])
    asked = question.rstrip("\"'”) ").endswith("?") and words.asks.search(_last_sentence(question)) is not None
    return asked and _is_farewell(last, talk)


def _last_sentence(text: str) -> str:
    return text.rstrip("?!. \"'”)").replace("!", ".").replace("?", ".").rpartition(". ")[2]


def _is_told(item: set[str], told: set[str]) -> bool:
    return bool(item) and item <= told


def _stems(words: Iterable[str]) -> set[str]:
    return {word[:_STEM] for word in words}
