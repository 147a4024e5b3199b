"""References in stored JSON, so that what is long and occurs often is stored once.

* `{"$text": id}` stands for a text that is stored already. As the key of an object, such a text becomes `"$text id"`.
* `{"$doc": "<hash>"}` stands for a document: a part that many scenarios share, such as a person's context in a
  domain, stored under the hash of its JSON. A value is packed from its innermost parts to the whole, so equal parts
  become the same document at any depth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

TEXT = "$text"
"""The key of a reference. A dict of the user's that has such a key is stored as `{"$text": [[key, value], ...]}`."""

MIN_TEXT_CHARACTERS = 64
"""The minimum length in characters of texts that are replaced by references to stored texts."""

FindText: TypeAlias = "Callable[[str], int | None]"
"""A function that returns the id of a text; `None` if the text is not stored."""

ReadText: TypeAlias = "Callable[[int], str]"
"""A function that returns a text by its id."""


def refuse_reference(id_: int) -> str:
    """Raise an error. This is the reader of texts for JSON outside run files, which must not contain references."""
    raise LookupError(f"text {id_} cannot be read outside a run's file")


def replace_texts(value: Json, find: FindText) -> Json:
    """Return a JSON value in which texts that are already stored are replaced by references."""
    if isinstance(value, str):
        id_ = find(value) if len(value) >= MIN_TEXT_CHARACTERS else None
        return value if id_ is None else {TEXT: id_}
    if isinstance(value, list):
        return [replace_texts(part, find) for part in value]
    if isinstance(value, dict):
        parts: dict[str, Json] = {key: replace_texts(part, find) for key, part in value.items()}
        if any(key.startswith(TEXT) for key in parts):
            return {TEXT: [[key, part] for key, part in parts.items()]}
        return {_replace_key(key, find): part for key, part in parts.items()}
    return value


def _replace_key(key: str, find: FindText) -> str:
    id_ = find(key) if len(key) >= MIN_TEXT_CHARACTERS else None
    return key if id_ is None else f"{TEXT} {id_}"


def restore_keys(parts: dict[str, Json], read: ReadText) -> dict[str, Json]:
    """Return a JSON object in which keys that are references are replaced by the original keys."""
    if not any(key.startswith(TEXT) for key in parts):
        return parts
    return {read(int(key[len(TEXT) :])) if key.startswith(TEXT) else key: part for key, part in parts.items()}


def restore(content: Json, read: ReadText) -> Json:
    """Return the value to which a reference's content refers: a text, or a dict that was stored as a list of pairs."""
    return dict(content) if isinstance(content, list) else read(content)  # type: ignore[arg-type]


def make_object_hook(read: ReadText) -> Callable[[dict[str, Json]], Json]:
    """Return an object hook for reading JSON made by `replace_texts`."""
    return lambda parts: restore(parts[TEXT], read) if TEXT in parts else restore_keys(parts, read)


MIN_DOCUMENT_CHARACTERS = 300
"""The minimum number of characters in the JSON of parts that become documents."""

_MAX_CACHED_REFERENCES = 4096
"""The number of parts whose references are cached; scenarios that share parts are close together in a plan."""

_DOCUMENT = "$doc"


def encode_canonical(value: Any) -> str:
    """Return the canonical JSON of a value. Keys keep their order, because prompts show it."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # integers of more than 64 bits, lone surrogates
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if "null" in text and not isinstance(value, str):  # orjson writes NaN and infinite numbers as null
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text


def digest(text: str) -> bytes:
    """Return the first 16 bytes of a text's SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]


class DocumentPacker:
    """A converter of values to JSON in which long parts are replaced by references.

    Args:
        store: Called with the hash and the JSON of each document, possibly more than once.
    """

    def __init__(self, store: Callable[[bytes, str], object]) -> None:
        self._store = store
        self._references: dict[str, str] = {}

    def pack(self, value: Any) -> str:
        """Return a JSON value as JSON with references."""
        if isinstance(value, dict):
            pairs = [f"{encode_canonical(key)}:{self._pack_or_refer(part)}" for key, part in value.items()]
            return f"{{{','.join(pairs)}}}"
        return f"[{','.join(map(self._pack_or_refer, value))}]" if isinstance(value, list) else encode_canonical(value)

    def _pack_or_refer(self, value: Any) -> str:
        """Return a part's JSON, or a reference to a document if the JSON is long even after its parts were replaced."""
        text = encode_canonical(value)
        return (
            text if len(text) < MIN_DOCUMENT_CHARACTERS else self._references.get(text) or self._pack_part(value, text)
        )

    def _pack_part(self, value: Any, text: str) -> str:
        packed = self.pack(value)
        if len(packed) >= MIN_DOCUMENT_CHARACTERS:
            hash_ = digest(packed)
            self._store(hash_, packed)
            packed = f'{{"{_DOCUMENT}":"{hash_.hex()}"}}'
        if len(self._references) == _MAX_CACHED_REFERENCES:
            self._references.clear()
        self._references[text] = packed
        return packed


def unpack(text: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value that was packed. `fetch` is a function that returns the JSON of a document by its hash."""
    return _unpack(json.loads(text), fetch)


def unpack_document(hash_: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value of a document by its hash in hex digits. For `fetch`, see `unpack`."""
    return unpack(fetch(bytes.fromhex(hash_)), fetch)


def _unpack(value: Any, fetch: Callable[[bytes], str]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_DOCUMENT}:
            return unpack_document(value[_DOCUMENT], fetch)
        return {key: _unpack(part, fetch) for key, part in value.items()}
    return [_unpack(part, fetch) for part in value] if isinstance(value, list) else value
