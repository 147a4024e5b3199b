"""Atomic writing of JSONL files that users keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dialoom.outputs import text_output


def write_lines(path: Path, values: Iterable[Mapping[str, Any]], inputs: Iterable[Path] = ()) -> int:
    """Write one JSON object per line, and return the number of lines.

    Raises:
        OutputError: If the file is one of the inputs or an SQLite file, or cannot be written.
    """
    count = 0
    with text_output(path, inputs) as file:
        for value in values:
            file.write(json_line(value))
            count += 1
    return count


def json_line(value: Mapping[str, Any]) -> str:
    """Return an object as a line of a JSONL file."""
    return json.dumps(value, ensure_ascii=False) + "\n"
