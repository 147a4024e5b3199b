"""Mixed-up parts: lines of two speakers in one message, and speakers who play the other's part."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.gate.vocabulary import spelt, words_of

_NAMED = re.compile(
    r"(?:^|\n)[ \t>*_]{0,4}([A-Z][\w'’-]{1,20}(?: [A-Z][\w'’-]{1,20})?)[*_]{0,3}:[*_]{0,3}[ \t]+([^\n]*)"
)
_LABEL = r"(?:user|human|customer|assistant|ai(?: assistant)?|bot|chatbot|system)"
_SPOKEN_BY = re.compile(
    rf"(?:^|\n|(?<=[.!?…\"”)])\s)[ \t>*_\-\[(]{{0,4}}({_LABEL})[\])*_]{{0,3}}\s?:[*_]{{0,3}}\s*([^\n]*)", re.IGNORECASE
)
_FEWEST_WORDS = 2


def glued_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that continue with another speaker's words, or carry their speaker's label."""
    both = _names_with_both(talk)
    for line in talk.looked_at():
        for label in _SPOKEN_BY.finditer(line.prose):
            if len(label[2].split()) >= _FEWEST_WORDS:
                yield line.fault("glued_lines", " ".join(label[0].split()))
                break
        else:
            if (words := next((words for name, words in _named(line, talk) if name in both), None)) is not None:
                yield line.fault("glued_lines", words, 0.7)


def swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines of a user who offers help or claims to be a model, or of an assistant who asks for help as users do.

    Quoted text does not count.
    """
    for line in talk.looked_at():
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
