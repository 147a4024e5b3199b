"""Which combinations of two facets' values no dialogue has: what a set that should cover all of them lacks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Table

MOST_VALUES = 20
"""A facet of more values tells dialogues apart rather than sorts of them, and is left out."""

_SHOWN = 3


@dataclass(slots=True)
class Combinations:
    """The values of facets that have come up, and which of them together.

    Attributes:
        dialogues: How many were looked at.
        values: Of each facet, in the order in which they came up; `None` once they are too many.
        met: The pairs of values of each two facets.
    """

    dialogues: int = 0
    values: dict[str, dict[str, None] | None] = field(default_factory=dict)
    met: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)

    def add(self, facets: Mapping[str, Any]) -> None:
        """Those of one dialogue; it may have several values of one facet."""
        self.dialogues += 1
        told = {name: [str(each) for each in _several(value)] for name, value in facets.items() if value is not None}
        for name, values in told.items():
            known = self.values.setdefault(name, {})
            if known is not None:
                known.update(dict.fromkeys(values))
                if len(known) > MOST_VALUES:
                    self._forget(name)
        names = [name for name in told if self.values[name] is not None]
        for one, other in itertools.combinations(names, 2):
            self.met.setdefault((one, other), set()).update(itertools.product(told[one], told[other]))

    def table(self) -> Table:
        """A row for each two facets of which some combination is empty."""
        columns = ["of", "and", "combinations", "empty", "empty %", "such as"]
        table = Table("combinations", "Combinations that no dialogue has", columns)
        compared = 0
        for (one, other), met in self.met.items():
            left, right = self.values[one] or {}, self.values[other] or {}
            if len(left) < 2 or len(right) < 2 or len(left) * len(right) > self.dialogues:
                continue
            compared += 1
            empty = [pair for pair in itertools.product(left, right) if pair not in met]
            if empty:
                such = "; ".join(f"{first[:40]} with {second[:40]}" for first, second in empty[:_SHOWN])
                count = len(left) * len(right)
                table.rows.append([one, other, count, len(empty), len(empty) / count, such])
        table.notes.append(
            f"Of each two facets, of the values that come up at all; {compared:,} such pairs were looked at. Left out "
            f"are facets of one value or of more than {MOST_VALUES}, and pairs with more combinations than there are "
            "dialogues. Some combinations cannot be; it is for whoever knows them to say."
        )
        return table

    def _forget(self, name: str) -> None:
        self.values[name] = None
        self.met = {pair: met for pair, met in self.met.items() if name not in pair}


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
