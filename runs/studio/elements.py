"""Elements of pages that hold text: whatever was said, it is set as text and obeyed by nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from dialoom.shown import harmless

LONG = 6_000
"""Letters of a text that a page holds at once; the rest comes when it is asked for."""


def text(words: str, classes: str = "", tag: str = "div") -> TextElement:
    """An element of its own with a text in it; a browser obeys nothing of it."""
    made = TextElement(tag=tag, text=harmless(words))
    if classes:
        made.classes(classes)
    return made


def box(classes: str = "", tag: str = "div", **attributes: str) -> ui.element:
    """An element that others stand in.

    Args:
        classes: Its classes.
        tag: What it is.
        attributes: Of the element, underscores for hyphens: `aria_label="Turn 1"`. Their values may hold anything.
    """
    made = ui.element(tag)
    if classes:
        made.classes(classes)
    for name, value in attributes.items():
        made.props[name.rstrip("_").replace("_", "-")] = harmless(value)
    return made


def said(words: str, classes: str = "said", marks: Sequence[str] = ()) -> None:
    """What somebody said, as it is; of a long text the beginning, and the rest on demand.

    Args:
        words: The text.
        classes: Its classes.
        marks: Stretches of it that are to stand out, such as the words of a fault.
    """
    rest = len(words) - LONG
    if rest <= 0:
        _marked(words, classes, marks)
        return
    with box("stack") as holder:
        shown = text(words[:LONG] + " …", classes)

        def whole() -> None:
            shown.set_text(harmless(words))
            more.delete()

        with holder:
            more = button(f"Show all {len(words):,} letters", whole, "button small")


def button(label: str, on_click: Callable[[], Any], classes: str = "button", **attributes: str) -> ui.element:
    """A button."""
    with box(classes, "button", type="button", **attributes) as made:
        text(label, tag="span")
    made.on("click", lambda _event: on_click())
    return made


@contextmanager
def folded(summary: str, classes: str = "", is_open: bool = False) -> Iterator[ui.element]:
    """A part that opens at a click, in the browser alone."""
    with box(classes, "details") as made:
        if is_open:
            made.props["open"] = True
        text(summary, tag="summary")
        yield made


def on_opening(folded_part: ui.element, fill: Callable[[], Any]) -> None:
    """Fill a folded part when it is opened for the first time."""
    is_filled = False

    async def opened(_event: Any) -> None:
        nonlocal is_filled
        if not is_filled:
            is_filled = True
            with folded_part:
                made = fill()
                if made is not None:
                    await made

    folded_part.on("toggle", opened, js_handler="(event) => { if (event.target.open) emit() }")


def definitions(values: Mapping[str, Any], classes: str = "facts") -> None:
    """Names and values, one below the other; values of several parts as they are."""
    with box(classes, "dl"):
        for name, value in values.items():
            with box():
                text(str(name).replace("_", " "), tag="dt")
                with box(tag="dd"):
                    _value(value)


def _value(value: Any) -> None:
    if isinstance(value, Mapping):
        definitions(value, "facts inner")
    elif isinstance(value, list | tuple):
        if all(isinstance(each, str | int | float) for each in value):
            said(", ".join(map(str, value)))
        else:
            with box("stack"):
                for each in value:
                    _value(each)
    else:
        said("–" if value in (None, "") else str(value))


def _marked(words: str, classes: str, marks: Sequence[str]) -> None:
    """A text in which some stretches stand out; where they stand in each other the earlier one does."""
    spans = sorted((at, at + len(mark)) for mark in marks if mark and (at := words.find(mark)) >= 0)
    if not spans:
        text(words, classes)
        return
    with box(classes):
        place = 0
        for start, end in spans:
            if start >= place:
                text(words[place:start], tag="span")
                text(words[start:end], tag="mark")
                place = end
        text(words[place:], tag="span")
