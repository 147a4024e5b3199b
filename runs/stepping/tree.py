"""Functions to fork, compare and draw the branches of a scenario."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest

from dialoom.graphs import Judgement, Line, Outline
from dialoom.graphs.outcome import index_by_subject
from dialoom.roles.binding import OBJECT_PREFIX
from dialoom.roles.restoring import UNRESTORABLE_IN_BRANCH
from dialoom.runs.store.branches import Branch

from .context import START, PlayableContext
from .gateway import SteppingError
from .stop import Cost
from .view import StepperView

_HERE = "here"


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One checkpoint in a drawn tree.

    Attributes:
        number: The checkpoint's number; later checkpoints have higher numbers.
        parent: The number of its parent checkpoint. If this is `None` or not drawn, the checkpoint starts a new line.
        label: The text beside it.
        marks: Names shown with it, e.g. of the branches that end at it.
    """

    number: int
    parent: int | None
    label: str
    marks: tuple[str, ...] = ()


def draw_tree(nodes: Sequence[TreeNode], here: int | None = None) -> list[str]:
    r"""Draw a tree as lines of text: one for each checkpoint, one below each fork, and one above each new root.

    A line of descent stays in one column. At a fork, the oldest child stays in the column of its parent. Each other
    child gets a free column, to the right if possible: `|\`, or `|-|-.` if other lines are crossed.

    Args:
        nodes: The checkpoints, in the order of their numbers.
        here: The number of the current checkpoint, drawn as `@`.
    """
    children = _index_children(nodes)
    lines = _OpenLines()
    rows: list[tuple[str, TreeNode | None]] = []
    for node in nodes:
        if rows and not lines.is_expected(node.number):
            # A new line must not look like the continuation of one that ended above.
            rows.append((lines.draw_row({}), None))
        column = lines.find_column(node.number)
        rows.append((lines.draw_row({column: "@" if node.number == here else "*"}), node))
        if opened := lines.follow(column, children.get(node.number, [])):
            rows.append((lines.draw_fork(column, opened), None))
    width = max((len(graph) for graph, _ in rows), default=0)
    digits = max((len(str(node.number)) for node in nodes), default=0)
    return [graph if node is None else f"{graph:<{width}}   {_format_node(node, digits, here)}" for graph, node in rows]


def assign_columns(nodes: Sequence[TreeNode]) -> dict[int, int]:
    """Return each checkpoint's column in `draw_tree`, counted from 0; a line of descent stays in one column."""
    children, lines, found = _index_children(nodes), _OpenLines(), dict[int, int]()
    for node in nodes:
        column = found[node.number] = lines.find_column(node.number)
        lines.follow(column, children.get(node.number, []))
    return found


def _index_children(nodes: Sequence[TreeNode]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {node.number: [] for node in nodes}
    for node in nodes:
        if node.parent in children:
            children[node.parent].append(node.number)
    return children


def _format_node(node: TreeNode, digits: int, here: int | None) -> str:
    marks = [mark for mark in node.marks if mark != _HERE]
    if node.number == here:
        marks.append(_HERE)
    label = " ".join(node.label.splitlines())
    shown = f"  ({', '.join(marks)})" if marks else ""
    return f"{node.number:>{digits}} {label}".rstrip() + shown


class _OpenLines:
    """The unfinished lines of a tree drawing: each column's next checkpoint, or `None` for a free column."""

    def __init__(self) -> None:
        self._next: list[int | None] = []

    def is_expected(self, number: int) -> bool:
        """Return whether a checkpoint is the next one of an unfinished line."""
        return number in self._next

    def find_column(self, number: int) -> int:
        """Return the column in which a checkpoint is drawn: the one whose next checkpoint it is, or else a new one."""
        return self._next.index(number) if self.is_expected(number) else self._open(number, 0)

    def follow(self, column: int, children: Sequence[int]) -> list[int]:
        """Continue a line with a checkpoint's children, the first in its column; return the columns of the others."""
        self._next[column] = children[0] if children else None
        return [self._open(child, column) for child in children[1:]]

    def draw_row(self, signs: dict[int, str]) -> str:
        """Draw one row of the unfinished lines, with the given characters in some columns."""
        cells = [signs.get(column, " " if next_ is None else "|") for column, next_ in enumerate(self._next)]
        return " ".join(cells).rstrip()

    def draw_fork(self, column: int, opened: Sequence[int]) -> str:
        """Draw the connection from a line to the columns that branch off from it."""
        if opened in ([column + 1], [column - 1]):
            row = list(self.draw_row({opened[0]: " "}).ljust(2 * column + 2))
            row[column + opened[0]] = "\\" if opened[0] > column else "/"
            return "".join(row).rstrip()
        row = list(self.draw_row(dict.fromkeys(opened, ".")))
        first, last = 2 * min(column, *opened), 2 * max(column, *opened)
        row[first:last] = ["-" if sign == " " else sign for sign in row[first:last]]
        return "".join(row)

    def _open(self, number: int, column: int) -> int:
        """Open a line in the nearest free column to the right or left, or else in a new one; return the column."""
        if None not in self._next:
            self._next.append(None)
        free = (place for place, next_ in enumerate(self._next) if next_ is None)
        place = min(free, key=lambda each: (each < column, abs(each - column)))
        self._next[place] = number
        return place


_BRANCH_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


async def fork_branch(
    context: PlayableContext, branch: Branch, head: str, name: str, replaced_roles: Collection[str] = ()
) -> Branch:
    """Create a branch that begins at a checkpoint of another one.

    Args:
        context: The scenario.
        branch: The branch that is forked.
        head: The checkpoint's id.
        name: The new branch's name.
        replaced_roles: Roles that get another model on the new branch.

    Raises:
        SteppingError: If the name is taken or invalid, or a player cannot be restored to its state at the checkpoint.
    """
    if not _BRANCH_NAME.fullmatch(name):
        raise SteppingError(f"{name!r} is not a valid name for a branch; use letters, digits, '-' and '_'")
    if any(each.name == name for each in context.branches()):
        raise SteppingError(f"a branch {name!r} exists already; switch to it, or give another name")
    await _ensure_restorable(context, branch, head, replaced_roles)
    await index_main(context)
    thread = f"{context.work.thread}~{name}"
    saver = context.graph.checkpointer
    assert saver is not None and not isinstance(saver, bool)
    await saver.adelete_thread(thread)  # left over from a fork that was killed halfway
    await saver.acopy_thread(branch.thread, thread)
    await context.store.branches.keep_only(thread, [point.id for point in context.lineage(head)])
    forked = replace(branch, name=name, thread=thread, head=head, origin=branch.name)
    await context.store.branches.keep(context.work.position, forked)
    return forked


async def _ensure_restorable(
    context: PlayableContext, branch: Branch, head: str, replaced_roles: Collection[str]
) -> None:
    """Raise `SteppingError` if a player has already replied and its state cannot be restored."""
    for role, binding in {**context.models, **context.bindings(branch)}.items():
        model = binding.model
        if role in replaced_roles or not binding.stateful or context.gateway.can_restore(model):
            continue
        if any((call.role, call.model) == (role, model) for call in await context.lineage_calls(context.lineage(head))):
            raise SteppingError(
                UNRESTORABLE_IN_BRANCH.format(branch=branch.name, role=role, model=model.removeprefix(OBJECT_PREFIX))
            )


async def index_main(context: PlayableContext) -> None:
    """Record which calls led to the engine's checkpoints, before a fork adds other calls."""
    position = context.work.position
    if (end := context.latest_checkpoint(context.work.thread)) is None:
        return
    line, known = context.lineage(end), context.store.branches.indexed(position)
    led = {
        line[length - 1].id: [(call.node, call.key, call.is_edited) for call in await context.step_calls(line[:length])]
        for length in range(2, len(line) + 1)
        if line[length - 1].id not in known
    }
    await context.store.branches.keep_calls(position, led)


SpokenLine = tuple[str, str]
"""The speaker of a line (may be empty), and its text."""


@dataclass(frozen=True, slots=True)
class LinePair:
    """Two lines side by side, one from each branch; `None` for a branch without a line there."""

    left: SpokenLine | None
    right: SpokenLine | None

    @property
    def is_same(self) -> bool:
        """Return whether both lines are equal."""
        return self.left == self.right


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two branches.

    Attributes:
        names: The branches' names.
        positions: For each branch, the number of the current checkpoint, and whether the conversation ends there.
        shared: The number of steps that the branches have in common.
        lines: The conversations, line by line.
        judgements: Each judged item with the judgements on both branches (`None` for a branch without one).
        costs: The cost of each branch after the fork.
        before: The cost of the shared steps.
    """

    names: tuple[str, str]
    positions: tuple[tuple[int, bool], tuple[int, bool]]
    shared: int
    lines: Sequence[LinePair]
    judgements: Sequence[tuple[str, Judgement | None, Judgement | None]]
    costs: tuple[Cost, Cost]
    before: Cost


async def diff(left: StepperView, right: StepperView) -> Difference:
    """Compare the current checkpoints of two steppers or views over one run.

    Args:
        left: A branch.
        right: Another branch, or another checkpoint on the same branch.
    """
    context, ours, theirs = left.context, await left.here(), await right.here()
    lines = [context.lineage(stop.checkpoint) for stop in (ours, theirs)]
    shared = [one for one, other in zip(*lines, strict=False) if one.id == other.id]
    ran = [await context.nodes_after(one) for one, after in pairwise(shared) if after.source == "loop"]
    before = await context.lineage_calls(shared)
    costs = [Cost.of((await context.lineage_calls(line))[len(before) :]) for line in lines]
    return Difference(
        names=(left.branch, right.branch),
        positions=((ours.number, ours.is_end), (theirs.number, theirs.is_end)),
        shared=sum(nodes not in ((), (START,)) for nodes in ran),
        lines=_pair_lines(transcript_lines(ours.transcript), transcript_lines(theirs.transcript)),
        judgements=_pair_judgements((await left.outcome()).judgements, (await right.outcome()).judgements),
        costs=(costs[0], costs[1]),
        before=Cost.of(before),
    )


def transcript_lines(transcript: Sequence[Line] | Outline) -> list[SpokenLine]:
    """Return a transcript as lines; the lines of an outline are indented by two spaces per level."""
    if not isinstance(transcript, Outline):
        return [(line.role, line.spoken) for line in transcript]
    found: list[SpokenLine] = []

    def walk(outline: Outline, depth: int) -> None:
        found.append(("", "  " * depth + "".join(span.text for span in outline.spans)))
        for part in outline.parts:
            walk(part, depth + 1)

    walk(transcript, 0)
    return found


def _pair_lines(left: Sequence[SpokenLine], right: Sequence[SpokenLine]) -> list[LinePair]:
    """Pair the lines by position if their speakers agree; otherwise align equal lines."""
    if all(one[0] == other[0] != "" for one, other in zip(left, right, strict=False)):
        return [LinePair(one, other) for one, other in zip_longest(left, right)]
    pairs: list[LinePair] = []
    for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs += [LinePair(one, other) for one, other in zip_longest(left[a:b], right[c:d])]
    return pairs


def _pair_judgements(
    left: Sequence[Judgement], right: Sequence[Judgement]
) -> list[tuple[str, Judgement | None, Judgement | None]]:
    ours, theirs = index_by_subject(left), index_by_subject(right)
    return [
        (
            f"{metric} {target}{'' if turn is None else f' turn {turn}'}{f' ({number})' if number > 1 else ''}",
            ours.get((metric, target, turn, number)),
            theirs.get((metric, target, turn, number)),
        )
        for metric, target, turn, number in dict.fromkeys([*ours, *theirs])
    ]
