"""Texts that repeat whole lines of earlier ones: such a text is kept as its own words and spans of those.

A judge's prompt holds the rules that every such prompt holds, and the answer that a model has given; written out, the
same lines would stand in the file once for each judge and each answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

Part: TypeAlias = "str | int | list[int]"
"""Words of a text's own; the id of an earlier text that stands there whole; or of one, with the place in it (from 0)
and the letters, of which a span stands there."""

_LONG = 40
"""Letters from which on a line is looked for: a span costs some 16."""

_LINES = 16_384
"""So many lines are remembered, and of one text at most an eighth of them."""


class _Source(NamedTuple):
    """A text that stands in the file as it is."""

    lines: Sequence[str]
    starts: Sequence[int]


class Sources:
    """The texts that were kept, or repeated, last."""

    def __init__(self) -> None:
        self._texts: OrderedDict[int, _Source] = OrderedDict()
        self._places: dict[str, tuple[int, int]] = {}
        self._count = 0

    def parts_of(self, content: str) -> list[Part] | None:
        """What a text consists of; `None` if that is not much shorter than the text."""
        if "\0" in content:  # SQLite's functions see the end of a text in it
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
        """A text is kept as it is, so that later ones may refer to it."""
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
        """Remember nothing."""
        self._texts.clear()
        self._places.clear()
        self._count = 0

    def _span(self, text: _Source, line: int, id_: int, at: int, said: int) -> tuple[int, int, int, Part]:
        """What a text has in common with an earlier one around a line: its two ends, the line behind it, the span.

        Args:
            text: The text.
            line: A line of it.
            id_: The earlier one.
            at: The same line there.
            said: Where the last span ended.
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
        if start > said and start_there:  # the ends of the lines before and behind it are the same, too
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
    """A text's lines, and where each begins; at last, where one behind the end would."""
    lines = content.split("\n")
    return _Source(lines, [0, *accumulate(len(line) + 1 for line in lines)])
