"""Error labels of failed samples: one of four, by a rule. The protocol, section 8, after the paper's error analysis.

A judge may label samples, too; the rule uses only the calls, as a second opinion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dialoom.personas.apollo import CallError, canonical
from dialoom.personas.apollo.calls import arguments_of
from dialoom.personas.apollo.flows import FLOWS, GoldCall
from dialoom.personas.apollo.flows.expressions import If
from dialoom.personas.apollo.scores import equal

UNHELPFUL, UNAWARE, HALLUCINATED, TOOL_RELATED = "unhelpful", "unawareness", "hallucination", "tool_related"
LABELS: Mapping[str, str] = {
    UNHELPFUL: "the request is misread, or answered by words without substance",
    UNAWARE: "nothing is made of the history: what the user prefers is left out of the calls, or asked for",
    HALLUCINATED: "a call goes by a preference that the user does not have",
    TOOL_RELATED: "a call is wrong where no preference decides, such as its day or place, or a tool is out of place",
}
"""The labels with their meanings; the first that applies is used."""

_OF_PREFERENCES = ("preference", "output")
"""The provenances of arguments that a preference decides, directly or by the choice of a tool's row."""


def label_of(flow: str, gold: Sequence[GoldCall], made: Sequence[Mapping[str, Any]], asked: bool) -> str | None:
    """Return the label of a sample by its calls; `None` if they are the gold calls.

    Args:
        flow: The flow of its request.
        gold: The expected calls.
        made: The agent's calls.
        asked: Whether the agent asked the user something.
    """
    pairs = list(zip(gold, made, strict=False))
    place = next((at for at, (right, call) in enumerate(pairs) if not _is_equal(right, call)), len(pairs))
    if place == len(gold) == len(made):
        return None
    if asked or not made:
        return UNAWARE if asked else UNHELPFUL
    return _label_of_call(flow, place, *pairs[place]) if place < len(pairs) else TOOL_RELATED


def kappa(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return Cohen's kappa of two raters' labels (J. Cohen, 1960); `None` where chance alone would always agree."""
    if not pairs:
        return None
    ones, others = (Counter(labels) for labels in zip(*pairs, strict=True))
    observed = sum(one == other for one, other in pairs) / len(pairs)
    chance = sum(ones[label] * others[label] for label in ones) / len(pairs) ** 2
    return (observed - chance) / (1 - chance) if chance < 1 else None


def _label_of_call(flow: str, place: int, right: GoldCall, call: Mapping[str, Any]) -> str:
    """Return the label of the first wrong call."""
    if call["name"] != right.name:
        # After a lookup, the agent has applied another rule: it took the other branch, or decided too early.
        return HALLUCINATED if place and call["name"] in _ends(flow) else TOOL_RELATED
    try:
        given = arguments_of(call)
    except CallError:
        return TOOL_RELATED
    for name in right.arguments:
        is_preferred = right.provenance[name] in _OF_PREFERENCES
        if name not in given and is_preferred and not _is_equal(right, _with(right, name, None)):
            return UNAWARE
        if not _is_equal(right, _with(right, name, given.get(name))):
            return HALLUCINATED if is_preferred else TOOL_RELATED
    return TOOL_RELATED


def _with(right: GoldCall, name: str, value: Any) -> dict[str, Any]:
    """Return the call with one argument replaced by the agent's."""
    return {"name": right.name, "arguments": {**right.arguments, name: value}}


def _is_equal(right: GoldCall, call: Mapping[str, Any]) -> bool:
    try:
        return equal(canonical(call), canonical(right.call()))
    except CallError:
        return False


def _ends(flow: str) -> set[str]:
    """Return the tools of both branches of a preference's rule."""
    last = FLOWS[flow].last
    return {last.then.tool, last.otherwise.tool} if isinstance(last, If) else set()
