"""References to texts that were said or sent: where JSON would repeat one of them, `{"$text": id}` stands instead.

Where it is the key of an object, `"$text id"` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TEXT = "$text"
"""The key of a reference. A dict that has keys like it itself is kept as `{"$text": [[key, value], ...]}`."""

LONG = 64
"""Letters from which on a text is looked for among those that are kept."""

FindText: TypeAlias = "Callable[[str], int | None]"
"""The id of a text, if it is kept."""

ReadText: TypeAlias = "Callable[[int], str]"
"""A text, by its id."""


def no_text(id_: int) -> str:
    """For JSON that is in no run's file, and so refers to nothing."""
    raise LookupError(f"there is no text {id_} outside a run's file")


def referring(value: Json, find: FindText) -> Json:
    """A JSON value with references to the texts that are kept."""
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
    """An object with its keys as they were."""
    if not any(key.startswith(TEXT) for key in parts):
        return parts
    return {read(int(key[len(TEXT) :])) if key.startswith(TEXT) else key: part for key, part in parts.items()}


def restored(content: Json, read: ReadText) -> Json:
    """What stands under the key of a reference: the text, or the dict that is none."""
    if isinstance(content, list):
        return dict(content)  # type: ignore[arg-type]
    return read(content)  # type: ignore[arg-type]


def reading(read: ReadText) -> Callable[[dict[str, Json]], Json]:
    """For a reader of JSON that `referring` gave: what each of its objects is."""
    return lambda parts: restored(parts[TEXT], read) if TEXT in parts else with_keys(parts, read)
