"""The tables of a run file, and the views that combine them for readers. `docs/store.md` describes both."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Mapping
from typing import Any, cast

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


APPLICATION_ID = 0x6469616C  # "dial": the application id that identifies a run among SQLite files
SCHEMA_VERSION = 1
"""The version of the schema below. Files of other versions are refused; migrations begin with the first release."""

CHECKPOINT_TABLES: dict[str, dict[str, Any]] = {
    "threads": {"columns": {"id": int, "name": str, "namespace": str}, "pk": "id", "not_null": {"name"}},
    "checkpoint_values": {"columns": {"id": int, "hash": bytes, "content": str}, "pk": "id"},
    "checkpoint_lists": {"columns": {"id": int, "hash": bytes, "prefix": int, "elements": str}, "pk": "id"},
    "checkpoints": {
        "columns": {
            "number": int,
            "thread": int,
            "id": bytes,
            "parent": bytes,
            "time": int,
            "frame": int,
            "held": str,
        },
        "pk": "number",
    },
    # The columns that do not depend on the channels' values, and have the same values in the checkpoints of one step in
    # different threads.
    "checkpoint_frames": {
        "columns": {
            "id": int,
            "hash": bytes,
            "format": int,
            "channels": str,
            "seen": str,
            "updated": str,
            "metadata": str,
        },
        "pk": "id",
    },
    "pending_writes": {
        "columns": {
            "thread": int,
            "checkpoint": bytes,
            "task": str,
            "position": int,
            "path": str,
            "channel": str,
            "value": str,
        },
        "pk": ("thread", "checkpoint", "task", "position"),
    },
}
"""The tables of checkpoints, as arguments for sqlite-utils."""

CHECKPOINT_INDEXES = (
    "CREATE UNIQUE INDEX idx_threads_name_namespace ON threads (name, namespace)",
    "CREATE UNIQUE INDEX idx_checkpoint_values_hash ON checkpoint_values (hash)",
    "CREATE UNIQUE INDEX idx_checkpoint_lists_hash ON checkpoint_lists (hash)",
    "CREATE UNIQUE INDEX idx_checkpoints_thread_id ON checkpoints (thread, id)",
    "CREATE UNIQUE INDEX idx_checkpoint_frames_hash ON checkpoint_frames (hash)",
)

_OF_RUNS: dict[str, dict[str, Any]] = {
    # The run itself: its configuration, prompts, notes and sets of judgements.
    "run": {"columns": {"key": str, "value": str}, "pk": "key"},
    "prompts": {"columns": {"id": str, "version": int, "role": str, "hash": str, "source": str}, "pk": "id"},
    "notes": {"columns": {"id": int, "text": str}, "pk": "id"},
    "judgement_sets": {"columns": {"name": str, "models": str, "prompts": str}, "pk": "name"},
    # The plan and its results. Other tables refer to scenarios by `position` in the plan.
    "documents": {"columns": {"hash": bytes, "content": str}, "pk": "hash"},
    "scenarios": {
        "columns": {
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
        "pk": "position",
        "not_null": {"id", "facets", "content", "state", "sample", "take"},
        "defaults": {"state": "pending", "sample": 0, "take": 0},
    },
    "outcomes": {
        "columns": {
            "scenario": int,
            "ended_by": str,
            "counts": str,
            "messages": str,
            "details": str,
            "faults": str,
            "languages": str,
        },
        "pk": "scenario",
    },
    "judged": {
        "columns": {"judging": str, "scenario": int, "state": str, "fault": str, "error": str},
        "pk": ("judging", "scenario"),
    },
    # Finished scenarios whose unparsed judgements are repeated, with the sample number of the repetition.
    "rejudgings": {
        "columns": {"scenario": int, "judging": str, "sample": int, "state": str},
        "pk": ("scenario", "judging"),
    },
    # The step debugger: branches of scenarios, and the calls that led to each checkpoint.
    "branches": {
        "columns": {
            "scenario": int,
            "name": str,
            "thread": str,
            "head": str,
            "sample": int,
            "models": str,
            "origin": str,
        },
        "pk": ("scenario", "name"),
    },
    "step_calls": {
        "columns": {"scenario": int, "checkpoint": str, "number": int, "node": str, "key": bytes, "is_edited": int},
        "pk": ("scenario", "checkpoint", "number"),
    },
    # The ledger: calls, the texts and passages of their requests (long message lists consist of passages), and failed
    # attempts. A successful attempt is recorded in the call's own row.
    "kept_texts": {"columns": {"id": int, "hash": int, "content": str, "parts": str}, "pk": "id"},
    "passages": {"columns": {"id": int, "hash": bytes, "messages": str}, "pk": "id"},
    "kinds": {
        "columns": {
            "id": int,
            "judging": str,
            "node": str,
            "step": int,
            "ordinal": int,
            "ask": int,
            "sample": int,
            "role": str,
            "model": str,
            "prompt": str,
            "temperature": float,
        },
        "pk": "id",
    },
    "kept_calls": {
        "columns": {
            "id": int,
            "key": bytes,
            "scenario": int,
            "kind": int,
            "seed": int,
            "messages": str,
            "reply": int,
            "reasoning": int,
            "error": str,
            "finish_reason": str,
            "input_tokens": int,
            "output_tokens": int,
            "cached_tokens": int,
            "cost": float,
            "attempts": int,
            "latency": float,
            "replays": int,
            "branch": str,
            "uid": bytes,
            "changes": int,
            "reasoning_tokens": int,
        },
        "pk": "id",
        "not_null": {"replays"},
        "defaults": {"replays": 0},
    },
    # The places where the replies to common calls, which belong to no scenario, are used.
    "common_uses": {
        "columns": {
            "scenario": int,
            "sample": int,
            "judging": str,
            "branch": str,
            "node": str,
            "step": int,
            "ordinal": int,
            "ask": int,
            "key": bytes,
        },
    },
    # The states of stateful players after their replies, by player (a hash of role and model) and by conversation so
    # far (another hash). `key` is the key of the call. Branches may have equal conversations and different states.
    "player_states": {
        "columns": {
            "id": int,
            "scenario": int,
            "sample": int,
            "player": bytes,
            "mark": bytes,
            "key": bytes,
            "state": bytes,
        },
        "pk": "id",
    },
    "attempts": {
        "columns": {"call": int, "number": int, "latency": float, "error": str, "retry_after": float},
        "pk": ("call", "number"),
    },
}

JUDGEMENTS = """
CREATE TABLE judgements (
    scenario INTEGER, judging TEXT, ordinal INTEGER, metric TEXT, target TEXT, turn INTEGER, score FLOAT,
    is_verdict INTEGER, status TEXT, explanation TEXT, PRIMARY KEY (scenario, judging, ordinal)
) WITHOUT ROWID"""
"""The table has no other index: judgements are only looked up by their key, and an id would take much space."""

_INDEXES = (
    "CREATE UNIQUE INDEX idx_scenarios_id ON scenarios (id)",
    "CREATE INDEX idx_scenarios_state_position ON scenarios (state, position)",
    "CREATE INDEX idx_kept_texts_hash ON kept_texts (hash)",
    "CREATE UNIQUE INDEX idx_passages_hash ON passages (hash)",
    "CREATE INDEX idx_kinds_place ON kinds (node, step, ordinal)",
    "CREATE INDEX idx_kept_calls_scenario ON kept_calls (scenario)",
    "CREATE UNIQUE INDEX calls_replayable ON kept_calls (key) WHERE reply IS NOT NULL",
    "CREATE UNIQUE INDEX calls_common ON kept_calls (uid) WHERE uid IS NOT NULL",
    "CREATE INDEX idx_common_uses_scenario ON common_uses (scenario)",
    "CREATE INDEX idx_common_uses_key ON common_uses (key)",
    "CREATE UNIQUE INDEX idx_player_states_key ON player_states (key, scenario)",
    "CREATE INDEX idx_player_states_mark ON player_states (scenario, player, mark)",
)

TABLES = frozenset((*_OF_RUNS, *CHECKPOINT_TABLES, "judgements"))
"""The tables that `create` creates; views are not included."""


def create_tables(
    connection: sqlite3.Connection, tables: Mapping[str, Mapping[str, Any]], others: Iterable[str]
) -> None:
    """Create tables, given as arguments for sqlite-utils, and then whatever other statements create.

    If pandas and numpy are installed, sqlite-utils imports them for columns with their types, which are not used here.
    The imports would take a sixth of the time until a run's first call, and 90 MB.
    """
    absent = {"pandas", "numpy"} - sys.modules.keys()
    modules = cast(dict[str, Any], sys.modules)
    modules |= dict.fromkeys(absent)  # `None` is the entry with which Python marks a module that cannot be imported
    try:
        from sqlite_utils import Database
    finally:
        for name in absent:
            del modules[name]
    database = Database(connection)
    for name, definition in tables.items():
        database.table(name).create(**definition)
    for statement in others:
        connection.execute(statement)


def create(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database."""
    others = (JUDGEMENTS, *_INDEXES, *CHECKPOINT_INDEXES, *VIEWS.values())
    with connection:
        create_tables(connection, _OF_RUNS | CHECKPOINT_TABLES, others)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def insert_row(connection: sqlite3.Connection, table: str, row: Mapping[str, Any], otherwise: str = "") -> int:
    """Insert a row, given as values by column, and return its id."""
    statement = f"INSERT {otherwise} INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
    return int(connection.execute(statement, list(row.values())).lastrowid or 0)
