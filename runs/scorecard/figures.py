"""The headline figures of a system: cells of its report's tables, with these tables' notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dialoom.graphs import Chart, Estimate, Series, Table
from dialoom.graphs.reporting.table import Cell
from dialoom.runs.report import Report
from dialoom.runs.report.reported import notes_on

from .entries import PlayedSystem
from .suite import Headline, Size


@dataclass(frozen=True, slots=True)
class Figure:
    """A headline figure of one assistant.

    Attributes:
        system: The system's name.
        name: The figure's name.
        assistant: The assistant's label.
        value: The cell of the report's table; `None` if it is missing or empty.
    """

    system: str
    name: str
    assistant: str
    value: Cell


@dataclass(slots=True)
class SystemFigures:
    """The figures of a system, with notes and warnings.

    Attributes:
        figures: By assistant, in the order of the headlines.
        notes: Notes of the tables that they come from, and on missing figures.
        warnings: Warnings of these tables.
    """

    figures: dict[str, list[Figure]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)


def system_figures(played: PlayedSystem, size: Size) -> SystemFigures:
    """Return the headline figures of a system in each run."""
    found = SystemFigures()
    found.notes.update(dict.fromkeys(played.system.notes))
    for reported in played.reported:
        report = Report.of([reported.run], reported.set_name)
        tables = {table.name: table for table in report.tables}
        of_run = {*notes_on([reported], None)}  # the card gives these notes once for all assistants
        values = []
        for headline in played.system.sized(size).headlines:
            value, notes = _cell(headline, tables)
            values.append(Figure(played.system.label, headline.name, reported.label, value))
            found.notes.update(dict.fromkeys(note for note in notes if note not in of_run))
            if headline.table in tables:
                found.warnings.update(dict.fromkeys(tables[headline.table].warnings))
        found.figures[reported.label] = values
    return found


def figures_table(played: PlayedSystem, size: Size, found: SystemFigures) -> Table:
    """Return a table with a row for each assistant."""
    headlines = played.system.sized(size).headlines
    columns = ["assistant", *(headline.name for headline in headlines)]
    table = Table(played.system.label, played.system.title or played.recipe.summary, columns)
    for reported in played.reported:
        table.rows.append([reported.label, *(figure.value for figure in found.figures[reported.label])])
        if (status := reported.run.status()).pending:
            table.notes.append(
                f"Of {reported.label} only {status.total - status.pending:,} of {status.total:,} are played."
            )
    table.notes += [*found.notes]
    table.warnings += [*found.warnings]
    return table


def figures_chart(played: PlayedSystem, size: Size, found: SystemFigures) -> Chart | None:
    """Return a chart of all figures that have a scale, each on its own; `None` for fewer than two."""
    headlines = played.system.sized(size).headlines
    places = [place for place, headline in enumerate(headlines) if headline.scale is not None]
    chart = Chart(
        played.system.label,
        f"{played.system.label}: each figure on its scale",
        "",
        "% of the way up its scale",
        y_range=(0, 100),
        kind="bars",
    )
    chart.names = [headlines[place].name.removesuffix("%").strip() for place in places]
    for label, figures in found.figures.items():
        ends = [_on_scale(figures[place].value, headlines[place].scale or (0, 1)) for place in places]
        y, low, high = ([each[side] for each in ends] for side in range(3))
        chart.series.append(Series(label, range(len(places)), y, low, high))
    told = [f"{name}: {_scale_told(headlines[place])}" for name, place in zip(chart.names, places, strict=True)]
    chart.notes.append(f"Scales: {'; '.join(told)}. Lines: 95 % intervals.")
    has_any = any(value is not None for series in chart.series for value in series.y)
    return chart if has_any and len(places) > 1 else None


def _cell(headline: Headline, tables: Mapping[str, Table]) -> tuple[Cell, Sequence[str]]:
    """Return a headline's cell with its table's notes; or `None` with the reason."""
    table = tables.get(headline.table)
    if table is None:
        if not tables:
            return None, ()  # nothing is finished, which the table's notes say
        return None, [f"{headline.name}: the report has no table {headline.table!r}; there are {', '.join(tables)}."]
    for name in (headline.column, *headline.row):
        if name not in table.columns:
            known = ", ".join(table.columns)
            return None, [f"{headline.name}: table {table.name!r} has no column {name!r}; there are {known}."]
    columns = list(table.columns)
    rows = [row for row in table.rows if all(row[columns.index(key)] == value for key, value in headline.row.items())]
    if len(rows) > 1:
        return None, [f"{headline.name}: {len(rows)} rows of table {table.name!r} are meant; the suite must say which."]
    return (rows[0][columns.index(headline.column)] if rows else None), table.notes


def _on_scale(cell: Cell, scale: tuple[float, float]) -> tuple[float | None, float | None, float | None]:
    """Return a figure and the ends of its interval, as percentages of its scale."""
    low, high = scale

    def placed(value: float | None) -> float | None:
        return None if value is None else 100 * (value - low) / (high - low)

    if isinstance(cell, Estimate):
        return placed(cell.mean), placed(cell.low), placed(cell.high)
    return (placed(float(cell)), None, None) if isinstance(cell, int | float) else (None, None, None)


def _scale_told(headline: Headline) -> str:
    low, high = headline.scale or (0, 1)
    return "0 to 100 %" if headline.name.endswith("%") else f"{low:g} to {high:g}"
