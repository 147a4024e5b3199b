"""Offline models behind the gateway, and reasoning content."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.prompts import Prompt
from dialoom.roles import Gateway, ModelBinding, PermanentProviderError, Role
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.cache import ResponseCache
from dialoom.roles.gateway.completions import split_reasoning
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from tests.ledgers import MemoryLedger, make_place
from tests.roles.gateway.asking import ask, request
from tests.server import ended, serving

PROMPT = "---\nid: mill/count\nversion: 1\nrole: miller\ninputs: [sacks]\nreply: text\n---\n=== user ===\nGrind!\n"


@understudy("mill", "miller")
def count(request: MarkedRequest, _draws: Draws) -> str:
    """Return the prompt, the role and an input that the understudy receives."""
    return json.dumps([request.prompt, request.role, request.inputs.get("sacks")])


class Site:
    """A site that gives every call the same place."""

    def place(self, _messages: object) -> object:
        return make_place()

    def on_completion(self, _completion: object) -> None:
        """Do nothing."""


async def test_prompt_role_and_inputs_are_passed_to_an_understudy_with_the_messages() -> None:
    role = Role(
        Prompt.parse(PROMPT, "t"), ModelBinding(model="offline/generic", temperature=0.0), None, Gateway(MemoryLedger())
    )
    for each in (role, replace(role, name="miller-2")):
        reply = await each({"sacks": 7}, Site())  # type: ignore[arg-type]
        assert json.loads(reply) == ["mill/count", "miller", 7]


async def test_tokens_of_offline_models_are_counted_as_four_characters_each() -> None:
    asked = Request("miller", "mill/a", "offline/generic", 0.0, 1, ({"role": "user", "content": "Grind it!"},))
    reply = await Gateway(MemoryLedger()).complete(asked, make_place())
    assert reply.text == '["mill/a", "miller", null]'  # 26 characters
    assert (reply.input_tokens, reply.output_tokens) == (3, 7)


async def test_equal_messages_of_other_prompts_or_roles_share_no_reply(tmp_path: Path) -> None:
    asked = Request("miller", "mill/a", "offline/generic", 0.0, 1, ({"role": "user", "content": "Grind!"},))
    with ResponseCache(tmp_path / "replies.db") as cache:
        replies = [
            await Gateway(MemoryLedger(), cache=cache).complete(each, make_place())
            for each in (asked, replace(asked, prompt_id="mill/b"), asked)
        ]
    assert [json.loads(each.text)[0] for each in replies] == ["mill/a", "mill/b", "mill/a"]


async def test_call_not_made_by_dialoom_is_refused_by_the_offline_model() -> None:
    litellm, messages = load_litellm(), [{"role": "user", "content": "Hello."}]
    message = r"offline/attentive can only be called by dialoom, which passes it the role and the prompt"
    with pytest.raises(litellm.BadRequestError, match=message):
        litellm.completion(model="offline/attentive", messages=messages)
    with pytest.raises(litellm.BadRequestError, match=message):
        await litellm.acompletion(model="offline/attentive", messages=messages)


async def test_role_without_an_understudy_is_a_permanent_error() -> None:
    asked = Request("baker", "mill/a", "offline/generic", 0.0, 1, ({"role": "user", "content": "Grind!"},))
    with pytest.raises(PermanentProviderError, match=r"no understudy plays the role 'baker' of 'mill'.*play miller"):
        await Gateway(MemoryLedger()).complete(asked, make_place())


@pytest.mark.parametrize(
    ("text", "message", "thought"),
    [
        ("Hello.", "Hello.", None),
        ("1 < 2", "1 < 2", None),
        (" <b>Hello.</b> ", " <b>Hello.</b> ", None),
        ("<think>Hm.</think>Hello.", "Hello.", "Hm."),
        ("<think>\nHm.\nWell.\n</think>\n\nHello.\n", "Hello.", "Hm.\nWell."),
        ("<THINKING>Hm.</THINKING> Hello.", "Hello.", "Hm."),
        ("<think>Hm.", "", "Hm."),
        ("Hm.</think>Hello.", "Hello.", "Hm."),
        ("<think></think>Hello.", "Hello.", None),
        ("<think>a</think>Hello. <think>b</think>Bye.", "Hello. Bye.", "a\n\nb"),
        ("Hello. <think>Hm", "Hello.", "Hm"),
        ("<think>a<think>b</think>c</think>Hello.", "Hello.", "c\n\na<think>b"),
    ],
)
def test_reasoning_is_removed_from_a_reply(text: str, message: str, thought: str | None) -> None:
    assert split_reasoning(text) == (message, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "a", " ", "\n", "<"])))
def test_no_closed_reasoning_block_remains(parts: list[str]) -> None:
    text, _ = split_reasoning("".join(parts))
    assert "</think>" not in text and "</thinking>" not in text


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("<think>Hm.</think>Hello.", None),
        ("Hello.", "Hm."),
        ("Hm.</thinking>Hello.", None),
        ("<thinking>Hm.</thinking>Hello.", None),
    ],
)
async def test_reasoning_reaches_the_ledger_and_not_the_dialogue(content: str, field: str | None) -> None:
    with serving(lambda _body, _number: ended(content, "stop", None, reasoning_content=field)) as server:
        reply = await ask(request(server.url, "hosted_vllm/x"))
    assert (reply.text, reply.reasoning) == ("Hello.", "Hm.")


async def test_reasoning_of_a_function_player_is_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud_player.py").write_text("async def say(messages):\n    return '<think>Hm.</think>Hello.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    reply = await ask(request(None, "python:loud_player:say"))
    assert (reply.text, reply.reasoning) == ("Hello.", "Hm.")
