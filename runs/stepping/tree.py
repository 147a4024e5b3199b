"""The tree of checkpoints as lines of text, like Git's history graph, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_HERE = "here"


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One checkpoint.

    Attributes:
        number: Its number; later ones have higher ones.
        parent: The number of its parent checkpoint; `None`, or one that is not drawn, starts a new line.
        label: The text beside it.
        marks: Its names, e.g. the branches that end on it.
    """

    number: int
    parent: int | None
    label: str
    marks: tuple[str, ...] = ()


def draw_tree(nodes: Sequence[TreeNode], here: int | None = None) -> list[str]:
    r"""Return the tree: a line of text per checkpoint, one below each fork, and one above each new root.

    A line of descent stays in one column. At a fork, the oldest child continues in it, and each other child gets a free
    column, to the right if there is one: `|\`; or, past other lines, `|-|-.`.

    Args:
        nodes: The checkpoints, in the order of their numbers.
        here: The number of the current checkpoint, drawn as `@`.

    Raises:
        ValueError: If they are not in order, or a checkpoint's parent is a later one.
    """
    _check(nodes)
    children = _children(nodes)
    lines = _Lines()
    rows: list[tuple[str, TreeNode | None]] = []
    for node in nodes:
        if rows and not lines.expect(node.number):
            rows.append(
                (lines.row({}), None)
            )  # so that a new line does not seem to continue another one that ended above
        column = lines.column_of(node.number)
        rows.append((lines.row({column: "@" if node.number == here else "*"}), node))
        opened = lines.follow(column, children.get(node.number, []))
        if opened:
            rows.append((lines.fork(column, opened), None))
    width = max((len(graph) for graph, _ in rows), default=0)
    digits = max((len(str(node.number)) for node in nodes), default=0)
    return [graph if node is None else f"{graph:<{width}}   {_told(node, digits, here)}" for graph, node in rows]


def columns_of(nodes: Sequence[TreeNode]) -> dict[int, int]:
    """Return each checkpoint's column, from 0, as in `draw_tree`: a line of descent stays in one.

    Raises:
        ValueError: As `draw_tree`.
    """
    _check(nodes)
    children, lines, found = _children(nodes), _Lines(), dict[int, int]()
    for node in nodes:
        column = found[node.number] = lines.column_of(node.number)
        lines.follow(column, children.get(node.number, []))
    return found


def _check(nodes: Sequence[TreeNode]) -> None:
    last: int | None = None
    for node in nodes:
        if last is not None and node.number <= last:
            raise ValueError(f"checkpoint {node.number} stands after {last}; give each once, in the order of numbers")
        if node.parent is not None and node.parent >= node.number:
            raise ValueError(f"checkpoint {node.number} cannot have come from {node.parent}, which is not before it")
        last = node.number


def _children(nodes: Sequence[TreeNode]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {node.number: [] for node in nodes}
    for node in nodes:
        if node.parent in children:
            children[node.parent].append(node.number)
    return children


def _told(node: TreeNode, digits: int, here: int | None) -> str:
    marks = [mark for mark in node.marks if mark != _HERE]
    if node.number == here:
        marks.append(_HERE)
    label = " ".join(node.label.splitlines())
    shown = f"  ({', '.join(marks)})" if marks else ""
    return f"{node.number:>{digits}} {label}".rstrip() + shown


class _Lines:
    """The open lines: by column, the number of the next checkpoint; `None` for a free column."""

    def __init__(self) -> None:
        self._next: list[int | None] = []

    def expect(self, number: int) -> bool:
        """Return whether a checkpoint is the next one of an open line."""
        return number in self._next

    def column_of(self, number: int) -> int:
        """Return a checkpoint's column; a new line is opened for one that no line expects."""
        return self._next.index(number) if self.expect(number) else self._open(number, 0)

    def follow(self, column: int, children: Sequence[int]) -> list[int]:
        """Expect a checkpoint's children: the first in its column, others in new columns, which are returned."""
        self._next[column] = children[0] if children else None
        return [self._open(child, column) for child in children[1:]]

    def row(self, signs: dict[int, str]) -> str:
        """Draw the open lines side by side, with given signs in some columns."""
        cells = [signs.get(column, " " if next_ is None else "|") for column, next_ in enumerate(self._next)]
        return " ".join(cells).rstrip()

    def fork(self, column: int, opened: Sequence[int]) -> str:
        """Draw the connection of a line to the columns opened from it."""
        if opened == [column + 1]:
            return self._joint(column, opened[0], "\\")
        if opened == [column - 1]:
            return self._joint(column, opened[0], "/")
        row = list(self.row(dict.fromkeys(opened, ".")))
        first, last = 2 * min(column, *opened), 2 * max(column, *opened)
        row[first:last] = ["-" if sign == " " else sign for sign in row[first:last]]
        return "".join(row)

    def _joint(self, column: int, opened: int, sign: str) -> str:
        row = list(self.row({opened: " "}).ljust(2 * column + 2))
        row[column + opened] = sign
        return "".join(row).rstrip()

    def _open(self, number: int, column: int) -> int:
        """Open a line in the nearest free column to the right, else to the left, else in a new one; return it."""
        free = [place for place, next_ in enumerate(self._next) if next_ is None]
        if free:
            place = min(free, key=lambda each: (each < column, abs(each - column)))
            self._next[place] = number
            return place
        self._next.append(number)
        return len(self._next) - 1
