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
from dialoom.runs.report import text_of
from dialoom.runs.store import Choices
from dialoom.studio import charts
from dialoom.studio.forms import Choice, Entry, filter_expression, form, submit
from dialoom.studio.labelling import agreement_up_to_now, lacks_its_judgements
from dialoom.studio.page import Page, View
from dialoom.studio.parts import element, link, text, written
from dialoom.studio.studio import StudioRun
from dialoom.studio.watching import AbandonedError
from dialoom.studio.wording import counted

_SOON = 1.0
"""Seconds after which the page says that the report is being computed."""
_EVERY = 0.5
"""Seconds between two updates of the progress."""
_FEW_ROWS = 12
"""The maximum number of rows of a table that is not folded."""


async def build(view: View) -> None:
    """Build the form for the report's settings, and the report."""
    runs = [view.run, *(view.studio.run(name) for name in view.query.get("with", ()))]
    text("h1", f"Report of {', '.join(run.name for run in runs)}", "hidden-label")
    where_entry = _chooser(view, runs)
    if lacks_its_judgements(view):
        return
    judging, where = view.one("judging") or None, view.one("where") or None
    try:
        found = await _computed(view, [run.run for run in runs], judging, where)
    except AbandonedError:
        return
    except DialoomError as error:
        if error.setting != "where":
            raise
        where_entry.refuse(str(error))
        return
    if not found.tables:
        text("p", "Nothing is finished yet.", "empty")
        return
    known = {label: (run.name, await run.choices()) for label, run in zip(found.labels or ("",), runs, strict=True)}
    text("p", found.title, "quiet small")
    warned = _shared(table.headnotes for table in found.tables)
    of_charts, of_tables = [chart.notes for chart in found.charts], [table.footnotes for table in found.tables]
    noted = [note for note in _shared([*of_charts, *of_tables]) if note not in warned]
    above = [*warned, *noted]
    _warnings(warned)
    _notes([*found.notes, *noted])
    if len(found.tables) > 3:
        with element("nav", "row-of small", aria_label="Tables"):
            for table in found.tables:
                link(table.title, f"{view.path(PAGE.path, view.query)}#{table.name}")
    for chart in found.charts:
        with element("section", "card"):
            text("h2", chart.title)
            ui.echart(charts.options_of(chart)).classes("chart")
            _notes([note for note in chart.notes if note not in above])
    drawable = (each.name for each in found.tables if _estimated(each) and 1 < len(each.rows) <= _FEW_ROWS)
    drawn = view.one("drawn") or next(drawable, "")
    for table in found.tables:
        _table(view, table, known, drawn == table.name, above)
    for run in runs:
        if default_labels_path(run.run.path).exists():
            title = "Agreement of judge and people" + (f", {run.name}" if len(runs) > 1 else "")
            agreement_up_to_now(run.run, judging, title)


async def _computed(view: View, runs: Sequence[Run], judging: str | None, where: str | None) -> Report:
    """Return the report; if computing it takes long, send the page first and show the progress.

    Raises:
        AbandonedError: If the browser has left the page before the report is computed.
    """
    found = await view.studio.reports.find(runs, judging, where)
    if isinstance(found, Report):
        return found
    client = ui.context.client
    found.join(client)
    done, _ = await asyncio.wait([found.task], timeout=_SOON)
    if done:
        return await found.result()
    scenarios = sum(map(len, runs))

    def progress_text() -> str:
        return f"Computing the report of {scenarios:,} scenarios: {found.read:,} read so far, some repeatedly …"

    progress = text("p", progress_text(), "empty", role="status")
    timer = ui.timer(_EVERY, lambda: progress.set_text(progress_text()))
    await client.connected()
    try:
        report = await found.result()
        if client.is_deleted:
            raise AbandonedError
        return report
    finally:
        if not client.is_deleted:
            timer.cancel()
            progress.delete()


def _shared(lines: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines that several tables or charts share, to be shown once above all of them."""
    lines = list(lines)
    having = Counter(line for own in lines for line in {*own})
    return [line for line in dict.fromkeys(line for own in lines for line in own) if having[line] > 1]


def _chooser(view: View, runs: Sequence[StudioRun]) -> Entry:
    """Add the choice of other runs, judgements and scenarios; return the field for the scenarios."""
    recipe = view.run.run.config.recipe
    beside = [each for each in view.studio.runs.values() if each.name != view.run.name]
    alike = [each.name for each in beside if each.run.config.recipe == recipe]
    sets = [each.name for each in view.run.run.judgement_sets]
    with form(view.path(PAGE.path), "Report settings"):
        for run in runs[1:]:
            element("input", type="hidden", name="with", value=run.name)
        with element("div", "filters"):
            if len(sets) > 1:
                Choice("judging", "Judgements", dict.fromkeys(sets), view.one("judging"))
            where = filter_expression(view)
            submit("Show")
    if alike:
        with element("div", "row-of small"):
            text("span", "Compare with", "quiet")
            shown = [run.name for run in runs[1:]]
            for name in alike:
                others = [each for each in shown if each != name] if name in shown else [*shown, name]
                made = link(name, view.path(PAGE.path, {**view.query, "with": others}), "chip")
                made.props["aria-current"] = "true" if name in shown else "false"
    return where


def _table(
    view: View, table: Table, known: Mapping[str, tuple[str, Choices]], is_drawn: bool, above: Sequence[str]
) -> None:
    estimated = _estimated(table)
    with element("section", id_=table.name):
        with element("div", "section-head"):
            text("h2", table.title)
            if estimated and table.rows:
                query = {**view.query, "drawn": "none" if is_drawn else table.name}
                link(
                    "Without charts" if is_drawn else "As charts",
                    view.path(PAGE.path, query) + f"#{table.name}",
                    "small",
                )
        _warnings([warning for warning in table.headnotes if warning not in above])
        if is_drawn:
            _drawn(table, estimated)
        with element("div", "scroll", tabindex="0", role="region", aria_label=table.title), element("table", "data"):
            with element("thead"), element("tr"):
                for place, column in enumerate(table.columns):
                    text("th", column, "number" if _is_number(table, place) else "", scope="col")
            with written("tbody"):
                for row in table.rows:
                    _row(view, table, row, known)
        _notes([note for note in table.footnotes if note not in above])


def _row(view: View, table: Table, row: Sequence[Cell], known: Mapping[str, tuple[str, Choices]]) -> None:
    """Add a row, with links from its figures to their conversations if these are known."""
    label = "" if "" in known or str(row[0]) not in known else str(row[0])
    run = known.get(label)
    with element("tr"):
        for place, (cell, title) in enumerate(table.shown(row)):
            column = table.columns[place]
            target = None
            if place and cell != 0 and run is not None:
                query = counted(table, row, column, run[1], label, view.one("where"))
                if query is not None:
                    query = {**query, "judging": view.one("judging")}
                    target = view.path("/runs/{run}/scenarios", query, run=run[0])
            if isinstance(cell, Estimate):
                with element("td", "number"):
                    mean, _, rest = text_of(cell, title, table.decimals.get(column)).partition(" ")
                    _figure(mean, target)
                    text("span", rest, "of")
                continue
            is_number = _is_number(table, place)
            words = text_of(cell, title, table.decimals.get(column))
            if is_number and target is not None:
                with element("td", "number"):
                    _figure(words, target)
            else:
                text("td", words, "number" if is_number else "said")


def _figure(words: str, target: str | None) -> None:
    if target is None:
        text("span", words)
    else:
        link(words, target, "cell", title="its conversations")


def _estimated(table: Table) -> list[int]:
    """Return the columns that contain estimates."""
    return [place for place in range(len(table.columns)) if any(isinstance(row[place], Estimate) for row in table.rows)]


def _drawn(table: Table, estimated: Sequence[int]) -> None:
    """Add a small chart of each column of estimates."""
    keys = [_key(row) for row in table.rows]
    common = {place for place, parts in enumerate(zip(*keys, strict=False)) if len(keys) > 1 and len({*parts}) == 1}
    names = [" · ".join(str(part) for place, part in enumerate(key) if place not in common) for key in keys]
    names = [name or f"row {number}" for number, name in enumerate(names, start=1)]
    with element("div", "charts"):
        for column in estimated:
            with element("figure", "card small-chart"):
                text("figcaption", table.columns[column], "small quiet")
                made = ui.echart(charts.small(table, column, names))
                made.style(f"height: {charts.height_of(len(table.rows))}px").classes("chart")


def _key(row: Sequence[object]) -> Sequence[object]:
    """Return a row's name: the text cells before its first estimate or, if there are none, its first number."""
    begin = itertools.takewhile(lambda cell: not isinstance(cell, Estimate), row)
    return [cell for cell in begin if isinstance(cell, str)] or [cell for cell in row[:1] if isinstance(cell, int)]


def _is_number(table: Table, place: int) -> bool:
    cells = [row[place] for row in table.rows]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        text("p", warning, "warning", role="note")


def _notes(notes: Sequence[str]) -> None:
    if notes:
        with element("div", "notes"):
            for note in notes:
                text("p", note)


PAGE = Page("/runs/{run}/report", "Report", "run", build)
