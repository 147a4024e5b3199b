"""Which scenarios an address asks for: the list's filters and its order, which a conversation's address keeps."""

from __future__ import annotations

from dialoom.runs.errors import RunError
from dialoom.runs.store import ScenarioQuery

from .page import Query, View

FACET, LEAST, MOST = "facet.", "min.", "max."
LABELLED, UNLABELLED = "labelled", "not yet"
_NARROWING = frozenset({"state", "ended_by", "fault", "where", "said", "labels"})
_OF_A_LIST = _NARROWING | {"sort", "order"}


def query_of(view: View, here: int | None = None) -> ScenarioQuery:
    """What the address asks for, but for `where` and `said`.

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
    """The metrics that are labelled; empty for all."""
    return tuple(filter(None, view.one("metrics").split(",")))


def labelled_in(view: View, annotator: str = "") -> frozenset[int]:
    """Return the positions of the scenarios of which whoever labels has labelled all chosen metrics."""
    found = view.run.run.labelled(
        annotator or view.one("as"), metrics=chosen_metrics(view), judging=view.one("judging") or None
    )
    return frozenset(position for position, each in found.items() if each.is_complete)


def is_blind(view: View) -> bool:
    """Whether the judge's scores are hidden: by default whenever somebody labels."""
    return view.one("blind") != "0" if view.one("as") else view.one("blind") == "1"


def named(view: View, prefix: str) -> dict[str, str]:
    """The values whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): view.one(name) for name in view.query if name.startswith(prefix) and view.one(name)
    }


def list_of(view: View) -> Query:
    """What of the address says which list one has come from; empty for all scenarios in plan order."""
    return {
        name: view.one(name)
        for name in view.query
        if (name in _OF_A_LIST or name.startswith((FACET, LEAST, MOST))) and view.one(name)
    }


def is_narrowed(view: View) -> bool:
    """Whether the address asks for some of the scenarios, and not for all in whatever order."""
    return any(name in _NARROWING or name.startswith((FACET, LEAST, MOST)) for name in list_of(view))


def kept(view: View) -> dict[str, str]:
    """What stays the same on the way to another conversation: the list, and how conversations are looked at."""
    own = {name: view.one(name) for name in ("judging", "blind", "as", "metrics") if view.one(name)}
    return {**{name: view.one(name) for name in list_of(view)}, **own}


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RunError(f"{name} {value!r:.40} is no number") from None
