"""Models without a price: LiteLLM looks for one once in a run, and whatever has a price is priced each time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dialoom.roles.gateway.litellm_backend import LiteLLMBackend, load_litellm
from tests.roles.gateway.asking import request
from tests.server import completion, ended, serving

pytestmark = pytest.mark.usefixtures("keyed")

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that LiteLLM has worked out a cost for, a word for each time."""
    litellm, asked = load_litellm(), list[str]()
    original = litellm.response_cost_calculator

    def noted(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["model"])
        return original(*args, **kwargs)

    monkeypatch.setattr(litellm, "response_cost_calculator", noted)
    return asked


async def test_a_model_without_a_price_is_looked_up_once(priced: list[str]) -> None:
    """And each reply says that its cost is unknown."""
    backend = LiteLLMBackend()
    with serving(lambda _body, _number: ended("heron", "stop", USAGE)) as server:
        replies = [await backend.complete(request(server.url, "openai/of-ones-own"), "") for _ in range(3)]
    assert [reply.cost for reply in replies] == [None] * 3
    assert [reply.input_tokens for reply in replies] == [1000] * 3
    assert len(priced) == 1


async def test_a_model_that_is_free_is_looked_up_once(priced: list[str]) -> None:
    """And each reply says so."""
    backend = LiteLLMBackend()
    asked = replace(request(None, "offline/generic"), prompt_id="personalens/judge-coherence")
    replies = [await backend.complete(asked, "") for _ in range(3)]
    assert [reply.cost for reply in replies] == [0.0] * 3
    assert len(priced) == 1


async def test_a_model_with_a_price_is_priced_each_time(priced: list[str]) -> None:
    """By what each reply took, an empty first one included; the answer names another model than was asked for."""
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    usages = [nothing, USAGE, {**USAGE, "prompt_tokens": 2000, "total_tokens": 2100}]
    backend = LiteLLMBackend()
    with serving(lambda _body, number: ended("heron", "stop", usages[number - 1])) as server:
        costs = [(await backend.complete(request(server.url), "")).cost for _ in usages]
    assert costs == [None, pytest.approx(0.00021), pytest.approx(0.00036)]
    assert len(priced) == 3


async def test_a_price_that_litellm_is_given_later_counts_in_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found out is a run's, not the process's."""
    litellm, model = load_litellm(), "openai/priced-between-runs"
    monkeypatch.setattr(litellm, "model_cost", dict(litellm.model_cost))
    with serving(lambda _body, _number: completion("heron")) as server:
        assert (await LiteLLMBackend().complete(request(server.url, model), "")).cost is None
        prices = {"input_cost_per_token": 1e-3, "output_cost_per_token": 1e-3, "litellm_provider": "openai"}
        litellm.register_model({model: {**prices, "mode": "chat"}})
        after = (await LiteLLMBackend().complete(request(server.url, model), "")).cost
    assert after is not None
    assert after > 0
