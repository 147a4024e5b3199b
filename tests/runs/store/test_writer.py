"""The writer: rollbacks of failed jobs, and when an event loop executes its jobs itself."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dialoom.runs.errors import StoreError
from dialoom.runs.store.checkpoints import RunSaver
from dialoom.runs.store.writer import Writer
from tests.processes import TIMEOUT_SECONDS
from tests.runs.store.savers import checkpoint_of, count, place, rows


def refuse(_connection: sqlite3.Connection) -> None:
    """Insert a row, and then fail."""
    _connection.execute("INSERT INTO t VALUES (99)")
    raise ValueError("refused")


def writing(folder: Path, synchronous: str) -> Writer:
    """Return a writer of a file with one table."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(folder / "w.db", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
        return connection

    return Writer(folder / "w.db", connect)


def inserting(number: int) -> Callable[[sqlite3.Connection], int]:
    """Return a job that inserts a number."""
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (number,)).rowcount


class BlockingJob:
    """A job that blocks until it is released.

    Attributes:
        started: Set when the job is executed.
        release: Set to let the job end.
    """

    def __init__(self) -> None:
        self.started, self.release = threading.Event(), threading.Event()

    def __call__(self, _connection: sqlite3.Connection) -> bool:
        self.started.set()
        return self.release.wait(TIMEOUT_SECONDS)


@pytest.fixture(params=["NORMAL", "FULL"])
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    """Return a writer whose jobs an event loop executes itself, and one whose thread executes them all."""
    return writing(tmp_path, request.param)


async def test_only_the_failing_job_is_rolled_back(writer: Writer, tmp_path: Path) -> None:
    results = await asyncio.gather(
        *(writer.submit(inserting(n)) for n in range(3)),
        writer.submit(refuse),
        *(writer.submit(inserting(n)) for n in range(3, 6)),
        return_exceptions=True,
    )
    writer.close()
    assert [str(result) for result in results] == ["1", "1", "1", "refused", "1", "1", "1"]
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(n,) for n in range(6)]


@pytest.mark.parametrize("raised", [SystemExit("broken"), GeneratorExit(), StopIteration()])
async def test_any_exception_of_a_job_goes_to_its_caller(writer: Writer, tmp_path: Path, raised: BaseException) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (99)")
        raise raised

    blocker = BlockingJob()
    before = writer.enqueue(blocker)
    await asyncio.to_thread(blocker.started.wait)  # so that the following jobs are one batch
    failing = writer.enqueue(fail, once=True)
    good = writer.submit(inserting(1))
    await asyncio.sleep(0)  # let the job be handed over
    blocker.release.set()
    caught = await asyncio.to_thread(failing.exception)
    assert caught is raised or isinstance(caught, RuntimeError)
    assert before.done() and await good == 1
    assert await writer.submit(inserting(2)) == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(1,), (2,)]


async def test_jobs_behind_a_failing_one_are_answered(writer: Writer) -> None:
    jobs = (writer.submit(lambda _connection: next(iter(()))), writer.submit(lambda _connection: 7))
    first, second = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(first, RuntimeError)
    assert "StopIteration" in str(first)
    assert second == 7
    writer.close()


@pytest.mark.parametrize("is_explained", [False, True])
async def test_full_disk_is_reported_as_such(writer: Writer, tmp_path: Path, is_explained: bool) -> None:
    def grow(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("CREATE TABLE large (text)")
        try:
            connection.executemany("INSERT INTO large VALUES (?)", (("x" * 3000,) for _ in range(500)))
        except sqlite3.Error as error:
            if is_explained:
                raise ValueError(f"disk space: {error}") from error
            raise

    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
    try:
        with pytest.raises(ValueError if is_explained else sqlite3.OperationalError, match="disk"):
            await asyncio.to_thread(writer.enqueue(grow, once=True).result)
        with pytest.raises(ValueError if is_explained else StoreError, match="disk"):
            await writer.run(grow)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert await writer.submit(inserting(1)) == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT name FROM sqlite_master WHERE type = 'table'") == [("t",)]


async def test_jobs_after_closing_are_refused(writer: Writer) -> None:
    is_at_work = threading.Event()

    def work(connection: sqlite3.Connection, items: Sequence[int]) -> None:
        if max(items) > 100:
            is_at_work.set()
        connection.executemany("INSERT INTO t VALUES (?)", [(item,) for item in items])

    port = writer.get_port(work)
    numbers = iter(range(10**9))
    refused: list[str] = []

    async def submit() -> None:
        try:
            while True:
                await port.submit(next(numbers))
        except RuntimeError as error:
            refused.append(str(error))

    async def submit_many() -> None:
        await asyncio.gather(*(submit() for _ in range(4)))

    threads = [threading.Thread(target=lambda: asyncio.run(submit_many())) for _ in range(2)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(is_at_work.wait)
    await asyncio.to_thread(writer.close)
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert not any(thread.is_alive() for thread in threads)
    assert len(refused) == 8
    assert all("closed" in text for text in refused)
    with pytest.raises(RuntimeError, match="closed"):
        writer.submit(refuse)
    with pytest.raises(RuntimeError, match="closed"):
        writer.enqueue(refuse)


def test_job_of_a_closed_loop_runs_before_later_ones(writer: Writer, tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()

    async def leave() -> None:
        writer.submit(inserting(1))

    loop.run_until_complete(leave())
    loop.close()
    assert writer.enqueue(lambda c: c.execute("DELETE FROM t").rowcount).result() == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == []


async def test_ordered_job_is_not_overtaken(writer: Writer, tmp_path: Path) -> None:
    def work(connection: sqlite3.Connection, items: Sequence[int]) -> None:
        connection.executemany("INSERT INTO t VALUES (?)", [(item,) for item in items])

    port = writer.get_port(work)
    blocker = BlockingJob()
    before = writer.enqueue(blocker)
    await asyncio.to_thread(blocker.started.wait)
    first = port.enqueue(1)
    removing = writer.enqueue(lambda c: c.execute("DELETE FROM t").rowcount)
    later = [port.enqueue(2), port.enqueue(3)]
    blocker.release.set()
    assert await asyncio.to_thread(before.result)
    for item in (first, *later):
        await asyncio.to_thread(item.result)
    assert removing.result() == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(2,), (3,)]


class Rollbacks:
    """A counter of rollbacks."""

    def __init__(self) -> None:
        self.times = 0

    def clear(self) -> None:
        """Count a rollback; the writer calls this."""
        self.times += 1


async def test_failing_batch_of_a_port_is_tried_item_by_item(writer: Writer, tmp_path: Path) -> None:
    rollbacks = writer.get_cache(Rollbacks)

    def work(connection: sqlite3.Connection, items: Sequence[int]) -> None:
        connection.executemany("INSERT INTO t VALUES (?)", [(item,) for item in items])

    port = writer.get_port(work)
    results = await asyncio.gather(*(port.submit(n) for n in (1, 2, 2, 3)), return_exceptions=True)
    writer.close()
    assert [type(result).__name__ for result in results] == ["NoneType", "NoneType", "IntegrityError", "NoneType"]
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(1,), (2,), (3,)]
    assert rollbacks.times >= 2


def test_job_submitted_as_once_is_not_repeated(writer: Writer, tmp_path: Path) -> None:
    numbers = iter([1, 2])
    blocker = BlockingJob()
    before = writer.enqueue(blocker)
    blocker.started.wait()  # so that the following jobs are one batch
    insert = "INSERT INTO t VALUES (?)"
    reading = writer.enqueue(lambda c: c.executemany(insert, [(number,) for number in numbers]).rowcount, once=True)
    refused = writer.enqueue(refuse)
    blocker.release.set()
    assert before.result() and reading.result() == 2
    with pytest.raises(ValueError, match="refused"):
        refused.result()
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(1,), (2,)]


async def test_failed_commit_is_reported_to_all_of_its_batch(tmp_path: Path) -> None:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "w.db", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE t (n INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
        return connection

    writer = Writer(tmp_path / "w.db", connect)
    rollbacks = writer.get_cache(Rollbacks)
    orphans = [writer.submit(inserting(n)) for n in (1, 2)]
    results = await asyncio.gather(*orphans, return_exceptions=True)
    assert [str(result) for result in results] == ["FOREIGN KEY constraint failed"] * 2
    assert rollbacks.times == 1
    adopted = writer.submit(lambda c: c.execute("INSERT INTO parent VALUES (1)").rowcount)
    assert await adopted == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == []


async def test_cancelled_caller_does_not_affect_others(writer: Writer, tmp_path: Path) -> None:
    blocker = BlockingJob()
    blocking = asyncio.wrap_future(writer.enqueue(blocker))
    await asyncio.to_thread(blocker.started.wait)
    left = asyncio.ensure_future(writer.submit(inserting(1)))
    other = asyncio.ensure_future(writer.submit(inserting(2)))
    await asyncio.sleep(0)
    left.cancel()
    blocker.release.set()
    assert await other == 1
    await blocking
    writer.close()
    assert (2,) in rows(tmp_path / "w.db", "SELECT n FROM t")


async def test_closing_executes_queued_jobs(writer: Writer, tmp_path: Path) -> None:
    waiting = [asyncio.ensure_future(writer.submit(inserting(n))) for n in range(500)]
    await asyncio.sleep(0)
    writer.close()
    assert count(tmp_path / "w.db", "t") == 500
    await asyncio.gather(*waiting)


async def test_event_loop_does_not_wait_for_the_lock_of_another_connection(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    locked, continued = threading.Event(), threading.Event()

    def hold() -> bool:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        locked.set()
        has_continued = continued.wait(TIMEOUT_SECONDS)
        other.execute("ROLLBACK")
        other.close()
        return has_continued

    async with RunSaver.open(path) as saver:
        holding = asyncio.create_task(asyncio.to_thread(hold))
        await asyncio.to_thread(locked.wait)
        put = asyncio.create_task(saver.aput(place("t"), checkpoint_of({"a": 1}), {}, {}))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not put.done()
        continued.set()
        assert await holding, "the event loop was blocked until the other connection had finished"
        await put
        assert count(path, "checkpoints") == 1


async def test_event_loop_does_not_overtake_queued_jobs(writer: Writer, tmp_path: Path) -> None:
    blocker = BlockingJob()
    first = writer.enqueue(lambda connection: blocker(connection) and inserting(1)(connection))
    second = writer.enqueue(inserting(2))
    await asyncio.to_thread(blocker.started.wait)
    third = writer.submit(inserting(3))
    await asyncio.sleep(0)
    assert not third.done()
    blocker.release.set()
    await third
    assert first.done() and second.done()
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t ORDER BY rowid") == [(1,), (2,), (3,)]


async def test_queued_jobs_come_first(writer: Writer, tmp_path: Path) -> None:
    inserted, notified = BlockingJob(), BlockingJob()
    first = writer.enqueue(lambda connection: inserted(connection) and inserting(1)(connection))

    def listen(_first: object) -> None:
        notified.started.set()
        notified.release.wait(TIMEOUT_SECONDS)

    first.add_done_callback(listen)
    inserted.release.set()
    await asyncio.to_thread(notified.started.wait)
    second = writer.enqueue(inserting(2))
    third = writer.submit(inserting(3))
    await asyncio.sleep(0)
    notified.release.set()
    await third
    assert second.done()
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t ORDER BY rowid") == [(1,), (2,), (3,)]


async def test_wal_file_is_checkpointed_during_a_run(writer: Writer, tmp_path: Path) -> None:
    def insert(connection: sqlite3.Connection, pages: Sequence[range]) -> None:
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for page in pages for number in page])

    port = writer.get_port(insert)
    longest = 0
    for start in range(0, 100_000, 500):
        await port.submit(range(start, start + 500))
        longest = max(longest, (tmp_path / "w.db-wal").stat().st_size)
    whole = (tmp_path / "w.db").stat().st_size
    writer.close()
    assert count(tmp_path / "w.db", "t") == 100_000
    assert longest < whole
