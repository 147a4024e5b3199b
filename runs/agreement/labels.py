"""Labels files: CSV files with a column `item` and a column `label:NAME` for each annotator.

A column `digest` identifies the conversation of a row; where it is empty or missing, the run's current one is meant.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom.inputs import DataError, read_text
from dialoom.shown import cell_text

ITEM = "item"
LABEL = "label:"
DIGEST = "digest"
_LARGEST_CELL = 2**31 - 1
_ADVICE = "save it as 'CSV UTF-8'"


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A row of a labels file.

    Attributes:
        item: The item's id.
        digest: The digest of the labelled lines; empty if the file does not give it.
        line: The row's line number.
        cells: The annotators' labels, blank where one is missing.
    """

    item: str
    digest: str
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """The content of a labels file.

    Attributes:
        path: Its path.
        annotators: Their names, in the order of their columns.
        rows: Its rows; an item has several if several conversations of its scenario were labelled.
    """

    path: Path
    annotators: tuple[str, ...]
    rows: Sequence[LabelRow]


def read_labels(path: Path, only: Collection[str] = ()) -> Labels:
    """Read a labels file; labels are not checked against their scales here.

    Args:
        path: The file.
        only: Read only these annotators; by default all.

    Raises:
        DataError: If it cannot be read, lacks a column, or has a duplicate item: with the line.
    """
    text = _text(path)
    delimiter = _delimiter(path, text)
    lines = _lines(path, text, delimiter)
    _, header = next(lines)
    columns = _columns(path, header, only)
    titles = [name.strip().lower() for name in header]
    place, of = titles.index(ITEM), titles.index(DIGEST) if DIGEST in titles else len(header)
    rows: dict[str, dict[str, LabelRow]] = {}
    for line, cells in lines:
        item = cell_text(_cell(cells, place))
        labels = tuple(_cell(cells, column) for column in columns.values())
        if not item and not any(cell.strip() for cell in cells):
            continue  # spreadsheets leave empty rows at the end
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError(
                path, f"{len(cells)} cells under {len(header)} columns; a cell with commas needs quotes", line
            )
        if not item:
            raise DataError(path, f"no {ITEM!r} in this row; it is the id that the sample gave it", line)
        row = LabelRow(item, cell_text(_cell(cells, of)), line, labels)
        _add(path, rows.setdefault(item, {}), row)
    found = tuple(row for of_item in rows.values() for row in of_item.values())
    if not any(label for row in found for label in row.cells):
        raise DataError(path, f"no label is filled in, in {', '.join(LABEL + name for name in columns)}")
    return Labels(path, tuple(columns), found)


def _add(path: Path, of_item: dict[str, LabelRow], row: LabelRow) -> None:
    """Add a row of an item if it is of another conversation; a row without a digest may be of any conversation."""
    known = of_item.get(row.digest) or of_item.get("") or (None if row.digest else next(iter(of_item.values()), None))
    if known is not None:
        raise DataError(path, f"item {row.item!r} stands on line {known.line} already", row.line)
    of_item[row.digest] = row


def cells_of(path: Path) -> list[list[str]]:
    """Return the cells of a labels file unchanged, the header first.

    Raises:
        DataError: If it cannot be read, or has no column `item`.
    """
    text = _text(path)
    return [cells for _, cells in _lines(path, text, _delimiter(path, text))]


def _columns(path: Path, header: Sequence[str], only: Collection[str]) -> dict[str, int]:
    """Return the indices of the annotators' columns by name."""
    found: dict[str, int] = {}
    for place, title in enumerate(header):
        if not title.strip().lower().startswith(LABEL):
            continue
        name = title.strip()[len(LABEL) :].strip()
        if not name:
            raise DataError(path, f"the column {title!r} names no annotator; it would be {LABEL}NAME", 1)
        if name in found:
            raise DataError(path, f"two columns are called {LABEL}{name}; each annotator has one", 1)
        found[name] = place
    if not found:
        raise DataError(
            path, f"no annotator's column; there is one for each, called {LABEL}NAME, such as {LABEL}anna", 1
        )
    if unknown := [name for name in only if name not in found]:
        raise DataError(
            path, f"no column {LABEL}{unknown[0]}; there are {', '.join(LABEL + name for name in found)}", 1
        )
    return {name: place for name, place in found.items() if not only or name in only}


def _lines(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their line numbers; the header first."""
    csv.field_size_limit(_LARGEST_CELL)  # a cell holds a whole conversation
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"no CSV: {error}; {_ADVICE}", line) from error


def _delimiter(path: Path, text: str) -> str:
    """Return the delimiter: spreadsheets write semicolons in locales whose decimal sign is a comma."""
    first = text.split("\n", 1)[0].rstrip("\r")
    for delimiter in (",", ";", "\t"):
        if ITEM in (title.strip(' "').lower() for title in first.split(delimiter)):
            return delimiter
    raise DataError(path, f"no column {ITEM!r} in the header, which is {first!r:.80}", 1)


def _text(path: Path) -> str:
    text = read_text(path)
    if "\0" in text:
        raise DataError(path, f"no text file; {_ADVICE}", text.count("\n", 0, text.index("\0")) + 1)
    if not text.strip():
        raise DataError(path, "the file is empty")
    return text


def _cell(cells: Sequence[str], place: int) -> str:
    """Return a cell, stripped; spreadsheets omit blank cells at the end of a row."""
    return cells[place].strip() if place < len(cells) else ""
