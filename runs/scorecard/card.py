"""The scorecard: the results of a suite as one document, with contrasts between systems."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dialoom.graphs import Chart, Estimate, Table, WithFacets, WithReport, WithRoles
from dialoom.graphs.tables.statistics import MIN_UNITS, holm
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.report import Report, can_draw
from dialoom.runs.report.differences import (
    MEAN_COLUMNS,
    SIGNIFICANCE_LEVEL,
    ScoreDifference,
    compute_differences,
    find_differing_users,
    turn_score_notes,
)
from dialoom.runs.report.health import Health, assess_health, health_table, mark_doubtful
from dialoom.runs.report.labelled_runs import (
    add_offline_column,
    collect_notes,
    collect_run_notes,
    difference_note,
    different_users_warning,
    title_with_user_differences,
)
from dialoom.runs.report.report import render_markdown, render_page, write_charts, write_texts
from dialoom.runs.report.users import RANKING_TABLE, user_tables
from dialoom.version import __version__

from .figures import (
    Figure,
    PlayedSystem,
    agreement_table,
    cost_table,
    figures_chart,
    figures_table,
    open_systems,
    settings_table,
    soundness_table,
    versions_table,
)
from .suite import Contrast, Size, Suite

_COLUMNS = ("system", "of", "assistant", "mean of the first", "mean", "difference", "p")
_NOTE = (
    "Each assistant compared with the first, {first}, on the scenarios that both have finished. "
    "Differences of percentages are in percentage points. In brackets: 95 % intervals, bootstrapped over {units}, "
    "drawing all differences of a unit together, because they are not independent, and widened for few of them as by "
    f"Student's t (none for fewer than {MIN_UNITS}). p: from the same bootstrap, with Holm's correction for all "
    "rows of "
    f"this table together; below {SIGNIFICANCE_LEVEL} a difference counts as significant."
)


def contrasts_table(
    systems: Sequence[PlayedSystem], allow_different_users: bool, health: Mapping[str, Sequence[Health]]
) -> list[Table]:
    """Return a table of the differences of each further assistant from the first; an empty list without common scores.

    In each system, assistants whose simulated users differ from the first assistant's are left out, with a warning,
    unless different users are allowed; then the title states the difference. Differences are marked if the health of
    the system's judge is doubtful.
    """
    apart = {played.system.label: find_differing_users(played.reported, played.recipe) for played in systems}
    rows = [
        (played, *found)
        for played in systems
        for found in _differences(played, () if allow_different_users else apart[played.system.label])
    ]
    first, title = systems[0].reported[0].label, "Differences between the assistants"
    if allow_different_users:
        title = title_with_user_differences(
            title, (what for of in apart.values() for each in of.values() for what in each)
        )
    table = Table("differences", title, _COLUMNS, decimals={"p": 3})
    table.warnings = [
        f"{system}: {different_users_warning(label, first, what)}"
        for system, of in apart.items()
        for label, what in of.items()
        if not allow_different_users
    ]
    if not rows:
        return [table] if table.warnings else []
    named: dict[str, list[str]] = {
        f"Lower than for {first}": [],
        f"Higher than for {first}": [],
        "No significant difference": [],
        "Too few scenarios for a test": [],
    }
    lower, higher, unsure, untested = named.values()
    for (played, contrast, found), p in zip(rows, holm([found.paired.p for _, _, found in rows]), strict=True):
        name, estimate = played.system.label, found.paired.estimate
        row = Table("", "", ["run", "metric", "difference"], [[found.label, found.subject, estimate]])
        of_both = [one for one in health[name] if one.label in (first, found.label)]
        mark_doubtful([row], [replace(one, label=found.label) for one in of_both], several=False)
        table.rows.append([name, contrast.name, found.label, found.before, found.after, row.rows[0][-1], p])
        table.notes += row.notes
        if found.is_share:
            table.shares[name, contrast.name] = MEAN_COLUMNS
        shown = higher if estimate.mean > 0 else lower
        (untested if p is None else shown if p < SIGNIFICANCE_LEVEL else unsure).append(
            f"{name}, {contrast.name}, {found.label}"
        )
    table.notes += [f"{what}: {'; '.join(names)}." for what, names in named.items() if names]
    table.notes += turn_score_notes(found for _, _, found in rows)
    units = dict.fromkeys(WithFacets.of(played.recipe).units for played, _, _ in rows)
    table.notes.append(_NOTE.format(first=first, units=" or ".join(units)))
    return [table]


def check_contrasts(played_metrics: Sequence[str], contrasts: Sequence[Contrast]) -> None:
    """Check that the metrics of the contrasts are judged in their systems.

    Raises:
        RunError: If a recipe has no such metric.
    """
    for contrast in contrasts:
        if contrast.metric not in played_metrics:
            known = ", ".join(played_metrics) or "none"
            raise RunError(f"contrasts: {contrast.name}: unknown metric {contrast.metric!r}; the metrics are {known}")


def _differences(played: PlayedSystem, apart: Container[str]) -> Iterator[tuple[Contrast, ScoreDifference]]:
    """Yield the tested differences of a system, assistant by assistant, without the assistants with some labels."""
    reported = [each for each in played.reported if each.label not in apart]
    for contrast in played.system.contrasts if len(reported) > 1 else ():
        found = {
            (each.label, each.subject): each for each in compute_differences(reported, played.recipe, contrast.where)[0]
        }
        whole = f"{contrast.metric} ({WithRoles.of(played.recipe).evaluated})"
        for label in (each.label for each in reported[1:]):
            if (row := found.get((label, whole)) or found.get((label, f"{whole} by turn"))) is not None:
                yield contrast, row


PAGE_FILES = ("index.html", "scorecard.md", "scorecard.json", "scorecard.tex")
"""The files of a scorecard besides its charts."""


@dataclass(frozen=True, slots=True, repr=False)
class Scorecard:
    """The results of one assistant or several in all systems of a suite: side by side, and not averaged over systems.

    Example:
        >>> for figure in dialoom.open_scorecard("card").figures:  # doctest: +SKIP
        ...     print(figure.system, figure.name, figure.assistant, figure.value)

    Attributes:
        suite: The suite.
        size: `quick` or `full`.
        assistants: The labels of the assistants.
        figures: The headline figures, by system and assistant.
        report: All tables and charts; the names of a system's tables contain its label.
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
    def of(cls, folders: Sequence[Path], trust: Trust, allow_different_users: bool = False) -> Scorecard:
        """Build the scorecard from the runs in one folder, or from those in several folders, side by side.

        With `allow_different_users`, assistants are compared even if their simulated users differ.

        Raises:
            RunError: If a folder has no scorecard, or the folders differ in suite or size.
            StoreError: If a run is missing or damaged.
        """
        with ExitStack() as stack:
            return _build(*open_systems(folders, trust, stack), allow_different_users)

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
        return render_markdown(self.report.tables, self.report.title)

    def _repr_markdown_(self) -> str:
        return str(self)

    def page(self) -> str:
        """Return one self-contained HTML page, with its charts if matplotlib is installed."""
        return render_page(self.report.tables, self.report.title, self.report.charts, _introduction(self))

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
        as_json = json.dumps(self.as_json(), ensure_ascii=False, indent=1) + "\n"
        texts = dict(zip(PAGE_FILES, (self.page(), str(self), as_json, self.report.latex()), strict=True))
        paths = write_texts(texts, Path(folder))
        return [*paths, *(write_charts(self.report.charts, Path(folder)) if can_draw() else ())]


def _build(suite: Suite, size: Size, systems: Sequence[PlayedSystem], allow_different_users: bool) -> Scorecard:
    figures: list[Figure] = []
    tables: list[Table] = []
    drawn: list[Chart] = []
    health: dict[str, list[Health]] = {}
    for played in systems:
        system, reported = played.system, played.reported
        table = figures_table(played, size)
        chart = figures_chart(played, size, table)
        names = [headline.name for headline in system.for_size(size).headlines]
        figures += [
            Figure(system.label, name, str(label), value)
            for label, *values in table.rows
            for name, value in zip(names, values, strict=True)
        ]
        of_system = [chart] if chart else []
        if system.charts:
            labelled = [(each.label, each.run.episodes(each.set_name)) for each in reported]
            own = WithReport.of(played.recipe).charts(labelled)
            of_system += [replace(each, name=system.label) for each in own if each.name in system.charts]
        also = [difference_note(reported, played.recipe), *collect_notes(reported, None)]
        everything: list[Table | Chart] = [table, *of_system]
        for shown in everything:
            shown.notes += [note for note in also if note and note not in shown.notes]
        table.notes += collect_run_notes(reported)
        health[system.label] = [one for each in reported for one in assess_health(each, None)]
        of_users = user_tables(reported, played.recipe, None)  # empty for a single user model
        mark_doubtful(of_users, health[system.label], len(reported) > 1)
        for each in add_offline_column(of_users, reported):
            each.name, each.title = f"{each.name}-{system.label}", f"{system.label}: {each.title}"
        tables += [table, *of_users]
        drawn += of_system
    contrasts = contrasts_table(systems, allow_different_users, health)
    warned = dict.fromkeys(warning for table in tables for warning in table.warnings)
    for table in contrasts:
        table.warnings += warned
    of_judges = health_table(
        [replace(one, label=f"{name}: {one.label}") for name, of in health.items() for one in of], several=True
    )
    for table in of_judges:
        table.columns = ["system: assistant", *table.columns[1:]]
    of_all = [
        *contrasts,
        soundness_table(systems),
        *of_judges,
        *agreement_table(systems),
        cost_table(systems),
        settings_table(systems),
        versions_table(suite, size, systems),
    ]
    noted = collect_notes([reported for played in systems for reported in played.reported], None)[-2:]
    for table in of_all:
        table.notes += [note for note in noted if note]
    statuses = [each.run.status() for played in systems for each in played.reported]
    pending, failed = sum(each.pending for each in statuses), sum(each.failed for each in statuses)
    labels = [each.label for each in systems[0].reported]
    title = f"Scorecard: {suite.suite} {suite.version}, {size}"
    return Scorecard(suite, size, labels, figures, Report(title, [*tables, *of_all], drawn), pending, failed)


def _introduction(card: Scorecard) -> list[str]:
    """Return the paragraphs below the scorecard's title."""
    who = ", ".join(card.assistants)
    lead = [card.suite.about, f"Assistants: {who}." if len(card.assistants) > 1 else f"Assistant: {who}."]
    if card.pending:
        lead.append(f"Not finished: {card.pending:,} scenarios are pending.")
    if orders := [
        row for table in card.report.tables if table.name.startswith(RANKING_TABLE) for row in table.rows if row[5]
    ]:
        same = sum("yes" in row for row in orders)
        lead.append(
            f"The order of the assistants is the same with each user model for {same} of the {len(orders)} "
            "metrics that order them; Kendall's tau and its interval are in the tables of each system."
        )
    lead.append(
        "Figures of different systems measure different things: they are shown side by side and must not be averaged. "
        "Each figure is followed by its 95 % interval and n, the number of scores averaged."
    )
    return [line for line in lead if line]


def _as_plain(cell: Any) -> Any:
    return asdict(cell) if isinstance(cell, Estimate) else cell
