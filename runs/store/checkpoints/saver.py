"""LangGraph's checkpoint saver that stores in a run's file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from dialoom.runs.store.connections import BUSY_SECONDS, WriteLock, log_path
from dialoom.runs.store.schema import CHECKPOINT_INDEXES, CHECKPOINT_TABLES, create_tables
from dialoom.runs.store.texts import Texts
from dialoom.runs.store.writer import Writer

from . import upkeep
from .batch import CheckpointWriter, UnknownPrefixError
from .items import Put, build_put, build_put_writes, decode_id
from .memory import ThreadCache
from .reading import ReadingSaver
from .values import Packer

_FIND_TEXTS_VIEW = "SELECT 1 FROM sqlite_master WHERE name = 'texts'"
_MAX_CACHED_THREADS = 1024
"""The number of threads whose last values are cached; it suffices for the scenarios in progress at one time."""


class Compacted(NamedTuple):
    """The size of the file, including its log, in bytes, before and after compaction."""

    before: int
    after: int


class RunSaver(ReadingSaver):
    """A saver of checkpoints in an SQLite file.

    Each value is stored once, and a longer list as additions to a stored one.

    A put returns when its transaction is committed. Puts that arrive together share one transaction.

    Args:
        writer: The writer of the file, which all savers of the file share.
        path: The file, in which the tables must exist (see `create_tables`).
    """

    def __init__(self, writer: Writer, path: Path) -> None:
        super().__init__(_open_reader(path))
        self._writer = writer
        self._path = path
        self._thread_cache = ThreadCache(_MAX_CACHED_THREADS)
        self._packer = Packer()
        self._checkpoint_writer = writer.get_cache(CheckpointWriter)
        self._port = writer.get_port(self._checkpoint_writer.write)
        if self._connection.execute(_FIND_TEXTS_VIEW).fetchone() is not None:
            self._checkpoint_writer.use_texts(writer.get_cache(Texts))

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, synchronous: str = "NORMAL") -> AsyncIterator[RunSaver]:
        """Open a saver over a file that is not a run. The file is created if it does not exist.

        Args:
            path: The file.
            synchronous: `NORMAL`: committed data survives the death of the process; a power cut may lose the last
                transactions. `FULL`: committed data survives a power cut too, but each commit waits for the disk.

        Raises:
            StoreError: If another saver or a run has the file open.
        """

        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'").fetchone() is None:
                create_tables(connection, CHECKPOINT_TABLES, CHECKPOINT_INDEXES)
            return connection

        path.touch()
        lock = WriteLock(path, "other threads of this process can share its saver")
        with closing(lock), closing(Writer(path, connect)) as writer, closing(cls(writer, path)) as saver:
            yield saver

    # Storing checkpoints and writes

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store a checkpoint and return its configuration once it is durable.

        Raises:
            UnstorableError: If a channel's value cannot be stored; nothing is stored.
        """
        put = build_put(config, checkpoint, metadata, self._thread_cache, self._packer)
        try:
            await self._port.submit(put)
        except UnknownPrefixError:
            await self._port.submit(put.rebuild(self._thread_cache))
        except BaseException:
            self._thread_cache.discard(put.key[0])
            raise
        return _build_config(put)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002
    ) -> RunnableConfig:
        """Store a checkpoint, wait until it is durable, and return its configuration.

        Raises:
            UnstorableError: If a channel's value cannot be stored; nothing is stored.
        """
        put = build_put(config, checkpoint, metadata, self._thread_cache, self._packer)
        try:
            self._port.enqueue(put).result()
        except UnknownPrefixError:
            self._port.enqueue(put.rebuild(self._thread_cache)).result()
        except BaseException:
            self._thread_cache.discard(put.key[0])
            raise
        return _build_config(put)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a task's writes, which are kept until a checkpoint includes them.

        Raises:
            UnstorableError: If a write cannot be stored; nothing is stored.
        """
        await self._port.submit(build_put_writes(config, writes, task_id, task_path, self._packer))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a task's writes and wait until they are durable. They are kept until a checkpoint includes them.

        Raises:
            UnstorableError: If a write cannot be stored; nothing is stored.
        """
        self._port.enqueue(build_put_writes(config, writes, task_id, task_path, self._packer)).result()

    # Deleting, copying and compacting

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and writes."""
        await self._run(lambda connection: upkeep.delete_threads(connection, [thread_id]))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and writes, and wait until the deletion is durable."""
        self._run_sync(lambda connection: upkeep.delete_threads(connection, [thread_id]))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that one of these LangGraph runs made, according to their metadata."""
        await self._run(lambda connection: upkeep.delete_runs(connection, run_ids))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that one of these LangGraph runs made, and wait until the deletion is durable."""
        self._run_sync(lambda connection: upkeep.delete_runs(connection, run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another thread; the values are shared."""
        await self._run(lambda connection: upkeep.copy_thread(connection, source_thread_id, target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another thread, and wait until the copy is durable."""
        self._run_sync(lambda connection: upkeep.copy_thread(connection, source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the latest checkpoint of each thread and namespace (`keep_latest`), or no checkpoint (`delete`)."""
        await self._run(_build_prune_job(thread_ids, strategy))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete checkpoints as `aprune` does, and wait until the deletion is durable."""
        self._run_sync(_build_prune_job(thread_ids, strategy))

    def compact(self) -> Compacted:
        """Delete unreferenced values and shrink the file. This needs as much free disk space as the file occupies."""
        before = _measure_size(self._path)
        self._run_sync(upkeep.sweep)
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Compacted(before, _measure_size(self._path))

    async def _run(self, work: _Job) -> None:
        await asyncio.wrap_future(self._writer.enqueue(self._clearing_caches(work)))  # compaction may take long

    def _run_sync(self, work: _Job) -> None:
        self._writer.enqueue(self._clearing_caches(work)).result()

    def _clearing_caches(self, work: _Job) -> _Job:
        """Return a job that clears the caches after the work, because the work may delete stored rows."""

        def job(connection: sqlite3.Connection) -> None:
            try:
                work(connection)
            finally:
                self._checkpoint_writer.clear()

        return job


_Job = Callable[[sqlite3.Connection], None]


def _open_reader(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _build_prune_job(names: Sequence[str], strategy: str) -> _Job:
    if strategy == "delete":
        return lambda connection: upkeep.delete_threads(connection, names)
    if strategy == "keep_latest":
        return lambda connection: upkeep.keep_latest(connection, names)
    raise ValueError(f"strategy must be 'keep_latest' or 'delete', got {strategy!r}")


def _build_config(put: Put) -> RunnableConfig:
    (thread_id, namespace), id_ = put.key
    return {
        "configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": decode_id(id_)},
    }


def _measure_size(path: Path) -> int:
    log = log_path(path)
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
