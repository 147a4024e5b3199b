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
from dialoom.text import pluralize, sanitize

from .shell import show_error

_LAZY_ID_PREFIX = "late-"
_lazy_ids = count(1)
_REPORT_OPENED_SCRIPT = f"""(event) => {{
  const place = event.target.open && event.target.lastElementChild;
  if (place && place.id.startsWith("{_LAZY_ID_PREFIX}")) emit(place.id);
}}"""


class FragmentElement:
    """An element of a fragment; elements made in its `with` block are added to it.

    Args:
        owner: The fragment that contains the element.
        node: The element's HTML node.
    """

    def __init__(self, owner: _Fragment, node: Element) -> None:
        self._fragment = owner
        self._node = node

    def __enter__(self) -> FragmentElement:
        self._fragment.open_elements.append(self._node)
        return self

    def __exit__(self, *_error: object) -> None:
        self._fragment.open_elements.pop()

    def fill_on_opening(self, fill: Callable[[], Any]) -> None:
        """Fill the element when it is opened for the first time."""
        id_ = f"{_LAZY_ID_PREFIX}{next(_lazy_ids)}"
        SubElement(self._node, "div", {"class": "as-is", "id": id_})
        self._fragment.fills[id_] = fill


class _Fragment:
    """A fragment that is rendered as a whole: its open elements, the innermost last, and its parts filled on demand."""

    def __init__(self, root: Element) -> None:
        self.open_elements = [root]
        self.fills: dict[str, Callable[[], Any]] = {}


_current_fragment: ContextVar[_Fragment | None] = ContextVar("fragment", default=None)


def _append_to_fragment(tag: str, content: str, attributes: Mapping[str, str]) -> FragmentElement | None:
    """Add an element within `fragment()`; return `None` outside of it."""
    current = _current_fragment.get()
    if current is None:
        return None
    node = SubElement(current.open_elements[-1], tag, dict(attributes))
    node.text = content
    return FragmentElement(current, node)


@contextmanager
def fragment(tag: str = "div", classes: str = "") -> Iterator[None]:
    """Add an element whose content is rendered as one fragment.

    Args:
        tag: Its name in HTML.
        classes: Its classes.
    """
    root = Element(tag)
    current = _Fragment(root)
    token = _current_fragment.set(current)
    try:
        yield
    finally:
        _current_fragment.reset(token)
    inner_html = "".join(tostring(node, encoding="unicode", method="html") for node in root)
    rendered = ui.html(inner_html, sanitize=False, tag=tag).classes(classes)
    if not current.fills:
        return
    container = ui.element("div").classes("as-is")

    async def on_open(event: Any) -> None:
        fill = current.fills.pop(str(event.args), None)
        if fill is not None:
            with container, ui.teleport(f"#{event.args}"):
                await _run_fill(fill)

    rendered.on("toggle.capture", on_open, js_handler=_REPORT_OPENED_SCRIPT)


def text(tag: str, content: str, classes: str = "", **attributes: str) -> Any:
    """Add an element that contains text.

    Args:
        tag: Its name in HTML.
        content: The text; nothing in it is read as markup.
        classes: The element's classes in the style sheet.
        attributes: The element's attributes; an underscore stands for a hyphen.
    """
    properties = _normalize_attributes(attributes)
    in_fragment = _append_to_fragment(tag, sanitize(content), {"class": classes, **properties})
    return in_fragment or _set_attributes(TextElement(tag=tag, text=sanitize(content)).classes(classes), properties)


def element(tag: str, classes: str = "", **attributes: str) -> Any:
    """Add an element that can contain others."""
    properties = _normalize_attributes(attributes)
    in_fragment = _append_to_fragment(tag, "", {"class": classes, **properties})
    return in_fragment or _set_attributes(ui.element(tag).classes(classes), properties)


def _normalize_attributes(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name.strip("_").replace("_", "-"): sanitize(value) for name, value in attributes.items()}


def _set_attributes(target: Any, attributes: Mapping[str, str]) -> Any:
    for name, value in attributes.items():
        target.props[name] = value
    return target


def set_initial_value(field: Any, value: str) -> Any:
    """Set a field's initial value so that typed text survives updates of the page around the field.

    The value is set as an attribute, because a property would be set again with every change.
    """
    field.props["^value"] = sanitize(value)
    return field


def link(content: str, target: str, classes: str = "", **attributes: str) -> Any:
    """Add a link within the studio."""
    properties = _normalize_attributes(attributes)
    fixed = {"class": f"nicegui-link {classes}", "href": target}
    in_fragment = _append_to_fragment("a", sanitize(content), {**fixed, **properties})
    return in_fragment or _set_attributes(ui.link(sanitize(content), target).classes(classes), properties)


@contextmanager
def card(title: str = "", classes: str = "") -> Iterator[Any]:
    """Add a card of related content, with a heading."""
    with element("section", f"card {classes}") as section:
        if title:
            with element("div", "section-head"):
                text("h2", title)
        yield section


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


def table_row(values: Sequence[tuple[str, bool]], classes: str = "") -> list[Any]:
    """Add a row of a table, with the first cell as its heading; return the cells, which can be updated later."""
    with element("tr", classes):
        return [
            text("td", content, "number" if is_number else "")
            if index
            else text("th", content, "number" if is_number else "", scope="row")
            for index, (content, is_number) in enumerate(values)
        ]


def badge(content: str, kind: str = "") -> Any:
    """Add a badge with a state."""
    return text("span", content, f"badge {kind}")


def figure(name: str, value: str, detail: str | None = None) -> list[Any]:
    """Add a figure below its name, within a `dl.figures`; return the elements that may change."""
    with element("div"):
        text("dt", name)
        values = [text("dd", value, "number")]
        return values if detail is None else [*values, text("dd", detail, "number")]


def sort_header(content: str, is_number: bool, target: str, order: str | None) -> None:
    """Add a column's name as a link to the same table sorted by that column.

    Args:
        content: The name.
        is_number: Whether it holds numbers.
        target: The address of the link.
        order: `asc` or `desc` if the table is sorted by this column.
    """
    with element("th", "number" if is_number else "", scope="col") as header:
        if order is not None:
            header.props["aria-sort"] = "descending" if order == "desc" else "ascending"
        link(content + {"asc": "\u00a0↑", "desc": "\u00a0↓"}.get(order or "", ""), target)


MAX_INITIAL_CHARACTERS = 6_000
"""Number of characters of a text that a page contains at first; the rest is loaded on request."""


def verbatim(content: str, classes: str = "said", marks: Sequence[str] = ()) -> None:
    """Add text from a model or user unchanged; the rest of a long text is loaded on demand.

    Args:
        content: The text.
        classes: Its classes.
        marks: Passages of the text to highlight, such as the evidence of a fault.
    """
    _add_highlighted(content[:MAX_INITIAL_CHARACTERS], classes, marks)
    if rest := content[MAX_INITIAL_CHARACTERS:]:
        lazy_details(pluralize(len(rest), "more characters"), lambda: text("div", rest, classes))


def button(label: str, on_click: Callable[[], Any], classes: str = "button", **attributes: str) -> ui.element:
    """Add a button."""
    with element("button", classes, type="button", **attributes) as button_element:
        text("span", label)
    button_element.on("click", lambda _event: on_click())
    return button_element


@contextmanager
def details(summary: str, classes: str = "", is_open: bool = False) -> Iterator[Any]:
    """Add a part that opens at a click, without a request to the server."""
    with element("details", classes, **({"open": ""} if is_open else {})) as details_element:
        text("summary", summary)
        yield details_element


def lazy_details(summary: str, fill: Callable[[], Any], classes: str = "", is_open: bool = False) -> None:
    """Add a part that is filled when it is opened for the first time; `is_open` opens it once it is in the browser."""
    with details(summary, classes, is_open) as part:
        pass
    if isinstance(part, FragmentElement):
        part.fill_on_opening(fill)
        return
    is_filled = False

    async def on_open(_event: Any) -> None:
        nonlocal is_filled
        if not is_filled:
            is_filled = True
            with part:
                await _run_fill(fill)

    part.on("toggle", on_open, js_handler="(event) => { if (event.target.open) emit() }")


async def _run_fill(fill: Callable[[], Any]) -> None:
    try:
        result = fill()
        if result is not None:
            await result
    except DialoomError as error:  # such as a file that has been moved since the page was built
        show_error(error)


def definition_list(values: Mapping[str, Any], classes: str = "facts") -> None:
    """Add names and values, one below the other; structured values keep their form."""
    with element("dl", classes):
        for name, value in values.items():
            with element("div"):
                text("dt", str(name).replace("_", " "))
                with element("dd"):
                    _add_value(value)


def _add_value(value: Any) -> None:
    if isinstance(value, Mapping):
        definition_list(value, "facts inner")
    elif isinstance(value, list | tuple):
        if all(isinstance(each, str | int | float) for each in value):
            verbatim(", ".join(map(str, value)))
        else:
            with element("div", "stack"):
                for each in value:
                    _add_value(each)
    else:
        verbatim("–" if value in (None, "") else str(value))


def _add_highlighted(content: str, classes: str, marks: Sequence[str]) -> None:
    """Add text with highlighted passages; if passages overlap, only the first is highlighted."""
    spans = sorted((at, at + len(mark)) for mark in marks if mark and (at := content.find(mark)) >= 0)
    if not spans:
        text("div", content, classes)
        return
    with element("div", classes):
        shown_until = 0
        for start, end in spans:
            if start >= shown_until:
                text("span", content[shown_until:start])
                text("mark", content[start:end])
                shown_until = end
        text("span", content[shown_until:])
