"""The ids that columns hold within JSON: which there are, and the same JSON with others in their place.

One walk serves both: whoever packs looks at the ids that it meets, whoever unpacks gives new ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dialoom.runs.store.references import TEXT

NewId = Callable[[int], int]
"""Takes an id of one file, gives that of another."""


def with_messages(column: str, text: NewId, passage: NewId) -> str:
    """A column of messages: ids of passages, or messages with ids of texts."""
    return _json([_entry(entry, text, passage) for entry in json.loads(column)])


def _entry(entry: Any, text: NewId, passage: NewId) -> Any:
    if isinstance(entry, int):
        return passage(entry)
    role, *rest = entry
    return [role, *(text(part) if isinstance(part, int) else part for part in rest)]


def with_texts(column: str, text: NewId) -> str:
    """JSON in which texts may be referred to."""
    return _json(_value(json.loads(column), text)) if f'"{TEXT}' in column else column


def with_elements(column: str, text: NewId, value: NewId, list_: NewId) -> str:
    """Elements of a list, or what the channels of a checkpoint hold."""
    return _json([_held(part, text, value, list_) for part in json.loads(column)])


def with_write(column: str, text: NewId, value: NewId, list_: NewId) -> str:
    """What a task has written."""
    kind, content = json.loads(column)
    match kind:
        case "value":
            content = _held(content, text, value, list_)
        case "items":
            content = [_held(part, text, value, list_) for part in content]
        case _:
            content = _value(content, text)
    return _json([kind, content])


def _held(part: Any, text: NewId, value: NewId, list_: NewId) -> Any:
    if isinstance(part, int):
        return value(part) if part >= 0 else -text(-part)
    if isinstance(part, list):
        return [_value(part[0], text)]
    if "fields" in part:
        return {"fields": {name: _held(each, text, value, list_) for name, each in part["fields"].items()}}
    return {"list": list_(part["list"])}


def _value(value: Any, text: NewId) -> Any:
    if isinstance(value, list):
        return [_value(part, text) for part in value]
    if isinstance(value, dict):
        return {
            _key(key, text): text(part) if key == TEXT and isinstance(part, int) else _value(part, text)
            for key, part in value.items()
        }
    return value


def _key(key: str, text: NewId) -> str:
    """A key of an object; that of a long text is a reference, too."""
    return f"{TEXT} {text(int(key[len(TEXT) :]))}" if key.startswith(f"{TEXT} ") else key


_json: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
