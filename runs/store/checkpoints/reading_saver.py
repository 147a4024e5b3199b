"""A saver that reads the checkpoints of a run's file: all that looking at a conversation needs."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from .reading import CheckpointReader


class ReadingSaver(BaseCheckpointSaver[int]):
    """Reads checkpoints on a connection of its own, which never holds up the writer; it keeps none.

    Args:
        connection: Opened with `check_same_thread=False`, in no transaction; closed by `close`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._reader = CheckpointReader(connection)

    def close(self) -> None:
        """Close the connection for reading."""
        self._connection.close()

    def get_next_version(self, current: int | None, channel: None) -> int:  # noqa: ARG002
        """Versions are 1, 2, 3, ...: they need not be unique, as values are not found by them."""
        return (current or 0) + 1

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that is named, or the thread's latest."""
        return self._reader.get(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that is named, or the thread's latest."""
        return self._reader.get(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, the latest first.

        Args:
            config: Names their thread, and perhaps the namespace and the checkpoint; `None` for all.
            filter: What their metadata must hold.
            before: Names a checkpoint that they must be older than.
            limit: How many at most.
        """
        for found in self._reader.matching(config, filter, before, limit):
            yield found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the latest first; see `alist`."""
        return self._reader.matching(config, filter, before, limit)
