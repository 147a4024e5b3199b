"""References to stored texts: where JSON would repeat one of them, it contains `{"$text": id}` instead.

A text that is the key of an object is replaced by `"$text id"`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TEXT = "$text"
"""The key of a reference. A dict with similar keys of its own is stored as `{"$text": [[key, value], ...]}`."""

LONG = 64
"""The minimum length in characters of a text that is looked up among the stored ones."""

FindText: TypeAlias = "Callable[[str], int | None]"
"""Returns the id of a text; `None` if it is not stored."""

ReadText: TypeAlias = "Callable[[int], str]"
"""Returns a text by its id."""


def no_text(id_: int) -> str:
    """Raise an error: the reader of texts for JSON outside any run's file, which must not contain references."""
    raise LookupError(f"there is no text {id_} outside a run's file")


def referring(value: Json, find: FindText) -> Json:
    """Return a JSON value with stored texts replaced by references."""
    if isinstance(value, str):
        id_ = find(value) if len(value) >= LONG else None
        return value if id_ is None else {TEXT: id_}
    if isinstance(value, list):
        return [referring(part, find) for part in value]
    if isinstance(value, dict):
        parts: dict[str, Json] = {key: referring(part, find) for key, part in value.items()}
        if any(key.startswith(TEXT) for key in parts):
            return {TEXT: [[key, part] for key, part in parts.items()]}
        return {_key(key, find): part for key, part in parts.items()}
    return value


def _key(key: str, find: FindText) -> str:
    id_ = find(key) if len(key) >= LONG else None
    return key if id_ is None else f"{TEXT} {id_}"


def with_keys(parts: dict[str, Json], read: ReadText) -> dict[str, Json]:
    """Return an object with its original keys."""
    if not any(key.startswith(TEXT) for key in parts):
        return parts
    return {read(int(key[len(TEXT) :])) if key.startswith(TEXT) else key: part for key, part in parts.items()}


def restored(content: Json, read: ReadText) -> Json:
    """Return the value of a reference's content: the text, or the dict that was stored as a list of pairs."""
    if isinstance(content, list):
        return dict(content)  # type: ignore[arg-type]
    return read(content)  # type: ignore[arg-type]


def reading(read: ReadText) -> Callable[[dict[str, Json]], Json]:
    """Return an object hook for reading JSON made by `referring`."""
    return lambda parts: restored(parts[TEXT], read) if TEXT in parts else with_keys(parts, read)
