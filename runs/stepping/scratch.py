"""A saver that shows what is there and keeps nothing: for steps that are played only to see what they would ask."""

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
    """Reads through another saver; what is put is forgotten."""

    def __init__(self, saver: BaseCheckpointSaver[int]) -> None:
        super().__init__()
        self._saver = saver

    def get_next_version(self, current: int | None, channel: None) -> int:
        """As the other saver has it."""
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the other saver has it."""
        return await self._saver.aget_tuple(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the other saver has it."""
        return self._saver.get_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """As the other saver has it."""
        async for found in self._saver.alist(config, **options):
            yield found

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """As the other saver has it."""
        return self._saver.list(config, **options)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,  # noqa: ARG002
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """The configuration that storing it would have given."""
        return _after(config, checkpoint)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,  # noqa: ARG002
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store nothing; the configuration that storing it would have given."""
        return _after(config, checkpoint)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Nothing is stored."""

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Nothing is stored."""


def _after(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    place = config["configurable"]
    return {
        "configurable": {
            "thread_id": place["thread_id"],
            "checkpoint_ns": place.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint["id"],
        }
    }
