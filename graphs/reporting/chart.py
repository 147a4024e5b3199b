"""A chart of a report, free of what draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .statistics import Estimate


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A straight line y = intercept + slope * x, and what to say of it."""

    intercept: float
    slope: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together.

    Attributes:
        label: What they are the points of.
        x: Where they stand.
        y: Their values; `None` where there is none.
        low: The lower ends of their intervals, as long as `y`; empty if there are no intervals.
        high: The upper ends.
        line: A line fitted through them.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    line: FittedLine | None = None

    @classmethod
    def of(
        cls, label: str, x: Sequence[float], found: Sequence[Estimate | None], line: FittedLine | None = None
    ) -> Series:
        """Return the series of estimates: their means with the ends of their intervals."""
        y, low, high = ([getattr(each, name) if each else None for each in found] for name in ("mean", "low", "high"))
        return cls(label, x, y, low, high, line)


Kind = Literal["lines", "points", "bars", "stacked"]
"""Lines through the points of each series; points alone; bars beside each other; bars on top of each other."""


@dataclass(slots=True)
class Chart:
    """Series over common axes.

    Attributes:
        name: Short, fit for a file name; a chart that shows a table's figures has the table's name.
        title: What a reader sees above it.
        x_label: What the horizontal axis means, with the unit.
        y_label: What the vertical axis means, with the unit.
        series: What is shown, in the order of the legend.
        y_range: Where the vertical axis begins and ends; by default where the values do.
        notes: Lines below it.
        kind: How the series are drawn.
        names: What stands below the places 0, 1, 2, ... of the horizontal axis, where these are no numbers.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: list[Series] = field(default_factory=list)
    y_range: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)
    kind: Kind = "lines"
    names: Sequence[str] = ()
