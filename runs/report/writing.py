"""Output of reports: Markdown with its pictures, a CSV file per table, and LaTeX."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from dialoom.graphs import Chart, Estimate, Table
from dialoom.graphs.reporting.table import CONSTANT, Cell
from dialoom.outputs import binary_output, file_name, make_folder, text_output
from dialoom.shown import csv_cell, latex_text, markdown_text

from .drawing import draw

_MINUS = re.compile(r"-(?=\d)")

NO_ROWS = "nothing"
"""The text in place of a table without rows."""

_DECIMALS, _DECIMALS_OF_PERCENTAGES = 2, 1


def text_of(cell: Cell, column: str, decimals: int | None = None) -> str:
    """Format a cell; an estimate as its mean, marked where it is constant, its interval and n.

    Args:
        cell: The cell's value.
        column: The column's name; one ending in `%` holds fractions.
        decimals: Number of decimals; by default 2, and 1 for percentages.
    """
    percent = column.endswith("%")
    places = decimals if decimals is not None else _DECIMALS_OF_PERCENTAGES if percent else _DECIMALS
    factor = 100 if percent else 1
    if cell is None:
        return "–"
    if isinstance(cell, Estimate):
        ends = [f"{factor * end:z.{places}f}" for end in (cell.low, cell.high) if end is not None]
        interval = f" [{', '.join(ends)}]" if ends else ""
        return f"{factor * cell.mean:z.{places}f}{CONSTANT if cell.is_constant else ''}{interval} n={cell.n:,}"
    if isinstance(cell, float):
        return f"{factor * cell:z.{places}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def texts_of(table: Table) -> Iterator[list[str]]:
    """Yield a table's rows as formatted text."""
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        yield [text_of(cell, column, table.decimals.get(column)) for cell, column in cells]


def write(tables: Sequence[Table], folder: Path, title: str, charts: Sequence[Chart] = ()) -> list[Path]:
    """Write `report.md`, a CSV file per table, and a PNG and an SVG file per chart; return the paths.

    Raises:
        OutputError: If the folder cannot be written, or a target is an SQLite file.
        ModuleNotFoundError: If there are charts and matplotlib is not installed (see `can_draw`).
    """
    make_folder(folder)
    page = folder / "report.md"
    with text_output(page) as file:
        file.write(markdown(tables, title, charts))
    return [page, *_write_tables(tables, folder), *_write_charts(charts, folder)]


def markdown(tables: Sequence[Table], title: str, charts: Sequence[Chart] = ()) -> str:
    """Return all charts and tables as one Markdown page; the charts are PNG files beside it."""
    lines = itertools.chain(*map(_markdown_chart, charts), *map(markdown_table, tables))
    return "\n".join([f"# {markdown_text(title)}", "", *lines])


def _write_tables(tables: Sequence[Table], folder: Path) -> Iterator[Path]:
    for table in tables:
        path = folder / file_name(f"{table.name}.csv")
        with text_output(path, newline="") as file:
            csv.writer(file).writerows([*map(csv_cell, row)] for row in _csv_rows(table))
        yield path


def _write_charts(charts: Sequence[Chart], folder: Path) -> Iterator[Path]:
    for chart in charts:
        for kind, content in draw(chart).items():
            path = folder / file_name(f"{chart.name}.{kind}")
            with binary_output(path) as file:
                file.write(content)
            yield path


def _markdown_chart(chart: Chart) -> Iterator[str]:
    yield from (f"![{markdown_text(chart.title)}]({quote(file_name(f'{chart.name}.png'))})", "")
    for note in chart.notes:
        yield from (markdown_text(note), "")


def markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table under a heading of the second level, with its warnings and notes."""
    yield from (f"## {markdown_text(table.title)}", "")
    for warning in table.headnotes:
        yield from (f"**{markdown_text(warning)}**", "")
    yield from (*(_markdown_rows(table) if table.rows else [NO_ROWS]), "")
    for note in table.footnotes:
        yield from (markdown_text(note), "")


def _markdown_rows(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(map(markdown_text, table.columns)) + " |"
    yield "|" + " --- |" * len(table.columns)
    for texts in texts_of(table):
        yield "| " + " | ".join(map(markdown_text, texts)) + " |"


def latex(tables: Sequence[Table]) -> str:
    """Return tables as LaTeX, one `table` environment each; needs the package `booktabs`."""
    return "\n".join(line for table in tables for line in _latex_table(table))


def _latex_table(table: Table) -> Iterator[str]:
    texts = list(texts_of(table))
    is_text = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.columns))]
    yield from ("\\begin{table}", "\\centering", f"\\caption{{{latex_text(table.title)}}}")
    yield from (f"\\label{{tab:{file_name(table.name)}}}", "\\footnotesize")
    yield f"\\begin{{tabular}}{{{''.join('l' if each else 'r' for each in is_text)}}}"
    yield from ("\\toprule", " & ".join(map(latex_text, table.columns)) + " \\\\", "\\midrule")
    for row in texts:
        yield " & ".join(_latex_cell(*each) for each in zip(row, is_text, strict=True)) + " \\\\"
    yield from ("\\bottomrule", "\\end{tabular}")
    yield from (f"\n{latex_text(line)}" for line in (*table.headnotes, *table.footnotes))
    yield from ("\\end{table}", "")


def _latex_cell(text: str, is_text: bool) -> str:
    return latex_text(text) if is_text else _MINUS.sub("$-$", latex_text(text))


def _csv_rows(table: Table) -> Iterator[list[str | int | float | None]]:
    """Yield a header and the rows; columns whose name ends in `%` as percentages.

    A column that holds estimates becomes four: mean, ends of the interval and n. A column of judges' scores has a
    fifth:
    whether all scores are equal.
    """
    parts = [_csv_parts([row[index] for row in table.rows]) for index in range(len(table.columns))]
    yield [
        f"{column} {part}".strip() for column, of_column in zip(table.columns, parts, strict=True) for part in of_column
    ]
    for row in table.rows:
        cells: list[str | int | float | None] = []
        for cell, column, of_column in zip(row, table.columns, parts, strict=True):
            factor = 100 if column.endswith("%") else 1
            if isinstance(cell, Estimate):
                ends = (None if end is None else factor * end for end in (cell.low, cell.high))
                values: list[float | int | str | None] = [factor * cell.mean, *ends, cell.n, cell.is_constant]
            else:
                values = [factor * cell if isinstance(cell, float) else cell, *[None] * 4]
            cells += values[: len(of_column)]
        yield cells


def _csv_parts(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the suffixes of the CSV columns that a column becomes."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    if not estimates:
        return ("",)
    judged = any(cell.is_constant is not None for cell in estimates)
    return ("", "low", "high", "n", *(["constant"] if judged else []))
