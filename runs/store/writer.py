"""The one writer: a thread that commits whatever arrived together in one transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")
_BATCH = 256


class Writer:
    """Carries out jobs on a connection of its own thread. A job is done when its transaction is durable.

    A job that raises is undone alone; the others of its batch are kept. If the commit fails, all of them fail.

    Args:
        connect: Opens the connection, in the writer's thread.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._connect = connect
        self._opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="dialoom-writer", daemon=True)
        self._thread.start()
        self._opened.result()

    async def submit(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out work in a transaction; returns once that is committed."""
        return await asyncio.wrap_future(self.enqueue(work))

    def enqueue(self, work: Callable[[sqlite3.Connection], Result]) -> Future[Result]:
        """The same, for callers without an event loop."""
        future: Future[Result] = Future()
        self._jobs.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Carry out what is queued, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            connection = self._connect()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        open_ = True
        while open_:
            batch, open_ = self._next_batch()
            if batch:
                _carry_out(connection, batch)
        connection.close()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Everything that has arrived, and whether more may come."""
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) >= _BATCH:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


class _Job:
    """Work and the promise of its result."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], future: Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def _carry_out(connection: sqlite3.Connection, batch: list[_Job]) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in batch:
            _attempt(connection, job)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        for job in batch:
            job.error = job.error or error
    for job in batch:
        job.settle()


def _attempt(connection: sqlite3.Connection, job: _Job) -> None:
    connection.execute("SAVEPOINT job")
    try:
        job.result = job.work(connection)
    except Exception as error:
        job.error = error
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
