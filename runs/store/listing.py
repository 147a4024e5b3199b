"""Pages of a run's scenarios: chosen, ordered and counted by SQLite, so that nothing grows with the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs.fault import BY_JUDGES

from .errors import StoreError

ANY, NONE = "any", "none"
"""Of faults: those that have some, and those that are known to have none."""

STATES = ("pending", "done", "failed")
_MOST_VALUES = 100
"""A facet that has more values is no choice."""

Choices = Mapping[str, Mapping[str, int]]
"""By name of a facet: its values, and how many scenarios have each."""


@dataclass(frozen=True, slots=True)
class ScenarioQuery:
    """Which scenarios are wanted, and in which order.

    Attributes:
        state: `pending`, `done` or `failed`; empty for all. So are the other texts.
        ended_by: How they ended.
        facets: Values of facets by name; a facet that is a list must hold the value.
        at_least: The least mean score by metric.
        at_most: The highest.
        fault: `any`, `none`, a kind of fault, the role whose fault it is, or both, as in `user/echo`.
        among: Only these positions; by default all.
        without: And none of these.
        sort: `number`, `id`, `state`, `ended_by`, `faults`, `cost`, `tokens`, `score:METRIC`, `count:NAME` or
            `facet:NAME`. What has no value comes last.
        is_descending: The highest first.
        judging: Whose scores; by default the oldest set's.
    """

    state: str = ""
    ended_by: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""
    among: Collection[int] | None = None
    without: Collection[int] = ()
    sort: str = ""
    is_descending: bool = False
    judging: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """A scenario in a list.

    Attributes:
        position: Its place in the plan, from 0.
        id: Its id.
        state: `pending`, `done` or `failed`.
        ended_by: How it ended; empty while it has not.
        error: What it failed of.
        facets: What it shows of itself.
        counts: Figures of the recipe's own.
        scores: Mean score by metric.
        faults: How many faults its dialogue has; `None` if that is not known.
        cost: US dollars of its own calls; `None` if unknown.
        tokens: Read and written by its own calls; `None` if unknown.
        is_changed: Whether its outcome is that of a branch that a person made.
    """

    position: int
    id: str
    state: str
    ended_by: str
    error: str
    facets: Mapping[str, Any]
    counts: Mapping[str, int]
    scores: Mapping[str, float]
    faults: int | None
    cost: float | None
    tokens: int | None
    is_changed: bool


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What stands beside a scenario among those that a query finds.

    Attributes:
        before: The position of the one before it; `None` if it is the first.
        after: The position of the one after it; `None` if it is the last.
        place: Its place among them, from 1.
        total: How many there are.
    """

    before: int | None
    after: int | None
    place: int
    total: int


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """Some of the scenarios that a query finds.

    Attributes:
        rows: These.
        total: How many it finds.
        offset: How many of them come before these.
        said: By position, the first message in which that was said which was asked for.
    """

    rows: Sequence[ScenarioRow]
    total: int
    offset: int
    said: Mapping[int, str] = field(default_factory=dict)


def read_page(
    connection: sqlite3.Connection, judging: str, query: ScenarioQuery, offset: int, limit: int
) -> ScenarioPage:
    """A page, consistent in itself while others write.

    Args:
        connection: Reads the run.
        judging: The set of judgements.
        query: What is wanted.
        offset: How many are passed over.
        limit: How many there are on a page.

    Raises:
        StoreError: If a state or an order is none.
    """
    parts = _Conditions(judging)
    chosen = parts.of(query)
    key, values, order = _ordered(query, judging)
    selected = f"SELECT position, {key} AS sorted {_FROM} {chosen} ORDER BY {order} LIMIT ? OFFSET ?"
    connection.execute("BEGIN")
    try:
        found = connection.execute(selected, (*values, *parts.values, limit, offset)).fetchall()
        positions = [int(row["position"]) for row in found]
        total = int(connection.execute(f"SELECT count(*) {_FROM} {chosen}", parts.values).fetchone()[0])
        return ScenarioPage(_rows(connection, judging, positions), total, offset)
    finally:
        connection.execute("COMMIT")


def read_neighbours(
    connection: sqlite3.Connection, judging: str, query: ScenarioQuery, position: int
) -> Neighbours | None:
    """What stands beside a scenario; `None` if the query does not find it.

    Args:
        connection: Reads the run.
        judging: The set of judgements.
        query: Which scenarios, and in which order.
        position: The scenario's.

    Raises:
        StoreError: If a state or an order is none.
    """
    parts = _Conditions(judging)
    chosen = parts.of(query)
    key, values, order = _ordered(query, judging)
    found = connection.execute(
        "SELECT before, after, place, total FROM (SELECT position, lag(position) OVER line AS before, "
        "lead(position) OVER line AS after, row_number() OVER line AS place, count(*) OVER () AS total "
        f"FROM (SELECT position, {key} AS sorted {_FROM} {chosen}) WINDOW line AS (ORDER BY {order})) "
        "WHERE position = ?",
        (*values, *parts.values, position),
    ).fetchone()
    return None if found is None else Neighbours(*found)


def read_choices(connection: sqlite3.Connection) -> Choices:
    """What can be chosen: states, endings, faults, and the values of those facets that have few of them."""
    found: dict[str, dict[str, int]] = {}
    for name, query in _CHOICES.items():
        found[name] = {str(value): count for value, count in connection.execute(query).fetchall() if value is not None}
    values: dict[str, dict[str, int]] = {}
    for name, value, count in connection.execute(_FACETS).fetchall():
        values.setdefault(f"facet:{name}", {})[str(value)] = count
    return found | {name: each for name, each in values.items() if len(each) <= _MOST_VALUES}


_FROM = "FROM scenarios LEFT JOIN outcomes ON outcomes.scenario = position AND state IN ('done', 'failed')"

# A facet is a text, a number or a list of them.
_FACETS = """
SELECT name, value, count(*) FROM (
    SELECT each.key AS name, CAST(each.value AS TEXT) AS value FROM scenarios, json_each(facets) AS each
    WHERE each.type NOT IN ('array', 'object', 'null')
    UNION ALL
    SELECT each.key, CAST(one.value AS TEXT) FROM scenarios, json_each(facets) AS each, json_each(each.value) AS one
    WHERE each.type = 'array'
) GROUP BY name, value ORDER BY name, count(*) DESC, value"""

_CHOICES = {
    "state": "SELECT state, count(*) FROM scenarios GROUP BY state",
    "ended_by": "SELECT ended_by, count(*) FROM outcomes GROUP BY ended_by ORDER BY 2 DESC, 1",
    "fault": "SELECT each.value ->> 'kind', count(DISTINCT scenario) FROM outcomes, json_each(faults) AS each "
    "GROUP BY 1 ORDER BY 2 DESC, 1",
    "fault_of": "SELECT each.value ->> 'who', count(DISTINCT scenario) FROM outcomes, json_each(faults) AS each "
    "GROUP BY 1 ORDER BY 2 DESC, 1",
}

_SCORE = (
    "(SELECT coalesce(avg(score) FILTER (WHERE turn IS NULL), avg(score)) FROM judgements "
    "WHERE judgements.scenario = position AND judging = ? AND metric = ?)"
)
_FAULTS = (
    f"(SELECT iif(faults IS NULL, NULL, count(each.value)) FROM json_each(faults) AS each "
    f"WHERE each.value ->> 'kind' <> '{BY_JUDGES}')"
)
_OF_CALLS = "(SELECT {figure} FROM calls WHERE calls.scenario = position AND judging IS NULL AND branch IS NULL)"
_COST = "iif(count(reply) = count(cost), total(cost), NULL)"
_TOKENS = (
    "iif(count(reply) = count(input_tokens) AND count(reply) = count(output_tokens), "
    "CAST(total(input_tokens) + total(output_tokens) AS INTEGER), NULL)"
)

_PLAIN_KEYS = {
    "number": "position",
    "id": "id",
    "state": "state",
    "ended_by": "ended_by",
    "faults": _FAULTS,
    "cost": _OF_CALLS.format(figure=_COST),
    "tokens": _OF_CALLS.format(figure=_TOKENS),
}


def _key(sort: str, judging: str) -> tuple[str, list[str]]:
    """What scenarios are ordered by, as SQL, and its parameters."""
    if sort in _PLAIN_KEYS:
        return _PLAIN_KEYS[sort], []
    kind, _, name = sort.partition(":")
    match kind:
        case "score":
            return _SCORE, [judging, name]
        case "count":
            return "(counts ->> ('$.' || json_quote(?)))", [name]
        case "facet":
            return "(facets ->> ('$.' || json_quote(?)))", [name]
    known = ", ".join((*_PLAIN_KEYS, "score:METRIC", "count:NAME", "facet:NAME"))
    raise StoreError(f"sort {sort!r:.80}: there are {known}", setting="sort")


def _ordered(query: ScenarioQuery, judging: str) -> tuple[str, list[str], str]:
    """What a query's scenarios are ordered by, as SQL, its parameters, and the order of the column `sorted`."""
    key, values = _key(query.sort or "number", judging)
    way = "DESC" if query.is_descending else "ASC"
    return key, values, f"position {way}" if key == "position" else f"sorted IS NULL, sorted {way}, position {way}"


class _Conditions:
    """What is wanted, as SQL; what a user has written is in `values` only."""

    def __init__(self, judging: str) -> None:
        self._judging = judging
        self._conditions: list[str] = []
        self.values: list[str | float] = []

    def of(self, query: ScenarioQuery) -> str:
        """The clause of a query."""
        if query.state:
            if query.state not in STATES:
                raise StoreError(f"state {query.state!r:.80}: there are {', '.join(STATES)}", setting="state")
            self._add("state = ?", query.state)
        if query.ended_by:
            self._add("ended_by = ?", query.ended_by)
        for name, value in query.facets.items():
            self._add(_HOLDS, name, value)
        for metric, least in query.at_least.items():
            self._add(f"{_SCORE} >= ?", self._judging, metric, least)
        for metric, most in query.at_most.items():
            self._add(f"{_SCORE} <= ?", self._judging, metric, most)
        if query.fault == NONE:
            self._add(f"{_FAULTS} = 0")
        elif query.fault == ANY:
            self._add(f"{_FAULTS} > 0")
        elif query.fault:
            who, _, kind = query.fault.partition("/")
            self._add(*((_THEIR_FAULT, who, kind) if kind else (_AT_FAULT, who, who)))
        if query.among is not None:
            self._add("position IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.among)))
        if query.without:
            self._add("position NOT IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.without)))
        return f"WHERE {' AND '.join(self._conditions)}" if self._conditions else ""

    def _add(self, condition: str, *values: str | float) -> None:
        self._conditions.append(condition)
        self.values += values


_HOLDS = (
    "EXISTS (SELECT 1 FROM json_tree(facets, '$.' || json_quote(?)) AS leaf "
    "WHERE leaf.atom IS NOT NULL AND CAST(leaf.atom AS TEXT) = ?)"
)
_AT_FAULT = (
    "EXISTS (SELECT 1 FROM json_each(faults) AS each WHERE each.value ->> 'kind' = ? OR each.value ->> 'who' = ?)"
)

_THEIR_FAULT = (
    "EXISTS (SELECT 1 FROM json_each(faults) AS each WHERE each.value ->> 'who' = ? AND each.value ->> 'kind' = ?)"
)


def _rows(connection: sqlite3.Connection, judging: str, positions: Sequence[int]) -> list[ScenarioRow]:
    wanted = json.dumps(positions)
    among = "(SELECT value FROM json_each(?))"
    scores: dict[int, dict[str, float]] = {}
    for position, metric, mean in connection.execute(
        "SELECT scenario, metric, coalesce(avg(score) FILTER (WHERE turn IS NULL), avg(score)) FROM judgements "
        f"WHERE judging = ? AND scenario IN {among} GROUP BY scenario, metric",
        (judging, wanted),
    ):
        if mean is not None:
            scores.setdefault(position, {})[metric] = mean
    took = {
        row[0]: (row[1], row[2])
        for row in connection.execute(
            f"SELECT scenario, {_COST}, {_TOKENS} FROM calls "
            f"WHERE judging IS NULL AND branch IS NULL AND scenario IN {among} GROUP BY scenario",
            (wanted,),
        )
    }
    found = {}
    for row in connection.execute(
        "SELECT position, id, state, coalesce(ended_by, '') AS ended_by, coalesce(error, '') AS error, facets, counts, "
        f"{_FAULTS} AS faults, branch IS NOT NULL AS is_changed {_FROM} WHERE position IN {among}",
        (wanted,),
    ):
        position = row["position"]
        cost, tokens = took.get(position, (0.0, 0))
        found[position] = ScenarioRow(
            position,
            row["id"],
            row["state"],
            row["ended_by"],
            row["error"],
            json.loads(row["facets"]),
            json.loads(row["counts"] or "{}"),
            scores.get(position, {}),
            row["faults"],
            cost,
            tokens,
            bool(row["is_changed"]),
        )
    return [found[position] for position in positions]
