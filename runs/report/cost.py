"""The cost table of a run's calls, by role and model: tokens, cached and reasoning tokens, and dollars."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from dialoom.graphs import Table
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.runs.store.connections import open_for_reading, transaction
from dialoom.runs.store.leases import OPEN_LEASES

from .labelled_runs import is_offline

_SUMMED_COLUMNS = (
    "calls",
    "replays",
    "shared",
    "input",
    "read",
    "readable",
    "output",
    "reasoning",
    "cost",
    "known_cost",
)


def cost_table(path: Path) -> Table:
    """Return the cost table of a run, from its ledger; the run may be in progress.

    If a value is missing for one of the calls, the total is unknown (`None`), as is the sum over the roles.

    Raises:
        StoreError: If the file is not a run.
    """
    with closing(open_for_reading(path)) as connection, transaction(connection):
        rows = connection.execute(_QUERY, {"said": WRITTEN_BY_PERSON}).fetchall()
        (failed,) = connection.execute("SELECT count(*) FROM attempts").fetchone()
        (leased,) = connection.execute(f"SELECT count(*) {OPEN_LEASES}").fetchone()
    table = Table(
        name="cost",
        title="Usage and cost of calls",
        columns=(
            "role",
            "model",
            "calls",
            "replayed",
            "from cache",
            "input tokens",
            "read from prompt cache",
            "read %",
            "output tokens",
            "of which reasoning",
            "US dollars",
        ),
        decimals={"US dollars": 4},
    )
    for row in rows:
        role = row["role"] if row["judging"] is None else f"{row['role']} ({row['judging']})"
        table.rows.append(_build_row(role, row["model"], dict(row)))
    if len(rows) > 1:
        table.rows.append(_build_row("all", "", {each: _sum_column(rows, each) for each in _SUMMED_COLUMNS}))
    table.notes += _notes(rows, failed, leased)
    return table


def _build_row(role: str, model: str, row: dict[str, Any]) -> list[Any]:
    share = row["read"] / row["readable"] if row["read"] is not None and row["readable"] else None
    counts = [row[each] for each in ("calls", "replays", "shared", "input", "read")]
    return [role, model, *counts, share, row["output"], row["reasoning"], row["cost"]]


def _sum_column(rows: list[sqlite3.Row], name: str) -> Any:
    """Return the sum of all rows. It is `None` if a value is unknown, except for cache and reasoning tokens."""
    values = [row[name] for row in rows]
    if name in ("read", "readable", "reasoning"):
        decisive = "reasoning" if name == "reasoning" else "read"
        known = [value for row, value in zip(rows, values, strict=True) if row[decisive] is not None]
        return sum(known) if known else None
    return None if None in values else sum(values)


def _notes(rows: list[sqlite3.Row], failed: int, leased: int) -> list[str]:
    models = [row["model"] for row in rows]
    unpriced = sorted({row["model"] for row in rows if row["cost"] is None})
    known, lost = (sum(row[name] for row in rows) for name in ("known_cost", "unanswered"))
    notes = (
        (
            unpriced,
            f"The cost of some or all calls to {', '.join(unpriced)} is unknown; the known costs add up to "
            f"${known:,.4f}.",
        ),
        (
            any(row["input"] is None or row["output"] is None for row in rows),
            "A dash (–) means that a model's provider does not report this number of tokens.",
        ),
        (leased, f"Scenarios that workers hold: {leased:,}. Their latest calls are not included yet."),
        (lost, f"Calls without an answer: {lost:,}. They are in progress, or were lost and may have been billed."),
        (
            failed,
            f"Failed attempts at calls: {failed:,}. Their tokens and costs are included if the provider reported them, "
            "as for a reply that its content filter removed; it may bill others, such as those that timed out.",
        ),
        (
            WRITTEN_BY_PERSON in models,
            f"{WRITTEN_BY_PERSON!r} are replies that a person wrote in the step debugger in place of the model.",
        ),
        (
            any(map(is_offline, models)),
            "Offline models are scripted stand-ins: their tokens are estimates, and free unless a price was given.",
        ),
    )
    return [text for applies, text in notes if applies]


# Calls are those that were answered or ended in an error. Neither a cache hit nor a reply that a person wrote in the
# step debugger has attempts or tokens.
_QUERY = """
SELECT role, model, judging,
    count(reply) + count(error) AS calls,
    sum(replays) AS replays,
    count(*) FILTER (WHERE reply IS NOT NULL AND attempts = 0 AND model <> :said) AS shared,
    iif(count(coalesce(reply, input_tokens)) = count(input_tokens), coalesce(sum(input_tokens), 0), NULL) AS input,
    sum(cached_tokens) FILTER (WHERE attempts > 0) AS read,
    coalesce(sum(input_tokens) FILTER (WHERE attempts > 0 AND cached_tokens IS NOT NULL), 0) AS readable,
    iif(count(coalesce(reply, input_tokens)) = count(output_tokens), coalesce(sum(output_tokens), 0), NULL) AS output,
    sum(reasoning_tokens) FILTER (WHERE attempts > 0) AS reasoning,
    iif(count(coalesce(reply, input_tokens)) = count(cost), total(cost), NULL) AS cost,
    total(cost) AS known_cost,
    count(*) - count(reply) - count(error) AS unanswered
FROM calls GROUP BY judging, role, model ORDER BY judging IS NOT NULL, judging, min(id)"""
