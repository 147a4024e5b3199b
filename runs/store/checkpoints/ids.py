"""Ids of rows by what identifies them, the lately used ones remembered."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_AT_ONCE = 64


class Recent(dict[K, V]):
    """A dict that `trim` brings back to the entries that were set last."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def trim(self) -> None:
        """Drop the oldest entries beyond the limit."""
        while len(self) > self._limit:
            del self[next(iter(self))]


class Ids(Generic[K]):
    """A table's ids. They are given out here, as one writer writes the table.

    Attributes:
        known: Ids by key; whatever stands here is stored.
    """

    def __init__(self, table: str, limit: int) -> None:
        self.known: Recent[K, int] = Recent(limit)
        self._table = table
        self._next: int | None = None

    def forget(self) -> None:
        """Know nothing any more."""
        self.known.clear()
        self._next = None

    def new(self, connection: sqlite3.Connection, key: K) -> int:
        """The id of a row that is about to be inserted."""
        if self._next is None:
            (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {self._table}").fetchone()
            self._next = int(last) + 1
        id_ = self.known[key] = self._next
        self._next += 1
        return id_


class HashedRows:
    """Rows of a table that are identified by a hash and written once.

    Args:
        table: Its name; its columns begin with `id` and `hash`.
        columns: How many columns it has.
        limit: How many ids are remembered.
    """

    def __init__(self, table: str, columns: int, limit: int) -> None:
        self.ids = Ids[bytes](table, limit)
        self._table = table
        self._insert = f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"

    def find(self, connection: sqlite3.Connection, hashes: Collection[bytes]) -> None:
        """Look up those hashes whose ids are not known."""
        for page in _pages([hash_ for hash_ in hashes if hash_ not in self.ids.known]):
            marks = ",".join("?" * len(page))
            query = f"SELECT hash, id FROM {self._table} WHERE hash IN ({marks})"
            self.ids.known.update(connection.execute(query, page))

    def insert(
        self, connection: sqlite3.Connection, hashes: Collection[bytes], columns: Callable[[bytes], tuple[object, ...]]
    ) -> None:
        """Insert the rows of those hashes that are not stored, after they were looked up.

        Args:
            connection: The writer's.
            hashes: In the order in which the rows get their ids.
            columns: Gives a row's columns after the first two, and may use the ids of earlier rows.
        """
        known = self.ids.known
        rows = []
        for hash_ in hashes:
            if hash_ not in known:
                rest = columns(hash_)
                rows.append((self.ids.new(connection, hash_), hash_, *rest))
        connection.executemany(self._insert, rows)


def _pages(hashes: list[bytes]) -> Iterator[list[bytes]]:
    """In few different lengths, so that the prepared statements are found again."""
    start = 0
    while start < len(hashes):
        left = len(hashes) - start
        size = next(size for size in (_AT_ONCE, 16, 4, 1) if size <= left)
        yield hashes[start : start + size]
        start += size
