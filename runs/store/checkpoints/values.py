"""Serialisation of checkpointed values: packed bytes for comparison, readable JSON for storage.

Supported are plain values (None, bool, int, float, str, bytes, list, tuple, set, dict with str keys), langchain-core
messages, and the few types that LangGraph itself puts into channels and writes. Everything else is refused, so that
every value is read back with the type it was stored with.

Packing with msgpack is about ten times faster than making JSON. Each put packs all channels that were written, before
it waits for the writer. The writer makes JSON from the packed bytes, but only for values that are not stored yet.

A value that JSON cannot represent becomes an object with one key that begins with `$`: `{"$tuple": [1, 2]}`,
`{"$HumanMessage": {"content": "Hello"}}`. A user's dict with such a key becomes `{"$dict": [[key, value], ...]}`. A
message text that the run's file already stores becomes `{"$text": id}`.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import langchain_core.messages as lc
import orjson
import ormsgpack
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send

from dialoom.runs.store.references import (
    TEXT,
    FindText,
    Json,
    ReadText,
    refuse_reference,
    replace_texts,
    restore,
    restore_keys,
)

_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_EXTENSION_CODE = 1
_EMPTY_CONSTANTS: Mapping[type, object] = {list: [], dict: {}}

_JSON_MARKER = b"\xc1"
"""The first byte of packed values that are JSON text; no msgpack value begins with it."""

_UNICODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII = json.JSONEncoder(separators=(",", ":"))


MAX_INLINE_BYTES = 48
"""The maximum size in packed bytes of values that are stored inline: a reference would take as much space."""


class Large(NamedTuple):
    """A packed value that is stored in its own row."""

    hash: bytes
    body: bytes


Value: TypeAlias = bytes | Large
"""A packed value. A short value is just its bytes."""


class UnstorableError(TypeError):
    """A value that cannot be stored in a checkpoint; the message states its type and its place."""


class RecordedError(Exception):
    """A node's exception as it is stored: its `str` and `repr`, without type and traceback.

    Args:
        message: The exception's `str`.
        shown: The exception's `repr`.
    """

    def __init__(self, message: str, shown: str) -> None:
        super().__init__(message, shown)

    def __str__(self) -> str:
        return str(self.args[0])

    def __repr__(self) -> str:
        return str(self.args[1])

    @classmethod
    def of(cls, error: BaseException) -> RecordedError:
        """Return an exception in the form in which it is stored."""
        return error if isinstance(error, RecordedError) else cls(str(error), repr(error))


class _Part(NamedTuple):
    """A value that JSON cannot represent: the name of its kind, and its content."""

    tag: str
    content: Any


def pack(value: object) -> bytes:
    """Return the bytes of a value: equal values of equal types have equal bytes.

    Raises:
        UnstorableError: If the value or a part of it has an unsupported type.
    """
    try:
        body = ormsgpack.packb(value, _pack_part, _OPTIONS)
    except Exception:
        # The value is either rare (integers of more than 64 bits, lone surrogates) or unsupported; the slower
        # conversion shows which.
        return _JSON_MARKER + _encode_strictly(value).encode()
    # The packer accepts any buffer as bytes. The bytes that mark buffers in its output also occur in texts, so the
    # value itself is searched for buffers.
    if b"\xc4" in body or b"\xc5" in body or b"\xc6" in body:
        _refuse_buffers(value)
    return body


def hash_if_large(body: bytes) -> Value:
    """Return a packed value with its hash if it is long, and as plain bytes if it is short."""
    return body if len(body) <= MAX_INLINE_BYTES else Large(digest(body), body)


class _CachedMessage(ref[lc.BaseMessage]):
    """A cache entry for a packed message: its plain fields when it was packed, and the packed value."""

    __slots__ = ("fields", "packed", "place")
    fields: dict[str, object]
    packed: Value
    place: int


class Packer:
    """A packer of list elements. It caches packed messages, because every put contains the whole conversation.

    A cached result is used if the message is the same object with the same plain fields. A message that contains
    mutable values (tool calls, metadata) is packed each time. A message is dropped from the cache when it is
    garbage-collected.
    """

    def __init__(self) -> None:
        known: dict[int, _CachedMessage] = {}

        def forget(message: _CachedMessage) -> None:
            known.pop(message.place, None)

        self._cache = known
        self._forget = forget

    def pack(self, elements: Sequence[Any]) -> list[Value]:
        """Pack each element and return the results."""
        find = self._cache.get
        packed: list[Value] = []
        for element in elements:
            known = find(id(element))
            if known is not None and element.__dict__ == known.fields and not element.__pydantic_extra__:
                packed.append(known.packed)
            elif type(element) in _MESSAGES:
                packed.append(self._pack_message(element))
            else:
                packed.append(hash_if_large(pack(element)))
        return packed

    def _pack_message(self, message: lc.BaseMessage) -> Value:
        """Pack a message; one with only plain fields is packed as JSON, which is also its stored form."""
        kind = type(message)
        defaults = _MESSAGES[kind]
        fields: dict[str, object] = {}
        content: dict[str, object] = {}
        for name, field in message.__dict__.items():
            type_ = type(field)
            if type_ is str or type_ is bool or field is None:
                fields[name] = field
            elif (type_ is list or type_ is dict) and not field:
                fields[name] = _EMPTY_CONSTANTS[
                    type_
                ]  # a shared constant, so that a later change of the field is detected
            else:
                return hash_if_large(pack(message))
            if not _is_default(field, defaults.get(name, kind)):
                content[name] = field
        if message.__pydantic_extra__:
            return hash_if_large(pack(message))
        try:
            packed = hash_if_large(_JSON_MARKER + orjson.dumps({_TAGS[kind]: content}))
        except orjson.JSONEncodeError:  # lone surrogates
            return hash_if_large(pack(message))
        known = self._cache[id(message)] = _CachedMessage(message, self._forget)
        known.place, known.fields, known.packed = id(message), fields, packed
        return packed


def encode_value(body: bytes, find: FindText | None = None) -> str:
    """Return the JSON of a packed value.

    Args:
        body: The value.
        find: Looks up texts that are already stored; these are replaced by references.
    """
    if body.startswith(_JSON_MARKER):
        text = body[1:].decode()
        return text if find is None else encode_finite_json(replace_texts(json.loads(text), find))
    readable = _to_json_value(ormsgpack.unpackb(body, ext_hook=_unpack_part))
    return encode_finite_json(readable if find is None else replace_texts(readable, find))


def digest(data: bytes) -> bytes:
    """Return the first 16 bytes of SHA-256."""
    return sha256(data).digest()[:16]


def hash_element(element: Value) -> bytes:
    """Return the hash of a list element, from which the hash of its list is computed."""
    return element.hash if isinstance(element, Large) else digest(element)


def decode_value(text: str, read: ReadText = refuse_reference) -> Any:
    """Return the value from which `encode_value` made this JSON text."""
    return json.loads(text, object_hook=partial(_decode_object, read))


def decode_part(parsed: Any, read: ReadText = refuse_reference) -> Any:
    """Return the Python value for a part of a parsed JSON text from `encode_value`."""
    return decode_value(encode_json(parsed), read) if isinstance(parsed, (list, dict)) else parsed


def encode_finite_json(value: object) -> str:
    """Return the same JSON as `encode_json`, but faster; numbers must be finite."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # integers of more than 64 bits, lone surrogates
        return encode_json(value)


def encode_json(value: object) -> str:
    """Return compact JSON in Unicode; lone surrogates, which UTF-8 cannot hold, are escaped."""
    text = _UNICODE.encode(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _ASCII.encode(value)
    return text


def _encode_strictly(value: object) -> str:
    try:
        return encode_json(_to_json_value(value))
    except RecursionError:
        raise UnstorableError("a value that is nested too deeply cannot be stored in a checkpoint") from None


_MESSAGES: Mapping[type[lc.BaseMessage], Mapping[str, object]] = {
    kind: {name: field.get_default(call_default_factory=True) for name, field in kind.model_fields.items()}
    for kind in (
        lc.AIMessage,
        lc.AIMessageChunk,
        lc.ChatMessage,
        lc.ChatMessageChunk,
        lc.FunctionMessage,
        lc.FunctionMessageChunk,
        lc.HumanMessage,
        lc.HumanMessageChunk,
        lc.RemoveMessage,
        lc.SystemMessage,
        lc.SystemMessageChunk,
        lc.ToolMessage,
        lc.ToolMessageChunk,
    )
}
"""The kinds of messages with the default values of their fields; fields with their default value are left out."""

_MUTABLE_DEFAULTS: Mapping[type[lc.BaseMessage], Mapping[str, type]] = {
    kind: {name: type(default) for name, default in defaults.items() if type(default) in _EMPTY_CONSTANTS}
    for kind, defaults in _MESSAGES.items()
}
"""The fields whose default is an empty list or dict, of which each message needs its own."""

_TAGS = {kind: f"${kind.__name__}" for kind in _MESSAGES}
_MESSAGE_KINDS = {kind.__name__: kind for kind in _MESSAGES}


def _to_part(value: object) -> _Part:
    """Return the name of the kind and the content of a value that JSON cannot represent."""
    kind = type(value)
    if kind in _MESSAGES:
        assert isinstance(value, lc.BaseMessage)
        extra = value.__pydantic_extra__
        return _Part(kind.__name__, {**value.__dict__, **extra} if extra else value.__dict__)
    if (encode := _ENCODERS.get(kind)) is not None:
        return _Part(kind.__name__, encode(value))
    raise UnstorableError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored in a checkpoint")


def _fields_of_send(send: Send) -> dict[str, object]:
    if send.timeout is not None:
        raise UnstorableError(f"a Send with a timeout (to {send.node!r}) cannot be stored in a checkpoint")
    return {"node": send.node, "arg": send.arg}


def _fields_of_interrupt(interrupt: Interrupt) -> dict[str, object]:
    fields: dict[str, object] = {"value": interrupt.value, "id": interrupt.id}
    if interrupt.response_schema is not None:
        fields["response_schema"] = interrupt.response_schema
    return fields


_ENCODERS: Mapping[type, Callable[[Any], object]] = {
    tuple: list,
    set: lambda value: sorted(value, key=pack),  # LangGraph stores the nodes that a join waits for as a set
    bytes: lambda value: b64encode(value).decode(),
    Send: _fields_of_send,
    Interrupt: _fields_of_interrupt,
    Command: lambda command: {name: getattr(command, name) for name in ("graph", "update", "resume", "goto")},
    Overwrite: lambda overwrite: overwrite.value,
    RecordedError: lambda error: list(error.args),
    _DeltaSnapshot: lambda snapshot: snapshot.value,
}

_DECODERS: Mapping[str, Callable[[Any], object]] = {
    "$dict": dict,
    "$tuple": tuple,
    "$set": set,
    "$bytes": b64decode,
    "$float": float,
    "$RecordedError": lambda args: RecordedError(*args),
    "$Send": lambda fields: Send(**fields),
    "$Interrupt": lambda fields: Interrupt(**fields),
    "$Command": lambda fields: Command(**fields),
    "$Overwrite": Overwrite,
    "$_DeltaSnapshot": _DeltaSnapshot,
}


def _pack_part(value: object) -> ormsgpack.Ext:
    """Return an extension value for a value that the packer does not support itself."""
    kind = type(value)
    if kind in _MESSAGES and not value.__pydantic_extra__:  # type: ignore[attr-defined]
        content = value.__dict__
        tag = kind.__name__
    else:
        tag, content = _to_part(value)
    return ormsgpack.Ext(_EXTENSION_CODE, ormsgpack.packb([tag, content], _pack_part, _OPTIONS))


def _unpack_part(_code: int, data: bytes) -> _Part:
    return _Part(*ormsgpack.unpackb(data, ext_hook=_unpack_part))


def _to_json_value(value: Any) -> Json:
    """Return the JSON for a value, which may be a result of the unpacker."""
    kind = type(value)
    if kind in (str, int, bool) or value is None:
        return value  # type: ignore[no-any-return]
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is list:
        return [_to_json_value(part) for part in value]
    if kind is dict:
        return _dict_to_json_value(value)
    part = value if kind is _Part else _to_part(value)
    content = part.content
    if (message := _MESSAGE_KINDS.get(part.tag)) is not None:
        defaults = _MESSAGES[message]
        content = {name: field for name, field in content.items() if not _is_default(field, defaults.get(name, part))}
    return {f"${part.tag}": _to_json_value(content)}


def _dict_to_json_value(value: dict[Any, Any]) -> Json:
    escaped = False
    for key in value:
        if type(key) is not str:
            raise UnstorableError(
                f"a dict with the key {key!r} cannot be stored in a checkpoint: the key is a {type(key).__name__}, "
                "not a str"
            )
        escaped = escaped or key.startswith("$")
    if escaped:
        return {"$dict": [[key, _to_json_value(part)] for key, part in value.items()]}
    return {key: _to_json_value(part) for key, part in value.items()}


def _is_default(field: object, default: object) -> bool:
    return type(field) is type(default) and field == default


def _decode_object(read: ReadText, parts: dict[str, Any]) -> Any:
    """Return the value that a JSON object with a `$` key represents."""
    tag = next(iter(parts), "")
    if tag == TEXT:
        return restore(parts[tag], read)
    if not tag.startswith("$") or tag.startswith(TEXT):
        return restore_keys(parts, read)
    if (message := _MESSAGE_KINDS.get(tag[1:])) is not None:
        return _restore_message(message, parts[tag])
    return _DECODERS[tag](parts[tag])


def _restore_message(kind: type[lc.BaseMessage], content: Mapping[str, Any]) -> lc.BaseMessage:
    """Restore a message without calling its constructor, which would validate and complete the fields again.

    Pydantic's default factories are not called either, because it inspects their signatures before every call, which is
    slow.
    """
    fields = {**content}
    defaults = {name: type_() for name, type_ in _MUTABLE_DEFAULTS[kind].items() if name not in fields}
    return kind.model_construct(fields.keys() & _MESSAGES[kind].keys(), **defaults, **fields)


def _refuse_buffers(value: object) -> None:
    """Raise an error for bytearrays and memoryviews, which would be read back as bytes."""
    kind = type(value)
    if kind in (bytearray, memoryview):
        raise UnstorableError(f"a {kind.__name__} cannot be stored in a checkpoint; convert it to bytes")
    if kind is str or kind is bytes:
        return
    if isinstance(value, dict):
        for part in value.values():
            _refuse_buffers(part)
    elif isinstance(value, (list, tuple, set)):
        for part in value:
            _refuse_buffers(part)
    elif kind in _MESSAGES or kind in _ENCODERS:
        _refuse_buffers(_to_part(value).content)
