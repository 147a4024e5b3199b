"""Models bound to roles, their parameters and addresses, and a role's calls over HTTP."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import ValidationError

from dialoom import DialoomError, Model
from dialoom.prompts import ChatMessage
from dialoom.roles import BindingError, CallPlace, ModelBinding
from dialoom.roles.binding import bind, rebind
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.cache import cache_key
from dialoom.roles.gateway.gateway import check_parameters
from tests.conftest import Command
from tests.invented import write_release
from tests.roles.gateway.asking import ask, request
from tests.server import ChatServer, completion, error, serving

ROLES = {"user": 0.5, "judge": 0.0}


async def importable(messages: list[ChatMessage]) -> str:
    """Play a role; importable in any process."""
    return str(len(messages))


def compiled_graph() -> Any:
    """Return a graph that adds no message."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _state: {"messages": []})
    builder.add_edge(START, "answer")
    return builder.compile()


def test_models_are_bound_by_role_or_to_all_roles() -> None:
    bound = bind(ROLES, model="a", models={"judge": Model("b", temperature=0.3)}, temperature={"": 0.9, "judge": 0.8})
    assert {role: binding.model for role, binding in bound.by_role.items()} == {"user": "a", "judge": "b"}
    assert {role: binding.temperature for role, binding in bound.by_role.items()} == {"user": 0.9, "judge": 0.3}
    assert bind(ROLES, model="a").by_role["user"].temperature == 0.5, "the role's default"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"models": {"user": "a"}}, "role 'judge' has no model"),
        ({"models": {"clerk": "a"}}, "unknown role 'clerk'"),
        ({"model": "a", "temperature": {"judge": 3.0}}, "temperature of judge must be at most 2, got 3.0"),
        ({"model": "a", "temperature": True}, "got True"),
        ({"model": " "}, "a name is empty"),
        ({"model": lambda: ""}, "<lambda> cannot be called with the messages alone: too many positional arguments"),
        ({"model": lambda _, more: more}, "the messages alone: missing a required argument: 'more'"),
        ({"model": 7}, "int cannot play a role: 7 must be a callable that takes `messages`"),
    ],
)
def test_wrong_binding_is_refused(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DialoomError, match=message) as caught:
        bind(ROLES, **given)
    assert caught.value.setting in ("models", "temperature")
    assert str(caught.value).startswith(caught.value.setting)


def test_address_is_bound_by_role_or_to_all_that_have_one() -> None:
    roles = {"user": 0.5, "judge": 0.0, "clerk": 0.0}
    given = {"": "http://127.0.0.1:8000/v1", "judge": "https://judge.test/v1"}
    bound = bind(roles, model="openai/a", models={"clerk": "offline/generic"}, api_base=given)
    assert {role: binding.api_base for role, binding in bound.by_role.items()} == {
        "user": "http://127.0.0.1:8000/v1",
        "judge": "https://judge.test/v1",
        "clerk": None,
    }


@pytest.mark.parametrize(
    ("role", "address", "message"),
    [
        ("clerk", "http://a.test/v1", "unknown role 'clerk'"),
        ("user", "a.test/v1", "is not an address"),
        ("user", "ftp://a.test/v1", "is not an address"),
        ("user", "http://", "is not an address"),
        ("user", "http://me:hidden@a.test/v1", "a.test contains a login"),
        ("", "https://hidden@a.test/v1", "a.test contains a login"),
        ("user", "http://a.test/v1?key=hidden", "a.test contains a login or a query"),
        ("user", "//me:hidden@a.test", "contains a login"),
        ("user", "http://me:hidden@[a/v1", "contains a login"),
        ("judge", "http://me:hidden@a.test/v1", "it is played by offline/generic"),
    ],
)
def test_wrong_address_is_refused_without_its_secret(role: str, address: str, message: str) -> None:
    with pytest.raises(BindingError) as caught:
        bind(ROLES, model="openai/a", models={"judge": "offline/generic"}, api_base={role: address})
    assert message in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_functions_and_graphs_play() -> None:
    async def echo(messages: list[ChatMessage]) -> str:
        return messages[-1]["content"]

    first, graph = echo, compiled_graph()

    async def echo(messages: list[ChatMessage]) -> str:  # type: ignore[no-redef]
        return str(len(messages))

    roles = dict.fromkeys(("a", "b", "c", "d", "e"), 0.0)
    bound = bind(roles, models={"a": importable, "b": first, "c": echo, "d": graph, "e": first})
    names = {role: binding.model for role, binding in bound.by_role.items()}
    assert names["a"] == f"python:{__name__}:importable"
    assert (names["b"], names["c"], names["e"]) == ("object:echo", "object:echo-2", "object:echo")
    assert bound.objects == {"object:echo": first, "object:echo-2": echo, names["d"]: graph}


def test_resuming_needs_player_objects_only() -> None:
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


PLACE = CallPlace("s", "n", 1, 0, 7)


def make_request(**fields: Any) -> Request:
    """Return a request with a known identity."""
    return Request("judge", "p", "openai/x", 0.5, 7, ({"role": "user", "content": "Hello."},), **fields)


def test_limits_and_parameters_are_bound_by_role_or_to_all_roles() -> None:
    """A role's value overrides the one for all roles, and a model's own overrides both; 0 and `None` are no limit."""
    bound = bind(
        ROLES,
        model="openai/a",
        models={"judge": Model("openai/b", max_reply=50, params={"stop": ["END"], "top_p": 0.1})},
        max_reply={"": 300, "judge": 40},
        params={"": {"top_p": 0.9, "seed": 1}, "judge": {"seed": 2}},
        reply_limits={"user": 800},
    ).by_role
    assert (bound["user"].max_reply, bound["judge"].max_reply) == (300, 50)
    assert bound["user"].params == {"seed": 1, "top_p": 0.9}
    assert bound["judge"].params == {"seed": 2, "stop": ["END"], "top_p": 0.1}
    assert bind(ROLES, model="a", reply_limits={"user": 800}).by_role["user"].max_reply == 800, "the role's default"
    for none in (0, {"user": 0}, {"user": None}, {"": None}):
        assert bind(ROLES, model="a", max_reply=none, reply_limits={"user": 800}).by_role["user"].max_reply is None
    assert bind(ROLES, model=Model("a", max_reply=0), reply_limits={"user": 800}).by_role["user"].max_reply is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"params": {"clerk": {"top_p": 1}}}, "params: unknown role 'clerk'; the roles are user, judge"),
        ({"params": {"user": {"top_q": 1}}}, "params: user.top_q is unknown; did you mean top_p"),
        (
            {"params": {"user": {"wings": 2}}},
            "params: user.wings is unknown; the parameters are deployment, extra_body, ",
        ),
        ({"params": {"": {"temperature": 1}}}, "params: temperature cannot be set here: it is a separate option"),
        ({"params": {"judge": {"max_tokens": 1}}}, "judge.max_tokens cannot be set here: .* max_reply"),
        ({"params": {"judge": {"base_url": "http://elsewhere"}}}, "a separate option, api_base"),
        ({"params": {"judge": {"api_key": "sk"}}}, "keys belong in environment variables"),
        ({"params": {"judge": {"extra_body": {"stream": True}}}}, "judge.extra_body.stream cannot be set here"),
        ({"params": {"judge": {"top_p": "hot"}}}, "judge.top_p 'hot' is not a number"),
        ({"params": {"judge": {"top_p": float("nan")}}}, "judge.top_p nan is not a number"),
        ({"params": {"judge": {"seed": True}}}, "judge.seed True is not a whole number"),
        ({"params": {"judge": {"stop": None}}}, "judge.stop None is not a string or a list of strings"),
        ({"params": {"top_p": 0.9}}, "params: unknown role 'top_p'"),
        ({"params": {"judge": 0.9}}, "params: judge has 0.9; it must be a mapping"),
        ({"max_reply": {"clerk": 3}}, "max_reply: unknown role 'clerk'"),
        ({"max_reply": -1}, "max_reply must be at least 0, got -1"),
        ({"max_reply": True}, "max_reply must be a whole number, got True"),
        ({"max_reply": {"judge": 0.5}}, "max_reply of judge must be a whole number, got 0.5"),
    ],
)
def test_wrong_parameter_is_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(DialoomError, match=expected) as caught:
        bind(ROLES, model="openai/a", **given)
    assert caught.value.setting in given
    assert caught.value.message.startswith(caught.value.setting)


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 0.0},
        {"max_reply": 90},
        {"structured": "json"},
        {"session": "user"},
        {"params": {"top_p": 0.5}},
    ],
)
def test_setting_of_requests_is_refused_for_a_users_own_player(given: dict[str, Any]) -> None:
    message = f"{next(iter(given))}: judge is played by python:.*importable, which is called with messages only"
    with pytest.raises(BindingError, match=message):
        bind(ROLES, model="openai/a", models={"judge": Model(importable, **given)})


def test_stored_parameters_cannot_redirect_calls() -> None:
    with pytest.raises(ValidationError, match="base_url cannot be set here"):
        ModelBinding.model_validate({"model": "openai/a", "temperature": 0, "params": {"base_url": "http://evil.test"}})


def test_reply_settings_are_part_of_a_calls_identity_and_timeouts_are_not() -> None:
    assert make_request().call_key(PLACE) == "c58c592d222ab439947f421bcf8191811ecac40a674cae2a4a01eeb82b2bf2ad"
    assert cache_key(make_request(), PLACE).hex() == "7a4e1c135cadcd472948dba1926e389b51a98af51c8fd57d690c2a8ab16f6a32"
    assert make_request(timeout=3.0).call_key(PLACE) == make_request().call_key(PLACE)
    others = [
        make_request(),
        make_request(max_reply=9),
        make_request(params={"top_p": 0.5}),
        make_request(params={"top_p": 0.6}, max_reply=9),
    ]
    assert len({each.call_key(PLACE) for each in others}) == len({cache_key(each, PLACE) for each in others}) == 4
    one, other = ({"top_p": 0.5, "seed": 3}, {"seed": 3, "top_p": 0.5})
    assert make_request(params=one).call_key(PLACE) == make_request(params=other).call_key(PLACE)


@pytest.mark.parametrize(
    ("model", "name"), [("openai/house", "max_tokens"), ("openai/o3-mini", "max_completion_tokens")]
)
async def test_limit_and_parameters_reach_the_provider_by_its_names(
    model: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    stop = {} if "o3" in model else {"stop": ["END"]}  # reasoning models reject it
    params = {"seed": 3, "extra_body": {"top_a": 0.2}, "top_k": 5, **stop}
    with serving(lambda _body, _number: completion("Heron.")) as server:
        await ask(request(server.url, model, max_reply=70, params=params))
        await ask(request(server.url, model))
    with_params, bare = server.requests
    expected = {name: 70, "seed": 3, "top_a": 0.2, "top_k": 5, **stop}
    assert {key: with_params[key] for key in (name, "seed", "top_a", "top_k", "stop") if key in with_params} == expected
    assert not {"max_tokens", "max_completion_tokens", "stop", "top_a", "top_k"} & bare.keys() and bare["seed"] == 5


def test_parameter_that_litellm_would_drop_is_refused() -> None:
    params = {"frequency_penalty": 0.5}
    claude = ModelBinding(model="anthropic/claude-sonnet-4-5", temperature=0, params=params)
    with pytest.raises(BindingError, match=r"judge.frequency_penalty would not be sent.* it accepts .*, top_p"):
        check_parameters({"judge": claude})
    taking = ("openai/gpt-4o-mini", "offline/attentive", "python:a:b", "object:mine")
    check_parameters({model: claude.model_copy(update={"model": model}) for model in taking})


KEY = "sk-planted-4f9a8c7b6d5e4f3a2b1c"


def play_one(dialoom: Command, players: list[str], folder: Path, server: ChatServer, code: int = 0) -> dict[str, Any]:
    """Play a dialogue whose assistant is the server; return the run's status."""
    if not (folder / "release").exists():
        write_release(folder / "release")
    variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": KEY}
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/gpt-4o-mini"]
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *cast, "-o", "r.db"]
    done = dialoom(*plan, code=code, variables=variables)
    assert KEY not in done.stdout + done.stderr
    status: dict[str, Any] = json.loads(dialoom("status", "r.db", "--json").stdout)
    return status


def test_usage_and_cost_are_recorded_as_litellm_reports_them(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Three replies of 10 + 5 tokens; the model has a price, so the assistant's cost is known."""
    with serving(lambda _body, number: completion(f"Reply {number}.")) as server:
        status = play_one(dialoom, players, tmp_path, server)
        assert len(server.requests) == 3
        assert server.requests[0]["temperature"] == 0
        assert server.requests[0]["messages"][0]["role"] == "system"
        roles = [message["role"] for message in server.requests[-1]["messages"][1:]]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
    assistant = status["roles"]["assistant"]
    assert assistant["tokens"] == {"input": 30, "output": 15}
    assert assistant["cost"] > 0
    assert status["cost"] is None, "the other roles' prices are unknown, so the sum is unknown"


def test_permanent_refusal_fails_at_once_and_hides_the_key(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """A 401 that quotes the key causes one attempt and a failed scenario, and no file contains the key."""
    with serving(lambda _body, _number: error(401, f"Incorrect API key provided: {KEY}")) as server:
        status = play_one(dialoom, players, tmp_path, server, code=1)
        assert len(server.requests) == 1
        assert server.keys == [f"Bearer {KEY}"]
    assert status["scenarios"]["failed"] == 1
    assert status["roles"]["assistant"]["failed_calls"] == 1
    assert "permanent" in str(sqlite3.connect(tmp_path / "r.db").execute("SELECT fault FROM scenarios").fetchall())
    dialoom("export", "r.db", "-o", "r.jsonl")
    for path in tmp_path.glob("r.*"):
        assert KEY.encode() not in path.read_bytes()


def test_empty_reply_is_requested_once_more(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    with serving(lambda _body, number: completion("" if number == 1 else "Words.")) as server:
        status = play_one(dialoom, players, tmp_path, server)
        assert len(server.requests) == 4
        assert "could not be used" in server.requests[1]["messages"][-1]["content"]
    assert status["scenarios"]["done"] == 1


def test_missing_key_is_reported_before_planning(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/gpt-4o-mini"]
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *cast, "-o", "r.db"]
    errors = dialoom(*plan, code=2, env=environment).stderr
    assert "no key in OPENAI_API_KEY for openai/gpt-4o-mini (assistant)" in errors
    assert "--env-file" in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "r.db").exists()
    shared = dialoom(*plan, "--cache", "shared.db", code=1, env=environment).stderr
    assert "set OPENAI_API_KEY" in shared


CODE = """
import functools
from langchain_core.runnables import RunnableLambda

def helper():
    return "one"

def function(messages, style="a"):
    return helper()

class Caller:
    def __init__(self, func):
        self.func = func

    def __call__(self, messages):
        return "two"

class Player:
    def __call__(self, messages):
        return self.text + self.static() + self.of_class() + self.func()

    @property
    def text(self):
        return "three"

    @staticmethod
    def static():
        return "four"

    @classmethod
    def of_class(cls):
        return "five"

    def func(self):
        return "six"

    def method(self, messages):
        return self.func() + messages[0].content

"""


def code_of(code: str, expression: str) -> str | None:
    """Return the fingerprint of the player that an expression makes from the functions and classes of a text."""
    made: dict[str, Any] = {"__name__": "made"}
    exec(code, made)
    return bind(ROLES, model=eval(expression, made)).by_role["user"].code


@pytest.mark.parametrize(
    ("player", "old", "new"),
    [
        ("function", '"one"', '"1"'),
        ("functools.partial(function)", '"one"', '"1"'),
        ("functools.partial(Caller(helper))", '"two"', '"2"'),
        ("RunnableLambda(function)", '"one"', '"1"'),
        ("Caller(helper)", '"one"', '"1"'),
        ("Caller(helper)", '"two"', '"2"'),
        ("Player()", "self.text + ", ""),
        ("Player()", '"three"', '"3"'),
        ("Player()", '"four"', '"4"'),
        ("Player()", '"five"', '"5"'),
        ("Player().method", "self.func() + ", ""),
        ("Player().method", '"six"', '"6"'),
    ],
)
def test_changed_code_of_a_player_is_noticed(player: str, old: str, new: str) -> None:
    assert CODE.count(old) == 1
    first = code_of(CODE, player)
    assert first is not None
    assert code_of(f"# moved\n{CODE}", player) == first
    assert code_of(CODE.replace(old, new), player) != first


def test_arguments_of_a_partial_belong_to_its_code() -> None:
    first, second = (f'functools.partial(function, style="{style}")' for style in "ab")
    assert code_of(CODE, first) == code_of(CODE, first) != code_of(CODE, second)


def test_code_is_not_changed_by_uses_of_its_names_and_objects() -> None:
    code = "class Plain:\n    def __call__(self, messages):\n        return messages[0].content\n\nplayer = Plain()\n"
    for later in ("def content(): pass", "import copy; copy.copy(player)", "Plain.__annotations__"):
        assert code_of(code + later, "player") == code_of(code, "player")
