"""The tables of a run's file. sqlite-utils defines them; `docs/store.md` explains them to readers.

The checkpoints' tables are defined beside the saver that uses them, in `checkpoints/tables.py`.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from .views import create_views

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = 0x6469616C  # "dial": the mark by which a run is told from any other SQLite file
SCHEMA_VERSION = 1
"""The version of the layout below. A file of another version is refused; migrations begin with the first release."""

TABLES = frozenset(
    "run prompts notes judgement_sets documents scenarios outcomes judged judgements rejudgings branches "
    "step_calls kept_texts passages kinds kept_calls kept_uses attempts threads checkpoints checkpoint_frames "
    "checkpoint_values checkpoint_lists pending_writes".split()
)
"""The tables that `create` makes, besides the views over them."""


CALLS = (
    """
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    judging TEXT, node TEXT, step INTEGER, ordinal INTEGER, ask INTEGER, sample INTEGER,
    role TEXT, model TEXT, prompt TEXT, temperature FLOAT
)""",
    "CREATE INDEX idx_kinds_place ON kinds (node, step, ordinal)",
    """
CREATE TABLE kept_calls (
    id INTEGER PRIMARY KEY, key BLOB,
    scenario INTEGER, kind INTEGER, seed INTEGER, messages TEXT,
    reply INTEGER, reasoning INTEGER, error TEXT, finish_reason TEXT,
    input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, cost FLOAT, attempts INTEGER, latency INTEGER,
    replays INTEGER NOT NULL DEFAULT 0, branch TEXT
)""",
    "CREATE INDEX idx_kept_calls_scenario ON kept_calls (scenario)",
    "CREATE UNIQUE INDEX calls_replayable ON kept_calls (key) WHERE reply IS NOT NULL",
    # Where the replies of calls are used that belong to no scenario.
    "CREATE TABLE kept_uses (scenario INTEGER, kind INTEGER, branch TEXT, key BLOB)",
    "CREATE INDEX idx_kept_uses_scenario ON kept_uses (scenario)",
    "CREATE INDEX idx_kept_uses_key ON kept_uses (key)",
)
"""The ledger's own."""

JUDGEMENTS = """
CREATE TABLE judgements (
    scenario INTEGER, judging TEXT, ordinal INTEGER, metric TEXT, target TEXT, turn INTEGER, score FLOAT,
    is_verdict INTEGER, status TEXT, explanation TEXT, PRIMARY KEY (scenario, judging, ordinal)
) WITHOUT ROWID"""
"""They are looked for by nothing else, and a key of its own for each would take as much room as the verdict."""


def create(connection: sqlite3.Connection) -> None:
    """Make all tables in an empty database."""
    from sqlite_utils import Database  # slow to import where pandas is installed, and only new files need it

    database = Database(connection)
    with connection:
        _configuration(database)
        _scenarios(database)
        _branches(database)
        _calls(database)
        _checkpoints(database)
        create_views(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _configuration(database: Database) -> None:
    """The run itself: what it was told, its prompts, and the sets of judgements."""
    database.table("run").create({"key": str, "value": str}, pk="key")
    database.table("prompts").create({"id": str, "version": int, "role": str, "hash": str, "source": str}, pk="id")
    database.table("notes").create({"id": int, "text": str}, pk="id")
    database.table("judgement_sets").create({"name": str, "models": str, "prompts": str}, pk="name")


def _scenarios(database: Database) -> None:
    """The plan and what came of it; `position` is the place in the plan and the key that other tables use."""
    database.table("documents").create({"hash": bytes, "content": str}, pk="hash")
    database.table("scenarios").create(
        {
            "position": int,
            "id": str,
            "facets": str,
            "content": str,
            "state": str,
            "fault": str,
            "error": str,
            "sample": int,
            "take": int,
            "branch": str,
        },
        pk="position",
        not_null={"id", "facets", "content", "state", "sample", "take"},
        defaults={"state": "pending", "sample": 0, "take": 0},
    )
    database.table("scenarios").create_index(["id"], unique=True)
    database.table("scenarios").create_index(["state", "position"])
    database.table("outcomes").create(
        {
            "scenario": int,
            "ended_by": str,
            "counts": str,
            "messages": str,
            "details": str,
            "faults": str,
            "languages": str,
        },
        pk="scenario",
    )
    database.table("judged").create(
        {"judging": str, "scenario": int, "state": str, "fault": str, "error": str}, pk=("judging", "scenario")
    )
    database.execute(JUDGEMENTS)
    # Finished scenarios whose unparsed judgements are made again, and with which sample.
    database.table("rejudgings").create(
        {"scenario": int, "judging": str, "sample": int, "state": str}, pk=("scenario", "judging")
    )


def _branches(database: Database) -> None:
    """What the step debugger keeps: branches of scenarios, and which calls led to which checkpoint."""
    database.table("branches").create(
        {
            "scenario": int,
            "name": str,
            "thread": str,
            "head": str,
            "sample": int,
            "models": str,
            "origin": str,
        },
        pk=("scenario", "name"),
    )
    database.table("step_calls").create(
        {"scenario": int, "checkpoint": str, "number": int, "node": str, "key": bytes, "is_edited": int},
        pk=("scenario", "checkpoint", "number"),
    )


def _calls(database: Database) -> None:
    """The ledger: calls, each text and each passage of their requests once, and attempts that failed.

    The attempt that was answered is the call's own row.
    """
    database.table("kept_texts").create({"id": int, "hash": int, "content": str, "parts": str}, pk="id")
    database.table("kept_texts").create_index(["hash"])
    create_passages(database)
    for statement in CALLS:
        database.execute(statement)
    database.table("attempts").create(
        {"call": int, "number": int, "latency": float, "error": str, "retry_after": float}, pk=("call", "number")
    )


def create_passages(database: Database) -> None:
    """The table of the passages that long lists of messages consist of."""
    database.table("passages").create({"id": int, "hash": bytes, "messages": str}, pk="id")
    database.table("passages").create_index(["hash"], unique=True)


def _checkpoints(database: Database) -> None:
    from .checkpoints.tables import create_tables  # here, as LangGraph comes with the package, and readers do without

    create_tables(database)
