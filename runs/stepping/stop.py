"""Stops of a stepper: the changes of state since the previous stop, and short descriptions."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from langchain_core.messages import BaseMessage
from rich.cells import cell_len, set_cell_size

from dialoom.graphs import DialogueFault, Line, Outline
from dialoom.graphs.conversation import calls_of
from dialoom.grouping import group_pairs
from dialoom.prompts.messages import format_call
from dialoom.runs.store.branches import MadeCall, StepCall

from .values import extend_path, to_plain

_ELLIPSIS = "..."
_CONTEXT_CHARACTERS = 12
"""The number of equal characters that are shown before the first difference of two long texts."""


class _Absent(enum.Enum):
    ABSENT = enum.auto()


PLAYERS_KEY = "players"
"""The key of the stateful players' states, by role, in a stop's state; the other keys are the graph's channels."""

ABSENT: Final = _Absent.ABSENT
"""Marks a value that exists in only one of two states."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two states.

    Attributes:
        path: The path, in the syntax of `look`. It refers to the earlier state if the value was removed, else to the
            later one.
        before: The earlier value, or `ABSENT`.
        after: The later value, or `ABSENT`.
    """

    path: str
    before: Any
    after: Any


def compute_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the differences between two states, one per path; states that are equal by `==` have none."""
    return list(_iter_mapping_changes(before, after, ""))


def format_change(change: Change, width: int | None = 100) -> str:
    """Format a change as one line: `turns: 1 -> 2`, `+ messages[2] user: Hello`, `- open[1] "r"`.

    Args:
        change: The change.
        width: Maximum number of columns, at least 1; `None` for no limit.
    """
    if change.before is ABSENT:
        return truncate(f"+ {change.path} {_format_value(change.after)}", width)
    if change.after is ABSENT:
        return truncate(f"- {change.path} {_format_value(change.before)}", width)
    old, new = _format_value(change.before), _format_value(change.after)
    head, arrow = f"{change.path}: ", " -> "
    if width is None or (room := width - cell_len(head) - cell_len(arrow)) >= cell_len(old) + cell_len(new):
        return f"{head}{old}{arrow}{new}"
    old, new = _cut_common_prefix(old, new, room // 2)
    left = max(room // 2, room - cell_len(new))
    old = truncate(old, left)
    return truncate(f"{head}{old}{arrow}{truncate(new, room - cell_len(old))}", width)


def _iter_changes(before: Any, after: Any, path: str) -> Iterator[Change]:
    if before is not ABSENT and after is not ABSENT and before == after:
        return
    if isinstance(before, BaseMessage) and isinstance(after, BaseMessage) and before.id == after.id:
        yield from _iter_mapping_changes(before.model_dump(), after.model_dump(), path)
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _iter_mapping_changes(before, after, path)
    elif _is_list(after) and (_is_list(before) or (before is ABSENT and after)):
        yield from _iter_list_changes([] if before is ABSENT else before, after, path)
    else:
        yield Change(path, before, after)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _iter_mapping_changes(before: Mapping[Any, Any], after: Mapping[Any, Any], path: str) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        yield from _iter_changes(before.get(key, ABSENT), after.get(key, ABSENT), extend_path(path, str(key)))


def _iter_list_changes(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[Change]:
    """Yield the differences between two lists: items between the common prefix and suffix are compared one by one."""
    shorter = min(len(before), len(after))
    start = _count_common_prefix(before, after, shorter)
    end = _count_common_prefix(before[::-1], after[::-1], shorter - start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for index in range(max(len(old), len(new))):
        yield from _iter_changes(
            old[index] if index < len(old) else ABSENT,
            new[index] if index < len(new) else ABSENT,
            extend_path(path, start + index),
        )


def _count_common_prefix(one: Sequence[Any], other: Sequence[Any], limit: int) -> int:
    """Return the length of the common prefix of two sequences, up to a maximum."""
    pairs = zip(one[:limit], other[:limit], strict=True)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def _format_value(value: Any) -> str:
    """Format a value on one line; a message's text is shown without quotes."""
    if isinstance(value, BaseMessage):
        shown = to_plain(value)
        content = shown["content"]
        text = _flatten_text(content) if isinstance(content, str) else _format_value(content)
        called = (f"calls {_flatten_text(format_call(call))}" for call in calls_of(value))
        return f"{shown['role']}: {' '.join([*filter(None, [text]), *called])}"
    return json.dumps(_flatten_text(to_plain(value)), ensure_ascii=False)


def _flatten_text(value: Any) -> Any:
    """Return a value with line breaks and control characters removed from its strings."""
    if isinstance(value, str):
        return " ".join("".join(each if each.isprintable() else " " for each in value).split())
    if isinstance(value, list):
        return [_flatten_text(each) for each in value]
    return (
        {_flatten_text(key): _flatten_text(each) for key, each in value.items()} if isinstance(value, dict) else value
    )


def _cut_common_prefix(old: str, new: str, room: int) -> tuple[str, str]:
    """Shorten two long texts so that both begin shortly before their first difference."""
    shared = _count_common_prefix(old, new, min(len(old), len(new))) - _CONTEXT_CHARACTERS
    if shared <= len(_ELLIPSIS) or max(cell_len(old), cell_len(new)) <= room:
        return old, new
    return _ELLIPSIS + old[shared:], _ELLIPSIS + new[shared:]


def truncate(text: str, width: int | None) -> str:
    """Truncate a line to a number of columns; `None` for no limit."""
    if width is None or cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - len(_ELLIPSIS), 0)) + _ELLIPSIS[: max(width, 0)]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of calls.

    Attributes:
        tokens: The number of input and output tokens; `None` if it is unknown for any call.
        dollars: The cost in US dollars; `None` if any call's price is unknown.
    """

    calls: int = 0
    tokens: int | None = 0
    dollars: float | None = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, calls: Sequence[MadeCall]) -> Cost:
        """Return the total cost of calls."""
        tokens = [
            None if c.input_tokens is None or c.output_tokens is None else c.input_tokens + c.output_tokens
            for c in calls
        ]
        dollars = [call.cost for call in calls]
        return cls(
            len(calls),
            None if None in tokens else sum(each or 0 for each in tokens),
            None if None in dollars else sum(each or 0.0 for each in dollars),
            sum(call.seconds or 0.0 for call in calls),
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of a stepper at one checkpoint of a branch.

    Attributes:
        branch: The branch's name.
        number: The checkpoint's number in the scenario, in the order of creation.
        checkpoint: Its id.
        kind: `input` (the initial state), `step` (nodes ran), `edit` (the state was edited), or `fork` (LangGraph's
            marker of a rewind).
        ran: The nodes that ran immediately before.
        next: The nodes that run next; none at the end.
        why: For each of the next nodes, the reason why it runs.
        changes: The differences from the previous checkpoint.
        calls: The calls of the nodes that ran.
        counts: The progress of the conversation, in the recipe's units.
        state: The values of the graph's channels.
        faults: The faults of the conversation so far.
        transcript: The conversation so far, or its outline for recipes that have one.
    """

    branch: str
    number: int
    checkpoint: str
    kind: str
    ran: tuple[str, ...]
    next: tuple[str, ...]
    why: Mapping[str, str]
    changes: Sequence[Change]
    calls: Sequence[StepCall]
    counts: Mapping[str, int]
    state: Mapping[str, Any]
    faults: Sequence[DialogueFault] = ()
    transcript: Sequence[Line] | Outline = field(default_factory=tuple)

    @property
    def is_end(self) -> bool:
        """Return whether no node runs next."""
        return not self.next

    @property
    def title(self) -> str:
        """Return which nodes ran, or what else led to the checkpoint."""
        what = {"edit": "the state was edited", "input": "the input", "fork": "rewound to"}.get(self.kind, "")
        ran = format_nodes(self.ran)
        return f"{ran} ran" if ran else what or "nothing has been played yet"

    @property
    def reasons(self) -> Mapping[str, Sequence[str]]:
        """Return the next nodes by the reason why they run."""
        return group_pairs((self.why.get(node, ""), node) for node in self.next)

    @property
    def cost(self) -> Cost:
        """The cost of the step when it was first played."""
        return Cost.of(self.calls)


_MAX_LISTED_NODES = 3
"""The maximum number of nodes that are listed for one step."""


def format_label(stop: Stop) -> str:
    """Format a stop as one line: the nodes that ran, and the first change."""
    what = "edit" if stop.kind == "edit" else format_nodes(stop.ran)
    if not what:
        return "the input" if stop.kind == "input" else "the beginning"
    change = next((each for each in stop.changes if each.after is not ABSENT), None)
    if change is None:
        return what
    if isinstance(change.after, BaseMessage) and change.before is ABSENT:
        return f"{what}: {' '.join(str(to_plain(change.after)['content']).split())}"
    return f"{what}: {format_change(change, None)}"


def format_nodes(nodes: Sequence[str]) -> str:
    """Format the names of nodes that ran together; if there are many, only the first one and the number of others."""
    shown = [node for node in nodes if not node.startswith("__")]
    if len(shown) > _MAX_LISTED_NODES:
        return f"{shown[0]} and {len(shown) - 1} more"
    return ", ".join(shown)


def format_cost(cost: Cost) -> str:
    """Format a cost, with its number of tokens."""
    tokens = "tokens unknown" if cost.tokens is None else f"{cost.tokens:,} tokens"
    dollars = "price unknown" if cost.dollars is None else f"${cost.dollars:,.4f}"
    return f"{cost.calls} {'call' if cost.calls == 1 else 'calls'}, {tokens}, {dollars}, {cost.seconds:.2f} s"
