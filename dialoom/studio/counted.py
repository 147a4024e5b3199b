"""The conversations behind a figure of a report, as a query of an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.graphs import Table
from dialoom.graphs.reporting import Counted, FacetColumn
from dialoom.runs.report import FAULTS
from dialoom.runs.store import Choices

from .chosen import FACET

_PENDING = "pending"
_PLAYED = f"state != '{_PENDING}'"


def counted(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str = "", where: str = ""
) -> Mapping[str, str] | None:
    """Return the query of a figure's conversations; `None` if the report does not tell which these are.

    Args:
        table: The report's.
        row: One of its rows.
        column: Where the figure stands in it.
        choices: What the scenarios of the row's run can be chosen by.
        label: What the row begins with if it is of one of several runs.
        where: What holds of all that the report is of.
    """
    query = _by_facets(table, row, column, choices, label)
    if query is None:
        return None
    own = table.where_of.get(column, "")
    if not isinstance(own, str):
        own = next((own[cell] for cell in row if isinstance(cell, str) and cell in own), "")
    alone = table.counted.get(column, Counted())
    scored = f"{alone.metric}.{alone.target} is defined" if alone.metric else ""
    told = {name: value for name, value in (("state", alone.state), ("ended_by", alone.ended_by)) if value}
    is_of_played = _PENDING in choices.get("state", {})
    return {**query, **told, "where": _all_of(where, table.where, own, scored, _PLAYED if is_of_played else "")}


def _all_of(*expressions: str) -> str:
    """Join expressions by `and`; empty ones are left out."""
    told = [each for each in dict.fromkeys(expressions) if each]
    return told[0] if len(told) == 1 else " and ".join(f"({each})" for each in told)


def _by_facets(
    table: Table, row: Sequence[object], column: str, choices: Choices, label: str
) -> Mapping[str, str] | None:
    told = [(name, cell) for name, cell in zip(table.columns, row, strict=True) if isinstance(cell, str)]
    words = dict(told[1:] if label else told)
    if table.name == FAULTS:
        who, kind = words["role"], words["fault"]
        is_known = who in choices.get("fault_of", {}) and kind in choices.get("fault", {})
        return {"fault": f"{who}/{kind}"} if is_known else None
    of_column = table.chosen.get(column, {})
    if of_column is None:
        return None
    wanted = {**of_column}
    for name, cell in words.items():
        facet = table.facets.get(name, FacetColumn(name))
        if facet is not None:
            wanted[facet.name] = facet.values.get(cell, cell)
    return _query(wanted, choices)


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
