"""The report as a library object: tables and charts with a title, in several output formats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom.graphs import Chart, Table
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.scenario_pages import every
from dialoom.runs.store import PANEL, RunFile

from .building import build, charts, compare, labels_of
from .page import page
from .set_comparison import file_name
from .writing import latex, markdown, write


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Tables and charts of one run or several.

    Attributes:
        title: The runs' progress, and the number of matching scenarios if the report is filtered.
        tables: The recipe's tables.
        charts: The recipe's charts; drawing needs the extra `plots`.
        labels: For several runs, their labels in the column `run`.
    """

    title: str
    tables: Sequence[Table]
    charts: Sequence[Chart]
    labels: Sequence[str] = ()

    @classmethod
    def of(
        cls, runs: Sequence[RunFile], judging: str | None = None, names: Sequence[str] = (), where: str | None = None
    ) -> Report:
        """Build the report of one run, or of several side by side.

        Args:
            runs: Runs of one recipe.
            judging: One set of judgements; by default all of one run, the oldest of each of several.
            names: Only these tables (and charts of these names). A name without a set's suffix selects the tables of
                all sets of judgements.
            where: Only scenarios matching this expression.

        Raises:
            RunError: If the runs are not of one recipe, one is named twice, or a table does not exist.
            StoreError: If a run has no such set.
        """
        tables = compare(runs, judging, where) if len(runs) > 1 else build(runs[0], judging, where)
        known = [table.name for table in tables]
        suffixes = {PANEL, *(file_name(each.name) for run in runs for each in run.judgement_sets())}
        wanted = {found for name in names for found in _of_name(name, known, suffixes)}
        if unknown := [name for name in names if not _of_name(name, known, suffixes)]:
            raise RunError(f"tables {unknown[0]!r}: there are {', '.join(known) or 'none yet'}", setting="tables")
        return cls(
            "; ".join(_title(run, judging, where) for run in runs),
            [table for table in tables if not names or table.name in wanted],
            [chart for chart in charts(runs, judging, where) if not names or chart.name in names],
            labels_of(runs, judging) if len(runs) > 1 else (),
        )

    def __getitem__(self, name: str) -> Table:
        """Return a table by its name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"{name!r}; there are {', '.join(table.name for table in self.tables) or 'none'}")

    def __repr__(self) -> str:
        return f"<Report of {self.title}: {', '.join(table.name for table in self.tables) or 'no tables'}>"

    def __str__(self) -> str:
        return markdown(self.tables, self.title)

    def _repr_markdown_(self) -> str:
        return str(self)

    def page(self) -> str:
        """Return the report as one self-contained HTML page, with its charts if matplotlib is installed."""
        return page(self.tables, self.title, self.charts)

    def latex(self) -> str:
        """Return the tables as LaTeX; a document that includes them needs the package `booktabs`."""
        return latex(self.tables)

    def write(self, folder: str | Path, *, has_charts: bool = True) -> list[Path]:
        """Write `report.md`, `report.html`, a CSV file per table, a PNG and an SVG file per chart; return the paths.

        Args:
            folder: The target folder; created if necessary.
            has_charts: Whether to draw the charts, which needs matplotlib.

        Raises:
            RunError: If the folder cannot be written.
            ModuleNotFoundError: If there are charts and matplotlib is not installed.
        """
        charts = self.charts if has_charts else ()
        first, *others = write(self.tables, Path(folder), self.title, charts)
        alone = first.with_suffix(".html")
        with text_output(alone) as file:
            file.write(page(self.tables, self.title, charts))
        return [first, alone, *others]


def _title(run: RunFile, judging: str | None, where: str | None) -> str:
    """Return a run's progress, and the number of its finished scenarios matching an expression."""
    status = run.status()
    title = f"{run.path.name}: {status.done:,} of {status.total:,} scenarios done"
    if where is None:
        return title
    fitting = sum(episode.state != "pending" for _, episode in every(run, judging, where))
    return f"{title}, {fitting:,} fit"


def _of_name(name: str, known: Sequence[str], suffixes: Collection[str]) -> list[str]:
    """Return the tables of a name: the one that has it, or those with the suffix of a set of judgements."""
    return [name] if name in known else [each for each in known if each in {f"{name}-{end}" for end in suffixes}]
