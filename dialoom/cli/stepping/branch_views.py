"""Views of branches: their list, their tree, and two branches side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from dialoom.graphs import Judgement
from dialoom.runs.stepping import Cost, Difference, Stop
from dialoom.runs.stepping.stop import format_cost, format_label, format_nodes, truncate
from dialoom.runs.stepping.tree import SpokenLine, TreeNode, draw_tree
from dialoom.runs.stepping.view import HistoryEntry
from dialoom.runs.store.branches import Branch

from .views import Answer, format_spoken_line

_MIN_LABEL_WIDTH = 16
"""Minimum width of a label in a history, in columns, however narrow the terminal is."""
_PLACEHOLDER = "\N{REPLACEMENT CHARACTER}"
"""Placeholder for a label while the space for it is measured."""


def build_history_answer(nodes: Sequence[HistoryEntry], here: int) -> Answer:
    """Return the tree of checkpoints."""
    data = [
        {
            "number": each.number,
            "parent": each.parent,
            "checkpoint": each.stop.checkpoint,
            "kind": each.stop.kind,
            "ran": list(each.stop.ran),
            "branches": list(each.branches),
            "is_here": each.number == here,
        }
        for each in nodes
    ]
    return Answer({"history": data}, [_HistoryTree(nodes, here)])


@dataclass(frozen=True, slots=True)
class _HistoryTree:
    """A tree of checkpoints as wide as the terminal; contents are truncated, but names of branches are not."""

    nodes: Sequence[HistoryEntry]
    here: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a line for each checkpoint, and the lines that connect them."""
        used = [cell_len(line) - 1 for line in self._draw([_PLACEHOLDER] * len(self.nodes)) if _PLACEHOLDER in line]
        widths = [max(_MIN_LABEL_WIDTH, options.max_width - columns) for columns in used]
        for line in self._draw(
            [truncate(format_label(each.stop), width) for each, width in zip(self.nodes, widths, strict=True)]
        ):
            yield Text(line, no_wrap=True, overflow="ellipsis")

    def _draw(self, labels: Sequence[str]) -> list[str]:
        each = zip(self.nodes, labels, strict=True)
        return draw_tree([TreeNode(at.number, at.parent, text, at.branches) for at, text in each], self.here)


def build_forks_answer(branches: Iterable[tuple[Branch, Stop]], here: str, outcome_branch: str | None) -> Answer:
    """Return the list of branches.

    Args:
        branches: Each branch with its current stop.
        here: The name of the current branch.
        outcome_branch: The name of the branch that the scenario's outcome comes from, if there is one.
    """
    table = RichTable("", "branch", "from", "at", "next", "sample", "models", box=None, header_style="dim")
    data = []
    for branch, stop in branches:
        end = "the end" if stop.is_end else format_nodes(stop.next)
        models = ", ".join(f"{role}={model}" for role, model in branch.models.items())
        name = branch.name + (" (the outcome)" if branch.name == outcome_branch else "")
        mark = "@" if branch.name == here else ""
        table.add_row(mark, name, branch.origin or "", str(stop.number), end, str(branch.sample), models)
        data.append(
            {
                "branch": branch.name,
                "origin": branch.origin,
                "number": stop.number,
                "next": list(stop.next),
                "sample": branch.sample,
                "models": dict(branch.models),
                "is_here": branch.name == here,
                "is_outcome": branch.name == outcome_branch,
            }
        )
    return Answer({"branches": data}, [table])


def build_diff_answer(difference: Difference) -> Answer:
    """Return two branches side by side; equal parts are only counted."""
    left, right = difference.names
    table = RichTable(left, right, box=box.MINIMAL, expand=True, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.ratio = 1
    pairs = [(format_spoken_line(each.left), format_spoken_line(each.right), each.is_same) for each in difference.lines]
    _add_rows(table, pairs, "line")
    judgements = [
        (_format_judgement(*each[:2]), _format_judgement(each[0], each[2]), each[1] == each[2])
        for each in difference.judgements
    ]
    _add_rows(table, judgements, "judgement")
    table.add_row(*(Text(f"since the fork: {format_cost(cost)}", style="dim") for cost in difference.costs))
    positions = " and ".join(
        f"{name} at {number}{', its end' if is_end else ''}"
        for name, (number, is_end) in zip(difference.names, difference.positions, strict=True)
    )
    shared = f"{difference.shared} {'step' if difference.shared == 1 else 'steps'} in common"
    return Answer(
        _difference_data(difference), [Text(f"{positions}; {shared} ({format_cost(difference.before)})"), table]
    )


def _add_rows(table: RichTable, rows: Iterable[tuple[RenderableType, RenderableType, bool]], noun: str) -> None:
    """Add a section's rows to the table; rows that are equal on both branches become one row with their number."""
    for is_same, group in groupby(rows, key=itemgetter(2)):
        pairs = list(group)
        if is_same:
            text = f"... {len(pairs)} equal {noun if len(pairs) == 1 else noun + 's'}"
            pairs = [(Text(text, style="dim"), Text(text, style="dim"), True)]
        for ours, theirs, _ in pairs:
            table.add_row(ours, theirs)
    table.add_section()


def _difference_data(difference: Difference) -> dict[str, Any]:
    def line(side: SpokenLine | None) -> dict[str, str] | None:
        return None if side is None else {"role": side[0], "content": side[1]}

    def judgement_data(judgement: Judgement | None) -> dict[str, Any] | None:
        return None if judgement is None else judgement.model_dump(mode="json")

    def cost(value: Cost) -> dict[str, Any]:
        return {"calls": value.calls, "tokens": value.tokens, "cost": value.dollars, "seconds": value.seconds}

    return {
        "branches": list(difference.names),
        "shared_steps": difference.shared,
        "lines": [
            {"same": each.is_same, "left": line(each.left), "right": line(each.right)} for each in difference.lines
        ],
        "judgements": [
            {"what": subject, "left": judgement_data(ours), "right": judgement_data(theirs)}
            for subject, ours, theirs in difference.judgements
        ],
        "shared_cost": cost(difference.before),
        "costs": [cost(each) for each in difference.costs],
    }


def _format_judgement(subject: str, judgement: Judgement | None) -> Text:
    if judgement is None:
        return Text(f"{subject}: not judged", style="dim")
    score = judgement.status if judgement.score is None else str(judgement.score)
    return Text.assemble((f"{subject}: ", "dim"), (score, "bold"), (f"  {judgement.explanation}", "dim"))
