"""What differs between two states, and how it is said on one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from rich.cells import cell_len

from dialoom.graphs.conversation import said as message
from dialoom.runs.stepping.stop import ABSENT, Change, change_text, changes
from dialoom.runs.stepping.values import look

values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text("ab\n\x1b喝", max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["p", "r", ""]), inner),
    max_leaves=10,
)
states = st.dictionaries(st.sampled_from(["turns", "open", "said"]), values)
HELLO, REPLY = message("user", "Hello", 0), message("assistant", "Good\nmorning", 1)


def paths(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Where the two differ."""
    return [change.path for change in changes(before, after)]


def test_each_new_item_of_a_list_that_grew_is_a_change() -> None:
    """Also where the list was not there before."""
    assert changes({}, {"messages": [HELLO], "turns": 0}) == [
        Change("messages[0]", ABSENT, HELLO),
        Change("turns", ABSENT, 0),
    ]
    more = [HELLO, REPLY, message("user", "Bye", 2)]
    assert paths({"messages": [HELLO]}, {"messages": more}) == ["messages[1]", "messages[2]"]
    assert changes({}, {"judgements": []}) == [Change("judgements", ABSENT, [])]


def test_a_changed_message_is_a_change_of_its_content() -> None:
    """Or of its name; one with another id is another message."""
    edited = message("user", "Hullo", 0)
    assert changes({"messages": [HELLO, REPLY]}, {"messages": [edited, REPLY]}) == [
        Change("messages[0].content", "Hello", "Hullo")
    ]
    named = HELLO.model_copy(update={"name": "guest"})
    assert paths({"messages": [HELLO]}, {"messages": [named]}) == ["messages[0].name"]
    other = AIMessage(content="Hello", id="other", name="user")
    assert changes({"messages": [HELLO]}, {"messages": [other]}) == [Change("messages[0]", HELLO, other)]


def test_an_edit_in_a_long_list_is_the_only_change() -> None:
    """Also where something was taken out or put in on the way."""
    long = [f"line {number}" for number in range(200)]
    assert changes({"open": long}, {"open": [*long[:70], "x", *long[71:]]}) == [Change("open[70]", "line 70", "x")]
    assert changes({"open": long}, {"open": long[:70] + long[71:]}) == [Change("open[70]", "line 70", ABSENT)]
    assert changes({"open": long}, {"open": [*long[:70], "x", *long[70:]]}) == [Change("open[70]", ABSENT, "x")]


def test_what_is_nested_is_named_by_its_path() -> None:
    """Names in the order of the earlier state, new ones last; names that are no plain words in quotes."""
    before = {"induced": {"p": {"profile": None, "mood": "calm"}}, "said": {"": "Hi"}, "turns": 1}
    after = {"turns": 1, "induced": {"p": {"profile": "keeps bees"}}, "said": {"p r": "Ho"}, "open": {}}
    assert changes(before, after) == [
        Change("induced.p.profile", None, "keeps bees"),
        Change("induced.p.mood", "calm", ABSENT),
        Change('said[""]', "Hi", ABSENT),
        Change('said["p r"]', ABSENT, "Ho"),
        Change("open", ABSENT, {}),
    ]


@given(states, states)
def test_there_are_changes_exactly_where_two_states_differ(before: dict[str, Any], after: dict[str, Any]) -> None:
    """None if they are equal; each says what really stood and stands at its place."""
    found = changes(before, after)
    assert bool(found) == (before != after)
    for change in found:
        assert change.before != change.after
        if change.after is ABSENT:
            assert look(before, change.path) == change.before
        else:
            assert look(after, change.path) == change.after


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Change("turns", 1, 2), "turns: 1 -> 2"),
        (Change("ended_by", "", "turn_limit"), 'ended_by: "" -> "turn_limit"'),
        (Change("messages[1]", ABSENT, REPLY), "+ messages[1] assistant: Good morning"),
        (Change("messages[1]", HELLO, REPLY), "messages[1]: user: Hello -> assistant: Good morning"),
        (Change("open[1]", "p", ABSENT), '- open[1] "p"'),
        (Change("said", ABSENT, {"p": "one\n two"}), '+ said {"p": "one two"}'),
        (Change("said.p", "a\x1b[2Jb", None), 'said.p: "a [2Jb" -> null'),
    ],
)
def test_a_change_is_said_on_one_line(change: Change, line: str) -> None:
    """Signs for what came and went, both values for what changed."""
    assert change_text(change) == line
    assert change_text(change, None) == line


def test_a_line_that_is_too_long_is_cut() -> None:
    """What is short is shown whole; of two long texts the part where they differ is shown."""
    long = "The heron stands by the weir and waits for the fish to come up. " * 3
    new = Change("messages[0]", ABSENT, message("user", long, 0))
    assert change_text(new, 40) == "+ messages[0] user: The heron stands ..."
    assert change_text(Change("note", None, long), 40) == 'note: null -> "The heron stands by th...'
    line = change_text(Change("note", f"{long}It goes.", f"{long}It stays."), 60)
    assert line == 'note: ...come up. It goes." -> ...come up. It stays."'
    assert change_text(Change("note", long, ABSENT), None) == f'- note "{long.strip()}"'


@given(states, states, st.integers(1, 40))
def test_no_line_is_wider_than_it_may_be(before: dict[str, Any], after: dict[str, Any], width: int) -> None:
    """In the columns of a terminal, where some letters take two; nor does it have control characters."""
    for change in changes(before, after):
        line = change_text(change, width)
        assert cell_len(line) <= width
        assert line.isprintable()
