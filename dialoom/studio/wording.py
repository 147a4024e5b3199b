"""Text forms of figures, and the queries in addresses that select scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.graphs import Table
from dialoom.graphs.tables import FacetColumn, ScenarioFilter
from dialoom.runs.errors import RunError
from dialoom.runs.report import FAULTS
from dialoom.runs.store import Choices, ScenarioQuery
from dialoom.text import rounded

from .page import Query, View

UNKNOWN = "unknown"
ABSENT = "–"


def count(value: int | None) -> str:
    """Format a whole number."""
    return UNKNOWN if value is None else f"{value:,}"


def short(value: int | None) -> str:
    """Format a number in a short form: `2.3 M`."""
    if value is None:
        return UNKNOWN
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= size:
            return f"{value / (1000 if unit == 'k' else size):,.{1 if unit != 'k' else 0}f} {unit}"
    return f"{value:,}"


def money(value: float | None) -> str:
    """Format US dollars."""
    if value is None:
        return UNKNOWN
    return f"${value:,.2f}" if value == 0 or value >= 1 else f"${value:,.4f}"


def score(value: float | None) -> str:
    """Format a mean score."""
    return ABSENT if value is None else rounded(value)


def span(seconds: float) -> str:
    """Format a duration in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


FACET, LEAST, MOST = "facet.", "min.", "max."
LABELLED, UNLABELLED = "labelled", "not yet"
_NARROWING = frozenset({"state", "ended_by", "fault", "where", "search", "labels"})
_OF_A_LIST = _NARROWING | {"sort", "order"}


def query_of(view: View, here: int | None = None) -> ScenarioQuery:
    """Return the scenario query that the page's address specifies, without `where` and `search`.

    Args:
        view: The view that the page shows.
        here: The displayed scenario; it stays in a list of unlabelled scenarios while it is being labelled.

    Raises:
        RunError: If a bound is not a number.
    """
    labelling = view.one("labels") if view.one("as") else ""
    labelled = labelled_in(view) if labelling in (LABELLED, UNLABELLED) else frozenset()
    return ScenarioQuery(
        state=view.one("state"),
        ended_by=view.one("ended_by"),
        facets=named(view, FACET),
        at_least={name: _number(name, value) for name, value in named(view, LEAST).items()},
        at_most={name: _number(name, value) for name, value in named(view, MOST).items()},
        fault=view.one("fault"),
        among=labelled if labelling == LABELLED else None,
        without=labelled - {here} if labelling == UNLABELLED else frozenset(),
        sort=view.one("sort"),
        is_descending=view.one("order") == "desc",
        judging=view.one("judging") or None,
    )


def chosen_metrics(view: View) -> tuple[str, ...]:
    """Return the metrics to label; empty for all."""
    return tuple(filter(None, view.one("metrics").split(",")))


def labelled_in(view: View, annotator: str = "") -> frozenset[int]:
    """Return the positions of scenarios for which the annotator has labelled all metrics to label."""
    found = view.run.run.labelled(
        annotator or view.one("as"), metrics=chosen_metrics(view), judging=view.one("judging") or None
    )
    return frozenset(position for position, each in found.items() if each.is_complete)


def is_blind(view: View) -> bool:
    """Return whether the judge's scores are hidden, which is the default while an annotator labels."""
    return view.one("blind") != "0" if view.one("as") else view.one("blind") == "1"


def named(view: View, prefix: str) -> dict[str, str]:
    """Return the query's values whose names begin with a prefix, by the name without the prefix."""
    return {
        name.removeprefix(prefix): view.one(name) for name in view.query if name.startswith(prefix) and view.one(name)
    }


def list_of(view: View) -> Query:
    """Return the part of the query that selects the list of scenarios; empty for all scenarios in plan order."""
    return {
        name: view.one(name)
        for name in view.query
        if (name in _OF_A_LIST or name.startswith((FACET, LEAST, MOST))) and view.one(name)
    }


def is_narrowed(view: View) -> bool:
    """Return whether the address selects only some scenarios; sorting alone does not count."""
    return any(name in _NARROWING or name.startswith((FACET, LEAST, MOST)) for name in list_of(view))


def list_parameters(view: View) -> dict[str, str]:
    """Return the query parameters that stay when another conversation is opened: those of the list and the view."""
    own = {name: view.one(name) for name in ("judging", "blind", "as", "metrics") if view.one(name)}
    return {**{name: view.one(name) for name in list_of(view)}, **own}


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RunError(f"{name} must be a number, got {value!r:.40}") from None


_PENDING = "pending"
_PLAYED = f"state != '{_PENDING}'"


def counted(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str = "", where: str = ""
) -> Mapping[str, str] | None:
    """Return the query that selects the conversations from which a figure was computed; `None` if it is not known.

    Args:
        table: A table of the report.
        row: A row of the table.
        column: The index of the figure's column.
        choices: The values by which the scenarios of the row's run can be filtered.
        label: The run's label, with which the row begins if there are several runs.
        where: The expression that selects the report's scenarios.
    """
    query = _by_facets(table, row, column, choices, label)
    if query is None:
        return None
    own = table.counted.get(column, ScenarioFilter())
    if not isinstance(own, ScenarioFilter):
        own = next((own[cell] for cell in row if isinstance(cell, str) and cell in own), ScenarioFilter())
    conditions = (table.population, own)
    known = [pair for each in conditions for pair in (("state", each.state), ("ended_by", each.ended_by))]
    is_of_played = _PENDING in choices.get("state", {})
    expressions = [where, table.where, *(each.expression for each in conditions), _PLAYED if is_of_played else ""]
    return {**query, **{name: value for name, value in known if value}, "where": _all_of(*expressions)}


def _all_of(*expressions: str) -> str:
    """Join expressions by `and`; empty ones are left out."""
    terms = [each for each in dict.fromkeys(expressions) if each]
    return terms[0] if len(terms) == 1 else " and ".join(f"({each})" for each in terms)


def _by_facets(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str
) -> Mapping[str, str] | None:
    cells = [(name, cell) for name, cell in zip(table.columns, row, strict=True) if isinstance(cell, str)]
    words = dict(cells[1:] if label else cells)
    if table.name == FAULTS:
        who, kind = words["role"], words["fault"]
        is_known = who in choices.get("fault_of", {}) and kind in choices.get("fault", {})
        return {"fault": f"{who}/{kind}"} if is_known else None
    of_column = table.chosen.get(column, {})
    if of_column is None:
        return None
    chosen = {**of_column}
    for name, cell in words.items():
        facet = table.facets.get(name, FacetColumn(name))
        if facet is not None:
            chosen[facet.name] = facet.values.get(cell, cell)
    return _query(chosen, choices)


def _query(facets: Mapping[str, str], choices: Choices) -> Mapping[str, str] | None:
    """Return values of facets as a query, without those that all scenarios have."""
    query = {}
    for name, value in facets.items():
        known = choices.get(f"facet:{name}", {})
        if value not in known:
            return None
        if len(known) == 1:
            continue
        if not value:
            return None  # an address cannot ask for an empty text
        query[FACET + name] = value
    return query
