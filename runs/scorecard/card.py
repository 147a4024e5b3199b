"""The scorecard: the results of a suite as one document, with contrasts between systems."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialoom.graphs import Chart, Estimate, Table
from dialoom.graphs.capabilities import WithFacets, WithReport, WithRoles
from dialoom.graphs.reporting.statistics import FEWEST, holm
from dialoom.outputs import make_folder, text_output
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.report import Report, can_draw
from dialoom.runs.report.differences import ALPHA, JudgedDifference, paired_differences
from dialoom.runs.report.report import markdown, page, write_charts
from dialoom.runs.report.reported import difference_note, notes_on
from dialoom.version import __version__

from .figures import (
    Figure,
    PlayedSystem,
    agreement_table,
    cost_of_all,
    figures_chart,
    figures_table,
    open_systems,
    settings_table,
    soundness_table,
    system_figures,
    unfinished_counts,
    versions_table,
)
from .suite import Contrast, Size, Suite

_COLUMNS = ("system", "of", "assistant", "mean of the first", "mean", "difference", "p")
_NOTE = (
    "Each assistant beside the first, {first}, on the scenarios that both have finished. Verdicts count as 1 and 0. "
    "In brackets: 95 % intervals, bootstrapped over {units}, as scores of one and the same are not "
    f"independent (none for fewer than {FEWEST}). p: of the same bootstrap, corrected by Holm for all rows of this "
    f"table together; below {ALPHA} a difference is said to be one."
)


def contrasts_table(systems: Sequence[PlayedSystem]) -> list[Table]:
    """Return a table of the differences of each further assistant from the first; none without any common score."""
    rows = [(played, *found) for played in systems for found in _differences(played)]
    if not rows:
        return []
    first = systems[0].reported[0].label
    table = Table("differences", "Differences between the assistants", _COLUMNS, decimals={"p": 3})
    corrected = holm([found.paired.p for _, _, found in rows])
    lower: list[str] = []
    higher: list[str] = []
    unsure: list[str] = []
    untested: list[str] = []
    for (played, contrast, found), p in zip(rows, corrected, strict=True):
        name, estimate = played.system.label, found.paired.estimate
        table.rows.append([name, contrast.name, found.label, found.before, found.after, estimate, p])
        shown = higher if estimate.mean > 0 else lower
        (untested if p is None else shown if p < ALPHA else unsure).append(f"{name}, {contrast.name}, {found.label}")
    said = {
        f"Lower than of {first}": lower,
        f"Higher than of {first}": higher,
        "No difference is shown": unsure,
        "Too few to be tested": untested,
    }
    table.notes += [f"{what}: {'; '.join(names)}." for what, names in said.items() if names]
    units = dict.fromkeys(WithFacets.of(played.recipe).units for played, _, _ in rows)
    table.notes.append(_NOTE.format(first=first, units=" or ".join(units)))
    return [table]


def check_contrasts(played_metrics: Sequence[str], contrasts: Sequence[Contrast]) -> None:
    """Check that the metrics of the contrasts are judged.

    Raises:
        RunError: If a recipe has no such metric.
    """
    for contrast in contrasts:
        if contrast.metric not in played_metrics:
            known = ", ".join(played_metrics) or "none"
            raise RunError(f"contrasts: {contrast.name}: no metric {contrast.metric!r}; there are {known}")


def _differences(played: PlayedSystem) -> Iterator[tuple[Contrast, JudgedDifference]]:
    """Yield the tested differences of a system, assistant by assistant."""
    for contrast in played.system.contrasts if len(played.reported) > 1 else ():
        found, _ = paired_differences(played.reported, played.recipe, contrast.where)
        for reported in played.reported[1:]:
            whole = f"{contrast.metric} ({WithRoles.of(played.recipe).evaluated})"
            named = {each.what: each for each in found if each.label == reported.label}
            if (row := named.get(whole) or named.get(f"{whole} by turn")) is not None:
                yield contrast, row


PAGES = ("index.html", "scorecard.md", "scorecard.json", "scorecard.tex")
"""The files of a scorecard besides its charts."""


@dataclass(frozen=True, slots=True, repr=False)
class Scorecard:
    """The results of one assistant or several in all systems of a suite: side by side, and not averaged over systems.

    Attributes:
        suite: The suite.
        size: `quick` or `full`.
        assistants: Their labels.
        figures: The headline figures, by system and assistant.
        report: All tables and charts; those of a system have its name.
        pending: Number of scenarios that are not played yet.
        failed: Number of scenarios that failed.
    """

    suite: Suite
    size: Size
    assistants: Sequence[str]
    figures: Sequence[Figure]
    report: Report
    pending: int
    failed: int

    @classmethod
    def of(cls, folders: Sequence[Path], trust: Trust) -> Scorecard:
        """Build the scorecard from the runs in one folder, or in several, side by side.

        Raises:
            RunError: If a folder holds no scorecard, or they are not of one suite in one size.
            StoreError: If a run is missing or damaged.
        """
        with ExitStack() as stack:
            suite, size, systems = open_systems(folders, trust, stack)
            return _build(suite, size, systems)

    @property
    def is_complete(self) -> bool:
        """Return whether no scenario is pending."""
        return not self.pending

    def __getitem__(self, name: str) -> Table:
        """Return a table by its name."""
        return self.report[name]

    def __repr__(self) -> str:
        return f"<Scorecard {self.report.title}: {', '.join(self.assistants)}>"

    def __str__(self) -> str:
        return markdown(self.report.tables, self.report.title)

    def _repr_markdown_(self) -> str:
        return str(self)

    def page(self) -> str:
        """Return one self-contained HTML page, with its charts if matplotlib is installed."""
        return page(self.report.tables, self.report.title, self.report.charts, _introduction(self))

    def as_json(self) -> dict[str, Any]:
        """Return the scorecard as plain values; a mean is an object with its n and the ends of its interval."""
        return {
            "suite": {"name": self.suite.suite, "version": self.suite.version, "hash": self.suite.hash},
            "size": self.size,
            "dialoom": __version__,
            "assistants": list(self.assistants),
            "scenarios": {"pending": self.pending, "failed": self.failed},
            "figures": [{**asdict(each), "value": _as_plain(each.value)} for each in self.figures],
            "tables": {
                table.name: {
                    "title": table.title,
                    "columns": list(table.columns),
                    "rows": [[_as_plain(cell) for cell in row] for row in table.rows],
                    "warnings": table.warnings,
                    "notes": table.footnotes,
                }
                for table in self.report.tables
            },
        }

    def write(self, folder: str | Path) -> list[Path]:
        """Write the pages, the tables as LaTeX, and each chart as PNG, SVG and PDF if matplotlib is installed.

        Returns:
            The paths: `index.html`, `scorecard.md`, `scorecard.json`, `scorecard.tex`, and those of the charts.

        Raises:
            OutputError: If the folder cannot be written.
        """
        make_folder(Path(folder))
        texts = (
            self.page(),
            str(self),
            json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n",
            self.report.latex(),
        )
        paths = [Path(folder) / name for name in PAGES]
        for path, text in zip(paths, texts, strict=True):
            with text_output(path) as file:
                file.write(text)
        return [*paths, *(write_charts(self.report.charts, Path(folder)) if can_draw() else ())]


def _build(suite: Suite, size: Size, systems: Sequence[PlayedSystem]) -> Scorecard:
    figures: list[Figure] = []
    tables: list[Table] = []
    drawn: list[Chart] = []
    for played in systems:
        found = system_figures(played, size)
        figures += [figure for each in found.figures.values() for figure in each]
        table, chart = figures_table(played, size, found), figures_chart(played, size, found)
        also = [difference_note(played.reported, played.recipe), *notes_on(played.reported, None)]
        of_system = [*([chart] if chart else []), *_own_charts(played)]
        everything: list[Table | Chart] = [table, *of_system]
        for shown in everything:
            shown.notes += [note for note in also if note and note not in shown.notes]
        tables.append(table)
        drawn += of_system
    warned = dict.fromkeys(warning for table in tables for warning in table.warnings)
    tables += _overall_tables(suite, size, systems, [*warned])
    pending, failed = unfinished_counts(systems)
    labels = [each.label for each in systems[0].reported]
    title = f"Scorecard: {suite.suite} {suite.version}, {size}"
    return Scorecard(suite, size, labels, figures, Report(title, tables, drawn), pending, failed)


def _overall_tables(suite: Suite, size: Size, systems: Sequence[PlayedSystem], warned: Sequence[str]) -> list[Table]:
    """Return the tables over all systems: differences, with the figures' warnings, and provenance and costs."""
    everything = [reported for played in systems for reported in played.reported]
    contrasts = contrasts_table(systems)
    for table in contrasts:
        table.warnings += warned
    tables = [
        *contrasts,
        soundness_table(systems),
        *agreement_table(systems),
        cost_of_all(systems),
        settings_table(systems),
        versions_table(suite, size, systems),
    ]
    for table in tables:
        table.notes += [note for note in notes_on(everything, None)[-2:] if note]
    return tables


def _own_charts(played: PlayedSystem) -> list[Chart]:
    """Return the recipe's charts that the suite lists, named after the system so that they go with its table."""
    if not played.system.charts:
        return []
    labelled = [(each.label, each.run.episodes(each.set_name)) for each in played.reported]
    chosen = [chart for chart in WithReport.of(played.recipe).charts(labelled) if chart.name in played.system.charts]
    for chart in chosen:
        chart.name = played.system.label
    return chosen


def _introduction(card: Scorecard) -> list[str]:
    """Return the paragraphs below the title."""
    who = ", ".join(card.assistants)
    lead = [card.suite.about, f"Assistants: {who}." if len(card.assistants) > 1 else f"Assistant: {who}."]
    if card.pending:
        lead.append(f"Not finished: {card.pending:,} scenarios are still to be played.")
    lead.append(
        "Figures of different systems measure different things: they stand side by side and are not to be averaged. "
        "With each stands its 95 % interval and n, the number of scores that it is the mean of."
    )
    return [line for line in lead if line]


def _as_plain(cell: Any) -> Any:
    return asdict(cell) if isinstance(cell, Estimate) else cell
