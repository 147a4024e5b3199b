"""Tables of reports for people, at any width of the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from dialoom.graphs import Table
from dialoom.runs import report as reporting

from .console import make_console

_ENDLESS = 10_000
"""Columns; wider than any table."""


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables with warnings and notes; one that is wider than the terminal is printed in pieces."""
    console = make_console()
    for table in tables:
        console.print(table.title, style="bold")
        for warning in table.headnotes:
            console.print(f"  {warning}", style="yellow")
        for piece in _pieces(table, console) if table.rows else [f"  {reporting.NO_ROWS}"]:
            console.print(piece)
        for note in table.footnotes:
            console.print(f"  {note}", style="dim")
        console.print()


def _pieces(table: Table, console: Console) -> Iterator[RichTable]:
    """Yield the table in as many pieces as the terminal's width needs; the leading columns are repeated in each.

    Without a terminal there is no width: a file or a pipe gets the whole table.
    """
    width = console.width if console.is_terminal else _ENDLESS
    rows = list(reporting.texts_of(table))
    told = _telling(table)
    rest = list(range(len(told), len(table.columns)))
    while True:
        count = len(rest)
        while count > 1 and _width(_rich(table, rows, [*told, *rest[:count]]), console) > width:
            count -= 1
        piece = _rich(table, rows, [*told, *rest[:count]])
        if not console.is_terminal:
            console.width = max(console.width, _width(piece, console))
        yield piece
        rest = rest[count:]
        if not rest:
            return


def _telling(table: Table) -> list[int]:
    """Return the columns that identify the rows: the leading text columns, or the first column."""
    texts = itertools.takewhile(
        lambda number: all(isinstance(row[number], str) for row in table.rows), range(len(table.columns))
    )
    return list(texts) or [0]


def _width(shown: RichTable, console: Console) -> int:
    """Return the table's width without line breaks."""
    return console.measure(shown, options=console.options.update_width(_ENDLESS)).maximum


def _rich(table: Table, rows: list[list[str]], chosen: list[int]) -> RichTable:
    """Return the chosen columns as a rich table."""
    shown = RichTable(box=box.SIMPLE_HEAD)
    for number in chosen:
        shown.add_column(table.columns[number], overflow="fold")
    for row in rows:
        cells = (row[number].replace(" [", "\n[", 1).replace(" n=", "\nn=", 1) for number in chosen)
        shown.add_row(*cells)
    return shown
