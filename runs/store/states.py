"""Reading the state that a conversation has come to, without playing it."""

from __future__ import annotations

import sqlite3
from typing import Any


def read_state(connection: sqlite3.Connection, thread: str) -> dict[str, Any]:
    """The values of the graph's channels at a thread's latest checkpoint; nothing if it has none."""
    from .checkpoints.reading import CheckpointReader  # slow to import, and what is finished needs no checkpoint

    found = CheckpointReader(connection).get({"configurable": {"thread_id": thread}})
    return {} if found is None else dict(found.checkpoint["channel_values"])
