"""The queries in addresses that select scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.graphs import Table
from dialoom.graphs.tables import FacetColumn, ScenarioFilter
from dialoom.runs.errors import RunError
from dialoom.runs.report import FAULTS
from dialoom.runs.store import Choices, ScenarioQuery

from .page import Query, View

FACET_PREFIX, MIN_PREFIX, MAX_PREFIX = "facet.", "min.", "max."
LABELLED, UNLABELLED = "labelled", "not yet"
_FILTERS = frozenset({"state", "ended_by", "fault", "where", "search", "labels"})
_LIST_PARAMETERS = _FILTERS | {"sort", "order"}


def build_query(view: View, here: int | None = None) -> ScenarioQuery:
    """Return the scenario query that the page's address specifies, without `where` and `search`.

    Args:
        view: The view that the page shows.
        here: The displayed scenario; it stays in a list of unlabelled scenarios while it is being labelled.

    Raises:
        RunError: If a bound is not a number.
    """
    labelling = view.get("labels") if view.get("as") else ""
    labelled = find_labelled(view) if labelling in (LABELLED, UNLABELLED) else frozenset()
    return ScenarioQuery(
        state=view.get("state"),
        ended_by=view.get("ended_by"),
        facets=get_prefixed(view, FACET_PREFIX),
        at_least={name: _parse_number(name, value) for name, value in get_prefixed(view, MIN_PREFIX).items()},
        at_most={name: _parse_number(name, value) for name, value in get_prefixed(view, MAX_PREFIX).items()},
        fault=view.get("fault"),
        among=labelled if labelling == LABELLED else None,
        without=labelled - {here} if labelling == UNLABELLED else frozenset(),
        sort=view.get("sort"),
        is_descending=view.get("order") == "desc",
        judging=view.get("judging") or None,
    )


def parse_metrics(view: View) -> tuple[str, ...]:
    """Return the metrics to label; empty for all."""
    return tuple(filter(None, view.get("metrics").split(",")))


def find_labelled(view: View, annotator: str = "") -> frozenset[int]:
    """Return the positions of scenarios for which the annotator has labelled all metrics to label."""
    found = view.run.run.labelled(
        annotator or view.get("as"), metrics=parse_metrics(view), judging=view.get("judging") or None
    )
    return frozenset(position for position, each in found.items() if each.is_complete)


def is_blind(view: View) -> bool:
    """Return whether the judge's scores are hidden, which is the default while an annotator labels."""
    return view.get("blind") != "0" if view.get("as") else view.get("blind") == "1"


def get_prefixed(view: View, prefix: str) -> dict[str, str]:
    """Return the query's values whose names begin with a prefix, by the name without the prefix."""
    return {
        name.removeprefix(prefix): view.get(name) for name in view.query if name.startswith(prefix) and view.get(name)
    }


def get_list_query(view: View) -> Query:
    """Return the part of the query that selects the list of scenarios; empty for all scenarios in plan order."""
    return {
        name: view.get(name)
        for name in view.query
        if (name in _LIST_PARAMETERS or name.startswith((FACET_PREFIX, MIN_PREFIX, MAX_PREFIX))) and view.get(name)
    }


def is_filtered(view: View) -> bool:
    """Return whether the address selects only some scenarios; sorting alone does not count."""
    return any(
        name in _FILTERS or name.startswith((FACET_PREFIX, MIN_PREFIX, MAX_PREFIX)) for name in get_list_query(view)
    )


def get_navigation_query(view: View) -> dict[str, str]:
    """Return the query parameters that stay when another conversation is opened: those of the list and the view."""
    filters = {name: view.get(name) for name in ("judging", "blind", "as", "metrics") if view.get(name)}
    return {**{name: view.get(name) for name in get_list_query(view)}, **filters}


def _parse_number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RunError(f"{name} must be a number, got {value!r:.40}") from None


_PENDING = "pending"
_PLAYED_CONDITION = f"state != '{_PENDING}'"


def build_figure_query(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str = "", where: str = ""
) -> Mapping[str, str] | None:
    """Return the query that selects the conversations from which a figure was computed; `None` if it is not known.

    Args:
        table: A table of the report.
        row: A row of the table.
        column: The name of the figure's column.
        choices: The values by which the scenarios of the row's run can be filtered.
        label: The run's label, with which the row begins if there are several runs.
        where: The expression that selects the report's scenarios.
    """
    query = _build_facet_query(table, row, column, choices, label)
    if query is None:
        return None
    own_filter = table.counted.get(column, ScenarioFilter())
    if not isinstance(own_filter, ScenarioFilter):
        matching = (own_filter[cell] for cell in row if isinstance(cell, str) and cell in own_filter)
        own_filter = next(matching, ScenarioFilter())
    filters = (table.population, own_filter)
    parameters = [pair for each in filters for pair in (("state", each.state), ("ended_by", each.ended_by))]
    has_pending = _PENDING in choices.get("state", {})
    expressions = [
        where,
        table.where,
        *(each.expression for each in filters),
        _PLAYED_CONDITION if has_pending else "",
    ]
    return {**query, **{name: value for name, value in parameters if value}, "where": _join_conditions(*expressions)}


def _join_conditions(*expressions: str) -> str:
    """Join expressions by `and`; empty ones are left out."""
    terms = [each for each in dict.fromkeys(expressions) if each]
    return terms[0] if len(terms) == 1 else " and ".join(f"({each})" for each in terms)


def _build_facet_query(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str
) -> Mapping[str, str] | None:
    cells = [(name, cell) for name, cell in zip(table.columns, row, strict=True) if isinstance(cell, str)]
    texts = dict(cells[1:] if label else cells)
    if table.name == FAULTS:
        role, kind = texts["role"], texts["fault"]
        is_known = role in choices.get("fault_of", {}) and kind in choices.get("fault", {})
        return {"fault": f"{role}/{kind}"} if is_known else None
    column_facets = table.chosen.get(column, {})
    if column_facets is None:
        return None
    chosen = {**column_facets}
    for name, cell in texts.items():
        facet = table.facets.get(name, FacetColumn(name))
        if facet is not None:
            chosen[facet.name] = facet.values.get(cell, cell)
    return _build_query(chosen, choices)


def _build_query(facets: Mapping[str, str], choices: Choices) -> Mapping[str, str] | None:
    """Return values of facets as a query, without those that all scenarios have."""
    query = {}
    for name, value in facets.items():
        numbers = choices.get(f"facet:{name}", {})
        if value not in numbers:
            return None
        if len(numbers) == 1:
            continue
        if not value:
            return None  # an address cannot ask for an empty text
        query[FACET_PREFIX + name] = value
    return query
