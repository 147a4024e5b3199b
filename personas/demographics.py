"""Sources of people's demographics: tables of weights, or rows of a survey or a census.

A `.toml` file holds a list of tables (`[[draw]]`), applied in the file's order; each gives the weights of a key's
values, optionally only for people with certain other values (`given`). A key is drawn from the first table that
matches. A `.csv` file holds one person per row, with a column for each key, and optionally a column `weight`; other
columns are ignored.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, read_text, read_toml

from .profile import Demographics

KEYS = tuple(name for name in Demographics.model_fields if name != "user_id")
_SHIPPED = Path(__file__).parent / "samples" / "demographics.toml"
_LONGEST = 1_000
"""The most characters of a value; a longer one is an unclosed quote, or no demographics."""
_WEIGHT = "weight"


class DemographicSource(Protocol):
    """A source of demographics."""

    def people(self, draw: random.Random) -> Iterator[dict[str, str]]:
        """Yield people's values by key, without end; equal streams yield the same people in the same order."""
        ...


def read_demographics(path: Path | None = None) -> DemographicSource:
    """Return the source that a file holds, or the shipped one without a file.

    Raises:
        DataError: If the file cannot be read, lacks a key, or holds a weight or a value that cannot be used.
    """
    path = path or _SHIPPED
    if path.suffix.casefold() not in (".toml", ".csv"):
        raise DataError(path, "demographics are tables of weights in a .toml file, or people in a .csv file")
    return _tables(path) if path.suffix.casefold() == ".toml" else _rows(path)


class _Draw(BaseModel):
    """The weights of a key's values, for people with one of the given values of other keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    key: str
    given: Mapping[str, tuple[str, ...]] = {}
    weights: Annotated[Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=1)]

    def fits(self, person: Mapping[str, str]) -> bool:
        return all(person.get(key) in values for key, values in self.given.items())


class _Tables(BaseModel):
    """Tables of weights."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    draw: tuple[_Draw, ...]

    def people(self, draw: random.Random) -> Iterator[dict[str, str]]:
        while True:
            person: dict[str, str] = {}
            for table in self.draw:
                if table.key not in person and table.fits(person):
                    (person[table.key],) = draw.choices([*table.weights], [*table.weights.values()])
            yield {key: person[key] for key in KEYS}


class _Rows(BaseModel):
    """The rows of a survey; without weights, no row is repeated before all have been used."""

    model_config = ConfigDict(frozen=True)
    rows: tuple[dict[str, str], ...]
    weights: tuple[float, ...] | None

    def people(self, draw: random.Random) -> Iterator[dict[str, str]]:
        while True:
            if self.weights is None:
                yield from draw.sample(self.rows, len(self.rows))
            else:
                yield from draw.choices(self.rows, self.weights)


def _tables(path: Path) -> _Tables:
    try:
        tables = _Tables.model_validate(read_toml(path))
    except ValidationError as error:
        place, message, value = first_problem(error)
        raise DataError(path, f"{place!r} is {value!r:.60}: {message}") from error
    named = [table.key for table in tables.draw]
    _check_keys(path, named, "table")
    for number, table in enumerate(tables.draw):
        place = f"'draw.{number}' ({table.key})"
        if not all(value.strip() for value in table.weights):
            raise DataError(path, f"{place}: a value is empty; write 'N/A' for what is not known")
        if not any(table.weights.values()):
            raise DataError(path, f"{place}: all weights are 0")
        if sum(table.weights.values()) == float("inf"):
            raise DataError(path, f"{place}: the weights add up to no number; give smaller ones")
        if unknown := [key for key in (table.key, *table.given) if key not in KEYS]:
            raise DataError(path, f"{place}: there is no key {unknown[0]!r}; there are {', '.join(KEYS)}")
        if later := [key for key in table.given if key not in named[:number]]:
            raise DataError(path, f"{place}: {later[0]!r} is given before it is drawn; put its table first")
    for key in KEYS:
        if all(table.given for table in tables.draw if table.key == key):
            raise DataError(path, f"each table of {key!r} is for some people alone; add a last one without 'given'")
    return tables


def _rows(path: Path) -> _Rows:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    rows, weights = [], []
    try:
        named = reader.fieldnames or ()
        _check_keys(path, named, "column")
        if twice := [name for name in (*KEYS, _WEIGHT) if list(named).count(name) > 1]:
            raise DataError(path, f"has two columns of {twice[0]!r}", 1)
        for row in reader:
            rows.append(_person(path, row, reader.line_num))
            weights.append(_weight(path, row.get(_WEIGHT, "1"), reader.line_num))
    except csv.Error as error:
        raise DataError(path, f"no CSV: {error}", reader.line_num) from error
    if not any(weights):
        raise DataError(path, "holds nobody, or nobody with a weight above 0")
    if sum(weights) == float("inf"):
        raise DataError(path, "the weights add up to no number; give smaller ones")
    return _Rows(rows=tuple(rows), weights=tuple(weights) if _WEIGHT in named else None)


def _person(path: Path, row: Mapping[str | None, Any], line: int) -> dict[str, str]:
    """Return the values of a row; reject rows with too many columns: an unquoted comma would shift all that follow."""
    if more := row.get(None):
        raise DataError(path, f"{more[0]!r} is beyond the last column; put a value with a comma in quotes", line)
    values = {key: (row[key] or "").strip() for key in KEYS}
    if long := [key for key, value in values.items() if len(value) > _LONGEST]:
        raise DataError(
            path, f"{long[0]!r} is {len(values[long[0]]):,} characters long; a value has at most {_LONGEST:,}", line
        )
    if empty := [key for key, value in values.items() if not value]:
        raise DataError(path, f"{empty[0]!r} is empty; write 'N/A' for what is not known", line)
    return values


def _weight(path: Path, text: str | None, line: int) -> float:
    try:
        weight = float(text or "")
    except ValueError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise DataError(path, f"the weight is {text!r}; it is a number from 0", line)
    return weight


def _check_keys(path: Path, named: Sequence[str], what: str) -> None:
    if missing := [key for key in KEYS if key not in named]:
        raise DataError(path, f"has no {what} of {', '.join(map(repr, missing))}")
