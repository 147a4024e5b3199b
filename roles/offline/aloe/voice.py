"""A voice that says nothing twice, and a line put together from its remarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from ..draws import Draws
from ..words import say, tidy
from .english import pairs, plain


class Voice:
    """Picks remarks by somebody who remembers what they said.

    Args:
        own: The speaker's lines so far.
        draws: Chooses.
    """

    def __init__(self, own: Sequence[str], draws: Draws) -> None:
        self._said = _bare(" ".join(own))
        self._draws = draws

    def of(self, bank: Iterable[str], slots: Mapping[str, str] | None = None) -> str:
        """Give a remark of the bank that its slots can fill and that is new; else an empty text."""
        for template in self._draws.shuffled(tuple(bank)):
            head = _bare(re.split(r"[{<\[]", template)[0])
            if len(head.split()) >= 3 and head in self._said:
                continue
            text = say([template], self._draws, slots)
            if text and _bare(text) not in self._said:
                return text
        return ""


def new_line(own: Sequence[str], draws: Draws, write: Callable[[Draws], str]) -> str:
    """Write a line that was not said before, if one comes up in eight tries."""
    line = ""
    for attempt in range(8):
        line = write(draws.fork(attempt))
        if line and line not in own:
            break
    return line


def put_together(parts: Iterable[str], *, formal: bool = False, casual: bool = False) -> str:
    """Join remarks to one line; in full words if it is formal, with contractions if it is casual."""
    texts = [part.strip() for part in parts if part.strip()]
    line = tidy(" ".join(text if text[-1] in ".!?…" else text + "." for text in texts))
    if formal:
        return _in_full(line.replace("’", "'"))
    if casual:
        return _any_of("contracted").sub(lambda found: pairs("contracted")[found[0]], line)
    return line


def _bare(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", plain(text).replace("'", ""))
    return f" {' '.join(words)} " if words else ""


@cache
def _any_of(table: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{'|'.join(map(re.escape, pairs(table)))})(?![\w'])")


def _in_full(line: str) -> str:
    line = _any_of("full").sub(lambda found: pairs("full")[found[0]], line)
    for short, full in (("n't", " not"), ("'re", " are"), ("'ve", " have"), ("'ll", " will"), ("'d", " would")):
        line = re.sub(rf"(?<=\w){short}\b", full, line)
    return line
