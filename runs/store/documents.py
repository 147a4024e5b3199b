"""Content-addressed JSON: a part that many scenarios share (a person's context in a domain) is stored once.

A value is packed bottom-up. Every part with long JSON becomes a document under the hash of that JSON, and is replaced
by `{"$doc": "<hash>"}`, so equal parts are equal documents at any depth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import orjson

LONG = 300
"""Parts whose JSON has at least this many characters become documents."""

_REMEMBERED = 4096
"""The number of parts whose references are cached: scenarios that share parts follow each other."""

_REFERENCE = "$doc"


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value. Keys keep their order, because prompts show it."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # integers of more than 64 bits, lone surrogates
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if "null" in text and not isinstance(value, str):  # NaN and infinite numbers are null to orjson
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text


def digest(text: str) -> bytes:
    """Return the first 16 bytes of a text's SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]


class Packing:
    """The conversion of values to JSON in which long parts are replaced by references.

    Args:
        keep: Called with the hash and the JSON of each document, possibly more than once.
    """

    def __init__(self, keep: Callable[[bytes, str], object]) -> None:
        self._keep = keep
        self._references: dict[str, str] = {}

    def pack(self, value: Any) -> str:
        """Return a JSON value as JSON with references."""
        if isinstance(value, dict):
            return f"{{{','.join([f'{canonical(key)}:{self._part(part)}' for key, part in value.items()])}}}"
        if isinstance(value, list):
            return f"[{','.join(map(self._part, value))}]"
        return canonical(value)

    def _part(self, value: Any) -> str:
        """Return a part's JSON, or a reference if it is long even with references to its own long parts."""
        text = canonical(value)
        return text if len(text) < LONG else self._references.get(text) or self._referring(value, text)

    def _referring(self, value: Any, text: str) -> str:
        packed = self.pack(value)
        if len(packed) >= LONG:
            hash_ = digest(packed)
            self._keep(hash_, packed)
            packed = f'{{"{_REFERENCE}":"{hash_.hex()}"}}'
        if len(self._references) == _REMEMBERED:
            self._references.clear()
        self._references[text] = packed
        return packed


def unpack(text: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value that was packed. `fetch` returns the JSON of a document by its hash."""
    return _unpacked(json.loads(text), fetch)


def fetched(hash_: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value of a document by its hash in hex digits; `fetch` as in `unpack`."""
    return unpack(fetch(bytes.fromhex(hash_)), fetch)


def _unpacked(value: Any, fetch: Callable[[bytes], str]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_REFERENCE}:
            return fetched(value[_REFERENCE], fetch)
        return {key: _unpacked(part, fetch) for key, part in value.items()}
    if isinstance(value, list):
        return [_unpacked(part, fetch) for part in value]
    return value
