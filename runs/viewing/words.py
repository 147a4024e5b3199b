"""Where two texts differ, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

_WORDS = re.compile(r"\s+|[^\s]+")
_MOST = 4_000
"""Words of two texts that are compared; of longer ones all is said to differ."""


class Piece(NamedTuple):
    """A stretch of a text, and whether the other one has it."""

    text: str
    is_shared: bool


def snippet(text: str, words: str, length: int = 160) -> str:
    """The part of a text in which the first of some words stands.

    Args:
        text: The text.
        words: What was looked for, as `dialoom.Run.scenarios` takes it.
        length: Letters of it at the most.
    """
    lowered = text.casefold()
    found = [lowered.find(word.casefold()) for word in words.replace('"', " ").replace("*", " ").split()]
    start = max(min([at for at in found if at >= 0], default=0) - length // 4, 0)
    part = " ".join(text[start : start + length].split())
    return f"{'…' if start else ''}{part}{'…' if start + length < len(text) else ''}"


def beside(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Two texts in pieces, each with whether the other has it, too."""
    ours, theirs = _WORDS.findall(left), _WORDS.findall(right)
    if len(ours) + len(theirs) > _MOST:
        return [Piece(left, left == right)], [Piece(right, left == right)]
    found: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for pieces, words in ((found[0], ours[a:b]), (found[1], theirs[c:d])):
            if words:
                pieces.append(Piece("".join(words), kind == "equal"))
    return found
