"""Labels files, with a column `item` and a column `label:NAME` for each annotator: reading them and adding labels.

A column `digest` identifies the conversation of a row. If it is empty or missing, the row belongs to the scenario's
current conversation. Interactive labelling writes each label immediately.
"""

from __future__ import annotations

import csv
import io
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from dialoom.graphs import Episode, WithJudging
from dialoom.inputs import DataError, read_text
from dialoom.outputs import exclusive_lock, text_output
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Item, iter_items
from dialoom.runs.store import RunFile
from dialoom.runs.store.connections import Signature, signature
from dialoom.text import escape_csv_cell, unescape_csv_cell

from .items import (
    COLUMNS,
    DIGEST_COLUMN,
    ITEM_COLUMN,
    LABEL_PREFIX,
    Scales,
    compute_item_digest,
    find_scenario,
    item_row,
)

_MAX_CELL_CHARACTERS = 2**31 - 1
_ENCODING_ADVICE = "save it as 'CSV UTF-8'"

_LABEL_WORD = LABEL_PREFIX.rstrip(":")
_MIN_SIMILARITY = 0.8
"""The similarity, as `difflib` computes it, from which a word may be a misspelt `label`."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A row of a labels file.

    Attributes:
        item: The item's id.
        digest: The digest of the labelled lines; empty if the file has none.
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
        path: Path of the file.
        annotators: Names of the annotators, in the order of their columns.
        rows: Rows of the file; an item has several rows if several conversations of its scenario were labelled.
    """

    path: Path
    annotators: tuple[str, ...]
    rows: Sequence[LabelRow]


def read_labels(path: Path, annotators: Collection[str] = ()) -> Labels:
    """Read a labels file; labels are not checked against their scales here.

    Args:
        path: The file.
        annotators: The annotators whose labels are read; by default all.

    Raises:
        DataError: If the file cannot be read, lacks a column, or has a duplicate item; the message states the line.
    """
    lines = _read_rows(path)
    _, header = next(lines)
    columns = _find_annotator_columns(path, header, annotators)
    titles = [name.strip().lower() for name in header]
    item_index = titles.index(ITEM_COLUMN)
    digest_index = titles.index(DIGEST_COLUMN) if DIGEST_COLUMN in titles else len(header)
    rows: dict[str, dict[str, LabelRow]] = {}
    for line, cells in lines:
        item = unescape_csv_cell(_get_cell(cells, item_index))
        labels = tuple(_get_cell(cells, column) for column in columns.values())
        if not any(cell.strip() for cell in cells):
            continue  # spreadsheets leave empty rows at the end
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError(
                path, f"{len(cells)} cells under {len(header)} columns; a cell with commas needs quotes", line
            )
        if not item:
            raise DataError(path, f"this row has no {ITEM_COLUMN!r}, which must be the item's id from the sample", line)
        digest, item_rows = unescape_csv_cell(_get_cell(cells, digest_index)), rows.setdefault(item, {})
        # A row without a digest may belong to any conversation.
        existing = (
            item_rows.get(digest) or item_rows.get("") or (None if digest else next(iter(item_rows.values()), None))
        )
        if existing is not None:
            raise DataError(path, f"item {item!r} is already on line {existing.line}", line)
        item_rows[digest] = LabelRow(item, digest, line, labels)
    label_rows = tuple(row for item_rows in rows.values() for row in item_rows.values())
    if not any(label for row in label_rows for label in row.cells):
        unread = [name for name in columns if name.lower() in titles]
        advice = f"; the column {unread[0]!r} is not read: rename it to {LABEL_PREFIX}{unread[0]}" if unread else ""
        raise DataError(path, f"there is no label in {', '.join(LABEL_PREFIX + name for name in columns)}{advice}")
    return Labels(path, tuple(columns), label_rows)


def _find_annotator_columns(path: Path, header: Sequence[str], annotators: Collection[str]) -> dict[str, int]:
    """Return the indices of the annotators' columns by name."""
    found: dict[str, int] = {}
    for index, title in enumerate(header):
        if not title.strip().lower().startswith(LABEL_PREFIX):
            _check_not_annotator_column(path, title)
            continue
        name = title.strip()[len(LABEL_PREFIX) :].strip()
        if not name:
            raise DataError(path, f"the column {title!r} has no annotator's name; rename it to {LABEL_PREFIX}NAME", 1)
        if name in found:
            raise DataError(path, f"two columns are named {LABEL_PREFIX}{name}; an annotator can have only one", 1)
        found[name] = index
    if not found:
        raise DataError(
            path,
            f"there is no annotator's column; add one for each annotator, named {LABEL_PREFIX}NAME, such as "
            f"{LABEL_PREFIX}anna",
            1,
        )
    if unknown := [name for name in annotators if name not in found]:
        raise DataError(
            path,
            f"no column {LABEL_PREFIX}{unknown[0]}; there are {', '.join(LABEL_PREFIX + name for name in found)}",
            1,
        )
    return {name: index for name, index in found.items() if not annotators or name in annotators}


def _check_not_annotator_column(path: Path, title: str) -> None:
    """Check that a column that is not an annotator's is not meant as one.

    Raises:
        DataError: If its title has a colon, or begins with a word like `label`.
    """
    name = title.strip()
    word, *rest = re.split(r"[\s:_.-]+", name, maxsplit=1)
    is_near = bool(rest) and bool(get_close_matches(word.lower(), [_LABEL_WORD], 1, _MIN_SIMILARITY))
    if ":" in name or is_near or name.lower() == _LABEL_WORD:
        raise DataError(
            path,
            f"the column {name!r} is not read: rename it to {LABEL_PREFIX}NAME, or to a name without {_LABEL_WORD!r} "
            "and ':'",
            1,
        )


def _read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a labels file with their line numbers, beginning with the header, which has a column `item`.

    Raises:
        DataError: If the file cannot be read.
    """
    text = read_text(path)
    if "\0" in text:
        raise DataError(
            path, f"not a text file in UTF-8; {_ENCODING_ADVICE}", text.count("\n", 0, text.index("\0")) + 1
        )
    if not text.strip():
        raise DataError(path, "the file is empty")
    header = text.split("\n", 1)[0].rstrip("\r")
    # Spreadsheets write semicolons in locales whose decimal sign is a comma.
    delimiters = (each for each in ",;\t" if ITEM_COLUMN in (title.strip(' "').lower() for title in header.split(each)))
    if (delimiter := next(delimiters, None)) is None:
        raise DataError(path, f"no column {ITEM_COLUMN!r} in the header, which is {header!r:.80}", 1)
    csv.field_size_limit(_MAX_CELL_CHARACTERS)  # a cell may contain a whole conversation
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"not a valid CSV file: {error}; {_ENCODING_ADVICE}", line) from error


def _get_cell(cells: Sequence[str], index: int) -> str:
    """Return a cell, stripped; spreadsheets omit blank cells at the end of a row."""
    return cells[index].strip() if index < len(cells) else ""


_write_lock = threading.Lock()
_CACHE_SIZE = 8


def default_labels_path(run: Path) -> Path:
    """Return the default path of the labels file of a run, which is next to the run's file."""
    return run.with_name(f"{run.stem}.labels.csv")


@dataclass(frozen=True, slots=True)
class StoredLabel:
    """One label that a labels file contains.

    Attributes:
        position: The scenario's position.
        item: The item's id.
        label: The label.
        is_earlier: Whether the label was given to an earlier conversation of the scenario, so that it does not count.
    """

    position: int
    item: str
    label: str
    is_earlier: bool


class LabelFile:
    """A labels file that is filled in item by item; its other content stays unchanged.

    The file may be a drawn sample, or may not exist yet; items that it lacks are added to it.

    Args:
        path: The file; it does not have to exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def iter_labels(self, run: RunFile, annotator: str, position: int | None = None) -> Iterator[StoredLabel]:
        """Yield all labels of one annotator.

        Args:
            run: The run.
            annotator: The annotator's name.
            position: Only labels of this scenario; by default those of all scenarios of the run.

        Raises:
            DataError: If the file cannot be read.
        """
        header, rows = self._read_file()
        titles = (ITEM_COLUMN, DIGEST_COLUMN, LABEL_PREFIX + annotator)
        item_column, digest_column, label_column = (_find_column(header, title) for title in titles)
        if item_column is None or label_column is None:
            return
        digests: dict[int, dict[str, str]] = {}
        for row in rows:
            id_, label = unescape_csv_cell(_get_cell(row, item_column)), _get_cell(row, label_column)
            located = find_scenario(run, id_) if label else None
            if located is None or position not in (None, located[0]):
                continue
            if located[0] not in digests:
                digests[located[0]] = {
                    each.id: compute_item_digest(episode, run.recipe, each)
                    for episode, each in _iter_scenario_items(run, located[0])
                }
            digest = "" if digest_column is None else _get_cell(row, digest_column)
            yield StoredLabel(located[0], id_, label, bool(digest) and digests[located[0]].get(id_) != digest)

    def put(self, run: RunFile, position: int, item: str, annotator: str, label: str) -> None:
        """Write a label, replacing the annotator's earlier one.

        Args:
            run: The run.
            position: The position of the item's scenario.
            item: The item's id; it is the same in every set of judgements.
            annotator: The annotator's name.
            label: One of the scale's values; empty to remove a label.

        Raises:
            RunError: If the item does not exist, the label is not on the scale, or the name is empty.
            DataError: If the file cannot be read.
            OutputError: If it cannot be written.
        """
        name, scales = " ".join(annotator.split()), Scales(WithJudging.of(run.recipe).scales)
        if not name:
            raise RunError(
                "annotator must be the name of the person who labels, got an empty name", setting="annotator"
            )
        if not (matching := [each for each in _iter_scenario_items(run, position) if each[1].id == item]):
            raise RunError(f"item {item!r:.120}: scenario {position + 1} has no judgement with this id", setting="item")
        episode, item_found = matching[-1]  # of the oldest set of judgements that has it
        if label:
            try:
                scales.get(item_found.judgement.metric).parse(label)
            except ValueError as error:
                raise RunError(f"label: {error}", setting="label") from error
        with _write_lock, exclusive_lock(self.path):
            header, rows = self._read_file()
            item_column, label_column = _ensure_column(header, ITEM_COLUMN), _ensure_column(header, LABEL_PREFIX + name)
            new_cells = dict(
                zip(COLUMNS, map(escape_csv_cell, item_row(run, episode, item_found, scales)), strict=True)
            )
            digest_column = _ensure_column(header, DIGEST_COLUMN)
            item_rows = [row for row in rows if unescape_csv_cell(_get_cell(row, item_column)) == item]
            # The row of this conversation or, if there is none, a row without a digest.
            matching_rows = (
                row
                for digest in (new_cells[DIGEST_COLUMN], "")
                for row in item_rows
                if _get_cell(row, digest_column) == digest
            )
            if (row := next(matching_rows, None)) is None:
                rows.append(row := [new_cells.get(title.strip().lower(), "") for title in header])
            row += [""] * (len(header) - len(row))
            other_labels = [
                each
                for number, each in enumerate(row)
                if number != label_column and _is_annotator_column(header[number])
            ]
            if not any(other_labels):
                row[digest_column] = new_cells[DIGEST_COLUMN]
            row[label_column] = label
            with text_output(self.path, (run.path,), encoding="utf-8-sig", newline="") as file:
                csv.writer(file).writerows([header, *rows])

    def _read_file(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows; for a file that does not exist, the columns of a sample."""
        if not self.path.exists():
            return list(COLUMNS), []
        header, *rows = (cells for _, cells in _read_rows(self.path))
        return header, rows


class LabelProgress(NamedTuple):
    """The labelling progress of a scenario.

    Attributes:
        labelled: Number of the scenario's judgements that have a label.
        total: Number of the scenario's judgements that need a label.
    """

    labelled: int
    total: int

    @property
    def is_complete(self) -> bool:
        """Return whether no label is missing."""
        return self.labelled >= self.total


_Key = tuple[Signature, Signature, str]
_cache: dict[_Key, dict[int, LabelProgress]] = {}
"""A cache of labelling progress, which lists request for every page. A key contains the state of the run's file and of
the labels file.
"""


def count_labels(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str] = (), judging: str | None = None
) -> dict[int, LabelProgress]:
    """Return an annotator's labelling progress by the scenario's position, for scenarios with at least one label.

    Args:
        run: The run.
        path: The labels file.
        annotator: The annotator's name.
        metrics: The metrics to be labelled; by default all.
        judging: The set of judgements with these metrics; by default the oldest.

    Raises:
        DataError: If the labels file cannot be read.
    """
    identity = "\0".join([str(run.path.resolve()), str(path.resolve()), annotator, judging or "", *sorted(metrics)])
    key = (signature(run.path), signature(path), identity)
    progress = _cache.pop(key, None)
    if progress is None:
        progress = dict(_count_labels(run, path, annotator, metrics, judging))
    _cache[key] = progress  # move to the end: the least recently used entries are evicted first
    while len(_cache) > _CACHE_SIZE:
        _cache.pop(next(iter(_cache)), None)
    return dict(progress)


def _count_labels(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str], judging: str | None
) -> Iterator[tuple[int, LabelProgress]]:
    labelled_items: dict[int, set[str]] = defaultdict(set)
    for each in LabelFile(path).iter_labels(run, annotator):
        if not each.is_earlier:
            labelled_items[each.position].add(each.item)
    for position, ids in labelled_items.items():
        episode = run.episode(position, judging)
        items = iter_items(episode, run.recipe) if episode is not None else ()
        item_ids = {item.id for item in items if not metrics or item.judgement.metric in metrics}
        if ids & item_ids:
            yield position, LabelProgress(len(ids & item_ids), len(item_ids))


def _iter_scenario_items(run: RunFile, position: int) -> Iterator[tuple[Episode, Item]]:
    """Yield a finished scenario's items from all its sets of judgements, the oldest set last."""
    for judging in reversed(run.judgement_sets()):
        if (episode := run.episode(position, judging.name)) is not None and episode.state == "done":
            yield from ((episode, item) for item in iter_items(episode, run.recipe))


def _is_annotator_column(title: str) -> bool:
    return title.strip().lower().startswith(LABEL_PREFIX)


def _find_column(header: Sequence[str], title: str) -> int | None:
    """Return the index of a column; `None` if there is no such column."""
    lowered = title.lower()
    return next((index for index, each in enumerate(header) if each.strip().lower() == lowered), None)


def _ensure_column(header: list[str], title: str) -> int:
    """Return the index of a column, which is added if it is missing."""
    if (index := _find_column(header, title)) is None:
        header.append(escape_csv_cell(title))
        return len(header) - 1
    return index
