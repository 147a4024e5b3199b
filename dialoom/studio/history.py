"""The tree of checkpoints as a drawing: a row for each, its line of descent to the left of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nicegui import ui

from dialoom.runs.stepping.tree import TreeNode, columns_of
from dialoom.runs.stepping.view import HistoryEntry

from .parts import element, link, text, written

_ROW, _COLUMN, _MARGIN = 28, 16, 11
"""Sizes in pixels."""

_SHOW_HERE = """
const list = document.querySelector(".history"), here = list?.querySelector("[aria-current]");
if (here) list.scrollTop = here.parentElement.offsetTop - list.clientHeight / 2;
"""


def draw(
    entries: Sequence[HistoryEntry],
    here: int,
    line: Sequence[int],
    label: Callable[[HistoryEntry], str],
    address: Callable[[int], str],
) -> None:
    """Draw the tree.

    Args:
        entries: The checkpoints, the oldest first.
        here: The number of the one at which one stands.
        line: The numbers of those on the branch that is looked at, which stand out.
        label: What a row says.
        address: Where a click on a row leads.
    """
    columns = columns_of([TreeNode(each.number, each.parent, "") for each in entries])
    rows = {each.number: place for place, each in enumerate(entries)}
    width = _MARGIN * 2 + _COLUMN * max(columns.values(), default=0)
    with written("div", "history"):
        _lines(entries, columns, rows, width, frozenset(line), here)
        with element("ol", style=f"padding-inline-start: {width}px"):
            for each in entries:
                is_here = {"aria_current": "step"} if each.number == here else {}
                with element("li"), link("", address(each.number), **is_here):
                    text("span", str(each.number), "number quiet")
                    text("span", label(each), "clipped")
                    for name in each.branches:
                        text("span", name, "badge accent")
    ui.run_javascript(_SHOW_HERE)


def _lines(
    entries: Sequence[HistoryEntry],
    columns: Mapping[int, int],
    rows: Mapping[int, int],
    width: int,
    line: frozenset[int],
    here: int,
) -> None:
    height = _ROW * len(entries)
    box = f"0 0 {width} {height}"
    with element("svg", width=str(width), height=str(height), viewBox=box, aria_hidden="true"):
        for each in entries:
            if each.parent is not None and each.parent in rows:
                is_on = each.number in line and each.parent in line
                element("path", "on" if is_on else "", d=_path(each.number, each.parent, columns, rows))
        for each in entries:
            x, y = _at(each.number, columns, rows)
            classes = f"{'on' if each.number in line else ''} {'here' if each.number == here else ''}"
            element("circle", classes, cx=str(x), cy=str(y), r="6" if each.number == here else "4")


def _at(number: int, columns: Mapping[int, int], rows: Mapping[int, int]) -> tuple[int, int]:
    return _MARGIN + _COLUMN * columns[number], _ROW * rows[number] + _ROW // 2


def _path(number: int, parent: int, columns: Mapping[int, int], rows: Mapping[int, int]) -> str:
    """Return the path from a checkpoint's parent across to its column, then down in it."""
    x, y = _at(number, columns, rows)
    from_x, from_y = _at(parent, columns, rows)
    if x == from_x:
        return f"M {from_x} {from_y} V {y}"
    bend = from_y + _ROW
    return f"M {from_x} {from_y} C {from_x} {bend - 6} {x} {from_y + 6} {x} {bend} V {y}"
