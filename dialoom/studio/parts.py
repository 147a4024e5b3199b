"""The parts that pages are made of. Whatever text they are given stays text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from dialoom.shown import harmless

from .written import part


def text(tag: str, words: str, classes: str = "", **attributes: str) -> Any:
    """An element with a text in it.

    Args:
        tag: Its name in HTML.
        words: What it says; nothing of it is markup.
        classes: Its classes in the style sheet.
        attributes: Its attributes; an underscore stands for a hyphen.
    """
    told = _named(attributes)
    made = part(tag, harmless(words), {"class": classes, **told})
    return made or _with(TextElement(tag=tag, text=harmless(words)).classes(classes), told)


def element(tag: str, classes: str = "", **attributes: str) -> Any:
    """An element for others to stand in."""
    told = _named(attributes)
    return part(tag, "", {"class": classes, **told}) or _with(ui.element(tag).classes(classes), told)


def _named(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name.strip("_").replace("_", "-"): harmless(value) for name, value in attributes.items()}


def _with(made: Any, attributes: Mapping[str, str]) -> Any:
    for name, value in attributes.items():
        made.props[name] = value
    return made


def begun_with(field: Any, value: str) -> Any:
    """A field with what stands in it at first: what is typed there stays when the page changes around it.

    An attribute does that, and no property, which is set anew with every change.
    """
    field.props["^value"] = harmless(value)
    return field


def link(words: str, target: str, classes: str = "", **attributes: str) -> Any:
    """A link within the studio."""
    told = {"class": f"nicegui-link {classes}", "href": target, **_named(attributes)}
    return part("a", harmless(words), told) or _with(ui.link(words, target).classes(classes), _named(attributes))


def heading(words: str, level: int = 2) -> Any:
    """A heading."""
    return text(f"h{level}", words)


@contextmanager
def card(title: str = "", classes: str = "") -> Iterator[Any]:
    """What belongs together, with a heading."""
    with element("section", f"card {classes}") as made:
        if title:
            with element("div", "section-head"):
                heading(title)
        yield made


@contextmanager
def table(columns: Sequence[tuple[str, bool]], label: str) -> Iterator[Any]:
    """A table that scrolls in itself where the window is narrow.

    Args:
        columns: What stands above each, and whether it holds numbers.
        label: What it is, for who hears it read.
    """
    with element("div", "scroll", tabindex="0", role="region", aria_label=label), element("table", "data"):
        with element("thead"), element("tr"):
            for name, is_number in columns:
                text("th", name, "number" if is_number else "", scope="col")
        with element("tbody") as body:
            yield body


def cells(values: Sequence[tuple[str, bool]], classes: str = "") -> list[Any]:
    """A row of a table, the first cell as its heading; the cells, to be changed later."""
    with element("tr", classes):
        return [
            text("td", words, "number" if is_number else "")
            if place
            else text("th", words, "number" if is_number else "", scope="row")
            for place, (words, is_number) in enumerate(values)
        ]


def badge(words: str, kind: str = "") -> Any:
    """A state in a word."""
    return text("span", words, f"badge {kind}")


def figure(name: str, value: str, more: str | None = None) -> list[Any]:
    """A figure under its name, within a `dl.figures`; what of it may change."""
    with element("div"):
        text("dt", name)
        shown = [text("dd", value, "number")]
        return shown if more is None else [*shown, text("dd", more, "number")]


def table_head(words: str, is_number: bool, target: str, order: str | None) -> None:
    """A column's name that is a link to the same table in its order.

    Args:
        words: The name.
        is_number: Whether it holds numbers.
        target: Where it leads.
        order: `asc` or `desc` if the table is in its order now.
    """
    with element("th", "number" if is_number else "", scope="col") as made:
        if order is not None:
            made.props["aria-sort"] = "descending" if order == "desc" else "ascending"
        link(words + {"asc": "\u00a0↑", "desc": "\u00a0↓"}.get(order or "", ""), target)
