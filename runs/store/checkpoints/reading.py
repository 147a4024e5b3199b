"""Reading checkpoints without blocking the writer, and a read-only saver that does so."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple, PendingWrite

from dialoom.runs.store.connections import transaction
from dialoom.runs.store.texts import make_text_reader

from .items import decode_id, decode_time, encode_id
from .memory import Id
from .values import decode_part, decode_value

K = TypeVar("K")

_FROM_CHECKPOINTS = (
    "FROM checkpoints JOIN threads ON threads.id = checkpoints.thread "
    "JOIN checkpoint_frames AS frames ON frames.id = checkpoints.frame"
)
_SELECT_NUMBERS = f"SELECT number, metadata {_FROM_CHECKPOINTS}"
_SELECT_CHECKPOINTS = (
    "SELECT checkpoints.thread, threads.name, threads.namespace, checkpoints.id, parent, time, format, channels, held, "
    f"seen, updated, metadata {_FROM_CHECKPOINTS}"
)
_MAX_LIST_SEGMENTS = 100_000
"""The maximum number of stored additions of which a list consists, more than any conversation has.

In a crafted file, lists may be circular.
"""

DECODE_CACHE = "decoded"
"""The key of a `DecodeCache` in a configuration, for a caller who reads many checkpoints and changes no value."""


@dataclass(frozen=True, slots=True)
class DecodeCache:
    """Values that checkpoints have in common, each decoded once: stored values and elements of lists, by their ids."""

    values: dict[int, Any] = field(default_factory=dict)
    lists: dict[int, Sequence[int | Sequence[Any]]] = field(default_factory=dict)


class ReadingSaver(BaseCheckpointSaver[int]):
    """A read-only saver with a connection that never blocks the writer. Several threads may use it.

    Args:
        connection: Opened with `check_same_thread=False` and not in a transaction; only this object may open
            transactions on it, and `close` closes it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._lock = threading.RLock()
        self._read_text = make_text_reader(connection)

    def close(self) -> None:
        """Close the connection for reading."""
        self._connection.close()

    def get_next_version(self, current: int | None, channel: None) -> int:  # noqa: ARG002
        """Return the next version: 1, 2, 3, ... Values are not looked up by version, so versions need not be unique."""
        return (current or 0) + 1

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration specifies, or else the thread's latest one."""
        return self.get_tuple(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration specifies, or else the thread's latest one."""
        where = _build_conditions(config, None)
        where.setdefault("threads.namespace = ?", "")
        with self._transaction():
            row = self._connection.execute(
                f"{_SELECT_CHECKPOINTS} {_build_clauses(where)} LIMIT 1", (*where.values(),)
            ).fetchone()
            return None if row is None else self._build_tuple(row, config["configurable"].get(DECODE_CACHE))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the latest first; see `list`."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the latest first, each read on demand.

        Args:
            config: Specifies the thread, and optionally the namespace and the checkpoint; `None` for all checkpoints.
            filter: Values that the metadata of the checkpoints must contain.
            before: Specifies a checkpoint; only older checkpoints match.
            limit: The maximum number of checkpoints.
        """
        where = _build_conditions(config, before)
        left = -1 if limit is None else max(limit, 0)
        with self._transaction():
            found = self._connection.execute(
                f"{_SELECT_NUMBERS} {_build_clauses(where)}", (*where.values(),)
            ).fetchall()
        for number, metadata in found:
            if left == 0:
                return
            known = json.loads(metadata) if filter else {}
            if any(known.get(key) != value for key, value in (filter or {}).items()):
                continue
            with self._transaction():
                row = self._connection.execute(f"{_SELECT_CHECKPOINTS} WHERE number = ?", (number,)).fetchone()
                found_tuple = None if row is None else self._build_tuple(row)
            if found_tuple is not None:
                left -= 1
                yield found_tuple

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the queries of a `with` block in one read transaction; other threads wait."""
        with self._lock, transaction(self._connection):
            yield

    def _build_tuple(self, row: tuple[Any, ...], decoded: DecodeCache | None = None) -> CheckpointTuple:
        thread, name, namespace, id_, parent, time, format_, channels, values, seen, updated, metadata = row
        versions: dict[str, Any] = json.loads(channels)
        versions_seen: dict[str, dict[str, Any]] = json.loads(seen)
        if not isinstance(versions_seen, dict) or not all(isinstance(each, dict) for each in versions_seen.values()):
            raise ValueError(f"versions_seen of checkpoint {decode_id(id_)} must be an object of objects")
        place = {"thread_id": name, "checkpoint_ns": namespace}
        checkpoint = Checkpoint(
            v=format_,
            ts=decode_time(time),
            id=decode_id(id_),
            channel_values=self._read_channel_values(dict(zip(versions, json.loads(values), strict=False)), decoded),
            channel_versions={channel: version for channel, version in versions.items() if version is not None},
            versions_seen=versions_seen,
            updated_channels=None if updated is None else json.loads(updated),
        )
        return CheckpointTuple(
            {"configurable": {**place, "checkpoint_id": checkpoint["id"]}},
            checkpoint,
            json.loads(metadata),
            None if parent is None else {"configurable": {**place, "checkpoint_id": decode_id(parent)}},
            [*self._read_writes(thread, id_)],
        )

    def _read_channel_values(self, stored: Mapping[str, Any], decoded: DecodeCache | None) -> dict[str, Any]:
        """Return channels' values from their stored forms: an id, a value in brackets, a list, or an input's fields."""
        found: dict[tuple[str, ...], tuple[str, Any]] = {}
        lists = {} if decoded is None else decoded.lists
        for channel, part in stored.items():
            if isinstance(part, dict) and "fields" in part:
                found |= {(channel, name): self._parse_stored(each, lists) for name, each in part["fields"].items()}
            else:
                found[channel,] = self._parse_stored(part, lists)
        values: dict[str, Any] = dict.fromkeys(stored)
        for (channel, *name), value in self._resolve(found, decoded).items():
            if name:
                values[channel] = {**(values[channel] or {}), name[0]: value}
            else:
                values[channel] = value
        return values

    def _parse_stored(
        self, part: int | Sequence[Any] | dict[str, int], lists: dict[int, Sequence[int | Sequence[Any]]]
    ) -> tuple[str, Any]:
        if isinstance(part, dict):
            return "items", self._read_elements(part["list"], lists)
        return ("value", part) if isinstance(part, int) else ("is", decode_part(part[0], self._read_text))

    def _read_elements(
        self, list_: int, lists: dict[int, Sequence[int | Sequence[Any]]]
    ) -> Sequence[int | Sequence[Any]]:
        """Return all elements of a list, beginning with the first: ids of values, or values in brackets."""
        added: list[str] = []
        at: int | None = list_
        while at is not None and at not in lists:
            if len(added) == _MAX_LIST_SEGMENTS:
                raise ValueError(f"the list {list_} contains itself")
            row = self._connection.execute(
                "SELECT prefix, elements FROM checkpoint_lists WHERE id = ?", (at,)
            ).fetchone()
            at, elements = row
            added.append(elements)
        first = () if at is None else lists[at]
        lists[list_] = [
            *first,
            *(each for elements in reversed(added) for each in decode_value(elements, self._read_text)),
        ]
        return lists[list_]

    def _read_writes(self, thread: int, checkpoint: Id) -> Sequence[PendingWrite]:
        rows = self._connection.execute(
            "SELECT task, channel, value FROM pending_writes WHERE thread = ? AND checkpoint = ? "
            "ORDER BY path, task, position",
            (thread, checkpoint),
        ).fetchall()
        values = self._resolve(
            {number: decode_value(value, self._read_text) for number, (_, _, value) in enumerate(rows)}
        )
        return [(task, channel, values[number]) for number, (task, channel, _) in enumerate(rows)]

    def _resolve(self, stored: Mapping[K, Sequence[Any]], decoded: DecodeCache | None = None) -> dict[K, Any]:
        """Return the values of stored forms, each a pair `(kind, reference)`."""
        ids = {reference for kind, reference in stored.values() if kind == "value"}
        for kind, reference in stored.values():
            if kind == "items":
                ids.update(element for element in reference if isinstance(element, int))
        if decoded is not None:
            ids -= decoded.values.keys()
        query = "SELECT id, content FROM checkpoint_values WHERE id IN (SELECT value FROM json_each(?))"
        texts = dict(self._connection.execute(query, (json.dumps(list(ids)),)).fetchall()) if ids else {}
        if decoded is not None:
            decoded.values.update({id_: decode_value(text, self._read_text) for id_, text in texts.items()})

        def value(kind: str, reference: Any) -> Any:
            """Return a value; unless they are shared, values are decoded anew because callers may change them."""
            if kind == "value":
                return decode_value(texts[reference], self._read_text) if decoded is None else decoded.values[reference]
            if kind == "items":
                return [value("value", part) if isinstance(part, int) else part[0] for part in reference]
            return reference

        return {key: value(kind, reference) for key, (kind, reference) in stored.items()}


def _build_conditions(config: RunnableConfig | None, before: RunnableConfig | None) -> dict[str, object]:
    """Return the SQL conditions with the values for their parameters."""
    where: dict[str, object] = {}
    if config is not None:
        configurable = config["configurable"]
        where["threads.name = ?"] = str(configurable["thread_id"])
        if (namespace := configurable.get("checkpoint_ns")) is not None:
            where["threads.namespace = ?"] = namespace
        if id_ := configurable.get("checkpoint_id"):
            where["checkpoints.id = ?"] = encode_id(id_)
    if before is not None and (id_ := before["configurable"].get("checkpoint_id")):
        where["checkpoints.id < ?"] = encode_id(id_)
    return where


def _build_clauses(where: Mapping[str, object]) -> str:
    return (f"WHERE {' AND '.join(where)} " if where else "") + "ORDER BY checkpoints.id DESC"
