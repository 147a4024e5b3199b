"""A table of a report, free of how it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dialoom.graphs.outcome import Episode

from .statistics import FEWEST, Estimate

Cell = str | int | float | Estimate | None

Runs: TypeAlias = Sequence[tuple[str, Iterable[Episode]]]
"""Each run's label, such as its model, and its finished scenarios; these are read once, one at a time."""

CONSTANT = "†"
"""Marks a figure whose scores are all equal."""

CONSTANT_NOTE = (
    f"{CONSTANT} Constant: the judge gave the same score every time (marked from {FEWEST} scores on; a difference, if "
    "it did in either run). The figure does not show that the judge distinguishes. It can be right, as of verdicts on "
    "an assistant that always reaches the goal: read some of the judge's explanations, or compare it with people's "
    "labels or another judge."
)
"""Stands below a table with such a figure."""


@dataclass(frozen=True, slots=True)
class FacetColumn:
    """Which facet of scenarios a column's texts are values of.

    Attributes:
        name: The facet.
        values: Its values by the texts, where the column says them in other words.
    """

    name: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """Which scenarios alone count in a figure: those with a score of a metric, in a state, or with an ending.

    Attributes:
        metric: The metric; empty for any.
        target: Whose part was judged.
        state: `done` or `failed`; empty for both.
        ended_by: How they ended; empty for any ending.
    """

    metric: str = ""
    target: str = ""
    state: str = ""
    ended_by: str = ""


@dataclass(slots=True)
class Table:
    """Rows of cells under named columns.

    Attributes:
        name: Short, fit for a file name.
        title: What a reader sees above it.
        columns: Names; a column named with a `%` shows fractions as percentages.
        rows: A cell per column; `None` where there is nothing to say.
        warnings: What makes its figures misleading; `headnotes` are these as lines above them.
        notes: Lines below it; `footnotes` adds what marks in cells mean.
        decimals: How many decimals a column's figures are shown with, where it is not 2 (1 for percentages).
        facets: Of columns of texts, the facet that they hold, where it has another name than the column or other words;
            `None` where the texts do not tell scenarios apart, such as the name of a model.
        chosen: Of columns of figures, the facets of the scenarios that alone count in them, as texts; `None` where
            facets do not tell which these are.
        counted: Of columns of figures, which scenarios alone count in them, where not all of the row do.
        scales: Of columns of figures, the lowest and the highest value that there can be.
        where: What holds of the conversations that alone count in it, as an expression over what a run holds
            of each; empty if all count.
        where_of: The same of columns of figures that `counted` cannot say; by a text of the row where it depends on
            that.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decimals: Mapping[str, int] = field(default_factory=dict)
    facets: Mapping[str, FacetColumn | None] = field(default_factory=dict)
    chosen: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    where: str = ""
    where_of: dict[str, str | Mapping[str, str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def headnotes(self) -> list[str]:
        """The lines to show above its figures."""
        return [f"Warning: {each}" for each in self.warnings]

    @property
    def footnotes(self) -> list[str]:
        """The lines to show below it: its notes, and what the marks in its cells mean."""
        has_constant = any(isinstance(cell, Estimate) and cell.is_constant for row in self.rows for cell in row)
        return [*self.notes, *([CONSTANT_NOTE] if has_constant else [])]
