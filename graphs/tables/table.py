"""Tables, charts and outlines of reports, independent of their rendering, and facets that group scenarios."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product, takewhile
from typing import Literal, TypeAlias

from dialoom.graphs.outcome import Episode, Status
from dialoom.grouping import group_pairs

from .statistics import MIN_UNITS, Estimate, is_interval_note

Cell = str | int | float | Estimate | None

Runs: TypeAlias = Sequence[tuple[str, Iterable[Episode]]]
"""For each run, its label (such as its model), and its finished scenarios, which can be iterated once."""

EMPTY_LABEL = "(empty)"
"""The text that is shown for an empty value of a facet."""

CONSTANT_MARK = "†"
"""The mark of a figure for which a judge gave only equal scores."""

DOUBTFUL_MARK = "‡"
"""The mark of a figure whose judge fails a health check. A note of the table gives the reasons."""

CONSTANT_NOTE = (
    f"{CONSTANT_MARK} Constant: the judge gave the same score every time (marked from {MIN_UNITS} scores on; a "
    "difference is "
    "marked if this holds in either run). The figure does not show that the judge can distinguish. It may still be "
    "right, for example if an assistant always reaches the goal: read some of the judge's explanations, or compare "
    "it with people's "
    "labels or another judge."
)
"""The note below a table with a figure whose scores are all equal."""

ZERO_WIDTH_NOTE = (
    "An interval without width, such as [1.00, 1.00]: all scores or differences are equal, so that every resample has "
    "the same mean. It does not show how much other conversations may differ."
)
"""The note below a table with an interval without width."""


@dataclass(frozen=True, slots=True)
class FacetColumn:
    """The facet whose values a column of texts shows.

    Attributes:
        name: The facet.
        values: A mapping from the column's texts to the facet's values, if they differ.
    """

    name: str
    values: Mapping[str, str] = field(default_factory=dict)


MISSING_STATUSES: Mapping[Status, tuple[str, str]] = {
    "unparsed": ("unparsed", "Unparsed: judgements whose reply could not be parsed"),
    "error": ("errors", "Errors: checks that raised an exception or returned no score"),
    "tied": ("tied", "Tied: verdicts without a majority in the panel"),
}
"""The column title and the explanation for judgements without a score, by status."""


def format_missing_notes(missing: Mapping[Status, Counter[str]]) -> list[str]:
    """Return a table's notes about judgements without a score, given the number of these by status and metric."""
    numbers = {
        meaning: ", ".join(f"{metric} {number:,}" for metric, number in sorted(missing[status].items()))
        for status, (_, meaning) in MISSING_STATUSES.items()
        if missing.get(status)
    }
    return [
        f"{meaning}; they are excluded from all means. In the scenarios of this table: {counts}."
        for meaning, counts in numbers.items()
    ]


@dataclass(frozen=True, slots=True)
class ScenarioFilter:
    """A selection of the scenarios behind a figure; every attribute that is set is a condition.

    Attributes:
        metric: The scenarios have a score of this metric or, if `status` is set, a judgement with that status.
        target: The role whose messages were judged.
        status: The scenarios have a judgement with this status, such as `unparsed`, instead of a score.
        by_turn: Whether the judgement is of a turn rather than of the whole outcome; `None` for either.
        state: The state of the scenarios: `done` or `failed`.
        ended_by: The reason why the scenarios ended.
        is_judged: Whether the scenarios have any judgement.
        verdicts: The scenarios have one of these combinations of verdicts by metric, in which `None` is a missing
            verdict.
        other_than: The scenarios do not have these values of facets.
    """

    metric: str = ""
    target: str = ""
    status: Status | Literal[""] = ""
    by_turn: bool | None = None
    state: str = ""
    ended_by: str = ""
    is_judged: bool | None = None
    verdicts: Sequence[Mapping[str, bool | None]] = ()
    other_than: Mapping[str, str] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        """All conditions except state and ending, as an expression over a run's scenarios; empty if there are none."""
        conditions = [f"facets[{facet!r}] != {value!r}" for facet, value in self.other_than.items()]
        if self.status:
            having = {"metric": self.metric, "target": self.target, "status": self.status}
            tests = [f"selectattr({name!r}, 'eq', {value!r})" for name, value in having.items() if value]
            if self.by_turn is not None:
                tests.append(f"selectattr('turn', {'number' if self.by_turn else 'none'!r})")
            conditions.append(" | ".join(["judgements", *tests, "list"]))
        elif self.metric:
            conditions.append(f"{self.metric}.{self.target} is defined")
        if self.is_judged is not None:
            conditions.append("judgements" if self.is_judged else "not judgements")
        if self.verdicts:
            all_tests = [[f"{metric} {_VERDICT_TESTS[each]}" for metric, each in one.items()] for one in self.verdicts]
            conditions.append(" or ".join(map(" and ".join, all_tests)))
        return conditions[0] if len(conditions) == 1 else " and ".join(f"({each})" for each in conditions)


_VERDICT_TESTS = {True: "== 1", False: "== 0", None: "is undefined"}


def find_verdict_combinations(
    metrics: Sequence[str], holds: Callable[[Mapping[str, bool | None]], bool]
) -> tuple[Mapping[str, bool | None], ...]:
    """Return the shortest combinations of verdicts for which a condition is true regardless of the other verdicts.

    Args:
        metrics: The metrics. A scenario may have no verdict of a metric.
        holds: The condition, as a function of the verdicts by metric.
    """
    found: list[Mapping[str, bool | None]] = []
    assignments: list[dict[str, bool | None]] = [
        dict(zip(metrics, verdicts, strict=True)) for verdicts in product((True, False, None), repeat=len(metrics))
    ]
    for names in chain.from_iterable(combinations(metrics, size) for size in range(len(metrics) + 1)):
        for verdicts in product((True, False, None), repeat=len(names)):
            fixed = dict(zip(names, verdicts, strict=True))
            is_known = any(each.items() <= fixed.items() for each in found)
            if not is_known and all(holds(each) for each in assignments if fixed.items() <= each.items()):
                found.append(fixed)
    return tuple(found)


@dataclass(slots=True)
class Table:
    """Rows of cells under named columns.

    Attributes:
        name: A short name, usable as a file name.
        title: The title.
        columns: The names of the columns. A column with a `%` in its name shows fractions as percentages.
        rows: One cell per column; `None` for an empty cell.
        warnings: Reasons why the figures are misleading. They are shown as `headnotes`.
        notes: Lines below the table. `footnotes` adds the meaning of marks in cells.
        decimals: The number of decimals by column, if it is not the default of 2 (1 for percentages).
        facets: For columns of texts, the facet that the column shows, if its name or values differ from the column's;
            `None` if the texts do not select scenarios, such as the name of a model.
        chosen: For columns of figures, the facets of the scenarios that count in the column, as texts; `None` if facets
            cannot express this.
        counted: For columns of figures, the scenarios of the row that count in the column, if not all of them do. If
            they depend on the row, they are given by a text of the row.
        population: The scenarios that count in the whole table.
        scales: For columns of figures, the lowest and the highest possible value.
        where: The expression that selects the scenarios of the report; empty if the report covers all scenarios.
        shares: The columns whose cells are fractions, shown as percentages, in the rows that contain a text, such as
            the name of a metric of verdicts; or, by two texts, in the rows that contain the second and begin with the
            first, such as the name of a system.
        charted: The titles of the columns that are drawn as charts. Columns by turn are given without the turn.
        judged: For columns of judges' scores, the metric and target, as `METRIC (TARGET)`, with ` by turn` for scores
            of turns.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decimals: Mapping[str, int] = field(default_factory=dict)
    facets: Mapping[str, FacetColumn | None] = field(default_factory=dict)
    chosen: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    counted: dict[str, ScenarioFilter | dict[str, ScenarioFilter]] = field(default_factory=dict)
    population: ScenarioFilter = ScenarioFilter()
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    where: str = ""
    warnings: list[str] = field(default_factory=list)
    shares: dict[str | tuple[str, str], Collection[str]] = field(default_factory=dict)
    charted: Sequence[str] = ()
    judged: dict[str, Sequence[str]] = field(default_factory=dict)

    def shown(self, row: Sequence[Cell]) -> Iterator[tuple[Cell, str]]:
        """Yield the cells of a row as shown, each with its column's title. Titles of fractions end in `%`."""
        texts = [cell for cell in row if isinstance(cell, str)]
        names = {text: key for text in texts for key in (text, (texts[0], text)) if key in self.shares}
        shares = self.shares[next(iter(names.values()))] if names else ()
        for cell, column in zip(row, self.columns, strict=True):
            is_named = isinstance(cell, str) and cell in names
            yield f"{cell} %" if is_named else cell, f"{column} %" if column in shares else column

    @property
    def headnotes(self) -> list[str]:
        """The lines above the table."""
        return [f"Warning: {each}" for each in self.warnings]

    @property
    def footnotes(self) -> list[str]:
        """The lines below the table: its notes, and the meanings of the marks in its cells."""
        found = [cell for row in self.rows for cell in row if isinstance(cell, Estimate)]
        constant = [CONSTANT_NOTE] if any(cell.is_constant for cell in found) else []
        return [*self.notes, *constant, *([ZERO_WIDTH_NOTE] if any(cell.has_zero_width for cell in found) else [])]


def side_by_side(runs: Sequence[tuple[str, Sequence[Table]]]) -> list[Table]:
    """Merge the tables of several labelled runs, so that their rows are side by side.

    Tables with the same name and columns become one table with a column `run`, in which rows that begin with the same
    texts (e.g. the same setting) are adjacent. Tables with different columns stay separate, with the label in the
    title and in the column `run`.
    """
    by_name = group_pairs((table.name, (label, table)) for label, tables in runs for table in tables)
    merged: list[Table] = []
    for same in by_name.values():
        merged += (
            [_merge_tables(same)] if len({tuple(table.columns) for _, table in same}) == 1 else _separate_tables(same)
        )
    return merged


def _merge_tables(tables: Sequence[tuple[str, Table]]) -> Table:
    template = tables[0][1]
    groups = group_pairs((_row_labels(row), [label, *row]) for label, table in tables for row in table.rows)
    rows: list[Sequence[Cell]] = [row for group in groups.values() for row in group]
    notes = [*_merge_notes([(label, table.notes) for label, table in tables])]
    warnings = [*_merge_notes([(label, table.warnings) for label, table in tables])]
    return replace(template, columns=["run", *template.columns], rows=rows, notes=notes, warnings=warnings)


def _merge_notes(tables: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield the notes of labelled tables; a note that only some of them have begins with their label."""
    labels = group_pairs((note, label) for label, notes in tables for note in notes)
    for note, with_note in labels.items():
        is_common = len(with_note) == len(tables) or is_interval_note(note)
        yield from [note] if is_common else [f"{label}: {note}" for label in with_note]


def _separate_tables(tables: Sequence[tuple[str, Table]]) -> list[Table]:
    return [
        replace(_merge_tables([(label, table)]), name=f"{table.name}-{number}", title=f"{table.title} ({label})")
        for number, (label, table) in enumerate(tables, start=1)
    ]


def _row_labels(row: Sequence[Cell]) -> tuple[str, ...]:
    """Return the leading text cells of a row."""
    return tuple(str(cell) for cell in takewhile(lambda cell: isinstance(cell, str), row))


Kind = Literal["line", "step", "option", "branch"]
"""The kind of a nested outline, which decides how the outline is drawn in a tree.

Steps follow each other. The options of a step are drawn side by side within it. At a fork, the branches are drawn side
by side after the step.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with a style, such as a line of a `user` or an `assistant`, a `note`, or `new` information."""

    text: str
    style: Literal["plain", "heading", "user", "assistant", "note", "new"] = "plain"


@dataclass(slots=True)
class Outline:
    """A line of text with the outlines nested below it.

    Attributes:
        spans: The pieces of the line.
        parts: The nested outlines.
        kind: The kind of part.
        is_taken: For an option, whether it was followed. For a step or a branch, whether the outcome's messages include
            it.
        where: A step's location, as in `DialogueFault.where`.
    """

    spans: list[Span]
    parts: list[Outline] = field(default_factory=list)
    kind: Kind = "line"
    is_taken: bool = False
    where: str = ""

    @property
    def text(self) -> str:
        """The line as plain text."""
        return "".join(span.text for span in self.spans)

    @property
    def is_tree(self) -> bool:
        """Return whether the outline contains steps."""
        return any(part.kind == "step" or part.is_tree for part in self.parts)


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A straight line y = intercept + slope * x, and its label."""

    intercept: float
    slope: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A series of points of a chart.

    Attributes:
        label: The text in the legend.
        x: The horizontal positions.
        y: The values; `None` where missing.
        low: The lower ends of the intervals, one per value; empty without intervals.
        high: The upper ends of the intervals.
        line: A line fitted to the points.
        n: The numbers of values from which means are computed; empty if the points are no means.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    line: FittedLine | None = None
    n: Sequence[int | None] = ()

    @classmethod
    def of(
        cls, label: str, x: Sequence[float], found: Sequence[Estimate | None], line: FittedLine | None = None
    ) -> Series:
        """Return the series of estimates: their means, intervals and numbers of values."""
        y, low, high, n = (
            [getattr(each, name) if each else None for each in found] for name in ("mean", "low", "high", "n")
        )
        return cls(label, x, y, low, high, line, n)


_TURN_SUFFIX = re.compile(r" turn \d+(?= %$|$)")

ChartKind = Literal["lines", "points", "bars", "stacked"]
"""The kind of a chart: lines through the points of each series, only points, bars side by side, or stacked bars."""


@dataclass(slots=True)
class Chart:
    """A chart: one or more series with common axes.

    Attributes:
        name: A short name, usable as a file name. A chart of a table's figures has the table's name.
        title: The title.
        x_label: The label of the horizontal axis, with the unit.
        y_label: The label of the vertical axis, with the unit.
        series: The series, in the order of the legend.
        y_range: The range of the vertical axis; by default the range of the values.
        notes: Lines below the chart.
        kind: How the series are drawn.
        names: The labels of the positions 0, 1, 2, ..., if the horizontal axis does not show numbers.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: list[Series] = field(default_factory=list)
    y_range: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)
    kind: ChartKind = "lines"
    names: Sequence[str] = ()


def build_charts(table: Table, charted: Sequence[str] | None = None) -> list[Chart]:
    """Return charts of a table's columns. Columns by turn are drawn as lines over the turns, other columns as bars.

    Columns with the same scale share a chart.

    Fractions are drawn as percentages. If a chart shows a single column, its series are the values of all facets except
    the last one. The charts have the table's name.

    Args:
        table: The table. Its leading columns of texts are its facets.
        charted: The titles of the columns to draw; by default those in the table's `charted`.
    """
    rows, columns = table.rows, list(table.columns)
    charted = table.charted if charted is None else charted
    width = next((at for at in range(len(columns)) if not all(isinstance(row[at], str) for row in rows)), 0)
    keys = [tuple(map(str, row[:width])) for row in rows]
    cells = {
        column: [_to_estimate(row[at], column) for row in rows]
        for at, column in enumerate(columns)
        if at >= width and rows
    }
    charts: list[Chart] = []
    by_scale: dict[tuple[bool, tuple[float, float] | None], list[str]] = defaultdict(list)
    for title in charted:
        if title in cells:
            by_scale[title.endswith("%"), table.scales.get(title)].append(title)
        elif len(turns := [column for column in cells if _TURN_SUFFIX.sub("", column) == title]) > 1:
            range_ = (0, 100) if title.endswith("%") else table.scales.get(turns[0])
            chart = Chart(table.name, table.title, "turn", title, y_range=range_)
            for at, key in enumerate(keys):
                values = [cells[turn][at] for turn in turns]
                chart.series.append(Series.of(" ".join(key) or title, range(1, len(turns) + 1), values))
            charts.append(chart)
    for (is_share, scale), titles in by_scale.items():
        scale_label = "mean" if scale is None else f"mean, from {scale[0]:g} to {scale[1]:g}"
        label = titles[0] if len(titles) == 1 else "%" if is_share else scale_label
        bars: dict[str, dict[str, Estimate | None]] = defaultdict(dict)
        for title, (at, key) in product(titles, enumerate(keys)):
            series, name = ("all", title) if not key else (title, " ".join(key))
            if key and len(titles) == 1:
                series, name = " ".join(key[:-1]) or title, key[-1]
            bars[series][name] = cells[title][at]
        chart = Chart(table.name, table.title, "", label, y_range=(0, 100) if is_share else scale, kind="bars")
        chart.names = list(dict.fromkeys(name for values in bars.values() for name in values))
        for series, by_name in bars.items():
            chart.series.append(Series.of(series, range(len(chart.names)), [by_name.get(name) for name in chart.names]))
        charts.append(chart)
    return [chart for chart in charts if any(y is not None for series in chart.series for y in series.y)]


def _to_estimate(cell: Cell, title: str) -> Estimate | None:
    """Return a cell as an estimate, in per cent if the column's title ends in `%`; `None` for an empty cell."""
    factor = 100 if title.endswith("%") else 1
    if isinstance(cell, Estimate):
        low, high = (None if end is None else factor * end for end in (cell.low, cell.high))
        return Estimate(cell.n, factor * cell.mean, low, high)
    return Estimate(0, factor * cell, None, None) if isinstance(cell, int | float) else None


@dataclass(frozen=True, slots=True)
class Facet:
    """A facet of scenarios whose values become rows. If a scenario's value is a list, each item becomes a row.

    Attributes:
        name: The facet.
        title: The column's name; by default the facet's name.
        order: The facet's values in the order of the rows. Other values come last, sorted.
        labels: The texts that are shown for its values.
        splits: Whether exports may be split into train and test by this facet, so that all scenarios of a value are on
            one side.
        unit: The plural name of its values, e.g. `people`, if they are the units of confidence intervals.
        tells_length: Whether the facet is a number that grows with the length of the conversation. If so, workers start
            with the longest conversations.
        in_sequence: Whether scenarios with the same value, such as a person's conversations, are played one after
            another in plan order, so that a player that keeps state may remember earlier conversations.
    """

    name: str
    title: str = ""
    order: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    splits: bool = False
    unit: str = ""
    tells_length: bool = False
    in_sequence: bool = False

    @property
    def column(self) -> str:
        """The column's name."""
        return self.title or self.name

    def values(self, episode: Episode) -> list[str]:
        """Return a scenario's values of the facet, as text."""
        value = episode.facets.get(self.name)
        return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]

    def rank(self, value: str) -> tuple[int, str]:
        """Return the sort key of a value."""
        return (self.order.index(value) if value in self.order else len(self.order), value)
