"""Reading the ledger: what was asked of whom, and what came back, a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dialoom.roles import ASKS, Completion
from dialoom.roles.gateway.kept_reply import read_reply

_PAGE = 500


def read_calls(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Every call in the order in which they were begun, without its request.

    Yields:
        `call` (its row), `number` (the scenario's place in the plan, from 1), `id`, `node`, `step`, `ordinal` (all
        `None` of a common call, which belongs to no scenario), `role`, `model`, `prompt`, `sample`, `ask`,
        `judging` (a later set's name), `branch`, `reply` (its words), `tool_calls` (what it calls besides), `error`,
        `finish_reason`, tokens, `cost` (US dollars), `attempts`, `latency` (seconds) and `replays`.
    """
    after = 0
    while rows := connection.execute(_CALLS, (after, _PAGE)).fetchall():
        after = rows[-1]["call"]
        yield from map(_call, rows)


def _call(row: sqlite3.Row) -> dict[str, Any]:
    call = dict(row)
    reply = None if call["reply"] is None else read_reply(Completion(call["reply"]))
    call["reply"] = None if reply is None else reply.text
    return call | {"tool_calls": [] if reply is None else list(reply.tool_calls)}


def read_calls_of(connection: sqlite3.Connection, position: int) -> list[dict[str, Any]]:
    """The calls of one scenario since it was begun (anew), as `read_calls` has them."""
    return [_call(row) for row in connection.execute(_CALLS_OF, (position,))]


def read_unsound(connection: sqlite3.Connection) -> list[int]:
    """The positions of the finished scenarios that have faults, or lines that were asked for again because of one."""
    return [position for (position,) in connection.execute(_UNSOUND, (ASKS,))]


@dataclass(frozen=True, slots=True)
class CommonCall:
    """A call that belongs to no scenario.

    Attributes:
        node: Where a scenario used it.
        scenarios: How many used it.
    """

    role: str
    model: str
    prompt: str
    node: str
    scenarios: int


def read_common_calls(connection: sqlite3.Connection, position: int) -> list[CommonCall]:
    """The answered common calls that a scenario used in the run itself, in the order of its steps."""
    return [CommonCall(*row) for row in connection.execute(_COMMON, (position,))]


_COMMON = """
SELECT role, model, prompt, used.node, (SELECT count(DISTINCT scenario) FROM common_uses WHERE key = calls.key)
FROM common_uses AS used JOIN calls USING (key)
WHERE used.scenario = ? AND used.judging IS NULL AND used.branch IS NULL AND reply IS NOT NULL
GROUP BY calls.id ORDER BY min(used.step), used.node, min(used.ordinal), calls.id"""

_UNSOUND = """
SELECT outcomes.scenario FROM outcomes WHERE faults IS NOT NULL AND (faults != '[]' OR EXISTS
    (SELECT 1 FROM calls WHERE calls.scenario = outcomes.scenario AND ask > ? AND branch IS NULL)) ORDER BY 1"""

_SELECTED = """
SELECT calls.id AS call, position + 1 AS number, scenarios.id AS id, judging, calls.branch AS branch, node, step,
    ordinal, role, model, prompt, calls.sample AS sample, ask, texts.content AS reply, calls.error AS error,
    finish_reason, input_tokens, output_tokens, cached_tokens, cost, attempts, latency, replays
FROM calls LEFT JOIN scenarios ON position = calls.scenario LEFT JOIN texts ON texts.id = reply"""
_CALLS = _SELECTED + " WHERE calls.id > ? ORDER BY calls.id LIMIT ?"
_CALLS_OF = _SELECTED + " WHERE calls.scenario = ? AND calls.sample >= take ORDER BY calls.id"
