"""The tree of checkpoints as lines of text, as Git draws a history, the oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_HERE = "here"


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One checkpoint.

    Attributes:
        number: Its number; later ones have higher ones.
        parent: The number of the checkpoint that it came from; `None`, or one that is not drawn, begins a line.
        label: What is shown of it.
        marks: What it is called, e.g. the branches that end on it.
    """

    number: int
    parent: int | None
    label: str
    marks: tuple[str, ...] = ()


def draw_tree(nodes: Sequence[TreeNode], here: int | None = None) -> list[str]:
    r"""The tree: a line of text per checkpoint, one below each that forks, and one above each that begins anew.

    A line of descent stays in one column. Where it forks, the oldest child goes on in it, and each other child has a
    column that is free, to the right if there is one: `|\`; or, past other lines, `|-|-.`.

    Args:
        nodes: The checkpoints, in the order of their numbers.
        here: The number of the one at which somebody stands; it is drawn as `@`.

    Raises:
        ValueError: If they are not in order, or a checkpoint is said to have come from a later one.
    """
    _check(nodes)
    children = _children(nodes)
    lines = _Lines()
    rows: list[tuple[str, TreeNode | None]] = []
    for node in nodes:
        if rows and not lines.expect(node.number):
            rows.append((lines.row({}), None))  # so that a new line does not look as if it went on below another's end
        column = lines.column_of(node.number)
        rows.append((lines.row({column: "@" if node.number == here else "*"}), node))
        opened = lines.follow(column, children.get(node.number, []))
        if opened:
            rows.append((lines.fork(column, opened), None))
    width = max((len(graph) for graph, _ in rows), default=0)
    digits = max((len(str(node.number)) for node in nodes), default=0)
    return [graph if node is None else f"{graph:<{width}}   {_told(node, digits, here)}" for graph, node in rows]


def columns_of(nodes: Sequence[TreeNode]) -> dict[int, int]:
    """In which column each checkpoint stands, from 0, as `draw_tree` has it: a line of descent stays in one.

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
    """The lines that are open: by column, the number of the checkpoint that comes next; `None` where none does."""

    def __init__(self) -> None:
        self._next: list[int | None] = []

    def expect(self, number: int) -> bool:
        """Whether a checkpoint comes in a line that is open."""
        return number in self._next

    def column_of(self, number: int) -> int:
        """The column in which a checkpoint comes; a new line for one that is expected in none."""
        return self._next.index(number) if self.expect(number) else self._open(number, 0)

    def follow(self, column: int, children: Sequence[int]) -> list[int]:
        """Expect a checkpoint's children: the first in its own column, others in the columns that are given back."""
        self._next[column] = children[0] if children else None
        return [self._open(child, column) for child in children[1:]]

    def row(self, signs: dict[int, str]) -> str:
        """The lines side by side, with signs of their own in some columns."""
        cells = [signs.get(column, " " if next_ is None else "|") for column, next_ in enumerate(self._next)]
        return " ".join(cells).rstrip()

    def fork(self, column: int, opened: Sequence[int]) -> str:
        """How a line comes to the columns that were opened from it."""
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
        """Take the next free column to the right of one, else the nearest to its left, else a new one at the end."""
        free = [place for place, next_ in enumerate(self._next) if next_ is None]
        if free:
            place = min(free, key=lambda each: (each < column, abs(each - column)))
            self._next[place] = number
            return place
        self._next.append(number)
        return len(self._next) - 1
