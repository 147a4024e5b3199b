"""The tables of a recipe that declares none: every metric over all scenarios, by facet and by turn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from dialoom.graphs.outcome import Episode, Status

from .statistics import TRIALS_COUNT_ONCE, Tally, intervals
from .table import MISSING, Cell, Counted, Facet, Table, missing_notes

MOST_VALUES = 12
"""A facet with more values has no table of its own by default: its values identify scenarios rather than groups."""


def default_tables(
    episodes: Iterable[Episode],
    unit: str | None = None,
    units: str = "scenarios",
    unjudged: Collection[str] = (),
    scales: Mapping[str, tuple[int, int]] | None = None,
) -> list[Table]:
    """Return every metric over all scenarios, by each facet with 2 to 12 values, and by turn.

    Args:
        episodes: The scenarios, read once.
        unit: As for `tabulate`.
        units: As for `tabulate`.
        unjudged: Metrics of checks, which no judge scores.
        scales: The lowest and the highest score by metric.
    """
    groups: dict[str, dict[str, _Group]] = {}
    whole, too_many = _Group(unjudged), set[str]()
    for episode in episodes:
        person = episode.unit(unit)
        whole.add(episode, person)
        for name in episode.facets.keys() - too_many:
            of_facet = groups.setdefault(name, {})
            for value in Facet(name).values(episode):
                of_facet.setdefault(value, _Group(unjudged)).add(episode, person)
            if len(of_facet) > MOST_VALUES:
                too_many.add(name)
                del groups[name]
    if not whole.tallies and not whole.by_turn and not whole.missing:
        return []
    tables = [_default_table("scores", "Scores", "", {"": whole}, whole, units)]
    tables += [
        _default_table(f"scores-by-{name}", f"Scores by {name}", name, groups[name], whole, units)
        for name in sorted(groups)
        if 1 < len(groups[name]) < whole.size
    ]
    for table in tables:
        known = ((column, (scales or {}).get(column.partition(" ")[0])) for column in table.columns)
        table.scales = {column: scale for column, scale in known if scale is not None}
    return tables


class _Group:
    """All metrics of some scenarios."""

    def __init__(self, unjudged: Collection[str]) -> None:
        self._unjudged = unjudged
        self.size = 0
        self.has_trials = False
        self.missing: dict[Status, Counter[str]] = defaultdict(Counter)
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.verdicts: dict[tuple[str, str], bool] = {}
        self.by_turn: dict[tuple[str, str, int], Tally] = defaultdict(partial(Tally, judged=True))

    def add(self, episode: Episode, person: Any) -> None:
        self.size += 1
        self.has_trials |= episode.trial is not None
        for each in episode.outcome.judgements:
            key = (each.metric, each.target)
            if each.score is None:
                self.missing[each.status][each.metric] += 1
            elif each.turn is None:
                tally = self.tallies.setdefault(key, Tally(judged=each.metric not in self._unjudged))
                tally.add(each.score, person, episode.repeated)
                self.verdicts[key] = self.verdicts.get(key, True) and isinstance(each.score, bool)
            else:
                self.by_turn[(*key, each.turn)].add(each.score, person, episode.repeated)


def _default_table(name: str, title: str, facet: str, groups: Mapping[str, _Group], whole: _Group, units: str) -> Table:
    keys, turns = sorted(whole.tallies), sorted(whole.by_turn)
    titles = [_title(*key, keys, whole.verdicts[key]) for key in keys]
    titles += [f"{metric} {target} turn {turn}" for metric, target, turn in turns]
    missing = [status for status in MISSING if status in whole.missing]
    table = Table(
        name, title, [*([facet] if facet else []), "scenarios", *titles, *(MISSING[each][0] for each in missing)]
    )
    if not facet:
        table.charted = [*titles[: len(keys)], *dict.fromkeys(f"{metric} {target}" for metric, target, _ in turns)]
    for value, group in sorted(groups.items()):
        cells: list[Cell] = [tally.estimate() if (tally := group.tallies.get(key)) else None for key in keys]
        cells += [group.by_turn[key].estimate() for key in turns]
        absent = [group.missing[status].total() if status in group.missing else 0 for status in missing]
        table.rows.append([*([value] if facet else []), group.size, *cells, *absent])
    for (metric, target), column in zip(keys, titles, strict=False):
        if whole.tallies[metric, target].n < whole.size:
            table.counted[column] = Counted(metric, target)
    table.counted |= {MISSING[status][0]: Counted(status=status) for status in missing}
    table.notes = [*missing_notes(whole.missing), intervals(units)]
    if whole.has_trials:
        table.notes.append(TRIALS_COUNT_ONCE)
    return table


def _title(metric: str, target: str, known: Iterable[tuple[str, str]], is_verdict: bool) -> str:
    is_shared = sum(name == metric for name, _ in known) > 1
    return f"{metric}{f' {target}' if is_shared else ''}{' %' if is_verdict else ''}"
