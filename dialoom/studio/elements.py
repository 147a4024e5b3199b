"""Parts that hold what was said: long texts, folded parts that are filled when they are opened, facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nicegui import ui

from .parts import element, text
from .wording import many
from .written import WrittenElement

LONG = 6_000
"""Letters of a text that a page holds at once; the rest comes when it is asked for."""


def said(words: str, classes: str = "said", marks: Sequence[str] = ()) -> None:
    """What somebody said, as it is; of a long text the beginning, and what follows on demand.

    Args:
        words: The text.
        classes: Its classes.
        marks: Stretches of it that are to stand out, such as the words of a fault.
    """
    _marked(words[:LONG], classes, marks)
    if rest := words[LONG:]:
        with folded(many(len(rest), "letter more", "letters more")) as more:
            pass
        on_opening(more, lambda: text("div", rest, classes))


def button(label: str, on_click: Callable[[], Any], classes: str = "button", **attributes: str) -> ui.element:
    """A button."""
    with element("button", classes, type="button", **attributes) as made:
        text("span", label)
    made.on("click", lambda _event: on_click())
    return made


@contextmanager
def folded(summary: str, classes: str = "", is_open: bool = False) -> Iterator[Any]:
    """A part that opens at a click, in the browser alone."""
    with element("details", classes, **({"open": ""} if is_open else {})) as made:
        text("summary", summary)
        yield made


def on_opening(folded_part: ui.element | WrittenElement, fill: Callable[[], Any]) -> None:
    """Fill a folded part when it is opened for the first time."""
    if isinstance(folded_part, WrittenElement):
        folded_part.fill_on_opening(fill)
        return
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
    with element("dl", classes):
        for name, value in values.items():
            with element("div"):
                text("dt", str(name).replace("_", " "))
                with element("dd"):
                    _value(value)


def _value(value: Any) -> None:
    if isinstance(value, Mapping):
        definitions(value, "facts inner")
    elif isinstance(value, list | tuple):
        if all(isinstance(each, str | int | float) for each in value):
            said(", ".join(map(str, value)))
        else:
            with element("div", "stack"):
                for each in value:
                    _value(each)
    else:
        said("–" if value in (None, "") else str(value))


def _marked(words: str, classes: str, marks: Sequence[str]) -> None:
    """A text in which some stretches stand out; where they stand in each other the earlier one does."""
    spans = sorted((at, at + len(mark)) for mark in marks if mark and (at := words.find(mark)) >= 0)
    if not spans:
        text("div", words, classes)
        return
    with element("div", classes):
        place = 0
        for start, end in spans:
            if start >= place:
                text("span", words[place:start])
                text("mark", words[start:end])
                place = end
        text("span", words[place:])
