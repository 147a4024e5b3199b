"""Stable prefixes reach the providers' prompt caches, marked where a provider wants marks."""

from __future__ import annotations

from typing import Any

import pytest

from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.cache import marked, wants_markers
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.tool_wire import wire_messages
from tests.roles.gateway.asking import ask, request
from tests.server import Response, completion, serving

pytestmark = pytest.mark.usefixtures("keyed")

DIALOGUE: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are Ann."},
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Hi."},
    {"role": "user", "content": "Write your next message."},
)


def marks(messages: list[dict[str, Any]]) -> list[str]:
    """The texts of the marked parts."""
    return [part["text"].strip() for message in messages for part in message["content"] if "cache_control" in part]


def test_the_instructions_and_all_but_the_last_message_are_marked() -> None:
    """Joined neighbours keep their parts, so that the moment's instruction stays outside."""
    messages = marked(DIALOGUE)
    assert marks(messages) == ["You are Ann.", "Hi."]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]


def test_marking_changes_no_word() -> None:
    """The parts of a message together are the message that others get."""
    joined = [
        {"role": each["role"], "content": "".join(part["text"] for part in each["content"])}
        for each in marked(DIALOGUE)
    ]
    assert joined == wire_messages(DIALOGUE)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (DIALOGUE[:1], ["You are Ann."]),
        (DIALOGUE[1:2], []),
        (DIALOGUE[:2], ["You are Ann."]),
        (DIALOGUE[:3], ["You are Ann.", "Begin."]),
        (({"role": "system", "content": " "}, *DIALOGUE[1:2]), []),
    ],
)
def test_short_requests_have_what_marks_they_can(messages: tuple[ChatMessage, ...], expected: list[str]) -> None:
    """A single message has no prefix but itself, and an empty one may not be marked."""
    assert marks(marked(messages)) == expected


@pytest.mark.parametrize(
    ("model", "is_wanted"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("openrouter/anthropic/claude-sonnet-4", True),
        ("openai/gpt-4o-mini", False),
        ("openrouter/openai/gpt-4o-mini", False),
        ("gemini/gemini-2.5-flash", False),
        ("hosted_vllm/claude-like", False),
    ],
)
def test_only_those_who_want_marks_get_them(model: str, is_wanted: bool) -> None:
    """Anthropic's models, wherever they are served."""
    assert wants_markers(load_litellm(), model) is is_wanted


async def test_anthropic_is_sent_the_marks() -> None:
    """In its own form, at its own address."""
    content = [{"type": "text", "text": "Hm."}]
    usage = {"input_tokens": 10, "output_tokens": 5}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    answer = Response(body={**body, "content": content, "usage": usage})
    with serving(lambda _body, _number: answer) as server:
        await ask(request(server.url + "/messages", "anthropic/claude-sonnet-4-5", messages=DIALOGUE))
    (sent,) = server.requests
    ephemeral = {"type": "ephemeral"}
    assert sent["system"] == [{"type": "text", "text": "You are Ann.", "cache_control": ephemeral}]
    last = sent["messages"][-1]["content"]
    assert [part.get("cache_control") for part in last] == [ephemeral, None]


async def test_others_are_sent_plain_text() -> None:
    """Their caches find the prefix by themselves."""
    with serving(lambda _body, _number: completion("Hm.")) as server:
        await ask(request(server.url, messages=DIALOGUE))
    assert all(isinstance(message["content"], str) for message in server.requests[0]["messages"])
