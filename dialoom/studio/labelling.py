"""Who labels, what they have labelled, and from one conversation that they have not labelled to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from nicegui import ui

from dialoom.errors import DialoomError
from dialoom.runs.agreement import Labelled

from .chosen import chosen_metrics, kept, labelled_in, query_of
from .page import View
from .parts import begun_with, element, link, text

_CONVERSATION = "/runs/{run}/scenarios/{scenario}"
_AS_WRITTEN = "() => emit(document.getElementById('labeller').value)"


def labels_by(view: View) -> Mapping[int, Labelled]:
    """Return how much whoever labels has labelled, by the scenario's position; empty where nobody labels."""
    if not view.one("as"):
        return {}
    return view.run.run.labelled(view.one("as"), metrics=chosen_metrics(view), judging=view.one("judging") or None)


def start(view: View) -> None:
    """A name and a button that leads to the first conversation of the list that it has not labelled."""
    with element("div", "row-of small", role="group", aria_label="Labelling"):
        text("label", "Label as", "quiet", for_="labeller")
        made = element("input", "input", id="labeller", placeholder="your name", maxlength="80")
        begun_with(made, view.one("as"))
        made.props["autocomplete"] = "off"
        with element("button", "button", type="button") as button:
            text("span", "Start labelling")

    async def go(annotator: str) -> None:
        name = " ".join(annotator.split())
        if not name:
            ui.notify("Write your name: each label stands in the column of whoever gave it.", type="warning")
            return
        try:
            found = await asyncio.to_thread(_first, view, name)
        except DialoomError as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        if found is None:
            ui.notify(f"Nothing here is left to label as {name}.", type="info")
        else:
            ui.navigate.to(view.path(_CONVERSATION, {**kept(view), "as": name}, scenario=found))

    button.on("click", lambda event: go(str(event.args)), js_handler=_AS_WRITTEN)
    made.on("keydown.enter", lambda event: go(str(event.args)), js_handler=_AS_WRITTEN)


def _first(view: View, annotator: str) -> str | None:
    """The id of the first finished scenario of the list that somebody has not labelled."""
    query = replace(query_of(view), state="done", without=labelled_in(view, annotator))
    where, said = view.one("where") or None, view.one("said") or None
    rows = view.run.run.scenarios(query, where=where, said=said, limit=1).rows
    return rows[0].id if rows else None


def after_this(view: View) -> int | None:
    """The position of the next scenario of the list that whoever labels has not labelled; `None` if it is the last."""
    run = view.run.run
    here = run.position(view.scenario)
    others = labelled_in(view) - {here}
    query = replace(query_of(view, here), state="done", without=others)
    where, said = view.one("where") or None, view.one("said") or None
    beside = run.neighbours(view.scenario, query, where=where, said=said)
    return None if beside is None else beside.after


def go_on(view: View, after: int | None) -> None:
    """The way to the next that is to be labelled."""
    with element("div", "row-of"):
        if after is None:
            text("span", "None that you have not labelled follows in this list.", "quiet small")
        else:
            link("Next to label →", view.path(_CONVERSATION, kept(view), scenario=after + 1), "button", rel="label")


def told(labels: Labelled | None) -> str:
    """Return how much of a scenario is labelled, in words."""
    if labels is None:
        return "not labelled"
    return "labelled" if labels.is_complete else f"{labels.given} of {labels.wanted} labelled"
