"""Structured replies and tools over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, Prompt
from dialoom.roles import (
    CallPlace,
    Completion,
    Gateway,
    ModelBinding,
    PermanentProviderError,
    Role,
    UnparsedReplyError,
    Verdict,
    score_type,
)
from dialoom.roles.gateway.cache import ResponseCache, add_cache_markers, cache_key
from dialoom.roles.gateway.completions import deserialize_reply, serialize_reply
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from dialoom.roles.gateway.model_facts import supports_tools
from dialoom.roles.gateway.wire import RejectedForms, convert_messages
from tests.ledgers import MemoryLedger, make_place, make_request
from tests.roles.gateway.asking import QUICK, ask, request
from tests.server import Answer, ChatServer, Response, completion, ended, error, serving

pytestmark = pytest.mark.usefixtures("keyed")

PROMPT = "---\nid: t/x\nversion: 1\nrole: judge\ninputs: []\nreply: text\n---\n=== user ===\nAnswer in JSON.\n"


class Site:
    """A site that gives every call the same place."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """Return the place."""
        return make_place()

    def on_completion(self, completion: Any) -> None:
        """Do nothing."""


async def play_role(server: ChatServer, type_: type[BaseModel] | None, ledger: MemoryLedger | None = None) -> Any:
    """Return what a role parses from the server's replies."""
    binding = ModelBinding(model="openai/gpt-4o-mini", temperature=0.0, api_base=server.url)
    return await Role(Prompt.parse(PROMPT, "t"), binding, type_, Gateway(ledger or MemoryLedger(), QUICK))({}, Site())


async def test_model_that_knows_schemas_gets_strict_types() -> None:
    with serving(lambda _body, _number: completion('{"score": 4, "explanation": "so"}')) as server:
        assert await play_role(server, score_type(1, 5)) == score_type(1, 5)(score=4, explanation="so")
    (body,) = server.requests
    assert body["response_format"]["type"] == "json_schema"
    given = body["response_format"]["json_schema"]
    assert given["strict"] is True and given["name"] == "Score5"
    assert given["schema"]["required"] == ["score", "explanation"]
    assert given["schema"]["additionalProperties"] is False
    assert given["schema"]["properties"]["score"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    assert "default" not in str(given)


@pytest.mark.parametrize(
    ("asked", "keys"),
    [
        ('Answer in JSON: "explanation" is why, "score" is from 1 to 5.', ["explanation", "score"]),
        ('Answer in JSON: "score" is from 1 to 5, "explanation" is why.', ["score", "explanation"]),
        ('Answer in JSON: "explanation" is why.', ["score", "explanation"]),
        ('Answer in JSON: "score" is from 1 to 5.', ["score", "explanation"]),
    ],
)
async def test_keys_of_the_schema_have_the_order_of_the_prompt(asked: str, keys: list[str]) -> None:
    with serving(lambda _body, _number: completion('{"score": 4, "explanation": "so"}')) as server:
        await ask(request(server.url, content=asked, reply_type=score_type(1, 5), structured="schema"))
    assert [*server.requests[0]["response_format"]["json_schema"]["schema"]["properties"]] == keys


async def test_plain_text_role_gets_no_response_format() -> None:
    with serving(lambda _body, _number: completion("Words.")) as server:
        assert await play_role(server, None) == "Words."
    assert "response_format" not in server.requests[0]


@pytest.mark.parametrize(("content", "is_asked"), [("Answer in JSON.", True), ("Answer.", False)])
async def test_json_mode_is_used_only_if_the_request_mentions_it(content: str, is_asked: bool) -> None:
    with serving(lambda _body, _number: completion('{"score": 4}')) as server:
        reply = await ask(request(server.url, "hosted_vllm/x", content, reply_type=score_type(1, 5), structured="json"))
    assert server.requests[0].get("response_format") == ({"type": "json_object"} if is_asked else None)
    change = "structured 'json' sent as 'prompt alone' (the prompt does not mention JSON)"
    assert (change in (reply.changes or "")) is not is_asked


async def test_model_without_response_formats_is_asked_by_the_prompt_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARITALK_API_KEY", "key")
    with serving(lambda _body, _number: completion('{"score": 4}')) as server:
        await ask(request(server.url, "maritalk/x", "Answer in JSON.", reply_type=score_type(1, 5)))
    assert "response_format" not in server.requests[0]


async def test_another_form_than_the_chosen_one_is_recorded() -> None:
    refusal = error(400, "response_format: json_schema is not supported")

    def answer(body: dict[str, Any], _number: int) -> Answer:
        return refusal if body["response_format"]["type"] == "json_schema" else completion('{"score": 4}')

    with serving(answer) as server:
        asked = request(server.url, reply_type=score_type(1, 5), structured="schema")
        change = "structured 'schema' sent as 'JSON mode with a schema'"
        assert change in ((await ask(asked)).changes or "")
        strict = Gateway(MemoryLedger(), QUICK.model_copy(update={"strict_params": True}))
        with pytest.raises(PermanentProviderError, match=f"strict_params: {change}"):
            await strict.complete(asked, make_place())
    assert [body["response_format"]["type"] for body in server.requests] == [
        "json_schema",
        "json_object",
        "json_schema",
    ]


async def test_provider_that_refuses_response_formats_is_not_sent_one_again() -> None:
    def answer(body: dict[str, Any], _number: int) -> Answer:
        if "response_format" in body:
            return error(400, "Invalid parameter: 'response_format' is not supported with this model.")
        return completion('{"score": 4}')

    ledger = MemoryLedger()
    gateway = Gateway(ledger, QUICK)
    with serving(answer) as server:
        for step in (1, 2):
            reply = await gateway.complete(request(server.url, reply_type=score_type(1, 5)), make_place(step=step))
            assert reply.text == '{"score": 4}'
        assert ["response_format" in body for body in server.requests] == [True, False, False]
    assert len(ledger.attempts) == 1
    assert "not requested as JSON schema" in ledger.attempts[0][1].error


async def test_forms_are_tried_in_turn_on_an_unknown_server() -> None:
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
            shapes, ledger = RejectedForms(), MemoryLedger()
            asked = request(server.url, "hosted_vllm/x", "Answer in JSON.", reply_type=score_type(1, 5))
            await Gateway(ledger, QUICK, shapes=shapes).complete(asked, make_place())
            await Gateway(ledger, QUICK, shapes=RejectedForms(shapes.by_model)).complete(asked, make_place(step=2))
            assert [record.attempts for record in ledger.records.values()] == [refused + 1, 1]


async def test_chosen_form_is_not_replaced() -> None:
    refusal = error(400, "response_format: json_schema is not supported")
    with serving(lambda body, _number: refusal if "response_format" in body else completion("{}")) as server:
        assert (await ask(request(server.url, reply_type=score_type(1, 5), structured="prompt"))).text == "{}"
        with pytest.raises(PermanentProviderError, match="set structured to 'auto'"):
            await ask(request(server.url, reply_type=score_type(1, 5), structured="schema"))


def test_only_a_chosen_form_is_part_of_a_calls_identity() -> None:
    plain = request("http://127.0.0.1:1", reply_type=score_type(1, 5))
    assert replace(plain, reply_type=None).call_key(make_place()) == plain.call_key(make_place())
    keys = {replace(plain, structured=each).call_key(make_place()) for each in ("auto", "schema", "json", "prompt")}
    assert len(keys) == 4 and plain.call_key(make_place()) in keys


async def test_other_bad_requests_are_not_retried() -> None:
    with serving(lambda _body, _number: error(400, "temperature is too high")) as server:
        with pytest.raises(PermanentProviderError):
            await ask(request(server.url, reply_type=score_type(1, 5)))
        assert len(server.requests) == 1


async def test_offline_model_gets_no_response_format_and_needs_no_address() -> None:
    asked = request(None, "offline/generic", "Answer in JSON.", reply_type=Verdict)
    asked = replace(asked, prompt_id="personalens/judge-task-completion")
    assert (await LiteLLMBackend().complete(asked, "key")).text


async def test_broken_json_is_repaired_without_a_second_request() -> None:
    with serving(lambda _body, _number: completion("Sure: {'score': 4, 'explanation': 'it\n's fine',}")) as server:
        assert (await play_role(server, score_type(1, 5))).score == 4
        assert len(server.requests) == 1


async def test_invalid_reply_is_requested_once_more_and_then_unparsed() -> None:
    with serving(lambda _body, _number: ended('{"score": 4', "length")) as server:
        with pytest.raises(UnparsedReplyError, match="cut off because it was too long"):
            await play_role(server, score_type(1, 5))
        assert len(server.requests) == 2
    assert "cut off because it was too long" in server.requests[1]["messages"][-1]["content"]


async def test_reasoning_is_not_shown_to_the_model_again() -> None:
    answer = completion("<think>five?</think>Five.")
    with serving(lambda _body, _number: answer) as server, pytest.raises(UnparsedReplyError):
        await play_role(server, score_type(1, 5))
    assert [message["content"] for message in server.requests[1]["messages"]][1] == "Five."


WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = FunctionCall(id="aB3dE5gH7", name="get_weather", arguments='{"city": "Vellin"}')
TALK: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Rain?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"rain": true}', "tool_call_id": CALL["id"]},
    {"role": "user", "content": "Go on."},
)


def tool_call_answer(*calls: tuple[str, Any], text: str | None = None) -> Answer:
    """Return an answer with tool calls."""
    made = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return ended(text, "tool_calls", {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, tool_calls=made)


async def test_tools_calls_and_outputs_are_sent_in_the_providers_form() -> None:
    with serving(lambda _body, _number: tool_call_answer(("get_weather", '{"city": "Vellin"}'))) as server:
        await ask(request(server.url, messages=TALK, tools=(WEATHER,)))
    (body,) = server.requests
    always = {"model", "messages", "temperature", "seed"}
    assert body.keys() == always | {"tools", "tool_choice", "parallel_tool_calls"}
    assert (body["tools"], body["tool_choice"], body["parallel_tool_calls"]) == ([WEATHER], "auto", False)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    (sent,) = body["messages"][2]["tool_calls"]
    assert (sent["id"], sent["function"]) == (CALL["id"], {"name": "get_weather", "arguments": '{"city": "Vellin"}'})
    assert (body["messages"][3]["tool_call_id"], body["messages"][3]["content"]) == (CALL["id"], '{"rain": true}')


def test_empty_turn_is_not_sent_and_cache_marks_are_on_text() -> None:
    silence: ChatMessage = {"role": "assistant", "content": " "}
    messages = (*TALK[:2], silence, *TALK[4:], *TALK[2:4])
    assert [each["role"] for each in convert_messages(messages)] == ["system", "user", "assistant", "tool"]
    assert convert_messages(messages)[1]["content"] == "Rain?\n\nGo on."
    system, user, tool_call_answer, output = add_cache_markers(messages, is_growing=True)
    ends = [part["text"] for each in (system, user) for part in each["content"] if "cache_control" in part]
    assert ends == ["You are brief.", "\n\nGo on."]
    assert (tool_call_answer["tool_calls"][0]["id"], output["tool_call_id"]) == (CALL["id"], CALL["id"])


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        (tool_call_answer(("get_weather", '{"city": "Vellin"}')), "", [("get_weather", '{"city": "Vellin"}')]),
        (tool_call_answer(("get_weather", '{"city": Vel')), "", [("get_weather", '{"city": Vel')]),
        (tool_call_answer(("get_wether", "{}")), "", [("get_wether", "{}")]),
        (tool_call_answer(("a", "{}"), ("b", "[1]")), "", [("a", "{}"), ("b", "[1]")]),
        (tool_call_answer(("a", "{}"), text="One moment."), "One moment.", [("a", "{}")]),
        (tool_call_answer(("a", '{"b": "\ud83d"}')), "", [("a", '{"b": "\ufffd"}')]),
        (ended(None, "stop"), "", []),
        (ended("", "tool_calls", tool_calls=[]), "", []),
    ],
    ids=["one", "no JSON", "unknown", "two at once", "call and words", "half a character", "nothing", "no call"],
)
async def test_calls_are_read_as_sent(answer: Answer, text: str, calls: list[tuple[str, str]]) -> None:
    with serving(lambda _body, _number: answer) as server:
        reply = await ask(request(server.url, messages=TALK, tools=(WEATHER,)))
    assert len(server.requests) == 1
    assert (reply.text, [(call["name"], call["arguments"]) for call in reply.tool_calls]) == (text, calls)
    ids = [call["id"] for call in reply.tool_calls]
    assert len(set(ids)) == len(calls) and all(re.fullmatch("[A-Za-z0-9]{9}", id_) for id_ in ids)


@pytest.mark.parametrize(
    "tool_calls",
    [
        [{"id": "x", "type": "function", "function": {"name": None, "arguments": None}}],
        [{"id": None, "type": "function", "function": {"name": "a", "arguments": {"city": "\ud83d"}}}],
        [{"type": "function"}],
        [{"id": 3, "function": "a"}],
        {"name": "a"},
        "a",
        [None],
    ],
    ids=["no name", "object", "no function", "text", "mapping", "word", "null"],
)
async def test_malformed_calls_leave_the_text_and_can_be_stored(tool_calls: Any) -> None:
    raw = json.dumps(ended("Hm.", "tool_calls", tool_calls=tool_calls)[1]).encode()
    ledger = MemoryLedger()
    with serving(lambda _body, _number: Response(raw=raw)) as server:
        reply = await ask(request(server.url, messages=TALK, tools=(WEATHER,)), ledger)
    assert reply.text == "Hm."
    assert deserialize_reply(Completion(serialize_reply(reply))) == replace(
        Completion("Hm."), tool_calls=reply.tool_calls
    )
    json.dumps(reply.tool_calls, ensure_ascii=False).encode()


async def test_ids_of_calls_are_reproducible() -> None:
    asked = request(None, messages=TALK, tools=(WEATHER,))
    with serving(lambda _body, number: tool_call_answer((f"tool_{number}", "{}"))) as server:
        asked = replace(asked, api_base=server.url)
        first, again = [(await ask(asked)).tool_calls[0] for _ in range(2)]
    assert first["id"] == again["id"] and first["name"] != again["name"]
    reply = Completion("", tool_calls=(CALL, CALL))
    one, other = (reply.with_ids(asked.call_key(make_place(step=step))) for step in (1, 2))
    assert len({call["id"] for call in (*one.tool_calls, *other.tool_calls)}) == 4


def test_identities_of_requests_without_tools_are_unchanged() -> None:
    plain = make_request()
    assert plain.call_key(make_place()) == "734794cc481d509b7e91ac5ed605787d3054b950014cb45070a611620cfc35d1"
    assert cache_key(plain, make_place()).hex() == "b9b2ad8f0625c9c8cc3d0c06e70731fcf37fbb69e3231ce33421e0e380fe453d"
    offered = replace(plain, tools=(WEATHER,))
    answered = [replace(plain, messages=TALK[:4]), replace(plain, messages=TALK[:3])]
    renamed = replace(plain, messages=(*TALK[:2], {**TALK[2], "tool_calls": [{**CALL, "id": "other1234"}]}))
    requests = [plain, offered, *answered, renamed]
    for identity in (lambda each: each.call_key(make_place()), lambda each: cache_key(each, make_place())):
        assert len({identity(each) for each in requests}) == len(requests)


async def test_shared_cache_stores_tool_calls(tmp_path: Path) -> None:
    offered = replace(make_request(), tools=(WEATHER,))
    with ResponseCache(tmp_path / "cache.db") as cache:
        replies = (Completion("Hm.", tool_calls=(CALL,)), Completion('{"content":"a","tool_calls":[]}'))
        for sample, reply in enumerate(replies):
            place = replace(make_place(), sample=sample)
            await cache.store(offered, place, reply)
            assert await cache.find(offered, place) == reply


@pytest.mark.parametrize(
    "reply",
    [
        Completion("Plain words."),
        Completion(""),
        Completion('{"content":"", "tool_calls": [{"name": "a"}]}'),
        Completion('{"content":"x","tool_calls":[]}'),
        Completion('{"content":"","tool_calls":[{"id":"a","name":"b","arguments":"c"}]}'),
        Completion(serialize_reply(Completion('{"content":"","tool_calls":[{"id":"a","name":"b","arguments":"c"}]}'))),
        Completion("Words.", tool_calls=(CALL,), outputs=("[]",), carried={"thinking_blocks": [{"type": "thinking"}]}),
        Completion("", tool_calls=(CALL, {**CALL, "arguments": '{"broken'})),
    ],
)
def test_stored_reply_is_read_unchanged(reply: Completion) -> None:
    assert deserialize_reply(Completion(serialize_reply(reply))) == reply


async def test_signed_reasoning_is_sent_only_to_its_provider() -> None:
    thinking = {"type": "thinking", "thinking": "It may rain.", "signature": "c2lnbmVk"}
    content = [thinking, {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Vellin"}}]
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }
    asked = request(None, "anthropic/claude-sonnet-4-5", messages=TALK[:2], tools=(WEATHER,), max_reply=4000)
    asked = replace(asked, temperature=1.0, params={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    with serving(lambda _body, number: Response(body=body) if number < 3 else ended("Dry.", "stop")) as server:
        root = server.url.removesuffix("/v1")
        reply = await ask(replace(asked, api_base=root))
        assert reply.carried == {"thinking_blocks": [thinking]} and reply.reasoning == "It may rain."
        message: ChatMessage = {
            "role": "assistant",
            "content": reply.text,
            "tool_calls": reply.tool_calls,
            "carried": reply.carried,
        }
        output: ChatMessage = {"role": "tool", "content": "{}", "tool_call_id": reply.tool_calls[0]["id"]}
        await ask(replace(asked, messages=(*TALK[:2], message, output), api_base=root))
        await ask(request(server.url, messages=(*TALK[:2], message, output), tools=(WEATHER,)))
    sent, other = server.requests[1:]
    blocks = sent["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "tool_use"] and blocks[0] == thinking
    assert "c2lnbmVk" not in json.dumps(other)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (404, "No endpoints found that support tool use."),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ],
)
async def test_model_without_tool_support_is_named(status: int, message: str) -> None:
    no_tools = "the model, as served, accepts no tools"
    for said, advice in ((message, no_tools), ("tools[0].function.name: too long", "too long")):
        with serving(lambda _body, _number, said=said: error(status, said)) as server:  # type: ignore[misc]
            with pytest.raises(PermanentProviderError, match=advice) as failed:
                await ask(request(server.url, messages=TALK, tools=(WEATHER,)))
            assert len(server.requests) == 1
        assert (said is message) == (no_tools in str(failed.value))


@pytest.mark.parametrize(
    ("model", "is_known"),
    [
        ("openai/gpt-4o-mini", True),
        ("anthropic/claude-sonnet-4-5", True),
        ("openai/a-model-of-mine", False),
        ("offline/attentive", False),
        ("python:some.module:function", False),
        ("graph:some/file.py:graph", False),
        ("object:echo", False),
    ],
)
def test_tool_support_of_known_models(model: str, is_known: bool) -> None:
    assert supports_tools(model) is is_known
