"""The one writer: a thread that commits whatever arrived together in one transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from .inbox import Inbox, Job, Lot, Work

Result = TypeVar("Result")
Item = TypeVar("Item")
_BATCH = 256

_NORMAL = 1
"""SQLite's number for `synchronous = NORMAL`."""

_ROWS_IN_LOG = 6000
"""After so many rows the log is put back into the file."""

_LONGEST_LOG = 10_000
"""Pages after which SQLite does it within a commit."""


class Remembering(Protocol):
    """Something that remembers what it has written."""

    def forget(self) -> None:
        """Remember nothing: some of it was undone."""


class Writer:
    """Carries out jobs on a connection of its own thread. A job is done when its transaction is durable.

    A job that raises is undone alone; the others of its batch are kept, but may be carried out a second time for it.
    If the commit fails, all of them fail.

    Args:
        connect: Opens the connection, in the writer's thread.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._inbox = Inbox()
        self._connect = connect
        self._memories: list[Remembering] = []
        self._opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="dialoom-writer", daemon=True)
        self._thread.start()
        self._opened.result()

    def submit(self, work: Callable[[sqlite3.Connection], Result]) -> asyncio.Future[Result]:
        """Carry out work in a transaction; done once that is committed."""
        return self._inbox.submit(_Single(work), None)

    def enqueue(self, work: Callable[[sqlite3.Connection], Result], once: bool = False) -> Future[Result]:
        """The same, for callers without an event loop.

        Args:
            work: The work.
            once: Whether it must not be carried out a second time.
        """
        return self._inbox.enqueue(_Single(work, once), None)

    def port(self, work: Callable[[sqlite3.Connection, Sequence[Item]], None]) -> Port[Item]:
        """A way in for items that are written many at once, in fewer statements than one by one.

        Args:
            work: Writes all items that a batch holds. If it raises, they are given to it again one at a time.
        """
        return Port(self._inbox, _Shared(work))

    def attach(self, memory: Remembering) -> None:
        """Have it told, in the writer's thread, whenever something that was written was undone."""
        self._memories.append(memory)

    def detach(self, memory: Remembering) -> None:
        """Tell it no more."""
        self._memories.remove(memory)

    def close(self) -> None:
        """Carry out what is queued, then stop."""
        self._inbox.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            connection = self._connect()
            (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._inbox.is_patient = synchronous <= _NORMAL  # otherwise each commit waits for the disk
        self._opened.set_result(None)
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LONGEST_LOG}")
        open_ = True
        folded_in = 0
        while open_:
            lots, open_ = self._next_lots()
            if lots:
                self._carry_out(connection, [job for lot in lots for job in lot.jobs])
            for lot in lots:
                lot.settle()
            if connection.total_changes - folded_in >= _ROWS_IN_LOG:
                # Here rather than within a commit, so that nobody waits for it.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                folded_in = connection.total_changes
        connection.close()

    def _carry_out(self, connection: sqlite3.Connection, batch: list[Job]) -> None:
        """One transaction. What becomes of each job stands in it afterwards.

        Savepoints make SQLite copy every page that changes, so they wait until a job has raised.
        """
        try:
            if any(job.work.once for job in batch) or not self._all_done(connection, batch):
                connection.execute("BEGIN IMMEDIATE")
                for job in batch:
                    self._attempt(connection, job)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(connection)
            for job in batch:
                job.error = job.error or error

    def _all_done(self, connection: sqlite3.Connection, batch: list[Job]) -> bool:
        """Do all jobs in one transaction; if one of them raises, nothing is done, and the answer is no."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            for work, jobs in _by_work(batch).items():
                work.do(connection, jobs)
        except Exception:
            self._roll_back(connection)
            return False
        connection.execute("COMMIT")
        return True

    def _attempt(self, connection: sqlite3.Connection, job: Job) -> None:
        connection.execute("SAVEPOINT job")
        try:
            job.work.do(connection, [job])
        except Exception as error:
            connection.execute("ROLLBACK TO job")
            self._forget()
            job.error = error
        connection.execute("RELEASE job")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        self._forget()

    def _forget(self) -> None:
        for memory in list(self._memories):
            memory.forget()

    def _next_lots(self) -> tuple[list[Lot], bool]:
        """Everything that has arrived, and whether more may come."""
        lots: list[Lot] = []
        count = 0
        lot = self._inbox.lots.get()
        while lot is not None:
            lots.append(lot)
            count += len(lot.jobs)
            if count >= _BATCH:
                return lots, True
            try:
                lot = self._inbox.lots.get_nowait()
            except queue.Empty:
                return lots, True
        return lots, False


class Port(Generic[Item]):
    """Takes items of one kind; see `Writer.port`. Items of a batch may be written before its other jobs."""

    def __init__(self, inbox: Inbox, work: Work) -> None:
        self._inbox = inbox
        self._work = work

    def submit(self, item: Item) -> asyncio.Future[None]:
        """Write an item; done once its transaction is committed."""
        return self._inbox.submit(self._work, item)

    def enqueue(self, item: Item) -> Future[None]:
        """The same, for callers without an event loop."""
        return self._inbox.enqueue(self._work, item)


class _Single:
    """Work of one job."""

    __slots__ = ("_work", "once")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], once: bool = False) -> None:
        self._work = work
        self.once = once

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        (job,) = jobs
        job.result = self._work(connection)


class _Shared:
    """Work that a port's jobs have in common."""

    __slots__ = ("_work",)
    once = False

    def __init__(self, work: Callable[[sqlite3.Connection, Sequence[Any]], None]) -> None:
        self._work = work

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        self._work(connection, [job.item for job in jobs])


def _by_work(batch: list[Job]) -> dict[Work, list[Job]]:
    """The jobs, those of one port together where the first of them stands."""
    groups: dict[Work, list[Job]] = {}
    for job in batch:
        groups.setdefault(job.work, []).append(job)
    return groups
