"""Paths into a graph's state: what they read, what they exchange, and what they refuse."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from dialoom.graphs.conversation import said
from dialoom.runs.stepping import PathError
from dialoom.runs.stepping.values import extended, look, parsed, plain, replaced

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
states = st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4)


def a_state() -> dict[str, Any]:
    """A conversation of two lines with all that a recipe may keep beside it."""
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
def test_a_path_reads_what_stands_there(path: str, there: Any) -> None:
    """Names with dots, places in brackets, names in quotes."""
    assert look(a_state(), path) == there


def test_the_empty_path_is_everything() -> None:
    """As JSON has it, messages too; a message without a name has its type for a role."""
    state = {**a_state(), "notes": (SystemMessage(content="Be brief.", id="s"),)}
    whole = look(state, "")
    assert json.loads(json.dumps(whole)) == whole
    assert whole["notes"] == [{"role": "system", "content": "Be brief.", "id": "s"}]
    assert plain({1: object}) == {"1": str(object)}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("turn", "turn: the state has no 'turn'; there is messages, turns, ended_by"),
        ("messages[2].content", r"messages has no [2]; it is a list of 2, [0] to [1]"),
        ("messages[-3]", "messages has no [-3]"),
        ("messages.content", "messages has no 'content'; it is a list of 2"),
        ("messages[0].contents", "messages[0] has no 'contents'; there is role, content, id"),
        ("judgements[0]", "judgements has no [0]; it is a list of 0"),
        ("induced.r.profile", "induced has no 'r'; there is p"),
        ("said.p", """said has no 'p'; there is [""], ["p r"]"""),
        ("turns.x", "turns has no 'x'; it is a number: 1"),
        ("messages[x]", "cannot be read from '[x]' on"),
        (".turns", "cannot be read from '.turns' on"),
        ("messages[0]content", "cannot be read from 'content' on"),
        ("turns..x", "cannot be read from '..x' on"),
        ("""said["p r]""", "cannot be read from"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, words: str) -> None:
    """The path, the piece that is not there, and what there is instead."""
    with pytest.raises(PathError) as caught:
        look(a_state(), path)
    assert words in str(caught.value)
    assert path in str(caught.value)
    with pytest.raises(PathError):
        replaced(a_state(), path + ".more", 1)


@given(states)
def test_every_place_has_a_path(state: dict[str, Any]) -> None:
    """Whatever the names are: the path that is written for a place is read as this place."""

    def check(value: Any, path: str) -> None:
        assert look(state, path) == value
        if isinstance(value, dict):
            for name, inner in value.items():
                check(inner, extended(path, name))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                check(inner, extended(path, index))

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
def test_one_place_is_exchanged(path: str, value: Any, channel: Any) -> None:
    """The channel's whole new value; the state is as it was."""
    state = a_state()
    before = copy.deepcopy(state)
    name, new = replaced(state, path, value)
    assert (name, new) == (path.split("[")[0].split(".")[0], channel)
    assert state == before


def test_the_new_channel_shares_nothing_with_the_old() -> None:
    """Whoever changes it changes neither the state nor what was given."""
    state, given_ = a_state(), {"user": "Hi", "scores": []}
    _, rounds = replaced(state, "rounds[1]", given_)
    rounds[0]["scores"].append(0)
    rounds[1]["scores"].append(0)
    assert (state, given_) == (a_state(), {"user": "Hi", "scores": []})


def test_of_a_message_content_and_name_can_be_exchanged() -> None:
    """It stays the message that it was."""
    state = a_state()
    state["messages"][1] = AIMessage(content="No.", id="own", name="assistant", response_metadata={"from": "afar"})
    _, messages = replaced(state, "messages[-1].content", "Yes.")
    assert messages == [
        state["messages"][0],
        AIMessage(content="Yes.", id="own", name="assistant", response_metadata={"from": "afar"}),
    ]
    _, messages = replaced(state, "messages[0].name", "keeper")
    assert messages[0] == HumanMessage(content="Is the heron back?", id="0-user", name="keeper")
    assert replaced(state, "messages[0].role", "keeper")[1] == messages


def test_a_whole_message_is_given_by_role_and_content() -> None:
    """It gets the id of its place; said by the same speaker, it keeps the id that the place had."""
    state = a_state()
    state["messages"][0] = said("user", "Hello?", 7)
    _, same = replaced(state, "messages[0]", {"role": "user", "content": "Hi."})
    _, other = replaced(state, "messages[0]", {"role": "assistant", "content": "Hi."})
    _, more = replaced(state, "messages[2]", {"role": "user", "content": "Bye."})
    assert same[0] == said("user", "Hi.", 7)
    assert other[0] == said("assistant", "Hi.", 0)
    assert more == [*state["messages"], said("user", "Bye.", 2)]
    assert replaced(state, "messages[2]", said("user", "Bye.", 2))[1] == more
    assert replaced({"messages": []}, "messages[0]", {"role": "user", "content": "Hi."})[1] == [said("user", "Hi.", 0)]
    assert replaced({"last": said("user", "Hi.", 3)}, "last", {"role": "user", "content": "Ho."}) == (
        "last",
        said("user", "Ho.", 3),
    )


def test_a_conversation_is_exchanged_by_its_plain_form() -> None:
    """What `look` shows can be edited and set again."""
    state = a_state()
    shown = look(state, "messages")
    assert replaced(state, "messages", shown) == ("messages", state["messages"])
    shown[1]["content"] = "It is not."
    assert replaced(state, "messages", shown)[1][1] == said("assistant", "It is not.", 1)
    assert replaced(state, "messages", shown[:1])[1] == state["messages"][:1]


def test_blocks_of_a_message_can_be_exchanged() -> None:
    """A content of several parts is a list like others."""
    parts = AIMessage(content=[{"type": "text", "text": "One."}], id="0-assistant", name="assistant")
    _, messages = replaced({"messages": [parts]}, "messages[0].content[0].text", "Two.")
    assert messages[0].content == [{"type": "text", "text": "Two."}]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("ended_by", {"why": "late"}, """ended_by is a text: ""; {"why": "late"} is a mapping"""),
        ("ended_by", 4, """4 is a number, and in quotes a text: "4\""""),
        ("turns", "four", """turns is a number: 1; "four" is a text"""),
        ("turns", True, "true is true or false"),
        ("turns", None, "turns is a number: 1; null is null"),
        ("open[0]", 3, """open is a list with items of this kind: "p"; for open[0], 3 is a number"""),
        ("open[2]", ["p"], 'for open[2], ["p"] is a list'),
        ("open[3]", "p", "open has no [3]; it is a list of 2, [0] to [1]"),
        ("induced.p", "patient", "induced.p is a mapping"),
        ("induced.q", {}, "induced has no 'q'; there is p"),
        ("messages[0]", "Hello", """messages[0] is a message, so "Hello" cannot stand there; give {"role": "user","""),
        ("messages[0]", {"role": "user", "text": "Hello"}, "messages[0] is a message"),
        ("messages[0]", {"role": "", "content": "Hello"}, "messages[0] is a message"),
        ("messages[2]", {"role": "user", "content": ["Hello"]}, "messages[2] is a message"),
        ("messages[0].content", None, "messages[0].content is a text"),
        ("messages[0].id", "7-user", "its content can be exchanged"),
        ("messages[0].name", 7, "messages[0].name: of a message"),
        ("", {}, "an empty path is the whole state; name what is to be exchanged: messages, turns"),
    ],
)
def test_what_cannot_stand_somewhere_is_refused(path: str, value: Any, words: str) -> None:
    """The place, what it is, and what was given."""
    with pytest.raises(PathError) as caught:
        replaced(a_state(), path, value)
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
def test_a_typed_value_is_json_or_the_text_itself(text: str, value: Any) -> None:
    """So plain words need no quotes."""
    assert parsed(text) == value
