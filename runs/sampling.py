"""A part of a plan, drawn with the run's seed and spread evenly over what its scenarios show of themselves."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Scenario

Values = tuple[str, ...]
"""A scenario's value of each facet by which is drawn."""

_MOST_PAIRS = 10_000
"""Two facets of more pairs of values than that are not kept together: hardly any pair would come up twice."""


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

    So do two values of two facets together, and those of all facets that matter most, so that none stands for
    another: methods that came up with certain topics only could not be compared. One is drawn after the other, facet
    by facet, by what lacks most so far; chance decides between equals. So a smaller sample is part of a larger one.
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
    balance = _Balance(values)
    positions = [_taken(root, len(telling), balance) for _ in range(min(size, len(rows)))]
    covered = {name: (balance.drawn(place), len(shares[name])) for place, name in enumerate(telling)}
    return Drawn(sorted(positions), len(rows), covered)


@dataclass(slots=True)
class _Cell:
    """Scenarios that are alike in the first facets: those of each value of the next one; or, at the end, themselves."""

    parts: dict[str, _Cell] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)
    there: int = 0
    taken: int = 0

    def add(self, position: int, values: Values) -> None:
        cell = self
        for value in values:
            cell = cell.parts.setdefault(value, _Cell())
            cell.there += 1
        cell.held.append(position)


class _Balance:
    """How often a facet's values, and pairs of two facets' values, are in the plan and in what was taken of it."""

    def __init__(self, rows: Sequence[Values]) -> None:
        facets = range(len(rows[0]) if rows else 0)
        self._total, self._nth = len(rows), 1
        self._there: dict[tuple[int, ...], Counter[Values]]
        self._there = {(facet,): Counter((row[facet],) for row in rows) for facet in facets}
        sizes = [len(self._there[facet,]) for facet in facets]
        self._before = [[at for at in range(facet) if sizes[at] * sizes[facet] <= _MOST_PAIRS] for facet in facets]
        for facet, others in enumerate(self._before):
            for other in others:
                self._there[other, facet] = Counter((row[other], row[facet]) for row in rows)
        self._taken: dict[tuple[int, ...], Counter[Values]] = {facets: Counter() for facets in self._there}

    def best(self, chosen: Sequence[str], parts: Mapping[str, _Cell]) -> str:
        """The value of the next facet that goes best with those chosen of the facets before it; of equals the first.

        A value that has its share already is none, unless all have: so what is chosen decides only in which order
        values come up, and not how often.
        """
        facet = len(chosen)
        lacks = {value: self._lack((facet,), (value,)) for value in parts}
        wanted = [value for value, lack in lacks.items() if lack > 0] or list(lacks)

        def place(value: str) -> tuple[int, int]:
            pairs = (self._lack((other, facet), (chosen[other], value)) for other in self._before[facet])
            together = parts[value].there * self._nth - parts[value].taken * self._total
            return sum(pairs) + together, lacks[value]

        return max(wanted, key=place)

    def take(self, row: Sequence[str]) -> None:
        """Count a scenario as taken."""
        for facets, taken in self._taken.items():
            taken[tuple(row[facet] for facet in facets)] += 1
        self._nth += 1

    def drawn(self, facet: int) -> int:
        """How many of a facet's values have come up."""
        return len(self._taken[facet,])

    def _lack(self, facets: tuple[int, ...], values: Values) -> int:
        """How much is missing of the share that the next one taken completes, in parts of a scenario."""
        return self._there[facets][values] * self._nth - self._taken[facets][values] * self._total


def _taken(root: _Cell, facets: int, balance: _Balance) -> int:
    """Take one scenario away; returns its place."""
    way: list[tuple[_Cell, str]] = []
    cell = root
    for _ in range(facets):
        # Values stand in the order in which chance brought them, and the first of equals is taken.
        value = balance.best([each for _, each in way], cell.parts)
        way.append((cell, value))
        cell = cell.parts[value]
        cell.taken += 1
    position = cell.held.pop()
    balance.take([value for _, value in way])
    for above, value in reversed(way):
        if not (above.parts[value].parts or above.parts[value].held):
            del above.parts[value]
    return position


def _key(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
