"""The step from version 5 of the layout to version 6: the same rows in less room, behind views that show them whole."""

from __future__ import annotations

import sqlite3

from . import views
from .composed import Sources
from .kinds import CallKind, CallKinds
from .schema import CALLS, JUDGEMENTS
from .texts import row_of
from .views import PER_SECOND


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


_KIND = ", ".join(CallKind._fields)
_PLACE = ", ".join(CallKind._fields[:6])
_CALL = """key, scenario, seed, messages, reply, reasoning, error, finish_reason, input_tokens, output_tokens,
cached_tokens, cost, attempts, replays, branch"""


def _move_calls(connection: sqlite3.Connection) -> None:
    """What calls have in common stands in their kind."""
    for index in ("idx_calls_scenario", "calls_replayable"):
        connection.execute(f"DROP INDEX {index}")
    for statement in CALLS:
        connection.execute(statement)
    kinds = CallKinds()
    insert = f"INSERT INTO kept_calls (id, kind, latency, {_CALL}) VALUES ({', '.join('?' * 18)})"
    query = f"SELECT id, latency, {_KIND}, {_CALL} FROM calls ORDER BY id"
    for id_, latency, *rest in connection.execute(query):
        kind = kinds.id_of(connection, CallKind(*rest[: len(CallKind._fields)]))
        tenths = None if latency is None else round(latency * PER_SECOND)
        connection.execute(insert, (id_, kind, tenths, *rest[len(CallKind._fields) :]))
    connection.execute("DROP TABLE calls")


def _move_uses(connection: sqlite3.Connection) -> None:
    """Likewise the places where common calls were used."""
    kinds = CallKinds()
    insert = "INSERT INTO kept_uses (scenario, branch, key, kind) VALUES (?, ?, ?, ?)"
    for *use, judging, node, step, ordinal, ask, sample in connection.execute(
        f"SELECT scenario, branch, key, {_PLACE} FROM common_uses ORDER BY rowid"
    ):
        kind = CallKind(judging, node, step, ordinal, ask, sample)
        connection.execute(insert, (*use, kinds.id_of(connection, kind)))
    connection.execute("DROP TABLE common_uses")
