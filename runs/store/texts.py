"""Every message text, stored once: requests, replies and outcomes refer to it by its id.

The view `texts` has each text as a whole; the table under it, `kept_texts`, has some of them in parts (`composed.py`).
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .composed import Sources
from .documents import canonical, digest
from .references import ReadText

_REMEMBERED = 4096
_AT_ONCE = 500
_SHORT = 1000
"""The maximum length in characters of a text that is its own cache key: hashing hundreds of short texts per call
would take longer.
"""


class Texts:
    """The `texts` table, for the writer's jobs; the ids of recently used texts are cached."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str | bytes, int] = OrderedDict()
        self._sources = Sources()

    def id_of(self, connection: sqlite3.Connection, content: str) -> int:
        """Return the id of a text, which is inserted if it is new."""
        known = self.find(connection, content)
        return self._kept(connection, content) if known is None else known

    def ids_of(self, connection: sqlite3.Connection, contents: Collection[str]) -> list[int]:
        """Return the ids of many texts, as `id_of` does, with a single query for the existing ones."""
        hashes = {content: text_hash(content) for content in contents if _name(content) not in self._ids}
        query = "SELECT hash FROM kept_texts WHERE hash IN ({})"
        kept = {row[0] for row in rows_of(connection, query, set(hashes.values()))}
        ids: list[int] = []
        for content in contents:
            is_new = (hash_ := hashes.get(content)) is not None and hash_ not in kept
            ids.append(self._kept(connection, content) if is_new else self.id_of(connection, content))
            if hash_ is not None:
                kept.add(hash_)
        return ids

    def _kept(self, connection: sqlite3.Connection, content: str) -> int:
        """Insert a new text and return its id."""
        (id_,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM kept_texts").fetchone()
        row = (id_, *row_of(id_, content, self._sources))
        connection.execute("INSERT INTO kept_texts (id, hash, content, parts) VALUES (?, ?, ?, ?)", row)
        return self._remembered(_name(content), id_)

    def find(self, connection: sqlite3.Connection, content: str) -> int | None:
        """Return the id of a text; `None` if it is not stored."""
        name = _name(content)
        if (known := self._ids.get(name)) is not None:
            self._ids.move_to_end(name)
            return known
        try:
            id_ = find_text(connection, content)
        except UnicodeEncodeError:  # a lone surrogate, which no stored text contains
            return None
        return None if id_ is None else self._remembered(name, id_)

    def forget(self) -> None:
        """Clear the caches, because some of it was rolled back."""
        self._ids.clear()
        self._sources.forget()

    def _remembered(self, name: str | bytes, id_: int) -> int:
        self._ids[name] = id_
        if len(self._ids) > _REMEMBERED:
            self._ids.popitem(last=False)
        return id_


def row_of(id_: int, content: str, sources: Sources) -> tuple[int, str | None, str | None]:
    """Return the columns of a new text after its id: hash, content, parts. Sources are updated if stored whole."""
    parts = sources.parts_of(content)
    if parts is not None:
        return text_hash(content), None, canonical(parts)
    sources.remember(id_, content)
    return text_hash(content), content, None


def text_hash(content: str) -> int:
    """Return the first 48 bits of SHA-256, which SQLite stores in six bytes. Hashes may collide."""
    return int.from_bytes(digest(content)[:6], signed=True)


def find_text(connection: sqlite3.Connection, content: str) -> int | None:
    """Return the id of a text; `None` if it is not stored."""
    query = "SELECT id FROM texts WHERE hash = ? AND content = ?"
    row = connection.execute(query, (text_hash(content), content)).fetchone()
    return None if row is None else int(row[0])


def rows_of(connection: sqlite3.Connection, query: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query for any number of values, which replace the `{}` in it."""
    wanted = list(values)
    for start in range(0, len(wanted), _AT_ONCE):
        page = wanted[start : start + _AT_ONCE]
        yield from connection.execute(query.format(",".join("?" * len(page))), page)


def _name(content: str) -> str | bytes:
    return content if len(content) <= _SHORT else digest(content)


def reading(connection: sqlite3.Connection) -> ReadText:
    """Return the function that reads texts by their ids over a connection."""

    def read(id_: int) -> str:
        row = connection.execute("SELECT content FROM texts WHERE id = ?", (id_,)).fetchone()
        if row is None or row[0] is None:
            raise LookupError(f"the text {id_} is not there, or lacks a part")
        return str(row[0])

    return read
