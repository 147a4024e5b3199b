"""Packing a scenario with all rows to which it refers, also by ids inside JSON columns."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dialoom.runs.store.ledger import LAST_STATES
from dialoom.runs.store.references import TEXT

Row: TypeAlias = dict[str, Any]

LENT = -1
"""The value of the column `attempts`, in a worker's file, for a call that is recorded in another file.

Such a call does not count as usage in the worker's file, and is not transferred back.
"""


@dataclass(slots=True)
class Transfer:
    """The rows of a transfer, by table. Ids are those of the source file until they are replaced on unpacking.

    Attributes:
        position: The scenario's place in the plan; `None` for a common call.
        lease: The number of the scenario's lease, which ensures that its result is merged only once.
        thread: The thread of its checkpoints.
        rows: The rows by table. The table `threads` has a row for each namespace.
        texts: The texts to which the rows refer, by id.
        lent: The calls that were transferred with the lease, as tuples with updated values: key, replays, branch.
    """

    position: int | None
    lease: int = 0
    thread: str = ""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    lent: list[tuple[bytes, int, str | None]] = field(default_factory=list)

    def of(self, table: str) -> list[Row]:
        """Return the rows of one table in this transfer."""
        return self.rows.get(table, [])


NewId = Callable[[int], int]
"""A function that maps an id in one file to the id in another file."""


def with_messages(column: str, text: NewId, passage: NewId) -> str:
    """Return a column of messages with the ids of passages and texts replaced."""
    return _json([_entry(entry, text, passage) for entry in json.loads(column)])


def _entry(entry: Any, text: NewId, passage: NewId) -> Any:
    if isinstance(entry, int):
        return passage(entry)
    role, *rest = entry
    return [role, *(text(part) if isinstance(part, int) else part for part in rest)]


def with_texts(column: str, text: NewId) -> str:
    """Return JSON with the ids in references to texts replaced."""
    return _json(_value(json.loads(column), text)) if f'"{TEXT}' in column else column


def with_elements(column: str, text: NewId, value: NewId, list_: NewId) -> str:
    """Return the elements of a list, or the values of a checkpoint's channels, with their ids replaced."""
    return _json([_renumbered(part, text, value, list_) for part in json.loads(column)])


def with_write(column: str, text: NewId, value: NewId, list_: NewId) -> str:
    """Return a task's write with its ids replaced."""
    kind, content = json.loads(column)
    match kind:
        case "value":
            content = _renumbered(content, text, value, list_)
        case "items":
            content = [_renumbered(part, text, value, list_) for part in content]
        case _:
            content = _value(content, text)
    return _json([kind, content])


def _renumbered(part: Any, text: NewId, value: NewId, list_: NewId) -> Any:
    if isinstance(part, int):
        return value(part)
    if isinstance(part, list):
        return [_value(part[0], text)]
    if "fields" in part:
        return {"fields": {name: _renumbered(each, text, value, list_) for name, each in part["fields"].items()}}
    return {"list": list_(part["list"])}


def _value(value: Any, text: NewId) -> Any:
    if isinstance(value, list):
        return [_value(part, text) for part in value]
    if isinstance(value, dict):
        return {
            _key(key, text): text(part) if key == TEXT and isinstance(part, int) else _value(part, text)
            for key, part in value.items()
        }
    return value


def _key(key: str, text: NewId) -> str:
    """Return a key of an object; if the key refers to a text, its id is replaced."""
    return f"{TEXT} {text(int(key[len(TEXT) :]))}" if key.startswith(f"{TEXT} ") else key


_json: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_OF_SCENARIO = ("outcomes", "judged", "judgements", "rejudgings", "common_uses")
_DOCUMENT = re.compile(r'"\$(?:doc|shared)":"([0-9a-f]{32})"')
_AT_ONCE = 500

_STATES = "SELECT * FROM player_states WHERE scenario = ?1 ORDER BY id"
_EARLIER_STATES = f"""
SELECT player_states.*, after AS scenario FROM player_states JOIN scenarios ON position = ?1
WHERE player_states.id IN ({LAST_STATES}) ORDER BY player_states.id"""
"""The players' states before a conversation, for a worker's file. They come from earlier conversations of the same
person, but all are given the position of the conversation directly before."""


def pack(connection: sqlite3.Connection, position: int, thread: str, lease: int, *, is_leased: bool) -> Transfer:
    """Pack a scenario with its calls, checkpoints and results in a file.

    Args:
        connection: A connection that reads the file.
        position: The scenario's place in the plan.
        thread: The thread of the work. Only the checkpoints of this thread are packed.
        lease: The number of the lease.
        is_leased: Whether the scenario is packed for a worker. Then the documents to which it refers are included, and
            only its calls with a reply, marked as `LENT`. Otherwise all calls that were made in this file are packed.
    """
    return _Packing(connection, Transfer(position, lease, thread)).packed(is_leased)


def pack_common(connection: sqlite3.Connection, key: bytes) -> Transfer | None:
    """Pack the answered common call with a key; `None` if the file has no such call."""
    packing = _Packing(connection, Transfer(None))
    packing.calls("key = ? AND scenario IS NULL AND reply IS NOT NULL", key)
    return packing.closed() if packing.transfer.of("calls") else None


class _Packing:
    def __init__(self, connection: sqlite3.Connection, transfer: Transfer) -> None:
        self._connection = connection
        self._texts: set[int] = set()
        self._passages: list[int] = []
        self._values: set[int] = set()
        self._lists: list[int] = []
        self.transfer = transfer

    def packed(self, is_leased: bool) -> Transfer:
        transfer = self.transfer
        transfer.rows["scenarios"] = self._rows("SELECT * FROM scenarios WHERE position = ?", transfer.position)
        for table in _OF_SCENARIO:
            transfer.rows[table] = self._rows(f"SELECT * FROM {table} WHERE scenario = ?", transfer.position)
        for outcome in transfer.of("outcomes"):
            self._messages(outcome["messages"])
            self._look(with_texts, outcome["details"] or "null")
        self._pack_calls(is_leased)
        self._checkpoints()
        transfer.rows["player_states"] = self._rows(_STATES, transfer.position)
        if is_leased:
            transfer.rows["player_states"] += self._rows(_EARLIER_STATES, transfer.position)
            transfer.rows["documents"] = list(self._documents(transfer.of("scenarios")[0]["content"]))
        return self.closed()

    def calls(self, condition: str, *values: Any) -> None:
        """Add the calls that match a condition in SQL, with their attempts."""
        found = self._rows(f"SELECT * FROM calls WHERE {condition} ORDER BY id", *values)
        for call in found:
            self._messages(call["messages"])
            self._texts.update(id_ for id_ in (call["reply"], call["reasoning"], call["changes"]) if id_ is not None)
        self.transfer.rows.setdefault("calls", []).extend(found)
        tried = self._in("SELECT * FROM attempts WHERE call IN ({})", [call["id"] for call in found])
        self.transfer.rows.setdefault("attempts", []).extend(tried)

    def closed(self) -> Transfer:
        """Return the transfer with all passages and texts that it refers to."""
        self.transfer.rows["passages"] = list(self._with_passages())
        found = self._in("SELECT id, content FROM texts WHERE id IN ({})", self._texts)
        self.transfer.texts = {row["id"]: row["content"] for row in found}
        return self.transfer

    def _pack_calls(self, is_leased: bool) -> None:
        transfer = self.transfer
        common = "scenario IS NULL AND key IN (SELECT key FROM common_uses WHERE scenario = ?)"
        if is_leased:
            self.calls("scenario = ? AND reply IS NOT NULL", transfer.position)
            self.calls(f"{common} AND reply IS NOT NULL", transfer.position)
            for call in transfer.of("calls"):
                call["attempts"] = LENT
            transfer.rows["attempts"] = []
            return
        self.calls("scenario = ? AND attempts IS NOT ?", transfer.position, LENT)
        self.calls(f"{common} AND attempts IS NOT ?", transfer.position, LENT)
        query = "SELECT key, replays, branch FROM calls WHERE scenario = ? AND attempts = ?"
        transfer.lent = [tuple(row) for row in self._connection.execute(query, (transfer.position, LENT))]

    def _checkpoints(self) -> None:
        rows = self.transfer.rows
        rows["threads"] = self._rows("SELECT * FROM threads WHERE name = ?", self.transfer.thread)
        threads = [row["id"] for row in rows["threads"]]
        rows["checkpoints"] = self._in("SELECT * FROM checkpoints WHERE thread IN ({}) ORDER BY number", threads)
        rows["pending_writes"] = self._in("SELECT * FROM pending_writes WHERE thread IN ({})", threads)
        for checkpoint in rows["checkpoints"]:
            self._look(with_elements, checkpoint["held"])
        for write in rows["pending_writes"]:
            self._look(with_write, write["value"])
        frames = {row["frame"] for row in rows["checkpoints"]}
        rows["checkpoint_frames"] = self._in("SELECT * FROM checkpoint_frames WHERE id IN ({})", frames)
        rows["checkpoint_lists"] = list(self._with_lists())
        rows["checkpoint_values"] = self._in("SELECT * FROM checkpoint_values WHERE id IN ({})", self._values)
        for value in rows["checkpoint_values"]:
            self._look(with_texts, value["content"])

    def _with_lists(self) -> Iterator[Row]:
        """Yield each list after its prefix, so that references can be replaced in one pass."""
        found: dict[int, Row] = {}
        while missing := [id_ for id_ in dict.fromkeys(self._lists) if id_ not in found]:
            self._lists = []
            for row in self._in("SELECT * FROM checkpoint_lists WHERE id IN ({})", missing):
                found[row["id"]] = row
                if row["prefix"] is not None:
                    self._lists.append(row["prefix"])
                self._look(with_elements, row["elements"])
        yield from (found[id_] for id_ in sorted(found))

    def _with_passages(self) -> Iterator[Row]:
        found: dict[int, Row] = {}
        while missing := [id_ for id_ in dict.fromkeys(self._passages) if id_ not in found]:
            self._passages = []
            for row in self._in("SELECT * FROM passages WHERE id IN ({})", missing):
                found[row["id"]] = row
                self._messages(row["messages"])
        yield from (found[id_] for id_ in sorted(found))

    def _documents(self, content: str) -> Iterator[Row]:
        """Yield the documents to which a scenario refers, directly or through other documents."""
        known: set[str] = set()
        missing = set(_DOCUMENT.findall(content))
        while missing:
            known |= missing
            rows = self._in("SELECT * FROM documents WHERE hash IN ({})", [bytes.fromhex(each) for each in missing])
            yield from rows
            missing = {each for row in rows for each in _DOCUMENT.findall(row["content"])} - known

    def _messages(self, column: str) -> None:
        with_messages(column, self._text, self._passage)

    def _look(self, walk: Callable[..., str], column: str) -> None:
        """Collect the ids of texts, passages, values and lists that occur in a column."""
        if walk is with_texts:
            walk(column, self._text)
        else:
            walk(column, self._text, self._value, self._list)

    def _text(self, id_: int) -> int:
        self._texts.add(id_)
        return id_

    def _passage(self, id_: int) -> int:
        self._passages.append(id_)
        return id_

    def _value(self, id_: int) -> int:
        self._values.add(id_)
        return id_

    def _list(self, id_: int) -> int:
        self._lists.append(id_)
        return id_

    def _rows(self, query: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _in(self, query: str, values: Iterable[Any]) -> list[Row]:
        """Return the rows of a query with any number of values in its `IN` clause."""
        items: Sequence[Any] = list(values)
        found: list[Row] = []
        for start in range(0, len(items), _AT_ONCE):
            page = items[start : start + _AT_ONCE]
            found += self._rows(query.format(",".join("?" * len(page))), *page)
        return found
