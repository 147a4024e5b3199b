"""The scenarios of a run, a page at a time: filtered, searched and ordered by the address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.runs.agreement import LabelProgress
from dialoom.runs.reading.search_index import extract_snippet
from dialoom.runs.store import Choices, ScenarioPage, ScenarioRow
from dialoom.runs.store.listing import ANY, NONE, STATES
from dialoom.studio.components import badge, element, fragment, link, set_initial_value, sort_header, text
from dialoom.studio.formatting import ABSENT, format_count, format_money, format_score
from dialoom.studio.forms import Choice, Entry, filter_entry, form, submit_button
from dialoom.studio.labelling import (
    add_labelling_form,
    format_label_count,
    load_labels,
    load_metrics,
    show_missing_judgements_notice,
)
from dialoom.studio.page import Page, View
from dialoom.studio.queries import (
    FACET_PREFIX,
    LABELLED,
    MAX_PREFIX,
    MIN_PREFIX,
    UNLABELLED,
    build_query,
    get_navigation_query,
    get_prefixed,
    is_blind,
    is_filtered,
)
from dialoom.studio.shell import show_error
from dialoom.text import pluralize

_PAGE_SIZE = 50
_STATUS_DELAY_SECONDS = 0.4
"""Seconds after which a page reports that the search is running."""
_UPDATE_SECONDS = 0.5
"""Seconds between two updates of the progress."""
_STATE_KINDS = {"done": "good", "failed": "bad", "pending": ""}
_MAX_ERROR_CHARACTERS = 160
"""Maximum length of an error in the list, in characters."""
_MAX_FACET_COLUMNS = 8
"""Maximum number of columns for facets; a recipe's scenarios may have more facets."""


async def build(view: View) -> None:
    """Build the filters and the page of scenarios; slow results are added after the page is sent."""
    page_number = max(view.number("page", 1), 1)
    text("h1", f"Scenarios of {view.run.name}", "hidden-label")
    filters = element("div", "stack")
    results = element("div", "stack")
    metrics, labels = await asyncio.gather(asyncio.to_thread(load_metrics, view), asyncio.to_thread(load_labels, view))
    with filters:
        filter_form = _FilterForm(view, {} if is_blind(view) else metrics or {})
        if show_missing_judgements_notice(view):
            return
    try:
        page = await _find_scenarios(view, (page_number - 1) * _PAGE_SIZE, results)
        differing = await view.run.differing_facets()
    except DialoomError as error:
        results.clear()
        with results:
            filter_form.show_error(error)
    else:
        results.clear()
        with results:
            _add_results(view, page, page_number, metrics or {}, differing, labels)
    if view.run.cached_choices is None:
        with filters:
            ui.timer(0.01, filter_form.add_counts, once=True)


async def _find_scenarios(view: View, offset: int, results: Any) -> ScenarioPage:
    """Return the page of scenarios; if the search takes long, show its progress, and end it if the browser leaves."""
    client, status = ui.context.client, "searching"

    def on_progress(what: str, done: int, of: int) -> None:
        nonlocal status
        if client.is_deleted:
            raise asyncio.CancelledError
        status = f"{what}: {done:,} of {of:,}"

    search = partial(view.run.run.scenarios, build_query(view), **view.selection, on_progress=on_progress)
    task = asyncio.ensure_future(asyncio.to_thread(search, offset=offset, limit=_PAGE_SIZE))
    done, _ = await asyncio.wait([task], timeout=_STATUS_DELAY_SECONDS)
    if not done:
        with results:
            progress = text("p", f"{status} …", "empty", role="status")
            ui.timer(_UPDATE_SECONDS, lambda: progress.set_text(f"{status} …"))
        await client.connected()
    return await task


class _FilterForm:
    """The form with the filters, whose values become the address of the page."""

    def __init__(self, view: View, metrics: Iterable[str]) -> None:
        self._view = view
        self._fields: dict[str, Choice] = {}
        with form(view.url_for(PAGE.path), "Filters"):
            for name in ("sort", "order", "as", "metrics"):
                if view.get(name):
                    element("input", type="hidden", name=name, value=view.get(name))
            with element("div", "filters"):
                search = Entry(
                    "search", "Search messages", view.get("search"), "words, or “words in a row”", classes="grow"
                )
                self._add_choice("state", "State", dict.fromkeys(STATES))
                self._add_choice("ended_by", "Ended by")
                if view.get("as"):
                    self._add_choice("labels", f"Labels of {view.get('as')}", dict.fromkeys((LABELLED, UNLABELLED)))
                self._add_choice("fault", "Fault", {ANY: None, NONE: None})
                submit_button("Show")
                if any(view.get(name) for name in view.query if name != "page"):
                    link("Clear", view.url_for(PAGE.path), "button")
            more = element("details")
            if any(
                name.startswith((FACET_PREFIX, MIN_PREFIX, MAX_PREFIX)) or name in ("where", "judging")
                for name in view.query
            ):
                more.props("open")
            with more:
                text("summary", "More filters")
                with element("div", "filters"):
                    self._facets = element("div", "as-is")
                    _add_score_bounds(view, metrics)
                    where = filter_entry(view)
        self._entries = {"search": search, "where": where}
        self._add_choices(view.run.cached_choices or {})

    async def add_counts(self) -> None:
        """Add the number of scenarios to each value that can be selected."""
        self._add_choices(await self._view.run.choices())

    def _add_choices(self, choices: Choices) -> None:
        """Add values with their numbers of scenarios to the fields, and fields for facets with several values."""
        known: dict[str, Mapping[str, int]] = {
            "state": {**dict.fromkeys(STATES, 0), **choices["state"]} if choices else {},
            "ended_by": choices.get("ended_by", {}),
            "fault": {**choices.get("fault", {}), **choices.get("fault_of", {})},
        }
        values_of = {name.removeprefix("facet:"): each for name, each in choices.items() if name.startswith("facet:")}
        several = [name for name, values in values_of.items() if len(values) > 1]
        with self._facets:
            for name in dict.fromkeys([*several, *get_prefixed(self._view, FACET_PREFIX)]):
                known[FACET_PREFIX + name] = values_of.get(name, {})
                if FACET_PREFIX + name not in self._fields:
                    self._add_choice(FACET_PREFIX + name, name)
        for name, values in known.items():
            self._fields[name].add(values)

    def _add_choice(self, name: str, label: str, values: Mapping[str, int | None] | None = None) -> None:
        self._fields[name] = Choice(name, label, values or {}, self._view.get(name))

    def show_error(self, error: DialoomError) -> None:
        """Show an error at the field that caused it."""
        if (entry := self._entries.get(error.setting or "")) is None:
            show_error(error)
            return
        entry.show_error(str(error))
        text("p", "The filters are invalid: correct the marked field above.", "empty")


def _add_score_bounds(view: View, metrics: Iterable[str]) -> None:
    """Add fields for the minimum and maximum score of each metric, and the choice of judgements."""
    for metric in metrics:
        with element("div", "field"):
            text("span", metric)
            with element("div", "row-of tight"):
                for prefix, what in ((MIN_PREFIX, "at least"), (MAX_PREFIX, "at most")):
                    name = f"{prefix}{metric}"
                    attributes = {"name": name, "type": "text", "aria_label": f"{metric} {what}", "placeholder": what}
                    set_initial_value(
                        element("input", "input narrow", inputmode="decimal", **attributes), view.get(name)
                    )
    sets = [each.name for each in view.run.run.judgement_sets]
    if len(sets) > 1:
        Choice("judging", "Judgements", dict.fromkeys(sets), view.get("judging"))


def _add_results(
    view: View,
    page: ScenarioPage,
    number: int,
    metrics: Mapping[str, Sequence[str]],
    differing: Sequence[str],
    labels: Mapping[int, LabelProgress],
) -> None:
    """Add the number of results, and the results of this page."""
    planned = pluralize(len(view.run.run), "scenarios")
    with element("div", "row-of"):
        text("div", f"{page.total:,} of {planned} match" if is_filtered(view) else planned, "number")
        if metrics and len(view.run.run.judgement_sets) > 1:
            text("div", f"judgements {view.get('judging') or view.run.run.judgement_sets[0].name!r}", "quiet small")
        if metrics and page.rows:
            add_labelling_form(view)
        with element("div", "push"):
            _add_pager(view, page, number)
    if is_blind(view):
        metrics = {}
    if not page.rows:
        text("p", "No matches." if page.total == 0 else "There are no further pages.", "empty")
        return
    counts = list(dict.fromkeys(name for row in page.rows for name in row.counts))[:1]
    # A facet of which the filter selects a single value is left out, because the filter itself shows that value.
    chosen = [name for name in differing if FACET_PREFIX + name in view.query]
    single = [name for name in chosen if len({str(row.facets.get(name)) for row in page.rows}) == 1]
    facets = [name for name in differing if name not in (*counts, *single)][:_MAX_FACET_COLUMNS]
    with element("div", "scroll", tabindex="0", role="region", aria_label="Scenarios"), element("table", "data dense"):
        with element("thead"), element("tr"):
            _add_column_heads(view, facets, metrics, counts)
        with fragment("tbody"):
            for row in page.rows:
                _add_row(view, row, facets, metrics, counts, page.matches.get(row.position), labels.get(row.position))
    with element("div", "row-of"), element("div", "push"):
        _add_pager(view, page, number)


def _add_column_heads(
    view: View, facets: Sequence[str], metrics: Mapping[str, Sequence[str]], counts: Sequence[str]
) -> None:
    columns = [
        ("#", "number", True),
        ("scenario", "id", False),
        ("state", "state", False),
        ("ended by", "ended_by", False),
    ]
    columns += [(name, f"facet:{name}", False) for name in facets]
    for name, targets in metrics.items():
        mean_of = f" (mean of {' and '.join(targets)})" if len(targets) > 1 else ""
        columns.append((f"{name.replace('_', ' ')}{mean_of}", f"score:{name}", True))
    columns += [(name.replace("_", " "), f"count:{name}", True) for name in counts]
    columns += [("faults", "faults", True), ("tokens used", "tokens", True), ("cost", "cost", True)]
    current_sort, order = view.get("sort") or "number", view.get("order") or "asc"
    for title, key, is_number in columns:
        is_sorted = key == current_sort
        next_order = (
            "desc" if (is_sorted and order == "asc") or (not is_sorted and is_number and key != "number") else "asc"
        )
        query = {**view.query, "sort": key, "order": next_order, "page": None}
        sort_header(title, is_number, view.url_for(PAGE.path, query), order if is_sorted else None)


def _add_row(
    view: View,
    row: ScenarioRow,
    facets: Sequence[str],
    metrics: Iterable[str],
    counts: Sequence[str],
    match: str | None,
    labels: LabelProgress | None,
) -> None:
    with element("tr"):
        text("td", f"{row.position + 1:,}", "number quiet")
        with element("th", "of-id" if match is None else "of-id found", scope="row"):
            link(row.id, view.url_for("/runs/{run}/scenarios/{scenario}", get_navigation_query(view), scenario=row.id))
            if match is not None:
                text("div", extract_snippet(match, view.get("search")), "quiet small said")
            elif row.error:
                text("div", row.error[:_MAX_ERROR_CHARACTERS], "quiet small said")
        with element("td"):
            badge(row.state, _STATE_KINDS.get(row.state, ""))
            if row.is_changed:
                badge("changed", "warn")
            if view.get("as") and row.state == "done":
                badge(format_label_count(labels), "accent" if labels else "")
        text("td", row.ended_by.replace("_", " "), "small")
        for name in facets:
            text("td", _format_facet(row.facets.get(name)), "small of-facet")
        for name in metrics:
            text("td", format_score(row.scores.get(name)), "number")
        for name in counts:
            text("td", ABSENT if name not in row.counts else f"{row.counts[name]:,}", "number")
        text("td", ABSENT if row.faults is None else f"{row.faults:,}", "number bad" if row.faults else "number")
        text("td", format_count(row.tokens), "number")
        text("td", format_money(row.cost), "number")


def _add_pager(view: View, page: ScenarioPage, number: int) -> None:
    last = max(1, -(-page.total // _PAGE_SIZE))
    if last == 1 and number == 1:
        return
    with element("nav", "pager", aria_label="Pages of scenarios"):
        for label, target, is_enabled in (("Earlier", number - 1, number > 1), ("Later", number + 1, number < last)):
            if label == "Later":
                text("span", f"{number:,} of {last:,}", "number quiet small")
            button = link(
                label, view.url_for(PAGE.path, {**view.query, "page": str(target)}) if is_enabled else "#", "button"
            )
            if not is_enabled:
                button.props('aria-disabled="true" tabindex="-1"')


def _format_facet(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return ABSENT if value is None else str(value)


PAGE = Page("/runs/{run}/scenarios", "Scenarios", "run", build, is_wide=True)
