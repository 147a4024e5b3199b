"""Reasoning between tool turns is sent back to the model in its provider's form, also after a kill and a resume."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.roles.gateway.wire import convert_message, convert_messages, extract_carried
from tests.conftest import ROOT
from tests.processes import CommandProcess
from tests.roles.gateway.asking import KEY
from tests.roles.gateway.test_sent import rejection
from tests.server import Answer, ended, error, serving

LARDER = f"{ROOT / 'docs/examples/larder/larder.py'}:RECIPE"
SIGNED = {"type": "thinking", "thinking": "Count first.", "signature": "c2lnbmVk"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"}
DETAIL = {"type": "reasoning.encrypted", "data": "c2VhbGVk", "index": 0}
LOOK = {"name": "count_jars", "arguments": '{"shelf": "upper"}'}
CALL = {"id": "call_1", "type": "function", "function": LOOK}
USAGE = {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def anthropic_answer(body: dict[str, Any], is_last: bool) -> Answer:
    """Answer as the Messages API: thinking is signed, and a tool call without its thinking is refused."""
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    kinds = [block["type"] for block in blocks if block["type"] in ("thinking", "tool_use")]
    if is_last and (kinds != ["thinking", "tool_use"] or SIGNED not in blocks):
        return error(400, "Expected `thinking`, but found `tool_use`", kind="invalid_request_error")
    usage = {"input_tokens": 9, "output_tokens": 6}
    call = {"type": "tool_use", "id": "toolu_1", "name": LOOK["name"], "input": {"shelf": "upper"}}
    content = [{"type": "text", "text": "Done."}] if is_last else [SIGNED, call]
    reply = {"content": content, "stop_reason": "end_turn" if is_last else "tool_use", "usage": usage}
    return 200, {"id": "m", "type": "message", "role": "assistant", "model": body["model"], **reply}


def google_answer(body: dict[str, Any], is_last: bool) -> Answer:
    """Answer as the Gemini API: the first of parallel calls is signed, and is refused without its signature."""
    parts = [part for content in body["contents"] for part in content["parts"] if "function_call" in part]
    if is_last and [part.get("thoughtSignature") for part in parts] != ["c2lnbmVk", None]:
        return error(400, "Function call is missing a thought_signature")
    call = {"functionCall": {"name": LOOK["name"], "args": {"shelf": "upper"}}}
    reply = [{"text": "Done."}] if is_last else [{**call, "thoughtSignature": "c2lnbmVk"}, call]
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 6}
    candidate = {"content": {"role": "model", "parts": reply}, "finishReason": "STOP"}
    return 200, {"candidates": [candidate], "usageMetadata": counts}


def openai_answer(body: dict[str, Any], is_last: bool) -> Answer:
    """Answer as the Responses API without storage: a call without its reasoning item is refused."""
    if body.keys() & {"temperature", "seed", "max_tokens", "messages", "stop"} or body["store"]:
        return error(400, "Unsupported parameter", "unsupported_parameter", "invalid_request_error")
    kinds = [item.get("encrypted_content", item["type"]) for item in body["input"] if item.get("type") != "message"]
    if is_last and kinds[-3:] != ["c2VhbGVk", "function_call", "function_call_output"]:
        return error(400, "Item 'fc_1' was provided without its required 'reasoning' item")
    usage = {
        "input_tokens": 9,
        "output_tokens": 6,
        "total_tokens": 15,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", **LOOK, "status": "completed"}
    text = {"type": "output_text", "text": "Done.", "annotations": []}
    reply = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [text]}
    whole = {"id": "r", "object": "response", "created_at": 0, "model": body["model"], "status": "completed"}
    return 200, {**whole, "output": [reply] if is_last else [ITEM, call], "usage": usage, "tools": []}


def chat_server(**reasoning: Any) -> Any:
    """Return a chat-completions server that requires the reasoning that it sent with a tool call."""

    def answer(body: dict[str, Any], is_last: bool) -> Answer:
        if is_last:
            asked = next(message for message in body["messages"] if message.get("tool_calls"))
            for name, value in reasoning.items():
                if asked.get(name) != value:
                    return error(400, f"The {name} in the thinking mode must be passed back to the API.")
            return ended("Done.", "stop", USAGE)
        return ended(None, "tool_calls", USAGE, tool_calls=[CALL], **reasoning)

    return answer


def strict_answer(body: dict[str, Any], is_last: bool) -> Answer:
    """Answer as a server that refuses the reasoning that it has sent."""
    if any("reasoning_content" in message for message in body["messages"]):
        return error(400, "property 'reasoning_content' is unsupported")
    if is_last:
        return ended("Done.", "stop", USAGE)
    return ended(None, "tool_calls", USAGE, tool_calls=[CALL], reasoning_content="Count first.")


FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "anthropic/claude-sonnet-4-5": (anthropic_answer, BUDGET),
    "anthropic/claude-opus-4-8": (anthropic_answer, BUDGET),
    "gemini/gemini-3-flash-preview": (google_answer, {}),
    "openai/responses/o4-mini": (openai_answer, {}),
    "deepseek/deepseek-reasoner": (chat_server(reasoning_content="Count first."), {}),
    "deepseek/deepseek-v4-pro": (chat_server(reasoning_content=""), {}),
    "moonshot/kimi-k2-thinking": (chat_server(reasoning_content="Count first."), {}),
    "hosted_vllm/house": (chat_server(reasoning_content="Count first."), {}),
    "openrouter/anthropic/claude-sonnet-4.5": (chat_server(reasoning_details=[DETAIL]), BUDGET),
    "openrouter/google/gemini-3-flash-preview": (chat_server(reasoning_details=[DETAIL]), {}),
    "litellm_proxy/house": (chat_server(thinking_blocks=[SIGNED]), {}),
    "groq/deepseek-r1-distill-llama-70b": (strict_answer, {}),
    "openai/house": (strict_answer, {}),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the providers' keys in the environment."""
    for provider in {model.partition("/")[0] for model in FAMILIES}:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)


def has_results(body: dict[str, Any]) -> bool:
    """Return whether a request has a tool's result, in any provider's form."""
    return any(f'"{word}"' in json.dumps(body) for word in ("tool_result", "function_response", "tool_call_id")) or (
        '"function_call_output"' in json.dumps(body)
    )


@pytest.mark.parametrize("model", FAMILIES)
def test_reasoning_is_sent_back_with_tool_calls_after_a_kill(model: str, tmp_path: Path) -> None:
    answer, params = FAMILIES[model]
    started: list[CommandProcess] = []

    def respond(body: dict[str, Any], number: int) -> Answer:
        if (name := rejection(body)) is not None and answer is not openai_answer:
            return error(400, f"Unsupported parameter: '{name}'", "unsupported_parameter", "invalid_request_error")
        if number == 2:
            started[0].kill()
        result: Answer = answer(body, has_results(body))
        return result

    with serving(respond) as server:
        options = [option for name, value in params.items() for option in ("--param", f"{name}={json.dumps(value)}")]
        path = tmp_path / "run.db"
        arguments = ("run", LARDER, "--larders", "1", "--model", model, "--api-base", server.url, "-o", path, *options)
        with CommandProcess(tmp_path, *arguments) as process:
            started.append(process)
            printed = process.communicate()
            assert process.returncode == -signal.SIGKILL, printed
        run = dialoom.resume(path)
        (episode,) = run.episodes()
        assert len(server.requests) == 3, "the first call is replayed, and the second repeated"
    assert episode.outcome.messages[-1].content == "Done."
    assert server.requests[1] == server.requests[2]
    assert has_results(server.requests[2]) and not has_results(server.requests[0])


def test_openais_own_server_is_called_through_the_responses_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def local(host: Any, *more: Any, **named: Any) -> Any:
        return resolve("127.0.0.1" if str(host).endswith("openai.com") else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    with serving(lambda body, _: openai_answer(body, has_results(body))) as server:
        address = server.url.replace("127.0.0.1", "eu.api.openai.com")
        model = dialoom.Model("openai/gpt-5-mini", api_base=address)
        settings: dict[str, Any] = {"seed": 3, "options": {"larders": 1}, "model": model}
        whole, cut = (tmp_path / f"{name}.db" for name in ("whole", "cut"))
        run = dialoom.play(LARDER, path=whole, **settings)
        events: list[dialoom.Event] = []
        dialoom.play(LARDER, path=cut, **settings, budget=dialoom.Budget(max_calls=1), on_event=events.append)
        resumed = dialoom.resume(cut, budget=dialoom.Budget(max_calls=None), on_event=events.append)
        assert set(server.paths) == {"/v1/responses"} and len(server.requests) == 4
    assert [list(each.episodes()) == list(run.episodes()) for each in (run, resumed)] == [True, True]
    usage = run.status().usage
    assert usage.models == ("openai/gpt-5-mini",) and usage.cost is not None and usage.cost > 0
    (changes,) = run.changes().values()
    assert "the Responses API has no such parameter" in next(iter(changes))
    notices = [each.text for each in events if isinstance(each, dialoom.Notice) and "not sent" in each.text]
    assert len([text for text in notices if "seed not sent (the Responses API" in text]) == 1, "reported once for both"
    assert len(notices) == 2


def test_any_other_server_is_sent_chat_completions(tmp_path: Path) -> None:
    with serving(lambda body, _: chat_server()(body, has_results(body))) as server:
        model = dialoom.Model("openai/gpt-5-mini", api_base=server.url)
        dialoom.play(LARDER, path=tmp_path / "run.db", options={"larders": 1}, model=model)
    assert set(server.paths) == {"/v1/chat/completions"} and "seed" in server.requests[0]


def test_reasoning_is_not_sent_to_another_provider() -> None:
    message = {"thinking_blocks": [SIGNED], "reasoning_content": "Count first.", "reasoning_items": [ITEM]}
    reply = {**message, "tool_calls": [CALL], "provider_specific_fields": {"reasoning_details": [DETAIL]}}
    models = [*FAMILIES, "openai/gpt-4o-mini"]
    for giver in models:
        carried = extract_carried(reply, giver)
        for taker in models:
            turn: Any = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", **LOOK}], "carried": carried}
            (wire,) = convert_messages([turn], taker)
            extra = wire.keys() - convert_message(turn).keys()
            assert len(extra) <= 1 or giver == taker
            if giver == taker and FAMILIES.get(giver, (strict_answer,))[0] is not strict_answer:
                assert extra or giver.startswith("gemini/"), "a model is sent its own reasoning"
            if taker in ("openai/gpt-4o-mini", "openai/house"):
                assert not extra or giver == taker
            assert not extra or not taker.startswith("groq/")


def test_reasoning_of_a_reply_without_calls_is_not_sent_back() -> None:
    turn: Any = {"role": "assistant", "content": "Done.", "carried": {"reasoning_items": [ITEM]}}
    assert convert_messages([turn], "openai/responses/o4-mini") == [{"role": "assistant", "content": "Done."}]
