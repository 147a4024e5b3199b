"""Content-addressed JSON: what many scenarios share (a person's context in a domain) is stored once.

A value is packed bottom-up. Every part whose JSON is long becomes a document under the hash of that JSON, and
`{"$doc": "<hash>"}` takes its place, so equal parts are equal documents however deep they stand. A file keeps a
document deflated where that takes clearly less room: plans are read far less often than they lie there.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from typing import Any

LONG = 300
"""Parts whose JSON has at least this many characters are set apart."""

_REFERENCE = "$doc"
_WORTH = 0.75
"""A document that takes more than this share of its room when deflated is kept as text, which any tool reads."""
_MOST = 2**26
"""Bytes of a deflated document: in a crafted file, few bytes may stand for any number."""


def canonical(value: Any) -> str:
    """The one JSON text of a value. Keys keep their order: it is what prompts show."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def digest(text: str) -> bytes:
    """The first 16 bytes of SHA-256."""
    return hashlib.sha256(text.encode()).digest()[:16]


def pack(value: Any, keep: Callable[[bytes, str], None]) -> str:
    """The value as JSON, long parts replaced by references.

    Args:
        value: A JSON value.
        keep: Takes each document that is set apart: its hash and its JSON.
    """
    return canonical(_packed(value, keep, top=True))


def unpack(text: str, fetch: Callable[[bytes], str]) -> Any:
    """The value that was packed. `fetch` gives the JSON of a document by its hash."""
    return _unpacked(json.loads(text), fetch)


def kept(text: str) -> str | bytes:
    """A document's JSON as a file keeps it: deflated (zlib), or the text itself."""
    plain = text.encode()
    small = zlib.compress(plain)
    return small if len(small) <= _WORTH * len(plain) and len(plain) <= _MOST else text


def text_of(content: Any) -> str:
    """The JSON that `kept` kept.

    Raises:
        ValueError: If it is deflated and nothing comes of it.
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
    """The value of a document, by its hash in hex digits; `fetch` as in `unpack`."""
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
