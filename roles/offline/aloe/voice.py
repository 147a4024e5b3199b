"""A voice that says nothing twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..draws import Draws
from ..matching import plain
from ..words import say, tidy


class Voice:
    """Picks remarks for somebody who remembers the lines that they said."""

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


def new_line(own: Sequence[str], draws: Draws, remarks: Callable[[Draws], Iterable[str]]) -> str:
    """Put remarks together to a line that was not said before, if one comes up in eight tries."""
    line = ""
    for attempt in range(8):
        parts = [part.strip() for part in remarks(draws.fork(attempt)) if part.strip()]
        line = tidy(" ".join(part if part[-1] in ".!?…" else part + "." for part in parts))
        if line and line not in own:
            break
    return line


def _bare(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", plain(text).replace("'", ""))
    return f" {' '.join(words)} " if words else ""
