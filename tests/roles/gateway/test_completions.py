"""What is made of an answer: its text, why it ended, and what it took, if that can be so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.roles.gateway.asking import ask, request
from tests.server import Response, completion, ended, serving

pytestmark = pytest.mark.usefixtures("keyed")

RIGHT = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}


async def test_a_reply_that_was_cut_off_is_kept_with_its_reason() -> None:
    """Its text is used."""
    with serving(lambda _body, _number: ended("half a", "length", RIGHT)) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("half a", "length")


async def test_a_refusal_is_what_the_model_said() -> None:
    """A model that refuses leaves the content empty and puts its words elsewhere."""
    with serving(lambda _body, _number: ended(None, "stop", RIGHT, refusal="I cannot.")) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("I cannot.", "refusal")


async def test_empty_content_is_left_to_the_role() -> None:
    """No fault of the provider's."""
    with serving(lambda _body, _number: completion("")) as server:
        assert (await ask(request(server.url))).text == ""


async def test_content_that_a_filter_has_shortened_is_kept() -> None:
    """With its reason."""
    with serving(lambda _body, _number: ended("Well,", "content_filter", RIGHT)) as server:
        reply = await ask(request(server.url))
    assert (reply.text, reply.finish_reason) == ("Well,", "content_filter")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"total_tokens": 9},
        {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": -3, "total_tokens": -8},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": "many", "completion_tokens": "few", "total_tokens": "some"},
        [1, 2],
    ],
)
@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "openrouter/openai/gpt-4o-mini", "hosted_vllm/x"])
async def test_a_usage_that_cannot_be_is_unknown(usage: Any, model: str) -> None:
    """The reply was paid for, so it is kept, after one request; what it took is no number, and neither is its cost."""
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await ask(request(server.url, model))
        assert len(server.requests) == 1
    assert reply.text == "heron"
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.cost) == (None, None, None, None)


async def test_a_usage_that_is_wrong_in_part_is_known_in_part() -> None:
    """The other figure stands; the cost needs both."""
    usage = {**RIGHT, "completion_tokens": -1}
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await ask(request(server.url))
    assert (reply.input_tokens, reply.output_tokens, reply.cost) == (100, None, None)


async def test_tokens_read_from_a_cache_are_booked_and_priced_apart() -> None:
    """They are among the input tokens, and cheaper."""
    costs: list[float] = []
    for cached in (0, 80):
        usage = {**RIGHT, "prompt_tokens_details": {"cached_tokens": cached}}
        with serving(lambda _body, _number, usage=usage: ended("heron", "stop", usage)) as server:  # type: ignore[misc]
            reply = await ask(request(server.url))
        assert (reply.input_tokens, reply.cached_tokens) == (100, cached)
        assert reply.cost is not None
        costs.append(reply.cost)
    assert costs[0] > costs[1] > 0


async def test_more_cached_tokens_than_tokens_are_unknown() -> None:
    """And so is a cost that was reckoned with them."""
    usage = {**RIGHT, "prompt_tokens_details": {"cached_tokens": 800}}
    with serving(lambda _body, _number: ended("heron", "stop", usage)) as server:
        reply = await ask(request(server.url))
    assert (reply.input_tokens, reply.cached_tokens, reply.cost) == (100, None, None)


async def test_what_anthropic_writes_to_its_cache_is_paid_and_what_it_reads_is_booked() -> None:
    """10 fresh, 100 written, 200 read: all are input, 200 of it cached; writing is dearer than nothing."""
    costs: list[float] = []
    for written in (0, 100):
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": 200,
        }
        body = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "c",
            "content": [{"type": "text", "text": "heron"}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        with serving(lambda _body, _number, body=body: Response(200, body)) as server:  # type: ignore[misc]
            reply = await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5"))
        assert (reply.text, reply.input_tokens, reply.cached_tokens) == ("heron", 210 + written, 200)
        assert reply.cost is not None
        costs.append(reply.cost)
    assert costs[1] > costs[0] > 0
