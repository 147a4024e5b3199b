"""The drawn tree of checkpoints, and steppers that only read."""

from __future__ import annotations

import asyncio
import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialoom
from dialoom import Stepper
from dialoom.graphs import Outline
from dialoom.runs.stepping import NotBegunError, ReadOnlyStepper, diff
from dialoom.runs.stepping.tree import TreeNode, assign_columns, draw_tree
from dialoom.runs.stepping.values import get_value
from tests.conftest import MadeOnce
from tests.runs.stepping.played import dialogue, shown, shown_stops, stepping


def tree(*parents: int | None, here: int | None = None) -> list[str]:
    """Return the drawing of checkpoints 0, 1, 2, ... with these parents, without their labels."""
    return draw_tree([TreeNode(number, parent, "") for number, parent in enumerate(parents)], here)


@st.composite
def checkpoint_trees(draw: st.DrawFn) -> list[TreeNode]:
    """Return checkpoints with an earlier parent or none; their numbers have gaps."""
    numbers: list[int] = []
    nodes = []
    for _ in range(draw(st.integers(0, 25))):
        parent = draw(st.one_of(st.none(), st.sampled_from(numbers))) if numbers else None
        number = (numbers[-1] if numbers else 0) + draw(st.integers(1, 3))
        numbers.append(number)
        nodes.append(TreeNode(number, parent, "step"))
    return nodes


def most_open_lines(nodes: list[TreeNode]) -> int:
    """Return the most lines open at once: those that pass a checkpoint, and its own or those that it opens."""
    drawn_ones = {node.number for node in nodes}
    edges = [(node.parent, node.number) for node in nodes if node.parent in drawn_ones and node.parent is not None]
    run_in_virtual_time = [sum(parent < node.number < child for parent, child in edges) for node in nodes]
    opened = [sum(parent == node.number for parent, _ in edges) for node in nodes]
    return max((old + max(1, new) for old, new in zip(run_in_virtual_time, opened, strict=True)), default=0)


def row_of(lines: list[str], number: int) -> tuple[int, int]:
    """Return the row and the column in which a checkpoint is drawn."""
    (row,) = (row for row, line in enumerate(lines) if re.search(rf"[*@][ |]* {number} step", line))
    return row, re.search(r"[*@]", lines[row]).start() // 2  # type: ignore[union-attr]


def test_edit_opens_a_column_to_the_right() -> None:
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


def test_line_stays_in_its_column_when_another_ends() -> None:
    assert tree(None, 0, 0, 2, here=3) == ["*     0", "|\\", "* |   1", "  *   2", "  @   3  (here)"]


def test_many_forks_at_one_place_are_one_bar() -> None:
    assert tree(None, 0, 0, 0) == ["*       0", "|-.-.", "* | |   1", "  * |   2", "    *   3"]


def test_fork_passes_the_lines_beside_it() -> None:
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


def test_freed_column_is_used_again() -> None:
    assert tree(None, 0, 0, 2, 2) == ["*     0", "|\\", "* |   1", "  *   2", " /|", "| *   3", "*     4"]


def test_second_root_is_drawn_separately() -> None:
    assert tree(None, 0, None, 2) == ["*   0", "*   1", "", "*   2", "*   3"]
    assert draw_tree([TreeNode(5, 3, "the parent is not drawn")]) == ["*   5 the parent is not drawn"]


def test_empty_tree_has_no_lines() -> None:
    assert draw_tree([]) == []
    assert draw_tree([TreeNode(0, None, "two\nlines", ("here",))], 0) == ["@   0 two lines  (here)"]


@given(checkpoint_trees())
def test_every_checkpoint_is_drawn_once_and_after_its_parent(nodes: list[TreeNode]) -> None:
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


@given(checkpoint_trees())
def test_there_are_no_more_columns_than_open_lines(nodes: list[TreeNode]) -> None:
    width = max((len(re.split(r" {3} *\d+ step", line)[0].rstrip()) for line in draw_tree(nodes)), default=0)
    assert (width + 1) // 2 <= most_open_lines(nodes)


@given(checkpoint_trees())
def test_lines_are_unbroken_from_parent_to_child(nodes: list[TreeNode]) -> None:
    lines = draw_tree(nodes)
    places = {node.number: row_of(lines, node.number) for node in nodes}
    for node in nodes:
        if node.parent is None:
            continue
        (row, column), (above, beside) = places[node.number], places[node.parent]
        if column != beside:
            above += 1
            bar = lines[above][2 * column : 2 * column + 1] == "."
            assert bar or lines[above][column + beside] in "\\/", "the line is opened here"
        assert all(lines[between][2 * column] == "|" for between in range(above + 1, row))


@given(checkpoint_trees())
def test_columns_are_those_in_which_the_checkpoints_are_drawn(nodes: list[TreeNode]) -> None:
    columns = assign_columns(nodes)
    marks = [line.index("*") // 2 for line in draw_tree(nodes) if "*" in line]
    assert [columns[node.number] for node in nodes] == marks


def test_reader_sees_a_stepper_while_another_holds_the_file(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    run = dialoom.open_run(path)

    async def both(stepper: Stepper) -> None:
        branch = await stepper.fork("mine")
        await branch.rewind()
        await branch.edit("messages[0].content", "Good morning.")
        async with run.look(1) as looking:
            assert shown_stops(await looking.stops()) == shown_stops(await (await stepper.switch("main")).stops())
            assert [(each.number, each.parent) for each in await looking.history()] == [
                (each.number, each.parent) for each in await stepper.history()
            ]
            there = await looking.at("mine")
            assert shown(await there.here()) == shown(await branch.here())
            assert (await looking.outcome()) == (await stepper.outcome())
            difference = await diff(looking, there)
            assert difference.names == ("main", "mine")

    stepping(path, both)


def test_next_request_is_shown_without_writing(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    before = sha256(path.read_bytes()).digest()

    async def look() -> None:
        async with dialoom.open_run(path).look(1, checkpoint=3) as looking:
            stop = await looking.here()
            assert stop.number == 3
            assert [asked.role for asked in await looking.next_requests()] == list(stop.next)
            with pytest.raises(dialoom.DialoomError, match="no checkpoint '99'"):
                await looking.at("main", "99")
            with pytest.raises(dialoom.DialoomError, match="no branch 'other'"):
                await looking.at("other")

    asyncio.run(look())
    assert sha256(path.read_bytes()).digest() == before


def test_reader_goes_to_a_message_or_condition(made_once: MadeOnce) -> None:
    run = dialoom.open_run(dialogue(made_once))
    messages = run.conversation(1).messages

    async def look() -> None:
        async with run.look(1) as looking:
            for message in messages:
                assert message.call is not None
                there = await looking.at("main", looking.number_before(message.call["step"]))
                transcript = (await there.here()).transcript
                assert not isinstance(transcript, Outline)
                assert len(transcript) == message.index
                assert [asked.role for asked in await there.next_requests()] == [message.line.role]
            with pytest.raises(dialoom.DialoomError, match="main has no step 99"):
                looking.number_before(99)
            first = await looking.find_stop(looking.condition("turn 2"))
            assert first.counts["turn"] == 2
            before = looking.checkpoint_numbers()[looking.checkpoint_numbers().index(first.number) - 1]
            assert (await (await looking.at("main", before)).here()).counts["turn"] < 2
            with pytest.raises(dialoom.DialoomError, match="turn 99 is not met anywhere on main"):
                await looking.find_stop(looking.condition("turn 99"))

    asyncio.run(look())


def test_scenario_not_begun_has_nothing_to_show(tmp_path: Path) -> None:
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 1})

    async def look() -> ReadOnlyStepper:
        async with run.look(1) as looking:
            return looking

    with pytest.raises(NotBegunError, match="has not begun"):
        asyncio.run(look())


def test_malformed_condition_is_not_reported_as_corruption(made_once: MadeOnce) -> None:
    async def act(path: Path) -> None:
        async with dialoom.open_run(path).look(1) as looking:
            await looking.find_stop(looking.condition("turn three please"))

    with pytest.raises(dialoom.DialoomError, match="'turn three please' is not a condition"):
        asyncio.run(act(dialogue(made_once)))


def test_error_of_the_caller_is_not_reported_as_corruption(made_once: MadeOnce) -> None:
    async def act(path: Path, place: str) -> None:
        async with dialoom.open_run(path).look(1) as looking:
            get_value(looking.state, place)
            int("four")

    with pytest.raises(ValueError, match="invalid literal for int"):
        asyncio.run(act(dialogue(made_once), "messages"))
    with pytest.raises(dialoom.DialoomError, match="the state has no 'nowhere'"):
        asyncio.run(act(dialogue(made_once), "nowhere"))


async def test_each_message_is_decoded_once_for_the_whole_history(made_once: MadeOnce) -> None:
    async with dialoom.open_run(dialogue(made_once)).look(1) as looking:
        states = [each.stop.state.get("messages", []) for each in await looking.history()]
        assert len({id(messages[0]) for messages in states if messages}) == 1
        assert len({id(messages) for messages in states}) == len(states), "the lists are not shared"
        assert await looking.outcome() is await looking.outcome()
