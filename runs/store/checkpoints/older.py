"""Bringing checkpoints of an older layout up to date, in which each row had the whole of its frame."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from .items import time_column
from .values import digest, json_text

_TABLES = (
    "ALTER TABLE checkpoints RENAME TO older_checkpoints",
    "DROP INDEX idx_checkpoints_thread_id",
    "CREATE TABLE checkpoints (number INTEGER PRIMARY KEY, thread INTEGER, id BLOB, parent BLOB, time INTEGER, "
    "frame INTEGER, held TEXT)",
    "CREATE UNIQUE INDEX idx_checkpoints_thread_id ON checkpoints (thread, id)",
    "CREATE TABLE checkpoint_frames (id INTEGER PRIMARY KEY, hash BLOB, format INTEGER, channels TEXT, seen TEXT, "
    "updated TEXT, metadata TEXT)",
    "CREATE UNIQUE INDEX idx_checkpoint_frames_hash ON checkpoint_frames (hash)",
)
_OLDER = """
SELECT number, thread, id, parent, time, channels, format, seen, updated, metadata
FROM older_checkpoints ORDER BY number"""


def is_older(connection: sqlite3.Connection) -> bool:
    """Whether a file's checkpoints have that layout."""
    return any(name == "channels" for _, name, *_ in connection.execute("PRAGMA table_info(checkpoints)"))


def frame_checkpoints(connection: sqlite3.Connection) -> None:
    """Move what checkpoints have in common into frames. Within a transaction that is open."""
    for statement in _TABLES:
        connection.execute(statement)
    frames: dict[bytes, int] = {}
    for row, frame in _rows(connection):
        hash_ = digest("\0".join(map(str, frame)).encode())
        if hash_ not in frames:
            frames[hash_] = len(frames) + 1
            insert = "INSERT INTO checkpoint_frames VALUES (?, ?, ?, ?, ?, ?, ?)"
            connection.execute(insert, (frames[hash_], hash_, *frame))
        *placed, held = row
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", (*placed, frames[hash_], held))
    connection.execute("DROP TABLE older_checkpoints")


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The columns of each checkpoint that are its own, and those of its frame."""
    for number, thread, id_, parent, time, channels, *rest in connection.execute(_OLDER):
        described: dict[str, list[Any]] = json.loads(channels)
        filled = {name: part for name, part in described.items() if len(part) > 1}
        versions = {name: part[0] for name, part in (filled | described).items()}
        held = [_held(part[1], part[2]) for part in filled.values()]
        format_, *others = rest
        own = (number, thread, id_, parent, time_column(time), json_text(held))
        yield own, (format_, json_text(versions), *others)


def _held(kind: str, reference: Any) -> Any:
    """What a channel held, as it is told now."""
    if kind == "fields":
        return {"fields": {name: _held(part[1], part[2]) for name, part in reference.items()}}
    return {"is": [reference], "value": reference, "list": {"list": reference}}[kind]
