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

from .memory import Chain, ChannelContent, Id, Key, Memory, Packed, PackedFields, Thread
from .values import (
    INLINE,
    Large,
    Packer,
    RecordedError,
    UnstorableError,
    Value,
    digest,
    json_text,
    pack,
    plain_text,
    sized,
)

_NONE = pack(None)
_SIMPLE = (str, int, bool, type(None))

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)

_BEYOND_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|Infinity|NaN')
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

    def anew(self, memory: Memory) -> Put:
        """Return the same checkpoint with complete values, without references to earlier checkpoints of its thread."""
        memory.forget(self.key[0])
        packed: dict[str, Packed | PackedFields | ChannelContent] = {
            name: {field: _elements(part) for field, part in content.items()}
            if type(content) is dict
            else _elements(content)  # type: ignore[arg-type]
            for name, content in self.values.items()
        }
        return self._replace(values=memory.follow(self.key, self.versions, packed))


def _elements(content: Value | Chain) -> Packed:
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
def id_column(id_: str) -> Id:
    """Return a checkpoint's id as a column value. As bytes, LangGraph's ids sort by time, just as their texts do."""
    try:
        column = bytes.fromhex(id_.replace("-", ""))
    except ValueError:
        return id_
    return column if len(column) == 16 and id_text(column) == id_ else id_


def id_text(column: Id) -> str:
    """Return the id that a column value represents."""
    if isinstance(column, str):
        return column
    digits = column.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def time_column(text: str) -> int | str:
    """Return a time as a column value."""
    try:
        time = datetime.fromisoformat(text)
        column = (time - _EPOCH) // _MICROSECOND
    except (ValueError, TypeError):  # not a time, or a time without a zone
        return text
    return column if time_text(column) == text else text


def time_text(column: int | str) -> str:
    """Return the time that a column value represents."""
    return column if isinstance(column, str) else (_EPOCH + column * _MICROSECOND).isoformat()


def thread_of(config: RunnableConfig) -> Thread:
    """Return the thread that a configuration specifies."""
    configurable = config["configurable"]
    return _thread(str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or ""))


@lru_cache(maxsize=4096)
def _thread(name: str, namespace: str) -> Thread:
    """Return the thread with a name and namespace; equal threads are one object, to save memory."""
    return name, namespace


def put_of(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, memory: Memory, packer: Packer
) -> Put:
    """Return a checkpoint as an item to store. In `memory`, it becomes the latest checkpoint of its thread.

    A channel with the same version as in the previous checkpoint is not packed again, because its value is the same.

    Raises:
        UnstorableError: If a channel's value cannot be stored.
    """
    if checkpoint.get("pending_sends"):
        raise UnstorableError("a checkpoint with pending_sends (LangGraph before 1.0) cannot be stored")
    key = (thread_of(config), id_column(checkpoint["id"]))
    parent_id = config["configurable"].get("checkpoint_id")
    parent = id_column(parent_id) if parent_id else None
    described = get_serializable_checkpoint_metadata(config, metadata)
    updated = checkpoint.get("updated_channels")
    versions = dict(checkpoint["channel_versions"])
    before = memory.state_at(key[0], parent)
    packed: dict[str, Packed | PackedFields | ChannelContent] = {}
    for channel, value in checkpoint["channel_values"].items():
        same = None if before is None else before.unchanged(channel, versions)
        if same is not None:
            packed[channel] = same
        elif channel == START and type(value) is dict and all(type(name) is str for name in value):
            packed[channel] = {name: _packed(channel, part, packer, (name,)) for name, part in value.items()}
        else:
            packed[channel] = _packed(channel, value, packer)
    names = (*packed, *(name for name in versions if name not in packed))
    frame = Frame(
        checkpoint["v"],
        f"{{{','.join(_version(name, versions.get(name)) for name in names)}}}",
        plain_text(checkpoint["versions_seen"]),
        None if updated is None else plain_text(updated),
        _metadata_text(described),
    )
    return Put(
        key,
        parent,
        time_column(checkpoint["ts"]),
        versions,
        memory.follow(key, versions, packed),
        frame,
        tuple(described.get("counters_since_delta_snapshot") or ()),
    )


@lru_cache(maxsize=4096, typed=True)
def _version(name: str, version: int | float | str | None) -> str:
    return f"{json_text(name)}:{json_text(version)}"


def _metadata_text(metadata: CheckpointMetadata) -> str:
    """Return metadata as JSON. Infinite numbers need the slower encoder.

    Raises:
        UnstorableError: If a number is NaN, which neither JSON nor SQLite's queries support.
    """
    for name, value in metadata.items():
        if type(value) not in _SIMPLE and name != "parents":
            return _BEYOND_JSON.sub(_within_json, json_text(metadata))
    return plain_text(metadata)


def _within_json(found: re.Match[str]) -> str:
    if found[0] == "NaN":
        raise UnstorableError("metadata with NaN cannot be stored with a checkpoint")
    return "9e999" if found[0] == "Infinity" else found[0]


def put_writes_of(
    config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, packer: Packer
) -> PutWrites:
    """Return writes as an item to store.

    Raises:
        UnstorableError: If one of them cannot be stored.
    """
    return PutWrites(
        (thread_of(config), id_column(config["configurable"]["checkpoint_id"])),
        task_id,
        task_path,
        [
            PutWrite(WRITES_IDX_MAP.get(channel, index), channel, _packed_write(channel, value, packer))
            for index, (channel, value) in enumerate(writes)
        ],
        all(channel in WRITES_IDX_MAP for channel, _ in writes),
    )


def _packed_write(channel: str, value: object, packer: Packer) -> Packed:
    if channel == ERROR and isinstance(value, BaseException):
        value = RecordedError.of(value)
    return _packed(channel, value, packer)


def _packed(channel: str, value: object, packer: Packer, within: tuple[str, ...] = ()) -> Packed:
    """Return a packed value. A long list is packed by element, so that each message in it is stored only once."""
    if value is None:
        return _NONE
    try:
        if type(value) is not list or not value:
            return sized(pack(value))
        elements = packer.pack(value)
        return elements if _is_long(elements) else sized(pack(value))
    except UnstorableError as error:
        place = "".join(f"[{name!r}]" for name in within) + _place_in(value)
        raise UnstorableError(f"channel {channel!r}{place}: {error}") from None


def _place_in(value: object, depth: int = 8) -> str:
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
            return f"[{name!r}]{_place_in(part, depth - 1)}"
    return ""


def _is_long(elements: list[Value]) -> bool:
    """Return whether a list would take more space than a reference to it."""
    room = INLINE
    for element in elements:
        room -= INLINE + 1 if isinstance(element, Large) else len(element)
        if room < 0:
            return True
    return False
