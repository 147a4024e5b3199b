"""Lists of objects in JSON files, read with errors that name file and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, parse_json, read_text
from dialoom.text import well_formed_value

Row = TypeVar("Row", bound=BaseModel)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, or of a file with one on each line.

    Raises:
        DataError: If the file cannot be read or holds something else.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        rows = parse_json(text, path)
    else:
        lines = enumerate(text.splitlines(), start=1)
        rows = [parse_json(line, path, number) for number, line in lines if line.strip()]
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DataError(path, f"row {number} is {row!r:.60}; an object is needed")
    return [dict(well_formed_value(row)) for row in rows]


def read_models(path: Path, type_: type[Row], *, once: str = "") -> list[Row]:
    """The rows of such a file as a type has them; there must be some.

    Args:
        path: The file.
        type_: What each row becomes.
        once: A key that no two rows may have the same value of.

    Raises:
        DataError: If the file cannot be read, a row is of another form or stands there twice, or there is none.
    """
    found: list[Row] = []
    places: dict[Any, int] = {}
    for number, row in enumerate(read_rows(path)):
        try:
            found.append(type_.model_validate(row))
        except ValidationError as error:
            raise DataError(path, f"row {number}: {_told(error, type_)}") from error
        if once and (first := places.setdefault(row[once], number)) != number:
            raise DataError(path, f"row {number}: {once} {row[once]!r:.60} stands in row {first} as well")
    if not found:
        raise DataError(path, "holds no row")
    return found


def _told(error: ValidationError, type_: type[BaseModel]) -> str:
    """What is wrong with a row, and what would be right."""
    place, message, value = first_problem(error)
    kind = error.errors()[0]["type"]
    if kind == "missing":
        return f"{place!r} is missing"
    if kind == "extra_forbidden" and "." not in place:
        return f"there is no key {place!r}; there are {', '.join(type_.model_fields)}"
    return f"{place!r} is {value!r:.60}: {message.removeprefix('Value error, ')}"


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
