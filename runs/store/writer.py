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

from .batching import Batch, Inbox, Job, Operation
from .errors import is_about_the_file, store_error

Result = TypeVar("Result")
Item = TypeVar("Item")
Memory = TypeVar("Memory", bound="Remembering")
_LARGE_TRANSACTION = 256
"""Jobs."""

_NORMAL = 1
"""SQLite's number for `synchronous = NORMAL`."""

_LONG = 0.01
_LONG_IN_A_ROW = 4
_BATCHES_WITHOUT = 100
"""So many batches go to the thread after so many in a row took an event loop so many seconds."""

_ROWS_IN_LOG = 6000
"""After so many rows the log is put back into the file."""

_LONGEST_LOG = 10_000
"""Pages after which SQLite does it within a commit."""

_CHECKPOINT_LOG = "PRAGMA wal_checkpoint(PASSIVE)"
"""Puts the log back; once all of it is, the next transaction begins it anew."""


class Remembering(Protocol):
    """Something that remembers what it has written."""

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""


class Writer:
    """Carries out jobs, one transaction at a time. A job is done when its transaction is durable.

    A job that raises is undone alone; the others of its transaction are kept, but may be carried out a second time for
    it. If the commit fails, all of them fail.

    An event loop carries out its jobs itself, as that costs less than to pass them on; but it waits neither for other
    jobs nor for somebody else's lock, and not for long for a slow disk. A thread does that, and the jobs of others.

    Args:
        connect: Opens the connection. Several threads will use it, one at a time.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connect()
        (synchronous,) = self._connection.execute("PRAGMA synchronous").fetchone()
        self._waits_for_disk = synchronous > _NORMAL
        (self._patience,) = self._connection.execute("PRAGMA busy_timeout").fetchone()
        self._log_connection = _second_connection(self._connection, synchronous)
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG}")
        self._pace = _Pace()
        self._rows_in_file = 0
        self._rows_at_whole_log = -1
        self._turn = threading.Lock()
        self._memories: dict[Callable[[], Remembering], Remembering] = {}
        self._shared: dict[Callable[..., None], _Shared] = {}
        self._inbox = Inbox(self._at_once)
        self._thread = threading.Thread(target=self._run, name="dialoom-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], Result]) -> asyncio.Future[Result]:
        """Carry out work in a transaction; done once that is committed. The event loop may do it: it must be short."""
        return self._inbox.submit(_Single(work), None)

    def enqueue(self, work: Callable[[sqlite3.Connection], Result], once: bool = False) -> Future[Result]:
        """Carry out work in a transaction, for callers without an event loop and for work that takes long.

        What was brought before it is done before it, what comes later after it.

        Args:
            work: The work.
            once: Whether it must not be carried out a second time.
        """
        return self._inbox.enqueue(_Single(work, once, is_barrier=True), None)

    def port(self, work: Callable[[sqlite3.Connection, Sequence[Item]], None]) -> Port[Item]:
        """A way in for items that are written many at once, in fewer statements than one by one.

        Args:
            work: Writes all items that a transaction holds. If it raises, they are given to it again one at a time.
        """
        return Port(self._inbox, self._shared.setdefault(work, _Shared(work)))

    def only(self, kind: Callable[[], Memory]) -> Memory:
        """The one memory of a kind, made when it is first asked for, and told whenever something written was undone.

        Whoever gives out ids, or remembers what is stored, must be the only one to do so in a file.
        """
        known = self._memories.get(kind)
        if known is None:
            known = self._memories.setdefault(kind, kind())
        return cast(Memory, known)

    def forget(self) -> None:
        """Have all memories forget. For jobs that remove what may be remembered."""
        for memory in list(self._memories.values()):
            memory.forget()

    def close(self) -> None:
        """Carry out what is queued, then stop. Whoever brings a job afterwards is told."""
        self._inbox.close()
        self._thread.join()

    def _at_once(self, jobs: list[Job]) -> bool:
        """Carry out an event loop's jobs in its thread; nothing is done if that has to wait, or one of them raises."""
        if self._waits_for_disk or not self._pace.is_quick() or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._inbox.batches.unfinished_tasks:  # they came first
                return False
            start = time.perf_counter()
            is_done = self._is_done_now(jobs)
            self._pace.took(time.perf_counter() - start)
            if self._log_became_long():
                self._inbox.batches.put(Batch([], None))
        finally:
            self._turn.release()
        return is_done

    def _is_done_now(self, jobs: list[Job]) -> bool:
        """Carry out jobs unless somebody else has locked the file."""
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            return self._all_done(jobs)
        except sqlite3.Error:
            self._roll_back()
            return False  # the thread tries again, and tells
        except BaseException:  # Ctrl-C in the midst of it
            self._roll_back()
            raise

    def _run(self) -> None:
        is_open = True
        while is_open:
            batches, is_open = self._next_batches()
            with self._turn:
                self._carry_out([job for batch in batches for job in batch.jobs])
                for _ in batches:
                    self._inbox.batches.task_done()
                is_log_long = self._log_became_long() or not all(batch.jobs for batch in batches)
            for batch in batches:
                batch.settle()
            if is_log_long:
                self._checkpoint_log()
        with self._turn:
            self._log_connection.close()
            self._connection.close()

    def _carry_out(self, jobs: list[Job]) -> None:
        """One transaction. What becomes of each job stands in it afterwards.

        Savepoints make SQLite copy every page that changes, so they wait until a job has raised.
        """
        if not jobs:
            return
        try:
            self._connection.execute(f"PRAGMA busy_timeout = {self._patience}")
            if any(job.operation.once for job in jobs) or not self._all_done(jobs, BaseException):
                self._connection.execute("BEGIN IMMEDIATE")
                for job in jobs:
                    self._attempt(job)
                self._connection.execute("COMMIT")
        except BaseException as error:  # this thread goes on
            for job in jobs:
                job.error = job.error or error
            self._roll_back()

    def _all_done(self, jobs: list[Job], failure: type[BaseException] = Exception) -> bool:
        """Do all jobs in one transaction; if one of them raises, nothing is done, and the answer is no."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for operation, its_jobs in _by_operation(jobs):
                operation.do(self._connection, its_jobs)
        except failure:
            self._roll_back()
            return False
        self._connection.execute("COMMIT")
        return True

    def _attempt(self, job: Job) -> None:
        self._connection.execute("SAVEPOINT job")
        try:
            job.operation.do(self._connection, [job])
        except BaseException as error:  # whatever it is, it is its caller's, and this thread goes on
            job.error = error
            self.forget()
            if not self._connection.in_transaction:  # SQLite has undone all of it, as on a full disk
                raise
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.forget()

    def _log_became_long(self) -> bool:
        """Whether so much was written since it was last so that the log should be put back into the file."""
        rows = self._connection.total_changes - self._rows_in_file
        if rows < _ROWS_IN_LOG:
            return False
        self._rows_in_file += rows
        return True

    def _checkpoint_log(self) -> None:
        """Put the log back into the file: most of it while transactions go on, then the rest.

        Not if all of it was put back and nothing has come since: SQLite before 3.51.3 may lose a transaction that then
        begins the log anew (sqlite.org/wal.html#walresetbug).
        """
        if self._connection.total_changes == self._rows_at_whole_log:
            return
        with suppress(sqlite3.Error):  # such as a full disk; the log can wait
            self._log_connection.execute(_CHECKPOINT_LOG).fetchall()
            with self._turn:
                self._log_connection.execute(_CHECKPOINT_LOG).fetchall()
                self._rows_at_whole_log = self._connection.total_changes

    def _next_batches(self) -> tuple[list[Batch], bool]:
        """Everything that has arrived, and whether more may come."""
        batches: list[Batch] = []
        count = 0
        batch = self._inbox.batches.get()
        while batch is not None:
            batches.append(batch)
            count += len(batch.jobs)
            if count >= _LARGE_TRANSACTION:
                return batches, True
            try:
                batch = self._inbox.batches.get_nowait()
            except queue.Empty:
                return batches, True
        return batches, False


class _Pace:
    """Whether transactions have been quick enough lately for an event loop to do them itself."""

    def __init__(self) -> None:
        self._long_ones = 0
        self._batches_without = 0

    def is_quick(self) -> bool:
        """Asked once a batch."""
        self._batches_without = max(self._batches_without - 1, 0)
        return self._batches_without == 0

    def took(self, seconds: float) -> None:
        """How long an event loop was held up."""
        self._long_ones = self._long_ones + 1 if seconds > _LONG else 0
        if self._long_ones == _LONG_IN_A_ROW:
            self._long_ones, self._batches_without = 0, _BATCHES_WITHOUT


class Port(Generic[Item]):
    """Takes items of one kind; see `Writer.port`. They may be written before what `Writer.submit` got earlier."""

    def __init__(self, inbox: Inbox, operation: Operation) -> None:
        self._inbox = inbox
        self._operation = operation

    def submit(self, item: Item) -> asyncio.Future[None]:
        """Write an item; done once its transaction is committed."""
        return self._inbox.submit(self._operation, item)

    def enqueue(self, item: Item) -> Future[None]:
        """Write an item, for callers without an event loop; done once its transaction is committed."""
        return self._inbox.enqueue(self._operation, item)


class _Single:
    """Work of one job."""

    __slots__ = ("_work", "is_barrier", "once")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], once: bool = False, is_barrier: bool = False) -> None:
        self._work = work
        self.once = once
        self.is_barrier = is_barrier

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        (job,) = jobs
        job.result = self._work(connection)


class _Shared:
    """Work that a port's jobs have in common."""

    __slots__ = ("_work",)
    once = is_barrier = False

    def __init__(self, work: Callable[[sqlite3.Connection, Sequence[Any]], None]) -> None:
        self._work = work

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        self._work(connection, [job.item for job in jobs])


def _second_connection(connection: sqlite3.Connection, synchronous: int) -> sqlite3.Connection:
    """A second connection to the same file."""
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    second = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    second.execute(f"PRAGMA synchronous = {synchronous}")
    return second


def _by_operation(jobs: list[Job]) -> list[tuple[Operation, list[Job]]]:
    """The jobs, those of a port together where the first of them stands; none moves past a barrier."""
    groups: list[tuple[Operation, list[Job]]] = []
    gathered: dict[Operation, list[Job]] = {}
    for job in jobs:
        if (group := gathered.get(job.operation)) is not None:
            group.append(job)
            continue
        group = [job]
        groups.append((job.operation, group))
        if job.operation.is_barrier:
            gathered.clear()
        else:
            gathered[job.operation] = group
    return groups


class Transactions:
    """What writes to a run's file, each job whole or not at all.

    Args:
        writer: The file's.
        path: The file.
    """

    def __init__(self, writer: Writer, path: Path) -> None:
        self._writer = writer
        self._path = path

    async def soon(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out a short job; returns what it returned once that is durable.

        Raises:
            StoreError: If the file cannot be written.
            Exception: What the job raised; if SQLite has something against its values, that.
        """
        try:
            return await self._writer.submit(job)
        except sqlite3.Error as error:
            if not is_about_the_file(error):
                raise
            raise store_error(self._path, error) from error

    def now(self, job: Callable[[sqlite3.Connection], Result], once: bool = False) -> Result:
        """Carry out a job, waiting until it is durable; for callers without an event loop.

        Args:
            job: The job.
            once: Whether it must not be carried out a second time, as it may be when others of its batch fail.

        Raises:
            StoreError: If the file cannot be written.
        """
        try:
            return self._writer.enqueue(job, once).result()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    def forget(self) -> None:
        """Have what was remembered of the file's content forgotten. For jobs that remove some of it."""
        self._writer.forget()
