"""The report of a run, or of several side by side: tables and charts; a row links to its conversations."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nicegui import ui

from dialoom import Report, Run
from dialoom.errors import DialoomError
from dialoom.graphs import Estimate, Table
from dialoom.graphs.tables.table import Cell
from dialoom.runs.agreement import default_labels_path
from dialoom.runs.report import format_cell
from dialoom.runs.store import Choices
from dialoom.studio import charts
from dialoom.studio.background import AbandonedError
from dialoom.studio.components import element, fragment, link, text
from dialoom.studio.forms import Choice, Entry, filter_entry, form, submit_button
from dialoom.studio.labelling import add_agreement, show_missing_judgements_notice
from dialoom.studio.page import Page, View
from dialoom.studio.queries import build_figure_query
from dialoom.studio.studio import StudioRun

_STATUS_DELAY_SECONDS = 1.0
"""Seconds after which the page says that the report is being computed."""
_UPDATE_SECONDS = 0.5
"""Seconds between two updates of the progress."""
_MAX_CHART_ROWS = 12
"""The maximum number of rows of the table that is drawn as charts at first."""


async def build(view: View) -> None:
    """Build the form for the report's settings, and the report."""
    runs = [view.run, *(view.studio.run(name) for name in view.query.get("with", ()))]
    text("h1", f"Report of {', '.join(run.name for run in runs)}", "hidden-label")
    where_entry = _add_settings(view, runs)
    if show_missing_judgements_notice(view):
        return
    judging, where = view.get("judging") or None, view.get("where") or None
    try:
        report = await _compute_report(view, [run.run for run in runs], judging, where)
    except AbandonedError:
        return
    except DialoomError as error:
        if error.setting != "where":
            raise
        where_entry.show_error(str(error))
        return
    if not report.tables:
        text("p", "Nothing is finished yet.", "empty")
        return
    runs_by_label = {
        label: (run.name, await run.choices()) for label, run in zip(report.labels or ("",), runs, strict=True)
    }
    text("p", report.title, "quiet small")
    headnotes = _find_shared(table.headnotes for table in report.tables)
    chart_notes, table_notes = [chart.notes for chart in report.charts], [table.footnotes for table in report.tables]
    shared_notes = [note for note in _find_shared([*chart_notes, *table_notes]) if note not in headnotes]
    shown_above = [*headnotes, *shared_notes]
    _add_warnings(headnotes)
    _add_notes([*report.notes, *shared_notes])
    if len(report.tables) > 3:
        with element("nav", "row-of small", aria_label="Tables"):
            for table in report.tables:
                link(table.title, f"{view.url_for(PAGE.path, view.query)}#{table.name}")
    for chart in report.charts:
        with element("section", "card"):
            text("h2", chart.title)
            ui.echart(charts.build_options(chart)).classes("chart")
            _add_notes([note for note in chart.notes if note not in shown_above])
    drawable_names = (
        each.name for each in report.tables if _find_estimate_columns(each) and 1 < len(each.rows) <= _MAX_CHART_ROWS
    )
    drawn_name = view.get("drawn") or next(drawable_names, "")
    for table in report.tables:
        _add_table(view, table, runs_by_label, drawn_name == table.name, shown_above)
    for run in runs:
        if default_labels_path(run.run.path).exists():
            title = "Agreement of judge and people" + (f", {run.name}" if len(runs) > 1 else "")
            add_agreement(run.run, judging, title)


async def _compute_report(view: View, runs: Sequence[Run], judging: str | None, where: str | None) -> Report:
    """Return the report; if computing it takes long, send the page first and show the progress.

    Raises:
        AbandonedError: If the browser has left the page before the report is computed.
    """
    computation = await view.studio.reports.find(runs, judging, where)
    if isinstance(computation, Report):
        return computation
    client = ui.context.client
    computation.add_viewer(client)
    done, _ = await asyncio.wait([computation.task], timeout=_STATUS_DELAY_SECONDS)
    if done:
        return await computation.result()
    scenarios = sum(map(len, runs))

    def progress_text() -> str:
        read = f"{computation.scenarios_read:,} read so far, some repeatedly"
        return f"Computing the report of {scenarios:,} scenarios: {read} …"

    progress = text("p", progress_text(), "empty", role="status")
    timer = ui.timer(_UPDATE_SECONDS, lambda: progress.set_text(progress_text()))
    await client.connected()
    try:
        report = await computation.result()
        if client.is_deleted:
            raise AbandonedError
        return report
    finally:
        if not client.is_deleted:
            timer.cancel()
            progress.delete()


def _find_shared(notes: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines that several tables or charts share, to be shown once above all of them."""
    groups = list(notes)
    counts = Counter(line for group in groups for line in {*group})
    return [line for line in dict.fromkeys(line for group in groups for line in group) if counts[line] > 1]


def _add_settings(view: View, runs: Sequence[StudioRun]) -> Entry:
    """Add the choice of other runs, judgements and scenarios; return the field for the scenarios."""
    recipe = view.run.run.config.recipe
    other_runs = [each for each in view.studio.runs.values() if each.name != view.run.name]
    comparable = [each.name for each in other_runs if each.run.config.recipe == recipe]
    sets = [each.name for each in view.run.run.judgement_sets]
    with form(view.url_for(PAGE.path), "Report settings"):
        for run in runs[1:]:
            element("input", type="hidden", name="with", value=run.name)
        with element("div", "filters"):
            if len(sets) > 1:
                Choice("judging", "Judgements", dict.fromkeys(sets), view.get("judging"))
            where = filter_entry(view)
            submit_button("Show")
    if comparable:
        with element("div", "row-of small"):
            text("span", "Compare with", "quiet")
            shown = [run.name for run in runs[1:]]
            for name in comparable:
                toggled = [each for each in shown if each != name] if name in shown else [*shown, name]
                chip = link(name, view.url_for(PAGE.path, {**view.query, "with": toggled}), "chip")
                chip.props["aria-current"] = "true" if name in shown else "false"
    return where


def _add_table(
    view: View,
    table: Table,
    runs_by_label: Mapping[str, tuple[str, Choices]],
    is_drawn: bool,
    shown_above: Sequence[str],
) -> None:
    estimated = _find_estimate_columns(table)
    with element("section", id_=table.name):
        with element("div", "section-head"):
            text("h2", table.title)
            if estimated and table.rows:
                query = {**view.query, "drawn": "none" if is_drawn else table.name}
                link(
                    "Without charts" if is_drawn else "As charts",
                    view.url_for(PAGE.path, query) + f"#{table.name}",
                    "small",
                )
        _add_warnings([warning for warning in table.headnotes if warning not in shown_above])
        if is_drawn:
            _add_charts(table, estimated)
        with element("div", "scroll", tabindex="0", role="region", aria_label=table.title), element("table", "data"):
            with element("thead"), element("tr"):
                for index, column in enumerate(table.columns):
                    text("th", column, "number" if _is_numeric(table, index) else "", scope="col")
            with fragment("tbody"):
                for row in table.rows:
                    _add_row(view, table, row, runs_by_label)
        _add_notes([note for note in table.footnotes if note not in shown_above])


def _add_row(view: View, table: Table, row: Sequence[Cell], runs_by_label: Mapping[str, tuple[str, Choices]]) -> None:
    """Add a row, with links from its figures to their conversations if these are known."""
    label = "" if "" in runs_by_label or str(row[0]) not in runs_by_label else str(row[0])
    run = runs_by_label.get(label)
    with element("tr"):
        for index, (cell, title) in enumerate(table.shown(row)):
            column = table.columns[index]
            target = None
            if index and cell != 0 and run is not None:
                query = build_figure_query(table, row, column, run[1], label, view.get("where"))
                if query is not None:
                    query = {**query, "judging": view.get("judging")}
                    target = view.url_for("/runs/{run}/scenarios", query, run=run[0])
            if isinstance(cell, Estimate):
                with element("td", "number"):
                    mean, _, rest = format_cell(cell, title, table.decimals.get(column)).partition(" ")
                    _add_figure(mean, target)
                    text("span", rest, "of")
                continue
            is_number = _is_numeric(table, index)
            words = format_cell(cell, title, table.decimals.get(column))
            if is_number and target is not None:
                with element("td", "number"):
                    _add_figure(words, target)
            else:
                text("td", words, "number" if is_number else "said")


def _add_figure(words: str, target: str | None) -> None:
    if target is None:
        text("span", words)
    else:
        link(words, target, "cell", title="its conversations")


def _find_estimate_columns(table: Table) -> list[int]:
    """Return the columns that contain estimates."""
    return [
        column for column in range(len(table.columns)) if any(isinstance(row[column], Estimate) for row in table.rows)
    ]


def _add_charts(table: Table, estimated: Sequence[int]) -> None:
    """Add a small chart of each column of estimates."""
    keys = [_build_row_name(row) for row in table.rows]
    common = {column for column, parts in enumerate(zip(*keys, strict=False)) if len(keys) > 1 and len({*parts}) == 1}
    names = [" · ".join(str(part) for column, part in enumerate(key) if column not in common) for key in keys]
    names = [name or f"row {number}" for number, name in enumerate(names, start=1)]
    with element("div", "charts"):
        for column in estimated:
            with element("figure", "card small-chart"):
                text("figcaption", table.columns[column], "small quiet")
                made = ui.echart(charts.build_small_chart(table, column, names))
                made.style(f"height: {charts.compute_height(len(table.rows))}px").classes("chart")


def _build_row_name(row: Sequence[object]) -> Sequence[object]:
    """Return a row's name: the text cells before its first estimate or, if there are none, its first number."""
    begin = itertools.takewhile(lambda cell: not isinstance(cell, Estimate), row)
    return [cell for cell in begin if isinstance(cell, str)] or [cell for cell in row[:1] if isinstance(cell, int)]


def _is_numeric(table: Table, column: int) -> bool:
    table_row = [row[column] for row in table.rows]
    return bool(table_row) and not any(isinstance(cell, str) for cell in table_row)


def _add_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        text("p", warning, "warning", role="note")


def _add_notes(notes: Sequence[str]) -> None:
    if notes:
        with element("div", "notes"):
            for note in notes:
                text("p", note)


PAGE = Page("/runs/{run}/report", "Report", "run", build)
