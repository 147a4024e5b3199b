"""Stops and costs in a few words, wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from .changes import ABSENT, change_text
from .stop import Cost, Stop
from .values import plain

_NODES = 3
"""So many nodes are named that ran together."""


def label(stop: Stop) -> str:
    """A stop in a line: the nodes that ran, and the first thing that came of them."""
    what = "edit" if stop.kind == "edit" else named(stop.ran)
    if not what:
        return "the input" if stop.kind == "input" else "the beginning"
    change = next((each for each in stop.changes if each.after is not ABSENT), None)
    if change is None:
        return what
    if isinstance(change.after, BaseMessage) and change.before is ABSENT:
        return f"{what}: {' '.join(str(plain(change.after)['content']).split())}"
    return f"{what}: {change_text(change, None)}"


def named(nodes: Sequence[str]) -> str:
    """Nodes that ran together; of many only the first."""
    shown = [node for node in nodes if not node.startswith("__")]
    if len(shown) > _NODES:
        return f"{shown[0]} and {len(shown) - 1} more"
    return ", ".join(shown)


def cost_text(cost: Cost) -> str:
    """What calls took, in words."""
    tokens = "tokens unknown" if cost.tokens is None else f"{cost.tokens:,} tokens"
    dollars = "price unknown" if cost.dollars is None else f"${cost.dollars:,.4f}"
    return f"{cost.calls} {'call' if cost.calls == 1 else 'calls'}, {tokens}, {dollars}, {cost.seconds:.2f} s"
