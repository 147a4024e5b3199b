"""Pages of a run's scenarios, filtered, sorted and counted by SQLite, so that memory does not grow with the run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs.outcome import JUDGE_FAULT
from dialoom.grouping import nest_triples
from dialoom.runs.errors import StoreError

from .connections import transaction
from .judgement_sets import OWN_JUDGEMENTS, SetReader

ANY, NONE = "any", "none"
"""Values of the filter by faults: dialogues with any fault, and dialogues that were checked and have none."""

STATES = ("pending", "done", "failed")
_MOST_VALUES = 100
"""The maximum number of values that a facet may have to be offered as a filter."""

Choices = Mapping[str, Mapping[str, int]]
"""The number of scenarios by facet name and value."""


@dataclass(frozen=True, slots=True)
class ScenarioQuery:
    """A filter and an order for scenarios.

    Attributes:
        state: `pending`, `done` or `failed`. If this or another string is empty, scenarios are not filtered by it.
        ended_by: The ending.
        facets: Values of facets by name; a facet that is a list must contain the value.
        at_least: The minimum mean score by metric.
        at_most: The maximum mean score by metric.
        fault: `any`, `none`, a kind of fault, a role at fault, or role and kind, as in `user/echo`.
        among: The positions to include; by default all.
        without: The positions to exclude.
        sort: `number`, `id`, `state`, `ended_by`, `faults`, `cost`, `tokens`, `score:METRIC`, `count:NAME` or
            `facet:NAME`. Scenarios without a value come last.
        is_descending: Whether the highest values come first.
        judging: The set of judgements whose scores are used; by default the oldest.
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
        ended_by: Its ending; empty while it is pending.
        error: The error that it failed with.
        facets: Its facets.
        counts: The recipe's own counts.
        scores: The mean score by metric.
        faults: The number of faults in its dialogue; `None` if unknown.
        cost: The cost of its own calls in US dollars; `None` if unknown.
        tokens: The input and output tokens of its own calls; `None` if unknown.
        is_changed: Whether its outcome comes from a branch that a person made.
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
    """The neighbours of a scenario in a query's result.

    Attributes:
        before: The position of the previous scenario; `None` if it is the first.
        after: The position of the next scenario; `None` if it is the last.
        place: Its place in the result, from 1.
        total: The number of scenarios in the result.
    """

    before: int | None
    after: int | None
    place: int
    total: int


@dataclass(frozen=True, slots=True)
class ScenarioPage:
    """A page of a query's result.

    Attributes:
        rows: The page's scenarios.
        total: The number of scenarios in the result.
        offset: The number of scenarios before this page.
        matches: The first message that contains the searched words, by the scenario's position.
    """

    rows: Sequence[ScenarioRow]
    total: int
    offset: int
    matches: Mapping[int, str] = field(default_factory=dict)


_FROM = "FROM scenarios LEFT JOIN outcomes ON outcomes.scenario = position AND state IN ('done', 'failed')"

# A facet is a string, a number or a list of them.
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
    "fault_of": "SELECT each.value ->> 'role', count(DISTINCT scenario) FROM outcomes, json_each(faults) AS each "
    "GROUP BY 1 ORDER BY 2 DESC, 1",
}

# As in a score of `dialoom.runs.reading.scenarios`, turns count only if the whole conversation was not judged.
_COUNTS = (
    "(turn IS NULL OR NOT EXISTS (SELECT 1 FROM judgements AS whole WHERE whole.scenario = judgements.scenario "
    "AND whole.judging = judgements.judging AND whole.metric = judgements.metric "
    "AND whole.target = judgements.target AND whole.turn IS NULL))"
)
_SCORE = (
    "(SELECT avg(score) FROM judgements "
    f"WHERE judgements.scenario = position AND judging = ? AND metric = ? AND {_COUNTS})"
)
_FAULTS = (
    f"(SELECT iif(faults IS NULL, NULL, count(each.value)) FROM json_each(faults) AS each "
    f"WHERE each.value ->> 'kind' <> '{JUDGE_FAULT}')"
)
_OF_CALLS = "(SELECT {figure} FROM calls WHERE calls.scenario = position AND judging IS NULL AND branch IS NULL)"
_PAID = "count(coalesce(reply, input_tokens))"
_COST = f"iif({_PAID} = count(cost), total(cost), NULL)"
_TOKENS = (
    f"iif({_PAID} = count(input_tokens) AND {_PAID} = count(output_tokens), "
    "CAST(total(input_tokens) + total(output_tokens) AS INTEGER), NULL)"
)

_PLAIN_KEYS = {
    "number": "position",
    "id": "id",
    "trial": "coalesce(trial, 1)",
    "state": "state",
    "ended_by": "ended_by",
    "faults": _FAULTS,
    "cost": _OF_CALLS.format(figure=_COST),
    "tokens": _OF_CALLS.format(figure=_TOKENS),
}


def _key(sort: str, judging: str) -> tuple[str, list[str]]:
    """Return the SQL expression that gives a query's sort key, and its parameters."""
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
    raise StoreError(f"sort must be one of {known}, got {sort!r:.80}", setting="sort")


def _ordered(query: ScenarioQuery, judging: str) -> tuple[str, list[str], str]:
    """Return a query's sort expression in SQL, its parameters, and an ORDER BY clause that uses the column `sorted`."""
    key, values = _key(query.sort or "number", judging)
    way = "DESC" if query.is_descending else "ASC"
    return key, values, f"position {way}" if key == "position" else f"sorted IS NULL, sorted {way}, position {way}"


def _chosen(query: ScenarioQuery, judging: str) -> tuple[str, list[str | float]]:
    """Return the WHERE clause of a query and its parameters. The user's input occurs only in the parameters."""
    if query.state and query.state not in STATES:
        raise StoreError(f"state must be one of {', '.join(STATES)}, got {query.state!r:.80}", setting="state")
    found: list[tuple[str, *tuple[str | float, ...]]] = []
    if query.state:
        found.append(("state = ?", query.state))
    if query.ended_by:
        found.append(("ended_by = ?", query.ended_by))
    found += [(_HOLDS, name, value) for name, value in query.facets.items()]
    found += [(f"{_SCORE} >= ?", judging, metric, least) for metric, least in query.at_least.items()]
    found += [(f"{_SCORE} <= ?", judging, metric, most) for metric, most in query.at_most.items()]
    if query.fault in (ANY, NONE):
        found.append((f"{_FAULTS} {'> 0' if query.fault == ANY else '= 0'}",))
    elif query.fault:
        who, _, kind = query.fault.partition("/")
        found.append((_THEIR_FAULT, who, kind) if kind else (_AT_FAULT, who, who))
    if query.among is not None:
        found.append(("position IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.among))))
    if query.without:
        found.append(("position NOT IN (SELECT value FROM json_each(?))", json.dumps(sorted(query.without))))
    clause = f"WHERE {' AND '.join(condition for condition, *_ in found)}" if found else ""
    return clause, [value for _, *values in found for value in values]


_HOLDS = (
    "EXISTS (SELECT 1 FROM json_tree(facets, '$.' || json_quote(?)) AS leaf "
    "WHERE leaf.atom IS NOT NULL AND CAST(leaf.atom AS TEXT) = ?)"
)
_AT_FAULT = (
    "EXISTS (SELECT 1 FROM json_each(faults) AS each WHERE each.value ->> 'kind' = ? OR each.value ->> 'role' = ?)"
)

_THEIR_FAULT = (
    "EXISTS (SELECT 1 FROM json_each(faults) AS each WHERE each.value ->> 'role' = ? AND each.value ->> 'kind' = ?)"
)


def _rows(connection: sqlite3.Connection, judging: str, positions: Sequence[int]) -> list[ScenarioRow]:
    selected = json.dumps(positions)
    among = "(SELECT value FROM json_each(?))"
    scores: dict[int, dict[str, float]] = {}
    for position, metric, mean in connection.execute(
        "SELECT scenario, metric, avg(score) FROM judgements "
        f"WHERE judging = ? AND scenario IN {among} AND {_COUNTS} GROUP BY scenario, metric",
        (judging, selected),
    ):
        if mean is not None:
            scores.setdefault(position, {})[metric] = mean
    took = {
        row[0]: (row[1], row[2])
        for row in connection.execute(
            f"SELECT scenario, {_COST}, {_TOKENS} FROM calls "
            f"WHERE judging IS NULL AND branch IS NULL AND scenario IN {among} GROUP BY scenario",
            (selected,),
        )
    }
    found = {
        row["position"]: ScenarioRow(
            row["position"],
            row["id"],
            row["state"],
            row["ended_by"],
            row["error"],
            json.loads(row["facets"]),
            json.loads(row["counts"] or "{}"),
            scores.get(row["position"], {}),
            row["faults"],
            *took.get(row["position"], (0.0, 0)),
            bool(row["is_changed"]),
        )
        for row in connection.execute(
            "SELECT position, id, state, coalesce(ended_by, '') AS ended_by, coalesce(error, '') AS error, facets, "
            f"counts, {_FAULTS} AS faults, branch IS NOT NULL AS is_changed {_FROM} WHERE position IN {among}",
            (selected,),
        )
    }
    return [found[position] for position in positions]


class ListReader(SetReader):
    """The reader of lists of a run's scenarios."""

    def page(self, query: ScenarioQuery, offset: int, limit: int) -> ScenarioPage:
        """Return a page of the scenarios that a query finds, without their messages.

        It is read in one transaction, so that it is consistent while others write.

        Args:
            query: The filter and the order.
            offset: The number of scenarios to skip.
            limit: The number of scenarios on a page.

        Raises:
            StoreError: If the query is invalid, or its set of judgements does not exist.
        """
        judging = self._judging_of(query)
        chosen, parameters = _chosen(query, judging)
        key, values, order = _ordered(query, judging)
        selected = f"SELECT position, {key} AS sorted {_FROM} {chosen} ORDER BY {order} LIMIT ? OFFSET ?"
        with transaction(self._reader):
            found = self._reader.execute(selected, (*values, *parameters, limit, offset)).fetchall()
            positions = [int(row["position"]) for row in found]
            total = int(self._reader.execute(f"SELECT count(*) {_FROM} {chosen}", parameters).fetchone()[0])
            return ScenarioPage(_rows(self._reader, judging, positions), total, offset)

    def neighbours(self, position: int, query: ScenarioQuery) -> Neighbours | None:
        """Return the previous and the next scenario in a query's result; `None` if the query does not find this one.

        Raises:
            StoreError: In the same cases as `page`.
        """
        judging = self._judging_of(query)
        chosen, parameters = _chosen(query, judging)
        key, values, order = _ordered(query, judging)
        found = self._reader.execute(
            "SELECT before, after, place, total FROM (SELECT position, lag(position) OVER line AS before, "
            "lead(position) OVER line AS after, row_number() OVER line AS place, count(*) OVER () AS total "
            f"FROM (SELECT position, {key} AS sorted {_FROM} {chosen}) WINDOW line AS (ORDER BY {order})) "
            "WHERE position = ?",
            (*values, *parameters, position),
        ).fetchone()
        return None if found is None else Neighbours(*found)

    def choices(self) -> Choices:
        """Return the values by which to filter, with counts: `state`, `ended_by`, `fault`, `fault_of`, `facet:NAME`."""
        found: dict[str, dict[str, int]] = {}
        for name, query in _CHOICES.items():
            found[name] = {
                str(value): count for value, count in self._reader.execute(query).fetchall() if value is not None
            }
        facets = self._reader.execute(_FACETS).fetchall()
        values = nest_triples((f"facet:{name}", str(value), count) for name, value, count in facets)
        return found | {name: each for name, each in values.items() if len(each) <= _MOST_VALUES}

    def _judging_of(self, query: ScenarioQuery) -> str:
        chosen = self.judgement_set(query.judging)
        return chosen.name if chosen else OWN_JUDGEMENTS
