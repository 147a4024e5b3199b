"""Rows as a Parquet file: a first pass finds a schema that fits every row, a second one writes row groups.

The schema settles what JSON leaves open. A field that is absent in some rows is null there; verdicts and numbers in the
same field (as in judgements) become numbers, true as 1 and false as 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

from dialoom.runs.errors import RunError

_ROWS_PER_GROUP = 1000
_SCALARS = {
    bool: "verdict",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    tuple: "list",
    dict: "object",
}
_NUMBERS = {"verdict", "whole number", "number"}


class Column:
    """The kinds of values, and the nested fields, seen in one field over all rows."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.fields: dict[str, Column] = {}
        self.element: Column | None = None

    def see(self, value: Any) -> None:
        """Take a value into account."""
        if value is None:
            return
        self.kinds.add(_SCALARS.get(type(value), type(value).__name__))
        if isinstance(value, dict):
            for key, inner in value.items():
                if key not in self.fields:
                    self.fields[key] = Column()
                self.fields[key].see(inner)
        elif isinstance(value, list | tuple):
            self.element = self.element or Column()
            for inner in value:
                self.element.see(inner)

    def type(self, arrow: Any, place: str = "a row") -> Any:
        """Return the Arrow type that holds all values.

        Raises:
            RunError: If values of incompatible kinds occur in one field.
        """
        if self.kinds == {"object"}:
            inner = [(name, column.type(arrow, f"{name!r} of {place}")) for name, column in self.fields.items()]
            return arrow.struct(inner) if inner else arrow.null()
        if self.kinds == {"list"} and self.element is not None:
            return arrow.list_(self.element.type(arrow, f"an element of {place}"))
        if self.kinds and self.kinds <= _NUMBERS:
            alone = {"verdict": arrow.bool_, "whole number": arrow.int64}
            return alone.get(min(self.kinds), arrow.float64)() if len(self.kinds) == 1 else arrow.float64()
        if self.kinds == {"text"} or not self.kinds:
            return arrow.string() if self.kinds else arrow.null()
        raise RunError(
            f"{place} is {' and '.join(sorted(self.kinds))} in different rows; "
            "a Parquet column holds one kind, so take the encoding jsonl"
        )

    def fit(self, value: Any) -> Any:
        """Convert a value to the column's type."""
        if value is None or (isinstance(value, dict) and not self.fields):
            return None
        if isinstance(value, dict):
            return {key: self.fields[key].fit(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            assert self.element is not None, "lists have been seen here"
            return [self.element.fit(inner) for inner in value]
        return float(value) if len(self.kinds) > 1 else value


def check_installed() -> None:
    """Check that pyarrow is installed, before any work is done.

    Raises:
        RunError: If it is not.
    """
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise RunError("encoding parquet needs pyarrow: pip install 'dialoom[parquet]'", setting="encoding") from error


def columns_of(rows: Iterable[Any]) -> Column:
    """Return the schema that all rows share."""
    column = Column()
    for row in rows:
        column.see(row)
    return column


def write_parquet(rows: Iterator[Any], file: IO[bytes], shape: Column) -> None:
    """Write rows that were used to build `shape`.

    Raises:
        RunError: If they are not objects, or not of one schema.
    """
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    if shape.kinds != {"object"} or not shape.fields:
        raise RunError("a Parquet file needs rows that are objects with keys; take the encoding jsonl")
    schema = arrow.schema(list(shape.type(arrow)))
    with parquet.ParquetWriter(file, schema) as writer:
        while group := [shape.fit(row) for row in islice(rows, _ROWS_PER_GROUP)]:
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
