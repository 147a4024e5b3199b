"""Bringing a run's file up to the present layout: each step in one transaction with its own record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping

from sqlite_utils import Database

from . import schema
from .texts import Texts


def migrate(connection: sqlite3.Connection) -> None:
    """Take the file through all steps from its version to `schema.SCHEMA_VERSION`.

    Args:
        connection: In autocommit mode, with the file's lock held.
    """
    while (version := connection.execute("PRAGMA user_version").fetchone()[0]) < schema.SCHEMA_VERSION:
        connection.execute("BEGIN IMMEDIATE")
        try:
            STEPS[version](connection)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _texts_once(connection: sqlite3.Connection) -> None:
    """1 to 2: every text once (requests, replies, outcomes), checkpoints by content.

    Old checkpoints are dropped: begun scenarios start again, and the ledger answers every call that they had made.
    """
    old_calls = connection.execute("SELECT * FROM calls ORDER BY id")
    names = [column[0] for column in old_calls.description]
    calls = [dict(zip(names, row, strict=True)) for row in old_calls]
    messages = {id_: (role, text) for id_, role, text in connection.execute("SELECT id, role, content FROM messages")}
    for table in ("calls", "messages", "checkpoints", "writes"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    database = Database(connection)
    schema.create_calls(database)
    schema.create_checkpoints(database)
    texts = Texts()
    for call in calls:
        request = [messages[id_] for id_ in json.loads(call["messages"])]
        call["messages"] = json.dumps([(role, texts.id_of(connection, text)) for role, text in request])
        call["key"] = call["key"][:16]
        call["reply"] = None if call["reply"] is None else texts.id_of(connection, call["reply"])
        del call["prompt_hash"]
        marks = ", ".join("?" * len(call))
        connection.execute(f"INSERT INTO calls ({', '.join(call)}) VALUES ({marks})", tuple(call.values()))
    for scenario, lines in connection.execute("SELECT scenario, messages FROM outcomes").fetchall():
        kept = json.dumps([(role, texts.id_of(connection, text)) for role, text in json.loads(lines)])
        connection.execute("UPDATE outcomes SET messages = ? WHERE scenario = ?", (kept, scenario))


def _details(connection: sqlite3.Connection) -> None:
    """2 to 3: outcomes may hold details of a recipe's own."""
    connection.execute("ALTER TABLE outcomes ADD COLUMN details TEXT")


def _attempts(connection: sqlite3.Connection) -> None:
    """3 to 4: failed attempts have rows of their own, and replies may have reasoning."""
    if "reasoning" not in Database(connection).table("calls").columns_dict:  # step 1 to 2 makes today's tables
        connection.execute("ALTER TABLE calls ADD COLUMN reasoning INTEGER")
        schema.create_attempts(Database(connection))


def _samples(connection: sqlite3.Connection) -> None:
    """4 to 5: scenarios can be played anew and judgements made again, with replies of their own."""
    for column in ("sample", "take"):
        connection.execute(f"ALTER TABLE scenarios ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    schema.create_rejudgings(Database(connection))


def _branches(connection: sqlite3.Connection) -> None:
    """5 to 6: scenarios have branches, made step by step."""
    for table in ("scenarios", "calls"):
        if "branch" not in Database(connection).table(table).columns_dict:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN branch TEXT")
    schema.create_branches(Database(connection))


STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    1: _texts_once,
    2: _details,
    3: _attempts,
    4: _samples,
    5: _branches,
}
