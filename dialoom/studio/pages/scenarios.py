"""The scenarios of a run, a page at a time: filtered, searched and ordered by the address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.runs.agreement import LabelProgress
from dialoom.runs.reading.search_index import snippet
from dialoom.runs.store import Choices, ScenarioPage, ScenarioRow
from dialoom.runs.store.listing import ANY, NONE, STATES
from dialoom.studio import wording
from dialoom.studio.forms import Choice, Entry, filter_expression, form, submit
from dialoom.studio.labelling import label_count, labels_by, lacks_its_judgements, metrics_of, start
from dialoom.studio.page import Page, View
from dialoom.studio.parts import badge, begun_with, element, link, table_head, text, written
from dialoom.studio.shell import problem
from dialoom.studio.wording import (
    FACET,
    LABELLED,
    LEAST,
    MOST,
    UNLABELLED,
    is_blind,
    is_narrowed,
    list_parameters,
    named,
    query_of,
)
from dialoom.text import counted

_LIMIT = 50
_SOON = 0.4
"""Seconds after which a page reports that the search is running."""
_EVERY = 0.5
"""Seconds between two updates of the progress."""
_STATE_KINDS = {"done": "good", "failed": "bad", "pending": ""}
_ERROR = 160
"""Maximum length of an error in the list, in characters."""
_MOST_FACETS = 8
"""Maximum number of columns for facets; a recipe's scenarios may have more facets."""


async def build(view: View) -> None:
    """Build the filters and the page of scenarios; slow results are added after the page is sent."""
    page_number = max(view.number("page", 1), 1)
    text("h1", f"Scenarios of {view.run.name}", "hidden-label")
    filters = element("div", "stack")
    results = element("div", "stack")
    metrics, labels = await asyncio.gather(asyncio.to_thread(metrics_of, view), asyncio.to_thread(labels_by, view))
    with filters:
        filter_form = _Filters(view, {} if is_blind(view) else metrics or {})
        if lacks_its_judgements(view):
            return
    try:
        found = await _found(view, (page_number - 1) * _LIMIT, results)
        differing = await view.run.differing_facets()
    except DialoomError as error:
        results.clear()
        with results:
            filter_form.refuse(error)
    else:
        results.clear()
        with results:
            _results(view, found, page_number, metrics or {}, differing, labels)
    if view.run.known_choices is None:
        with filters:
            ui.timer(0.01, filter_form.count, once=True)


async def _found(view: View, offset: int, results: Any) -> ScenarioPage:
    """Return the page of scenarios; if the search takes long, show its progress, and end it if the browser leaves."""
    client, status = ui.context.client, "looking"

    def on_progress(what: str, done: int, of: int) -> None:
        nonlocal status
        if client.is_deleted:
            raise asyncio.CancelledError
        status = f"{what}: {done:,} of {of:,}"

    look = partial(view.run.run.scenarios, query_of(view), **view.selection, on_progress=on_progress)
    found = asyncio.ensure_future(asyncio.to_thread(look, offset=offset, limit=_LIMIT))
    done, _ = await asyncio.wait([found], timeout=_SOON)
    if not done:
        with results:
            shown = text("p", f"{status} …", "empty", role="status")
            ui.timer(_EVERY, lambda: shown.set_text(f"{status} …"))
        await client.connected()
    return await found


class _Filters:
    """The form with the filters, whose values become the address of the page."""

    def __init__(self, view: View, metrics: Iterable[str]) -> None:
        self._view = view
        self._fields: dict[str, Choice] = {}
        with form(view.path(PAGE.path), "Filters"):
            for name in ("sort", "order", "as", "metrics"):
                if view.one(name):
                    element("input", type="hidden", name=name, value=view.one(name))
            with element("div", "filters"):
                search = Entry(
                    "search", "Search messages", view.one("search"), "words, or “words in a row”", classes="grow"
                )
                self._choice("state", "State", dict.fromkeys(STATES))
                self._choice("ended_by", "Ended by")
                if view.one("as"):
                    self._choice("labels", f"Labels of {view.one('as')}", dict.fromkeys((LABELLED, UNLABELLED)))
                self._choice("fault", "Fault", {ANY: None, NONE: None})
                submit("Show")
                if any(view.one(name) for name in view.query if name != "page"):
                    link("Clear", view.path(PAGE.path), "button")
            more = element("details")
            if any(name.startswith((FACET, LEAST, MOST)) or name in ("where", "judging") for name in view.query):
                more.props("open")
            with more:
                text("summary", "More filters")
                with element("div", "filters"):
                    self._facets = element("div", "as-is")
                    _bounds(view, metrics)
                    where = filter_expression(view)
        self._entries = {"search": search, "where": where}
        self._add(view.run.known_choices or {})

    async def count(self) -> None:
        """Add the number of scenarios to each value that can be selected."""
        self._add(await self._view.run.choices())

    def _add(self, choices: Choices) -> None:
        """Add values with their numbers of scenarios to the fields, and fields for facets with several values."""
        known: dict[str, Mapping[str, int]] = {
            "state": {**dict.fromkeys(STATES, 0), **choices["state"]} if choices else {},
            "ended_by": choices.get("ended_by", {}),
            "fault": {**choices.get("fault", {}), **choices.get("fault_of", {})},
        }
        values_of = {name.removeprefix("facet:"): each for name, each in choices.items() if name.startswith("facet:")}
        several = [name for name, values in values_of.items() if len(values) > 1]
        with self._facets:
            for name in dict.fromkeys([*several, *named(self._view, FACET)]):
                known[FACET + name] = values_of.get(name, {})
                if FACET + name not in self._fields:
                    self._choice(FACET + name, name)
        for name, values in known.items():
            self._fields[name].add(values)

    def _choice(self, name: str, label: str, values: Mapping[str, int | None] | None = None) -> None:
        self._fields[name] = Choice(name, label, values or {}, self._view.one(name))

    def refuse(self, error: DialoomError) -> None:
        """Show an error at the field that caused it."""
        if (entry := self._entries.get(error.setting or "")) is None:
            problem(error)
            return
        entry.refuse(str(error))
        text("p", "The filters are invalid: correct the marked field above.", "empty")


def _bounds(view: View, metrics: Iterable[str]) -> None:
    """Add fields for the minimum and maximum score of each metric, and the choice of judgements."""
    for metric in metrics:
        with element("div", "field"):
            text("span", metric)
            with element("div", "row-of tight"):
                for prefix, what in ((LEAST, "at least"), (MOST, "at most")):
                    name = f"{prefix}{metric}"
                    own = {"name": name, "type": "text", "aria_label": f"{metric} {what}", "placeholder": what}
                    begun_with(element("input", "input narrow", inputmode="decimal", **own), view.one(name))
    sets = [each.name for each in view.run.run.judgement_sets]
    if len(sets) > 1:
        Choice("judging", "Judgements", dict.fromkeys(sets), view.one("judging"))


def _results(
    view: View,
    page: ScenarioPage,
    number: int,
    metrics: Mapping[str, Sequence[str]],
    differing: Sequence[str],
    labels: Mapping[int, LabelProgress],
) -> None:
    """Add the number of results, and the results of this page."""
    planned = counted(len(view.run.run), "scenarios")
    with element("div", "row-of"):
        text("div", f"{page.total:,} of {planned} match" if is_narrowed(view) else planned, "number")
        if metrics and len(view.run.run.judgement_sets) > 1:
            text("div", f"judgements {view.one('judging') or view.run.run.judgement_sets[0].name!r}", "quiet small")
        if metrics and page.rows:
            start(view)
        with element("div", "push"):
            _pager(view, page, number)
    if is_blind(view):
        metrics = {}
    if not page.rows:
        text("p", "No matches." if page.total == 0 else "There are no further pages.", "empty")
        return
    counts = list(dict.fromkeys(name for row in page.rows for name in row.counts))[:1]
    # A facet of which the filter selects a single value is left out, because the filter itself shows that value.
    chosen = [name for name in differing if FACET + name in view.query]
    single = [name for name in chosen if len({str(row.facets.get(name)) for row in page.rows}) == 1]
    facets = [name for name in differing if name not in (*counts, *single)][:_MOST_FACETS]
    with element("div", "scroll", tabindex="0", role="region", aria_label="Scenarios"), element("table", "data dense"):
        with element("thead"), element("tr"):
            _heads(view, facets, metrics, counts)
        with written("tbody"):
            for row in page.rows:
                _row(view, row, facets, metrics, counts, page.matches.get(row.position), labels.get(row.position))
    with element("div", "row-of"), element("div", "push"):
        _pager(view, page, number)


def _heads(view: View, facets: Sequence[str], metrics: Mapping[str, Sequence[str]], counts: Sequence[str]) -> None:
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
    now, order = view.one("sort") or "number", view.one("order") or "asc"
    for title, key, is_number in columns:
        is_now = key == now
        turned = "desc" if (is_now and order == "asc") or (not is_now and is_number and key != "number") else "asc"
        query = {**view.query, "sort": key, "order": turned, "page": None}
        table_head(title, is_number, view.path(PAGE.path, query), order if is_now else None)


def _row(
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
            link(row.id, view.path("/runs/{run}/scenarios/{scenario}", list_parameters(view), scenario=row.id))
            if match is not None:
                text("div", snippet(match, view.one("search")), "quiet small said")
            elif row.error:
                text("div", row.error[:_ERROR], "quiet small said")
        with element("td"):
            badge(row.state, _STATE_KINDS.get(row.state, ""))
            if row.is_changed:
                badge("changed", "warn")
            if view.one("as") and row.state == "done":
                badge(label_count(labels), "accent" if labels else "")
        text("td", row.ended_by.replace("_", " "), "small")
        for name in facets:
            text("td", _facet_text(row.facets.get(name)), "small of-facet")
        for name in metrics:
            text("td", wording.score(row.scores.get(name)), "number")
        for name in counts:
            text("td", wording.ABSENT if name not in row.counts else f"{row.counts[name]:,}", "number")
        text(
            "td", wording.ABSENT if row.faults is None else f"{row.faults:,}", "number bad" if row.faults else "number"
        )
        text("td", wording.count(row.tokens), "number")
        text("td", wording.money(row.cost), "number")


def _pager(view: View, page: ScenarioPage, number: int) -> None:
    last = max(1, -(-page.total // _LIMIT))
    if last == 1 and number == 1:
        return
    with element("nav", "pager", aria_label="Pages of scenarios"):
        for words, target, can in (("Earlier", number - 1, number > 1), ("Later", number + 1, number < last)):
            if words == "Later":
                text("span", f"{number:,} of {last:,}", "number quiet small")
            made = link(words, view.path(PAGE.path, {**view.query, "page": str(target)}) if can else "#", "button")
            if not can:
                made.props('aria-disabled="true" tabindex="-1"')


def _facet_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return wording.ABSENT if value is None else str(value)


PAGE = Page("/runs/{run}/scenarios", "Scenarios", "run", build, is_wide=True)
