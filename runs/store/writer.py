"""The single writer: one connection that commits queued jobs in batches."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

from dialoom.runs.errors import FILE_MOVED, is_file_error, store_error

from .batching import Batch, BatchQueue, Job, Operation
from .connections import identity

Result = TypeVar("Result")
Item = TypeVar("Item")
CacheT = TypeVar("CacheT", bound="Cached")

_MAX_TRANSACTION_JOBS = 256
"""The number of jobs after which a transaction accepts no further jobs."""

_SYNCHRONOUS_NORMAL = 1
"""SQLite's number for `synchronous = NORMAL`."""

_SLOW_SECONDS = 0.01
_MAX_CONSECUTIVE_SLOW = 4
_BATCHES_IN_THREAD = 100
"""The number of batches that the thread handles after an event loop had `_MAX_CONSECUTIVE_SLOW` slow transactions."""

_MAX_LOG_ROWS = 6000
"""The number of written rows after which the write-ahead log is copied to the database."""

_AUTOCHECKPOINT_PAGES = 10_000
"""The number of pages of the log after which a commit itself copies the log to the database."""

_CHECKPOINT_LOG = "PRAGMA wal_checkpoint(PASSIVE)"
"""The statement that copies the log to the database. If all of it was copied, the next transaction restarts the log."""


class Cached(Protocol):
    """A cache of written data, which must be cleared after a rollback."""

    def clear(self) -> None:
        """Clear the cache, after cached rows were rolled back."""


class Writer:
    """The single writer, which carries out jobs in one transaction at a time.

    A job is done when its transaction is durable. If a job raises an error, only this job is rolled back; the other
    jobs of its transaction may have to be carried out a second time. If the commit fails, all jobs of the transaction
    fail.

    An event loop carries out its own jobs, because that costs less than passing them to a thread. But it does not wait
    for other jobs, for the lock of another process, or long for a slow disk. In these cases a thread carries out the
    jobs, and also those from outside event loops.

    Args:
        path: The file, for error messages.
        connect: A function that opens the connection, which several threads use, one at a time.
    """

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connection = connect()
        (synchronous,) = self._connection.execute("PRAGMA synchronous").fetchone()
        self._waits_for_disk = synchronous > _SYNCHRONOUS_NORMAL
        (self._busy_timeout,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
        self._real_path = Path(self._connection.execute("PRAGMA database_list").fetchone()[2])
        self._identity = identity(self._real_path)
        self._log_connection = _open_log_connection(self._real_path, synchronous)
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}")
        self._pace = _Pace()
        self._checkpointed_rows = 0
        self._fully_checkpointed_rows = -1
        self._connection_lock = threading.Lock()
        self._caches: dict[Callable[[], Cached], Cached] = {}
        self._ports: dict[Callable[..., None], Port[Any]] = {}
        self._queue = BatchQueue(self._try_inline)
        self._thread = threading.Thread(target=self._run_thread, name="dialoom-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], Result]) -> asyncio.Future[Result]:
        """Carry out short work, possibly in the event loop's thread. The future is done after the commit."""
        return self._queue.submit(_FunctionOperation(work), None)

    def enqueue(self, work: Callable[[sqlite3.Connection], Result], once: bool = False) -> Future[Result]:
        """Carry out work in a transaction, for callers without an event loop and for long-running work.

        Jobs that were queued earlier run before the work, and jobs that are queued later run after it.

        Args:
            work: The work.
            once: Whether the work must not be repeated.
        """
        return self._queue.enqueue(_FunctionOperation(work, once, is_barrier=True), None)

    async def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out short work and return its result when it is durable.

        Raises:
            StoreError: If the file cannot be written.
            Exception: The exception that the work raises, for example because SQLite rejects its values.
        """
        try:
            return await self.submit(work)
        except sqlite3.Error as error:
            if not is_file_error(error):
                raise
            raise store_error(self._path, error) from error

    def run_sync(self, work: Callable[[sqlite3.Connection], Result], once: bool = False) -> Result:
        """Carry out work, wait until it is durable and return its result; for callers without an event loop.

        Args:
            work: The work.
            once: Whether the work must not be repeated; otherwise it is repeated if another job of its batch fails.

        Raises:
            StoreError: If the file cannot be written.
        """
        try:
            return self.enqueue(work, once).result()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    def get_port(self, work: Callable[[sqlite3.Connection, Sequence[Item]], None]) -> Port[Item]:
        """Return a port for items that are written together, with fewer statements than one by one.

        Args:
            work: A function that writes all items of a transaction. If it raises an error, it is called again for each
                item.
        """
        return self._ports.setdefault(work, Port(self._queue, work))

    def get_cache(self, cache_type: Callable[[], CacheT]) -> CacheT:
        """Return the writer's only cache of a class, created on first use and cleared after each rollback.

        Only one object may assign the ids of a table, and cache its stored rows.
        """
        if cache_type not in self._caches:
            self._caches.setdefault(cache_type, cache_type())
        return cast(CacheT, self._caches[cache_type])

    def clear_caches(self) -> None:
        """Clear all caches. Called by jobs that delete rows that may be cached."""
        for cache in list(self._caches.values()):
            cache.clear()

    def close(self) -> None:
        """Carry out the queued jobs, then stop. Jobs submitted later raise an error."""
        self._queue.close()
        self._thread.join()

    def _try_inline(self, jobs: list[Job]) -> bool:
        """Carry out an event loop's jobs in its thread, unless it would have to wait or a job raises an error."""
        if self._waits_for_disk or not self._pace.is_quick() or not self._connection_lock.acquire(blocking=False):
            return False
        try:
            if self._queue.batches.unfinished_tasks:  # batches that are queued precede these jobs
                return False
            start = time.perf_counter()
            is_done = self._run_inline(jobs)
            self._pace.record(time.perf_counter() - start)
            if self._should_checkpoint_log():
                self._queue.batches.put(Batch([], None))
        finally:
            self._connection_lock.release()
        return is_done

    def _run_inline(self, jobs: list[Job]) -> bool:
        """Carry out jobs, unless another process has locked the file; return whether they were carried out."""
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            return self._run_jobs(jobs)
        except sqlite3.Error:
            self._roll_back()
            return False  # the writer's thread will try again, and report the error
        except BaseException:  # such as Ctrl-C at this point
            self._roll_back()
            raise

    def _run_thread(self) -> None:
        is_open = True
        while is_open:
            batches, is_open = self._collect_batches()
            with self._connection_lock:
                self._run_transaction([job for batch in batches for job in batch.jobs])
                for _ in batches:
                    self._queue.batches.task_done()
                is_log_long = self._should_checkpoint_log() or not all(batch.jobs for batch in batches)
            for batch in batches:
                batch.resolve_threadsafe()
            if is_log_long:
                self._checkpoint_log()
        with self._connection_lock:
            self._log_connection.close()
            # Otherwise the log would become that of another file of this name.
            if identity(self._real_path) != self._identity:
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.close()

    def _run_transaction(self, jobs: list[Job]) -> None:
        """Carry out jobs in one transaction, and set their results or errors.

        Savepoints make SQLite copy every page that changes, so they are used only after a job has raised.
        """
        if not jobs:
            return
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
            if any(job.operation.once for job in jobs) or not self._run_jobs(jobs, BaseException):
                self._begin()
                for job in jobs:
                    self._run_job(job)
                self._connection.execute("COMMIT")
        except BaseException as error:  # the writer's thread must continue after any error
            for job in jobs:
                job.error = job.error or error
            self._roll_back()

    def _run_jobs(self, jobs: list[Job], failure: type[BaseException] = Exception) -> bool:
        """Carry out all jobs in one transaction. If a job raises an error, roll back and return false."""
        self._begin()
        try:
            for operation, group in _group_by_operation(jobs):
                operation.do(self._connection, group)
        except failure:
            self._roll_back()
            return False
        self._connection.execute("COMMIT")
        return True

    def _begin(self) -> None:
        """Begin a transaction. SQLite itself would not notice that the file was removed or replaced."""
        if identity(self._real_path) != self._identity:
            raise sqlite3.OperationalError(FILE_MOVED)
        self._connection.execute("BEGIN IMMEDIATE")

    def _run_job(self, job: Job) -> None:
        self._connection.execute("SAVEPOINT job")
        try:
            job.operation.do(self._connection, [job])
        except BaseException as error:  # the caller gets any error, and the writer's thread must continue
            job.error = error
            self.clear_caches()
            if not self._connection.in_transaction:  # SQLite has rolled back the whole transaction, as on a full disk
                raise
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.clear_caches()

    def _should_checkpoint_log(self) -> bool:
        """Return whether enough rows were written since the log was last copied to the database to copy it again."""
        rows = self._connection.total_changes - self._checkpointed_rows
        if rows < _MAX_LOG_ROWS:
            return False
        self._checkpointed_rows += rows
        return True

    def _checkpoint_log(self) -> None:
        """Copy the log to the database, most of it while transactions continue, and then the rest.

        Nothing is done if the whole log is checkpointed and nothing was written since, because SQLite before 3.51.3 may
        then lose the transaction that restarts the log (sqlite.org/wal.html#walresetbug).
        """
        if self._connection.total_changes == self._fully_checkpointed_rows:
            return
        with suppress(sqlite3.Error):  # such as a full disk; the log can wait
            self._log_connection.execute(_CHECKPOINT_LOG).fetchall()
            with self._connection_lock:
                self._log_connection.execute(_CHECKPOINT_LOG).fetchall()
                self._fully_checkpointed_rows = self._connection.total_changes

    def _collect_batches(self) -> tuple[list[Batch], bool]:
        """Return all batches that have arrived, and whether further batches may come."""
        batches: list[Batch] = []
        count = 0
        batch = self._queue.batches.get()
        while batch is not None:
            batches.append(batch)
            count += len(batch.jobs)
            if count >= _MAX_TRANSACTION_JOBS:
                return batches, True
            try:
                batch = self._queue.batches.get_nowait()
            except queue.Empty:
                return batches, True
        return batches, False


class _Pace:
    """A record of recent transaction times, by which an event loop decides to carry out its jobs itself."""

    def __init__(self) -> None:
        self._slow_count = 0
        self._batches_to_skip = 0

    def is_quick(self) -> bool:
        """Return whether recent transactions were fast enough. Call it once per batch."""
        self._batches_to_skip = max(self._batches_to_skip - 1, 0)
        return self._batches_to_skip == 0

    def record(self, seconds: float) -> None:
        """Record the seconds for which an event loop was blocked."""
        self._slow_count = self._slow_count + 1 if seconds > _SLOW_SECONDS else 0
        if self._slow_count == _MAX_CONSECUTIVE_SLOW:
            self._slow_count, self._batches_to_skip = 0, _BATCHES_IN_THREAD


class Port(Generic[Item]):
    """An input for items of one kind; see `Writer.port`. Items may overtake jobs that were given to `Writer.submit`.

    It is also the operation that carries out all jobs of the port together.
    """

    once = is_barrier = False

    def __init__(self, queue: BatchQueue, work: Callable[[sqlite3.Connection, Sequence[Item]], None]) -> None:
        self._queue = queue
        self._work = work

    def submit(self, item: Item) -> asyncio.Future[None]:
        """Write an item. The future is done when the item's transaction is committed."""
        return self._queue.submit(self, item)

    def enqueue(self, item: Item) -> Future[None]:
        """Write an item; for callers without an event loop. The future is done when the transaction is committed."""
        return self._queue.enqueue(self, item)

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Carry out all jobs together."""
        self._work(connection, [job.item for job in jobs])


class _FunctionOperation:
    """An operation that carries out a single job's own function."""

    __slots__ = ("_work", "is_barrier", "once")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], once: bool = False, is_barrier: bool = False) -> None:
        self._work = work
        self.once = once
        self.is_barrier = is_barrier

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        (job,) = jobs
        job.result = self._work(connection)


def _open_log_connection(path: Path, synchronous: int) -> sqlite3.Connection:
    """Open a second connection to a file."""
    second = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    second.execute(f"PRAGMA synchronous = {synchronous}")
    return second


def _group_by_operation(jobs: list[Job]) -> list[tuple[Operation, list[Job]]]:
    """Group the jobs of each port at the position of the port's first job. No job is moved past a barrier."""
    groups: list[tuple[Operation, list[Job]]] = []
    open_groups: dict[Operation, list[Job]] = {}
    for job in jobs:
        if (group := open_groups.get(job.operation)) is not None:
            group.append(job)
            continue
        group = [job]
        groups.append((job.operation, group))
        if job.operation.is_barrier:
            open_groups.clear()
        else:
            open_groups[job.operation] = group
    return groups
