"""Pool files: JSONL that people read and edit. Reading takes an ALOE release's lines (one JSON string each) as well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError
from dialoom.personas.mending import Mendings
from dialoom.personas.writing import write_lines

from .entry import PoolEntry, PoolKind, content_id
from .lines import values_of

EMPTY_TEXT = "empty texts left out"
SPACED = "texts with stray spaces or line breaks mended"
TWICE = "repeated texts left out"

_SEEDS = Path(__file__).parent / "seeds"


def entries_of(path: Path, mendings: Mendings) -> Iterator[tuple[int, PoolEntry]]:
    """The entries of a file as they stand, twins included, each with the number of its line.

    A line is an object with at least a `text`, or a text alone, as the release has them.

    Raises:
        DataError: If the file cannot be read or a line is of another form.
    """
    for number, value in values_of(path, mendings):
        values = {"text": value} if isinstance(value, str) else value
        if not isinstance(values, dict) or not isinstance(values.get("text"), str):
            raise DataError(path, f"{_shown(value)}; a text or an object with a 'text' is needed", number)
        text = " ".join(values["text"].split())
        if not text:
            mendings[EMPTY_TEXT] += 1
            continue
        mendings[SPACED] += text != values["text"]
        yield number, _entry({"id": content_id(text), **values, "text": text}, path, number)


def read_pool(path: Path, mendings: Mendings | None = None) -> list[PoolEntry]:
    """A pool: every text once, in the file's order.

    Args:
        path: The file.
        mendings: Counts what was put up with.

    Raises:
        DataError: If the file cannot be read, a line is wrong, two texts have one id, or there is none at all.
    """
    counts = Mendings() if mendings is None else mendings
    lines: dict[str, int] = {}
    texts: set[str] = set()
    entries: list[PoolEntry] = []
    for number, entry in entries_of(path, counts):
        if entry.text in texts:
            counts[TWICE] += 1
            continue
        if entry.id in lines:
            raise DataError(path, f"the id {entry.id!r} is also that of line {lines[entry.id]}, another text", number)
        lines[entry.id] = number
        texts.add(entry.text)
        entries.append(entry)
    if not entries:
        raise DataError(path, "the pool is empty: it holds no text")
    return entries


def write_pool(path: Path, entries: Iterable[PoolEntry], inputs: Iterable[Path] = ()) -> int:
    """Write a pool, whole or not at all; returns its size. The arguments are those of `write_personas`.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    return write_lines(path, (entry.plain() for entry in entries), inputs)


def shipped_seeds(kind: PoolKind) -> list[PoolEntry]:
    """The seeds that dialoom ships, written for it."""
    return read_pool(_SEEDS / f"{kind}.jsonl")


def _entry(values: dict[str, Any], path: Path, number: int) -> PoolEntry:
    try:
        return PoolEntry.model_validate(values)
    except ValidationError as error:
        place, message, value = first_problem(error)
        raise DataError(path, f"{place!r} is {value!r:.60}: {message}", number) from error


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"holds an object with {', '.join(map(repr, value)) or 'nothing'}"[:120]
    return f"holds {type(value).__name__} {json.dumps(value, ensure_ascii=False)[:40]}"
