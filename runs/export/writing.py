"""Carrying out an export: one file with its card beside it, a folder of two splits, or a recipe's own files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile

from . import parquet
from .card import Card
from .request import Encoding, ExportRequest
from .rows import RowCount, Rows
from .split import TEST, TRAIN
from .targets import file_beside, folder_beside, is_stream

_ONLY = "all"


def export(
    run: RunFile,
    format_: str,
    target: Path,
    judging: str | None = None,
    *,
    encoding: Encoding = "jsonl",
    test_share: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Write a run's finished scenarios, in plan order; returns how many rows or files were written.

    Args:
        run: The run.
        format_: One of `formats`.
        target: A file; a folder for formats of files, and for a split.
        judging: The set of judgements; by default the oldest.
        encoding: How rows are written.
        test_share: The share of the test split; `None` for no split.
        options: The format's own options.

    Raises:
        RunError: If the format is not there or cannot do that, or the target cannot be written; nothing is left
            half-written.
        StoreError: If there is no such set.
    """
    return sum(write(run, ExportRequest(format_, judging, encoding, test_share, options or {}), target).values())


def write(run: RunFile, request: ExportRequest, target: Path | TextIO) -> dict[str, int]:
    """Write what is asked for; returns how many rows (or files) by part: `train` and `test`, or `all`.

    Args:
        run: The run.
        request: What is asked for.
        target: A path as of `export`; or an open text file, such as standard output, for JSON lines.

    Raises:
        RunError, StoreError: As `export`.
    """
    rows = Rows(run, request)
    if not isinstance(target, Path):
        return {_ONLY: _write_open(rows, target)}
    if request.encoding == "parquet":
        parquet.check_installed()
    try:
        if rows.exporter is not None and rows.exporter.kind == "files":
            return {_ONLY: _write_files(rows.read(_ONLY, RowCount()), target)}
        return _write_split(rows, target) if rows.split is not None else {_ONLY: _write_one(rows, target)}
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error.strerror or error}") from error


def _write_open(rows: Rows, file: TextIO) -> int:
    """JSON lines into a file that somebody else has opened and will close; they are let go of one by one."""
    is_files = rows.exporter is not None and rows.exporter.kind == "files"
    if is_files or rows.split is not None or rows.request.encoding != "jsonl":
        raise RunError("path: an open file or standard output takes JSON lines alone; give a path", setting="path")
    count = RowCount()
    for item in rows.read(_ONLY, count):
        file.write(json.dumps(item, ensure_ascii=False) + "\n")
    if not count.rows:
        _check_empty(rows, _ONLY)
    return count.rows


def _write_one(rows: Rows, target: Path) -> int:
    """One file, and its card beside it. Pipes and devices are written directly, and get no card."""
    count = RowCount()
    if target.is_dir():
        raise RunError(f"{target} is a folder; this export is one file (with test_share, a folder of two)")
    if is_stream(target):
        if rows.request.encoding == "parquet":
            raise RunError(f"{target} is no regular file; Parquet needs one")
        _write_part(rows, _ONLY, target, count, None)
        return count.rows
    shape = _shape(rows, (_ONLY,))
    if rows.exporter is None:  # each dialogue says itself how it was made
        with file_beside(target) as partial:
            _write_part(rows, _ONLY, partial, count, shape)
        return count.rows
    beside = target.with_name(f"{target.stem}.card.md")
    with file_beside(beside) as card, file_beside(target) as partial:
        _write_part(rows, _ONLY, partial, count, shape)
        card.write_text(Card(rows, {target.name: count}).text(), encoding="utf-8")
    return count.rows


def _write_split(rows: Rows, target: Path) -> dict[str, int]:
    """A folder of two files and a card, as dataset hubs take it."""
    parts = (TRAIN, TEST)
    counts = {part: RowCount() for part in parts}
    names = {part: f"{part}.{rows.request.encoding}" for part in parts}
    with folder_beside(target) as folder:
        shape = _shape(rows, parts)
        for part, count in counts.items():
            _write_part(rows, part, folder / names[part], count, shape)
        card = Card(rows, {names[part]: count for part, count in counts.items()}, splits=names)
        (folder / "README.md").write_text(card.text(), encoding="utf-8")
    return {part: count.rows for part, count in counts.items()}


def _shape(rows: Rows, parts: tuple[str, ...]) -> parquet.Column | None:
    """For Parquet, the shape that the rows of all parts share."""
    if rows.request.encoding != "parquet":
        return None
    return parquet.columns_of(row for part in parts for row in rows.read(part, RowCount()))


def _write_part(rows: Rows, part: str, path: Path, count: RowCount, shape: parquet.Column | None) -> None:
    items = rows.read(part, count)
    if shape is not None and shape.kinds:
        parquet.write_parquet(items, path, shape)
    else:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    if not count.rows:
        _check_empty(rows, part)


def _check_empty(rows: Rows, part: str) -> None:
    """No rows at all are an empty JSONL file; a filter or a split that leaves none is a mistake."""
    done = rows.run.status().done
    given = rows.request.told()
    if part != _ONLY:
        raise RunError(f"the {part} split has no row{f' with {given}' if given else ''}; {done:,} scenarios are done")
    if given and done:
        raise RunError(f"{given} leaves no row of {done:,} finished scenarios; nothing was written")
    if rows.request.encoding == "parquet":
        raise RunError(f"there is no row to write yet ({done:,} scenarios are done), and Parquet needs one")


def _write_files(items: Iterator[Any], target: Path) -> int:
    count = 0
    with folder_beside(target) as folder:
        for name, content in items:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            count += 1
    return count
