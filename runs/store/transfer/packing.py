"""Packing a scenario with all rows to which it refers, also by ids inside JSON columns."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from dialoom.runs.store.ledger import LAST_STATE_IDS
from dialoom.runs.store.references import TEXT
from dialoom.runs.store.texts import select_in_batches

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


MapId = Callable[[int], int]
"""A function that maps an id in one file to the id in another file."""


class IdMapper(NamedTuple):
    """The functions that map the ids in columns of JSON, by what the ids refer to."""

    text: MapId
    passage: MapId
    value: MapId
    list: MapId

    def map_messages(self, column: str) -> str:
        """Return a column of messages with the ids of passages and texts replaced."""
        return _encode([self._map_entry(entry) for entry in json.loads(column)])

    def _map_entry(self, entry: Any) -> Any:
        if isinstance(entry, int):
            return self.passage(entry)
        role, *rest = entry
        return [role, *(self.text(part) if isinstance(part, int) else part for part in rest)]

    def map_texts(self, column: str) -> str:
        """Return JSON with the ids in references to texts replaced."""
        return _encode(self._map_value(json.loads(column))) if f'"{TEXT}' in column else column

    def map_elements(self, column: str) -> str:
        """Return the elements of a list, or the values of a checkpoint's channels, with their ids replaced."""
        return _encode([self._map_part(part) for part in json.loads(column)])

    def map_write(self, column: str) -> str:
        """Return a task's write with its ids replaced."""
        kind, content = json.loads(column)
        match kind:
            case "value":
                content = self._map_part(content)
            case "items":
                content = [self._map_part(part) for part in content]
            case _:
                content = self._map_value(content)
        return _encode([kind, content])

    def _map_part(self, part: Any) -> Any:
        if isinstance(part, int):
            return self.value(part)
        if isinstance(part, list):
            return [self._map_value(part[0])]
        if "fields" in part:
            return {"fields": {name: self._map_part(each) for name, each in part["fields"].items()}}
        return {"list": self.list(part["list"])}

    def _map_value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._map_value(part) for part in value]
        if isinstance(value, dict):
            return {
                self._map_key(key): self.text(part) if key == TEXT and isinstance(part, int) else self._map_value(part)
                for key, part in value.items()
            }
        return value

    def _map_key(self, key: str) -> str:
        """Return a key of an object; if the key refers to a text, its id is replaced."""
        return f"{TEXT} {self.text(int(key[len(TEXT) :]))}" if key.startswith(f"{TEXT} ") else key


_encode: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


RESULT_TABLES = ("outcomes", "judged", "judgements", "rejudgings", "common_uses")
_DOCUMENT = re.compile(r'"\$(?:doc|shared)":"([0-9a-f]{32})"')

_STATES = "SELECT * FROM player_states WHERE scenario = ?1 ORDER BY id"
_EARLIER_STATES = f"""
SELECT player_states.*, after AS scenario FROM player_states JOIN scenarios ON position = ?1
WHERE player_states.id IN ({LAST_STATE_IDS}) ORDER BY player_states.id"""
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
    return _Packer(connection, Transfer(position, lease, thread)).pack_scenario(is_leased)


def pack_common(connection: sqlite3.Connection, key: bytes) -> Transfer | None:
    """Pack the answered common call with a key; `None` if the file has no such call."""
    packer = _Packer(connection, Transfer(None))
    packer.add_calls("key = ? AND scenario IS NULL AND reply IS NOT NULL", key)
    return packer.finish() if packer.transfer.of("calls") else None


class _IdSet(dict[int, None]):
    """The ids that were found in columns, in the order in which they were first found."""

    def collect(self, id_: int) -> int:
        self[id_] = None
        return id_


class _Packer:
    def __init__(self, connection: sqlite3.Connection, transfer: Transfer) -> None:
        self._connection = connection
        self._texts, self._passages, self._values, self._lists = _IdSet(), _IdSet(), _IdSet(), _IdSet()
        self._collector = IdMapper(
            self._texts.collect, self._passages.collect, self._values.collect, self._lists.collect
        )
        self.transfer = transfer

    def pack_scenario(self, is_leased: bool) -> Transfer:
        transfer = self.transfer
        transfer.rows["scenarios"] = self._select("SELECT * FROM scenarios WHERE position = ?", transfer.position)
        for table in RESULT_TABLES:
            transfer.rows[table] = self._select(f"SELECT * FROM {table} WHERE scenario = ?", transfer.position)
        for outcome in transfer.of("outcomes"):
            self._collector.map_messages(outcome["messages"])
            self._collector.map_texts(outcome["details"] or "null")
        self._add_scenario_calls(is_leased)
        self._add_checkpoints()
        transfer.rows["player_states"] = self._select(_STATES, transfer.position)
        if is_leased:
            transfer.rows["player_states"] += self._select(_EARLIER_STATES, transfer.position)
            transfer.rows["documents"] = list(self._find_documents(transfer.of("scenarios")[0]["content"]))
        return self.finish()

    def add_calls(self, condition: str, *values: Any) -> None:
        """Add the calls that match a condition in SQL, with their attempts."""
        found = self._select(f"SELECT * FROM calls WHERE {condition} ORDER BY id", *values)
        for call in found:
            self._collector.map_messages(call["messages"])
            for id_ in (call["reply"], call["reasoning"], call["changes"]):
                if id_ is not None:
                    self._texts.collect(id_)
        self.transfer.rows.setdefault("calls", []).extend(found)
        attempts = self._select_in("SELECT * FROM attempts WHERE call IN ({})", [call["id"] for call in found])
        self.transfer.rows.setdefault("attempts", []).extend(attempts)

    def finish(self) -> Transfer:
        """Return the transfer with all passages and texts that it refers to."""
        self.transfer.rows["passages"] = self._collect_rows(
            "passages", self._passages, lambda row: self._collector.map_messages(row["messages"])
        )
        found = self._select_in("SELECT id, content FROM texts WHERE id IN ({})", self._texts)
        self.transfer.texts = {row["id"]: row["content"] for row in found}
        return self.transfer

    def _add_scenario_calls(self, is_leased: bool) -> None:
        transfer = self.transfer
        which = "reply IS NOT NULL" if is_leased else f"attempts IS NOT {LENT}"
        self.add_calls(f"scenario = ? AND {which}", transfer.position)
        common = "scenario IS NULL AND key IN (SELECT key FROM common_uses WHERE scenario = ?)"
        self.add_calls(f"{common} AND {which}", transfer.position)
        if is_leased:
            for call in transfer.of("calls"):
                call["attempts"] = LENT
            transfer.rows["attempts"] = []
        else:
            query = "SELECT key, replays, branch FROM calls WHERE scenario = ? AND attempts = ?"
            transfer.lent = [tuple(row) for row in self._connection.execute(query, (transfer.position, LENT))]

    def _add_checkpoints(self) -> None:
        rows = self.transfer.rows
        rows["threads"] = self._select("SELECT * FROM threads WHERE name = ?", self.transfer.thread)
        threads = [row["id"] for row in rows["threads"]]
        rows["checkpoints"] = self._select_in("SELECT * FROM checkpoints WHERE thread IN ({}) ORDER BY number", threads)
        rows["pending_writes"] = self._select_in("SELECT * FROM pending_writes WHERE thread IN ({})", threads)
        for checkpoint in rows["checkpoints"]:
            self._collector.map_elements(checkpoint["held"])
        for write in rows["pending_writes"]:
            self._collector.map_write(write["value"])
        frames = {row["frame"] for row in rows["checkpoints"]}
        rows["checkpoint_frames"] = self._select_in("SELECT * FROM checkpoint_frames WHERE id IN ({})", frames)
        rows["checkpoint_lists"] = self._collect_rows("checkpoint_lists", self._lists, self._collect_list)
        rows["checkpoint_values"] = self._select_in("SELECT * FROM checkpoint_values WHERE id IN ({})", self._values)
        for value in rows["checkpoint_values"]:
            self._collector.map_texts(value["content"])

    def _collect_list(self, row: Row) -> None:
        if row["prefix"] is not None:
            self._lists.collect(row["prefix"])
        self._collector.map_elements(row["elements"])

    def _collect_rows(self, table: str, ids: _IdSet, look: Callable[[Row], object]) -> list[Row]:
        """Return rows that may refer to earlier rows of their table, with these rows.

        Each row comes after those to which it refers, so that references can be replaced in one pass.

        Args:
            table: The table.
            ids: The ids that were found so far.
            look: A function that adds the ids to which a row refers.
        """
        found: dict[int, Row] = {}
        while missing := [id_ for id_ in ids if id_ not in found]:
            for row in self._select_in(f"SELECT * FROM {table} WHERE id IN ({{}})", missing):
                found[row["id"]] = row
                look(row)
        return [found[id_] for id_ in sorted(found)]

    def _find_documents(self, content: str) -> Iterator[Row]:
        """Yield the documents to which a scenario refers, directly or through other documents."""
        known: set[str] = set()
        missing = set(_DOCUMENT.findall(content))
        while missing:
            known |= missing
            rows = self._select_in(
                "SELECT * FROM documents WHERE hash IN ({})", [bytes.fromhex(each) for each in missing]
            )
            yield from rows
            missing = {each for row in rows for each in _DOCUMENT.findall(row["content"])} - known

    def _select(self, query: str, *values: Any) -> list[Row]:
        cursor = self._connection.execute(query, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _select_in(self, query: str, values: Iterable[Any]) -> list[Row]:
        """Return the rows of a query with any number of values in its `IN` clause."""
        return [dict(row) for row in select_in_batches(self._connection, query, values)]
