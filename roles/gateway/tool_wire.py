"""Tools and tool calls in the chat-completions form, which LiteLLM translates for every provider."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition

_WANTS_REASONING = frozenset({"deepseek", "moonshot"})
"""Providers that reject a reasoning model's tool call in a conversation without its reasoning."""

_NO_GATEWAY = {"_skip_mcp_handler": True}
"""Option that keeps LiteLLM from looking the tool up in its MCP gateway, which imports rarely installed packages."""

_OF_A_THOUGHT = ("type", "thinking", "signature", "data")


def tool_options(litellm: ModuleType, model: str, tools: Sequence[ToolDefinition]) -> dict[str, Any]:
    """Return a request's options for tools: calls are optional, and made one at a time if the provider can do that."""
    if not tools:
        return {}
    options: dict[str, Any] = {"tools": [dict(tool) for tool in tools], "tool_choice": "auto", **_NO_GATEWAY}
    return options | ({"parallel_tool_calls": False} if _takes_one_at_a_time(litellm, model) else {})


@functools.cache
def _takes_one_at_a_time(litellm: ModuleType, model: str) -> bool:
    return "parallel_tool_calls" in (litellm.get_supported_openai_params(model) or ())


def wire_messages(messages: Iterable[ChatMessage], model: str = "") -> list[dict[str, Any]]:
    """Return the messages with neighbours of the same role joined, as some providers reject them apart.

    Tool calls and tool outputs stay apart. A turn in which an agent neither said nor called anything is left out, as
    some
    providers reject that, too.

    Args:
        messages: The messages.
        model: The model that is called: reasoning that a provider wants back is sent to its own models only.
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
    """Return one message in the chat-completions form, without provider data."""
    if is_of_tools(message):
        return _of_tools(message, "")
    return {"role": message["role"], "content": message["content"]}


def is_nothing(message: ChatMessage) -> bool:
    """Return whether a model's message has neither text nor tool calls."""
    return message["role"] == "assistant" and not message["content"].strip() and not is_of_tools(message)


def is_of_tools(message: ChatMessage) -> bool:
    """Return whether a message has tool calls or is a tool's output."""
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
    """Return the tool calls of a reply, without ids; missing parts of malformed calls are left empty.

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
    """Return the provider data that must be sent back with a reply's tool calls: reasoning, perhaps as a signature."""
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
