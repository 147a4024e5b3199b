"""The `dialoom report` and `dialoom compact` commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialoom.api.run import RunReader, report
from dialoom.graphs import Table
from dialoom.runs.errors import RunError
from dialoom.runs.report import HOW_TO_INSTALL, Report, can_draw
from dialoom.runs.report.cost import cost_table
from dialoom.runs.store import RunStore

from .tables import print_tables
from .terminal import say
from .trusting import trust


def report_run(
    paths: list[Path],
    out: Path | None,
    judging: str | None,
    names: list[str],
    where: str | None,
    is_trusted: bool = False,
    is_latex: bool = False,
) -> None:
    """Print the report of one run or several, or write it with its charts; all tables, or those named."""
    if is_latex and out is not None:
        raise RunError("--latex prints the tables; leave out -o, or redirect what is printed", setting="latex")
    runs = [RunReader(path, trust=trust(is_trusted)) for path in paths]
    found = report(*runs, judging=judging, tables=names, where=where)
    if out is not None:
        write_report(found, out)
        return
    if not found.tables:
        places = " and ".join(map(str, paths))
        raise RunError(f"{places} {'has' if len(paths) == 1 else 'have'} no finished scenario to report on yet")
    if is_latex:
        say(found.latex())
        return
    say(found.title)
    print_tables(found.tables)


def report_cost(paths: list[Path], out: Path | None) -> None:
    """Print the cost of each run's calls, or write it."""
    tables = [cost_table(path) for path in paths]
    if len(paths) > 1:
        for table, path in zip(tables, paths, strict=True):
            table.name, table.title = f"{table.name}-{path.stem}", f"{table.title}: {path.name}"
    _say_how_to_state_prices(tables)
    if out is not None:
        write_report(Report("Calls", tables, ()), out)
    else:
        print_tables(tables)


def compact_run(path: Path) -> None:
    """Compact a run's file, and print the space freed."""
    with RunStore(path) as store:
        compacted = store.compact()
    freed = compacted.before - compacted.after
    say(f"{path}: {compacted.before:,} bytes before, {compacted.after:,} now ({freed:,} given back)")


def write_report(found: Report, out: Path) -> None:
    """Write a report's files and print their names; charts are left out without a library that draws them."""
    has_charts = not found.charts or can_draw()
    for written in found.write(out, has_charts=has_charts):
        say(str(written))
    if not has_charts:
        say(f"no charts: they are drawn with matplotlib, which is not installed: {HOW_TO_INSTALL}")


def _say_how_to_state_prices(tables: Sequence[Table]) -> None:
    """Print a hint on stating prices below a table in which a price is unknown."""
    for table in tables:
        costs = [row[table.columns.index("US dollars")] for row in table.rows]
        if None in costs:
            table.notes.append("--price MODEL=IN,OUT states a price that is unknown.")
