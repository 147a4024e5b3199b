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
from dialoom.graphs.check import conversation_to
from dialoom.runs.agreement import LabelProgress, Scale, Scales, StoredLabel, kappa_table
from dialoom.runs.errors import StoreError
from dialoom.runs.reading.conversations import Conversation, Item
from dialoom.runs.report import texts_of
from dialoom.runs.report.differences import subject_of
from dialoom.runs.report.health import Health
from dialoom.runs.store import JudgementSet
from dialoom.text import counted

from .page import View
from .parts import begun_with, button, element, folded, late, link, text, verbatim
from .shell import problem
from .wording import chosen_metrics, is_blind, labelled_in, list_parameters, query_of

_CONVERSATION = "/runs/{run}/scenarios/{scenario}"
_AS_WRITTEN = "() => emit(document.getElementById('labeller').value)"


def labels_by(view: View) -> Mapping[int, LabelProgress]:
    """Return the annotator's progress in labelling, by the scenario's position; empty without an annotator."""
    if not view.one("as"):
        return {}
    return view.run.run.labelled(view.one("as"), metrics=chosen_metrics(view), judging=view.one("judging") or None)


def start(view: View) -> None:
    """Add a field for the annotator's name, and a button to the first conversation without their labels."""
    with element("div", "row-of small", role="group", aria_label="Labelling"):
        text("label", "Label as", "quiet", for_="labeller")
        made = element("input", "input", id="labeller", placeholder="your name", maxlength="80", autocomplete="off")
        begun_with(made, view.one("as"))
        with element("button", "button", type="button") as button:
            text("span", "Start labelling")

    async def go(annotator: str) -> None:
        name = " ".join(annotator.split())
        if not name:
            ui.notify("Enter your name: labels are stored in a column for each person.", type="warning")
            return
        try:
            found = await asyncio.to_thread(_first, view, name)
        except DialoomError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        if found is None:
            ui.notify(f"{name} has labelled everything in this list.", type="info")
        else:
            ui.navigate.to(view.path(_CONVERSATION, {**list_parameters(view), "as": name}, scenario=found))

    button.on("click", lambda event: go(str(event.args)), js_handler=_AS_WRITTEN)
    made.on("keydown.enter", lambda event: go(str(event.args)), js_handler=_AS_WRITTEN)


def _first(view: View, annotator: str) -> str | None:
    """Return the id of the list's first finished scenario that the annotator has not labelled."""
    query = replace(query_of(view), state="done", without=labelled_in(view, annotator))
    rows = view.run.run.scenarios(query, **view.selection, limit=1).rows
    return rows[0].id if rows else None


def after_this(view: View) -> int | None:
    """Return the position of the list's next scenario that the annotator has not labelled; `None` if there is none."""
    run = view.run.run
    here = run.position(view.scenario)
    query = replace(query_of(view, here), state="done", without=(labelled_in(view) - {here}))
    beside = run.neighbours(view.scenario, query, **view.selection)
    return None if beside is None else beside.after


def go_on(view: View, after: int | None) -> None:
    """Add a link to the next conversation to label."""
    with element("div", "row-of"):
        if after is None:
            text("span", "You have labelled all later conversations in this list.", "quiet small")
        else:
            link(
                "Next to label →",
                view.path(_CONVERSATION, list_parameters(view), scenario=after + 1),
                "button",
                rel="label",
            )


def label_count(labels: LabelProgress | None) -> str:
    """Return the number of a scenario's labels as text."""
    if labels is None:
        return "not labelled"
    return "labelled" if labels.is_complete else f"{labels.labelled} of {labels.total} labelled"


_PATH = "/runs/{run}/scenarios/{scenario}"


def judged_word(judgement: Judgement) -> str:
    """Return a score, or the reason why there is no score."""
    if judgement.score is None:
        return judgement.status
    if isinstance(judgement.score, bool):
        return "yes" if judgement.score else "no"
    return f"{judgement.score:.10g}"


def badge_of(judgement: Judgement, health: Mapping[str, Health]) -> tuple[str, str]:
    """Return a judgement's score, marked if its judge fails a check, and the reasons."""
    found = health.get(subject_of(judgement))
    if found is None or not found.marks:
        return judged_word(judgement), ""
    return f"{judged_word(judgement)}{found.marks}", f"This judge fails a check: {'; '.join(found.failures())}"


def score_lines(judgement: Judgement, health: Mapping[str, Health], is_blind: bool = False) -> None:
    """Add what was judged and, unless scores are hidden, the score, its explanation and the judge's failed checks."""
    word, why = badge_of(judgement, health)
    with element("div", "row-of"):
        text("span", judgement.metric.replace("_", " "), "metric")
        text("span", judgement.target + ("" if judgement.turn is None else f", turn {judgement.turn}"), "quiet small")
        if not is_blind:
            text("span", word, "badge push word")
    if judgement.explanation and not is_blind:
        verbatim(judgement.explanation, "said small quiet")
    if why and not is_blind:
        text("div", why, "small quiet")


class JudgementBox:
    """The judgements of a conversation.

    Args:
        view: The page's view. In its query, `judging` is the set, `as` the annotator and `metrics` the labelled
            metrics; `blind` sets whether the judge's scores are hidden, which is the default while somebody labels.
        shown: The conversation.
        sets: All sets of judgements of the run.
        health: The health of the judge, by metric and target.
        after: The position of the next scenario to label, if there is one.
    """

    def __init__(
        self,
        view: View,
        shown: Conversation,
        sets: Sequence[JudgementSet],
        health: Mapping[str, Health],
        after: int | None = None,
    ) -> None:
        self._health = health
        self._after = after
        self._view = view
        self._shown = shown
        self._sets = sets
        self._is_blind = is_blind(view)
        self._annotator = view.one("as")
        self._metrics = chosen_metrics(view)
        self._scales = Scales(WithJudging.of(view.run.run.recipe).scales)

    def build(self) -> None:
        """Build the box."""
        items = [*self._shown.judged, *(item for each in self._shown.messages for item in each.judged)]
        if not items:
            return
        with element("section", "card stack"):
            with element("div", "section-head"):
                text("h2", "Judgements")
                label, target = ("Show the judge's scores", "0") if self._is_blind else ("Hide the judge's scores", "1")
                ui.link(label, self._address(blind=target)).classes("small push")
            self._which()
            self._who()
            if self._annotator:
                self._what_to_label(items)
            labels = self._labels()
            for item in items if self._annotator else self._shown.judged:
                if not self._annotator or not self._metrics or item.judgement.metric in self._metrics:
                    self._item(item, labels)
            if (count := len(items) - len(self._shown.judged)) and not self._annotator:
                text(
                    "p",
                    f"{counted(count, 'judgements')} of single turns, shown at the last message of each turn",
                    "quiet small",
                )
            self._earlier(labels, items)
            if self._annotator:
                go_on(self._view, self._after)
            if not self._is_blind:
                agreement_up_to_now(self._view.run.run, self._shown.judging)

    def _address(self, **changed: str) -> str:
        return self._view.path(_PATH, {**list_parameters(self._view), **changed})

    def _which(self) -> None:
        """Add the choice of a set of judgements, if there are several."""
        if len(self._sets) < 2:
            return
        with element("nav", "row-of small", aria_label="Sets of judgements"):
            for each in self._sets:
                link = ui.link(each.name, self._address(judging=each.name))
                if each.name == self._shown.judging:
                    link.props('aria-current="true"')

    def _who(self) -> None:
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
            begun_with(name, self._annotator)
        name.on(
            "change",
            lambda event: ui.navigate.to(self._address(**{"as": " ".join(str(event.args).split())})),
            js_handler="(event) => emit(event.target.value)",
        )

    def _what_to_label(self, items: Sequence[Item]) -> None:
        """Add a link for each metric, which adds the metric to the labelled metrics or removes it from them."""
        known = list(dict.fromkeys(item.judgement.metric for item in items))
        if len(known) < 2:
            return
        chosen = [metric for metric in known if not self._metrics or metric in self._metrics]
        with element("nav", "row-of small", aria_label="Metrics to label"):
            text("span", "Label", "quiet")
            for metric in known:
                left = [each for each in known if (each in chosen) != (each == metric)]
                metrics = "" if not left or len(left) == len(known) else ",".join(left)
                made = ui.link(metric.replace("_", " "), self._address(metrics=metrics)).classes("chip")
                made.props(f'aria-current="{str(metric in chosen).lower()}"')

    def _labels(self) -> Sequence[StoredLabel]:
        if not self._annotator:
            return ()
        try:
            return self._view.run.run.given_labels(self._annotator, self._shown.number)
        except DialoomError as error:
            problem(error)
            return ()

    def _earlier(self, labels: Sequence[StoredLabel], items: Sequence[Item]) -> None:
        """Add the annotator's labels of judgements that belong only to an earlier conversation."""
        here = {item.id for item in items}
        if count := sum(each.is_earlier and each.item not in here for each in labels):
            labels_left = (
                f"{counted(count, 'labels')} that you gave to judgements which only an earlier conversation has"
            )
            text("p", f"Not counted while this conversation is the outcome: {labels_left}.", "quiet small")

    def _item(self, item: Item, labels: Sequence[StoredLabel]) -> None:
        judgement = item.judgement
        with element("div", "judgement"):
            score_lines(judgement, self._health, self._is_blind)
            if self._annotator and self._shown.episode.state == "done":
                self._what(item)
                of_it = [each for each in labels if each.item == item.id]
                self._choices(item, next((each.label for each in of_it if not each.is_earlier), ""))
                if earlier := [each.label for each in of_it if each.is_earlier]:
                    text(
                        "div", f"given to an earlier conversation, so not counted: {', '.join(earlier)}", "quiet small"
                    )

    def _what(self, item: Item) -> None:
        """Add the judged text, unless the page already shows it."""
        outcome = self._shown.episode.outcome
        lines = WithLabels.of(self._view.run.run.recipe).judged_lines(outcome, item.judgement)
        if list(lines) == list(conversation_to(outcome, item.judgement)):
            return
        with folded("Judged content"):
            for line in lines:
                with element("div", "spoken"):
                    text("span", line.role, "label")
                    verbatim(line.spoken)

    def _choices(self, item: Item, given: str) -> None:
        """Add the values of the scale as buttons; pressing the current label's button removes the label."""
        scale = self._scales.get(item.judgement.metric)
        made: dict[str, ui.element] = {}
        given = _as_written(scale, given)
        turn = asyncio.Lock()  # clicks count in their order, however long each takes to store

        async def put(label: str) -> None:
            nonlocal given
            async with turn:
                new_label = "" if label == given else label
                try:
                    await asyncio.to_thread(self._put, item, new_label)
                except DialoomError as error:
                    ui.notify(str(error), type="negative", multi_line=True)
                    return
                given = new_label
            for name, each in made.items():
                each.props["aria-pressed"] = str(name == given).lower()
                each.update()

        with element("div", "choices", role="group", aria_label=f"Your label of {item.judgement.metric}"):
            for value in (
                ["yes", "no"] if scale.is_verdict else [str(value) for value in range(scale.low, scale.high + 1)]
            ):
                made[value] = button(value, partial(put, value), "choice", aria_pressed=str(value == given).lower())

    def _put(self, item: Item, label: str) -> None:
        self._view.run.run.label(self._shown.number, item.id, self._annotator, label)


def agreement_up_to_now(run: Run, judging: str | None, title: str = "Agreement so far") -> None:
    """Add the agreement of labels and judge, computed on demand."""

    async def fill() -> None:
        table = kappa_table(await asyncio.to_thread(run.agreement, judging=judging))
        with element("div", "scroll"), element("table", "data"):
            for number, row in enumerate([table.columns, *texts_of(table)]):
                with element("tr"):
                    for cell in row:
                        text("td", str(cell)) if number else text("th", str(cell), scope="col")
        for note in table.footnotes:
            text("div", note, "quiet small")

    late(title, fill)


def _as_written(scale: Scale, label: str) -> str:
    """Return a label in the form of the buttons, even if a spreadsheet wrote it in another form."""
    try:
        value = scale.parse(label)
    except ValueError:
        return label
    return ("yes" if value else "no") if scale.is_verdict else str(value)


def metrics_of(view: View) -> Mapping[str, Sequence[str]] | None:
    """Return the metrics that the address selects, with their targets; `None` if there are no such judgements.

    A panel counts as one of the sets, although no single judge made it.
    """
    try:
        return view.run.run.metrics(view.one("judging") or None)
    except StoreError:
        return None


def lacks_its_judgements(view: View) -> bool:
    """Return whether the address selects judgements that do not exist; the page then shows the existing ones."""
    requested = view.one("judging")
    if not requested or metrics_of(view) is not None:
        return False
    known = [each.name for each in view.run.run.judgement_sets]
    with element("div", "problem stack", role="alert"):
        text("div", f"{view.run.name} has no judgements named {requested!r:.80}.")
        with element("div", "row-of"):
            text("span", "The existing sets are:" if known else "The run has no judgements yet:")
            for name in known:
                link(name, view.here({**view.query, "judging": name, "page": None}), "chip")
            link(
                "show the page without judgements",
                view.here({**view.query, "judging": None}),
            )
    return True


def hides_scores(view: View) -> bool:
    """Return whether somebody labels and scores are hidden; a page of scores then shows only how to see them."""
    if not is_blind(view):
        return False
    with element("div", "card row-of", role="status"):
        text("span", "This page shows what judges and recorded choices say, which is hidden while you label.")
        link("Show the judge's scores", view.here({**view.query, "blind": "0"}))
    return True
