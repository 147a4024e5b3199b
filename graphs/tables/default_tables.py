"""The default tables of recipes without pivots: every metric overall, by each facet with few values, and by turn."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from dialoom.graphs.outcome import TRIAL_OF, USER_MODEL, Episode, Status
from dialoom.grouping import grouped

from .pivot import turn_title
from .statistics import TRIALS_COUNT_ONCE, Tally, intervals
from .table import EMPTY, MISSING, Cell, Counted, Facet, FacetColumn, Table, missing_notes

MOST_VALUES = 12
"""Maximum number of values of a facet with a default table.

If there are more values, they identify scenarios rather than groups.
"""

MOST_NUMBERS = 5
"""The same maximum for a facet of numbers, such as an age. Tables with a row for each of many numbers are seldom
useful.
"""

_NUMBER = re.compile(r"-?\d+([.,]\d+)?")
_SILENT = "No score at all: {metrics}. A check gives no score for a conversation if it returns None."


def default_tables(
    episodes: Iterable[Episode],
    unit: str | None = None,
    units: str = "scenarios",
    unjudged: Collection[str] = (),
    scales: Mapping[str, tuple[int, int]] | None = None,
) -> list[Table]:
    """Return tables of every metric: overall, by each facet with 2 to 12 values (or 2 to 5 numbers), and by turn.

    If several facets group the scenarios in the same way, such as name and address, only the first one has a table.

    Args:
        episodes: The scenarios, which are read once.
        unit: The facet whose values are the units of intervals; `None` for scenarios.
        units: The plural name of the facet's values.
        unjudged: The metrics that checks rather than judges score.
        scales: The lowest and the highest score by metric.
    """
    groups: dict[str, dict[str, _Group]] = {}
    whole, too_many, split = _Group(unjudged), set[str](), defaultdict[str, Any](hashlib.sha256)
    for episode in episodes:
        person = episode.unit(unit)
        whole.add(episode, person)
        for name in episode.facets:
            if name in too_many or name in (USER_MODEL, TRIAL_OF):  # there is a separate table of user models
                continue
            of_facet, values = groups.setdefault(name, {}), Facet(name).values(episode)
            for value in values:
                of_facet.setdefault(value, _Group(unjudged)).add(episode, person)
            split[name].update(f"{whole.size} {[[*of_facet].index(value) for value in values]};".encode())
            if len(of_facet) > MOST_VALUES:
                too_many.add(name)
                del groups[name]
    scored = {metric for metric, *_ in (*whole.tallies, *whole.by_turn)}.union(*whole.missing.values())
    silent = [metric for metric in unjudged if metric not in scored] if whole.size else []
    if not scored and not silent:
        return []
    tables = [_default_table("scores", "Scores", "", {"": whole}, whole, units)]
    if silent and whole.done:
        tables[0].notes.append(_SILENT.format(metrics=", ".join(silent)))
    if not scored:
        return tables
    for name, values in sorted((name, [*filter(None, of_facet)]) for name, of_facet in groups.items()):
        if len(values) > MOST_NUMBERS and all(map(_NUMBER.fullmatch, values)):
            del groups[name]
            tables[0].notes.append(f"There is no table by {name}: it has {len(values)} different numbers.")
    ordered = sorted(groups, key=lambda name: name != unit)
    alike = grouped((split[name].digest(), name) for name in ordered if 1 < len(groups[name]) < whole.size)
    for name, *others in sorted(alike.values()):
        tables.append(_default_table(f"scores-by-{name}", f"Scores by {name}", name, groups[name], whole, units))
        if others:
            tables[0].notes.append(
                f"There is no table by {' or '.join(others)}, because its groups would equal those by {name}."
            )
    for table in tables:
        known = ((column, (scales or {}).get(column.partition(" ")[0])) for column in table.columns)
        table.scales = {column: scale for column, scale in known if scale is not None}
    return tables


def _rank(value: str) -> tuple[bool, float, str]:
    """Return the sort key of a facet's value: numbers come first, by size, and then texts."""
    is_number = _NUMBER.fullmatch(value) is not None
    return not is_number, float(value.replace(",", ".")) if is_number else 0.0, value


class _Group:
    """A group of scenarios, with tallies of all their metrics."""

    def __init__(self, unjudged: Collection[str]) -> None:
        self._unjudged = unjudged
        self.size = self.done = 0
        self.has_trials = False
        self.missing: dict[Status, Counter[str]] = defaultdict(Counter)
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.verdicts: dict[tuple[str, str], bool] = {}
        self.turn_verdicts: dict[tuple[str, str], bool] = {}
        self.by_turn: dict[tuple[str, str, int], Tally] = defaultdict(partial(Tally, judged=True))

    def add(self, episode: Episode, person: Any) -> None:
        self.size += 1
        self.done += episode.state == "done"
        self.has_trials |= episode.repeated is not None
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
                self.turn_verdicts[key] = self.turn_verdicts.get(key, True) and isinstance(each.score, bool)


def _default_table(name: str, title: str, facet: str, groups: Mapping[str, _Group], whole: _Group, units: str) -> Table:
    keys, turns = sorted(whole.tallies), sorted(whole.by_turn)
    titles = [_title(*key, keys, whole.verdicts[key]) for key in keys]
    by_turn = {key: f"{' '.join(key)}{' %' if is_verdict else ''}" for key, is_verdict in whole.turn_verdicts.items()}
    titles += [turn_title(by_turn[metric, target], turn) for metric, target, turn in turns]
    missing = [status for status in MISSING if status in whole.missing]
    size = "conversations" if whole.has_trials else "scenarios"
    table = Table(name, title, [*([facet] if facet else []), size, *titles, *(MISSING[each][0] for each in missing)])
    if not facet:
        table.charted = [*titles[: len(keys)], *dict.fromkeys(by_turn[metric, target] for metric, target, _ in turns)]
    if "" in groups and facet:
        table.facets = {facet: FacetColumn(facet, {EMPTY: ""})}
    for value in sorted(groups, key=_rank):
        group = groups[value]
        cells: list[Cell] = [tally.estimate() if (tally := group.tallies.get(key)) else None for key in keys]
        cells += [group.by_turn[key].estimate() for key in turns]
        absent = [group.missing[status].total() if status in group.missing else 0 for status in missing]
        table.rows.append([*([value or EMPTY] if facet else []), group.size, *cells, *absent])
        by_column = zip(titles[len(keys) :], (group.by_turn[key].n for key in turns), strict=True)
        table.chosen |= {column: None for column, n in by_column if n < group.size}
    judged = [f"{metric} ({target})" for metric, target in keys]
    judged += [f"{metric} ({target}) by turn" for metric, target, _ in turns]
    table.judged = {column: [what] for column, what in zip(titles, judged, strict=True)}
    for (metric, target), column in zip(keys, titles, strict=False):
        if whole.tallies[metric, target].n < whole.size:
            table.counted[column] = Counted(metric, target)
    table.counted |= {MISSING[status][0]: Counted(status=status) for status in missing}
    table.notes = missing_notes(whole.missing)
    if titles:
        table.notes += [intervals(units), *([TRIALS_COUNT_ONCE] if whole.has_trials else [])]
    return table


def _title(metric: str, target: str, known: Iterable[tuple[str, str]], is_verdict: bool) -> str:
    is_shared = sum(name == metric for name, _ in known) > 1
    return f"{metric}{f' {target}' if is_shared else ''}{' %' if is_verdict else ''}"
