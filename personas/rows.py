"""Rows of people and tasks: from CSV, JSON, JSON Lines, Parquet or YAML files, pool folders, or Python values."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError, open_input, parse_json, read_json, read_lines, read_yaml
from dialoom.text import well_formed_value

Row = dict[str, Any]
Place = tuple[int, Row]
"""A row with its place in its source: a line of a text file, otherwise its number, from 1."""

_DELIMITERS = ",;\t"
_FORMATS = ".csv, .tsv, .jsonl, .json, .parquet, .yaml, or a pool folder"
_LONGEST_CELL = 2**20


def read_rows(path: Path, text: str) -> Iterator[Place]:
    """Yield the rows of a file one at a time; only YAML and JSON files are read as a whole.

    Args:
        path: A file whose suffix tells its format, or the folder of a pool, with one JSON Lines file.
        text: The column of rows that are a text instead of columns.

    Raises:
        DataError: If the file cannot be read, is of another format, or a row is neither columns nor a text.
    """
    if path.is_dir():
        path = _only_file(path)
    match path.suffix.lower():
        case ".csv" | ".tsv":
            rows: Iterable[tuple[int, Any]] = _csv(path)
        case ".jsonl" | ".ndjson":
            rows = _json_lines(path)
        case ".parquet":
            rows = _parquet(path)
        case ".yaml" | ".yml":
            rows = _listed(read_yaml(path), path)
        case ".json":
            rows = _listed(read_json(path), path)
        case suffix:
            raise DataError(path, f"the format {suffix!r} is not known; give {_FORMATS}")
    for number, row in rows:
        yield number, plain_row(row, text, path, number)


def plain_row(row: Any, text: str, place: str | Path, number: int) -> Row:
    """Return a row as plain values: missing values become empty texts, and values JSON does not know become texts.

    Args:
        row: A mapping, or a text.
        text: The column of a row that is a text.
        place: The file or argument that holds the row, for messages.
        number: Its line or number there.

    Raises:
        DataError: If it is neither a mapping nor a text.
    """
    if isinstance(row, str):
        row = {text: row}
    if not isinstance(row, Mapping):
        raise DataError(place, f"a row must be a mapping or a text, got {type(row).__name__}", number)
    values = {str(name): _plain(value) for name, value in row.items()}
    return dict(well_formed_value(values))


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, Mapping):  # NumPy's numbers
        value = value.item()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, str | int | float):
        return value.strip() if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value)


def _csv(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a CSV file with a header. The delimiter is the most frequent one of the header."""
    lines = (_decoded(line, path, number) + "\n" for number, line in read_lines(path))
    first = next(lines, "")
    skipped = 0
    delimiter = max(_DELIMITERS, key=_unquoted(first).count)
    if first.lower().startswith("sep=") and len(first.strip()) == len("sep=,"):  # written by Excel
        delimiter, first, skipped = first[len("sep=")], next(lines, ""), 1
    if not first.strip():
        raise DataError(path, "the first line must name the columns, got an empty line", 1 + skipped)
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(_chained(first, lines), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_header(header, path, 1 + skipped)
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            number = reader.line_num + skipped
            if len(cells) != len(header):
                counts = f"{len(cells)} cells, but the header names {len(header)}"
                raise DataError(path, f"{counts}; put cells that hold {delimiter!r} in quotes", number)
            yield number, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(path, f"not CSV: {error}", reader.line_num + skipped) from error


def _check_header(header: list[str], path: Path, line: int) -> None:
    if "" in header:
        raise DataError(path, f"column {header.index('') + 1} has no name; name it, or remove it", line)
    for name in header:
        if header.count(name) > 1:
            raise DataError(path, f"two columns are named {name!r}; rename one", line)


def _chained(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _unquoted(line: str) -> str:
    """Return a line without its quoted parts."""
    return "".join(line.split('"')[::2])


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in read_lines(path):
        if line.strip():
            yield number, parse_json(_decoded(line, path, number), path, number)


def _decoded(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8: byte {line[error.start]:#04x}; save it as UTF-8", number) from error


def _parquet(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise DataError(path, "Parquet needs pyarrow: pip install 'dialoom[parquet]', or give CSV") from error
    number = 0
    with open_input(path) as file:
        try:
            for batch in parquet.ParquetFile(file).iter_batches(500):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (OSError, ValueError) as error:  # pyarrow's errors derive from these
            raise DataError(path, f"not a readable Parquet file: {error}") from error


def _listed(value: Any, path: Path) -> Iterator[tuple[int, Any]]:
    if not isinstance(value, list):
        raise DataError(path, f"a list of rows is needed, got {type(value).__name__}")
    yield from enumerate(value, start=1)


def _only_file(folder: Path) -> Path:
    found = sorted(folder.glob("*.jsonl"))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise DataError(folder, f"the folder must hold one .jsonl file, got {names}; name the file instead")
    return found[0]
