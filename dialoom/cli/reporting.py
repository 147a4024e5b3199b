"""`report`, `require` and `compact`, and the display of tables on terminals of any width."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table as RichTable

from dialoom.api.expecting import find_worst_conversation, format_junit, format_markdown_summary
from dialoom.api.run import RunReader, report
from dialoom.errors import Advice
from dialoom.graphs import Table
from dialoom.graphs.tables.statistics import is_interval_note
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.report import EMPTY_TABLE, INSTALL_COMMAND, Report, can_draw, format_rows
from dialoom.runs.report.cost import cost_table
from dialoom.runs.store import RunStore

from .console import build_table, make_console
from .errors import EXIT_DONE, EXIT_SOME_FAILED
from .option_flags import build_trust
from .terminal import echo, echo_lines

_UNLIMITED_WIDTH = 10_000
"""A width in columns that is larger than the width of any table."""


def report_run(
    paths: list[Path],
    out: Path | None,
    judging: str | None,
    names: list[str],
    where: str | None,
    is_trusted: bool = False,
    is_latex: bool = False,
    labels: Sequence[Path] | Literal[True] | None = None,
    allow_different_users: bool = False,
) -> None:
    """Print the report of one or several runs, or write it with its charts; all tables, or only the given ones."""
    if is_latex and out is not None:
        raise RunError("--latex prints the tables; leave out -o, or redirect the output", setting="latex")
    runs = [RunReader(path, trust=build_trust(is_trusted)) for path in paths]
    result = report(
        *runs,
        judging=judging,
        tables=names,
        where=where,
        labels=labels,
        allow_different_users=allow_different_users,
    )
    if out is not None:
        write_report(result, out)
        return
    if not result.tables:
        path_list = " and ".join(map(str, paths))
        raise RunError(
            f"{path_list} {'has' if len(paths) == 1 else 'have'} no finished scenarios yet",
            advice=Advice("resume", "resume the run", {"path": paths[0]}),
        )
    if is_latex:
        echo(result.latex())
        return
    echo_lines((result.title, *result.notes))
    print_tables(result.tables)


def check_run_requirements(
    path: Path,
    requirements: list[str],
    is_trusted: bool,
    junit_file: Path | None,
    summary_file: Path | None,
    **arguments: Any,
) -> int:
    """Print a line for each requirement on a run's scores, and write them to files; return the exit code."""
    run = RunReader(path, trust=build_trust(is_trusted))
    results = run.require(*requirements, **arguments)
    echo_lines(results)
    if junit_file is not None or summary_file is not None:
        worst = [
            "" if each.is_met else find_worst_conversation(run, each, arguments["judging"], arguments["where"])
            for each in results
        ]
        for file, format_results in ((junit_file, format_junit), (summary_file, format_markdown_summary)):
            if file is not None:
                with text_output(file, [path]) as output:
                    output.write(format_results(str(path), results, worst))
    return EXIT_DONE if all(each.is_met for each in results) else EXIT_SOME_FAILED


def report_cost(paths: list[Path], out: Path | None) -> None:
    """Print the cost of each run's calls, or write it to files."""
    tables = [cost_table(path) for path in paths]
    if len(paths) > 1:
        for table, path in zip(tables, paths, strict=True):
            table.name, table.title = f"{table.name}-{path.stem}", f"{table.title}: {path.name}"
    for table in tables:
        if any(row[table.columns.index("US dollars")] is None for row in table.rows):
            table.notes.append("--price MODEL=IN,OUT states an unknown price.")
    if out is not None:
        write_report(Report("Calls", tables, ()), out)
    else:
        print_tables(tables)


def compact_run(path: Path) -> None:
    """Compact a run's file, and print the space freed."""
    with RunStore(path) as store:
        compacted = store.compact()
    before, after = compacted.before, compacted.after
    echo(f"{path}: {before:,} bytes before, {after:,} now ({before - after:,} given back)")


def write_report(result: Report, out: Path) -> None:
    """Write a report's files and print their names; without a library to draw them, charts are left out."""
    has_charts = not result.charts or can_draw()
    had_files = out.is_dir() and any(out.iterdir())
    markdown_file, page_file, *other_files = result.write(out, has_charts=has_charts)
    echo(f"{page_file}: open it in a browser")
    if not has_charts:
        echo(f"no charts were drawn, because matplotlib is not installed: {INSTALL_COMMAND}")
    echo_lines((markdown_file, *other_files))
    if had_files:
        echo(f"the earlier report in {out} is replaced")


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables with warnings and notes; a table that is wider than the terminal is printed in pieces.

    The explanation of the intervals is printed once, below the first table that needs it.
    """
    console, printed_notes = make_console(), set[str]()
    for table in tables:
        console.print(table.title, style="bold")
        for warning in table.headnotes:
            console.print(f"  {warning}", style="yellow")
        for piece in _split_table(table, console) if table.rows else [f"  {EMPTY_TABLE}"]:
            console.print(piece)
        for note in table.footnotes:
            if note not in printed_notes:
                console.print(f"  {note}", style="dim")
        printed_notes.update(filter(is_interval_note, table.footnotes))
        console.print()


def _split_table(table: Table, console: Console) -> Iterator[RichTable]:
    """Yield the table in pieces that fit the terminal's width; the leading columns are repeated in each.

    A file or a pipe has no width and gets the whole table.
    """
    width = console.width if console.is_terminal else _UNLIMITED_WIDTH
    rows = list(format_rows(table))
    keys = _find_key_columns(table)
    rest = list(range(len(keys), len(table.columns)))
    while True:
        count = len(rest)
        while count > 1 and _measure_width(_build_rich_table(table, rows, [*keys, *rest[:count]]), console) > width:
            count -= 1
        piece = _build_rich_table(table, rows, [*keys, *rest[:count]])
        if not console.is_terminal:
            console.width = max(console.width, _measure_width(piece, console))
        yield piece
        rest = rest[count:]
        if not rest:
            return


def _find_key_columns(table: Table) -> list[int]:
    """Return the columns that identify a row: the leading columns of text or, if there are none, the first column."""
    texts = itertools.takewhile(
        lambda number: all(isinstance(row[number], str) for row in table.rows), range(len(table.columns))
    )
    return list(texts) or [0]


def _measure_width(table: RichTable, console: Console) -> int:
    """Return the width that the table needs so that no line is wrapped."""
    return console.measure(table, options=console.options.update_width(_UNLIMITED_WIDTH)).maximum


def _build_rich_table(table: Table, rows: list[list[str]], columns: list[int]) -> RichTable:
    """Return the chosen columns as a rich table."""
    cells = ([row[number].replace(" [", "\n[", 1).replace(" n=", "\nn=", 1) for number in columns] for row in rows)
    return build_table([table.columns[number] for number in columns], cells, text_columns=len(columns))
