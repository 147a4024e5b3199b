"""What a model is told besides its temperature: by role, checked by name, and part of what a call is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dialoom import Model
from dialoom.roles import BindingError, CallPlace, ModelBinding
from dialoom.roles.binding import bind
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.cache import cache_key
from dialoom.roles.gateway.gateway import check_parameters
from tests.roles.gateway.asking import ask, request
from tests.server import completion, serving

ROLES = {"user": 0.5, "judge": 0.0}
PLACE = CallPlace("s", "n", 1, 0, 7)


def asked(**fields: Any) -> Request:
    """A request whose identity is known."""
    return Request("judge", "p", "h", "openai/x", 0.5, 7, ({"role": "user", "content": "Hello."},), **fields)


def test_limits_and_parameters_are_bound_one_by_one_or_all_at_once() -> None:
    """What is said of a role wins over what is said of all, a model's own over both; 0 and `None` are no limit."""
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
    assert bind(ROLES, model="a", reply_limits={"user": 800}).by_role["user"].max_reply == 800, "the role's own"
    for none in (0, {"user": 0}, {"user": None}, {"": None}):
        assert bind(ROLES, model="a", max_reply=none, reply_limits={"user": 800}).by_role["user"].max_reply is None
    assert bind(ROLES, model=Model("a", max_reply=0), reply_limits={"user": 800}).by_role["user"].max_reply is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"params": {"clerk": {"top_p": 1}}}, "params: unknown role 'clerk'; the roles are user, judge"),
        ({"params": {"user": {"top_q": 1}}}, "params: user.top_q is unknown; did you mean top_p"),
        ({"params": {"user": {"wings": 2}}}, "params: user.wings is unknown; there are extra_body, "),
        ({"params": {"": {"temperature": 1}}}, "params: temperature cannot be given so: it is an option of its own"),
        ({"params": {"judge": {"max_tokens": 1}}}, "judge.max_tokens cannot be given so: .* max_reply"),
        ({"params": {"judge": {"base_url": "http://elsewhere"}}}, "an option of its own, api_base"),
        ({"params": {"judge": {"api_key": "sk"}}}, "keys come by the environment"),
        ({"params": {"judge": {"extra_body": {"stream": True}}}}, "judge.extra_body.stream cannot be given so"),
        ({"params": {"judge": {"top_p": "hot"}}}, "judge.top_p 'hot' is not a number"),
        ({"params": {"judge": {"top_p": float("nan")}}}, "judge.top_p nan is not a number"),
        ({"params": {"judge": {"seed": True}}}, "judge.seed True is not a whole number"),
        ({"params": {"judge": {"stop": None}}}, "judge.stop None is not a text or a list of texts"),
        ({"params": {"top_p": 0.9}}, "params: unknown role 'top_p'"),
        ({"params": {"judge": 0.9}}, "params: judge has 0.9; values by name are needed"),
        ({"max_reply": {"clerk": 3}}, "max_reply: unknown role 'clerk'"),
        ({"max_reply": -1}, "max_reply of user: -1 is no whole number from 1"),
        ({"max_reply": True}, "True is no whole number"),
        ({"max_reply": {"judge": 0.5}}, "max_reply of judge: 0.5 is no whole number"),
    ],
)
def test_a_wrong_one_is_told(given: dict[str, Any], said: str) -> None:
    """With its role and name, why, and what would be right."""
    with pytest.raises(BindingError, match=said) as caught:
        bind(ROLES, model="openai/a", **given)
    assert caught.value.setting in given
    assert caught.value.message.startswith(caught.value.setting)


def test_no_file_can_send_calls_elsewhere() -> None:
    """A run's file may come from anywhere: what it keeps is held to the same names."""
    with pytest.raises(ValidationError, match="base_url cannot be given so"):
        ModelBinding.model_validate({"model": "openai/a", "temperature": 0, "params": {"base_url": "http://evil.test"}})


def test_what_shapes_a_reply_is_part_of_what_the_call_is_and_a_time_out_is_not() -> None:
    """A call without limit and parameters is what it was before there were any: older runs go on."""
    assert asked().key(PLACE) == "c58c592d222ab439947f421bcf8191811ecac40a674cae2a4a01eeb82b2bf2ad"
    assert cache_key(asked(), PLACE).hex() == "7a4e1c135cadcd472948dba1926e389b51a98af51c8fd57d690c2a8ab16f6a32"
    assert asked(timeout=3.0).key(PLACE) == asked().key(PLACE)
    others = [asked(), asked(max_reply=9), asked(params={"top_p": 0.5}), asked(params={"top_p": 0.6}, max_reply=9)]
    assert len({each.key(PLACE) for each in others}) == len({cache_key(each, PLACE) for each in others}) == 4
    one, other = ({"top_p": 0.5, "seed": 3}, {"seed": 3, "top_p": 0.5})
    assert asked(params=one).key(PLACE) == asked(params=other).key(PLACE)


@pytest.mark.parametrize(
    ("model", "name"), [("openai/house", "max_tokens"), ("openai/o3-mini", "max_completion_tokens")]
)
async def test_a_limit_and_parameters_reach_the_provider_by_its_own_names(
    model: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reasoning model's limit is called otherwise; without any, nothing of the kind is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    params = {"seed": 3, "extra_body": {"top_a": 0.2}, "top_k": 5, "stop": ["END"]}
    with serving(lambda _body, _number: completion("Heron.")) as server:
        await ask(request(server.url, model, max_reply=70, params=params))
        await ask(request(server.url, model))
    told, bare = server.requests
    assert {key: told.get(key) for key in (name, "seed", "top_a", "top_k", "stop")} == {
        name: 70,
        "seed": 3,
        "top_a": 0.2,
        "top_k": 5,
        "stop": ["END"],
    }
    assert not {"max_tokens", "max_completion_tokens", "stop", "top_a", "top_k"} & bare.keys() and bare["seed"] == 5


def test_a_parameter_that_would_be_left_out_on_the_way_is_refused() -> None:
    """LiteLLM drops what it knows a model has not, without a word; players that take none are left alone."""
    params = {"frequency_penalty": 0.5}
    claude = ModelBinding(model="anthropic/claude-sonnet-4-5", temperature=0, params=params)
    with pytest.raises(BindingError, match=r"judge.frequency_penalty would be left out.* it takes .*, top_p"):
        check_parameters({"judge": claude})
    taking = ("openai/gpt-4o-mini", "offline/attentive", "python:a:b", "object:mine")
    check_parameters({model: claude.model_copy(update={"model": model}) for model in taking})
