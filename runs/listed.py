"""The scenarios that are wanted, a page at a time: by what SQLite knows of them, by an expression, by what was said."""

from __future__ import annotations

from dataclasses import replace

from .selection import every
from .spoken import SpokenIndex
from .store import RunFile, ScenarioPage, ScenarioQuery


def listed(
    run: RunFile, query: ScenarioQuery, where: str | None, said: str | None, offset: int, limit: int
) -> ScenarioPage:
    """A page of a run's scenarios; see `dialoom.Run.scenarios`."""
    among = None if query.among is None else {*query.among}
    found: dict[int, int] = {}
    if said:
        found = SpokenIndex(run).search(said)
        among = {*found} if among is None else among & found.keys()
    if where:
        holding = {position for position, _ in every(run, query.judging, where)}
        among = holding if among is None else among & holding
    page = run.page(replace(query, among=among), offset, limit)
    shown = {row.position: found[row.position] for row in page.rows if row.position in found}
    texts = dict(run.spoken().contents([*{*shown.values()}]))
    return replace(page, said={position: texts[id_] for position, id_ in shown.items()})
