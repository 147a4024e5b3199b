"""Values that checkpoints can hold, and their deduplication."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
import sqlite3
from collections import OrderedDict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command, Interrupt, Overwrite, Send

from dialoom.runs.store.checkpoints import RecordedError, RunSaver, UnstorableError
from dialoom.runs.store.checkpoints.values import decode_value, encode_value, pack
from tests.runs.store.savers import count, place, put, values_of

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))  # lone surrogates, too
    | st.binary(),
    lambda parts: (
        st.lists(parts)
        | st.lists(parts).map(tuple)
        | st.dictionaries(st.text() | st.sampled_from(["$dict", "$tuple", "$x"]), parts)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, also in type and in the order of dicts, at every level."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(part, other[key]) for key, part in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(PLAIN)
def test_plain_values_are_restored_unchanged(value: Any) -> None:
    text = encode_value(pack(value))
    assert same(decode_value(text), value)
    json.loads(text.encode(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@given(PLAIN, PLAIN)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    assert (pack(one) == pack(other)) == same(one, other)


@pytest.mark.parametrize(
    "value",
    [
        HumanMessage("Grüße 👋", id="1", name="Ann"),
        HumanMessage([{"type": "text", "text": "hi"}], additional_kwargs={"a": (1, 2), "$b": b"x"}),
        AIMessage(
            "", tool_calls=[{"name": "find", "args": {"q": "tea"}, "id": "c1"}], response_metadata={"n": math.inf}
        ),
        AIMessage("x", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, extra_field=None),
        AIMessageChunk(content="part"),
        ToolMessage("4", tool_call_id="c1", artifact={"raw": [1, 2]}, status="error"),
        RemoveMessage("1"),
        Send("node", {"messages": [HumanMessage("x")]}),
        Interrupt({"question": "why?"}, id="abc"),
        Command(goto=[Send("a", 1)], update={"x": 1}, resume="yes"),
        Overwrite([1, (2, 3)]),
        {"b", "a", (1, 2)},
    ],
)
def test_messages_and_langgraph_types_are_restored(value: Any) -> None:
    back = decode_value(encode_value(pack([value])))[0]
    assert type(back) is type(value)
    assert back == value
    if hasattr(value, "__pydantic_extra__"):
        assert back.__dict__ == value.__dict__


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


class Text(str):
    """A subclass of str."""


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int


@pytest.mark.parametrize(
    "value",
    [
        frozenset({1, 2}),
        Colour.RED,
        Text("x"),
        Point(1),
        OrderedDict(a=1),
        datetime.datetime(2026, 1, 1),
        bytearray(b"x"),
        {1: "a"},
        ValueError("x"),
        object(),
        Path("x"),
        1j,
        lambda: None,
    ],
)
async def test_other_types_are_refused_with_their_place(value: Any, tmp_path: Path) -> None:
    async with RunSaver.open(tmp_path / "x.db") as saver:
        for wrapped, at in (
            (value, ""),
            ([value], "[0]"),
            ({"b": 0, "a": (1, [value])}, "['a'][1][0]"),
            ([HumanMessage("x", additional_kwargs={"k": value})], "[0]"),
        ):
            with pytest.raises(UnstorableError) as refused:
                put(saver, "t", {"fine": "a" * 100, "facts": wrapped})
            message = rf"channel 'facts'{re.escape(at)}: a (dict with the key 1|.*cannot be stored)"
            assert re.match(message, str(refused.value))
            with pytest.raises(TypeError, match="channel 'facts'"):
                saver.put_writes(place("t", "1"), [("fine", "b" * 100), ("facts", wrapped)], "task")
        for table in ("checkpoints", "checkpoint_values", "checkpoint_lists", "pending_writes"):
            assert count(tmp_path / "x.db", table) == 0


def test_messages_are_restored_without_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [AIMessage("So it is.", id="1-assistant", name="assistant"), AIMessage("Well.", tool_calls=[], extra="x")]
    text = encode_value(pack(said))
    monkeypatch.setattr("pydantic._internal._fields.takes_validated_data_argument", None)
    one, other = decode_value(text)
    monkeypatch.undo()
    assert [one, other] == said and other.model_extra == {"extra": "x"}
    assert one.model_fields_set == {"content", "id", "name"}
    one.tool_calls.append("anything")
    assert other.tool_calls == [], "the messages share no list"


def test_cyclic_value_is_refused() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(UnstorableError, match="too deeply"):
        pack(cyclic)


async def test_error_of_a_node_is_kept_as_its_message(tmp_path: Path) -> None:
    async with RunSaver.open(tmp_path / "x.db") as saver:
        id_ = put(saver, "t", {})
        saver.put_writes(place("t", id_), [("__error__", KeyError("no such persona"))], "task")
        found = saver.get_tuple(place("t"))
        assert found is not None and found.pending_writes
        ((_, channel, error),) = found.pending_writes
        assert (channel, repr(error), str(error)) == ("__error__", "KeyError('no such persona')", "'no such persona'")
        assert isinstance(error, RecordedError)


def said(number: int, by: str = "a") -> HumanMessage:
    """Return a unique message of about 700 bytes."""
    return HumanMessage(f"{by} {number} " + "word " * 140, id=f"{by}{number}")


def talk(saver: RunSaver, thread: str, length: int, profile: str, parent: str | None = None) -> list[str]:
    """Store a conversation with a checkpoint after each message; return the checkpoints' ids."""
    messages: list[AnyMessage] = []
    ids = []
    for number in range(length):
        messages = [*messages, said(number, thread)]
        parent = put(saver, thread, {"profile": profile, "messages": messages}, parent, number)
        ids.append(parent)
    return ids


async def size_of(path: Path, length: int) -> int:
    """Return the size of the closed file with five conversations of that length."""
    async with RunSaver.open(path) as saver:
        for number in range(5):
            talk(saver, f"t{number}", length, f"{number}" * 8000)
    assert [file.name for file in path.parent.glob(path.name + "*")] == [path.name]
    return path.stat().st_size


async def test_storage_grows_linearly_with_a_conversation(tmp_path: Path) -> None:
    """80 messages take at most 4.4 times the bytes of 20, and at most 2.5 times their text."""
    short = await size_of(tmp_path / "short.db", 20)
    long = await size_of(tmp_path / "long.db", 80)
    assert long <= 4.4 * short
    assert long <= 2.5 * 5 * (8000 + 80 * 700)


async def test_fork_shares_everything_before_it(tmp_path: Path) -> None:
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
    async with RunSaver.open(tmp_path / "x.db") as saver:
        root = put(saver, "t", {"messages": [said(0)], "note": "n" * 99}, version=1)
        one = put(saver, "t", {"messages": [said(0), said(1, "one")], "note": "1" * 99}, root, version=2)
        two = put(saver, "t", {"messages": [said(0), said(1, "two")], "note": "2" * 99}, root, version=2)
        for id_, name, note in ((one, "one1", "1" * 99), (two, "two1", "2" * 99), (root, "a0", "n" * 99)):
            values = values_of(saver, "t", id_)
            assert (values["messages"][-1].id, values["note"]) == (name, note)


async def test_threads_share_equal_values(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with RunSaver.open(path) as saver:
        for thread in ("one", "two"):
            id_ = put(saver, thread, {"profile": "p" * 8000})
            saver.put_writes(place(thread, id_), [("messages", [said(0)])], "task")
            put(saver, thread, {"profile": "p" * 8000, "messages": [said(0), said(1)]}, id_)
    assert count(path, "checkpoint_values") == 3
    assert count(path, "checkpoint_lists") == 1


async def test_unchanged_value_is_not_stored_again_but_a_changed_one_is(tmp_path: Path) -> None:
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


async def test_message_that_is_changed_in_place_is_stored_again(tmp_path: Path) -> None:
    message = AIMessage("", id="a", tool_calls=[{"name": "look_up", "args": {"order": "A1"}, "id": "1"}])
    async with RunSaver.open(tmp_path / "x.db") as saver:
        put(saver, "t", {"messages": [message]})
        message.tool_calls[0]["args"]["order"] = "B2"
        put(saver, "t", {"messages": [message]})
        (stored,) = values_of(saver, "t")["messages"]
        assert stored.tool_calls[0]["args"] == {"order": "B2"}
        message.additional_kwargs["seen"] = True
        put(saver, "t", {"messages": [message]})
        assert values_of(saver, "t")["messages"] == [message]


async def test_channel_of_an_unchanged_version_is_not_read_again(tmp_path: Path) -> None:
    profile = {"facts": ["x" * 100]}
    async with RunSaver.open(tmp_path / "x.db") as saver:
        first = put(saver, "t", {"profile": profile}, version=1)
        profile["facts"].append("unwritten")
        second = put(saver, "t", {"profile": profile}, first, version=1)
        assert values_of(saver, "t") == {"profile": {"facts": ["x" * 100]}}
        put(saver, "t", {"profile": profile}, second, version=2)
        assert values_of(saver, "t") == {"profile": {"facts": ["x" * 100, "unwritten"]}}


async def test_graphs_input_shares_its_lists_with_the_channels(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    middle = [HumanMessage(f"turn {number} " * 9, id=f"t{number}") for number in range(300)]
    stated = {f"t{number}": [said(number, "first"), *middle, said(number, "last")] for number in range(12)}
    async with RunSaver.open(path) as saver:
        for thread, messages in stated.items():
            begun = put(saver, thread, {"__start__": {"messages": messages, "note": None}})
            put(saver, thread, {"messages": messages}, begun, 1)
        once = size_of_lists(path)
        assert once < 12 * 302 * 4  # each list once; its values' ids have three digits
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
    """Return the number of characters in the table of lists."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT sum(length(elements)) FROM checkpoint_lists").fetchone()[0])
