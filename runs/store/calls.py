"""Reading the ledger: what was asked of whom, and what came back, a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

_PAGE = 500


def read_calls(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Every call in the order in which they were begun, without its request.

    Yields:
        `number` (the scenario's place in the plan, from 1), `id`, `node`, `step`, `role`, `model`, `prompt`, `sample`,
        `ask`, `judging` (a later set's name), `branch`, `reply`, `error`, `finish_reason`, tokens, `cost` (US dollars),
        `attempts`, `latency` (seconds) and `replays`.
    """
    after = 0
    while rows := connection.execute(_CALLS, (after, _PAGE)).fetchall():
        after = rows[-1]["call"]
        yield from (dict(row) for row in rows)


_CALLS = """
SELECT calls.id AS call, position + 1 AS number, scenarios.id AS id, judging, calls.branch AS branch, node, step, role,
    model, prompt, calls.sample AS sample, ask, texts.content AS reply, calls.error AS error, finish_reason,
    input_tokens, output_tokens, cached_tokens, cost, attempts, latency, replays
FROM calls JOIN scenarios ON position = calls.scenario LEFT JOIN texts ON texts.id = reply
WHERE calls.id > ? ORDER BY calls.id LIMIT ?"""
