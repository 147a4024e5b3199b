"""A report as a library user holds it: tables and charts with a title, in whatever form they are wanted."""

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
        title: How far the runs are, and how many scenarios the report is of if not of all.
        tables: The recipe's tables.
        charts: What the recipe would have drawn; drawing needs the extra `plots`.
        labels: Of several runs, what tables call each of them in their column `run`.
    """

    title: str
    tables: Sequence[Table]
    charts: Sequence[Chart]
    labels: Sequence[str] = ()

    @classmethod
    def of(
        cls, runs: Sequence[RunFile], judging: str | None = None, names: Sequence[str] = (), where: str | None = None
    ) -> Report:
        """The report of one run, or of several side by side.

        Args:
            runs: Runs of one recipe.
            judging: One set of judgements; by default all of one run, the oldest of each of several.
            names: Only these tables (and charts of these names). Where there is one for each set of judgements, its
                name without the set's means all of them.
            where: Only scenarios that this expression holds of.

        Raises:
            RunError: If the runs are not of one recipe, one is named twice, or a table is not there.
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
        """A table by its name."""
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
        """The report as one HTML page that stands alone, with its charts where matplotlib is installed."""
        return page(self.tables, self.title, self.charts)

    def latex(self) -> str:
        """Return the tables as LaTeX; a document that includes them needs the package `booktabs`."""
        return latex(self.tables)

    def write(self, folder: str | Path, *, has_charts: bool = True) -> list[Path]:
        """Write `report.md`, `report.html`, a CSV file per table, a PNG and an SVG file per chart; returns the paths.

        Args:
            folder: Where to; made if need be.
            has_charts: Whether to draw the charts, which needs matplotlib.

        Raises:
            RunError: If the folder cannot be written.
            ModuleNotFoundError: If there are charts and nothing to draw them with.
        """
        charts = self.charts if has_charts else ()
        first, *others = write(self.tables, Path(folder), self.title, charts)
        alone = first.with_suffix(".html")
        with text_output(alone) as file:
            file.write(page(self.tables, self.title, charts))
        return [first, alone, *others]


def _title(run: RunFile, judging: str | None, where: str | None) -> str:
    """How far a run is, and how many of its finished scenarios an expression holds of."""
    status = run.status()
    title = f"{run.path.name}: {status.done:,} of {status.total:,} scenarios done"
    if where is None:
        return title
    fitting = sum(episode.state != "pending" for _, episode in every(run, judging, where))
    return f"{title}, {fitting:,} fit"


def _of_name(name: str, known: Sequence[str], suffixes: Collection[str]) -> list[str]:
    """The tables of a name: the one that has it, or one for each set of judgements, named for that as well."""
    return [name] if name in known else [each for each in known if each in {f"{name}-{end}" for end in suffixes}]
