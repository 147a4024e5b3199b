"""Writing exports as JSONL, CSV or Parquet."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO, TypeAlias

from dialoom.outputs import binary_output, check_output, folder_output, is_stream, make_file_name, text_output
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.text import pluralize

from .card import Card
from .pushing import CARD, card_path
from .rows import TEST, TRAIN, ExportRequest, ExportResult, RowCount, Rows

_SINGLE_PART = "all"

OutputOpener: TypeAlias = Callable[[], AbstractContextManager[IO[Any]]]
"""A function that opens the output file of a part: in binary mode for Parquet, else in text mode."""


def write_export(
    run: RunFile,
    request: ExportRequest,
    target: Path | TextIO,
    complete: Callable[[Path], None] = lambda _path: None,
) -> ExportResult:
    """Write an export; return the number of rows (or files) by part: `train` and `test`, or `all`.

    Args:
        run: The run.
        request: The export request.
        target: A file; a folder, for a split or a format with several files; or an open text file, such as standard
            output, for JSON lines.
        complete: Called with the file, or with the folder of a split, when its card is written, to extend the card.

    Raises:
        RunError: If the format is unknown or does not support the options.
        OutputError: If the target is a run or cannot be written; no partial output is left.
        StoreError: If the set of judgements does not exist.
    """
    rows = Rows(run, request)
    if not isinstance(target, Path):
        return _build_result(rows, {_SINGLE_PART: _write_open(rows, target)})
    if request.encoding == "parquet":
        check_installed()
    if rows.exporter is not None and rows.exporter.is_folder:
        write_all = _write_lists if rows.exporter.kind == "lists" else _write_files
        files, count = write_all(rows, target)
        return ExportResult({_SINGLE_PART: files}, [count], run.config.units)
    if rows.test is not None:
        counts = _write_split(rows, target, complete)
    else:
        counts = {_SINGLE_PART: _write_one(rows, target)}
        complete(target)
    return _build_result(rows, counts)


def _build_result(rows: Rows, counts: Mapping[str, RowCount]) -> ExportResult:
    return ExportResult({part: count.rows for part, count in counts.items()}, counts.values(), rows.run.config.units)


def _write_open(rows: Rows, file: TextIO) -> RowCount:
    """Write JSON lines to a file that the caller has opened and closes; rows are streamed."""
    has_files = rows.test is not None or (rows.exporter is not None and rows.exporter.is_folder)
    if has_files or rows.request.encoding != "jsonl":
        raise RunError("path: an open file or standard output accepts only JSON lines; give a path", setting="path")
    count = _write_part(rows, _SINGLE_PART, lambda: nullcontext(file), None)
    file.flush()  # a full disk is an error of the export
    return count


def _write_one(rows: Rows, target: Path) -> RowCount:
    """Write one file, and its card beside it. Pipes and devices are written directly, and get no card."""
    if target.is_dir():
        raise RunError(f"{target} is a folder, but this export is one file (with test_share, a folder of two files)")
    is_parquet = rows.request.encoding == "parquet"
    if is_stream(target) and is_parquet:
        raise RunError(f"{target} is not a regular file; Parquet needs one")
    inputs = (rows.run.path,)
    check_output(target, inputs)  # before the work starts; it is checked again at the end
    shape = _infer_schema(rows, (_SINGLE_PART,))
    opened: OutputOpener = partial(binary_output if is_parquet else text_output, target, inputs)
    if rows.exporter is None or is_stream(target):  # each row of `dialogues` contains its own provenance
        return _write_part(rows, _SINGLE_PART, opened, shape)
    with text_output(card_path(target), inputs) as card:
        count = _write_part(rows, _SINGLE_PART, opened, shape)
        card.write(Card(rows, {target.name: count}).text())
    return count


def _write_split(rows: Rows, target: Path, complete: Callable[[Path], None]) -> dict[str, RowCount]:
    """Write a folder with two files and a card, in the layout of dataset hubs."""
    names = {part: f"{part}.{rows.request.encoding}" for part in (TRAIN, TEST)}
    with folder_output(target) as folder:
        shape = _infer_schema(rows, names)
        opens = folder.binary if rows.request.encoding == "parquet" else folder.text
        counts = {part: _write_part(rows, part, partial(opens, name), shape) for part, name in names.items()}
        with folder.text(CARD) as file:
            file.write(Card(rows, {names[part]: count for part, count in counts.items()}, splits=names).text())
        complete(folder.path)
    return counts


def _infer_schema(rows: Rows, parts: Iterable[str]) -> Column | None:
    """Return the schema that the rows of all parts share, for Parquet; else `None`."""
    if rows.request.encoding != "parquet":
        return None
    column = Column()
    for row in itertools.chain.from_iterable(rows.read(part, RowCount()) for part in parts):
        column.observe(row)
    return column


def _write_part(rows: Rows, part: str, opened: OutputOpener, shape: Column | None) -> RowCount:
    count = RowCount()
    items = rows.read(part, count)
    with opened() as file:
        if shape is not None and shape.kinds:
            write_parquet(items, file, shape)
        elif shape is None:
            file.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        if not count.rows:
            _check_empty(rows, part)
    return count


def _check_empty(rows: Rows, part: str) -> None:
    """Raise an error for a part without rows if a filter, a split or Parquet is involved; empty JSONL is valid."""
    done = rows.run.status().done
    given = rows.request.describe_filters()
    other = None if part == _SINGLE_PART else TEST if part == TRAIN else TRAIN
    if given and done and (other is None or not any(True for _ in rows.read(other, RowCount()))):
        raise RunError(f"{given} selects no row of {done:,} finished scenarios; nothing was written")
    if part != _SINGLE_PART:
        raise RunError(
            f"the {part} split has no rows{f' with {given}' if given else ''}; {done:,} scenarios are done, and the "
            f"test split is made of {pluralize(len(rows.test or ()), 'groups')}: change test_share, or select more "
            "scenarios"
        )
    if rows.request.encoding == "parquet":
        raise RunError(f"there are no rows to write yet ({done:,} scenarios are done), and a Parquet file needs one")


def _write_files(rows: Rows, target: Path) -> tuple[int, RowCount]:
    """Write a file for each item; return the number of files, and the counts."""
    written = RowCount()
    with folder_output(target, adds=True) as folder:
        for names, content in rows.read(_SINGLE_PART, written):
            _check_names(names)
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2) + "\n"
            with folder.text(*names) as file:
                file.write(text)
        if not written.rows:
            _check_empty(rows, _SINGLE_PART)
    return written.rows, written


def _write_lists(rows: Rows, target: Path) -> tuple[int, RowCount]:
    """Write JSON lists or JSON lines, appending rows in any order without keeping them in memory.

    The result is as for `_write_files`. A card is added, unless the format has a file with the card's name.
    """
    total = RowCount()
    begun: dict[tuple[str, ...], RowCount] = {}
    with folder_output(target, adds=True) as folder:
        for names, row in rows.read(_SINGLE_PART, total):
            _check_names(names)
            has_lines = names[-1].endswith(".jsonl")
            text = json.dumps(row, ensure_ascii=False, indent=None if has_lines else 2)
            with folder.text(*names, append=names in begun) as file:
                file.write(f"{text}\n" if has_lines else f"{',' if names in begun else '['}\n{text}")
            count = begun.setdefault(names, RowCount())
            count.rows += 1
            count.places.update(_iter_paths(row))
        for names in (each for each in begun if not each[-1].endswith(".jsonl")):
            with folder.text(*names, append=True) as file:
                file.write("\n]\n")
        if not begun:
            _check_empty(rows, _SINGLE_PART)
        elif (CARD,) not in begun:
            files = {"/".join(map(make_file_name, names)): count for names, count in begun.items()}
            with folder.text(CARD) as file:
                file.write(Card(rows, files, total=total).text())
    return len(begun), total


def _iter_paths(value: Any, place: str = "") -> Iterator[str]:
    """Yield the path of every value in a row, such as `messages[].role`."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _iter_paths(each, f"{place}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _iter_paths(each, f"{place}[]")
    else:
        yield place


def _check_names(names: Iterable[str]) -> None:
    if isinstance(names, str):
        raise RunError(
            f"{names!r}: a format that writes a folder of files must give the path of each file as a tuple of names"
        )


_ROWS_PER_GROUP = 1000
_KIND_NAMES = {
    bool: "verdict",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    tuple: "list",
    dict: "object",
}
_NUMBER_KINDS = {"verdict", "whole number", "number"}
_INT64_LIMIT = 2**63


class Column:
    """The kinds of values, and the nested fields, seen in one field over all rows."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.fields: dict[str, Column] = {}
        self.element: Column | None = None

    def observe(self, value: Any) -> None:
        """Take one value into account."""
        if value is not None:
            is_large = type(value) is int and not -_INT64_LIMIT <= value < _INT64_LIMIT
            self.kinds.add(
                "a number beyond 64 bits" if is_large else _KIND_NAMES.get(type(value), type(value).__name__)
            )
        if isinstance(value, dict):
            for key, inner in value.items():
                self.fields.setdefault(key, Column()).observe(inner)
        elif isinstance(value, list | tuple):
            self.element = self.element or Column()
            for inner in value:
                self.element.observe(inner)

    def type(self, arrow: Any, place: str = "a row") -> Any:
        """Return the Arrow type that holds all values.

        Raises:
            RunError: If values of incompatible kinds occur in one field, or a whole number has more than 64 bits.
        """
        if self.kinds == {"object"}:
            inner = [(name, column.type(arrow, f"{name!r} of {place}")) for name, column in self.fields.items()]
            return arrow.struct(inner) if inner else arrow.null()
        if self.kinds == {"list"} and self.element is not None:
            return arrow.list_(self.element.type(arrow, f"an element of {place}"))
        if self.kinds and self.kinds <= _NUMBER_KINDS:
            alone = {"verdict": arrow.bool_, "whole number": arrow.int64}
            return alone.get(min(self.kinds), arrow.float64)() if len(self.kinds) == 1 else arrow.float64()
        if self.kinds == {"text"} or not self.kinds:
            return arrow.string() if self.kinds else arrow.null()
        kinds = " and ".join(sorted(self.kinds)) + (" in different rows" if len(self.kinds) > 1 else "")
        raise RunError(f"{place} is {kinds}, which a Parquet column cannot hold; use the encoding jsonl")

    def convert(self, value: Any) -> Any:
        """Convert a value to the column's type."""
        if value is None or (isinstance(value, dict) and not self.fields):
            return None
        if isinstance(value, dict):
            return {key: self.fields[key].convert(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            assert self.element is not None, "this column contains lists"
            return [self.element.convert(inner) for inner in value]
        return float(value) if len(self.kinds) > 1 else value


def check_installed() -> None:
    """Check that pyarrow is installed, before any work is done.

    Raises:
        RunError: If it is not installed.
    """
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise RunError("encoding parquet needs pyarrow: pip install 'dialoom[parquet]'", setting="encoding") from error


def write_parquet(rows: Iterator[Any], file: IO[bytes], shape: Column) -> None:
    """Write rows as Parquet, with the schema that was derived from them.

    Raises:
        RunError: If the rows are not objects, or do not share a schema.
    """
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    if shape.kinds != {"object"} or not shape.fields:
        raise RunError("a Parquet file needs rows that are objects with keys; use the encoding jsonl")
    schema = arrow.schema(list(shape.type(arrow)))
    with parquet.ParquetWriter(file, schema) as writer:
        while group := [shape.convert(row) for row in itertools.islice(rows, _ROWS_PER_GROUP)]:
            writer.write_table(arrow.Table.from_pylist(group, schema=schema))
