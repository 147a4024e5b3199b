"""Helpers for the tests of the checkpoint saver."""

from __future__ import annotations

import sqlite3
from itertools import count as count_from
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.base.id import uuid6

from dialoom.runs.store.checkpoints import RunSaver


def place(thread: str, checkpoint: str | None = None, namespace: str = "") -> RunnableConfig:
    """Return a configuration that names a thread and optionally a checkpoint."""
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


_VERSIONS = count_from(1000)  # beyond those that tests choose


def checkpoint_of(values: dict[str, Any], version: int | None = None) -> Checkpoint:
    """Return a checkpoint with these channels, all of one version, by default a new one."""
    version = version or next(_VERSIONS)
    return Checkpoint(
        v=4,
        id=str(uuid6(clock_seq=1)),
        ts="2026-01-01T00:00:00+00:00",
        channel_values=values,
        channel_versions=dict.fromkeys(values, version),
        versions_seen={},
        updated_channels=None,
    )


def put(
    saver: RunSaver, thread: str, values: dict[str, Any], parent: str | None = None, version: int | None = None
) -> str:
    """Store values as a checkpoint; returns its id."""
    checkpoint = checkpoint_of(values, version)
    saver.put(place(thread, parent), checkpoint, {"source": "loop", "step": 0, "parents": {}}, {})
    return checkpoint["id"]


def values_of(saver: RunSaver, thread: str, checkpoint: str | None = None) -> dict[str, Any]:
    """Return the channels of a checkpoint, or of the latest."""
    found = saver.get_tuple(place(thread, checkpoint))
    assert found is not None
    return found.checkpoint["channel_values"]


def rows(path: Path, query: str) -> list[Any]:
    """Return the rows that another connection reads."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def count(path: Path, table: str) -> int:
    """Return the number of rows in a table."""
    return int(rows(path, f"SELECT count(*) FROM {table}")[0][0])
