"""The offline models behind the gateway: what they are told beside the messages, and by whom they can be called."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dialoom.prompts import Prompt
from dialoom.roles import Gateway, ModelBinding, PermanentProviderError, Role
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.cache import ResponseCache
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from tests.ledgers import MemoryLedger, a_place

PROMPT = "---\nid: mill/count\nversion: 1\nrole: miller\ninputs: [sacks]\nreply: text\n---\n=== user ===\nGrind!\n"


@understudy("mill", "miller")
def count(request: MarkedRequest, _draws: Draws) -> str:
    """Says what it is told."""
    return json.dumps([request.prompt, request.role, request.inputs.get("sacks")])


class Site:
    """A place for one call."""

    def place(self, _messages: object) -> object:
        return a_place()

    def heard(self, _completion: object) -> None:
        """Does nothing."""


async def test_prompt_role_and_inputs_reach_an_understudy_beside_the_messages() -> None:
    """Also in a role of another name that plays the same part."""
    role = Role(
        Prompt.parse(PROMPT, "t"), ModelBinding(model="offline/generic", temperature=0.0), None, Gateway(MemoryLedger())
    )
    for each in (role, replace(role, name="miller-2")):
        said = await each({"sacks": 7}, Site())  # type: ignore[arg-type]
        assert json.loads(said) == ["mill/count", "miller", 7]


async def test_prompts_in_the_same_words_share_no_reply_of_the_cache(tmp_path: Path) -> None:
    """Nor do roles: an offline model answers them differently."""
    asked = Request("miller", "mill/a", "0", "offline/generic", 0.0, 1, ({"role": "user", "content": "Grind!"},))
    with ResponseCache(tmp_path / "replies.db") as cache:
        said = [
            await Gateway(MemoryLedger(), cache=cache).complete(each, a_place())
            for each in (asked, replace(asked, prompt_id="mill/b"), asked)
        ]
    assert [json.loads(each.text)[0] for each in said] == ["mill/a", "mill/b", "mill/a"]


async def test_a_call_that_dialoom_did_not_make_is_refused_in_one_sentence() -> None:
    """An offline model cannot tell from the messages what it is to play."""
    litellm, messages = load_litellm(), [{"role": "user", "content": "Hello."}]
    told = r"offline/attentive can only be called by dialoom, which tells it the role and the prompt"
    with pytest.raises(litellm.BadRequestError, match=told):
        litellm.completion(model="offline/attentive", messages=messages)
    with pytest.raises(litellm.BadRequestError, match=told):
        await litellm.acompletion(model="offline/attentive", messages=messages)


async def test_a_role_without_an_understudy_fails_for_good() -> None:
    """With the roles that there are."""
    asked = Request("baker", "mill/a", "0", "offline/generic", 0.0, 1, ({"role": "user", "content": "Grind!"},))
    with pytest.raises(PermanentProviderError, match=r"no understudy plays the role 'baker' of 'mill'.*play miller"):
        await Gateway(MemoryLedger()).complete(asked, a_place())
