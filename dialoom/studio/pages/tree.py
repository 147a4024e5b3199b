"""A tree: steps one below the other, with the options of a step and the branches of a fork side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby

from dialoom.graphs import Outline, Span, WithOutline
from dialoom.runs.reading.conversations import Conversation
from dialoom.studio.components import element, fragment, text, verbatim
from dialoom.studio.labelling import show_hidden_scores_notice, show_missing_judgements_notice
from dialoom.studio.page import Page, View

from .conversation import add_fault, add_outline

_MAX_SUMMARY_CHARACTERS = 90
"""Number of characters of a step's line that are visible while the step is folded."""

_FOLD_ALL = """() => {
  const steps = [...document.querySelectorAll(".tree details.step")];
  const open = !steps.every((each) => each.open);
  steps.forEach((each) => { each.open = open; });
}"""


async def build(view: View) -> None:
    """Build the page."""
    if show_hidden_scores_notice(view) or show_missing_judgements_notice(view):
        return
    conversation = await asyncio.to_thread(view.run.run.conversation, view.scenario, view.get("judging") or None)
    outline = conversation.outline
    if outline is None:
        text("div", "This is a single conversation, not a tree.", "empty")
        return
    with element("div", "row-of head"):
        text("h1", outline.text)
        if outline.is_tree:
            text("div", _format_size(outline), "quiet small")
            with element("button", "button push", type="button") as fold_all:
                text("span", "Open or fold all")
            fold_all.on("click", js_handler=_FOLD_ALL)
    if not outline.is_tree:
        with element("div", "card"):
            for part in outline.parts:
                add_outline(part)
        return
    with element("section", "tree-scroll", tabindex="0", aria_label="The tree"), fragment("div", "tree"):
        _add_parts(view, conversation, outline.parts)


def _format_size(outline: Outline) -> str:
    steps, forks, ends = _count_parts(outline.parts)
    return f"{steps} steps · {forks} {'fork' if forks == 1 else 'forks'} · {ends} {'end' if ends == 1 else 'ends'}"


def _count_parts(parts: Sequence[Outline]) -> tuple[int, int, int]:
    """Count the steps, forks and ends in a part of the tree."""
    branches = [_count_parts(part.parts) for part in parts if part.kind == "branch"]
    steps = sum(part.kind == "step" for part in parts) + sum(each[0] for each in branches)
    return steps, bool(branches) + sum(each[1] for each in branches), sum(each[2] for each in branches) or 1


def _add_parts(view: View, conversation: Conversation, parts: Sequence[Outline]) -> None:
    """Add steps one below the other, and the branches of a fork side by side."""
    for kind, group in groupby(parts, key=lambda part: part.kind):
        if kind == "branch":
            with element("div", "fork"):
                for part in group:
                    with element("div", "branch taken" if part.is_taken else "branch"):
                        text("div", part.text, "badge accent" if part.is_taken else "badge")
                        _add_parts(view, conversation, part.parts)
        else:
            for part in group:
                _add_step(conversation, part) if kind == "step" else add_outline(part)


def _add_step(conversation: Conversation, step: Outline) -> None:
    """Add a step: its line and the chosen option; when opened, all options side by side and further data."""
    options = [part for part in step.parts if part.kind == "option"]
    faults = [fault for fault in conversation.episode.outcome.faults or () if fault.where == step.where]
    with element("details", f"step {'taken' if step.is_taken else ''}"):
        with element("summary"):
            _add_step_summary(step)
            if faults:
                text("span", f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'}", "badge warn")
        verbatim(step.text, "said user-line")
        if options:
            with element("div", "pair"):
                for option in options:
                    _add_option(option)
        for part in step.parts:
            if part.kind != "option":
                add_outline(part)
        for fault in faults:
            add_fault(fault)


def _add_step_summary(step: Outline) -> None:
    """Add the beginning of a step's line; the step's number stays visible when the step is opened."""
    number, *rest = step.spans if step.spans[:1] and step.spans[0].style == "heading" else [Span(""), *step.spans]
    summary = " ".join("".join(span.text for span in rest).split())
    text("span", number.text)
    text(
        "span",
        summary if len(summary) <= _MAX_SUMMARY_CHARACTERS else summary[:_MAX_SUMMARY_CHARACTERS] + " …",
        "head-words",
    )


def _add_option(option: Outline) -> None:
    with element("div", "option taken" if option.is_taken else "option"):
        for span in option.spans:
            if span.style == "note":
                text("div", span.text.strip().rstrip(":"), "label")
            else:
                verbatim(span.text)


PAGE = Page(
    "/runs/{run}/scenarios/{scenario}/tree",
    "Tree",
    "scenario",
    build,
    has_tab=lambda view: isinstance(view.run.run.recipe, WithOutline),
    is_wide=True,
)
