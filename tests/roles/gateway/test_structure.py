"""Structured replies: what is asked of which model, and what happens when it will not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from dialoom.prompts import ChatMessage, Prompt
from dialoom.roles import (
    CallPlace,
    Gateway,
    ModelBinding,
    PermanentProviderError,
    Role,
    Score5,
    UnparsedReplyError,
    Verdict,
)
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from dialoom.roles.gateway.structure import Shapes
from tests.ledgers import MemoryLedger, a_place
from tests.roles.gateway.asking import QUICK, ask, request
from tests.server import Answer, ChatServer, completion, ended, error, serving

pytestmark = pytest.mark.usefixtures("keyed")

PROMPT = "---\nid: t/x\nversion: 1\nrole: judge\ninputs: []\nreply: text\n---\n=== user ===\nAnswer in JSON.\n"


class Once:
    """Where one call is made."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """The same place each time."""
        return a_place()

    def heard(self, completion: Any) -> None:
        """Nothing is done with it."""


async def played(server: ChatServer, type_: type[BaseModel] | None, ledger: MemoryLedger | None = None) -> Any:
    """What a role makes of the server's replies."""
    binding = ModelBinding(model="openai/gpt-4o-mini", temperature=0.0, api_base=server.url)
    return await Role(Prompt.parse(PROMPT, "t"), binding, type_, Gateway(ledger or MemoryLedger(), QUICK))({}, Once())


async def test_a_model_that_knows_schemas_is_given_the_types() -> None:
    """In the strict form that providers want: everything required, nothing else allowed."""
    with serving(lambda _body, _number: completion('{"score": 4, "explanation": "so"}')) as server:
        assert await played(server, Score5) == Score5(score=4, explanation="so")
    (body,) = server.requests
    assert body["response_format"]["type"] == "json_schema"
    given = body["response_format"]["json_schema"]
    assert given["strict"] is True and given["name"] == "Score5"
    assert given["schema"]["required"] == ["score", "explanation"]
    assert given["schema"]["additionalProperties"] is False
    assert given["schema"]["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    assert "default" not in str(given)


async def test_a_role_of_plain_text_is_held_to_no_shape() -> None:
    """Nothing is asked for."""
    with serving(lambda _body, _number: completion("Words.")) as server:
        assert await played(server, None) == "Words."
    assert "response_format" not in server.requests[0]


@pytest.mark.parametrize(("content", "is_asked"), [("Answer in JSON.", True), ("Answer.", False)])
async def test_a_model_without_schemas_is_asked_for_json_mode_if_the_request_speaks_of_it(
    content: str, is_asked: bool
) -> None:
    """Providers refuse JSON mode in a request that does not."""
    with serving(lambda _body, _number: completion('{"score": 4}')) as server:
        await ask(request(server.url, "hosted_vllm/x", content, reply_type=Score5, structured="json"))
    assert server.requests[0].get("response_format") == ({"type": "json_object"} if is_asked else None)


async def test_a_provider_that_refuses_shapes_is_not_asked_for_one_again() -> None:
    """The refusal is a failed attempt of the first call; later calls do without at once."""

    def answer(body: dict[str, Any], _number: int) -> Answer:
        if "response_format" in body:
            return error(400, "Invalid parameter: 'response_format' is not supported with this model.")
        return completion('{"score": 4}')

    ledger = MemoryLedger()
    gateway = Gateway(ledger, QUICK)
    with serving(answer) as server:
        for step in (1, 2):
            reply = await gateway.complete(request(server.url, reply_type=Score5), a_place(step=step))
            assert reply.text == '{"score": 4}'
        assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert len(ledger.attempts) == 1
    assert "not asked for a shape as JSON schema" in ledger.attempts[0][1].error


async def test_a_server_in_no_table_is_asked_in_one_form_after_the_other() -> None:
    """As OpenAI does, as llama.cpp does, in JSON mode, by words alone; what was found out holds for later calls."""
    refused = 0

    def answer(body: dict[str, Any], _number: int) -> Answer:
        forms = ["json_schema", "json_object with schema", "json_object", "none"]
        given = body.get("response_format") or {"type": "none"}
        form = given["type"] + (" with schema" if "schema" in given else "")
        if forms.index(form) < refused:
            return error(500, "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}]")
        return completion('{"score": 4}')

    with serving(answer) as server:
        for refused in range(4):
            shapes, ledger = Shapes(), MemoryLedger()
            asked = request(server.url, "hosted_vllm/x", "Answer in JSON.", reply_type=Score5)
            await Gateway(ledger, QUICK, shapes=shapes).complete(asked, a_place())
            await Gateway(ledger, QUICK, shapes=Shapes(shapes.found)).complete(asked, a_place(step=2))
            assert [record.attempts for record in ledger.records.values()] == [refused + 1, 1]


async def test_a_form_that_was_chosen_is_kept_to() -> None:
    """`prompt` asks for no shape; `schema` fails where it is refused, and says what would do."""
    refusal = error(400, "response_format: json_schema is not supported")
    with serving(lambda body, _number: refusal if "response_format" in body else completion("{}")) as server:
        assert (await ask(request(server.url, reply_type=Score5, structured="prompt"))).text == "{}"
        with pytest.raises(PermanentProviderError, match="let structured be 'auto'"):
            await ask(request(server.url, reply_type=Score5, structured="schema"))


def test_only_a_form_that_was_chosen_is_part_of_a_calls_identity() -> None:
    """What was recorded by default is found again."""
    plain = request("http://127.0.0.1:1", reply_type=Score5)
    assert replace(plain, reply_type=None).key(a_place()) == plain.key(a_place())
    keys = {replace(plain, structured=each).key(a_place()) for each in ("auto", "schema", "json", "prompt")}
    assert len(keys) == 4 and plain.key(a_place()) in keys


async def test_another_bad_request_is_final_although_a_shape_was_asked_for() -> None:
    """Only a refusal that names the shape is taken for one."""
    with serving(lambda _body, _number: error(400, "temperature is too high")) as server:
        with pytest.raises(PermanentProviderError):
            await ask(request(server.url, reply_type=Score5))
        assert len(server.requests) == 1


async def test_the_offline_model_is_asked_for_no_shape_and_needs_no_address() -> None:
    """It is no provider; LiteLLM says that every custom one knows JSON mode."""
    asked = request(None, "offline/generic", "Answer in JSON.", reply_type=Verdict)
    asked = replace(asked, prompt_id="personalens/judge-task-completion")
    assert (await LiteLLMBackend().complete(asked, "key")).text


async def test_broken_json_is_mended_without_a_second_ask() -> None:
    """One request."""
    with serving(lambda _body, _number: completion("Sure: {'score': 4, 'explanation': 'it\n's fine',}")) as server:
        assert (await played(server, Score5)).score == 4
        assert len(server.requests) == 1


async def test_a_reply_that_is_no_answer_is_asked_for_once_more_and_then_given_up() -> None:
    """The error is shown to the model, and a reply that was cut off is told so."""
    with serving(lambda _body, _number: ended('{"score": 4', "length")) as server:
        with pytest.raises(UnparsedReplyError, match="cut off because it was too long"):
            await played(server, Score5)
        assert len(server.requests) == 2
    assert "cut off because it was too long" in server.requests[1]["messages"][-1]["content"]


async def test_reasoning_is_not_shown_to_the_model_again() -> None:
    """The second ask quotes what the model said, not what it thought."""
    answer = completion("<think>five?</think>Five.")
    with serving(lambda _body, _number: answer) as server, pytest.raises(UnparsedReplyError):
        await played(server, Score5)
    assert [message["content"] for message in server.requests[1]["messages"]][1] == "Five."
