"""The step from version 5 of the layout to version 6: the same rows in less room, behind views that show them whole."""

from __future__ import annotations

import sqlite3

from . import views
from .composed import Sources
from .schema import JUDGEMENTS
from .texts import row_of


def keep_in_less_room(connection: sqlite3.Connection) -> None:
    """Move what is there. Within a transaction that is open."""
    _move_texts(connection)
    _move_judgements(connection)
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
