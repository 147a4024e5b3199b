"""What checkpoints can hold, and what they refuse."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command, Interrupt, Overwrite, Send

from dialoom.runs.store.checkpoints import RecordedError, RunSaver, UnstorableError
from dialoom.runs.store.checkpoints.values import pack, text_of, value_of
from tests.runs.store.savers import count, place, put

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
    """Equal in value and type, all the way down; and in the order of dicts."""
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
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    """Of equal type at every depth; the text is JSON that any tool reads."""
    text = text_of(pack(value))
    assert same(value_of(text), value)
    json.loads(text.encode(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@given(PLAIN, PLAIN)
def test_different_values_have_different_bytes(one: Any, other: Any) -> None:
    """So that equal hashes mean equal values."""
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
def test_messages_and_langgraphs_own_types_come_back(value: Any) -> None:
    """With every field."""
    back = value_of(text_of(pack([value])))[0]
    assert type(back) is type(value)
    assert back == value
    if hasattr(value, "__pydantic_extra__"):
        assert back.__dict__ == value.__dict__


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


class Text(str):
    """A str that is more."""


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
async def test_anything_else_is_refused_with_its_place_and_type(value: Any, tmp_path: Path) -> None:
    """At put and at put_writes, alone or deep inside, and nothing is stored."""
    async with RunSaver.open(tmp_path / "x.db") as saver:
        for wrapped, at in (
            (value, ""),
            ([value], "[0]"),
            ({"b": 0, "a": (1, [value])}, "['a'][1][0]"),
            ([HumanMessage("x", additional_kwargs={"k": value})], "[0]"),
        ):
            with pytest.raises(UnstorableError) as refused:
                put(saver, "t", {"fine": "a" * 100, "facts": wrapped})
            told = rf"channel 'facts'{re.escape(at)}: a (dict with the key 1|.*cannot be kept)"
            assert re.match(told, str(refused.value))
            with pytest.raises(TypeError, match="channel 'facts'"):
                saver.put_writes(place("t", "1"), [("fine", "b" * 100), ("facts", wrapped)], "task")
        for table in ("checkpoints", "checkpoint_values", "checkpoint_lists", "pending_writes"):
            assert count(tmp_path / "x.db", table) == 0


def test_messages_come_back_without_their_fields_being_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pydantic would look at the signature of each default's factory, which takes thirty times as long as the rest."""
    said = [AIMessage("So it is.", id="1-assistant", name="assistant"), AIMessage("Well.", tool_calls=[], extra="x")]
    text = text_of(pack(said))
    monkeypatch.setattr("pydantic._internal._fields.takes_validated_data_argument", None)
    one, other = value_of(text)
    monkeypatch.undo()
    assert [one, other] == said and other.model_extra == {"extra": "x"}
    assert one.model_fields_set == {"content", "id", "name"}
    one.tool_calls.append("anything")
    assert other.tool_calls == [], "each has a list of its own"


def test_an_endless_value_is_refused() -> None:
    """Instead of a recursion error from the depths."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnstorableError, match="too deeply"):
        pack(endless)


async def test_the_error_of_a_node_is_kept_as_what_it_said(tmp_path: Path) -> None:
    """LangGraph writes the exception itself."""
    async with RunSaver.open(tmp_path / "x.db") as saver:
        id_ = put(saver, "t", {})
        saver.put_writes(place("t", id_), [("__error__", KeyError("no such persona"))], "task")
        found = saver.get_tuple(place("t"))
        assert found is not None and found.pending_writes
        ((_, channel, error),) = found.pending_writes
        assert (channel, repr(error), str(error)) == ("__error__", "KeyError('no such persona')", "'no such persona'")
        assert isinstance(error, RecordedError)
