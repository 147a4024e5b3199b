"""The figures of each system of a scorecard, and the tables of soundness, agreement, cost, settings and versions."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from dialoom.graphs import Chart, Estimate, Recipe, Series, Table, WithRoles
from dialoom.graphs.gate import format_reduced_coverage
from dialoom.graphs.outcome import USER
from dialoom.graphs.tables.table import Cell
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.report import Report
from dialoom.runs.report.building import RunFaults
from dialoom.runs.report.judges import judges_tables
from dialoom.runs.report.labelled_runs import ReportedRun, collect_notes, plan_hash
from dialoom.runs.store import RunFile, panel_of
from dialoom.version import __version__

from .suite import RECORD_FILE, CardRecord, Headline, Size, Suite, SuiteSystem, read_record


@dataclass(frozen=True, slots=True)
class PlayedSystem:
    """A system and the runs of all assistants, with the sets of judgements that the scorecard uses.

    Attributes:
        system: The system, as defined in the suite.
        recipe: Its recipe.
        reported: A run for each assistant, with the assistant's label, in the same order for all systems.
    """

    system: SuiteSystem
    recipe: Recipe
    reported: Sequence[ReportedRun]


def open_systems(folders: Sequence[Path], trust: Trust, stack: ExitStack) -> tuple[Suite, Size, list[PlayedSystem]]:
    """Open all runs of the folders until the stack is closed; all reads of a run are of one moment.

    Raises:
        RunError: If a folder has no scorecard or is given twice, or if the folders differ in suite or size.
        StoreError: If a run is missing or damaged.
    """
    records: list[CardRecord] = []
    for folder in folders:
        if (record := read_record(folder)) is None:
            raise RunError(f"{folder} contains no scorecard")
        records.append(record)
    places = [folder.resolve() for folder in folders]
    if twice := [folder for folder, place in zip(folders, places, strict=True) if places.count(place) > 1]:
        raise RunError(f"{twice[0]} is given twice")
    for folder, record in zip(folders, records, strict=True):
        if record.summary() != records[0].summary():
            raise RunError(
                f"{folder} was played with {record.summary()}, and {folders[0]} with {records[0].summary()}: only "
                "scorecards of the same suite and size can be compared"
            )
    runs = [(folder, each) for folder, record in zip(folders, records, strict=True) for each in record.assistants]
    names = Counter(assistant.label for _, assistant in runs)
    played = []
    for system in records[0].suite.systems:
        reported = []
        for folder, assistant in runs:
            label = assistant.label if names[assistant.label] == 1 else f"{assistant.label} ({folder})"
            if (name := assistant.runs.get(system.label)) is None:
                raise RunError(f"{folder / RECORD_FILE} names no run of {system.label} by {assistant.label}")
            file = stack.enter_context(RunFile(folder / name, trust=trust))
            stack.enter_context(file.snapshot())
            reported.append(ReportedRun(label, file, panel_of(file.judgement_sets()) or file.judgement_set(None)))
        played.append(PlayedSystem(system, reported[0].run.recipe, reported))
    return records[0].suite, records[0].size, played


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


def figures_table(played: PlayedSystem, size: Size) -> Table:
    """Return a table of the headline figures with a row for each assistant, and notes on missing figures."""
    headlines = played.system.for_size(size).headlines
    columns = ["assistant", *(headline.name for headline in headlines)]
    table = Table(played.system.label, played.system.title or played.recipe.summary, columns)
    notes, warnings = dict.fromkeys(played.system.notes), dict[str, None]()
    for reported in played.reported:
        tables = {each.name: each for each in Report.of([reported.run], reported.set_name).tables}
        of_run = {*collect_notes([reported], None)}  # the card shows these notes once, for all assistants
        row: list[Cell] = [reported.label]
        for headline in headlines:
            value, of_value = _cell(headline, tables)
            row.append(value)
            notes |= dict.fromkeys(note for note in of_value if note not in of_run)
            if headline.table in tables:
                warnings |= dict.fromkeys(tables[headline.table].warnings)
        table.rows.append(row)
        if (status := reported.run.status()).pending:
            table.notes.append(
                f"Of {reported.label} only {status.total - status.pending:,} of {status.total:,} scenarios are played."
            )
    table.notes += notes
    table.warnings += warnings
    return table


def figures_chart(played: PlayedSystem, size: Size, table: Table) -> Chart | None:
    """Return a chart of all figures with a scale, as percentages of their scales; `None` for fewer than two figures."""
    headlines = played.system.for_size(size).headlines
    places = [place for place, headline in enumerate(headlines) if headline.scale is not None]
    chart = Chart(
        played.system.label,
        f"{played.system.label}: each figure on its scale",
        "",
        "% of its scale",
        y_range=(0, 100),
        kind="bars",
    )
    chart.names = [headlines[place].name.removesuffix("%").strip() for place in places]
    for label, *figures in table.rows:
        ends = [_on_scale(figures[place], headlines[place].scale or (0, 1)) for place in places]
        y, low, high = ([each[side] for each in ends] for side in range(3))
        chart.series.append(Series(str(label), range(len(places)), y, low, high))
    scales = []
    for name, place in zip(chart.names, places, strict=True):
        least, most = headlines[place].scale or (0, 1)
        scales.append(f"{name}: {'0 to 100 %' if headlines[place].name.endswith('%') else f'{least:g} to {most:g}'}")
    chart.notes.append(f"Scales: {'; '.join(scales)}. Lines: 95 % intervals.")
    has_any = any(value is not None for series in chart.series for value in series.y)
    return chart if has_any and len(places) > 1 else None


def _cell(headline: Headline, tables: Mapping[str, Table]) -> tuple[Cell, Sequence[str]]:
    """Return a headline's cell with the notes of its table, or `None` with the reason why it is missing."""
    table = tables.get(headline.table)
    if table is None:  # without any table, no scenario is finished, as the table's notes state
        missing = f"{headline.name}: the report has no table {headline.table!r}; there are {', '.join(tables)}."
        return None, [missing] if tables else ()
    for name in (headline.column, *headline.row):
        if name not in table.columns:
            known = ", ".join(table.columns)
            return None, [f"{headline.name}: table {table.name!r} has no column {name!r}; there are {known}."]
    columns = list(table.columns)
    rows = [row for row in table.rows if all(row[columns.index(key)] == value for key, value in headline.row.items())]
    if len(rows) > 1:
        return None, [f"{headline.name}: {len(rows)} rows of table {table.name!r} match; the suite must select one."]
    return (rows[0][columns.index(headline.column)] if rows else None), table.notes


def _on_scale(cell: Cell, scale: tuple[float, float]) -> tuple[float | None, float | None, float | None]:
    """Return a figure and the ends of its interval, as percentages of its scale."""
    values = (cell.mean, cell.low, cell.high) if isinstance(cell, Estimate) else (cell, None, None)
    mean, low, high = (
        100 * (value - scale[0]) / (scale[1] - scale[0]) if isinstance(value, int | float) else None for value in values
    )
    return mean, low, high


PROVENANCE_TABLES = ("settings", "versions")
"""The tables that document the provenance."""

_PACKAGES = ("litellm", "langgraph", "langchain-core", "pydantic", "numpy")


def soundness_table(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of failed scenarios, unparsed judgements, and dialogues with faults by role."""
    faults = ("a fault of the user's %", "a fault of the assistant's %")
    table = Table("soundness", "Soundness", ["system", "assistant", "played", "failed", "unparsed", *faults])
    gated, languages = 0, Counter[str]()
    for played, reported in _reported_runs(systems):
        found = RunFaults.read(reported, None)
        evaluated = WithRoles.of(played.recipe).evaluated or ""
        user = found.faulty_share(USER) if USER in reported.models else None
        unparsed = reported.run.unparsed(reported.set_name) if reported.set_name is not None else 0
        status, own = reported.run.status(), found.faulty_share(evaluated)
        counts = [status.total - status.pending, status.failed, unparsed]
        table.rows.append([played.system.label, reported.label, *counts, user, own])
        gated += found.checked_count
        languages.update(found.languages)
    table.notes.append(
        "Played: finished scenarios, including failed ones. Unparsed: judgements that could not be parsed, "
        "which are excluded from all means. Faults: dialogues in which the gate found a fault, with Wilson's "
        "intervals, for which n is divided by the design effect of people. A dash: the system has no simulated user, "
        "or the gate has checked no dialogue."
    )
    if gated:
        table.notes.append(f"Dialogues checked by the gate: {gated:,}. {format_reduced_coverage(languages, gated)}")
    return table


def agreement_table(systems: Sequence[PlayedSystem]) -> list[Table]:
    """Return a table of the judges' agreement with each other and themselves; empty if nothing was judged twice."""
    table = Table(
        "agreement", "Agreement between the judges", ["system", "assistant", "between", "metric", *_AGREEMENT]
    )
    for played, reported in _reported_runs(systems):
        for found in judges_tables(reported.run, None):
            columns = list(found.columns)
            for row in found.rows:
                between = "judges" if found.name == "judges" else f"{row[0]} and itself"
                cells = [row[columns.index(name)] for name in ("metric", *_AGREEMENT)]
                table.rows.append([played.system.label, reported.label, between, *cells])
            table.notes += [note for note in found.notes if note not in table.notes]
    return [table] if table.rows else []


_AGREEMENT = ("n", "alpha", "all equal %")


def cost_table(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of the costs of each run's calls."""
    columns = ["system", "assistant", "calls", "input tokens", "output tokens", "US dollars", "seconds"]
    table = Table("cost", "Usage and cost", columns, decimals={"US dollars": 4, "seconds": 1})
    for played, reported in _reported_runs(systems):
        usage, seconds = reported.run.status().usage, reported.run.seconds_of_calls()
        figures = [usage.calls, usage.input_tokens, usage.output_tokens, usage.cost, seconds]
        table.rows.append([played.system.label, reported.label, *figures])
    table.notes.append(
        "The usage of the answered calls of all roles, including the user and the judges. Seconds: the total duration "
        "of the calls, many of which ran at the same time. A dash: the provider reported no usage, or the price is "
        "unknown."
    )
    return table


def settings_table(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of each run's settings; assistants with equal settings share a row."""
    columns = ["system", "assistants", "seed", "scenarios", "hash", "others", "options"]
    table = Table("settings", "Settings of each run", columns)
    rows: dict[tuple[str, ...], list[str]] = {}
    for played, reported in _reported_runs(systems):
        config, recipe = reported.run.config, played.recipe
        others = [
            f"{role} {each.model}" for role, each in reported.models.items() if role != WithRoles.of(recipe).evaluated
        ]
        others += [f"{USER} {each.model}" for each in config.users]
        usual = recipe.options_type().model_dump(mode="json")
        given = {name: value for name, value in config.options.items() if value != usual.get(name)}
        given |= {} if config.sample is None else {"sample": config.sample}
        options = (
            f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in given.items()
        )
        texts = (f"{reported.run.status().total:,}", plan_hash(reported.run), ", ".join(others), "; ".join(options))
        rows.setdefault((played.system.label, str(config.seed), *texts), []).append(reported.label)
    table.rows = [[key[0], ", ".join(labels), *key[1:]] for key, labels in rows.items()]
    table.notes.append(
        "Hash: of the scenarios' content; equal hashes mean equal scenarios. Others: the models of the other roles. "
        "Each run is a separate file in the folder, with its whole configuration, every call and every prompt."
    )
    return table


def versions_table(suite: Suite, size: Size, systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of versions, and of the hashes of code outside packages."""
    table = Table("versions", "Versions", ["what", "version"])
    table.rows = [
        ["suite", f"{suite.suite} {suite.version}, {size}"],
        ["suite's settings", suite.hash],
        ["dialoom", __version__],
        ["Python", platform.python_version()],
        *([name, version(name)] for name in _PACKAGES),
    ]
    code = {spec: found for _, reported in _reported_runs(systems) for spec, found in reported.run.config.code.items()}
    table.rows += [[spec, f"sha256 {found[:16]}"] for spec, found in code.items()]
    table.notes.append("The versions of dialoom and its packages with which this page was created.")
    return table


def _reported_runs(systems: Sequence[PlayedSystem]) -> Iterator[tuple[PlayedSystem, ReportedRun]]:
    return ((played, reported) for played in systems for reported in played.reported)
