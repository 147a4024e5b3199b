"""Tools and calls in the form of the chat-completions interface, which LiteLLM translates for every provider."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition

_WANTS_REASONING = frozenset({"deepseek", "moonshot"})
"""Providers that refuse a thinking model's call in a conversation without what it thought."""

_NO_GATEWAY = {"_skip_mcp_handler": True}
"""LiteLLM would look whether a tool is one of its own MCP gateway, and import packages for it that few have."""

_OF_A_THOUGHT = ("type", "thinking", "signature", "data")


def tool_options(litellm: ModuleType, model: str, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """What a request says of tools: the model decides whether it calls, and calls one at a time, if it can be told."""
    if not tools:
        return {}
    options: dict[str, Any] = {"tools": [dict(tool) for tool in tools], "tool_choice": "auto", **_NO_GATEWAY}
    return options | ({"parallel_tool_calls": False} if _takes_one_at_a_time(litellm, model) else {})


@functools.cache
def _takes_one_at_a_time(litellm: ModuleType, model: str) -> bool:
    return "parallel_tool_calls" in (litellm.get_supported_openai_params(model) or ())


def wire_messages(messages: Iterable[ChatMessage], model: str = "") -> list[dict[str, Any]]:
    """The messages with neighbours of the same role joined: some providers refuse them apart.

    Messages that call, and what tools said, stay apart. A turn in which an agent said and did nothing is left out: some
    providers refuse that, too.

    Args:
        messages: The messages.
        model: Who is asked: what a provider wants back of thoughts is sent to its own models alone.
    """
    joined: list[dict[str, Any]] = []
    for message in messages:
        if is_of_tools(message):
            joined.append(_of_tools(message, model))
        elif is_nothing(message):
            continue
        elif joined and joined[-1]["role"] == message["role"] and "tool_calls" not in joined[-1]:
            joined[-1]["content"] += "\n\n" + message["content"]
        else:
            joined.append(as_sent(message))
    return joined


def as_sent(message: ChatMessage) -> dict[str, Any]:
    """One message in the chat-completions form, without what only a provider wants back."""
    if is_of_tools(message):
        return _of_tools(message, "")
    return {"role": message["role"], "content": message["content"]}


def is_nothing(message: ChatMessage) -> bool:
    """Whether a model has said nothing in its turn, and called nothing."""
    return message["role"] == "assistant" and not message["content"].strip() and not is_of_tools(message)


def is_of_tools(message: ChatMessage) -> bool:
    """Whether a message calls tools, or is what one said."""
    return bool(message.get("tool_calls")) or "tool_call_id" in message


def _of_tools(message: ChatMessage, model: str) -> dict[str, Any]:
    if "tool_call_id" in message:
        return {"role": "tool", "tool_call_id": message["tool_call_id"], "content": message["content"]}
    carried = message.get("carried") or {}
    signatures = carried.get("signatures", ()) if "gemini" in model else ()
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in message["tool_calls"]
    ]
    for call, signature in zip(calls, signatures, strict=False):
        call["provider_specific_fields"] = {"thought_signature": signature}
    wanted = {
        "thinking_blocks": "claude" in model,
        "reasoning_content": model.partition("/")[0] in _WANTS_REASONING,
    }
    thoughts = {name: carried[name] for name, is_wanted in wanted.items() if is_wanted and name in carried}
    return {"role": "assistant", "content": message["content"] or None, "tool_calls": calls, **thoughts}


def read_calls(given: object) -> tuple[FunctionCall, ...]:
    """Calls out of a reply; whatever there is of a broken one counts. They have no ids yet.

    Args:
        given: A list of calls in the chat-completions form, or of plain `name` and `arguments`; objects or mappings.
    """
    return tuple(map(_call, given)) if isinstance(given, list | tuple) else ()


def _call(given: object) -> FunctionCall:
    function = _part(given, "function") or given
    name, arguments = _part(function, "name"), _part(function, "arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return FunctionCall(id="", name=name if isinstance(name, str) else "", arguments=arguments or "")


def carried_of(message: object, model: str) -> dict[str, Any] | None:
    """What a provider will want back with the calls of a reply: signed thoughts, or the thoughts themselves."""
    blocks, reasoning = _part(message, "thinking_blocks"), _part(message, "reasoning_content")
    found: dict[str, Any] = {}
    if isinstance(blocks, list):
        found["thinking_blocks"] = [
            {name: said for name in _OF_A_THOUGHT if isinstance(said := _part(block, name), str)} for block in blocks
        ]
    if isinstance(reasoning, str) and model.partition("/")[0] in _WANTS_REASONING:
        found["reasoning_content"] = reasoning
    signatures = [
        _part(_part(call, "provider_specific_fields"), "thought_signature")
        for call in _part(message, "tool_calls") or ()
    ]
    if signatures and all(isinstance(each, str) for each in signatures):
        found["signatures"] = signatures
    return {name: part for name, part in found.items() if part} or None


def _part(of: object, name: str) -> Any:
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)
