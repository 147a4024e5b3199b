"""Paths into a state, differences of states, and conditions of `until` and `break`."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from rich.cells import cell_len

from dialoom.graphs.conversation import said
from dialoom.graphs.conversation import said as message
from dialoom.runs.stepping import Condition, ConditionError, PathError
from dialoom.runs.stepping.stop import ABSENT, Change, compute_changes, format_change
from dialoom.runs.stepping.values import extend_path, get_value, parse_value, replace_value, split_path, to_plain
from dialoom.runs.stepping.view import Position

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
states = st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4)


def a_state() -> dict[str, Any]:
    """Return a conversation of two lines with other values that a recipe may keep."""
    return {
        "messages": [said("user", "Is the heron back?", 0), said("assistant", "It is by the weir.", 1)],
        "turns": 1,
        "ended_by": "",
        "open": ["p", "r"],
        "said": {"": "Good morning.", "p r": "Thanks."},
        "induced": {"p": {"profile": None, "personality": "patient"}},
        "rounds": [{"user": "Hello", "scores": [1, 2.5]}],
        "judgements": [],
    }


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("turns", 1),
        (" turns ", 1),
        ("messages[-1].content", "It is by the weir."),
        ("messages[0].role", "user"),
        ("messages[0].name", "user"),
        ("messages[1].id", "1-assistant"),
        ("messages[0]", {"role": "user", "content": "Is the heron back?", "id": "0-user"}),
        ("rounds[0].scores[-1]", 2.5),
        ("""said[""]""", "Good morning."),
        ("""said["p r"]""", "Thanks."),
        ("said['p r']", "Thanks."),
        ("said.p r", "Thanks."),
        ("""["induced"].p["profile"]""", None),
        ("judgements", []),
    ],
)
def test_path_reads_the_value_at_its_place(path: str, there: Any) -> None:
    assert get_value(a_state(), path) == there


def test_empty_path_is_the_whole_state() -> None:
    state = {**a_state(), "notes": (SystemMessage(content="Be brief.", id="s"),)}
    whole = get_value(state, "")
    assert json.loads(json.dumps(whole)) == whole
    assert whole["notes"] == [{"role": "system", "content": "Be brief.", "id": "s"}]
    assert to_plain({1: object}) == {"1": str(object)}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("turn", "turn: the state has no 'turn'; there is messages, turns, ended_by"),
        ("messages[2].content", r"messages has no [2]; it is a list of length 2, [0] to [1]"),
        ("messages[-3]", "messages has no [-3]"),
        ("messages.content", "messages has no 'content'; it is a list of length 2"),
        ("messages[0].contents", "messages[0] has no 'contents'; there is role, content, id"),
        ("judgements[0]", "judgements has no [0]; it is a list of length 0"),
        ("induced.r.profile", "induced has no 'r'; there is p"),
        ("said.p", """said has no 'p'; there is [""], ["p r"]"""),
        ("turns.x", "turns has no 'x'; it is a number: 1"),
        ("messages[x]", "is invalid from '[x]' on"),
        (".turns", "is invalid from '.turns' on"),
        ("messages[0]content", "is invalid from 'content' on"),
        ("turns..x", "is invalid from '..x' on"),
        ("""said["p r]""", "is invalid from"),
    ],
)
def test_invalid_path_is_refused_with_the_place(path: str, words: str) -> None:
    with pytest.raises(PathError) as caught:
        get_value(a_state(), path)
    assert words in str(caught.value)
    assert path in str(caught.value)
    with pytest.raises(PathError):
        replace_value(a_state(), path + ".more", 1)


@given(states)
def test_every_place_has_a_path(state: dict[str, Any]) -> None:
    def check(value: Any, path: str) -> None:
        assert get_value(state, path) == value
        assert split_path(f"{path} [its value]") == (path, "[its value]")
        if isinstance(value, dict):
            for name, inner in value.items():
                check(inner, extend_path(path, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                check(inner, extend_path(path, index))

    check(state, "")


@pytest.mark.parametrize(
    ("path", "value", "channel"),
    [
        ("turns", 4, 4),
        ("ended_by", "turn_limit", "turn_limit"),
        ("open[-1]", "rp", ["p", "rp"]),
        ("open[2]", "rr", ["p", "r", "rr"]),
        ("open", [], []),
        ("judgements[0]", {"metric": "tone"}, [{"metric": "tone"}]),
        ("induced.p.profile", "keeps bees", {"p": {"profile": "keeps bees", "personality": "patient"}}),
        ("induced.p.personality", None, {"p": {"profile": None, "personality": None}}),
        ('said["p r"]', "Bye.", {"": "Good morning.", "p r": "Bye."}),
        ("rounds[0].scores[0]", 3.5, [{"user": "Hello", "scores": [3.5, 2.5]}]),
        ("rounds[0].scores[2]", 9, [{"user": "Hello", "scores": [1, 2.5, 9]}]),
    ],
)
def test_one_place_is_replaced(path: str, value: Any, channel: Any) -> None:
    state = a_state()
    before = copy.deepcopy(state)
    name, new = replace_value(state, path, value)
    assert (name, new) == (path.split("[")[0].split(".")[0], channel)
    assert state == before


def test_new_channel_shares_nothing_with_the_old() -> None:
    state, given_ = a_state(), {"user": "Hi", "scores": []}
    _, rounds = replace_value(state, "rounds[1]", given_)
    rounds[0]["scores"].append(0)
    rounds[1]["scores"].append(0)
    assert (state, given_) == (a_state(), {"user": "Hi", "scores": []})


def test_content_and_name_of_a_message_can_be_replaced() -> None:
    state = a_state()
    state["messages"][1] = AIMessage(content="No.", id="own", name="assistant", response_metadata={"from": "afar"})
    _, messages = replace_value(state, "messages[-1].content", "Yes.")
    assert messages == [
        state["messages"][0],
        AIMessage(content="Yes.", id="own", name="assistant", response_metadata={"from": "afar"}),
    ]
    _, messages = replace_value(state, "messages[0].name", "keeper")
    assert messages[0] == HumanMessage(content="Is the heron back?", id="0-user", name="keeper")
    assert replace_value(state, "messages[0].role", "keeper")[1] == messages


def test_whole_message_is_given_by_role_and_content() -> None:
    state = a_state()
    state["messages"][0] = said("user", "Hello?", 7)
    _, same = replace_value(state, "messages[0]", {"role": "user", "content": "Hi."})
    _, other = replace_value(state, "messages[0]", {"role": "assistant", "content": "Hi."})
    _, more = replace_value(state, "messages[2]", {"role": "user", "content": "Bye."})
    assert same[0] == said("user", "Hi.", 7)
    assert other[0] == said("assistant", "Hi.", 0)
    assert more == [*state["messages"], said("user", "Bye.", 2)]
    assert replace_value(state, "messages[2]", said("user", "Bye.", 2))[1] == more
    assert replace_value({"messages": []}, "messages[0]", {"role": "user", "content": "Hi."})[1] == [
        said("user", "Hi.", 0)
    ]
    assert replace_value({"last": said("user", "Hi.", 3)}, "last", {"role": "user", "content": "Ho."}) == (
        "last",
        said("user", "Ho.", 3),
    )


def test_conversation_is_replaced_by_its_plain_form() -> None:
    state = a_state()
    shown = get_value(state, "messages")
    assert replace_value(state, "messages", shown) == ("messages", state["messages"])
    shown[1]["content"] = "It is not."
    assert replace_value(state, "messages", shown)[1][1] == said("assistant", "It is not.", 1)
    assert replace_value(state, "messages", shown[:1])[1] == state["messages"][:1]


def test_blocks_of_a_message_can_be_replaced() -> None:
    parts = AIMessage(content=[{"type": "text", "text": "One."}], id="0-assistant", name="assistant")
    _, messages = replace_value({"messages": [parts]}, "messages[0].content[0].text", "Two.")
    assert messages[0].content == [{"type": "text", "text": "Two."}]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("ended_by", {"why": "late"}, """ended_by is a string: ""; {"why": "late"} is a mapping"""),
        ("ended_by", 4, """4 is a number; to give it as a string, put it in quotes: "4\""""),
        ("turns", "four", """turns is a number: 1; "four" is a string"""),
        ("turns", True, "true is true or false"),
        ("turns", None, "turns is a number: 1; null is null"),
        ("open[0]", 3, """open is a list with items of this kind: "p"; for open[0], 3 is a number"""),
        ("open[2]", ["p"], 'for open[2], ["p"] is a list'),
        ("open[3]", "p", "open has no [3]; it is a list of length 2, [0] to [1]"),
        ("induced.p", "patient", "induced.p is a mapping"),
        ("induced.q", {}, "induced has no 'q'; there is p"),
        ("messages[0]", "Hello", """messages[0] is a message, so "Hello" cannot replace it; give {"role": "user","""),
        ("messages[0]", {"role": "user", "text": "Hello"}, "messages[0] is a message"),
        ("messages[0]", {"role": "", "content": "Hello"}, "messages[0] is a message"),
        ("messages[2]", {"role": "user", "content": ["Hello"]}, "messages[2] is a message"),
        ("messages[0].content", None, "messages[0].content is a string"),
        ("messages[0].id", "7-user", "only a message's content"),
        ("messages[0].name", 7, "messages[0].name: only a message's content"),
        ("", {}, "an empty path means the whole state; give the path of a channel to replace: messages, turns"),
    ],
)
def test_impossible_value_is_refused_with_its_place(path: str, value: Any, words: str) -> None:
    with pytest.raises(PathError) as caught:
        replace_value(a_state(), path, value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ('"3"', "3"),
        ("null", None),
        ('{"role": "user"}', {"role": "user"}),
        ("Where is the heron?", "Where is the heron?"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("", ""),
    ],
)
def test_typed_value_is_json_or_the_text_itself(text: str, value: Any) -> None:
    assert parse_value(text) == value


changed_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text("ab\n\x1b喝", max_size=4),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["p", "r", ""]), inner),
    max_leaves=10,
)
changed_states = st.dictionaries(st.sampled_from(["turns", "open", "said"]), changed_values)
HELLO, REPLY = message("user", "Hello", 0), message("assistant", "Good\nmorning", 1)


def paths(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the paths at which two states differ."""
    return [change.path for change in compute_changes(before, after)]


def test_each_new_item_of_a_list_is_a_change() -> None:
    assert compute_changes({}, {"messages": [HELLO], "turns": 0}) == [
        Change("messages[0]", ABSENT, HELLO),
        Change("turns", ABSENT, 0),
    ]
    more = [HELLO, REPLY, message("user", "Bye", 2)]
    assert paths({"messages": [HELLO]}, {"messages": more}) == ["messages[1]", "messages[2]"]
    assert compute_changes({}, {"judgements": []}) == [Change("judgements", ABSENT, [])]


def test_changed_message_is_a_change_of_its_content() -> None:
    edited = message("user", "Hullo", 0)
    assert compute_changes({"messages": [HELLO, REPLY]}, {"messages": [edited, REPLY]}) == [
        Change("messages[0].content", "Hello", "Hullo")
    ]
    named = HELLO.model_copy(update={"name": "guest"})
    assert paths({"messages": [HELLO]}, {"messages": [named]}) == ["messages[0].name"]
    other = AIMessage(content="Hello", id="other", name="user")
    assert compute_changes({"messages": [HELLO]}, {"messages": [other]}) == [Change("messages[0]", HELLO, other)]


def test_edit_in_a_long_list_is_the_only_change() -> None:
    long = [f"line {number}" for number in range(200)]
    assert compute_changes({"open": long}, {"open": [*long[:70], "x", *long[71:]]}) == [
        Change("open[70]", "line 70", "x")
    ]
    assert compute_changes({"open": long}, {"open": long[:70] + long[71:]}) == [Change("open[70]", "line 70", ABSENT)]
    assert compute_changes({"open": long}, {"open": [*long[:70], "x", *long[70:]]}) == [Change("open[70]", ABSENT, "x")]


def test_nested_change_is_named_by_its_path() -> None:
    before = {"induced": {"p": {"profile": None, "mood": "calm"}}, "said": {"": "Hi"}, "turns": 1}
    after = {"turns": 1, "induced": {"p": {"profile": "keeps bees"}}, "said": {"p r": "Ho"}, "open": {}}
    assert compute_changes(before, after) == [
        Change("induced.p.profile", None, "keeps bees"),
        Change("induced.p.mood", "calm", ABSENT),
        Change('said[""]', "Hi", ABSENT),
        Change('said["p r"]', ABSENT, "Ho"),
        Change("open", ABSENT, {}),
    ]


@given(changed_states, changed_states)
def test_changes_are_exactly_where_two_states_differ(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = compute_changes(before, after)
    assert bool(found) == (before != after)
    for change in found:
        assert change.before != change.after
        if change.after is ABSENT:
            assert get_value(before, change.path) == change.before
        else:
            assert get_value(after, change.path) == change.after


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
def test_change_is_one_line(change: Change, line: str) -> None:
    assert format_change(change) == line
    assert format_change(change, None) == line


def test_long_line_is_truncated_around_the_difference() -> None:
    long = "The heron stands by the weir and waits for the fish to come up. " * 3
    new = Change("messages[0]", ABSENT, message("user", long, 0))
    assert format_change(new, 40) == "+ messages[0] user: The heron stands ..."
    assert format_change(Change("note", None, long), 40) == 'note: null -> "The heron stands by th...'
    line = format_change(Change("note", f"{long}It goes.", f"{long}It stays."), 60)
    assert line == 'note: ...come up. It goes." -> ...come up. It stays."'
    assert format_change(Change("note", long, ABSENT), None) == f'- note "{long.strip()}"'


@given(changed_states, changed_states, st.integers(1, 40))
def test_no_line_is_wider_than_allowed(before: dict[str, Any], after: dict[str, Any], width: int) -> None:
    for change in compute_changes(before, after):
        line = format_change(change, width)
        assert cell_len(line) <= width
        assert line.isprintable()


STATE: Mapping[str, Any] = {
    "messages": [said("user", "Is the heron back?", 0), said("assistant", "It is by the weir.", 1)],
    "turns": 3,
    "said": {"": "Hi", "items": []},
    "result": "",
}


def at(*nodes: str, roles: str = "", state: Mapping[str, Any] = STATE, **counts: int) -> Position:
    """Return a position in a conversation."""
    return Position(nodes, frozenset(roles.split()), counts, state)


def condition(text: str, *channels: str) -> Condition:
    """Parse a condition for a graph of three nodes and a recipe with two roles and two counters."""
    return Condition.parse(text, ["user", "assistant", "judge/tone"], ["judge", "user"], ["turn", "round"], channels)


def test_node_condition_holds_before_the_node_runs() -> None:
    assert condition("judge/tone").is_met(at("assistant", "judge/tone"))
    assert not condition("judge/tone").is_met(at("assistant", roles="judge"))
    assert not condition("user").is_met(at("assistant", roles="user"))
    assert condition("user").is_met(at("user"))


def test_role_condition_holds_where_the_role_is_called_next() -> None:
    assert condition("judge").is_met(at("judge/tone", roles="judge assistant"))
    assert not condition("judge").is_met(at("judge/tone"))


def test_counter_condition_holds_from_its_number_on() -> None:
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
def test_expression_condition_holds_where_it_is_true(text: str, met: bool) -> None:
    assert condition(text).is_met(at(state=STATE)) is met


def test_condition_is_written_as_given() -> None:
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
def test_unevaluable_condition_is_an_error(text: str, words: str) -> None:
    with pytest.raises(ConditionError) as caught:
        condition(text).is_met(at(state=STATE))
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "turn x", "trun 3", "turns = 3", "3", "'user'", "}} {{", "turns | nosuch", "(turns"]
)
def test_malformed_condition_is_refused_with_the_four_forms(text: str) -> None:
    with pytest.raises(ConditionError) as caught:
        condition(text)
    assert f"{text!r} is not a condition" in str(caught.value)
    assert "a node (user, assistant, judge/tone), a role (judge, user)" in str(caught.value)
    assert "(turn N, round N), or an expression over the state" in str(caught.value)


def test_unknown_channel_is_refused_but_not_a_channel_without_a_value_yet() -> None:
    with pytest.raises(ConditionError, match="there is no 'trns'; the state has turns, ended_by"):
        condition("trns > 3", "turns", "ended_by")
    later = condition("ended_by == 'limit'", "turns", "ended_by")
    assert not later.is_met(at(state={"turns": 3}))
    assert later.is_met(at(state={"turns": 3, "ended_by": "limit"}))
    assert condition("ended_by is not defined", "ended_by").is_met(at(state={}))
