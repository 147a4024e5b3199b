"""A run file's content, table by table, without what differs between equivalent runs."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig

from dialoom.runs.store import RunFile

Dump = dict[str, list[str]]

READ_ELSEWHERE = {
    "kinds": "part of each row of calls",
    "passages": "part of the messages of calls and outcomes",
    "threads": "part of each row of checkpoints and pending_writes",
    "checkpoint_frames": "part of each row of checkpoints",
    "checkpoint_lists": "part of each row of checkpoints",
    "checkpoint_values": "part of each row of checkpoints",
    "pending_writes": "part of the checkpoint that they follow",
}
"""Tables that are not dumped separately: rows of other tables are dumped together with the rows they refer to."""

LEFT_OUT = {
    "run": {"id"},
    "calls": {"id", "latency", "uid"},
    "attempts": {"call", "latency"},
    "texts": {"id", "hash"},
    "player_states": {"id", "state"},  # a state holds ids of the run
    "checkpoints": {"id", "ts", "checkpoint_id", "task"},
    "notes": {"id"},
}
"""Columns (of `run`: keys) that are left out: ids, times, latencies. References are replaced by the row's content."""

_MEMORY = re.compile(r" at 0x[0-9a-f]+")


def logical_dump(path: Path) -> Dump:
    """Return the rows of every table of a run's file as sorted JSON texts, by the name of the table.

    Raises:
        AssertionError: If the file has a table that is neither dumped nor in `READ_ELSEWHERE`.
    """
    with closing(sqlite3.connect(path)) as connection, RunFile(path) as run:
        connection.row_factory = sqlite3.Row
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        names -= READ_ELSEWHERE.keys()
        assert names <= _DUMPED.keys(), f"no dump of {sorted(names - _DUMPED.keys())}"
        found = {}
        for name in sorted(names):
            left_out = LEFT_OUT.get(_VIEWS.get(name, name), set())
            rows = (
                {key: value for key, value in row.items() if key not in left_out}
                for row in _DUMPED[name](connection, run)
            )
            found[name] = sorted(json.dumps(row, default=_shown, sort_keys=True) for row in rows)
        return found


def differences(first: Dump, second: Dump) -> list[str]:
    """Return the rows that only one of two dumps has, after their tables: `-` for the first, `+` for the second."""
    found = []
    for table in sorted({*first, *second}):
        left = list(second.get(table, ()))
        for row in first.get(table, ()):
            if row in left:
                left.remove(row)
            else:
                found.append(f"- {table}: {row}")
        found += [f"+ {table}: {row}" for row in left]
    return found


Rows = Iterator[dict[str, Any]]
_Read = Callable[[sqlite3.Connection, RunFile], Rows]


def _plain(table: str) -> _Read:
    def read(connection: sqlite3.Connection, _run: RunFile) -> Rows:
        return map(dict, connection.execute(f"SELECT * FROM {table}"))

    return read


def _facts(connection: sqlite3.Connection, _run: RunFile) -> Rows:
    """Yield the rows of the table `run`, each as one key and value."""
    for row in connection.execute("SELECT key, value FROM run"):
        yield {row["key"]: row["value"]}


def _outcomes(connection: sqlite3.Connection, run: RunFile) -> Rows:
    for row in connection.execute("SELECT * FROM outcomes"):
        outcome = run.outcome(row["scenario"])
        yield dict(row) | {"messages": outcome.messages, "details": outcome.details}


def _calls(connection: sqlite3.Connection, run: RunFile) -> Rows:
    for row in connection.execute("SELECT * FROM calls"):
        texts = {name: _text(connection, row[name]) for name in ("reply", "reasoning")}
        yield dict(row) | texts | {"messages": run.request(row["id"])}


def _uses(connection: sqlite3.Connection, _run: RunFile) -> Rows:
    """Yield the uses of answered calls: for an unanswered call, the scenario stored is whichever asked first."""
    answered = "SELECT key FROM calls WHERE reply IS NOT NULL"
    return map(dict, connection.execute(f"SELECT * FROM common_uses WHERE key IN ({answered})"))


def _attempts(connection: sqlite3.Connection, _run: RunFile) -> Rows:
    return map(dict, connection.execute("SELECT attempts.*, key FROM attempts LEFT JOIN calls ON calls.id = call"))


def _checkpoints(connection: sqlite3.Connection, run: RunFile) -> Rows:
    """Yield the checkpoints, each with its place in its thread in place of its id."""

    async def read() -> list[Any]:
        async with run.checkpointer() as saver:
            return [
                (name, namespace, [each async for each in saver.alist(config)])
                for name, namespace in connection.execute("SELECT name, namespace FROM threads").fetchall()
                for config in [RunnableConfig(configurable={"thread_id": name, "checkpoint_ns": namespace})]
            ]

    for name, namespace, found in asyncio.run(read()):
        places = {each.checkpoint["id"]: place for place, each in enumerate(reversed(found))}
        for each in found:
            parent = each.parent_config and each.parent_config["configurable"]["checkpoint_id"]
            yield {
                "thread": name,
                "namespace": namespace,
                "place": places[each.checkpoint["id"]],
                "parent": places.get(parent),
                "checkpoint": {
                    key: value for key, value in each.checkpoint.items() if key not in LEFT_OUT["checkpoints"]
                },
                "metadata": each.metadata,
                "writes": sorted(
                    json.dumps([channel, value], default=_shown) for _, channel, value in each.pending_writes or ()
                ),
            }


def _text(connection: sqlite3.Connection, id_: int | None) -> str | None:
    return None if id_ is None else connection.execute("SELECT content FROM texts WHERE id = ?", (id_,)).fetchone()[0]


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else _MEMORY.sub("", repr(value))


_VIEWS = {"kept_texts": "texts", "kept_calls": "calls"}
"""The tables behind views, and the views that are dumped under their names."""

_DUMPED: dict[str, _Read] = {
    **{
        name: _plain(name)
        for name in (
            "documents",
            "prompts",
            "notes",
            "judgement_sets",
            "scenarios",
            "judged",
            "judgements",
            "rejudgings",
            "branches",
            "step_calls",
            "player_states",
        )
    },
    "run": _facts,
    "outcomes": _outcomes,
    "kept_texts": _plain("texts"),
    "kept_calls": _calls,
    "common_uses": _uses,
    "attempts": _attempts,
    "checkpoints": _checkpoints,
}
