"""LangGraph's checkpoints and writes as items for the writer, serialised so that later changes do not affect them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import ERROR
from langgraph.constants import START

from .memory import Chain, ChannelContent, Id, Key, Packed, PackedFields, Thread, ThreadCache
from .values import (
    MAX_INLINE_BYTES,
    Large,
    Packer,
    RecordedError,
    UnstorableError,
    Value,
    digest,
    encode_finite_json,
    encode_json,
    hash_if_large,
    pack,
)

_PACKED_NONE = pack(None)
_SCALAR_TYPES = (str, int, bool, type(None))

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_NON_JSON_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*"|Infinity|NaN')
"""Matches numbers in Python's output that JSON does not have. It also matches strings, to skip their content."""


class Frame(NamedTuple):
    """The columns that have the same values in the checkpoints of one step in different threads.

    Attributes:
        channels: The channels' versions by name. Channels with a value come first, in the order in which the values are
            stored.
    """

    format: int
    channels: str
    seen: str
    updated: str | None
    metadata: str

    @property
    def hash(self) -> bytes:
        """The hash by which the frame is found in the file."""
        return digest("\0".join(map(str, self)).encode())


class Put(NamedTuple):
    """A checkpoint to be stored.

    Attributes:
        time: Microseconds since 1970; a text that is not a time in LangGraph's format is stored unchanged.
        values: The channels' values, stored as changes to the known values of the thread.
        replayed: The channels that LangGraph rebuilds from the writes of earlier checkpoints, which must therefore be
            kept.
    """

    key: Key
    parent: Id | None
    time: int | str
    versions: ChannelVersions
    values: Mapping[str, ChannelContent]
    frame: Frame
    replayed: tuple[str, ...]

    def rebuild(self, cache: ThreadCache) -> Put:
        """Return the same checkpoint with complete values, without references to earlier checkpoints of its thread."""
        cache.discard(self.key[0])
        packed: dict[str, Packed | PackedFields | ChannelContent] = {
            name: {field: _get_elements(part) for field, part in content.items()}
            if type(content) is dict
            else _get_elements(content)  # type: ignore[arg-type]
            for name, content in self.values.items()
        }
        return self._replace(values=cache.update(self.key, self.versions, packed))


def _get_elements(content: Value | Chain) -> Packed:
    return content.elements if isinstance(content, Chain) else content


class PutWrite(NamedTuple):
    """A single write of a task."""

    position: int
    channel: str
    value: Packed


class PutWrites(NamedTuple):
    """The writes of a task in the step after a checkpoint.

    Attributes:
        replaces: Whether they replace earlier writes at the same positions.
    """

    key: Key
    task: str
    path: str
    writes: list[PutWrite]
    replaces: bool


@lru_cache(maxsize=4096)
def encode_id(id_: str) -> Id:
    """Return a checkpoint's id as a column value. As bytes, LangGraph's ids sort by time, just as their texts do."""
    try:
        column = bytes.fromhex(id_.replace("-", ""))
    except ValueError:
        return id_
    return column if len(column) == 16 and decode_id(column) == id_ else id_


def decode_id(column: Id) -> str:
    """Return the id that a column value represents."""
    if isinstance(column, str):
        return column
    digits = column.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def encode_time(text: str) -> int | str:
    """Return a time as a column value."""
    try:
        time = datetime.fromisoformat(text)
        column = (time - _EPOCH) // _MICROSECOND
    except (ValueError, TypeError):  # not a time, or a time without a zone
        return text
    return column if decode_time(column) == text else text


def decode_time(column: int | str) -> str:
    """Return the time that a column value represents."""
    return column if isinstance(column, str) else (_EPOCH + column * _MICROSECOND).isoformat()


def thread_of(config: RunnableConfig) -> Thread:
    """Return the thread that a configuration specifies."""
    configurable = config["configurable"]
    return _intern_thread(str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or ""))


@lru_cache(maxsize=4096)
def _intern_thread(name: str, namespace: str) -> Thread:
    """Return the thread with a name and namespace; equal threads are one object, to save memory."""
    return name, namespace


def build_put(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, cache: ThreadCache, packer: Packer
) -> Put:
    """Return a checkpoint as an item to store. In the cache, it becomes the latest checkpoint of its thread.

    A channel with the same version as in the previous checkpoint is not packed again, because its value is the same.

    Raises:
        UnstorableError: If a channel's value cannot be stored.
    """
    if checkpoint.get("pending_sends"):
        raise UnstorableError("a checkpoint with pending_sends (LangGraph before 1.0) cannot be stored")
    key = (thread_of(config), encode_id(checkpoint["id"]))
    parent_id = config["configurable"].get("checkpoint_id")
    parent = encode_id(parent_id) if parent_id else None
    full_metadata = get_serializable_checkpoint_metadata(config, metadata)
    updated = checkpoint.get("updated_channels")
    versions = dict(checkpoint["channel_versions"])
    before = cache.state_at(key[0], parent)
    packed: dict[str, Packed | PackedFields | ChannelContent] = {}
    for channel, value in checkpoint["channel_values"].items():
        same = None if before is None else before.find_unchanged(channel, versions)
        if same is not None:
            packed[channel] = same
        elif channel == START and type(value) is dict and all(type(name) is str for name in value):
            packed[channel] = {name: _pack_value(channel, part, packer, (name,)) for name, part in value.items()}
        else:
            packed[channel] = _pack_value(channel, value, packer)
    names = (*packed, *(name for name in versions if name not in packed))
    frame = Frame(
        checkpoint["v"],
        f"{{{','.join(_encode_version(name, versions.get(name)) for name in names)}}}",
        encode_finite_json(checkpoint["versions_seen"]),
        None if updated is None else encode_finite_json(updated),
        _encode_metadata(full_metadata),
    )
    return Put(
        key,
        parent,
        encode_time(checkpoint["ts"]),
        versions,
        cache.update(key, versions, packed),
        frame,
        tuple(full_metadata.get("counters_since_delta_snapshot") or ()),
    )


@lru_cache(maxsize=4096, typed=True)
def _encode_version(name: str, version: int | float | str | None) -> str:
    return f"{encode_json(name)}:{encode_json(version)}"


def _encode_metadata(metadata: CheckpointMetadata) -> str:
    """Return metadata as JSON. Infinite numbers need the slower encoder.

    Raises:
        UnstorableError: If a number is NaN, which neither JSON nor SQLite's queries support.
    """
    for name, value in metadata.items():
        if type(value) not in _SCALAR_TYPES and name != "parents":
            return _NON_JSON_NUMBERS.sub(_replace_non_json, encode_json(metadata))
    return encode_finite_json(metadata)


def _replace_non_json(found: re.Match[str]) -> str:
    if found[0] == "NaN":
        raise UnstorableError("metadata with NaN cannot be stored with a checkpoint")
    return "9e999" if found[0] == "Infinity" else found[0]


def build_put_writes(
    config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, packer: Packer
) -> PutWrites:
    """Return writes as an item to store.

    Raises:
        UnstorableError: If one of them cannot be stored.
    """
    return PutWrites(
        (thread_of(config), encode_id(config["configurable"]["checkpoint_id"])),
        task_id,
        task_path,
        [
            PutWrite(WRITES_IDX_MAP.get(channel, index), channel, _pack_write(channel, value, packer))
            for index, (channel, value) in enumerate(writes)
        ],
        all(channel in WRITES_IDX_MAP for channel, _ in writes),
    )


def _pack_write(channel: str, value: object, packer: Packer) -> Packed:
    if channel == ERROR and isinstance(value, BaseException):
        value = RecordedError.of(value)
    return _pack_value(channel, value, packer)


def _pack_value(channel: str, value: object, packer: Packer, path: tuple[str, ...] = ()) -> Packed:
    """Return a packed value. A long list is packed by element, so that each message in it is stored only once."""
    if value is None:
        return _PACKED_NONE
    try:
        if type(value) is not list or not value:
            return hash_if_large(pack(value))
        elements = packer.pack(value)
        return elements if _is_long(elements) else hash_if_large(pack(value))
    except UnstorableError as error:
        place = "".join(f"[{name!r}]" for name in path) + _find_path(value)
        raise UnstorableError(f"channel {channel!r}{place}: {error}") from None


def _find_path(value: object, depth: int = 8) -> str:
    """Return the path to the part of a value that cannot be packed, such as `['trip'][2]`; empty for all of it."""
    parts: Iterable[tuple[object, object]] = ()
    if not depth:
        return ""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    for name, part in parts:
        try:
            pack(part)
        except UnstorableError:
            return f"[{name!r}]{_find_path(part, depth - 1)}"
    return ""


def _is_long(elements: list[Value]) -> bool:
    """Return whether a list would take more space than a reference to it."""
    room = MAX_INLINE_BYTES
    for element in elements:
        room -= MAX_INLINE_BYTES + 1 if isinstance(element, Large) else len(element)
        if room < 0:
            return True
    return False
