"""Parts of pages: text, elements, folded parts, and fragments rendered on the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from dialoom.errors import DialoomError
from dialoom.text import counted, harmless

from .shell import problem

_LATE = "late-"
_numbers = count(1)
_OPENED = f"""(event) => {{
  const place = event.target.open && event.target.lastElementChild;
  if (place && place.id.startsWith("{_LATE}")) emit(place.id);
}}"""


class WrittenElement:
    """An element of a fragment; elements made in its `with` block are added to it.

    Args:
        sheet: The fragment that contains the element.
        node: The element's HTML node.
    """

    def __init__(self, sheet: _Sheet, node: Element) -> None:
        self._sheet = sheet
        self._node = node

    def __enter__(self) -> WrittenElement:
        self._sheet.open.append(self._node)
        return self

    def __exit__(self, *_error: object) -> None:
        self._sheet.open.pop()

    def fill_on_opening(self, fill: Callable[[], Any]) -> None:
        """Fill the element when it is opened for the first time."""
        place = f"{_LATE}{next(_numbers)}"
        SubElement(self._node, "div", {"class": "as-is", "id": place})
        self._sheet.late[place] = fill


class _Sheet:
    """A fragment that is rendered as a whole: its open elements, the innermost last, and its parts filled on demand."""

    def __init__(self, root: Element) -> None:
        self.open = [root]
        self.late: dict[str, Callable[[], Any]] = {}


_sheet: ContextVar[_Sheet | None] = ContextVar("sheet", default=None)


def part(tag: str, words: str, attributes: Mapping[str, str]) -> WrittenElement | None:
    """Add an element within `written()`; return `None` outside of it."""
    sheet = _sheet.get()
    if sheet is None:
        return None
    node = SubElement(sheet.open[-1], tag, dict(attributes))
    node.text = words
    return WrittenElement(sheet, node)


@contextmanager
def written(tag: str = "div", classes: str = "") -> Iterator[None]:
    """Add an element whose content is rendered as one fragment.

    Args:
        tag: Its name in HTML.
        classes: Its classes.
    """
    root = Element(tag)
    sheet = _Sheet(root)
    before = _sheet.set(sheet)
    try:
        yield
    finally:
        _sheet.reset(before)
    content = "".join(tostring(node, encoding="unicode", method="html") for node in root)
    shown = ui.html(content, sanitize=False, tag=tag).classes(classes)
    if not sheet.late:
        return
    beside = ui.element("div").classes("as-is")

    async def opened(event: Any) -> None:
        fill = sheet.late.pop(str(event.args), None)
        if fill is not None:
            with beside, ui.teleport(f"#{event.args}"):
                await _filled(fill)

    shown.on("toggle.capture", opened, js_handler=_OPENED)


def text(tag: str, words: str, classes: str = "", **attributes: str) -> Any:
    """Add an element that contains text.

    Args:
        tag: Its name in HTML.
        words: The text; nothing in it is read as markup.
        classes: The element's classes in the style sheet.
        attributes: The element's attributes; an underscore stands for a hyphen.
    """
    properties = _named(attributes)
    made = part(tag, harmless(words), {"class": classes, **properties})
    return made or _with(TextElement(tag=tag, text=harmless(words)).classes(classes), properties)


def element(tag: str, classes: str = "", **attributes: str) -> Any:
    """Add an element that can contain others."""
    properties = _named(attributes)
    return part(tag, "", {"class": classes, **properties}) or _with(ui.element(tag).classes(classes), properties)


def _named(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name.strip("_").replace("_", "-"): harmless(value) for name, value in attributes.items()}


def _with(made: Any, attributes: Mapping[str, str]) -> Any:
    for name, value in attributes.items():
        made.props[name] = value
    return made


def begun_with(field: Any, value: str) -> Any:
    """Set a field's initial value so that typed text survives updates of the page around the field.

    The value is set as an attribute, because a property would be set again with every change.
    """
    field.props["^value"] = harmless(value)
    return field


def link(words: str, target: str, classes: str = "", **attributes: str) -> Any:
    """Add a link within the studio."""
    properties = {"class": f"nicegui-link {classes}", "href": target, **_named(attributes)}
    return part("a", harmless(words), properties) or _with(
        ui.link(harmless(words), target).classes(classes), _named(attributes)
    )


@contextmanager
def card(title: str = "", classes: str = "") -> Iterator[Any]:
    """Add a card of related content, with a heading."""
    with element("section", f"card {classes}") as made:
        if title:
            with element("div", "section-head"):
                text("h2", title)
        yield made


@contextmanager
def table(columns: Sequence[tuple[str, bool]], label: str) -> Iterator[Any]:
    """Add a table that scrolls horizontally in a narrow window.

    Args:
        columns: The heading of each column, and whether the column contains numbers.
        label: The table's name for screen readers.
    """
    with element("div", "scroll", tabindex="0", role="region", aria_label=label), element("table", "data"):
        with element("thead"), element("tr"):
            for name, is_number in columns:
                text("th", name, "number" if is_number else "", scope="col")
        with element("tbody") as body:
            yield body


def cells(values: Sequence[tuple[str, bool]], classes: str = "") -> list[Any]:
    """Add a row of a table, with the first cell as its heading; return the cells, which can be updated later."""
    with element("tr", classes):
        return [
            text("td", words, "number" if is_number else "")
            if place
            else text("th", words, "number" if is_number else "", scope="row")
            for place, (words, is_number) in enumerate(values)
        ]


def badge(words: str, kind: str = "") -> Any:
    """Add a badge with a state."""
    return text("span", words, f"badge {kind}")


def figure(name: str, value: str, more: str | None = None) -> list[Any]:
    """Add a figure below its name, within a `dl.figures`; return the elements that may change."""
    with element("div"):
        text("dt", name)
        shown = [text("dd", value, "number")]
        return shown if more is None else [*shown, text("dd", more, "number")]


def table_head(words: str, is_number: bool, target: str, order: str | None) -> None:
    """Add a column's name as a link to the same table sorted by that column.

    Args:
        words: The name.
        is_number: Whether it holds numbers.
        target: The address of the link.
        order: `asc` or `desc` if the table is sorted by this column.
    """
    with element("th", "number" if is_number else "", scope="col") as made:
        if order is not None:
            made.props["aria-sort"] = "descending" if order == "desc" else "ascending"
        link(words + {"asc": "\u00a0↑", "desc": "\u00a0↓"}.get(order or "", ""), target)


LONG = 6_000
"""Number of characters of a text that a page contains at first; the rest is loaded on request."""


def verbatim(words: str, classes: str = "said", marks: Sequence[str] = ()) -> None:
    """Add text from a model or user unchanged; the rest of a long text is loaded on demand.

    Args:
        words: The text.
        classes: Its classes.
        marks: Passages of the text to highlight, such as the evidence of a fault.
    """
    _marked(words[:LONG], classes, marks)
    if rest := words[LONG:]:
        late(counted(len(rest), "more letters"), lambda: text("div", rest, classes))


def button(label: str, on_click: Callable[[], Any], classes: str = "button", **attributes: str) -> ui.element:
    """Add a button."""
    with element("button", classes, type="button", **attributes) as made:
        text("span", label)
    made.on("click", lambda _event: on_click())
    return made


@contextmanager
def folded(summary: str, classes: str = "", is_open: bool = False) -> Iterator[Any]:
    """Add a part that opens at a click, without a request to the server."""
    with element("details", classes, **({"open": ""} if is_open else {})) as made:
        text("summary", summary)
        yield made


def late(summary: str, fill: Callable[[], Any], classes: str = "", is_open: bool = False) -> None:
    """Add a part that is filled when it is opened for the first time; `is_open` opens it once it is in the browser."""
    with folded(summary, classes, is_open) as part:
        pass
    if isinstance(part, WrittenElement):
        part.fill_on_opening(fill)
        return
    is_filled = False

    async def opened(_event: Any) -> None:
        nonlocal is_filled
        if not is_filled:
            is_filled = True
            with part:
                await _filled(fill)

    part.on("toggle", opened, js_handler="(event) => { if (event.target.open) emit() }")


async def _filled(fill: Callable[[], Any]) -> None:
    try:
        made = fill()
        if made is not None:
            await made
    except DialoomError as error:  # such as a file that has been moved since the page was built
        problem(error)


def definitions(values: Mapping[str, Any], classes: str = "facts") -> None:
    """Add names and values, one below the other; structured values keep their form."""
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
            verbatim(", ".join(map(str, value)))
        else:
            with element("div", "stack"):
                for each in value:
                    _value(each)
    else:
        verbatim("–" if value in (None, "") else str(value))


def _marked(words: str, classes: str, marks: Sequence[str]) -> None:
    """Add text with highlighted passages; if passages overlap, only the first is highlighted."""
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
