"""Content-addressed JSON: a part that many scenarios share (a person's context in a domain) is stored once.

A value is packed bottom-up. Every part with long JSON becomes a document under the hash of that JSON, and is replaced
by `{"$doc": "<hash>"}`, so equal parts are equal documents at any depth. A document is deflated if that makes it
clearly smaller: plans are rarely read.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from typing import Any

LONG = 300
"""Parts whose JSON has at least this many characters become documents."""

_REFERENCE = "$doc"
_WORTH = 0.75
"""A document whose deflated size exceeds this share of its size is stored as text, which any tool reads."""
_MOST = 2**26
"""The maximum size of an inflated document in bytes: a crafted file may inflate to any size."""


def canonical(value: Any) -> str:
    """Return the canonical JSON of a value. Keys keep their order, because prompts show it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def digest(text: str) -> bytes:
    """Return the first 16 bytes of a text's SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]


def pack(value: Any, keep: Callable[[bytes, str], None]) -> str:
    """Return the value as JSON, with long parts replaced by references.

    Args:
        value: A JSON value.
        keep: Called with each document: its hash and its JSON.
    """
    return canonical(_packed(value, keep, top=True))


def unpack(text: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value that was packed. `fetch` returns the JSON of a document by its hash."""
    return _unpacked(json.loads(text), fetch)


def kept(text: str) -> str | bytes:
    """Return a document's JSON as a file stores it: deflated (zlib), or the text itself."""
    plain = text.encode()
    small = zlib.compress(plain)
    return small if len(small) <= _WORTH * len(plain) and len(plain) <= _MOST else text


def text_of(content: Any) -> str:
    """Return the JSON that `kept` stored.

    Raises:
        ValueError: If it is deflated and cannot be inflated.
    """
    if not isinstance(content, bytes):
        return str(content)
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(content, _MOST)
    except zlib.error as error:
        raise ValueError(f"it cannot be inflated ({error})") from error
    if not inflating.eof:
        raise ValueError("it cannot be inflated: its end is missing, or it is too long")
    return plain.decode()


def fetched(hash_: str, fetch: Callable[[bytes], str]) -> Any:
    """Return the value of a document by its hash in hex digits; `fetch` as in `unpack`."""
    return unpack(fetch(bytes.fromhex(hash_)), fetch)


def _packed(value: Any, keep: Callable[[bytes, str], None], top: bool = False) -> Any:
    if isinstance(value, dict):
        value = {key: _packed(part, keep) for key, part in value.items()}
    elif isinstance(value, list):
        value = [_packed(part, keep) for part in value]
    elif not isinstance(value, str) or len(value) < LONG:
        return value
    text = canonical(value)
    if top or len(text) < LONG:
        return value
    hash_ = digest(text)
    keep(hash_, text)
    return {_REFERENCE: hash_.hex()}


def _unpacked(value: Any, fetch: Callable[[bytes], str]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_REFERENCE}:
            return fetched(value[_REFERENCE], fetch)
        return {key: _unpacked(part, fetch) for key, part in value.items()}
    if isinstance(value, list):
        return [_unpacked(part, fetch) for part in value]
    return value
