"""Writing of checkpoints: items that arrived together are written in few statements.

A value is identified by its hash alone. Whether it is stored is looked up or cached. Ids are assigned here, because
there is only one writer. A step's writes and the checkpoint that supersedes them often arrive together; then the writes
are not stored at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

from dialoom.runs.store.references import FindText
from dialoom.runs.store.texts import Texts

from .items import Put, PutWrite, PutWrites
from .memory import Chain, ChannelContent, Key, Packed, Thread, iterate_parts
from .values import Large, Value, encode_json, encode_value

Item = TypeVar("Item")
K = TypeVar("K")
V = TypeVar("V")
_ROWS_PER_STATEMENT = 128
_CACHE_SIZE = 4096

_INSERT_CHECKPOINTS = "INSERT OR FAIL INTO checkpoints (thread, id, parent, time, frame, held)"
_ON_CONFLICT = """
ON CONFLICT (thread, id) DO UPDATE SET parent = excluded.parent,
time = excluded.time, frame = excluded.frame, held = excluded.held
"""

_Write: TypeAlias = tuple[PutWrites, PutWrite]
_Writes: TypeAlias = dict[Key, dict[tuple[str, int], _Write]]


class UnknownPrefixError(LookupError):
    """A list whose prefix is not stored, because `compact` removed the prefix or its transaction failed."""


class RecentDict(dict[K, V]):
    """A dict that `trim` reduces to its most recently set entries."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def trim(self) -> None:
        """Drop the oldest entries beyond the limit."""
        while len(self) > self._limit:
            del self[next(iter(self))]


class IdAllocator(Generic[K]):
    """The ids of a table's rows. They are assigned here, because there is only one writer.

    Attributes:
        known: Cached ids by key; the rows of all these keys are stored.
    """

    def __init__(self, table: str, limit: int) -> None:
        self.known: RecentDict[K, int] = RecentDict(limit)
        self._table = table
        self._next: int | None = None

    def clear(self) -> None:
        """Clear the cache of ids."""
        self.known.clear()
        self._next = None

    def assign(self, connection: sqlite3.Connection, key: K) -> int:
        """Assign the id of a row that is about to be inserted, and return it."""
        if self._next is None:
            (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {self._table}").fetchone()
            self._next = int(last) + 1
        id_ = self.known[key] = self._next
        self._next += 1
        return id_

    def release(self, keys: Sequence[K]) -> None:
        """Make the last assigned ids available again, because their rows were not inserted."""
        self._next = self.known[keys[0]]
        for key in keys:
            del self.known[key]


class HashedRows(IdAllocator[bytes]):
    """Rows of a table that are identified by a hash and written once.

    Args:
        table: The table's name; its columns begin with `id` and `hash`.
        columns: The number of its columns.
        limit: The number of ids to cache.
    """

    def __init__(self, table: str, columns: int, limit: int) -> None:
        super().__init__(table, limit)
        self._columns = columns

    def find(self, connection: sqlite3.Connection, hashes: Collection[bytes]) -> None:
        """Look up the hashes whose ids are not cached."""
        for page in _pages([hash_ for hash_ in hashes if hash_ not in self.known]):
            placeholders = ",".join("?" * len(page))
            self.known.update(
                connection.execute(f"SELECT hash, id FROM {self._table} WHERE hash IN ({placeholders})", page)
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
        unknown = [hash_ for hash_ in hashes if hash_ not in self.known]
        if unknown and not self._insert(connection, unknown, columns):
            self.find(connection, unknown)
            self._insert(connection, [hash_ for hash_ in unknown if hash_ not in self.known], columns)

    def _insert(
        self, connection: sqlite3.Connection, hashes: Sequence[bytes], columns: Callable[[bytes], tuple[object, ...]]
    ) -> bool:
        """Insert a row for each hash. If one of the rows already exists, insert none and return false."""
        rows: list[tuple[object, ...]] = []
        for hash_ in hashes:
            rest = columns(hash_)
            rows.append((self.assign(connection, hash_), hash_, *rest))
        if insert_rows(connection, f"INSERT OR IGNORE INTO {self._table}", self._columns, rows) == len(rows):
            return True
        connection.execute(f"DELETE FROM {self._table} WHERE id >= ?", (rows[0][0],))
        self.release(hashes)
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
    placeholders = f"({','.join('?' * columns)})"
    count = 0
    for page in _pages(rows):
        values = ",".join([placeholders] * len(page))
        count += connection.execute(f"{head} VALUES {values} {tail}", [*chain.from_iterable(page)]).rowcount
    return count


def _pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield pages of few different lengths (multiples of eight, and a rest), to reuse prepared statements."""
    start = 0
    while start < len(items):
        left = len(items) - start
        size = min(left - left % 8 or left, _ROWS_PER_STATEMENT)
        yield items[start : start + size]
        start += size


class CheckpointWriter:
    """The writer of checkpoints and pending writes, used only by the run's writer.

    It caches the ids of recently stored rows; `clear` must be called after rows were rolled back or deleted.
    """

    def __init__(self) -> None:
        self._texts: Texts | None = None
        self._threads = IdAllocator[Thread]("threads", _CACHE_SIZE)
        self._frames = HashedRows("checkpoint_frames", 7, _CACHE_SIZE)
        self._values = HashedRows("checkpoint_values", 3, _CACHE_SIZE)
        self._lists = HashedRows("checkpoint_lists", 4, _CACHE_SIZE)
        self._tables: tuple[IdAllocator[Any], ...] = (self._threads, self._frames, self._values, self._lists)
        self._has_writes: RecentDict[Key, bool] = RecentDict(_CACHE_SIZE)

    def use_texts(self, texts: Texts) -> None:
        """Replace texts in values by references if the file already stores them."""
        self._texts = texts

    def clear(self) -> None:
        """Clear the caches."""
        for ids in self._tables:
            ids.clear()
        self._has_writes.clear()

    def write(self, connection: sqlite3.Connection, items: Sequence[Put | PutWrites]) -> None:
        """Store the items, which are in the order of their arrival.

        Raises:
            UnknownPrefixError: If a list's prefix is not stored.
        """
        puts, writes = _merge_items(items)
        self._ensure_threads(connection, {thread for thread, _ in (*puts, *writes)})
        self._store_values(connection, _collect_values(puts.values(), writes.values()))
        self._store_lists(connection, puts.values())
        insert_rows(
            connection, _INSERT_CHECKPOINTS, 6, self._build_checkpoint_rows(connection, puts.values()), _ON_CONFLICT
        )
        for put in puts.values():
            self._delete_superseded(connection, put)
        self._insert_writes(connection, writes)
        for ids in self._tables:
            ids.known.trim()
        self._has_writes.trim()

    def _ensure_threads(self, connection: sqlite3.Connection, threads: Iterable[Thread]) -> None:
        known = self._threads.known
        for thread in threads:
            if thread in known:
                continue
            row = connection.execute("SELECT id FROM threads WHERE name = ? AND namespace = ?", thread).fetchone()
            if row is not None:
                known[thread] = row[0]
            else:
                row = (self._threads.assign(connection, thread), *thread)
                connection.execute("INSERT INTO threads VALUES (?, ?, ?)", row)

    def _store_values(self, connection: sqlite3.Connection, values: dict[bytes, bytes]) -> None:
        texts = self._texts
        find: FindText | None = None if texts is None else lambda text: texts.find(connection, text)
        self._values.store(connection, values, lambda hash_: (encode_value(values[hash_], find),))

    def _store_lists(self, connection: sqlite3.Connection, puts: Iterable[Put]) -> None:
        chains = [
            part
            for put in puts
            for content in put.values.values()
            for part in iterate_parts(content)
            if type(part) is Chain
        ]
        by_hash = {chain.hash: chain for chain in chains}
        self._lists.find(connection, [chain.prefix for chain in chains if chain.prefix is not None])
        self._lists.store(connection, by_hash, lambda hash_: self._build_list_columns(by_hash[hash_]))

    def _build_list_columns(self, chain: Chain) -> tuple[int | None, str]:
        prefix = None
        if chain.prefix is not None and (prefix := self._lists.known.get(chain.prefix)) is None:
            raise UnknownPrefixError(chain.prefix.hex())
        return prefix, self._encode_elements(chain.added)

    def _encode_elements(self, elements: Iterable[Value]) -> str:
        """Return list elements as JSON: ids of values, or short values in brackets."""
        return f"[{','.join(map(self._encode_element, elements))}]"

    def _encode_element(self, element: Value) -> str:
        return str(self._values.known[element.hash]) if type(element) is Large else f"[{_encode_short_value(element)}]"

    def _build_checkpoint_rows(self, connection: sqlite3.Connection, puts: Collection[Put]) -> list[tuple[object, ...]]:
        frames = [(put.frame.hash, put.frame) for put in puts]
        by_hash = dict(frames)
        self._frames.store(connection, by_hash, by_hash.__getitem__)
        return [self._build_checkpoint_row(put, hash_) for put, (hash_, _) in zip(puts, frames, strict=True)]

    def _build_checkpoint_row(self, put: Put, frame: bytes) -> tuple[object, ...]:
        self._has_writes.setdefault(put.key, False)
        channels = ",".join(map(self._encode_content, put.values.values()))
        thread, id_ = put.key
        return self._threads.known[thread], id_, put.parent, put.time, self._frames.known[frame], f"[{channels}]"

    def _encode_content(self, content: ChannelContent) -> str:
        """Return, as JSON, a channel's value in its stored form: a value, a list, or the fields of a graph's input."""
        if type(content) is Chain:
            return f'{{"list":{self._lists.known[content.hash]}}}'
        if type(content) is dict:
            fields = (f"{encode_json(name)}:{self._encode_content(part)}" for name, part in content.items())
            return f'{{"fields":{{{",".join(fields)}}}}}'
        return self._encode_element(content)  # type: ignore[arg-type]

    def _delete_superseded(self, connection: sqlite3.Connection, put: Put) -> None:
        """Delete pending writes that a checkpoint now includes."""
        if put.parent is None:
            return
        parent = (put.key[0], put.parent)
        if not self._has_writes.get(parent, True):
            return
        placeholders = ", ".join("?" * len(put.replayed))
        connection.execute(
            f"DELETE FROM pending_writes WHERE thread = ? AND checkpoint = ? AND channel NOT IN ({placeholders})",
            (self._threads.known[put.key[0]], put.parent, *put.replayed),
        )
        if not put.replayed:
            self._has_writes[parent] = False

    def _insert_writes(self, connection: sqlite3.Connection, writes: _Writes) -> None:
        rows: dict[bool, list[tuple[object, ...]]] = {False: [], True: []}
        for key, of_checkpoint in writes.items():
            self._has_writes[key] = True
            place = (self._threads.known[key[0]], key[1])
            for of, write in of_checkpoint.values():
                row = (*place, of.task, write.position, of.path, write.channel, self._encode_write(write.value))
                rows[of.replaces].append(row)
        for replaces, verb in ((False, "IGNORE"), (True, "REPLACE")):
            insert_rows(connection, f"INSERT OR {verb} INTO pending_writes", 7, rows[replaces])

    def _encode_write(self, value: Packed) -> str:
        if isinstance(value, list):
            return f'["items",{self._encode_elements(value)}]'
        if isinstance(value, Large):
            return f'["value",{self._values.known[value.hash]}]'
        return f'["is",{_encode_short_value(value)}]'


_encode_short_value = lru_cache(maxsize=4096)(encode_value)


def _merge_items(items: Iterable[Put | PutWrites]) -> tuple[dict[Key, Put], _Writes]:
    """Merge items: later items replace earlier ones, and a checkpoint replaces the writes that led to it."""
    puts: dict[Key, Put] = {}
    pending: dict[Key, list[PutWrites]] = {}
    for item in items:
        if type(item) is PutWrites:
            pending.setdefault(item.key, []).append(item)
            continue
        assert isinstance(item, Put)
        puts[item.key] = item
        if item.parent is not None and (superseded := pending.pop((item.key[0], item.parent), None)) and item.replayed:
            pending[item.key[0], item.parent] = [
                each._replace(writes=[write for write in each.writes if write.channel in item.replayed])
                for each in superseded
            ]
    return puts, {key: _select_writes(of_checkpoint) for key, of_checkpoint in pending.items()}


def _select_writes(items: Iterable[PutWrites]) -> dict[tuple[str, int], _Write]:
    """Return a checkpoint's writes by task and position; the first one counts, unless a later one may replace it."""
    writes: dict[tuple[str, int], _Write] = {}
    for item in items:
        for write in item.writes:
            place = (item.task, write.position)
            if item.replaces or place not in writes:
                writes[place] = (item, write)
    return writes


def _collect_values(puts: Iterable[Put], writes: Iterable[dict[tuple[str, int], _Write]]) -> dict[bytes, bytes]:
    """Return the values that get rows of their own, by their hashes."""
    found: dict[bytes, bytes] = {}
    for put in puts:
        for content in put.values.values():
            for part in iterate_parts(content):
                if type(part) is Large:
                    found[part.hash] = part.body
                elif type(part) is Chain:
                    _add_large(found, part.added)
    for of_checkpoint in writes:
        for _, write in of_checkpoint.values():
            _add_large(found, write.value if isinstance(write.value, list) else [write.value])
    return found


def _add_large(found: dict[bytes, bytes], values: Iterable[Value]) -> None:
    for value in values:
        if type(value) is Large:
            found[value.hash] = value.body
