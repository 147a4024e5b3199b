"""A part of a plan, drawn with the run's seed and spread evenly over what its scenarios show of themselves."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Scenario

Values = tuple[str, ...]
"""A scenario's value of each facet by which is drawn."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn.

    Attributes:
        positions: Places in the whole plan, in its order.
        total: How many scenarios the whole plan has.
        covered: Of each facet, how many of its values were drawn and how many there are.
    """

    positions: Sequence[int]
    total: int
    covered: dict[str, tuple[int, int]]

    def told(self) -> str:
        """A line on it."""
        parts = [
            f"{name} {drawn:,} of {there:,}" if drawn < there else f"{name} all {there:,}"
            for name, (drawn, there) in self.covered.items()
        ]
        spread = f", spread over the facets ({', '.join(parts)})" if parts else ""
        return f"sample: {len(self.positions):,} of {self.total:,} scenarios, drawn with the seed{spread}"


def draw_sample(scenarios: Iterable[Scenario], size: int, first: str | None, draw: random.Random) -> Drawn:
    """Draw scenarios so that each value of each facet comes up as often as its share of the plan, as nearly as can be.

    One is drawn after the other: by the facet that matters most the value that lacks most, among what has that value
    the same by the next facet, and so on; chance decides between equals. So a smaller sample is part of a larger one.
    What is held is a small tuple for each scenario of the plan, not the scenario.

    Args:
        scenarios: The whole plan.
        size: How many; all if there are fewer.
        first: The facet that matters most, e.g. whose people an export splits; then come those of few values.
        draw: The random stream.
    """
    rows = [{name: _key(value) for name, value in scenario.facets().items()} for scenario in scenarios]
    shares = {
        name: Counter(row.get(name, "") for row in rows) for name in dict.fromkeys(key for row in rows for key in row)
    }
    telling = [name for name, counts in shares.items() if 1 < len(counts) < len(rows)]
    telling.sort(key=lambda name: (name != first, len(shares[name])))
    order = list(range(len(rows)))
    draw.shuffle(order)
    values = [tuple(row.get(name, "") for name in telling) for row in rows]
    root = _Cell()
    for position in order:
        root.add(position, values[position])
    counts = [shares[name] for name in telling]
    taken: list[Counter[str]] = [Counter() for _ in telling]
    positions: list[int] = []
    while len(positions) < min(size, len(rows)):
        positions.append(root.take(len(positions) + 1, len(rows), counts, taken))
    covered = {name: (len(taken[place]), len(counts[place])) for place, name in enumerate(telling)}
    return Drawn(sorted(positions), len(rows), covered)


@dataclass(slots=True)
class _Cell:
    """Scenarios that are alike in the first facets: those of each value of the next one; or, at the end, themselves."""

    parts: dict[str, _Cell] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)

    def add(self, position: int, values: Values) -> None:
        cell = self
        for value in values:
            cell = cell.parts.setdefault(value, _Cell())
        cell.held.append(position)

    def take(self, nth: int, total: int, shares: Sequence[Counter[str]], taken: Sequence[Counter[str]]) -> int:
        """Take one scenario away, at each facet of the value that lacks most in all that was taken; returns it."""
        if not shares:
            return self.held.pop()
        share, so_far = shares[0], taken[0]
        # Values stand in the order in which chance brought them, and the first of equals is taken.
        value = max(self.parts, key=lambda each: share[each] * nth - so_far[each] * total)
        so_far[value] += 1
        part = self.parts[value]
        position = part.take(nth, total, shares[1:], taken[1:])
        if not part.parts and not part.held:
            del self.parts[value]
        return position


def _key(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
