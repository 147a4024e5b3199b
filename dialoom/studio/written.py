"""Parts that reach the browser as one: what has hundreds of them is there in a fraction of the time.

Within `written()`, `element`, `text`, `link` and all that is made of them become a tree of the standard library's
`xml.etree`, which escapes every text and every attribute when it is written. Parts that are filled when they are opened
work there as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from nicegui import ui

_LATE = "late-"
_numbers = count(1)
_OPENED = f"""(event) => {{
  const place = event.target.open && event.target.lastElementChild;
  if (place && place.id.startsWith("{_LATE}")) emit(place.id);
}}"""


class WrittenElement:
    """An element that is written; in a `with` block, others stand in it.

    Args:
        sheet: Where it stands.
        node: What is written of it.
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
        """Fill it when it is opened for the first time."""
        place = f"{_LATE}{next(_numbers)}"
        SubElement(self._node, "div", {"class": "as-is", "id": place})
        self._sheet.late[place] = fill


class _Sheet:
    """What is written as one: the elements that are open, the innermost last, and what is filled on demand."""

    def __init__(self, root: Element) -> None:
        self.open = [root]
        self.late: dict[str, Callable[[], Any]] = {}


_sheet: ContextVar[_Sheet | None] = ContextVar("sheet", default=None)


def part(tag: str, words: str, attributes: Mapping[str, str]) -> WrittenElement | None:
    """An element within `written()`; `None` if this is outside of it."""
    sheet = _sheet.get()
    if sheet is None:
        return None
    node = SubElement(sheet.open[-1], tag, dict(attributes))
    node.text = words
    return WrittenElement(sheet, node)


@contextmanager
def written(tag: str = "div", classes: str = "") -> Iterator[None]:
    """An element whose content is written as one.

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
                made = fill()
                if made is not None:
                    await made

    shown.on("toggle.capture", opened, js_handler=_OPENED)
