"""Transactions: what a reader sees, what a failure undoes, what compacting removes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from dialoom.runs.store.checkpoints import RunSaver
from dialoom.runs.store.writer import Writer
from tests.runs.store.savers import checkpoint_of, count, place, put, rows, values_of


async def test_a_reader_sees_whole_transactions_while_the_writer_is_busy(tmp_path: Path) -> None:
    """Every reference of every checkpoint that a foreign connection sees leads somewhere."""
    path = tmp_path / "x.db"
    lost = """
        SELECT count(*) FROM checkpoints, json_each(channels) AS channel
        WHERE json_extract(channel.value, '$[1]') = 'list'
        AND json_extract(channel.value, '$[2]') NOT IN (SELECT id FROM checkpoint_lists)
        UNION ALL
        SELECT count(*) FROM checkpoint_lists, json_each(elements) AS element
        WHERE element.type = 'integer' AND element.value NOT IN (SELECT id FROM checkpoint_values)
    """
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            assert rows(path, lost) == [(0,), (0,)]
            seen.append(count(path, "checkpoints"))

    async def talk(saver: RunSaver, thread: str) -> None:
        messages: list[str] = []
        for number in range(30):
            messages = [*messages, f"{thread} {number} " * 20]
            await saver.aput(place(thread), checkpoint_of({"messages": messages}), {}, {})

    async with RunSaver.open(path) as saver:
        watching = asyncio.create_task(asyncio.to_thread(watch))
        await asyncio.gather(*(talk(saver, f"t{number}") for number in range(20)))
        done.set()
        await watching
    assert sorted(seen) == seen
    assert count(path, "checkpoints") == 600


async def test_a_put_that_was_returned_is_in_the_file(tmp_path: Path) -> None:
    """For any other connection, at once."""
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        for number in range(5):
            await saver.aput(place("t"), checkpoint_of({"a": number}), {}, {})
            assert count(path, "checkpoints") == number + 1


async def test_compacting_removes_what_nothing_refers_to_and_nothing_else(tmp_path: Path) -> None:
    """Values of deleted checkpoints go; lists that others build on, and values of pending writes, stay."""
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        first = put(saver, "stays", {"messages": ["a" * 99], "note": "n" * 99})
        last = put(saver, "stays", {"messages": ["a" * 99, "b" * 99], "note": "n" * 99}, first)
        saver.put_writes(place("stays", last), [("note", "w" * 99), ("messages", ["v" * 99, "a" * 99])], "task")
        put(saver, "goes", {"messages": ["a" * 99, "c" * 99], "note": "m" * 9999})
        before = saver.get_tuple(place("stays"))
        assert count(path, "checkpoint_values") == 7
        saver.delete_thread("goes")
        saver.prune(["stays"])
        assert count(path, "checkpoint_values") == 7
        sizes = saver.compact()
        assert sizes.after < sizes.before
        assert count(path, "checkpoint_values") == 5
        assert count(path, "checkpoint_lists") == 2
        assert saver.get_tuple(place("stays")) == before
        # What was forgotten is stored again when it is needed again, also by a thread that had it a moment ago.
        put(saver, "goes", {"messages": ["a" * 99, "c" * 99, "d" * 99], "note": "m" * 9999})
        assert values_of(saver, "goes") == {"messages": ["a" * 99, "c" * 99, "d" * 99], "note": "m" * 9999}
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def refuse(_connection: sqlite3.Connection) -> None:
    """A job that fails after it wrote."""
    _connection.execute("INSERT INTO t VALUES (99)")
    raise ValueError("refused")


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    """A writer of a file with one table."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "w.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
        return connection

    return Writer(connect)


async def test_a_raising_job_is_undone_alone(writer: Writer, tmp_path: Path) -> None:
    """The other jobs of its batch are kept, and only its caller is told."""
    insert = "INSERT INTO t VALUES (?)"
    results = await asyncio.gather(
        *(writer.submit(lambda c, n=n: c.execute(insert, (n,)).rowcount) for n in range(3)),
        writer.submit(refuse),
        *(writer.submit(lambda c, n=n: c.execute(insert, (n,)).rowcount) for n in range(3, 6)),
        return_exceptions=True,
    )
    writer.close()
    assert [str(result) for result in results] == ["1", "1", "1", "refused", "1", "1", "1"]
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(n,) for n in range(6)]


class Undone:
    """Counts how often something was undone."""

    def __init__(self) -> None:
        self.times = 0

    def forget(self) -> None:
        """What the writer calls."""
        self.times += 1


async def test_a_port_that_fails_at_once_is_tried_item_by_item(writer: Writer, tmp_path: Path) -> None:
    """So an item that cannot be written does not take the others along; and memories are told what was undone."""
    undone = Undone()
    writer.attach(undone)

    def work(connection: sqlite3.Connection, items: object) -> None:
        connection.executemany("INSERT INTO t VALUES (?)", [(item,) for item in items])  # type: ignore[attr-defined]

    port = writer.port(work)
    results = await asyncio.gather(*(port.submit(n) for n in (1, 2, 2, 3)), return_exceptions=True)
    writer.close()
    assert [type(result).__name__ for result in results] == ["NoneType", "NoneType", "IntegrityError", "NoneType"]
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(1,), (2,), (3,)]
    assert undone.times == 2


def test_what_must_be_done_once_is_not_done_again(writer: Writer, tmp_path: Path) -> None:
    """Although another job of its batch raises."""
    numbers = iter([1, 2])
    started, go_on = threading.Event(), threading.Event()
    before = writer.enqueue(lambda _connection: (started.set(), go_on.wait()))
    started.wait()  # so that what comes now is one batch
    insert = "INSERT INTO t VALUES (?)"
    reading = writer.enqueue(lambda c: c.executemany(insert, [(number,) for number in numbers]).rowcount, once=True)
    refused = writer.enqueue(refuse)
    go_on.set()
    assert before.result() and reading.result() == 2
    with pytest.raises(ValueError, match="refused"):
        refused.result()
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == [(1,), (2,)]


async def test_a_commit_that_fails_is_told_to_all_of_its_batch(tmp_path: Path) -> None:
    """And to those that remember what was written."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / "w.db", isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE t (n INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
        return connection

    writer = Writer(connect)
    undone = Undone()
    writer.attach(undone)
    orphans = [writer.submit(lambda c, n=n: c.execute("INSERT INTO t VALUES (?)", (n,)).rowcount) for n in (1, 2)]
    results = await asyncio.gather(*orphans, return_exceptions=True)
    assert [str(result) for result in results] == ["FOREIGN KEY constraint failed"] * 2
    assert undone.times == 1
    adopted = writer.submit(lambda c: c.execute("INSERT INTO parent VALUES (1)").rowcount)
    assert await adopted == 1
    writer.close()
    assert rows(tmp_path / "w.db", "SELECT n FROM t") == []


async def test_a_caller_that_stops_waiting_harms_nobody(writer: Writer, tmp_path: Path) -> None:
    """Its job is carried out or not; the others' are."""
    started = threading.Event()
    go_on = threading.Event()

    def slow(_connection: sqlite3.Connection) -> None:
        started.set()
        go_on.wait()

    blocking = asyncio.ensure_future(writer.submit(slow))
    await asyncio.to_thread(started.wait)
    left = asyncio.ensure_future(writer.submit(lambda c: c.execute("INSERT INTO t VALUES (1)").rowcount))
    other = asyncio.ensure_future(writer.submit(lambda c: c.execute("INSERT INTO t VALUES (2)").rowcount))
    await asyncio.sleep(0.01)
    left.cancel()
    go_on.set()
    assert await other == 1
    await blocking
    writer.close()
    assert (2,) in rows(tmp_path / "w.db", "SELECT n FROM t")


async def test_a_commit_that_fails_fails_every_job(tmp_path: Path) -> None:
    """As on a full disk; the writer goes on when there is room again."""
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        put(saver, "t", {"a": "a" * 99})
        other = sqlite3.connect(path, isolation_level=None)
        pages = saver._writer.enqueue(lambda c: c.execute("PRAGMA page_count").fetchone()[0]).result()
        saver._writer.enqueue(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone()).result()
        puts = (
            saver.aput(place("t"), checkpoint_of({"a": letter * 99_999, "m": [letter * 99] * 2}), {}, {})
            for letter in "bc"
        )
        failed = await asyncio.gather(*puts, return_exceptions=True)
        assert all(isinstance(error, sqlite3.Error) for error in failed)
        saver._writer.enqueue(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone()).result()
        other.close()
        put(saver, "t", {"a": "b" * 99_999, "m": ["b" * 99] * 3})
        assert values_of(saver, "t") == {"a": "b" * 99_999, "m": ["b" * 99] * 3}
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_closing_drains(writer: Writer, tmp_path: Path) -> None:
    """What was handed in before is written."""
    waiting = [
        asyncio.ensure_future(writer.submit(lambda c, n=n: c.execute("INSERT INTO t VALUES (?)", (n,)).rowcount))
        for n in range(500)
    ]
    await asyncio.sleep(0)
    writer.close()
    assert count(tmp_path / "w.db", "t") == 500
    await asyncio.gather(*waiting)
