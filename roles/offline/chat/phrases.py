"""Picking remarks that have not been made yet, and putting a line together from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..draws import Draws
from ..grammar import render
from ..prose import tidy
from .words import spelled_plainly

_CONTRACTED = {
    "I am ": "I'm ",
    "I have been ": "I've been ",
    "do not ": "don't ",
    "does not ": "doesn't ",
    "cannot ": "can't ",
    "it is ": "it's ",
    "It is ": "It's ",
    "that is ": "that's ",
    "did not ": "didn't ",
    "is not ": "isn't ",
    "are not ": "aren't ",
}
_FULL = {
    "can't": "cannot",
    "won't": "will not",
    "shan't": "shall not",
    "I'm": "I am",
    "let's": "let us",
    "Let's": "Let us",
    "It's": "It is",
    "it's": "it is",
    "that's": "that is",
    "That's": "That is",
    "There's": "There is",
    "there's": "there is",
    "What's": "What is",
    "what's": "what is",
    "Who's": "Who is",
    "who's": "who is",
    "Where's": "Where is",
    "Here's": "Here is",
    "She's": "She is",
    "He's": "He is",
    "she's": "she is",
    "he's": "he is",
    "nobody's": "nobody is",
    "Nothing's": "Nothing is",
}


class Fresh:
    """Picks of remarks by somebody who remembers what was said: nothing twice while there is something else."""

    def __init__(self, own: Sequence[str], draws: Draws) -> None:
        self._said = _bare(" ".join(own))
        self._draws = draws

    def of(self, bank: Iterable[str], slots: Mapping[str, str] | None = None) -> str:
        """Give a remark of the bank that its slots can fill and that is new; else an empty text."""
        for template in self._draws.shuffled(tuple(bank)):
            head = _bare(re.split(r"[{<\[]", template)[0])
            if head and len(head.split()) >= 3 and head in self._said:
                continue
            text = render(template, slots or {}, self._draws)
            if text and _bare(text) not in self._said:
                return text
        return ""


def _bare(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', spelled_plainly(text).replace(chr(39), '')))} " if text.strip() else ""


def put_together(parts: Iterable[str], *, formal: bool = False, casual: bool = False) -> str:
    """Join remarks to one line; without contractions if it is formal."""
    done = []
    for part in parts:
        text = part.strip()
        if text:
            text = text[:1].upper() + text[1:]
            done.append(text if text[-1] in ".!?…" else text + ".")
    line = tidy(" ".join(done))
    if formal:
        return _in_full(line)
    if casual:
        for full, short in _CONTRACTED.items():
            line = re.sub(rf"\b{full}", short, line)
    return line


def _in_full(line: str) -> str:
    line = line.replace("’", "'")
    for short, full in _FULL.items():
        line = re.sub(rf"(?<!\w){short}\b(?!\w)", full, line)
    line = re.sub(r"(\w)n't\b", r"\1 not", line)
    line = re.sub(r"\b([Yy]ou|[Ww]e|[Tt]hey)'re\b", r"\1 are", line)
    line = re.sub(r"\b(I|[Yy]ou|[Ww]e|[Tt]hey)'ve\b", r"\1 have", line)
    line = re.sub(r"\b(\w+)'ll\b", r"\1 will", line)
    return re.sub(r"\b(I|[Yy]ou|[Ww]e|[Tt]hey|[Ss]he|[Hh]e|[Ii]t)'d\b", r"\1 would", line)
