"""The default tables of recipes without pivots: every metric overall, by each facet with few values, and by turn."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from dialoom.graphs.outcome import TRIAL_OF, USER_MODEL, Episode, Status
from dialoom.grouping import group_pairs

from .pivot import format_turn_title
from .statistics import TRIALS_NOTE, Tally, intervals
from .table import EMPTY_LABEL, MISSING_STATUSES, Cell, Facet, FacetColumn, ScenarioFilter, Table, format_missing_notes

MAX_FACET_VALUES = 12
"""Maximum number of values of a facet with a default table.

If there are more values, they identify scenarios rather than groups.
"""

MAX_NUMERIC_VALUES = 5
"""The same maximum for a facet of numbers, such as an age. Tables with a row for each of many numbers are seldom
useful.
"""

_NUMBER = re.compile(r"-?\d+([.,]\d+)?")
_NO_SCORE_NOTE = "No score at all: {metrics}. A check gives no score for a conversation if it returns None."


def build_default_tables(
    episodes: Iterable[Episode],
    unit: str | None = None,
    units: str = "scenarios",
    check_metrics: Collection[str] = (),
    scales: Mapping[str, tuple[int, int]] | None = None,
) -> list[Table]:
    """Return tables of every metric: overall, by each facet with 2 to 12 values (or 2 to 5 numbers), and by turn.

    If several facets group the scenarios in the same way, such as name and address, only the first one has a table.

    Args:
        episodes: The scenarios, which are read once.
        unit: The facet whose values are the units of intervals; `None` for scenarios.
        units: The plural name of the facet's values.
        check_metrics: The metrics that checks rather than judges score.
        scales: The lowest and the highest score by metric.
    """
    groups: dict[str, dict[str, _GroupTally]] = {}
    overall, skipped, partitions = _GroupTally(check_metrics), set[str](), defaultdict[str, Any](hashlib.sha256)
    for episode in episodes:
        unit_value = episode.unit(unit)
        overall.add(episode, unit_value)
        for name in episode.facets:
            if name in skipped or name in (USER_MODEL, TRIAL_OF):  # there is a separate table of user models
                continue
            facet_groups, values = groups.setdefault(name, {}), Facet(name).values(episode)
            for value in values:
                facet_groups.setdefault(value, _GroupTally(check_metrics)).add(episode, unit_value)
            partitions[name].update(f"{overall.size} {[[*facet_groups].index(value) for value in values]};".encode())
            if len(facet_groups) > MAX_FACET_VALUES:
                skipped.add(name)
                del groups[name]
    scored = {metric for metric, *_ in (*overall.tallies, *overall.by_turn)}.union(*overall.missing.values())
    unscored = [metric for metric in check_metrics if metric not in scored] if overall.size else []
    if not scored and not unscored:
        return []
    tables = [_build_table("scores", "Scores", "", {"": overall}, overall, units)]
    if unscored and overall.done:
        tables[0].notes.append(_NO_SCORE_NOTE.format(metrics=", ".join(unscored)))
    if not scored:
        return tables
    for name, values in sorted((name, [*filter(None, facet_groups)]) for name, facet_groups in groups.items()):
        if len(values) > MAX_NUMERIC_VALUES and all(map(_NUMBER.fullmatch, values)):
            del groups[name]
            tables[0].notes.append(f"There is no table by {name}: it has {len(values)} different numbers.")
    ordered = sorted(groups, key=lambda name: name != unit)
    alike = group_pairs((partitions[name].digest(), name) for name in ordered if 1 < len(groups[name]) < overall.size)
    for name, *others in sorted(alike.values()):
        tables.append(_build_table(f"scores-by-{name}", f"Scores by {name}", name, groups[name], overall, units))
        if others:
            tables[0].notes.append(
                f"There is no table by {' or '.join(others)}, because its groups would equal those by {name}."
            )
    for table in tables:
        known = ((column, (scales or {}).get(column.partition(" ")[0])) for column in table.columns)
        table.scales = {column: scale for column, scale in known if scale is not None}
    return tables


def _sort_key(value: str) -> tuple[bool, float, str]:
    """Return the sort key of a facet's value: numbers come first, by size, and then texts."""
    is_number = _NUMBER.fullmatch(value) is not None
    return not is_number, float(value.replace(",", ".")) if is_number else 0.0, value


class _GroupTally:
    """A group of scenarios, with tallies of all their metrics."""

    def __init__(self, check_metrics: Collection[str]) -> None:
        self._check_metrics = check_metrics
        self.size = self.done = 0
        self.has_trials = False
        self.missing: dict[Status, Counter[str]] = defaultdict(Counter)
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.verdicts: dict[tuple[str, str], bool] = {}
        self.turn_verdicts: dict[tuple[str, str], bool] = {}
        self.by_turn: dict[tuple[str, str, int], Tally] = defaultdict(partial(Tally, judged=True))

    def add(self, episode: Episode, unit_value: Any) -> None:
        self.size += 1
        self.done += episode.state == "done"
        self.has_trials |= episode.repeated is not None
        for each in episode.outcome.judgements:
            key = (each.metric, each.target)
            if each.score is None:
                self.missing[each.status][each.metric] += 1
            elif each.turn is None:
                tally = self.tallies.setdefault(key, Tally(judged=each.metric not in self._check_metrics))
                tally.add(each.score, unit_value, episode.repeated)
                self.verdicts[key] = self.verdicts.get(key, True) and isinstance(each.score, bool)
            else:
                self.by_turn[(*key, each.turn)].add(each.score, unit_value, episode.repeated)
                self.turn_verdicts[key] = self.turn_verdicts.get(key, True) and isinstance(each.score, bool)


def _build_table(
    name: str, title: str, facet: str, groups: Mapping[str, _GroupTally], overall: _GroupTally, units: str
) -> Table:
    keys, turns = sorted(overall.tallies), sorted(overall.by_turn)
    titles = [_format_title(*key, keys, overall.verdicts[key]) for key in keys]
    turn_titles = {
        key: f"{' '.join(key)}{' %' if is_verdict else ''}" for key, is_verdict in overall.turn_verdicts.items()
    }
    titles += [format_turn_title(turn_titles[metric, target], turn) for metric, target, turn in turns]
    missing = [status for status in MISSING_STATUSES if status in overall.missing]
    size = "conversations" if overall.has_trials else "scenarios"
    table = Table(
        name, title, [*([facet] if facet else []), size, *titles, *(MISSING_STATUSES[each][0] for each in missing)]
    )
    if not facet:
        table.charted = [
            *titles[: len(keys)],
            *dict.fromkeys(turn_titles[metric, target] for metric, target, _ in turns),
        ]
    if "" in groups and facet:
        table.facets = {facet: FacetColumn(facet, {EMPTY_LABEL: ""})}
    for value in sorted(groups, key=_sort_key):
        group = groups[value]
        cells: list[Cell] = [
            tally.estimate(as_scores=not overall.verdicts[key]) if (tally := group.tallies.get(key)) else None
            for key in keys
        ]
        cells += [group.by_turn[key].estimate(as_scores=not overall.turn_verdicts[key[:2]]) for key in turns]
        missing_counts = [group.missing[status].total() if status in group.missing else 0 for status in missing]
        table.rows.append([*([value or EMPTY_LABEL] if facet else []), group.size, *cells, *missing_counts])
        by_column = zip(titles[len(keys) :], (group.by_turn[key].n for key in turns), strict=True)
        table.chosen |= {column: None for column, n in by_column if n < group.size}
    judged = [f"{metric} ({target})" for metric, target in keys]
    judged += [f"{metric} ({target}) by turn" for metric, target, _ in turns]
    table.judged = {column: [what] for column, what in zip(titles, judged, strict=True)}
    for (metric, target), column in zip(keys, titles, strict=False):
        if overall.tallies[metric, target].n < overall.size:
            table.counted[column] = ScenarioFilter(metric, target)
    table.counted |= {MISSING_STATUSES[status][0]: ScenarioFilter(status=status) for status in missing}
    table.notes = format_missing_notes(overall.missing)
    if titles:
        table.notes += [intervals(units), *([TRIALS_NOTE] if overall.has_trials else [])]
    return table


def _format_title(metric: str, target: str, known: Iterable[tuple[str, str]], is_verdict: bool) -> str:
    has_several_targets = sum(name == metric for name, _ in known) > 1
    return f"{metric}{f' {target}' if has_several_targets else ''}{' %' if is_verdict else ''}"
