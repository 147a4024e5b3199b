"""The scenarios that an address selects: the list's filters and its order, which a conversation's address keeps."""

from __future__ import annotations

from dialoom.runs.errors import RunError
from dialoom.runs.store import ScenarioQuery

from .page import Query, View

FACET, LEAST, MOST = "facet.", "min.", "max."
LABELLED, UNLABELLED = "labelled", "not yet"
_NARROWING = frozenset({"state", "ended_by", "fault", "where", "said", "labels"})
_OF_A_LIST = _NARROWING | {"sort", "order"}


def query_of(view: View, here: int | None = None) -> ScenarioQuery:
    """Return the query of the address, without `where` and `said`.

    Args:
        view: The page's.
        here: The scenario that one looks at: it stays among those that are not labelled while it is labelled.

    Raises:
        RunError: If a bound is no number.
    """
    wanted = view.one("labels") if view.one("as") else ""
    labelled = labelled_in(view) if wanted in (LABELLED, UNLABELLED) else frozenset()
    return ScenarioQuery(
        state=view.one("state"),
        ended_by=view.one("ended_by"),
        facets=named(view, FACET),
        at_least={name: _number(name, value) for name, value in named(view, LEAST).items()},
        at_most={name: _number(name, value) for name, value in named(view, MOST).items()},
        fault=view.one("fault"),
        among=labelled if wanted == LABELLED else None,
        without=labelled - {here} if wanted == UNLABELLED else frozenset(),
        sort=view.one("sort"),
        is_descending=view.one("order") == "desc",
        judging=view.one("judging") or None,
    )


def chosen_metrics(view: View) -> tuple[str, ...]:
    """Return the metrics that are labelled; empty for all."""
    return tuple(filter(None, view.one("metrics").split(",")))


def labelled_in(view: View, annotator: str = "") -> frozenset[int]:
    """Return the positions of the scenarios of which the annotator has labelled all chosen metrics."""
    found = view.run.run.labelled(
        annotator or view.one("as"), metrics=chosen_metrics(view), judging=view.one("judging") or None
    )
    return frozenset(position for position, each in found.items() if each.is_complete)


def is_blind(view: View) -> bool:
    """Return whether the judge's scores are hidden: by default whenever an annotator labels."""
    return view.one("blind") != "0" if view.one("as") else view.one("blind") == "1"


def named(view: View, prefix: str) -> dict[str, str]:
    """Return the values whose names have a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): view.one(name) for name in view.query if name.startswith(prefix) and view.one(name)
    }


def list_of(view: View) -> Query:
    """Return the part of the address that selects the list; empty for all scenarios in plan order."""
    return {
        name: view.one(name)
        for name in view.query
        if (name in _OF_A_LIST or name.startswith((FACET, LEAST, MOST))) and view.one(name)
    }


def is_narrowed(view: View) -> bool:
    """Return whether the address selects some of the scenarios, not all in any order."""
    return any(name in _NARROWING or name.startswith((FACET, LEAST, MOST)) for name in list_of(view))


def kept(view: View) -> dict[str, str]:
    """Return the parameters kept on the way to another conversation: the list, and the view of conversations."""
    own = {name: view.one(name) for name in ("judging", "blind", "as", "metrics") if view.one(name)}
    return {**{name: view.one(name) for name in list_of(view)}, **own}


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RunError(f"{name} {value!r:.40} is no number") from None
