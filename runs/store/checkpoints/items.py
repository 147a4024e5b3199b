"""What LangGraph asks to be stored, as the writer needs it: packed, so that later changes of it do not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import ERROR

from .memory import INLINE, Chain, Memory, Thread, Value, sized
from .values import Packer, RecordedError, UnstorableError, json_text, pack, plain_text

Id: TypeAlias = "bytes | str"
"""A checkpoint's id as a column: 16 bytes, or the text if it is no UUID in its usual form."""

Key: TypeAlias = tuple[Thread, Id]
"""Which checkpoint."""


class Put(NamedTuple):
    """A checkpoint to be stored.

    Attributes:
        replayed: Channels that LangGraph rebuilds from the writes of earlier checkpoints, so that these must stay.
    """

    key: Key
    parent: Id | None
    time: str
    format: int
    versions: ChannelVersions
    values: Mapping[str, Value | Chain]
    seen: str
    updated: str | None
    metadata: str
    replayed: tuple[str, ...]


class PutWrite(NamedTuple):
    """One write of a task. A list is given as its elements, so that a conversation's new message is stored once."""

    position: int
    channel: str
    value: Value | list[Value]


class PutWrites(NamedTuple):
    """Writes of a task that is part of the step after a checkpoint.

    Attributes:
        replaces: Whether they take the place of earlier ones in the same position.
    """

    key: Key
    task: str
    path: str
    writes: list[PutWrite]
    replaces: bool


@lru_cache(maxsize=4096)
def id_column(id_: str) -> Id:
    """A checkpoint's id as it is stored. The bytes of LangGraph's ids sort as their texts do: by time."""
    try:
        column = bytes.fromhex(id_.replace("-", ""))
    except ValueError:
        return id_
    return column if len(column) == 16 and id_text(column) == id_ else id_


def id_text(column: Id) -> str:
    """The id of a column."""
    if isinstance(column, str):
        return column
    digits = column.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def thread_of(config: RunnableConfig) -> Thread:
    """The thread that a configuration names."""
    configurable = config["configurable"]
    return str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or "")


class Draft(NamedTuple):
    """A checkpoint to be stored, not yet compared with what its thread held before.

    Attributes:
        put: Everything but the values.
        values: The packed values of channels; a list as its elements.
    """

    put: Put
    values: dict[str, bytes | list[bytes]]

    def following(self, memory: Memory) -> Put:
        """What is to be stored, given what is known of its thread."""
        return self.put._replace(values=memory.follow(self.put.key[0], self.values))


def draft_of(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, packer: Packer) -> Draft:
    """A checkpoint to be stored.

    Raises:
        UnstorableError: If a channel holds what cannot be kept.
    """
    parent = config["configurable"].get("checkpoint_id")
    if checkpoint.get("pending_sends"):
        raise UnstorableError("a checkpoint with pending_sends (LangGraph before 1.0) cannot be kept")
    described = get_serializable_checkpoint_metadata(config, metadata)
    updated = checkpoint.get("updated_channels")
    put = Put(
        (thread_of(config), id_column(checkpoint["id"])),
        id_column(parent) if parent else None,
        checkpoint["ts"],
        checkpoint["v"],
        dict(checkpoint["channel_versions"]),
        {},
        plain_text(checkpoint["versions_seen"]),
        None if updated is None else plain_text(updated),
        json_text(described),
        tuple(described.get("counters_since_delta_snapshot") or ()),
    )
    values = {channel: _packed(channel, value, packer) for channel, value in checkpoint["channel_values"].items()}
    return Draft(put, values)


def put_writes_of(
    config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, packer: Packer
) -> PutWrites:
    """Writes to be stored.

    Raises:
        UnstorableError: If one of them cannot be kept.
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


def _packed_write(channel: str, value: object, packer: Packer) -> Value | list[Value]:
    if channel == ERROR and isinstance(value, BaseException):
        value = RecordedError.of(value)
    packed = _packed(channel, value, packer)
    return [sized(body) for body in packed] if isinstance(packed, list) else sized(packed)


def _packed(channel: str, value: object, packer: Packer) -> bytes | list[bytes]:
    """A value, or the elements of a list that is not short."""
    try:
        if type(value) is not list or not value:
            return pack(value)
        bodies = packer.pack(value)
        return bodies if len(bodies) > INLINE or sum(map(len, bodies)) > INLINE else pack(value)
    except UnstorableError as error:
        raise UnstorableError(f"channel {channel!r}: {error}") from None
