"""Scores of an agent's calls in comparison with the gold calls."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .calls import CallError, ToolCall, arguments_of, canonical
from .tools import TOOLS, Value

Calls = Sequence[Mapping[str, Any]]


class CallScores(NamedTuple):
    """Two measures of the paper (section 3.3), and additional ones.

    Attributes:
        accuracy: Whether the calls are the gold ones: number, order, names and arguments.
        f1: Harmonic mean of two shares: the calls made that are among the gold ones, and the gold ones that are among
            the calls made. Order and repeats do not matter.
        strict: Whether they are equal as JSON, without a canonical form.
        any_order: Whether they are the same calls in any order.
        f1_multiset: F1 in which a repeat counts once.
        actions: Whether the calls that order, book or send are the same, in any order.
        stale: Whether they follow an earlier preference; None if there was none.
    """

    accuracy: bool
    f1: float
    strict: bool
    any_order: bool
    f1_multiset: float
    actions: bool
    stale: bool | None


def compare(made: Calls, gold: Calls, earlier: Sequence[Calls] = ()) -> CallScores:
    """Return the scores of an agent's calls.

    A call without a canonical form (unknown tool, no JSON, a missing, unknown or invalid argument) equals nothing.

    Args:
        made: The agent's calls, in order: `name` and `arguments`, an object or its JSON text.
        gold: The expected calls.
        earlier: The expected calls of outdated preferences.

    Raises:
        CallError: If a gold call cannot run.
    """
    right = [canonical(call) for call in gold]
    done = [_canonical_or_none(call) for call in made]
    common = _common(done, right)
    writing = [call for call, raw in zip(done, made, strict=True) if _writes(raw)]
    right_writing = [call for call in right if TOOLS[call.name].writes]
    return CallScores(
        accuracy=_same(done, right),
        f1=_f1(
            sum(any(equal(call, other) for other in right) for call in done) / len(done) if done else 0.0,
            sum(any(equal(call, other) for other in done) for call in right) / len(right) if right else 0.0,
        ),
        strict=[_raw(call) for call in made] == [_raw(call) for call in gold],
        any_order=common == len(done) == len(right),
        f1_multiset=_f1(common / len(done) if done else 0.0, common / len(right) if right else 0.0),
        actions=_common(writing, right_writing) == len(writing) == len(right_writing),
        stale=any(_same(done, [canonical(call) for call in calls]) for calls in earlier) if earlier else None,
    )


def equal(one: ToolCall | None, other: ToolCall | None) -> bool:
    """Return whether two calls in canonical form are equal; None, for a call without one, equals nothing."""
    if one is None or other is None or one.name != other.name:
        return False
    return all(_equal_values(value, other.arguments[name]) for name, value in one.arguments.items())


def _equal_values(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def _canonical_or_none(call: Mapping[str, Any]) -> ToolCall | None:
    try:
        return canonical(call)
    except CallError:
        return None


def _same(made: Sequence[ToolCall | None], gold: Sequence[ToolCall]) -> bool:
    return len(made) == len(gold) and all(map(equal, made, gold))


def _common(made: Sequence[ToolCall | None], gold: Sequence[ToolCall]) -> int:
    """Return how many calls can be paired with an equal gold call, each used once."""
    left = list(gold)
    for call in made:
        for place, other in enumerate(left):
            if equal(call, other):
                del left[place]
                break
    return len(gold) - len(left)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _writes(call: Mapping[str, Any]) -> bool:
    name = call.get("name")
    return isinstance(name, str) and name in TOOLS and TOOLS[name].writes


def _raw(call: Mapping[str, Any]) -> str | None:
    try:
        return json.dumps([call.get("name"), arguments_of(call)], sort_keys=True)
    except (CallError, TypeError):
        return None  # never equal to a gold call
