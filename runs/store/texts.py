"""Texts, each stored once. Long texts are composed of parts of earlier texts."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from .references import ReadText, digest, encode_canonical

Part: TypeAlias = "str | int | list[int]"
"""One part of a composed text: a string, the id of an earlier text, or a span of an earlier text.

An earlier text is given by its id. A span is given by the id, the offset (from 0) and the length in characters.
"""

_MIN_LINE_CHARACTERS = 40
"""The minimum length in characters of lines that are looked up; a span takes about 16 characters."""

_MAX_CACHED_LINES = 16_384
"""The number of lines that are cached; a single text adds at most an eighth of that number."""


class _Source(NamedTuple):
    """The lines of a text, with the offset of each."""

    lines: Sequence[str]
    starts: Sequence[int]


class Sources:
    """A cache of the most recently stored or repeated texts, in which repeated lines are looked up."""

    def __init__(self) -> None:
        self._texts: OrderedDict[int, _Source] = OrderedDict()
        self._locations: dict[str, tuple[int, int]] = {}
        self._count = 0

    def find_parts(self, content: str) -> list[Part] | None:
        """Return the parts of which a text is composed; `None` if storing the parts would save little space."""
        if "\0" in content:  # SQLite's functions treat a null character as the end of a text
            return None
        source = _split(content)
        parts: list[Part] = []
        covered = line = size = 0
        while line < len(source.lines):
            location = self._locations.get(source.lines[line])
            if location is None:
                line += 1
                continue
            id_, at = location
            start, end, line, span = self._find_span(source, line, id_, at, covered)
            if own := content[covered:start]:
                parts.append(own)
                size += len(own) + 3
            parts.append(span)
            size += 16
            covered = end
        if not parts or 2 * (size + len(content) - covered) > len(content):
            return None
        return [*parts, content[covered:]] if content[covered:] else parts

    def remember(self, id_: int, content: str) -> None:
        """Add a text that is stored whole to the cache, so that later texts can refer to it."""
        source = _split(content)
        long = [(line, number) for number, line in enumerate(source.lines) if len(line) >= _MIN_LINE_CHARACTERS]
        if not long or len(source.lines) > _MAX_CACHED_LINES // 8 or "\0" in content:
            return
        self._texts[id_] = source
        self._count += len(source.lines)
        for line, number in long:
            self._locations[line] = (id_, number)
        while self._count > _MAX_CACHED_LINES:
            self._drop_oldest()

    def clear(self) -> None:
        """Clear the cache."""
        self._texts.clear()
        self._locations.clear()
        self._count = 0

    def _find_span(self, text: _Source, line: int, id_: int, at: int, covered: int) -> tuple[int, int, int, Part]:
        """Return the longest span around a line that an earlier text shares: start, end, next line, reference.

        Args:
            text: The text.
            line: The number of a line of the text.
            id_: The id of the earlier text.
            at: The number of the same line in the earlier text.
            covered: The offset at which the previous span ends.
        """
        self._texts.move_to_end(id_)
        earlier = self._texts[id_]
        first, first_there = line, at
        least = bisect_right(text.starts, covered - 1)
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
        if start > covered and start_there:  # the newlines before both spans are equal too
            start, start_there = start - 1, start_there - 1
        if after < len(text.lines) and after_there < len(earlier.lines):
            end += 1
        length = earlier.starts[-1] - 1
        is_complete = not start_there and end - start == length
        return start, end, after, id_ if is_complete else [id_, start_there, end - start]

    def _drop_oldest(self) -> None:
        id_, source = self._texts.popitem(last=False)
        self._count -= len(source.lines)
        for line in source.lines:
            if self._locations.get(line, (None,))[0] == id_:
                del self._locations[line]


def _split(content: str) -> _Source:
    """Return a text's lines and their offsets, followed by the offset that a further line would have."""
    lines = content.split("\n")
    return _Source(lines, [0, *accumulate(len(line) + 1 for line in lines)])


_MAX_CACHED_IDS = 4096
_QUERY_BATCH_SIZE = 500
_MAX_KEY_CHARACTERS = 1000
"""The maximum length in characters up to which a text itself is the cache key; longer texts are hashed."""


class Texts:
    """The `texts` table, for the writer's jobs; the ids of recently used texts are cached."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str | bytes, int] = OrderedDict()
        self._sources = Sources()

    def get_or_insert(self, connection: sqlite3.Connection, content: str) -> int:
        """Return the id of a text, which is inserted if it is new."""
        known = self.find(connection, content)
        return self._insert(connection, content) if known is None else known

    def get_or_insert_many(self, connection: sqlite3.Connection, contents: Collection[str]) -> list[int]:
        """Return the ids of many texts, as `get_or_insert` does, with one query for all texts that are stored."""
        hashes = {content: text_hash(content) for content in contents if _make_key(content) not in self._ids}
        stored = {
            row[0]
            for row in select_in_batches(
                connection, "SELECT hash FROM kept_texts WHERE hash IN ({})", set(hashes.values())
            )
        }
        ids: list[int] = []
        for content in contents:
            is_new = (hash_ := hashes.get(content)) is not None and hash_ not in stored
            ids.append(self._insert(connection, content) if is_new else self.get_or_insert(connection, content))
            if hash_ is not None:
                stored.add(hash_)
        return ids

    def _insert(self, connection: sqlite3.Connection, content: str) -> int:
        """Insert a new text and return its id."""
        (id_,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM kept_texts").fetchone()
        parts = self._sources.find_parts(content)
        if parts is None:
            self._sources.remember(id_, content)
        stored = (content, None) if parts is None else (None, encode_canonical(parts))
        connection.execute(
            "INSERT INTO kept_texts (id, hash, content, parts) VALUES (?, ?, ?, ?)", (id_, text_hash(content), *stored)
        )
        return self._cache_id(_make_key(content), id_)

    def find(self, connection: sqlite3.Connection, content: str) -> int | None:
        """Return the id of a text; `None` if it is not stored."""
        key = _make_key(content)
        if (known := self._ids.get(key)) is not None:
            self._ids.move_to_end(key)
            return known
        try:
            id_ = find_text(connection, content)
        except UnicodeEncodeError:  # a lone surrogate, which no stored text contains
            return None
        return None if id_ is None else self._cache_id(key, id_)

    def clear(self) -> None:
        """Clear the caches, after cached rows were rolled back."""
        self._ids.clear()
        self._sources.clear()

    def _cache_id(self, key: str | bytes, id_: int) -> int:
        self._ids[key] = id_
        if len(self._ids) > _MAX_CACHED_IDS:
            self._ids.popitem(last=False)
        return id_


def text_hash(content: str) -> int:
    """Return the first 48 bits of a text's SHA-256, which SQLite stores in six bytes. Hashes may collide."""
    return int.from_bytes(digest(content)[:6], signed=True)


def find_text(connection: sqlite3.Connection, content: str) -> int | None:
    """Return the id of a text; `None` if it is not stored."""
    row = connection.execute(
        "SELECT id FROM texts WHERE hash = ? AND content = ?", (text_hash(content), content)
    ).fetchone()
    return None if row is None else int(row[0])


def select_in_batches(connection: sqlite3.Connection, query: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query for any number of values; parameters for them replace the `{}` in the query."""
    items = list(values)
    for start in range(0, len(items), _QUERY_BATCH_SIZE):
        page = items[start : start + _QUERY_BATCH_SIZE]
        yield from connection.execute(query.format(",".join("?" * len(page))), page)


def _make_key(content: str) -> str | bytes:
    return content if len(content) <= _MAX_KEY_CHARACTERS else digest(content)


def make_text_reader(connection: sqlite3.Connection) -> ReadText:
    """Return a function that reads texts by their ids over a connection."""

    def read(id_: int) -> str:
        row = connection.execute("SELECT content FROM texts WHERE id = ?", (id_,)).fetchone()
        if row is None or row[0] is None:
            raise LookupError(f"the text {id_}, or one of its parts, is missing")
        return str(row[0])

    return read
