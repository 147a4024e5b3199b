"""The tables of several runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .table import Cell, Table


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
