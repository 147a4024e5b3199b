"""How jobs get to the writer's thread, and what came of them back to those who wait.

An event loop hands its jobs over in lots: as soon as two rounds of it brought nothing more, so that what the steps of
many dialogues write at a time shares a transaction. Then it waits for the writer, a few milliseconds at most. While
both had something to do in Python, each would only keep the other from Python's lock, and handing that back and forth
costs more than a transaction does. If a transaction takes longer than that, the loop goes on and is told when it is
done; if that happens again and again (a slow disk, somebody else's lock), it does not wait at all for a while.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

_QUIET_ROUNDS = 2
"""A step's writes come so many rounds of the loop before its checkpoint."""

_MOST_ROUNDS = 8
_LARGE_LOT = 128
_PATIENCE = 0.005
_LATE_IN_A_ROW = 4
_LOTS_WITHOUT = 100
"""How many lots are not waited for after so many in a row took too long."""


class Work(Protocol):
    """What is done with jobs.

    Attributes:
        once: Whether it must not be done a second time.
    """

    once: bool

    def do(self, connection: sqlite3.Connection, jobs: Sequence[Job]) -> None:
        """Do it, in the writer's thread."""


class Job:
    """An item of some work, what came of it, and whom to tell: a future of an event loop or one of threads."""

    __slots__ = ("error", "future", "item", "result", "work")

    def __init__(self, work: Work, item: Any, future: asyncio.Future[Any] | Future[Any]) -> None:
        self.work = work
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
        else:
            future.set_exception(self.error)


class Lot:
    """Jobs that were handed over together.

    Args:
        jobs: The jobs.
        loop: The event loop that brought them, in whose thread their futures must be told; `None` if none did.
        awaited: Whether `wait` will be called.
    """

    __slots__ = ("_awaited", "_done", "_is_done", "_lock", "_loop", "jobs")

    def __init__(self, jobs: list[Job], loop: asyncio.AbstractEventLoop | None, awaited: bool = False) -> None:
        self.jobs = jobs
        self._loop = loop
        self._awaited = awaited
        self._is_done = False
        self._lock = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()

    def settle(self) -> None:
        """Have it told what came of the jobs. Called in the writer's thread."""
        if self._loop is None:
            self._tell()
            return
        with self._lock:
            self._is_done = True
            awaited = self._awaited
        if awaited:
            self._done.release()
            return
        with suppress(RuntimeError):  # the loop was closed in the meantime, so nobody is left who waits
            self._loop.call_soon_threadsafe(self._tell)

    def wait(self, seconds: float) -> bool:
        """Wait in the loop's thread, so long at most; whether the jobs were done by then."""
        self._done.acquire(timeout=seconds)
        with self._lock:
            self._awaited = False
            is_done = self._is_done
        if is_done:
            self._tell()
        return is_done

    def _tell(self) -> None:
        for job in self.jobs:
            job.tell()


class _Gathering:
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
        return self._quiet >= _QUIET_ROUNDS or count >= _LARGE_LOT or self._rounds >= _MOST_ROUNDS


class Inbox:
    """Where jobs wait for the writer.

    Attributes:
        lots: What was handed over; `None` is the last.
        is_patient: Whether loops wait for the writer at all.
    """

    def __init__(self) -> None:
        self.lots: queue.SimpleQueue[Lot | None] = queue.SimpleQueue()
        self.is_patient = True
        self._gathering: dict[asyncio.AbstractEventLoop, _Gathering] = {}
        self._late = 0
        self._lots_without = 0

    def submit(self, work: Work, item: Any) -> asyncio.Future[Any]:
        """A job of the running event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        gathering = self._gathering.get(loop)
        if gathering is None:
            gathering = self._gathering[loop] = _Gathering()
            loop.call_soon(self._look, loop)
        gathering.jobs.append(Job(work, item, future))
        return future

    def enqueue(self, work: Work, item: Any) -> Future[Any]:
        """A job of any other thread."""
        future: Future[Any] = Future()
        self.lots.put(Lot([Job(work, item, future)], None))
        return future

    def close(self) -> None:
        """Nothing comes any more."""
        for loop in list(self._gathering):
            self.lots.put(Lot(self._gathering.pop(loop).jobs, loop))
        self.lots.put(None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over what was gathered, or look again in the next round."""
        gathering = self._gathering.get(loop)
        if gathering is None:
            return
        if not gathering.is_complete():
            loop.call_soon(self._look, loop)
            return
        del self._gathering[loop]
        awaited = self.is_patient and self._lots_without == 0
        self._lots_without = max(self._lots_without - 1, 0)
        lot = Lot(gathering.jobs, loop, awaited)
        self.lots.put(lot)
        if awaited:
            self._late = 0 if lot.wait(_PATIENCE) else self._late + 1
            if self._late == _LATE_IN_A_ROW:
                self._late, self._lots_without = 0, _LOTS_WITHOUT
