"""Comparison of two branches: the conversations, the judgements, the costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from dialoom.graphs import Judgement, Line, Outline

from .stop import Cost
from .view import SessionView

SpokenLine = tuple[str, str]
"""The speaker of a line (or empty), and its text."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines side by side, one of each branch; `None` where a branch has none."""

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
        stands: The number of the current checkpoint of each, and whether it is an end.
        shared: Number of steps that they have in common.
        lines: The conversations, line by line.
        judgements: Each judged item with both judgements (`None` where a branch has none).
        costs: The cost of each after the fork.
        before: The cost of the shared steps.
    """

    names: tuple[str, str]
    stands: tuple[tuple[int, bool], tuple[int, bool]]
    shared: int
    lines: Sequence[Pair]
    judgements: Sequence[tuple[str, Judgement | None, Judgement | None]]
    costs: tuple[Cost, Cost]
    before: Cost


async def diff(left: SessionView, right: SessionView) -> Difference:
    """Compare the current checkpoints of two sessions or views over one run.

    Args:
        left: A branch.
        right: Another one, or another place on the same.
    """
    ours, theirs = await left.stops(), await right.stops()
    known = {stop.checkpoint for stop in theirs}
    shared = [stop for stop in ours if stop.checkpoint in known]
    parted = len(shared)
    sums = [Cost.of([call for stop in stops for call in stop.calls]) for stops in (ours[parted:], theirs[parted:])]
    stands = [(stops[-1].number, stops[-1].is_end) for stops in (ours, theirs)]
    return Difference(
        names=(left.branch, right.branch),
        stands=(stands[0], stands[1]),
        shared=sum(stop.kind == "step" and bool(stop.ran) and stop.ran != ("__start__",) for stop in shared),
        lines=_beside(spoken(ours[-1].transcript), spoken(theirs[-1].transcript)),
        judgements=_judged((await left.outcome()).judgements, (await right.outcome()).judgements),
        costs=(sums[0], sums[1]),
        before=Cost.of([call for stop in shared for call in stop.calls]),
    )


def spoken(transcript: Sequence[Line] | Outline) -> list[SpokenLine]:
    """Return a transcript as lines; those of an outline are indented by two spaces per level."""
    if not isinstance(transcript, Outline):
        return [(line.role, line.spoken) for line in transcript]
    found: list[SpokenLine] = []

    def walk(outline: Outline, depth: int) -> None:
        found.append(("", "  " * depth + "".join(span.text for span in outline.spans)))
        for part in outline.parts:
            walk(part, depth + 1)

    walk(transcript, 0)
    return found


def _beside(left: Sequence[SpokenLine], right: Sequence[SpokenLine]) -> list[Pair]:
    """Pair lines by position if their speakers agree; else align equal lines."""
    if all(one[0] == other[0] != "" for one, other in zip(left, right, strict=False)):
        return [Pair(one, other) for one, other in zip_longest(left, right)]
    pairs: list[Pair] = []
    for _, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        pairs += [Pair(one, other) for one, other in zip_longest(left[a:b], right[c:d])]
    return pairs


def _judged(
    left: Sequence[Judgement], right: Sequence[Judgement]
) -> list[tuple[str, Judgement | None, Judgement | None]]:
    ours, theirs = ({_thing(judgement): judgement for judgement in each} for each in (left, right))
    return [(thing, ours.get(thing), theirs.get(thing)) for thing in dict.fromkeys([*ours, *theirs])]


def _thing(judgement: Judgement) -> str:
    turn = "" if judgement.turn is None else f" turn {judgement.turn}"
    return f"{judgement.metric} {judgement.target}{turn}"
