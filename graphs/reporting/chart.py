"""Charts of a report, independent of their rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .statistics import Estimate


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A straight line y = intercept + slope * x, and its label."""

    intercept: float
    slope: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together.

    Attributes:
        label: The legend's text.
        x: The horizontal positions.
        y: The values; `None` where missing.
        low: The lower ends of the intervals, as long as `y`; empty without intervals.
        high: The upper ends.
        line: A line fitted to the points.
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
        """Return the series of estimates: their means and intervals."""
        y, low, high = ([getattr(each, name) if each else None for each in found] for name in ("mean", "low", "high"))
        return cls(label, x, y, low, high, line)


Kind = Literal["lines", "points", "bars", "stacked"]
"""Lines through the points of each series; points only; bars side by side; stacked bars."""


@dataclass(slots=True)
class Chart:
    """Series over common axes.

    Attributes:
        name: A short name, usable as a file name; a chart of a table's figures has the table's name.
        title: The title.
        x_label: The label of the horizontal axis, with the unit.
        y_label: The label of the vertical axis, with the unit.
        series: The series, in the order of the legend.
        y_range: The range of the vertical axis; by default that of the values.
        notes: Lines below the chart.
        kind: The way in which the series are drawn.
        names: The labels of the positions 0, 1, 2, ... of a horizontal axis without numbers.
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
