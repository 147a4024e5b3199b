"""The queue between callers and the writer: how jobs are collected into batches and their results returned."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

_QUIET_ROUNDS = 2
"""A step's writes come so many rounds of the loop before its checkpoint."""

_MOST_ROUNDS = 8
_LARGE_BATCH = 128


class Operation(Protocol):
    """What is done with jobs.

    Attributes:
        once: Whether it must not be done a second time.
        is_barrier: Whether it keeps its place: what came before it is done before it, what came later after it.
    """

    once: bool
    is_barrier: bool

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Do it."""


class Job:
    """An item that an operation is done with, what came of it, and whom to tell.

    Args:
        operation: What is done.
        item: The item.
        future: Who waits for it: a future of an event loop, or one of threads.
    """

    __slots__ = ("error", "future", "item", "operation", "result")

    def __init__(self, operation: Operation, item: Any, future: asyncio.Future[Any] | Future[Any]) -> None:
        self.operation = operation
        self.item = item
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        """Tell what came of it. Whoever has stopped waiting is left alone."""
        future = self.future
        if isinstance(future, asyncio.Future):
            if future.done():
                return
        elif not future.set_running_or_notify_cancel():
            return
        if self.error is None:
            future.set_result(self.result)
        elif isinstance(self.error, StopIteration):  # which no future takes
            future.set_exception(RuntimeError(f"a job raised {self.error!r}"))
        else:
            future.set_exception(self.error)


class Batch(NamedTuple):
    """Jobs that were handed over together.

    Attributes:
        jobs: The jobs.
        loop: The event loop that brought them, in whose thread their futures must be told; `None` if none did.
    """

    jobs: list[Job]
    loop: asyncio.AbstractEventLoop | None

    def settle(self) -> None:
        """Have it told what came of the jobs. Called in another thread than the loop's."""
        if self.loop is None:
            self.tell()
            return
        with suppress(RuntimeError):  # the loop was closed in the meantime, so nobody is left who waits
            self.loop.call_soon_threadsafe(self.tell)

    def tell(self) -> None:
        """Tell what came of the jobs."""
        for job in self.jobs:
            job.tell()


class _OpenBatch:
    """Jobs of a loop that are not handed over yet."""

    __slots__ = ("_quiet", "_rounds", "_seen", "jobs")

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self._seen = self._quiet = self._rounds = 0

    def is_complete(self) -> bool:
        """Whether to hand them over now; asked once a round of the loop."""
        count = len(self.jobs)
        self._rounds += 1
        self._quiet = self._quiet + 1 if count == self._seen else 0
        self._seen = count
        return self._quiet >= _QUIET_ROUNDS or count >= _LARGE_BATCH or self._rounds >= _MOST_ROUNDS


class Inbox:
    """Where jobs wait for the writer.

    Args:
        at_once: Carries out jobs in the thread that calls it, or says that this has to wait.

    Attributes:
        batches: What was handed over to the writer's thread; `None` is the last.
    """

    def __init__(self, at_once: Callable[[list[Job]], bool]) -> None:
        self.batches: queue.Queue[Batch | None] = queue.Queue()
        self._at_once = at_once
        self._open_batches: dict[asyncio.AbstractEventLoop, _OpenBatch] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, operation: Operation, item: Any) -> asyncio.Future[Any]:
        """A job of the running event loop.

        Raises:
            RuntimeError: If the inbox is closed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = Job(operation, item, future)
        with self._lock:
            self._ensure_open()
            batch = self._open_batches.get(loop)
            if batch is None:
                self._hand_over_orphans()
                loop.call_soon(self._check, loop)
                batch = self._open_batches[loop] = _OpenBatch()
            batch.jobs.append(job)
        return future

    def enqueue(self, operation: Operation, item: Any) -> Future[Any]:
        """A job of any other thread, or one that takes long.

        Raises:
            RuntimeError: If the inbox is closed.
        """
        future: Future[Any] = Future()
        with self._lock:
            self._ensure_open()
            self._hand_over_orphans()
            self.batches.put(Batch([Job(operation, item, future)], None))
        return future

    def close(self) -> None:
        """Nothing comes any more."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                for loop in list(self._open_batches):
                    self.batches.put(Batch(self._open_batches.pop(loop).jobs, loop))
                self.batches.put(None)

    def _ensure_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the file is closed: nothing can be written any more")

    def _hand_over_orphans(self) -> None:
        """What loops had gathered that were closed in the midst of it comes before anything that comes later."""
        for loop in [loop for loop in self._open_batches if loop.is_closed()]:
            self.batches.put(Batch(self._open_batches.pop(loop).jobs, loop))

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to what was gathered, or look again in the next round."""
        batch = self._open_batches.get(loop)
        if batch is None:
            return
        is_over = True  # also if Ctrl-C comes in the midst of it
        try:
            if not batch.is_complete():
                loop.call_soon(self._check, loop)
                is_over = False
        finally:
            if is_over:
                self._hand_over(loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Carry out a batch at once, or leave it to the writer's thread."""
        with self._lock:
            complete = self._open_batches.pop(loop, None)
        if complete is None:
            return
        batch = Batch(complete.jobs, loop)
        is_done = False
        try:
            is_done = self._at_once(batch.jobs)
        finally:
            if not is_done:
                self._queue(batch)
        if is_done:
            batch.tell()

    def _queue(self, batch: Batch) -> None:
        with self._lock:
            if not self._is_closed:
                self.batches.put(batch)
                return
        for job in batch.jobs:
            job.error = RuntimeError("the file was closed before this was written")
        batch.tell()
