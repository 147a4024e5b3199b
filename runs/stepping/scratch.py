"""A checkpointer that reads and stores nothing, for steps that are played only to record their requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)


class ScratchSaver(BaseCheckpointSaver[int]):
    """A checkpointer that reads through another one and discards all writes."""

    def __init__(self, saver: BaseCheckpointSaver[int]) -> None:
        super().__init__()
        self._saver = saver

    def get_next_version(self, current: int | None, channel: None) -> int:
        """Return the other checkpointer's version."""
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the other checkpointer's tuple."""
        return await self._saver.aget_tuple(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the other checkpointer's tuple."""
        return self._saver.get_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Yield the other checkpointer's tuples."""
        async for found in self._saver.alist(config, **options):
            yield found

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """Return the other checkpointer's tuples."""
        return self._saver.list(config, **options)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,  # noqa: ARG002
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store nothing; return the configuration that storing it would have given."""
        return _after(config, checkpoint)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,  # noqa: ARG002
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store nothing; return the configuration that storing it would have given."""
        return _after(config, checkpoint)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store nothing."""

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store nothing."""


def _after(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    place = config["configurable"]
    return {
        "configurable": {
            "thread_id": place["thread_id"],
            "checkpoint_ns": place.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint["id"],
        }
    }
