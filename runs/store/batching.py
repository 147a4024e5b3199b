"""The queue between callers and the writer: it collects jobs into batches and returns their results."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

_QUIET_ROUNDS = 2
"""The number of event loop rounds without a new job after which a batch is complete."""

_MAX_ROUNDS = 8
_MAX_BATCH_SIZE = 128

_RESUMED_PER_ROUND = 16
"""The number of callers that continue in one round of the event loop."""


class Operation(Protocol):
    """An operation that the writer carries out on jobs.

    Attributes:
        once: Whether the operation must not be repeated.
        is_barrier: Whether the order is kept: jobs submitted earlier run before it, and jobs submitted later after it.
    """

    once: bool
    is_barrier: bool

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Carry out the operation on the jobs."""


class Job:
    """An item to process, its result, and the future of the caller that waits for it.

    Args:
        operation: The operation.
        item: The item.
        future: The caller's future, which is either one of an event loop or one for threads.
    """

    __slots__ = ("error", "future", "item", "operation", "result")

    def __init__(self, operation: Operation, item: Any, future: asyncio.Future[Any] | Future[Any]) -> None:
        self.operation = operation
        self.item = item
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Set the future's result or exception. Nothing happens to a future that is cancelled or done."""
        future = self.future
        if isinstance(future, asyncio.Future):
            if future.done():
                return
        elif not future.set_running_or_notify_cancel():
            return
        if self.error is None:
            future.set_result(self.result)
        elif isinstance(self.error, StopIteration):  # no future accepts a StopIteration
            future.set_exception(RuntimeError(f"a job raised {self.error!r}"))
        else:
            future.set_exception(self.error)


class Batch:
    """Jobs that were submitted together.

    Args:
        jobs: The jobs.
        loop: The event loop that submitted them, in whose thread their futures must be resolved; `None` if there is
            none.
    """

    __slots__ = ("_last_count", "_quiet_rounds", "_rounds", "jobs", "loop")

    def __init__(self, jobs: list[Job], loop: asyncio.AbstractEventLoop | None) -> None:
        self.jobs = jobs
        self.loop = loop
        self._last_count = self._quiet_rounds = self._rounds = 0

    def is_complete(self) -> bool:
        """Return whether the jobs should be submitted now; call it once per round of the event loop."""
        count = len(self.jobs)
        self._rounds += 1
        self._quiet_rounds = self._quiet_rounds + 1 if count == self._last_count else 0
        self._last_count = count
        return self._quiet_rounds >= _QUIET_ROUNDS or count >= _MAX_BATCH_SIZE or self._rounds >= _MAX_ROUNDS

    def resolve_threadsafe(self) -> None:
        """Resolve the jobs' futures in the loop's thread. Call it from any other thread."""
        if self.loop is None:
            self.resolve()
            return
        with suppress(RuntimeError):  # the loop was closed in the meantime, so nobody is waiting
            self.loop.call_soon_threadsafe(self.resolve)

    def resolve(self, start: int = 0) -> None:
        """Set the results of the jobs' futures, in the event loop's thread, a few in each round of the event loop.

        If all callers continued in the same round, each would prepare its next request before the first one is sent,
        and the provider would be idle in the meantime.
        """
        end = len(self.jobs)
        if self.loop is not None and end > start + _RESUMED_PER_ROUND:
            end = start + _RESUMED_PER_ROUND
            self.loop.call_soon(self.resolve, end)
        for job in self.jobs[start:end]:
            job.resolve()


class BatchQueue:
    """The queue of jobs for the writer.

    Args:
        run_inline: A function that carries out jobs in the calling thread, and returns false if they have to wait.

    Attributes:
        batches: The batches for the writer's thread; `None` marks the end.
    """

    def __init__(self, run_inline: Callable[[list[Job]], bool]) -> None:
        self.batches: queue.Queue[Batch | None] = queue.Queue()
        self._run_inline = run_inline
        self._open_batches: dict[asyncio.AbstractEventLoop, Batch] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, operation: Operation, item: Any) -> asyncio.Future[Any]:
        """Submit a job from the running event loop and return its future.

        Raises:
            RuntimeError: If the queue is closed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = Job(operation, item, future)
        with self._lock:
            self._ensure_open()
            batch = self._open_batches.get(loop)
            if batch is None:
                self._queue_orphans()
                loop.call_soon(self._check_batch, loop)
                batch = self._open_batches[loop] = Batch([], loop)
            batch.jobs.append(job)
        return future

    def enqueue(self, operation: Operation, item: Any) -> Future[Any]:
        """Submit a job from any other thread, or a long-running one, and return its future.

        Raises:
            RuntimeError: If the queue is closed.
        """
        future: Future[Any] = Future()
        with self._lock:
            self._ensure_open()
            self._queue_orphans()
            self.batches.put(Batch([Job(operation, item, future)], None))
        return future

    def close(self) -> None:
        """Close the queue: submit the jobs collected so far, and accept no further jobs."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._queue_orphans()
                self.batches.put(None)

    def _ensure_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the file is closed and can no longer be written")

    def _queue_orphans(self) -> None:
        """Queue the jobs of event loops that were closed with an incomplete batch, so that they precede later jobs.

        If the queue is closed, the jobs of all event loops are queued.
        """
        for loop in [loop for loop in self._open_batches if self._is_closed or loop.is_closed()]:
            self.batches.put(self._open_batches.pop(loop))

    def _check_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Submit the batch if it is complete; otherwise check again in the next round of the event loop."""
        batch = self._open_batches.get(loop)
        if batch is None:
            return
        is_over = True  # set even if Ctrl-C is pressed here
        try:
            if not batch.is_complete():
                loop.call_soon(self._check_batch, loop)
                is_over = False
        finally:
            if is_over:
                self._dispatch(loop)

    def _dispatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Carry out a batch at once, or queue it for the writer's thread."""
        with self._lock:
            batch = self._open_batches.pop(loop, None)
        if batch is None:
            return
        is_done = False
        try:
            is_done = self._run_inline(batch.jobs)
        finally:
            if not is_done:
                self._queue_batch(batch)
        if is_done:
            batch.resolve()

    def _queue_batch(self, batch: Batch) -> None:
        with self._lock:
            if not self._is_closed:
                self.batches.put(batch)
                return
        for job in batch.jobs:
            job.error = RuntimeError("the file was closed before the data was written")
        batch.resolve()
