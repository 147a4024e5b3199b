"""The judgements of a conversation, and the labelling of judgements with hidden scores."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from nicegui import ui

from dialoom import Run
from dialoom.errors import DialoomError
from dialoom.graphs import Judgement, WithJudging, WithLabels
from dialoom.graphs.check import select_judged_messages
from dialoom.runs.agreement import LabelProgress, Scale, Scales, StoredLabel, kappa_table
from dialoom.runs.errors import StoreError
from dialoom.runs.reading.conversations import Conversation, Item
from dialoom.runs.report import format_rows
from dialoom.runs.report.differences import format_subject
from dialoom.runs.report.health import Health
from dialoom.runs.store import JudgementSet
from dialoom.text import pluralize

from .components import button, details, element, lazy_details, link, set_initial_value, text, verbatim
from .page import View
from .queries import build_query, find_labelled, get_navigation_query, is_blind, parse_metrics
from .shell import show_error

_CONVERSATION_PATH = "/runs/{run}/scenarios/{scenario}"
_READ_ANNOTATOR_SCRIPT = "() => emit(document.getElementById('labeller').value)"


def load_labels(view: View) -> Mapping[int, LabelProgress]:
    """Return the annotator's progress in labelling, by the scenario's position; empty without an annotator."""
    if not view.get("as"):
        return {}
    return view.run.run.labelled(view.get("as"), metrics=parse_metrics(view), judging=view.get("judging") or None)


def add_labelling_form(view: View) -> None:
    """Add a field for the annotator's name, and a button to the first conversation without their labels."""
    with element("div", "row-of small", role="group", aria_label="Labelling"):
        text("label", "Label as", "quiet", for_="labeller")
        field = element("input", "input", id="labeller", placeholder="your name", maxlength="80", autocomplete="off")
        set_initial_value(field, view.get("as"))
        with element("button", "button", type="button") as button:
            text("span", "Start labelling")

    async def go(annotator: str) -> None:
        name = " ".join(annotator.split())
        if not name:
            ui.notify("Enter your name: labels are stored in a column for each person.", type="warning")
            return
        try:
            scenario = await asyncio.to_thread(_find_first_unlabelled, view, name)
        except DialoomError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        if scenario is None:
            ui.notify(f"{name} has labelled everything in this list.", type="info")
        else:
            ui.navigate.to(
                view.url_for(_CONVERSATION_PATH, {**get_navigation_query(view), "as": name}, scenario=scenario)
            )

    button.on("click", lambda event: go(str(event.args)), js_handler=_READ_ANNOTATOR_SCRIPT)
    field.on("keydown.enter", lambda event: go(str(event.args)), js_handler=_READ_ANNOTATOR_SCRIPT)


def _find_first_unlabelled(view: View, annotator: str) -> str | None:
    """Return the id of the list's first finished scenario that the annotator has not labelled."""
    query = replace(build_query(view), state="done", without=find_labelled(view, annotator))
    rows = view.run.run.scenarios(query, **view.selection, limit=1).rows
    return rows[0].id if rows else None


def find_next_unlabelled(view: View) -> int | None:
    """Return the position of the list's next scenario that the annotator has not labelled; `None` if there is none."""
    run = view.run.run
    here = run.position(view.scenario)
    query = replace(build_query(view, here), state="done", without=(find_labelled(view) - {here}))
    neighbours = run.neighbours(view.scenario, query, **view.selection)
    return None if neighbours is None else neighbours.after


def add_next_link(view: View, next_position: int | None) -> None:
    """Add a link to the next conversation to label."""
    with element("div", "row-of"):
        if next_position is None:
            text("span", "You have labelled all later conversations in this list.", "quiet small")
        else:
            link(
                "Next to label →",
                view.url_for(_CONVERSATION_PATH, get_navigation_query(view), scenario=next_position + 1),
                "button",
                rel="label",
            )


def format_label_count(labels: LabelProgress | None) -> str:
    """Return the number of a scenario's labels as text."""
    if labels is None:
        return "not labelled"
    return "labelled" if labels.is_complete else f"{labels.labelled} of {labels.total} labelled"


def format_judgement(judgement: Judgement) -> str:
    """Return a score, or the reason why there is no score."""
    if judgement.score is None:
        return judgement.status
    if isinstance(judgement.score, bool):
        return "yes" if judgement.score else "no"
    return f"{judgement.score:.10g}"


def format_badge(judgement: Judgement, health: Mapping[str, Health]) -> tuple[str, str]:
    """Return a judgement's score, marked if its judge fails a check, and the reasons."""
    judge = health.get(format_subject(judgement))
    if judge is None or not judge.marks:
        return format_judgement(judgement), ""
    return f"{format_judgement(judgement)}{judge.marks}", f"This judge fails a check: {'; '.join(judge.failures())}"


def add_judgement(judgement: Judgement, health: Mapping[str, Health], is_blind: bool = False) -> None:
    """Add what was judged and, unless scores are hidden, the score, its explanation and the judge's failed checks."""
    score, why = format_badge(judgement, health)
    with element("div", "row-of"):
        text("span", judgement.metric.replace("_", " "), "metric")
        text("span", judgement.target + ("" if judgement.turn is None else f", turn {judgement.turn}"), "quiet small")
        if not is_blind:
            text("span", score, "badge push word")
    if judgement.explanation and not is_blind:
        verbatim(judgement.explanation, "said small quiet")
    if why and not is_blind:
        text("div", why, "small quiet")


class JudgementBox:
    """The judgements of a conversation.

    Args:
        view: The page's view. In its query, `judging` is the set, `as` the annotator and `metrics` the labelled
            metrics; `blind` sets whether the judge's scores are hidden, which is the default while somebody labels.
        conversation: The conversation.
        sets: All sets of judgements of the run.
        health: The health of the judge, by metric and target.
        next_position: The position of the next scenario to label, if there is one.
    """

    def __init__(
        self,
        view: View,
        conversation: Conversation,
        sets: Sequence[JudgementSet],
        health: Mapping[str, Health],
        next_position: int | None = None,
    ) -> None:
        self._health = health
        self._next_position = next_position
        self._view = view
        self._conversation = conversation
        self._sets = sets
        self._is_blind = is_blind(view)
        self._annotator = view.get("as")
        self._metrics = parse_metrics(view)
        self._scales = Scales(WithJudging.of(view.run.run.recipe).scales)

    def build(self) -> None:
        """Build the box."""
        items = [*self._conversation.judged, *(item for each in self._conversation.messages for item in each.judged)]
        if not items:
            return
        with element("section", "card stack"):
            with element("div", "section-head"):
                text("h2", "Judgements")
                label, target = ("Show the judge's scores", "0") if self._is_blind else ("Hide the judge's scores", "1")
                ui.link(label, self._url(blind=target)).classes("small push")
            self._add_set_links()
            self._add_annotator_field()
            if self._annotator:
                self._add_metric_links(items)
            labels = self._load_labels()
            for item in items if self._annotator else self._conversation.judged:
                if not self._annotator or not self._metrics or item.judgement.metric in self._metrics:
                    self._add_item(item, labels)
            if (count := len(items) - len(self._conversation.judged)) and not self._annotator:
                text(
                    "p",
                    f"{pluralize(count, 'judgements')} of single turns, shown at the last message of each turn",
                    "quiet small",
                )
            self._add_earlier_labels_note(labels, items)
            if self._annotator:
                add_next_link(self._view, self._next_position)
            if not self._is_blind:
                add_agreement(self._view.run.run, self._conversation.judging)

    def _url(self, **changed: str) -> str:
        return self._view.url_for(_CONVERSATION_PATH, {**get_navigation_query(self._view), **changed})

    def _add_set_links(self) -> None:
        """Add the choice of a set of judgements, if there are several."""
        if len(self._sets) < 2:
            return
        with element("nav", "row-of small", aria_label="Sets of judgements"):
            for each in self._sets:
                link = ui.link(each.name, self._url(judging=each.name))
                if each.name == self._conversation.judging:
                    link.props('aria-current="true"')

    def _add_annotator_field(self) -> None:
        """Add the field for the annotator's name, which is kept in the address."""
        with element("div", "field"):
            text("label", "Label as").props("for=annotator")
            name = element(
                "input",
                "input",
                id="annotator",
                placeholder="your name, then Enter",
                maxlength="80",
                autocomplete="off",
            )
            set_initial_value(name, self._annotator)
        name.on(
            "change",
            lambda event: ui.navigate.to(self._url(**{"as": " ".join(str(event.args).split())})),
            js_handler="(event) => emit(event.target.value)",
        )

    def _add_metric_links(self, items: Sequence[Item]) -> None:
        """Add a link for each metric, which adds the metric to the labelled metrics or removes it from them."""
        known = list(dict.fromkeys(item.judgement.metric for item in items))
        if len(known) < 2:
            return
        chosen = [metric for metric in known if not self._metrics or metric in self._metrics]
        with element("nav", "row-of small", aria_label="Metrics to label"):
            text("span", "Label", "quiet")
            for metric in known:
                toggled = [each for each in known if (each in chosen) != (each == metric)]
                metrics = "" if not toggled or len(toggled) == len(known) else ",".join(toggled)
                chip = ui.link(metric.replace("_", " "), self._url(metrics=metrics)).classes("chip")
                chip.props(f'aria-current="{str(metric in chosen).lower()}"')

    def _load_labels(self) -> Sequence[StoredLabel]:
        if not self._annotator:
            return ()
        try:
            return self._view.run.run.given_labels(self._annotator, self._conversation.number)
        except DialoomError as error:
            show_error(error)
            return ()

    def _add_earlier_labels_note(self, labels: Sequence[StoredLabel], items: Sequence[Item]) -> None:
        """Add the annotator's labels of judgements that belong only to an earlier conversation."""
        here = {item.id for item in items}
        if count := sum(each.is_earlier and each.item not in here for each in labels):
            labels_left = (
                f"{pluralize(count, 'labels')} that you gave to judgements which only an earlier conversation has"
            )
            text("p", f"Not counted while this conversation is the outcome: {labels_left}.", "quiet small")

    def _add_item(self, item: Item, labels: Sequence[StoredLabel]) -> None:
        judgement = item.judgement
        with element("div", "judgement"):
            add_judgement(judgement, self._health, self._is_blind)
            if self._annotator and self._conversation.episode.state == "done":
                self._add_judged_content(item)
                item_labels = [each for each in labels if each.item == item.id]
                self._add_label_buttons(item, next((each.label for each in item_labels if not each.is_earlier), ""))
                if earlier := [each.label for each in item_labels if each.is_earlier]:
                    text(
                        "div", f"given to an earlier conversation, so not counted: {', '.join(earlier)}", "quiet small"
                    )

    def _add_judged_content(self, item: Item) -> None:
        """Add the judged text, unless the page already shows it."""
        outcome = self._conversation.episode.outcome
        lines = WithLabels.of(self._view.run.run.recipe).judged_lines(outcome, item.judgement)
        if list(lines) == list(select_judged_messages(outcome, item.judgement)):
            return
        with details("Judged content"):
            for line in lines:
                with element("div", "spoken"):
                    text("span", line.role, "label")
                    verbatim(line.spoken)

    def _add_label_buttons(self, item: Item, current: str) -> None:
        """Add the values of the scale as buttons; pressing the current label's button removes the label."""
        scale = self._scales.get(item.judgement.metric)
        buttons: dict[str, ui.element] = {}
        current = _normalize_label(scale, current)
        turn = asyncio.Lock()  # clicks count in their order, however long each takes to store

        async def store(label: str) -> None:
            nonlocal current
            async with turn:
                new_label = "" if label == current else label
                try:
                    await asyncio.to_thread(self._store_label, item, new_label)
                except DialoomError as error:
                    ui.notify(str(error), type="negative", multi_line=True)
                    return
                current = new_label
            for name, each in buttons.items():
                each.props["aria-pressed"] = str(name == current).lower()
                each.update()

        with element("div", "choices", role="group", aria_label=f"Your label of {item.judgement.metric}"):
            for value in (
                ["yes", "no"] if scale.is_verdict else [str(value) for value in range(scale.low, scale.high + 1)]
            ):
                buttons[value] = button(
                    value, partial(store, value), "choice", aria_pressed=str(value == current).lower()
                )

    def _store_label(self, item: Item, label: str) -> None:
        self._view.run.run.label(self._conversation.number, item.id, self._annotator, label)


def add_agreement(run: Run, judging: str | None, title: str = "Agreement so far") -> None:
    """Add the agreement of labels and judge, computed on demand."""

    async def fill() -> None:
        table = kappa_table(await asyncio.to_thread(run.agreement, judging=judging))
        with element("div", "scroll"), element("table", "data"):
            for number, row in enumerate([table.columns, *format_rows(table)]):
                with element("tr"):
                    for cell in row:
                        text("td", str(cell)) if number else text("th", str(cell), scope="col")
        for note in table.footnotes:
            text("div", note, "quiet small")

    lazy_details(title, fill)


def _normalize_label(scale: Scale, label: str) -> str:
    """Return a label in the form of the buttons, even if a spreadsheet wrote it in another form."""
    try:
        value = scale.parse(label)
    except ValueError:
        return label
    return ("yes" if value else "no") if scale.is_verdict else str(value)


def load_metrics(view: View) -> Mapping[str, Sequence[str]] | None:
    """Return the metrics that the address selects, with their targets; `None` if there are no such judgements.

    A panel counts as one of the sets, although no single judge made it.
    """
    try:
        return view.run.run.metrics(view.get("judging") or None)
    except StoreError:
        return None


def show_missing_judgements_notice(view: View) -> bool:
    """Return whether the address selects judgements that do not exist; the page then shows the existing ones."""
    requested = view.get("judging")
    if not requested or load_metrics(view) is not None:
        return False
    known = [each.name for each in view.run.run.judgement_sets]
    with element("div", "problem stack", role="alert"):
        text("div", f"{view.run.name} has no judgements named {requested!r:.80}.")
        with element("div", "row-of"):
            text("span", "The existing sets are:" if known else "The run has no judgements yet:")
            for name in known:
                link(name, view.url({**view.query, "judging": name, "page": None}), "chip")
            link(
                "show the page without judgements",
                view.url({**view.query, "judging": None}),
            )
    return True


def show_hidden_scores_notice(view: View) -> bool:
    """Return whether somebody labels and scores are hidden; a page of scores then shows only how to see them."""
    if not is_blind(view):
        return False
    with element("div", "card row-of", role="status"):
        text("span", "This page shows what judges and recorded choices say, which is hidden while you label.")
        link("Show the judge's scores", view.url({**view.query, "blind": "0"}))
    return True
