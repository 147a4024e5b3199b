"""Bringing a run's file up to the present layout: each step in one transaction with its own record.

A later version adds a step: a function that takes a file of the version before to the next, in a transaction that is
open already (sqlite-utils would commit it).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

Step = Callable[[sqlite3.Connection], None]
"""Changes a file's tables and rows from one version to the next."""


def _add_passages(connection: sqlite3.Connection) -> None:
    """Long lists of messages consist of passages; those that are in the file stay as they are."""
    connection.execute("CREATE TABLE passages (id INTEGER PRIMARY KEY, hash BLOB, messages TEXT)")
    connection.execute("CREATE UNIQUE INDEX idx_passages_hash ON passages (hash)")


def _add_common_uses(connection: sqlite3.Connection) -> None:
    """Some calls belong to no scenario; no file has one yet."""
    connection.execute(
        "CREATE TABLE common_uses (place BLOB PRIMARY KEY, scenario INTEGER, sample INTEGER, judging TEXT, "
        "branch TEXT, node TEXT, step INTEGER, ordinal INTEGER, ask INTEGER, key BLOB)"
    )
    for column in ("scenario", "key"):
        connection.execute(f"CREATE INDEX idx_common_uses_{column} ON common_uses ({column})")


def _add_faults(connection: sqlite3.Connection) -> None:
    """Outcomes get faults; those of a run that is older than the gate are unknown until it is asked."""
    connection.execute("ALTER TABLE outcomes ADD COLUMN faults TEXT")


def _make_smaller(connection: sqlite3.Connection) -> None:
    """What checkpoints have in common stands once, and a use of a common call has no hash of its place."""
    from .checkpoints.older import frame_checkpoints  # here, as LangGraph comes with the package

    frame_checkpoints(connection)
    for column in ("scenario", "key"):
        connection.execute(f"DROP INDEX idx_common_uses_{column}")
    columns = "scenario INTEGER, sample INTEGER, judging TEXT, branch TEXT, node TEXT, step INTEGER, ordinal INTEGER, "
    connection.execute(f"CREATE TABLE smaller_uses ({columns} ask INTEGER, key BLOB)")
    connection.execute(
        "INSERT INTO smaller_uses SELECT scenario, sample, judging, branch, node, step, ordinal, ask, key "
        "FROM common_uses"
    )
    connection.execute("DROP TABLE common_uses")
    connection.execute("ALTER TABLE smaller_uses RENAME TO common_uses")
    for column in ("scenario", "key"):
        connection.execute(f"CREATE INDEX idx_common_uses_{column} ON common_uses ({column})")


def _keep_in_less_room(connection: sqlite3.Connection) -> None:
    """Texts that repeat earlier ones are kept in parts, and views show them whole."""
    from .from_five import keep_in_less_room  # here, as few files need it

    keep_in_less_room(connection)


def _let_documents_be_deflated(_: sqlite3.Connection) -> None:
    """New documents are; those that are in the file stay text, as rewriting would take room before it gives any."""


def _add_own_set(connection: sqlite3.Connection) -> None:
    """Add the run's own set of judgements to a planned run without it; workers made judgements that had none."""
    connection.execute(
        "INSERT OR IGNORE INTO judgement_sets (rowid, name, models, prompts) "
        "SELECT (SELECT coalesce(min(rowid), 1) - 1 FROM judgement_sets), 'run', '{}', '{}' "
        "FROM run WHERE key = 'planned'"
    )


STEPS: dict[int, Step] = {
    1: _add_passages,
    2: _add_common_uses,
    3: _add_faults,
    4: _make_smaller,
    5: _keep_in_less_room,
    6: _let_documents_be_deflated,
    7: _add_own_set,
}
"""The steps, each under the version that it starts from."""


def migrate(connection: sqlite3.Connection, steps: Mapping[int, Step] = STEPS) -> int:
    """Take a file through the steps from its version on, as far as they lead; returns the version that it has then.

    A step that raises is undone, and what was done before it stays.

    Args:
        connection: In autocommit mode, with the file's lock held.
        steps: Each under the version that it starts from.
    """
    version = version_of(connection)
    while (step := steps.get(version)) is not None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        version += 1
    return version


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a file's layout."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
