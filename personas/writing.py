"""Writing JSONL files that people keep: whole, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import DataError


def write_lines(path: Path, values: Iterable[Mapping[str, Any]]) -> int:
    """Write one JSON object a line, beside the file first and then in its place; returns how many.

    Raises:
        DataError: If the file cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            for value in values:
                file.write(json.dumps(value, ensure_ascii=False) + "\n")
                count += 1
        beside.replace(path)
    except OSError as error:
        raise DataError(path, f"cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return count
