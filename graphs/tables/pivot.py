"""Pivots: tables by facet and metric, declared as frozen values."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Literal, TypeAlias

from dialoom.graphs.outcome import Episode, Judgement, Status

from .statistics import TRIALS_NOTE, Estimate, Tally, intervals, paired_difference
from .table import Cell, Facet, FacetColumn, ScenarioFilter, Table, format_missing_notes

Value: TypeAlias = "bool | int | float | None"
Show = Literal["estimate", "mean", "count"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures, made by `score`, `mean`, `share`, `ratio`, `count` or `difference`.

    Attributes:
        title: The column's name. If it ends in `%`, fractions are shown as percentages.
        value: A function that returns the contribution of a scenario: one value or a list of values. `None` contributes
            nothing.
        metric: For a score: the metric. The judgements of this metric contribute.
        target: For a score: the role whose messages were judged.
        by_turn: Whether judgements of turns contribute, with one column per turn, rather than judgements of whole
            outcomes.
        show: `estimate`: the mean with its 95 % interval and n. `mean`: the mean alone. `count`: the number of true
            values.
        counted: The scenarios that contribute, for the drill-down from a figure; `None` if a function selects them.
        scale: The lowest and the highest possible value.
        parts: For a ratio: a function that returns a scenario's parts of both sums. If the first part is unknown
            (`None`), the ratio is undefined.
        pair: For a difference: a function that returns the key of the pair, the side (0 or 1), and the value.
        judged: Whether a judge gives the values. A figure is then marked if all its values are equal.
        facets: For a difference: the facets that it compares, and those by which it pairs scenarios.
    """

    title: str
    value: Callable[[Episode], Value | list[Value]] | None = None
    show: Show = "estimate"
    counted: ScenarioFilter | None = None
    scale: tuple[float, float] | None = None
    metric: str = ""
    target: str = ""
    by_turn: bool = False
    parts: Callable[[Episode], tuple[float | None, float] | None] | None = None
    pair: Callable[[Episode], tuple[Hashable, int, float] | None] | None = None
    judged: bool = False
    facets: tuple[str, ...] = ()

    def judgements(self, episode: Episode) -> Iterator[Judgement]:
        """Yield the judgements of a scenario that contribute to the column.

        They are judgements of the whole outcome (one per branch of a tree) or of turns.
        """
        for each in episode.outcome.judgements:
            if (each.metric, each.target) == (self.metric, self.target) and (each.turn is not None) == self.by_turn:
                yield each


def score(
    metric: str,
    target: str = "assistant",
    title: str = "",
    scale: tuple[float, float] | None = None,
    judged: bool = True,
) -> Column:
    """Return a column of a metric's mean score, or of the share of true verdicts, with its interval.

    Args:
        metric: The metric.
        target: The role whose messages were judged.
        title: The column's name; by default the metric. The name of a share of verdicts should end in `%`.
        scale: The metric's scale.
        judged: Whether a judge rather than a check scores the metric.
    """
    counted = ScenarioFilter(metric, target)
    return Column(title or metric, metric=metric, target=target, counted=counted, scale=scale, judged=judged)


def score_by_turn(
    metric: str, target: str = "assistant", title: str = "", scale: tuple[float, float] | None = None
) -> Column:
    """Return columns of a judge's mean score at each turn with scores: `TITLE turn 1`, and so on.

    For verdicts, the title should end in `%`; the columns are then `TITLE turn 1 %`, and so on.
    """
    return Column(title or metric, metric=metric, target=target, by_turn=True, scale=scale, judged=True)


def mean(
    title: str, value: Callable[[Episode], Value], counted: ScenarioFilter | None = None, interval: bool = True
) -> Column:
    """Return a column of a mean over scenarios, with or without an interval.

    Args:
        title: The column's name.
        value: A function that returns the contribution of a scenario; `None` contributes nothing.
        counted: The scenarios that contribute, for the drill-down, if not all contribute.
        interval: Whether to show the 95 % interval and n.
    """
    return Column(title, value, show="estimate" if interval else "mean", counted=counted)


def share(title: str, of: Callable[[Episode], bool | None]) -> Column:
    """Return a column of a share of scenarios with Wilson's interval. The title should end in `%`."""
    return Column(title, of)


def ratio(
    title: str, parts: Callable[[Episode], tuple[float | None, float] | None], counted: ScenarioFilter | None = None
) -> Column:
    """Return a column of the ratio of two sums, such as tokens per reply.

    `parts` returns a scenario's part of each sum.
    """
    return Column(title, show="mean", counted=counted, parts=parts)


def count(
    title: str = "scenarios", of: Callable[[Episode], bool] = lambda _episode: True, ended_by: str = ""
) -> Column:
    """Return a column of the number of scenarios: all, those for which a function is true, or those with an ending.

    The drill-down from a figure to its scenarios works for an ending, but not for a function.

    Args:
        title: The column's name.
        of: A function that returns whether a scenario counts; by default all scenarios count.
        ended_by: The ending; empty for any ending.
    """
    if not ended_by:
        return Column(title, of, show="count")

    return Column(
        title,
        lambda episode: episode.outcome.ended_by == ended_by and of(episode),
        show="count",
        counted=ScenarioFilter(ended_by=ended_by),
    )


def difference(
    title: str, metric: str, facet: str, of: tuple[str, str], by: Sequence[str], target: str = "assistant"
) -> Column:
    """Return a column of the mean paired difference of a score between two values of a facet, with its interval.

    Args:
        title: The column's name.
        metric: The metric.
        facet: The facet.
        of: Two values of the facet. The difference is the score with the second value minus the score with the first.
        by: The facets by which scenarios are paired.
        target: The role whose messages were judged.
    """
    scored = score(metric, target)

    def pair(episode: Episode) -> tuple[Hashable, int, float] | None:
        value = str(episode.facets.get(facet))
        found = [float(each.score) for each in scored.judgements(episode) if each.score is not None]
        if value not in of or not found:
            return None
        return tuple(str(episode.facets.get(name)) for name in by), of.index(value), sum(found) / len(found)

    return Column(title, pair=pair, facets=(facet, *by))


@dataclass(frozen=True, slots=True)
class Pivot:
    """The declaration of a table.

    Attributes:
        name: A short name, usable as a file name.
        title: The title.
        rows: The facets of the rows, or their names. If there are none, there is a single row.
        columns: The figures.
        notes: Lines below the table, above the explanation of the intervals.
        only_scored: Whether to leave out rows without any judgement or other value for a mean.
        charted: The titles of the columns that are drawn as charts; none by default. Columns with the same scale share
            a chart.
    """

    name: str
    title: str
    rows: Sequence[Facet | str] = ()
    columns: Sequence[Column] = ()
    notes: Sequence[str] = ()
    only_scored: bool = True
    charted: Sequence[str] = ()

    @property
    def facets(self) -> list[Facet]:
        """The facets of the rows."""
        return [Facet(each) if isinstance(each, str) else each for each in self.rows]


def tabulate(
    pivots: Sequence[Pivot],
    episodes: Iterable[Episode],
    unit: str | None = None,
    units: str = "scenarios",
    *,
    keep_empty: bool = False,
) -> list[Table]:
    """Return the tables of pivots from finished scenarios, which are read once. Tables without rows are left out.

    Args:
        pivots: The declarations.
        episodes: The scenarios.
        unit: The facet whose values are the units of intervals, as `unit_facet` returns it; `None` for scenarios.
        units: The plural name of the facet's values.
        keep_empty: Whether to return tables without rows, too.
    """
    tallies = [_PivotTally(pivot, unit) for pivot in pivots]
    for episode in episodes:
        for each in tallies:
            each.add(episode)
    return [table for each in tallies if (table := each.table(units)).rows or keep_empty]


def find_hidden_metrics(pivots: Iterable[Pivot], metrics: Iterable[str]) -> list[str]:
    """Return the metrics that no column shows. A column whose title contains a metric's name shows that metric."""
    columns = [column for pivot in pivots for column in pivot.columns]
    shown_metrics, titles = {column.metric for column in columns}, "\n".join(column.title for column in columns)
    return [each for each in metrics if each not in shown_metrics and not re.search(rf"\b{re.escape(each)}\b", titles)]


class _PivotTally:
    """A pivot, with a tally for each cell of its table."""

    def __init__(self, pivot: Pivot, unit: str | None) -> None:
        self._pivot = pivot
        self._facets = pivot.facets
        self._unit = unit
        self._cells: dict[tuple[str, ...], dict[int, _CellTally]] = {}
        self._sizes: dict[tuple[str, ...], int] = defaultdict(int)
        self._missing: dict[Status, Counter[str]] = defaultdict(Counter)
        self._has_trials = False

    def add(self, episode: Episode) -> None:
        self._has_trials |= episode.repeated is not None
        unit_value = episode.unit(self._unit)
        for column in self._pivot.columns:
            for judgement in column.judgements(episode) if column.metric else ():
                if judgement.score is None:
                    self._missing[judgement.status][column.title] += 1
        for key in itertools.product(*(facet.values(episode) for facet in self._facets)):
            self._sizes[key] += 1
            cells = self._cells.setdefault(key, {})
            for place, column in enumerate(self._pivot.columns):
                if place not in cells:
                    cells[place] = _CellTally(column.judged)
                cells[place].add(column, episode, unit_value)

    def table(self, units: str) -> Table:
        pivot = self._pivot
        spans: list[Sequence[int | None]] = [
            range(1, max((turn for cells in self._cells.values() for turn in cells[place].by_turn), default=0) + 1)
            if column.by_turn
            else [None]
            for place, column in enumerate(pivot.columns)
        ]
        titles = [
            column.title if turn is None else format_turn_title(column.title, turn)
            for column, span in zip(pivot.columns, spans, strict=True)
            for turn in span
        ]
        columns = [*(facet.column for facet in self._facets), *titles]
        table = Table(pivot.name, pivot.title, columns, charted=pivot.charted)
        table.facets = {
            facet.column: FacetColumn(facet.name, {label: value for value, label in facet.labels.items()})
            for facet in self._facets
            if facet.title or facet.labels
        }
        for key in sorted(
            self._cells, key=lambda key: [facet.rank(each) for facet, each in zip(self._facets, key, strict=True)]
        ):
            self._add_row(table, key, spans)
        has_estimates = any(isinstance(cell, Estimate) for row in table.rows for cell in row)
        table.notes = [
            *pivot.notes,
            *format_missing_notes(self._missing),
            *([intervals(units)] if has_estimates else []),
        ]
        if has_estimates and self._has_trials:
            table.notes.append(TRIALS_NOTE)
        return table

    def _add_row(self, table: Table, key: tuple[str, ...], spans: Sequence[Sequence[int | None]]) -> None:
        cells: list[Cell] = []
        for place, (column, span) in enumerate(zip(self._pivot.columns, spans, strict=True)):
            cell = self._cells[key][place]
            for turn in span:
                cells.append(cell.shown(column, turn))
                name = table.columns[len(self._facets) + len(cells) - 1]
                if column.judged and column.metric:
                    table.judged[name] = [f"{column.metric} ({column.target}){' by turn' if column.by_turn else ''}"]
                if column.scale is not None:
                    table.scales = {**table.scales, name: column.scale}
                if column.pair is None and cell.count_values(turn) < self._sizes[key]:
                    if column.counted is None:
                        table.chosen[name] = None
                    else:
                        table.counted[name] = column.counted
        is_judged = any(cell.has_missing_score for cell in self._cells[key].values())
        is_scored = is_judged or any(isinstance(cell, Estimate) for cell in cells)
        if is_scored or not self._pivot.only_scored or all(each.show != "estimate" for each in self._pivot.columns):
            labels = [facet.labels.get(each, each) for facet, each in zip(self._facets, key, strict=True)]
            table.rows.append([*labels, *cells])


class _CellTally:
    """A tally of the values of one column in one row."""

    def __init__(self, judged: bool) -> None:
        self.tally = Tally(judged=judged)
        self.total = 0.0
        self.value_count = 0
        self.by_turn: dict[int, Tally] = defaultdict(partial(Tally, judged=judged))
        self.pairs: dict[Hashable, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        self.people: dict[Hashable, Any] = {}
        self.denominator = 0.0
        self.has_missing_score = False

    def add(self, column: Column, episode: Episode, unit_value: Any) -> None:
        if column.metric:
            for judgement in column.judgements(episode):
                self.has_missing_score |= judgement.score is None
                if judgement.turn is None:
                    self._add(column, judgement.score, unit_value, episode.repeated)
                elif judgement.score is not None:
                    self.by_turn[judgement.turn].add(judgement.score, unit_value, episode.repeated)
        elif column.parts is not None:
            if (parts := column.parts(episode)) is not None:
                self.total += math.nan if parts[0] is None else parts[0]
                self.denominator += parts[1]
                self.value_count += 1
        elif column.pair is not None:
            if (pair := column.pair(episode)) is not None:
                key, side, value = pair
                self.pairs[key][side][episode.id] = value
                self.people[key] = key if unit_value is None else unit_value
        elif column.value is not None:
            found = column.value(episode)
            for each in found if isinstance(found, list) else [found]:
                self._add(column, each, unit_value, episode.repeated)

    def _add(self, column: Column, value: Value, unit_value: Any, scenario: str | None) -> None:
        if value is None:
            return
        self.value_count += 1 if column.show != "count" else bool(value)
        if column.show == "mean":
            self.total += float(value)
        elif column.show == "estimate":
            self.tally.add(value, unit_value, scenario)

    def count_values(self, turn: int | None) -> int:
        """Return the number of contributing values, for one turn or in total."""
        return self.value_count if turn is None else self.by_turn[turn].n if turn in self.by_turn else 0

    def shown(self, column: Column, turn: int | None) -> Cell:
        if turn is not None:
            return self.by_turn[turn].estimate() if turn in self.by_turn else None
        if column.pair is not None:
            found = paired_difference(
                (self.people[key], fmean(sides[1].values()) - fmean(sides[0].values()))
                for key, sides in self.pairs.items()
                if len(sides) == 2
            )
            return None if found is None else found.estimate
        if column.parts is not None:
            return self.total / self.denominator if self.denominator and not math.isnan(self.total) else None
        if column.show == "count":
            return self.value_count
        if column.show == "mean":
            return self.total / self.value_count if self.value_count else None
        return self.tally.estimate()


def format_turn_title(title: str, turn: int) -> str:
    """Return the title of a turn's column; the `%` of a share stays at the end."""
    return f"{title.removesuffix(' %')} turn {turn}{' %' if title.endswith(' %') else ''}"
