"""Tables of reports, several of them side by side, and outlines of trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

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


def side_by_side(runs: Sequence[tuple[str, Sequence[Table]]]) -> list[Table]:
    """One list of tables from those of each run, whose label is given with them.

    Tables of the same name and columns become one, with a column `run`; rows that begin with the same texts (e.g. the
    same setting) stand together. Tables that differ in their columns stay apart, with the label in the title.
    """
    by_name: dict[str, list[tuple[str, Table]]] = {}
    for label, tables in runs:
        for table in tables:
            by_name.setdefault(table.name, []).append((label, table))
    together: list[Table] = []
    for same in by_name.values():
        alike = len({tuple(table.columns) for _, table in same}) == 1
        together += [_merged(same)] if alike else _apart(same)
    return together


def _merged(tables: Sequence[tuple[str, Table]]) -> Table:
    first = tables[0][1]
    groups: dict[tuple[str, ...], list[Sequence[Cell]]] = {}
    for label, table in tables:
        for row in table.rows:
            groups.setdefault(_group(row), []).append([label, *row])
    notes = list(dict.fromkeys(note for _, table in tables for note in table.notes))
    rows = [row for group in groups.values() for row in group]
    return replace(first, columns=["run", *first.columns], rows=rows, notes=notes)


def _apart(tables: Sequence[tuple[str, Table]]) -> list[Table]:
    return [
        replace(table, name=f"{table.name}-{number}", title=f"{table.title} ({label})")
        for number, (label, table) in enumerate(tables, start=1)
    ]


def _group(row: Sequence[Cell]) -> tuple[str, ...]:
    """The texts that a row begins with."""
    texts = [cell if isinstance(cell, str) else None for cell in row]
    return tuple(text for text in texts[: texts.index(None) if None in texts else None] if text is not None)


Style = Literal["plain", "heading", "user", "assistant", "note", "new"]

Kind = Literal["line", "step", "option", "branch"]
"""What a part of an outline is, for whoever draws it as a tree: steps follow each other; the options of a step stand
side by side in it; and where it forks, branches stand side by side after it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text and what it is: a line of a `user` or an `assistant`, a `note`, or something `new`."""

    text: str
    style: Style = "plain"


@dataclass(slots=True)
class Outline:
    """A line and what stands below it.

    Attributes:
        spans: The line, in pieces.
        parts: Outlines one step further in.
        kind: What it is.
        is_taken: Of an option, that it was gone on from; of a step or a branch, that the outcome's messages lead there.
        where: A step's place, as the faults that stand there name it.
    """

    spans: list[Span]
    parts: list[Outline] = field(default_factory=list)
    kind: Kind = "line"
    is_taken: bool = False
    where: str = ""

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(span.text for span in self.spans)

    @property
    def is_tree(self) -> bool:
        """Whether there are steps in it."""
        return any(part.kind == "step" or part.is_tree for part in self.parts)
