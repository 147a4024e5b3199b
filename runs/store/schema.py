"""The tables of a run file, and the views that combine them for readers. `docs/store.md` describes both."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sqlite_utils import Database


_PLACE = "(SELECT place.atom FROM json_each(part.value) AS place WHERE place.key = {})"
"""The SQL expression for one field of a span: the text's id, the offset, or the length in characters."""

_TEXTS = f"""
CREATE VIEW texts AS
SELECT id, hash, iif(parts IS NULL, content, (
    -- A part that is not there makes the whole unknown, and not a text with a hole.
    SELECT iif(count(*) = count(piece), group_concat(piece, ''), NULL) FROM (
        SELECT CASE part.type
            WHEN 'text' THEN part.atom
            WHEN 'integer' THEN (SELECT whole.content FROM kept_texts AS whole WHERE whole.id = part.atom)
            ELSE (
                SELECT substr(whole.content, 1 + {_PLACE.format(1)}, {_PLACE.format(2)})
                FROM kept_texts AS whole WHERE whole.id = {_PLACE.format(0)}
            )
        END AS piece FROM json_each(kept_texts.parts) AS part ORDER BY part.id
    )
)) AS content
FROM kept_texts
"""
"""The view of texts. With `trusted_schema` off, SQLite allows json_each in views, but not json_extract."""

_CALLS = """
CREATE VIEW calls AS
SELECT kept_calls.id AS id, key, scenario, judging, node, step, ordinal, ask, sample, role, model, prompt, temperature,
    seed, messages, reply, reasoning, error, finish_reason, input_tokens, output_tokens, cached_tokens, cost, attempts,
    latency, replays, branch, uid, changes, reasoning_tokens
FROM kept_calls LEFT JOIN kinds ON kinds.id = kept_calls.kind
"""

VIEWS: dict[str, str] = {
    "texts": _TEXTS.strip(),
    "calls": _CALLS.strip(),
}
"""The definitions of the views, by name."""


def create_views(connection: sqlite3.Connection) -> None:
    """Create the views."""
    for definition in VIEWS.values():
        connection.execute(definition)


APPLICATION_ID = 0x6469616C  # "dial": the application id that identifies a run among SQLite files
SCHEMA_VERSION = 1
"""The version of the schema below. Files of other versions are refused; migrations begin with the first release."""

TABLES = frozenset(
    "run prompts notes judgement_sets documents scenarios outcomes judged judgements rejudgings branches "
    "step_calls kept_texts passages kinds kept_calls common_uses player_states attempts threads checkpoints "
    "checkpoint_frames checkpoint_values checkpoint_lists pending_writes".split()
)
"""The tables that `create` creates; views are not included."""


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
    input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, cost FLOAT, attempts INTEGER, latency FLOAT,
    replays INTEGER NOT NULL DEFAULT 0, branch TEXT, uid BLOB, changes INTEGER, reasoning_tokens INTEGER
)""",
    "CREATE INDEX idx_kept_calls_scenario ON kept_calls (scenario)",
    "CREATE UNIQUE INDEX calls_replayable ON kept_calls (key) WHERE reply IS NOT NULL",
    "CREATE UNIQUE INDEX calls_common ON kept_calls (uid) WHERE uid IS NOT NULL",
    # The places where the replies to common calls, which belong to no scenario, are used.
    """
CREATE TABLE common_uses (
    scenario INTEGER, sample INTEGER, judging TEXT, branch TEXT, node TEXT, step INTEGER, ordinal INTEGER, ask INTEGER,
    key BLOB
)""",
    "CREATE INDEX idx_common_uses_scenario ON common_uses (scenario)",
    "CREATE INDEX idx_common_uses_key ON common_uses (key)",
    # The states of stateful players after their replies, by player (a hash of role and model) and by conversation so
    # far (another hash). `key` is the key of the call. Branches may have equal conversations and different states.
    """
CREATE TABLE player_states (
    id INTEGER PRIMARY KEY, scenario INTEGER, sample INTEGER, player BLOB, mark BLOB, key BLOB, state BLOB,
    UNIQUE (key, scenario)
)""",
    "CREATE INDEX idx_player_states_mark ON player_states (scenario, player, mark)",
)
"""The ledger's own tables."""

JUDGEMENTS = """
CREATE TABLE judgements (
    scenario INTEGER, judging TEXT, ordinal INTEGER, metric TEXT, target TEXT, turn INTEGER, score FLOAT,
    is_verdict INTEGER, status TEXT, explanation TEXT, PRIMARY KEY (scenario, judging, ordinal)
) WITHOUT ROWID"""
"""The table has no other index: judgements are only looked up by their key, and an id would take much space."""


def database_of(connection: sqlite3.Connection) -> Database:
    """Return a connection as a database of sqlite-utils, which defines tables.

    If pandas and numpy are installed, sqlite-utils imports them for columns with their types, which are not used here.
    The imports would take a sixth of the time until a run's first call, and 90 MB.
    """
    with _not_importable("pandas"), _not_importable("numpy"):
        from sqlite_utils import Database
    return Database(connection)


@contextmanager
def _not_importable(name: str) -> Iterator[None]:
    """Make imports of a module fail within the block, unless the module has been imported already."""
    modules = cast(dict[str, Any], sys.modules)
    if name in modules:
        yield
        return
    modules[name] = None  # the entry with which Python marks a module that cannot be imported
    try:
        yield
    finally:
        del modules[name]


def create(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database."""
    database = database_of(connection)
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
    """Create the tables of the run itself: its configuration, prompts, notes and sets of judgements."""
    database.table("run").create({"key": str, "value": str}, pk="key")
    database.table("prompts").create({"id": str, "version": int, "role": str, "hash": str, "source": str}, pk="id")
    database.table("notes").create({"id": int, "text": str}, pk="id")
    database.table("judgement_sets").create({"name": str, "models": str, "prompts": str}, pk="name")


def _scenarios(database: Database) -> None:
    """Create the tables of the plan and its results. Other tables refer to scenarios by `position` in the plan."""
    database.table("documents").create({"hash": bytes, "content": str}, pk="hash")
    database.table("scenarios").create(
        {
            "position": int,
            "id": str,
            "trial": int,
            "facets": str,
            "content": str,
            "state": str,
            "fault": str,
            "error": str,
            "sample": int,
            "take": int,
            "branch": str,
            "after": int,
            "session": int,
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
    # Finished scenarios whose unparsed judgements are repeated, with the sample number of the repetition.
    database.table("rejudgings").create(
        {"scenario": int, "judging": str, "sample": int, "state": str}, pk=("scenario", "judging")
    )


def _branches(database: Database) -> None:
    """Create the tables of the step debugger: branches of scenarios, and the calls that led to each checkpoint."""
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
    """Create the ledger's tables: calls, the texts and passages of their requests, and failed attempts.

    A successful attempt is recorded in the call's own row.
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
    """Create the table of passages, of which long message lists consist."""
    database.table("passages").create({"id": int, "hash": bytes, "messages": str}, pk="id")
    database.table("passages").create_index(["hash"], unique=True)


def _checkpoints(database: Database) -> None:
    from .checkpoints.upkeep import (
        create_tables,
    )  # imported here, because the package imports LangGraph, which readers do not need

    create_tables(database)


def insert_row(connection: sqlite3.Connection, table: str, row: Mapping[str, Any], otherwise: str = "") -> int:
    """Insert a row, given as values by column, and return its id."""
    statement = f"INSERT {otherwise} INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    return int(connection.execute(statement, list(row.values())).lastrowid or 0)
