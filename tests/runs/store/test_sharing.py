"""Values are stored once, however often and wherever they are used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from dialoom.runs.store.checkpoints import RunSaver
from tests.runs.store.savers import count, place, put, values_of


def said(number: int, by: str = "a") -> HumanMessage:
    """A message of some 700 bytes that no other is equal to."""
    return HumanMessage(f"{by} {number} " + "word " * 140, id=f"{by}{number}")


def talk(saver: RunSaver, thread: str, length: int, profile: str, parent: str | None = None) -> list[str]:
    """A conversation, a checkpoint after each message; returns the checkpoints' ids."""
    messages: list[AnyMessage] = []
    ids = []
    for number in range(length):
        messages = [*messages, said(number, thread)]
        parent = put(saver, thread, {"profile": profile, "messages": messages}, parent, number)
        ids.append(parent)
    return ids


async def size_of(path: Path, length: int) -> int:
    """The closed file's size with five conversations of that length."""
    async with RunSaver.open(path) as saver:
        for number in range(5):
            talk(saver, f"t{number}", length, f"{number}" * 8000)
    assert [file.name for file in path.parent.glob(path.name + "*")] == [path.name]
    return path.stat().st_size


async def test_storage_grows_with_the_length_of_a_conversation(tmp_path: Path) -> None:
    """Not with its square: 40 rounds take at most 4.4 times the bytes of 10, and at most 2.5 times their text."""
    short = await size_of(tmp_path / "short.db", 20)
    long = await size_of(tmp_path / "long.db", 80)
    assert long <= 4.4 * short
    assert long <= 2.5 * 5 * (8000 + 80 * 700)


async def test_a_fork_shares_everything_before_it(tmp_path: Path) -> None:
    """Also in a saver that was opened anew and remembers nothing."""
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        ids = talk(saver, "t", 10, "p" * 8000)
    async with RunSaver.open(path) as saver:
        before = values_of(saver, "t", ids[4])
        put(saver, "t", before | {"messages": [*before["messages"], said(99)]}, ids[4])
        assert [message.id for message in values_of(saver, "t")["messages"]] == ["t0", "t1", "t2", "t3", "t4", "a99"]
        assert len(values_of(saver, "t", ids[-1])["messages"]) == 10
    assert count(path, "checkpoint_values") == 1 + 10 + 1
    assert count(path, "checkpoint_lists") == 11


async def test_siblings_with_equal_versions_do_not_collide(tmp_path: Path) -> None:
    """Two branches count their versions alike, and hold different values."""
    async with RunSaver.open(tmp_path / "x.db") as saver:
        root = put(saver, "t", {"messages": [said(0)], "note": "n" * 99}, version=1)
        one = put(saver, "t", {"messages": [said(0), said(1, "one")], "note": "1" * 99}, root, version=2)
        two = put(saver, "t", {"messages": [said(0), said(1, "two")], "note": "2" * 99}, root, version=2)
        for id_, name, note in ((one, "one1", "1" * 99), (two, "two1", "2" * 99), (root, "a0", "n" * 99)):
            values = values_of(saver, "t", id_)
            assert (values["messages"][-1].id, values["note"]) == (name, note)


async def test_threads_share_equal_values(tmp_path: Path) -> None:
    """A profile and equal messages of two threads are one row each; a write's message is the list's."""
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        for thread in ("one", "two"):
            id_ = put(saver, thread, {"profile": "p" * 8000})
            saver.put_writes(place(thread, id_), [("messages", [said(0)])], "task")
            put(saver, thread, {"profile": "p" * 8000, "messages": [said(0), said(1)]}, id_)
    assert count(path, "checkpoint_values") == 3
    assert count(path, "checkpoint_lists") == 1


async def test_an_unchanged_value_costs_nothing_and_a_changed_one_is_seen(tmp_path: Path) -> None:
    """Even if the object is the same and was changed in place."""
    path = tmp_path / "x.db"
    message: Any = said(0)
    profile = {"facts": ["x" * 100]}
    state = {"profile": profile, "messages": [message, said(1)]}
    async with RunSaver.open(path) as saver:
        first = put(saver, "t", state)
        put(saver, "t", state, first)
        assert count(path, "checkpoint_values") == 3
        message.content = "changed " * 20
        profile["facts"].append("more")
        put(saver, "t", state, first)
        assert count(path, "checkpoint_values") == 5
        now, then = values_of(saver, "t"), values_of(saver, "t", first)
        assert now["messages"][0].content == "changed " * 20 and now["profile"] == profile
        assert then["messages"][0] == said(0) and then["profile"] == {"facts": ["x" * 100]}


async def test_a_list_may_shrink_and_grow_again(tmp_path: Path) -> None:
    """As messages are removed, cut off, inserted."""
    async with RunSaver.open(tmp_path / "x.db") as saver:
        every = [said(number) for number in range(6)]
        for messages in (every, every[:3], every[:4], every[1:], [], every[:1], [*every, "end"], every[:4], ["", 1]):
            put(saver, "t", {"messages": messages})
            assert values_of(saver, "t")["messages"] == messages


async def test_a_channel_whose_version_stands_is_not_looked_at_again(tmp_path: Path) -> None:
    """Whatever was done to its value without writing it; as soon as the channel is written, it is seen."""
    profile = {"facts": ["x" * 100]}
    async with RunSaver.open(tmp_path / "x.db") as saver:
        first = put(saver, "t", {"profile": profile}, version=1)
        profile["facts"].append("unwritten")
        second = put(saver, "t", {"profile": profile}, first, version=1)
        assert values_of(saver, "t") == {"profile": {"facts": ["x" * 100]}}
        put(saver, "t", {"profile": profile}, second, version=2)
        assert values_of(saver, "t") == {"profile": {"facts": ["x" * 100, "unwritten"]}}


async def test_conversations_that_begin_differently_share_their_long_middle(tmp_path: Path) -> None:
    """Whatever stands before it and after it; also with what they were begun with. Compaction leaves it whole."""
    path = tmp_path / "x.db"
    middle = [HumanMessage(f"turn {number} " * 9, id=f"t{number}") for number in range(300)]
    stated = {f"t{number}": [said(number, "first"), *middle, said(number, "last")] for number in range(12)}
    async with RunSaver.open(path) as saver:
        for thread, messages in stated.items():
            begun = put(saver, thread, {"__start__": {"messages": messages, "note": None}})
            put(saver, thread, {"messages": messages}, begun, 1)
        once = size_of_lists(path)
        assert once < 300 * 10 + 12 * 600  # 12 lists of 300 ids would be 14,000 letters and more
        saver.delete_thread("t7")
        saver.compact()
        assert size_of_lists(path) < once
    async with RunSaver.open(path) as saver:
        for thread, messages in stated.items():
            if thread != "t7":
                assert values_of(saver, thread) == {"messages": messages}
                history = [each.checkpoint["channel_values"] for each in saver.list(place(thread))]
                assert history[-1] == {"__start__": {"messages": messages, "note": None}}


def size_of_lists(path: Path) -> int:
    """Letters in the table of lists."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT sum(length(elements)) FROM checkpoint_lists").fetchone()[0])
