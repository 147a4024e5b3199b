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
from dialoom.outputs import exclusive, text_output
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Item, items_of
from dialoom.runs.store import RunFile
from dialoom.runs.store.connections import Signature, signature
from dialoom.text import cell_text, csv_cell

from .items import COLUMNS, DIGEST, ITEM, LABEL, Scales, digest_of, item_row, scenario_of

_LARGEST_CELL = 2**31 - 1
_ADVICE = "save it as 'CSV UTF-8'"

_WORD = LABEL.rstrip(":")
_CLOSENESS = 0.8
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


def read_labels(path: Path, only: Collection[str] = ()) -> Labels:
    """Read a labels file; labels are not checked against their scales here.

    Args:
        path: The file.
        only: The annotators whose labels are read; by default all.

    Raises:
        DataError: If the file cannot be read, lacks a column, or has a duplicate item; the message states the line.
    """
    lines = _lines(path)
    _, header = next(lines)
    columns = _columns(path, header, only)
    titles = [name.strip().lower() for name in header]
    place, of = titles.index(ITEM), titles.index(DIGEST) if DIGEST in titles else len(header)
    rows: dict[str, dict[str, LabelRow]] = {}
    for line, cells in lines:
        item = cell_text(_cell(cells, place))
        labels = tuple(_cell(cells, column) for column in columns.values())
        if not any(cell.strip() for cell in cells):
            continue  # spreadsheets leave empty rows at the end
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError(
                path, f"{len(cells)} cells under {len(header)} columns; a cell with commas needs quotes", line
            )
        if not item:
            raise DataError(path, f"this row has no {ITEM!r}, which must be the item's id from the sample", line)
        digest, of_item = cell_text(_cell(cells, of)), rows.setdefault(item, {})
        # A row without a digest may belong to any conversation.
        known = of_item.get(digest) or of_item.get("") or (None if digest else next(iter(of_item.values()), None))
        if known is not None:
            raise DataError(path, f"item {item!r} is already on line {known.line}", line)
        of_item[digest] = LabelRow(item, digest, line, labels)
    found = tuple(row for of_item in rows.values() for row in of_item.values())
    if not any(label for row in found for label in row.cells):
        unread = [name for name in columns if name.lower() in titles]
        advice = f"; the column {unread[0]!r} is not read: rename it to {LABEL}{unread[0]}" if unread else ""
        raise DataError(path, f"there is no label in {', '.join(LABEL + name for name in columns)}{advice}")
    return Labels(path, tuple(columns), found)


def _columns(path: Path, header: Sequence[str], only: Collection[str]) -> dict[str, int]:
    """Return the indices of the annotators' columns by name."""
    found: dict[str, int] = {}
    for place, title in enumerate(header):
        if not title.strip().lower().startswith(LABEL):
            _check_other(path, title)
            continue
        name = title.strip()[len(LABEL) :].strip()
        if not name:
            raise DataError(path, f"the column {title!r} has no annotator's name; rename it to {LABEL}NAME", 1)
        if name in found:
            raise DataError(path, f"two columns are named {LABEL}{name}; an annotator can have only one", 1)
        found[name] = place
    if not found:
        raise DataError(
            path,
            f"there is no annotator's column; add one for each annotator, named {LABEL}NAME, such as {LABEL}anna",
            1,
        )
    if unknown := [name for name in only if name not in found]:
        raise DataError(
            path, f"no column {LABEL}{unknown[0]}; there are {', '.join(LABEL + name for name in found)}", 1
        )
    return {name: place for name, place in found.items() if not only or name in only}


def _check_other(path: Path, title: str) -> None:
    """Check that a column that is not an annotator's is not meant as one.

    Raises:
        DataError: If its title has a colon, or begins with a word like `label`.
    """
    name = title.strip()
    word, *rest = re.split(r"[\s:_.-]+", name, maxsplit=1)
    is_near = bool(rest) and bool(get_close_matches(word.lower(), [_WORD], 1, _CLOSENESS))
    if ":" in name or is_near or name.lower() == _WORD:
        raise DataError(
            path,
            f"the column {name!r} is not read: rename it to {LABEL}NAME, or to a name without {_WORD!r} and ':'",
            1,
        )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a labels file with their line numbers, beginning with the header, which has a column `item`.

    Raises:
        DataError: If the file cannot be read.
    """
    text = read_text(path)
    if "\0" in text:
        raise DataError(path, f"not a text file in UTF-8; {_ADVICE}", text.count("\n", 0, text.index("\0")) + 1)
    if not text.strip():
        raise DataError(path, "the file is empty")
    first = text.split("\n", 1)[0].rstrip("\r")
    # Spreadsheets write semicolons in locales whose decimal sign is a comma.
    fitting = (each for each in ",;\t" if ITEM in (title.strip(' "').lower() for title in first.split(each)))
    if (delimiter := next(fitting, None)) is None:
        raise DataError(path, f"no column {ITEM!r} in the header, which is {first!r:.80}", 1)
    csv.field_size_limit(_LARGEST_CELL)  # a cell may contain a whole conversation
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"not a valid CSV file: {error}; {_ADVICE}", line) from error


def _cell(cells: Sequence[str], place: int) -> str:
    """Return a cell, stripped; spreadsheets omit blank cells at the end of a row."""
    return cells[place].strip() if place < len(cells) else ""


_write_lock = threading.Lock()
_CACHE_SIZE = 8


def labels_beside(run: Path) -> Path:
    """Return the default path of the labels file of a run, which is next to the run's file."""
    return run.with_name(f"{run.stem}.labels.csv")


@dataclass(frozen=True, slots=True)
class GivenLabel:
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

    def given(self, run: RunFile, annotator: str, position: int | None = None) -> Iterator[GivenLabel]:
        """Yield all labels of one annotator.

        Args:
            run: The run.
            annotator: The annotator's name.
            position: Only labels of this scenario; by default those of all scenarios of the run.

        Raises:
            DataError: If the file cannot be read.
        """
        header, rows = self._read()
        item, of, label = _place(header, ITEM), _place(header, DIGEST), _place(header, LABEL + annotator)
        if item is None or label is None:
            return
        known: dict[int, dict[str, str]] = {}
        for row in rows:
            id_, written = cell_text(_cell(row, item)), _cell(row, label)
            found = scenario_of(run, id_) if written else None
            if found is None or position not in (None, found[0]):
                continue
            if found[0] not in known:
                known[found[0]] = {
                    each.id: digest_of(episode, run.recipe, each) for episode, each in _items(run, found[0])
                }
            digest = "" if of is None else _cell(row, of)
            yield GivenLabel(found[0], id_, written, bool(digest) and known[found[0]].get(id_) != digest)

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
        if not (matching := [each for each in _items(run, position) if each[1].id == item]):
            raise RunError(f"item {item!r:.120}: scenario {position + 1} has no judgement with this id", setting="item")
        episode, found = matching[-1]  # of the oldest set of judgements that has it
        if label:
            try:
                scales.of(found.judgement.metric).parse(label)
            except ValueError as error:
                raise RunError(f"label: {error}", setting="label") from error
        with _write_lock, exclusive(self.path):
            header, rows = self._read()
            place, column = _column(header, ITEM), _column(header, LABEL + name)
            known = dict(zip(COLUMNS, map(csv_cell, item_row(run, episode, found, scales)), strict=True))
            of = _column(header, DIGEST)
            of_item = [row for row in rows if cell_text(_cell(row, place)) == item]
            # The row of this conversation or, if there is none, a row without a digest.
            wanted = (row for digest in (known[DIGEST], "") for row in of_item if _cell(row, of) == digest)
            if (row := next(wanted, None)) is None:
                rows.append(row := [known.get(title.strip().lower(), "") for title in header])
            row += [""] * (len(header) - len(row))
            others = [each for number, each in enumerate(row) if number != column and _is_label(header[number])]
            if not any(others):
                row[of] = known[DIGEST]
            row[column] = label
            with text_output(self.path, (run.path,), encoding="utf-8-sig", newline="") as file:
                csv.writer(file).writerows([header, *rows])

    def _read(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows; for a file that does not exist, the columns of a sample."""
        if not self.path.exists():
            return list(COLUMNS), []
        header, *rows = (cells for _, cells in _lines(self.path))
        return header, rows


class Labelled(NamedTuple):
    """The labelling progress of a scenario.

    Attributes:
        given: Number of the scenario's judgements that have a label.
        wanted: Number of the scenario's judgements that need a label.
    """

    given: int
    wanted: int

    @property
    def is_complete(self) -> bool:
        """Return whether no label is missing."""
        return self.given >= self.wanted


_Key = tuple[Signature, Signature, str]
_cache: dict[_Key, dict[int, Labelled]] = {}
"""A cache of labelling progress, which lists request for every page. A key contains the state of the run's file and of
the labels file.
"""


def labelled(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str] = (), judging: str | None = None
) -> dict[int, Labelled]:
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
    known = _cache.pop(key, None)
    if known is None:
        known = dict(_counted(run, path, annotator, metrics, judging))
    _cache[key] = known  # move to the end: the least recently used entries are evicted first
    while len(_cache) > _CACHE_SIZE:
        _cache.pop(next(iter(_cache)), None)
    return dict(known)


def _counted(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str], judging: str | None
) -> Iterator[tuple[int, Labelled]]:
    given: dict[int, set[str]] = defaultdict(set)
    for each in LabelFile(path).given(run, annotator):
        if not each.is_earlier:
            given[each.position].add(each.item)
    for position, ids in given.items():
        episode = run.episode(position, judging)
        items = items_of(episode, run.recipe) if episode is not None else ()
        selected = {item.id for item in items if not metrics or item.judgement.metric in metrics}
        if ids & selected:
            yield position, Labelled(len(ids & selected), len(selected))


def _items(run: RunFile, position: int) -> Iterator[tuple[Episode, Item]]:
    """Yield a finished scenario's items from all its sets of judgements, the oldest set last."""
    for judging in reversed(run.judgement_sets()):
        if (episode := run.episode(position, judging.name)) is not None and episode.state == "done":
            yield from ((episode, item) for item in items_of(episode, run.recipe))


def _is_label(title: str) -> bool:
    return title.strip().lower().startswith(LABEL)


def _place(header: Sequence[str], title: str) -> int | None:
    """Return the index of a column; `None` if there is no such column."""
    folded = title.lower()
    return next((place for place, each in enumerate(header) if each.strip().lower() == folded), None)


def _column(header: list[str], title: str) -> int:
    """Return the index of a column, which is added if it is missing."""
    if (place := _place(header, title)) is None:
        header.append(csv_cell(title))
        return len(header) - 1
    return place
