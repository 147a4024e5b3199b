"""The scenarios that are wanted, a page at a time: by what SQLite knows of them, by an expression, by what was said."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from threading import Lock

from .selection import every
from .spoken import SpokenIndex
from .store import Neighbours, RunFile, ScenarioPage, ScenarioQuery
from .store.signature import Signature, signature

OnProgress = Callable[[str, int, int], None]
"""Is told what is being done, how much of it, and of how much; what it raises ends it."""

_STEP = 500
"""Scenarios from one word of progress to the next."""
_MOST_KEPT = 4

_kept: dict[tuple[Signature, str, str | None, str], frozenset[int]] = {}
"""What expressions held of, as long as the run's file is the same: pages of one list ask for it again and again."""
_keeping = Lock()
"""Threads ask, too."""


def unheard(_what: str, _done: int, _of: int) -> None:
    """Progress that nobody wants to hear of."""


def listed(
    run: RunFile,
    query: ScenarioQuery,
    where: str | None,
    said: str | None,
    offset: int,
    limit: int,
    on_progress: OnProgress = unheard,
) -> ScenarioPage:
    """A page of a run's scenarios; see `dialoom.Run.scenarios`."""
    wanted, found = _wanted(run, query, where, said, on_progress)
    page = run.page(wanted, offset, limit)
    shown = {row.position: found[row.position] for row in page.rows if row.position in found}
    texts = dict(run.spoken().contents([*{*shown.values()}]))
    return replace(page, said={position: texts[id_] for position, id_ in shown.items()})


def neighbours(
    run: RunFile, scenario: str | int, query: ScenarioQuery, where: str | None, said: str | None
) -> Neighbours | None:
    """What stands beside a scenario in such a list; see `dialoom.Run.neighbours`."""
    return run.neighbours(run.resolve(str(scenario)), _wanted(run, query, where, said, unheard)[0])


def _wanted(
    run: RunFile, query: ScenarioQuery, where: str | None, said: str | None, on_progress: OnProgress
) -> tuple[ScenarioQuery, dict[int, int]]:
    """A query that knows which scenarios an expression and words leave, and the text in which each has the words."""
    among: Collection[int] | None = query.among
    found: dict[int, int] = {}
    if said:
        found = SpokenIndex(run).search(said, on_progress)
        among = {*found} if among is None else {*among} & found.keys()
    if where:
        holding = _holding(run, query.judging, where, on_progress)
        among = holding if among is None else holding & {*among}
    return replace(query, among=among), found


def _holding(run: RunFile, judging: str | None, where: str, on_progress: OnProgress) -> frozenset[int]:
    """The positions of the scenarios that an expression holds of."""
    key = (signature(run.path), str(run.path.resolve()), judging, where)
    with _keeping:
        known = _kept.get(key)
    if known is None:
        planned = run.planned

        def look(position: int) -> None:
            if position % _STEP == 0:
                on_progress("looking at scenarios", position, planned)

        known = frozenset(position for position, _ in every(run, judging, where, on_look=look))
    with _keeping:
        _kept.pop(key, None)
        _kept[key] = known  # the last in the line of those that go
        while len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return known
