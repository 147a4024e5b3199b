"""Lists of objects in JSON files, read with errors that name file and row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dialoom.personas.errors import DataError
from dialoom.text import well_formed_value


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON list, or of a file with one on each line.

    Raises:
        DataError: If the file cannot be read or holds something else.
    """
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise DataError(path, "there is no such file") from None
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(path, f"not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError as error:
        raise DataError(path, f"not JSON: {error.msg} (column {error.colno})", error.lineno) from None
    except RecursionError:
        raise DataError(path, "not JSON: nested too deeply") from None
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(path, f"row {number} is {row!r:.60}; an object is needed")
    return [dict(well_formed_value(row)) for row in rows]


def text_of(path: Path, place: str, row: dict[str, Any], key: str, default: str | None = None) -> str:
    """A text of a row.

    Raises:
        DataError: If it is missing, empty or something else; with a default only the last.
    """
    value = row.get(key, default)
    if not isinstance(value, str) or (default is None and not value.strip()):
        found = "missing" if key not in row else f"{value!r:.60}"
        raise DataError(path, f"{place}: {key!r} is {found}; a text is needed")
    return value.strip()
