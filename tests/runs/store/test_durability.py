"""Transactions, the layout's version, and the storage of long lists of messages."""

from __future__ import annotations

import asyncio
import math
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from dialoom.runs.errors import StoreError
from dialoom.runs.store import schema
from dialoom.runs.store.checkpoints import RunSaver, UnstorableError
from dialoom.runs.store.passages import MAX_INLINE_MESSAGES, Passages, StoredMessage, make_passage_reader, read_messages
from tests.conftest import Command
from tests.runs.store.savers import checkpoint_of, count, place, put, rows, values_of


class NoteState(TypedDict):
    """A state with a note and a value of any type."""

    note: str
    seen: Any


async def test_reader_sees_whole_transactions(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    dangling = """
        SELECT count(*) FROM checkpoints, json_each(held) AS part
        WHERE part.type = 'object' AND json_extract(part.value, '$.list') NOT IN (SELECT id FROM checkpoint_lists)
        UNION ALL
        SELECT count(*) FROM checkpoint_lists, json_each(elements) AS element
        WHERE element.type = 'integer' AND element.value > 0 AND element.value NOT IN (SELECT id FROM checkpoint_values)
    """
    seen: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            assert rows(path, dangling) == [(0,), (0,)]
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


async def test_returned_put_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        for number in range(5):
            await saver.aput(place("t"), checkpoint_of({"a": number}), {}, {})
            assert count(path, "checkpoints") == number + 1


async def test_compacting_removes_exactly_the_unreferenced_values(tmp_path: Path) -> None:
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
        assert count(path, "checkpoint_frames") == count(path, "checkpoints") == 1
        assert saver.get_tuple(place("stays")) == before
        # Removed values are stored again when they are needed, also by a thread that had them before.
        put(saver, "goes", {"messages": ["a" * 99, "c" * 99, "d" * 99], "note": "m" * 9999})
        assert values_of(saver, "goes") == {"messages": ["a" * 99, "c" * 99, "d" * 99], "note": "m" * 9999}
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


async def test_compacting_removes_leftovers_of_refused_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        put(saver, "fine", {"note": "n" * 99})
        graph = StateGraph(NoteState)
        graph.add_node("note", lambda _state: {"note": "w" * 99})
        graph.add_edge(START, "note")
        refusing = graph.compile(checkpointer=saver)
        with pytest.raises(UnstorableError, match=r"channel '__start__'\['seen'\]: a pathlib"):
            await refusing.ainvoke({"note": "", "seen": path}, {"configurable": {"thread_id": "t"}}, durability="async")
        assert count(path, "pending_writes") > 0
        saver.compact()
        assert count(path, "pending_writes") == 0
        assert rows(path, "SELECT name FROM threads") == [("fine",)]
        put(saver, "t", {"note": "w" * 99})
        assert values_of(saver, "t") == {"note": "w" * 99}


async def test_savers_of_one_writer_see_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as one:
        other = RunSaver(one._writer, path)
        stored = {}
        for number in range(6):
            for saver, thread in ((one, "one"), (other, "other")):
                stored[thread] = {"messages": [f"{thread} {number} " * 20], "note": f"{thread} {number} " * 20}
                put(saver, thread, stored[thread])
        assert {thread: values_of(one, thread) for thread in stored} == stored
        other.delete_thread("one")
        other.compact()
        put(one, "one", stored["one"])
        assert values_of(other, "one") == stored["one"]
        other.close()
        put(one, "two", stored["one"])
        assert values_of(one, "two") == stored["one"]


async def test_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        put(saver, "t", {"a": 1})
        with pytest.raises(StoreError, match=r"x\.db is being written by another"):
            async with RunSaver.open(path):
                pass
        put(saver, "t", {"a": 2})
    async with RunSaver.open(path) as saver:
        assert values_of(saver, "t") == {"a": 2}


async def test_metadata_may_be_infinite_but_not_nan(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    metadata = {"threshold": [math.inf, -math.inf], "said": 'an "Infinity" of NaN \\"NaN', "run_id": "r"}
    async with RunSaver.open(path) as saver:
        for thread in ("t", "u"):
            saver.put(place(thread), checkpoint_of({"a": 1}), metadata, {})  # type: ignore[arg-type]
        stored = saver.get_tuple(place("t"))
        assert stored is not None and stored.metadata == metadata
        saver.prune(["t"])
        saver.delete_for_runs(["r"])
        assert count(path, "checkpoints") == 0
        with pytest.raises(UnstorableError, match="NaN"):
            saver.put(place("t"), checkpoint_of({"a": 1}), {"threshold": math.nan}, {})  # type: ignore[typeddict-unknown-key]


async def test_failed_commit_fails_every_job(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("version", [0, 2, 99])
def test_file_of_another_layout_is_refused_unchanged(dialoom: Command, tmp_path: Path, version: int) -> None:
    dialoom("run", "personalens", "--limit", 1, "--model", "offline/attentive", "-o", "run.db")
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / "run.db").read_bytes()
    for command in ("status", "resume", "report"):
        message = dialoom(command, "run.db", code=2).stderr
        assert f"run.db has run-file layout {version}, but this version of dialoom reads layout 1" in message
        assert message.count("\n") == 1
    assert (tmp_path / "run.db").read_bytes() == before


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Yield a connection to a file with the table of passages."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        schema.create(opened)
        yield opened


def turns(first: int, count: int) -> list[StoredMessage]:
    """Return messages whose texts have consecutive ids."""
    return [("user" if id_ % 2 else "assistant", id_) for id_ in range(first, first + count)]


def size(connection: sqlite3.Connection) -> int:
    """Return the number of characters in all passages."""
    (characters,) = connection.execute("SELECT coalesce(sum(length(messages)), 0) FROM passages").fetchone()
    return int(characters)


def test_stored_lists_are_read_back_unchanged(connection: sqlite3.Connection) -> None:
    draw = random.Random(5)
    passages = Passages()
    lists = [
        turns(1, length)
        for length in (0, 1, MAX_INLINE_MESSAGES, MAX_INLINE_MESSAGES + 1, MAX_INLINE_MESSAGES + 2, 3000)
    ]
    lists += [
        [(draw.choice(("system", "user", "assistant")), draw.randrange(1, texts)) for _ in range(draw.randrange(400))]
        for texts in (2, 3, 20, 1000, 2**40)
        for _ in range(10)
    ]
    lists += [[("tools", 1), *(("assistant", id_, id_ + 1) for id_ in range(2, 90)), ("tool", 3, 4), ("user", 5)]]
    lists += [[("user", 7)] * 1000, [("user", id_ * 16) for id_ in range(1, 900)]]
    stored = [passages.encode(connection, messages) for messages in lists]
    assert [read_messages(text, make_passage_reader(connection)) for text in stored] == lists
    assert stored == [Passages().encode(connection, messages) for messages in lists]


def test_one_more_message_takes_little_more_than_its_own_space(connection: sqlite3.Connection) -> None:
    passages = Passages()
    played = turns(1, 600)
    total = sum(len(passages.encode(connection, played[:length])) for length in range(1, 601)) + size(connection)
    assert total < 600 * 500  # as lists it would be 2.5 million
    assert passages.encode(connection, played).endswith('["assistant",600]]')


def test_passage_is_stored_once_wherever_it_occurs(connection: sqlite3.Connection) -> None:
    passages = Passages()
    middle = turns(1, 596)
    passages.encode(connection, [*turns(1000, 2), *middle, *turns(1002, 1)])
    once = size(connection)
    for number in range(100):
        first = 2000 + 5 * number
        place = number * 6
        passages.encode(connection, [*turns(first, 2), *middle, *turns(first + 3, 1)])
        passages.encode(connection, [*middle[:place], *turns(first, 2), *middle[place:], *turns(first + 3, 1)])
    assert size(connection) - once < 200 * 500
