"""The step from version 5 of the layout to version 6: the same rows in less room, behind views that show them whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from . import views
from .composed import Sources
from .kinds import CallKinds
from .ledger import insert_call, insert_use
from .schema import CALLS, JUDGEMENTS
from .texts import row_of


def keep_in_less_room(connection: sqlite3.Connection) -> None:
    """Move what is there. Within a transaction that is open."""
    _move_texts(connection)
    _move_judgements(connection)
    _move_calls(connection)
    _move_uses(connection)
    views.create(connection)


def _move_texts(connection: sqlite3.Connection) -> None:
    """Texts that repeat earlier ones are kept in parts."""
    connection.execute("CREATE TABLE kept_texts (id INTEGER PRIMARY KEY, hash INTEGER, content TEXT, parts TEXT)")
    sources = Sources()
    insert = "INSERT INTO kept_texts VALUES (?, ?, ?, ?)"
    for id_, content in connection.execute("SELECT id, content FROM texts ORDER BY id"):
        connection.execute(insert, (id_, *row_of(id_, content, sources)))
    connection.execute("DROP TABLE texts")
    connection.execute("CREATE INDEX idx_kept_texts_hash ON kept_texts (hash)")


def _move_judgements(connection: sqlite3.Connection) -> None:
    """The key that they are found by is that of their rows."""
    connection.execute("ALTER TABLE judgements RENAME TO older_judgements")
    connection.execute(JUDGEMENTS)
    connection.execute("INSERT INTO judgements SELECT * FROM older_judgements")
    connection.execute("DROP TABLE older_judgements")


def _move_calls(connection: sqlite3.Connection) -> None:
    """What calls have in common stands in their kind."""
    for index in ("idx_calls_scenario", "calls_replayable"):
        connection.execute(f"DROP INDEX {index}")
    for statement in CALLS:
        connection.execute(statement)
    kinds = CallKinds()
    for call in _rows(connection, "calls"):
        insert_call(connection, kinds, call)
    connection.execute("DROP TABLE calls")


def _move_uses(connection: sqlite3.Connection) -> None:
    """Likewise the places where common calls were used."""
    kinds = CallKinds()
    for use in _rows(connection, "common_uses"):
        insert_use(connection, kinds, use)
    connection.execute("DROP TABLE common_uses")


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
    names = [column[0] for column in cursor.description]
    yield from (dict(zip(names, row, strict=True)) for row in cursor)
