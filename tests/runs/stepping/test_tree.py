"""The drawn tree of checkpoints: forks, freed columns, and that nothing is lost or doubled."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.runs.stepping.tree import TreeNode, columns_of, draw_tree


def tree(*parents: int | None, here: int | None = None) -> list[str]:
    """The drawing of checkpoints 0, 1, 2, ... with these parents, without their labels."""
    return draw_tree([TreeNode(number, parent, "") for number, parent in enumerate(parents)], here)


@st.composite
def families(draw: st.DrawFn) -> list[TreeNode]:
    """Checkpoints, each from an earlier one or from none; numbers with gaps."""
    numbers: list[int] = []
    nodes = []
    for _ in range(draw(st.integers(0, 25))):
        parent = draw(st.one_of(st.none(), st.sampled_from(numbers))) if numbers else None
        number = (numbers[-1] if numbers else 0) + draw(st.integers(1, 3))
        numbers.append(number)
        nodes.append(TreeNode(number, parent, "step"))
    return nodes


def most_open_lines(nodes: list[TreeNode]) -> int:
    """The most ways on that are open at once: those that pass a checkpoint with itself, or with those that it opens."""
    drawn_ones = {node.number for node in nodes}
    edges = [(node.parent, node.number) for node in nodes if node.parent in drawn_ones and node.parent is not None]
    passing = [sum(parent < node.number < child for parent, child in edges) for node in nodes]
    opened = [sum(parent == node.number for parent, _ in edges) for node in nodes]
    return max((old + max(1, new) for old, new in zip(passing, opened, strict=True)), default=0)


def row_of(lines: list[str], number: int) -> tuple[int, int]:
    """The row and the column in which a checkpoint is drawn."""
    (row,) = (row for row, line in enumerate(lines) if re.search(rf"[*@][ |]* {number} step", line))
    return row, re.search(r"[*@]", lines[row]).start() // 2  # type: ignore[union-attr]


def test_an_edit_opens_a_column_to_the_right() -> None:
    """The picture of a branch, with labels, marks and the place where one stands."""
    nodes = [
        TreeNode(0, None, "input"),
        TreeNode(1, 0, "user  + messages[0]"),
        TreeNode(2, 1, "assistant"),
        TreeNode(7, 1, "edit"),
        TreeNode(8, 7, "assistant", ("b1",)),
        TreeNode(10, 2, "user", ("main", "saved")),
    ]
    assert draw_tree(nodes, 8) == [
        r"*      0 input",
        r"*      1 user  + messages[0]",
        "|\\",
        r"* |    2 assistant",
        r"| *    7 edit",
        r"| @    8 assistant  (b1, here)",
        r"*     10 user  (main, saved)",
    ]


def test_a_line_stays_in_its_column_when_another_ends() -> None:
    """The branch goes on in the second column though the first is free."""
    assert tree(None, 0, 0, 2, here=3) == ["*     0", "|\\", "* |   1", "  *   2", "  @   3  (here)"]


def test_many_forks_at_one_place_are_one_bar() -> None:
    """Three ways on from one checkpoint."""
    assert tree(None, 0, 0, 0) == ["*       0", "|-.-.", "* | |   1", "  * |   2", "    *   3"]


def test_a_fork_passes_the_lines_beside_it() -> None:
    """The first line forks again while the second is open: the bar goes past it to a column of its own."""
    assert tree(None, 0, 0, 1, 1, 2) == [
        "*       0",
        "|\\",
        "* |     1",
        "|-|-.",
        "| * |   2",
        "* | |   3",
        "  | *   4",
        "  *     5",
    ]


def test_a_column_that_became_free_is_taken_again() -> None:
    """A fork of the second line takes the first column, whose line has ended."""
    assert tree(None, 0, 0, 2, 2) == ["*     0", "|\\", "* |   1", "  *   2", " /|", "| *   3", "*     4"]


def test_a_second_beginning_stands_apart() -> None:
    """It takes the free column, but does not look like what came before it."""
    assert tree(None, 0, None, 2) == ["*   0", "*   1", "", "*   2", "*   3"]
    assert draw_tree([TreeNode(5, 3, "the parent is not drawn")]) == ["*   5 the parent is not drawn"]


def test_an_empty_tree_has_no_lines() -> None:
    """And a label of several lines has one."""
    assert draw_tree([]) == []
    assert draw_tree([TreeNode(0, None, "two\nlines", ("here",))], 0) == ["@   0 two lines  (here)"]


@pytest.mark.parametrize(
    "nodes", [[TreeNode(1, None, ""), TreeNode(1, None, "")], [TreeNode(1, 2, ""), TreeNode(2, None, "")]]
)
def test_checkpoints_out_of_order_are_refused(nodes: list[TreeNode]) -> None:
    """A number twice, or a parent that comes later."""
    with pytest.raises(ValueError, match="checkpoint 1 "):
        draw_tree(nodes)


@given(families())
def test_every_checkpoint_is_drawn_once_and_after_its_parent(nodes: list[TreeNode]) -> None:
    """In the order of numbers, and in the parent's column if it is the oldest child."""
    lines = draw_tree(nodes)
    first: set[int] = set()
    for node in nodes:
        row, column = row_of(lines, node.number)
        if node.parent is not None:
            above, beside = row_of(lines, node.parent)
            assert above < row
            assert (column == beside) == (node.parent not in first)
            first.add(node.parent)
    assert sum("step" in line for line in lines) == len(nodes)


@given(families())
def test_there_are_no_more_columns_than_open_lines(nodes: list[TreeNode]) -> None:
    """A column is opened only when all the others are taken."""
    width = max((len(re.split(r" {3} *\d+ step", line)[0].rstrip()) for line in draw_tree(nodes)), default=0)
    assert (width + 1) // 2 <= most_open_lines(nodes)


@given(families())
def test_lines_are_unbroken_from_parent_to_child(nodes: list[TreeNode]) -> None:
    """A child's column shows nothing but its line since the parent, or since it was opened right below the parent."""
    lines = draw_tree(nodes)
    places = {node.number: row_of(lines, node.number) for node in nodes}
    for node in nodes:
        if node.parent is None:
            continue
        (row, column), (above, beside) = places[node.number], places[node.parent]
        if column != beside:
            above += 1
            bar = lines[above][2 * column : 2 * column + 1] == "."
            assert bar or lines[above][column + beside] in "\\/", "it was opened here"
        assert all(lines[between][2 * column] == "|" for between in range(above + 1, row))


@given(families())
def test_columns_are_those_in_which_the_checkpoints_are_drawn(nodes: list[TreeNode]) -> None:
    """So that whoever draws lines instead of letters has no two checkpoints' lines in one place."""
    columns = columns_of(nodes)
    marks = [line.index("*") // 2 for line in draw_tree(nodes) if "*" in line]
    assert [columns[node.number] for node in nodes] == marks
