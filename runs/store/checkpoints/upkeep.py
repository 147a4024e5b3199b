"""Deletion and copying of checkpoint threads; removal of older checkpoints and unreferenced values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

_SWEEP_WRITES = """
DELETE FROM pending_writes WHERE NOT EXISTS (
    SELECT 1 FROM checkpoints WHERE thread = pending_writes.thread AND id = pending_writes.checkpoint
)
"""
_SWEEP_FRAMES = "DELETE FROM checkpoint_frames WHERE id NOT IN (SELECT frame FROM checkpoints)"
_REFERENCES = """
    held (type, value) AS (
        SELECT part.type, part.value FROM checkpoints, json_each(checkpoints.held) AS part
        UNION ALL
        SELECT field.type, field.value
        FROM checkpoints, json_each(checkpoints.held) AS part, json_each(part.value, '$.fields') AS field
        WHERE part.type = 'object'
    )
"""
_SWEEP_LISTS = f"""
DELETE FROM checkpoint_lists WHERE id NOT IN (
    WITH RECURSIVE {_REFERENCES}, live (id) AS (
        SELECT json_extract(value, '$.list') FROM held WHERE type = 'object'
        UNION
        SELECT prefix FROM live JOIN checkpoint_lists USING (id) WHERE prefix IS NOT NULL
    )
    SELECT id FROM live WHERE id IS NOT NULL
)
"""
_SWEEP_VALUES = f"""
DELETE FROM checkpoint_values WHERE id NOT IN (
    WITH {_REFERENCES}
    SELECT value FROM held WHERE type = 'integer'
    UNION ALL
    SELECT element.value FROM checkpoint_lists, json_each(elements) AS element WHERE element.type = 'integer'
    UNION ALL
    SELECT json_extract(value, '$[1]') FROM pending_writes WHERE json_extract(value, '$[0]') = 'value'
    UNION ALL
    SELECT element.value FROM pending_writes, json_each(pending_writes.value, '$[1]') AS element
    WHERE json_extract(pending_writes.value, '$[0]') = 'items' AND element.type = 'integer'
)
"""


def delete_threads(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    """Delete all checkpoints and writes of some threads. `sweep` later deletes their values."""
    of_threads = "thread IN (SELECT id FROM threads WHERE name IN (SELECT value FROM json_each(?)))"
    for table in ("checkpoints", "pending_writes"):
        connection.execute(f"DELETE FROM {table} WHERE {of_threads}", (json.dumps(names),))
    connection.execute("DELETE FROM threads WHERE name IN (SELECT value FROM json_each(?))", (json.dumps(names),))


def delete_runs(connection: sqlite3.Connection, run_ids: Sequence[str]) -> None:
    """Delete the checkpoints of LangGraph runs (one `invoke` each), and their writes."""
    query = (
        "SELECT thread, checkpoints.id, number FROM checkpoints JOIN checkpoint_frames AS frames ON frames.id = frame "
        "WHERE json_extract(metadata, '$.run_id') IN (SELECT value FROM json_each(?))"
    )
    _delete_checkpoints(connection, connection.execute(query, (json.dumps(run_ids),)).fetchall())


def copy_thread(connection: sqlite3.Connection, source: str, target: str) -> None:
    """Copy all checkpoints and writes of a thread to another thread. The values are shared."""
    if source == target:
        return
    for id_, namespace in connection.execute("SELECT id, namespace FROM threads WHERE name = ?", (source,)).fetchall():
        connection.execute("INSERT OR IGNORE INTO threads (name, namespace) VALUES (?, ?)", (target, namespace))
        (copy,) = connection.execute(
            "SELECT id FROM threads WHERE name = ? AND namespace = ?", (target, namespace)
        ).fetchone()
        connection.execute(
            "INSERT OR REPLACE INTO checkpoints (thread, id, parent, time, frame, held) "
            "SELECT ?, id, parent, time, frame, held FROM checkpoints WHERE thread = ? ORDER BY number",
            (copy, id_),
        )
        connection.execute(
            "INSERT OR REPLACE INTO pending_writes SELECT ?, checkpoint, task, position, path, channel, value "
            "FROM pending_writes WHERE thread = ?",
            (copy, id_),
        )


def keep_latest(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    """Delete all checkpoints except the latest one of each thread and namespace, together with their writes.

    Where LangGraph rebuilds a channel from the writes since its last snapshot (`DeltaChannel`), the checkpoints in
    between are kept as well.
    """
    query = "SELECT id FROM threads WHERE name IN (SELECT value FROM json_each(?))"
    for (thread,) in connection.execute(query, (json.dumps(names),)).fetchall():
        rows = connection.execute(
            "SELECT thread, checkpoints.id, number, parent, json_extract(metadata, '$.counters_since_delta_snapshot') "
            "FROM checkpoints JOIN checkpoint_frames AS frames ON frames.id = frame WHERE thread = ? "
            "ORDER BY checkpoints.id",
            (thread,),
        ).fetchall()
        by_id = {row[1]: row for row in rows}
        latest = set()
        row = rows[-1] if rows else None
        while row is not None:
            latest.add(row[1])
            row = by_id.get(row[3]) if row[4] not in (None, "{}") else None
        _delete_checkpoints(connection, [row[:3] for row in rows if row[1] not in latest])


def sweep(connection: sqlite3.Connection) -> None:
    """Delete incomplete remains of checkpoints that could not be stored, and all rows to which nothing refers."""
    connection.execute(_SWEEP_WRITES)
    connection.execute("DELETE FROM threads WHERE id NOT IN (SELECT thread FROM checkpoints)")
    connection.execute(_SWEEP_FRAMES)
    connection.execute(_SWEEP_LISTS)
    connection.execute(_SWEEP_VALUES)


def _delete_checkpoints(connection: sqlite3.Connection, rows: Sequence[tuple[int, bytes | str, int]]) -> None:
    connection.executemany(
        "DELETE FROM pending_writes WHERE thread = ? AND checkpoint = ?", [(thread, id_) for thread, id_, _ in rows]
    )
    connection.executemany("DELETE FROM checkpoints WHERE number = ?", [(number,) for _, _, number in rows])
