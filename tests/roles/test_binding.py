"""Who plays a role: names, functions and graphs, with options for all roles or one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from dialoom import Model
from dialoom.prompts import ChatMessage
from dialoom.roles import BindingError
from dialoom.roles.binding import bind, rebind

ROLES = {"user": 0.5, "judge": 0.0}


async def importable(messages: list[ChatMessage]) -> str:
    """A player that any process can import."""
    return str(len(messages))


def compiled() -> Any:
    """A graph that has nothing to add."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _state: {"messages": []})
    builder.add_edge(START, "answer")
    return builder.compile()


def test_roles_are_bound_one_by_one_or_all_at_once() -> None:
    """What is said of one role wins over what is said of all, and a model's own options over both."""
    bound = bind(ROLES, model="a", models={"judge": Model("b", temperature=0.3)}, temperature={"": 0.9, "judge": 0.8})
    assert {role: binding.model for role, binding in bound.by_role.items()} == {"user": "a", "judge": "b"}
    assert {role: binding.temperature for role, binding in bound.by_role.items()} == {"user": 0.9, "judge": 0.3}
    assert bind(ROLES, model="a").by_role["user"].temperature == 0.5, "the role's own"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"models": {"user": "a"}}, "role 'judge' has no model"),
        ({"models": {"clerk": "a"}}, "unknown role 'clerk'"),
        ({"model": "a", "temperature": {"judge": 3.0}}, "from 0 to 2, or .none. to send none, got 3.0"),
        ({"model": "a", "temperature": True}, "got True"),
        ({"model": " "}, "a name is empty"),
        ({"model": print}, "is no player"),
        ({"model": 7}, "is no player: 7 is no async function"),
    ],
)
def test_a_wrong_binding_is_told(given: Mapping[str, Any], said: str) -> None:
    """With the value, what would be right, and the setting that it is about."""
    with pytest.raises(BindingError, match=said) as caught:
        bind(ROLES, **given)
    assert caught.value.setting in ("models", "temperature")
    assert str(caught.value).startswith(caught.value.setting)


def test_an_address_is_bound_to_a_role_or_to_all_that_have_one() -> None:
    """A named role wins; models that are called at no address are left alone."""
    roles = {"user": 0.5, "judge": 0.0, "clerk": 0.0}
    given = {"": "http://127.0.0.1:8000/v1", "judge": "https://judge.test/v1"}
    bound = bind(roles, model="openai/a", models={"clerk": "offline/generic"}, api_base=given)
    assert {role: binding.api_base for role, binding in bound.by_role.items()} == {
        "user": "http://127.0.0.1:8000/v1",
        "judge": "https://judge.test/v1",
        "clerk": None,
    }


@pytest.mark.parametrize(
    ("role", "address", "said"),
    [
        ("clerk", "http://a.test/v1", "unknown role 'clerk'"),
        ("user", "a.test/v1", "is no address"),
        ("user", "ftp://a.test/v1", "is no address"),
        ("user", "http://", "is no address"),
        ("user", "http://me:hidden@a.test/v1", "a.test holds a login"),
        ("", "https://hidden@a.test/v1", "a.test holds a login"),
        ("user", "http://a.test/v1?key=hidden", "a.test holds a login or a query"),
        ("user", "//me:hidden@a.test", "holds a login"),
        ("user", "http://me:hidden@[a/v1", "holds a login"),
        ("judge", "http://me:hidden@a.test/v1", "it is played by offline/generic"),
    ],
)
def test_a_wrong_address_is_told_and_no_secret_of_it_repeated(role: str, address: str, said: str) -> None:
    """Keys come by the environment: an address is kept in the run's file."""
    with pytest.raises(BindingError) as caught:
        bind(ROLES, model="openai/a", models={"judge": "offline/generic"}, api_base={role: address})
    assert said in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_functions_and_graphs_play_as_they_are() -> None:
    """One that can be imported is kept by its path; any other is known to this process, under a name of its own."""

    async def echo(messages: list[ChatMessage]) -> str:
        return messages[-1]["content"]

    first, graph = echo, compiled()

    async def echo(messages: list[ChatMessage]) -> str:  # type: ignore[no-redef]
        return str(len(messages))

    roles = dict.fromkeys(("a", "b", "c", "d", "e"), 0.0)
    bound = bind(roles, models={"a": importable, "b": first, "c": echo, "d": graph, "e": first})
    names = {role: binding.model for role, binding in bound.by_role.items()}
    assert names["a"] == f"python:{__name__}:importable"
    assert (names["b"], names["c"], names["e"]) == ("object:echo", "object:echo-2", "object:echo")
    assert bound.objects == {"object:echo": first, "object:echo-2": echo, names["d"]: graph}


def test_going_on_asks_for_objects_again_and_for_nothing_else() -> None:
    """They are in no file; models with names stay what they are."""

    async def echo(messages: list[ChatMessage]) -> str:
        return messages[-1]["content"]

    kept = bind(ROLES, model="a", models={"user": echo}).by_role
    assert rebind(kept, {"user": echo}).objects == {"object:echo": echo}
    with pytest.raises(BindingError, match="role 'user' was played by 'echo'"):
        rebind(kept, {})
    with pytest.raises(BindingError, match="role 'judge' is played by a"):
        rebind(kept, {"user": echo, "judge": "b"})
    with pytest.raises(BindingError, match="unknown role 'clerk'"):
        rebind(kept, {"clerk": echo})
