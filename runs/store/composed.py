"""Compression of texts that repeat whole lines of earlier texts.

Such a text is stored as its own words and spans of earlier texts. Every judge's prompt repeats the same rules and the
answer that a model has given; uncompressed, the same lines would be stored once for each judge and each answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

Part: TypeAlias = "str | int | list[int]"
"""One part of a composed text: its own words; the id of an earlier text that is included whole; or a span of an
earlier text as its id, the offset in it (from 0) and the length in characters.
"""

_LONG = 40
"""The minimum length in characters of a line that is looked up: a span costs some 16."""

_LINES = 16_384
"""The number of lines that are remembered; a single text may add at most an eighth of them."""


class _Source(NamedTuple):
    """The lines of a text that is stored as it is, and the offset of each."""

    lines: Sequence[str]
    starts: Sequence[int]


class Sources:
    """The most recently stored or repeated texts, in which repeated lines are looked up."""

    def __init__(self) -> None:
        self._texts: OrderedDict[int, _Source] = OrderedDict()
        self._places: dict[str, tuple[int, int]] = {}
        self._count = 0

    def parts_of(self, content: str) -> list[Part] | None:
        """Return the parts of a text; `None` if they are not much shorter than the text."""
        if "\0" in content:  # SQLite's functions end a text there
            return None
        source = _split(content)
        parts: list[Part] = []
        said = line = letters = 0
        while line < len(source.lines):
            place = self._places.get(source.lines[line])
            if place is None:
                line += 1
                continue
            id_, at = place
            start, end, line, span = self._span(source, line, id_, at, said)
            if own := content[said:start]:
                parts.append(own)
                letters += len(own) + 3
            parts.append(span)
            letters += 16
            said = end
        if not parts or 2 * (letters + len(content) - said) > len(content):
            return None
        return [*parts, content[said:]] if content[said:] else parts

    def remember(self, id_: int, content: str) -> None:
        """Remember a text that is stored whole, so that later ones may refer to it."""
        source = _split(content)
        long = [(line, number) for number, line in enumerate(source.lines) if len(line) >= _LONG]
        if not long or len(source.lines) > _LINES // 8 or "\0" in content:
            return
        self._texts[id_] = source
        self._count += len(source.lines)
        for line, number in long:
            self._places[line] = (id_, number)
        while self._count > _LINES:
            self._drop_oldest()

    def forget(self) -> None:
        """Forget all texts."""
        self._texts.clear()
        self._places.clear()
        self._count = 0

    def _span(self, text: _Source, line: int, id_: int, at: int, said: int) -> tuple[int, int, int, Part]:
        """Return a text's span in common with an earlier one around a line: its start, end, next line and reference.

        Args:
            text: The text.
            line: The number of a line of it.
            id_: The id of the earlier text.
            at: The number of the same line there.
            said: The end of the previous span.
        """
        self._texts.move_to_end(id_)
        earlier = self._texts[id_]
        first, first_there = line, at
        least = bisect_right(text.starts, said - 1)
        while first > least and first_there and text.lines[first - 1] == earlier.lines[first_there - 1]:
            first, first_there = first - 1, first_there - 1
        after, after_there = line + 1, at + 1
        while (
            after < len(text.lines)
            and after_there < len(earlier.lines)
            and text.lines[after] == earlier.lines[after_there]
        ):
            after, after_there = after + 1, after_there + 1
        start, end = text.starts[first], text.starts[after] - 1
        start_there = earlier.starts[first_there]
        if start > said and start_there:  # the newlines before both spans are equal too
            start, start_there = start - 1, start_there - 1
        if after < len(text.lines) and after_there < len(earlier.lines):
            end += 1
        whole = earlier.starts[-1] - 1
        is_whole = not start_there and end - start == whole
        return start, end, after, id_ if is_whole else [id_, start_there, end - start]

    def _drop_oldest(self) -> None:
        id_, source = self._texts.popitem(last=False)
        self._count -= len(source.lines)
        for line in source.lines:
            if self._places.get(line, (None,))[0] == id_:
                del self._places[line]


def _split(content: str) -> _Source:
    """Return a text's lines and the offset of each, followed by the offset of a line past the end."""
    lines = content.split("\n")
    return _Source(lines, [0, *accumulate(len(line) + 1 for line in lines)])
