"""The one writer: a thread that commits whatever arrived together in one transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")
_BATCH = 256

_ROWS_IN_LOG = 2000
"""After so many rows the log is put back into the file."""

_LONGEST_LOG = 10_000
"""Pages after which SQLite does it within a commit."""


class Writer:
    """Carries out jobs on a connection of its own thread. A job is done when its transaction is durable.

    A job that raises is undone alone; the others of its batch are kept. If the commit fails, all of them fail.

    Args:
        connect: Opens the connection, in the writer's thread.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._inbox = _Inbox()
        self._connect = connect
        self._opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="dialoom-writer", daemon=True)
        self._thread.start()
        self._opened.result()

    async def submit(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out work in a transaction; returns once that is committed."""
        result: Result = await self._inbox.submit(_Single(work), None)
        return result

    def enqueue(self, work: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        """The same, for callers without an event loop."""
        return self._inbox.enqueue(_Single(work), None)

    def port(
        self, work: Callable[[sqlite3.Connection, Sequence[Item]], None], undone: Callable[[], None]
    ) -> Port[Item]:
        """A way in for items that are written many at once, in fewer statements than one by one.

        Args:
            work: Writes all items that a batch holds. If it raises, they are given to it again one at a time.
            undone: Is told, in the writer's thread, that something which `work` wrote was undone.
        """
        return Port(self._inbox, _Shared(work, undone))

    def close(self) -> None:
        """Carry out what is queued, then stop."""
        self._inbox.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG}")
        open_ = True
        folded_in = 0
        while open_:
            batch, open_ = self._next_batch()
            if batch:
                _carry_out(connection, batch)
                _settle(batch)
            if connection.total_changes - folded_in >= _ROWS_IN_LOG:
                # Here rather than within a commit, so that nobody waits for it.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                folded_in = connection.total_changes
        connection.close()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Everything that has arrived, and whether more may come."""
        batch: list[_Job] = []
        jobs = self._inbox.jobs.get()
        while jobs is not None:
            batch += jobs
            if len(batch) >= _BATCH:
                return batch, True
            try:
                jobs = self._inbox.jobs.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


class Port(Generic[Item]):
    """Takes items of one kind; see `Writer.port`. Items of a batch may be written before its other jobs."""

    def __init__(self, inbox: _Inbox, work: _Work) -> None:
        self._inbox = inbox
        self._work = work

    async def submit(self, item: Item) -> None:
        """Write an item; returns once its transaction is committed."""
        await self._inbox.submit(self._work, item)

    def enqueue(self, item: Item) -> Future[None]:
        """The same, for callers without an event loop."""
        return self._inbox.enqueue(self._work, item)


class _Single:
    """Work of one job."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self._work = work

    def do(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
        (job,) = jobs
        job.result = self._work(connection)

    def undone(self) -> None:
        """A job is told by its error."""


class _Shared:
    """Work that a port's jobs have in common."""

    __slots__ = ("_work", "undone")

    def __init__(self, work: Callable[[sqlite3.Connection, Sequence[Any]], None], undone: Callable[[], None]) -> None:
        self._work = work
        self.undone = undone

    def do(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
        self._work(connection, [job.item for job in jobs])


_Work = _Single | _Shared


class _Job:
    """An item of some work, and whom to tell: a future of an event loop or one of threads."""

    __slots__ = ("error", "future", "item", "loop", "result", "work")

    def __init__(
        self, work: _Work, item: Any, future: asyncio.Future[Any] | Future[Any], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.work = work
        self.item = item
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Tell. Whoever has stopped waiting is left alone; an event loop's future is settled in its own thread."""
        future = self.future
        if isinstance(future, asyncio.Future):
            if future.done():
                return
        elif not future.set_running_or_notify_cancel():
            return
        if self.error is None:
            future.set_result(self.result)
        else:
            future.set_exception(self.error)


class _Inbox:
    """Where jobs wait for the writer."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._gathering: dict[asyncio.AbstractEventLoop, list[_Job]] = {}

    async def submit(self, work: _Work, item: Any) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = _Job(work, item, future, loop)
        gathered = self._gathering.get(loop)
        if gathered is None:
            gathered = self._gathering[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append(job)
        return await future

    def enqueue(self, work: _Work, item: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.put([_Job(work, item, future, None)])
        return future

    def close(self) -> None:
        """Nothing comes any more."""
        for loop in list(self._gathering):
            self.jobs.put(self._gathering.pop(loop))
        self.jobs.put(None)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the writer once for all that the loop's tasks have brought in one round of theirs."""
        if gathered := self._gathering.pop(loop, None):
            self.jobs.put(gathered)


def _carry_out(connection: sqlite3.Connection, batch: list[_Job]) -> None:
    """One transaction. What becomes of each job stands in it afterwards."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        for jobs in _by_work(batch):
            _attempt(connection, jobs)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        for job in batch:
            job.error = job.error or error
            job.work.undone()


def _by_work(batch: list[_Job]) -> list[list[_Job]]:
    """The jobs, those of one port together where the first of them stands."""
    groups: dict[_Work, list[_Job]] = {}
    for job in batch:
        groups.setdefault(job.work, []).append(job)
    return list(groups.values())


def _attempt(connection: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
    work = jobs[0].work
    connection.execute("SAVEPOINT job")
    try:
        work.do(connection, jobs)
    except Exception as error:
        connection.execute("ROLLBACK TO job")
        work.undone()
        if len(jobs) == 1:
            jobs[0].error = error
        else:
            for job in jobs:
                _attempt(connection, (job,))
    connection.execute("RELEASE job")


def _settle(batch: list[_Job]) -> None:
    """Wake each event loop once, however many of its jobs are done."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in batch:
        if job.loop is None:
            job.settle()
        else:
            by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed in the meantime, so nobody is left who waits
            loop.call_soon_threadsafe(_settle_all, jobs)


def _settle_all(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        job.settle()
