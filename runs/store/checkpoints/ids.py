"""Lookup of row ids by the rows' content, with a cache of recent ids."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

Item = TypeVar("Item")
K = TypeVar("K")
V = TypeVar("V")
_AT_ONCE = 128


class Recent(dict[K, V]):
    """A dict that `trim` reduces to its most recently set entries."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def trim(self) -> None:
        """Drop the oldest entries beyond the limit."""
        while len(self) > self._limit:
            del self[next(iter(self))]


class Ids(Generic[K]):
    """The ids of a table's rows. They are assigned here, because there is only one writer.

    Attributes:
        known: Cached ids by key; the rows of all these keys are stored.
    """

    def __init__(self, table: str, limit: int) -> None:
        self.known: Recent[K, int] = Recent(limit)
        self._table = table
        self._next: int | None = None

    def forget(self) -> None:
        """Clear the cache of ids."""
        self.known.clear()
        self._next = None

    def new(self, connection: sqlite3.Connection, key: K) -> int:
        """Assign the id of a row that is about to be inserted, and return it."""
        if self._next is None:
            (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {self._table}").fetchone()
            self._next = int(last) + 1
        id_ = self.known[key] = self._next
        self._next += 1
        return id_

    def take_back(self, keys: Sequence[K]) -> None:
        """Make the last assigned ids available again, because their rows were not inserted."""
        self._next = self.known[keys[0]]
        for key in keys:
            del self.known[key]


class HashedRows:
    """Rows of a table that are identified by a hash and written once.

    Args:
        table: The table's name; its columns begin with `id` and `hash`.
        columns: The number of its columns.
        limit: The number of ids to cache.
    """

    def __init__(self, table: str, columns: int, limit: int) -> None:
        self.ids = Ids[bytes](table, limit)
        self._table = table
        self._columns = columns

    def find(self, connection: sqlite3.Connection, hashes: Collection[bytes]) -> None:
        """Look up the hashes whose ids are not cached."""
        for page in _pages([hash_ for hash_ in hashes if hash_ not in self.ids.known]):
            marks = ",".join("?" * len(page))
            self.ids.known.update(
                connection.execute(f"SELECT hash, id FROM {self._table} WHERE hash IN ({marks})", page)
            )

    def store(
        self, connection: sqlite3.Connection, hashes: Iterable[bytes], columns: Callable[[bytes], tuple[object, ...]]
    ) -> None:
        """Insert the rows that are not stored yet. Afterwards the ids of all hashes are cached.

        Hashes that are not cached are mostly new, so they are looked up only if the insertion fails.

        Args:
            connection: The writer's connection.
            hashes: The hashes, in the order in which the rows get their ids.
            columns: A function that returns a row's columns after the first two; it may use the ids of earlier rows.
        """
        unknown = [hash_ for hash_ in hashes if hash_ not in self.ids.known]
        if unknown and not self._insert(connection, unknown, columns):
            self.find(connection, unknown)
            self._insert(connection, [hash_ for hash_ in unknown if hash_ not in self.ids.known], columns)

    def _insert(
        self, connection: sqlite3.Connection, hashes: Sequence[bytes], columns: Callable[[bytes], tuple[object, ...]]
    ) -> bool:
        """Insert a row for each hash. If one of the rows already exists, insert none and return false."""
        rows: list[tuple[object, ...]] = []
        for hash_ in hashes:
            rest = columns(hash_)
            rows.append((self.ids.new(connection, hash_), hash_, *rest))
        if insert_rows(connection, f"INSERT OR IGNORE INTO {self._table}", self._columns, rows) == len(rows):
            return True
        connection.execute(f"DELETE FROM {self._table} WHERE id >= ?", (rows[0][0],))
        self.ids.take_back(hashes)
        return False


def insert_rows(
    connection: sqlite3.Connection, head: str, columns: int, rows: Sequence[tuple[object, ...]], tail: str = ""
) -> int:
    """Insert many rows with few statements, because the thread releases and reacquires the GIL for each statement.

    Args:
        connection: The writer's connection.
        head: The statement up to its values, with `OR FAIL`, `IGNORE` or `REPLACE`. Without these, SQLite copies every
            page that changes, in order to undo the statement if one of its rows cannot be inserted.
        columns: The number of columns.
        rows: The rows.
        tail: The rest of the statement.

    Returns:
        The number of rows that were inserted or changed.
    """
    marks = f"({','.join('?' * columns)})"
    count = 0
    for page in _pages(rows):
        values = ",".join([marks] * len(page))
        count += connection.execute(f"{head} VALUES {values} {tail}", [*chain.from_iterable(page)]).rowcount
    return count


def _pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield pages of few different lengths (multiples of eight, and a rest), to reuse prepared statements."""
    start = 0
    while start < len(items):
        left = len(items) - start
        size = min(left - left % 8 or left, _AT_ONCE)
        yield items[start : start + size]
        start += size
