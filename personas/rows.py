"""Rows of people and tasks, read from files or Python values, and sources of people's demographics."""

from __future__ import annotations

import csv
import itertools
import math
import random
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from dialoom.errors import Advice
from dialoom.inputs import (
    DataError,
    Record,
    open_input,
    parse_json,
    read_json,
    read_lines,
    read_toml,
    read_yaml,
    validate_model,
)
from dialoom.text import to_well_formed_value

from .profile import Demographics

Row = dict[str, Any]
NumberedRow = tuple[int, Row]
"""A row with its place in the source: the line in a text file, otherwise the row's number, from 1."""

_DELIMITERS = ",;\t|"
_FORMATS = ".csv, .tsv, .jsonl, .json, .parquet, .yaml, or a pool folder"
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_MAX_CELL_CHARACTERS = 2**20
_UTF8_REMEDY = "save it as UTF-8 (in Excel: 'CSV UTF-8')"


def read_rows(path: Path, text: str) -> Iterator[NumberedRow]:
    """Yield the rows of a file one at a time. Only YAML and JSON files are read as a whole.

    Args:
        path: A file whose suffix states its format, or a pool folder with one JSON Lines file.
        text: The name of the column for rows that consist of a single text.

    Raises:
        DataError: If the file cannot be read or has another format, or if a row is neither a mapping nor a string.
    """
    if path.is_dir():
        path = _find_only_file(path)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            rows: Iterable[tuple[int, Any]] = _read_csv(path)
        case ".jsonl" | ".ndjson":
            rows = _read_json_lines(path)
        case ".parquet":
            rows = enumerate(read_parquet_rows(path), start=1)
        case ".yaml" | ".yml":
            rows = _number_rows(read_yaml(path), path)
        case ".json":
            rows = _number_rows(read_json(path), path)
        case suffix:
            raise DataError(path, f"the format {suffix!r} is not known; give {_FORMATS}")
    yield from ((number, normalize_row(row, text, path, number)) for number, row in rows)


def build_study_advice(path: Path, *columns: str) -> Advice | None:
    """Return the advice to make a study from a file that does not have the form expected by a reader of people.

    Args:
        path: The file.
        columns: The columns that the reader expects in JSON rows.

    Returns:
        `None` if the file has no rows, only texts, or JSON rows with all of these columns.
    """
    try:
        _, row = next(read_rows(path, "text"))
    except (DataError, StopIteration):
        return None
    if (path.suffix in _JSON_SUFFIXES and bool(columns) and row.keys() >= {*columns}) or row.keys() <= {"text"}:
        return None
    return Advice("new_study", "a study makes conversations from your own people", {"path": path})


@contextmanager
def add_study_advice(path: Path, *columns: str) -> Iterator[None]:
    """Add the advice of `study_advice` to errors that are raised for a file."""
    try:
        yield
    except DataError as error:
        error.advice = error.advice or build_study_advice(path, *columns)
        raise


def normalize_row(row: Any, text: str, place: str | Path, number: int) -> Row:
    """Return a row as plain values. Missing values become empty strings; values that JSON cannot hold become strings.

    Args:
        row: A mapping, or a string.
        text: The name of the column for a row that consists of a single text.
        place: The file or argument that contains the row, for error messages.
        number: The row's line or number there.

    Raises:
        DataError: If the row is neither a mapping nor a string.
    """
    if isinstance(row, str):
        row = {text: row}
    if not isinstance(row, Mapping):
        raise DataError(place, f"a row must be a mapping or a string, got {type(row).__name__}", number)
    return dict(to_well_formed_value({str(name): _normalize_value(value) for name, value in row.items()}))


def _normalize_value(value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, Mapping):  # NumPy's numbers
        value = value.item()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str | int | float):
        return value.strip() if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(name): _normalize_value(each) for name, each in value.items()}
    return [_normalize_value(each) for each in value] if isinstance(value, list | tuple) else str(value)


def _read_csv(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a CSV file with a header. The delimiter is the one that occurs most often in the header."""
    lines = (_decode_line(line, path, number) + "\n" for number, line in read_lines(path))
    first = next(lines, "")
    skipped = 0
    delimiter = max(_DELIMITERS, key="".join(first.split('"')[::2]).count)
    if first.lower().startswith("sep=") and len(first.strip()) == len("sep=,"):  # written by Excel
        delimiter, first, skipped = first[len("sep=")], next(lines, ""), 1
    if not first.strip():
        raise DataError(path, "the first line must name the columns, got an empty line", 1 + skipped)
    if "\r" in first:
        raise DataError(path, "lines end with a carriage return only; save the file with newlines", 1 + skipped)
    csv.field_size_limit(_MAX_CELL_CHARACTERS)
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    begun = 1 + skipped
    try:
        header = [name.strip() for name in next(reader)]
        _check_header(header, path, 1 + skipped)
        begun = reader.line_num + skipped + 1
        for cells in reader:
            number = reader.line_num + skipped
            begun = number + 1
            if not any(map(str.strip, cells)):
                continue
            _check_cells(cells, header, delimiter, path, number)
            yield number, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        if "unexpected end" in str(error):
            raise DataError(path, "a quote is opened in this row and never closed", begun) from error
        raise DataError(path, f"not CSV: {error}", reader.line_num + skipped) from error


def _check_cells(cells: list[str], header: list[str], delimiter: str, path: Path, line: int) -> None:
    if len(cells) != len(header):
        counts = f"{len(cells)} cell{'s' * (len(cells) != 1)}, but the header names {len(header)}"
        quotes = f"put cells that contain {delimiter!r} in quotes"
        remedy = quotes if len(cells) > len(header) else "add the missing cells, which may be empty"
        raise DataError(path, f"{counts}; {remedy}", line)


def _check_header(header: list[str], path: Path, line: int) -> None:
    if "" in header:
        raise DataError(path, f"column {header.index('') + 1} has no name; name it, or remove it", line)
    if again := [name for name in header if header.count(name) > 1]:
        raise DataError(path, f"two columns are named {again[0]!r}; rename one", line)


def _read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in read_lines(path):
        if line.strip():
            yield number, parse_json(_decode_line(line, path, number), path, number)


def _decode_line(line: bytes, path: Path, number: int) -> str:
    if number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DataError(path, f"is UTF-16; {_UTF8_REMEDY}", number)
    if b"\0" in line:
        raise DataError(path, f"not UTF-8 text: it contains a null character; {_UTF8_REMEDY}", number)
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8: byte {line[error.start]:#04x}; {_UTF8_REMEDY}", number) from error


def read_parquet_rows(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file.

    Raises:
        DataError: If pyarrow is not installed, or the file cannot be read.
    """
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise DataError(path, "Parquet needs pyarrow: pip install 'dialoom[parquet]', or give CSV") from error
    with open_input(path) as file:
        try:
            for batch in parquet.ParquetFile(file).iter_batches(500):
                yield from batch.to_pylist()
        except (OSError, ValueError) as error:  # pyarrow's errors derive from these
            raise DataError(path, f"not a readable Parquet file: {error}") from error


def _number_rows(value: Any, path: Path) -> Iterator[tuple[int, Any]]:
    if not isinstance(value, list):
        raise DataError(path, f"the file must contain a list of rows, got {type(value).__name__}")
    yield from enumerate(value, start=1)


def _find_only_file(folder: Path) -> Path:
    found = sorted(folder.glob("*.jsonl"))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise DataError(folder, f"the folder must hold one .jsonl file, got {names}; name the file instead")
    return found[0]


DEMOGRAPHIC_KEYS = tuple(name for name in Demographics.model_fields if name != "user_id")
_SAMPLE_DEMOGRAPHICS = Path(__file__).parent / "samples" / "demographics.toml"
_MAX_VALUE_CHARACTERS = 1_000
"""Maximum number of characters of a value. A longer value is an unclosed quote, or not a demographic value."""
_WEIGHT_COLUMN = "weight"


def read_demographics(path: Path | None = None) -> _WeightTables | _SurveyRows:
    """Return the source in a file; without a file, return the shipped source.

    Its method `people(draw)` yields people's values by key, endlessly. Equal streams yield equal people in the same
    order.

    Raises:
        DataError: If the file cannot be read, lacks a key, or contains an unusable weight or value.
    """
    path = path or _SAMPLE_DEMOGRAPHICS
    if path.suffix.casefold() not in (".toml", ".csv"):
        message = "demographics must be tables of weights in a .toml file, or people in a .csv file"
        raise DataError(path, message, advice=build_study_advice(path))
    return _read_weight_tables(path) if path.suffix.casefold() == ".toml" else _read_survey(path)


class _WeightTable(Record):
    """The weights of a key's values, for people who meet the conditions on other keys, if there are any."""

    key: str
    given: Mapping[str, tuple[str, ...]] = {}
    weights: Annotated[Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=1)]


class _WeightTables(Record):
    """Tables of weights."""

    draw: tuple[_WeightTable, ...]

    def people(self, draw: random.Random) -> Iterator[dict[str, str]]:
        while True:
            person: dict[str, str] = {}
            for table in self.draw:
                fits = all(person.get(key) in values for key, values in table.given.items())
                if table.key not in person and fits:
                    (person[table.key],) = draw.choices([*table.weights], [*table.weights.values()])
            yield {key: person[key] for key in DEMOGRAPHIC_KEYS}


class _SurveyRows(NamedTuple):
    """The rows of a survey. Without weights, no row is repeated before all rows have been used."""

    rows: Sequence[dict[str, str]]
    weights: Sequence[float] | None

    def people(self, draw: random.Random) -> Iterator[dict[str, str]]:
        while True:
            if self.weights is None:
                yield from draw.sample(self.rows, len(self.rows))
            else:
                yield from draw.choices(self.rows, self.weights)


def _read_weight_tables(path: Path) -> _WeightTables:
    tables = validate_model(_WeightTables, read_toml(path), path)
    named = [table.key for table in tables.draw]
    _check_keys(path, named, "table")
    for number, table in enumerate(tables.draw):
        place = f"'draw.{number}' ({table.key})"
        if not all(value.strip() for value in table.weights):
            raise DataError(path, f"{place}: a value is empty; write 'N/A' for unknown values")
        if not any(table.weights.values()):
            raise DataError(path, f"{place}: all weights are 0")
        if sum(table.weights.values()) == float("inf"):
            raise DataError(path, f"{place}: the sum of the weights is not finite; give smaller ones")
        if unknown := [key for key in (table.key, *table.given) if key not in DEMOGRAPHIC_KEYS]:
            raise DataError(
                path, f"{place}: there is no key {unknown[0]!r}; the keys are {', '.join(DEMOGRAPHIC_KEYS)}"
            )
        if later := [key for key in table.given if key not in named[:number]]:
            raise DataError(
                path, f"{place}: {later[0]!r} is used in a condition before it is drawn; put its table first"
            )
    for key in DEMOGRAPHIC_KEYS:
        if all(table.given for table in tables.draw if table.key == key):
            raise DataError(path, f"every table of {key!r} has a condition; add a last table without 'given'")
    return tables


def _read_survey(path: Path) -> _SurveyRows:
    rows, weights = [], []
    for line, row in _read_csv(path):
        _check_keys(path, [*row], "column")
        rows.append(_parse_person(path, row, line))
        weights.append(_parse_weight(path, row.get(_WEIGHT_COLUMN, "1"), line))
    if not any(weights):
        raise DataError(path, "contains no person with a weight above 0")
    if sum(weights) == float("inf"):
        raise DataError(path, "the sum of the weights is not finite; give smaller ones")
    return _SurveyRows(rows, weights if _WEIGHT_COLUMN in row else None)


def _parse_person(path: Path, row: Mapping[str, str], line: int) -> dict[str, str]:
    values = {key: row[key].strip() for key in DEMOGRAPHIC_KEYS}
    if long := [key for key, value in values.items() if len(value) > _MAX_VALUE_CHARACTERS]:
        raise DataError(
            path,
            f"{long[0]!r} is {len(values[long[0]]):,} characters long; the maximum is {_MAX_VALUE_CHARACTERS:,}",
            line,
        )
    if empty := [key for key, value in values.items() if not value]:
        raise DataError(path, f"{empty[0]!r} is empty; write 'N/A' for unknown values", line)
    return values


def _parse_weight(path: Path, text: str, line: int) -> float:
    with suppress(ValueError):
        if 0 <= (weight := float(text)) < float("inf"):
            return weight
    raise DataError(path, f"the weight is {text!r}; it must be a number of at least 0", line)


def _check_keys(path: Path, named: Sequence[str], what: str) -> None:
    if missing := [key for key in DEMOGRAPHIC_KEYS if key not in named]:
        raise DataError(path, f"has no {what} for {', '.join(map(repr, missing))}", advice=build_study_advice(path))
