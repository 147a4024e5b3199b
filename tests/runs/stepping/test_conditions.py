"""Conditions of `until` and `break`: their four forms, and what is none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dialoom.graphs.conversation import said
from dialoom.runs.stepping import Condition, ConditionError
from dialoom.runs.stepping.view import Position

STATE: Mapping[str, Any] = {
    "messages": [said("user", "Is the heron back?", 0), said("assistant", "It is by the weir.", 1)],
    "turns": 3,
    "said": {"": "Hi", "items": []},
    "result": "",
}


def at(*nodes: str, roles: str = "", state: Mapping[str, Any] = STATE, **counts: int) -> Position:
    """Somewhere in a conversation."""
    return Position(nodes, frozenset(roles.split()), counts, state)


def condition(text: str, *channels: str) -> Condition:
    """As a graph of three nodes and a recipe with two roles and two counters would read it."""
    return Condition.parse(text, ["user", "assistant", "judge/tone"], ["judge", "user"], ["turn", "round"], channels)


def test_a_node_is_met_where_it_comes_next() -> None:
    """A name of both a node and a role is the node's."""
    assert condition("judge/tone").is_met(at("assistant", "judge/tone"))
    assert not condition("judge/tone").is_met(at("assistant", roles="judge"))
    assert not condition("user").is_met(at("assistant", roles="user"))
    assert condition("user").is_met(at("user"))


def test_a_role_is_met_where_it_is_asked_next() -> None:
    """Whatever the node is called."""
    assert condition("judge").is_met(at("judge/tone", roles="judge assistant"))
    assert not condition("judge").is_met(at("judge/tone"))


def test_a_counter_is_met_from_its_number_on() -> None:
    """One that has not begun to count is at nothing."""
    assert [condition("turn 3").is_met(at(turn=number)) for number in (2, 3, 4)] == [False, True, True]
    assert not condition("round 1").is_met(at(turn=3))


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("turns > 2", True),
        ("turns == 4 or messages|length == 2", True),
        ("messages[-1].role == 'user'", False),
        ("'heron' in messages[0].content", True),
        ("said[''] == 'Hi' and 'p' not in said", True),
        ("said.items", False),
        ("said.p is defined", False),
        ("result", False),
        ("messages[2].role == 'user'", False),
        ("messages[2]", False),
        ("turns if result", False),
    ],
)
def test_an_expression_is_met_where_it_is_true(text: str, met: bool) -> None:
    """It sees the state as plain values; what it says of an item that is not there yet does not hold."""
    assert condition(text).is_met(at(state=STATE)) is met


def test_a_condition_is_written_as_it_was_given() -> None:
    """Without the space around it."""
    assert [str(condition(text)) for text in ("user", " turn 3 ", "turns > 2")] == ["user", "turn 3", "turns > 2"]
    assert condition("turns > 2") == condition("turns > 2 ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trns", "'trns' is undefined; the state has messages, turns, said, result"),
        ("trns > 3", "'trns' is undefined"),
        ("messages[0].contnt == ''", "there is no 'contnt'; there is role, content, id"),
        ("turns.more > 1", "there is no 'more'; 3"),
        ("turns > 'three'", "'>' not supported"),
        ("turns / 0", "division by zero"),
        ("messages.__class__", "unsafe"),
        ("range(3)", "'range' is undefined"),
    ],
)
def test_what_cannot_be_told_of_a_state_is_an_error(text: str, words: str) -> None:
    """At the first look: the name, and what the state has."""
    with pytest.raises(ConditionError) as caught:
        condition(text).is_met(at(state=STATE))
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "turn x", "trun 3", "turns = 3", "3", "'user'", "}} {{", "turns | nosuch", "(turns"]
)
def test_what_is_no_condition_is_refused_with_the_four_forms(text: str) -> None:
    """What was given, and what would be right."""
    with pytest.raises(ConditionError) as caught:
        condition(text)
    assert f"{text!r} is no condition" in str(caught.value)
    assert "a node (user, assistant, judge/tone), a role (judge, user)" in str(caught.value)
    assert "(turn N, round N), or an expression over the state" in str(caught.value)


def test_channels_that_are_known_tell_a_typo_from_what_comes_later() -> None:
    """One is refused at once; of the other nothing holds as long as it has no value."""
    with pytest.raises(ConditionError, match="there is no 'trns'; the state has turns, ended_by"):
        condition("trns > 3", "turns", "ended_by")
    later = condition("ended_by == 'limit'", "turns", "ended_by")
    assert not later.is_met(at(state={"turns": 3}))
    assert later.is_met(at(state={"turns": 3, "ended_by": "limit"}))
    assert condition("ended_by is not defined", "ended_by").is_met(at(state={}))
