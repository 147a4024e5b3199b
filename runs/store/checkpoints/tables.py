"""The checkpoints' tables; `docs/store.md` explains them to readers."""

from __future__ import annotations

from sqlite_utils import Database


def create_tables(database: Database) -> None:
    """Make the tables where they are missing."""
    if database.table("checkpoints").exists():
        return
    database.table("threads").create({"id": int, "name": str, "namespace": str}, pk="id", not_null={"name"})
    database.table("threads").create_index(["name", "namespace"], unique=True)
    database.table("checkpoint_values").create({"id": int, "hash": bytes, "content": str}, pk="id")
    database.table("checkpoint_values").create_index(["hash"], unique=True)
    database.table("checkpoint_lists").create({"id": int, "hash": bytes, "prefix": int, "elements": str}, pk="id")
    database.table("checkpoint_lists").create_index(["hash"], unique=True)
    database.table("checkpoints").create(
        {
            "number": int,
            "thread": int,
            "id": bytes,
            "parent": bytes,
            "time": int,
            "frame": int,
            "held": str,
        },
        pk="number",
    )
    database.table("checkpoints").create_index(["thread", "id"], unique=True)
    # What checkpoints of equal steps have in common, whatever their channels hold.
    database.table("checkpoint_frames").create(
        {"id": int, "hash": bytes, "format": int, "channels": str, "seen": str, "updated": str, "metadata": str},
        pk="id",
    )
    database.table("checkpoint_frames").create_index(["hash"], unique=True)
    database.table("pending_writes").create(
        {
            "thread": int,
            "checkpoint": bytes,
            "task": str,
            "position": int,
            "path": str,
            "channel": str,
            "value": str,
        },
        pk=("thread", "checkpoint", "task", "position"),
    )
