"""What chat models take and give: messages, among them calls of tools and what the tools said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypeAlias

from typing_extensions import TypedDict  # the standard library's has no fields for pydantic before Python 3.12

ToolDefinition: TypeAlias = Mapping[str, Any]
"""A tool as chat models are told of it: an OpenAI function, `{"type": "function", "function": {"name": ...,
"description": ..., "parameters": JSON Schema}}`."""


class FunctionCall(TypedDict):
    """A call of a tool, as a model made it.

    Attributes:
        id: Told apart by it from the other calls of a conversation: nine letters and digits.
        name: The tool's; the model may have invented it.
        arguments: Their text as it came: a JSON object, if the model kept to that.
    """

    id: str
    name: str
    arguments: str


class ChatMessage(TypedDict):
    """One message of a request, as chat models take it.

    Attributes:
        role: `system`, `user`, `assistant`, or `tool` for what a tool said.
        tool_calls: What an assistant's message calls, besides its words.
        tool_call_id: The call that a tool's message answers.
        carried: What a provider wants back beside calls, such as signed thoughts; nobody else reads it.
    """

    role: str
    content: str
    tool_calls: NotRequired[Sequence[FunctionCall]]
    tool_call_id: NotRequired[str]
    carried: NotRequired[Mapping[str, Any]]


class Utterance(TypedDict):
    """One line of a conversation: who said it, and what; the rest is as in `ChatMessage`."""

    speaker: str
    content: str
    tool_calls: NotRequired[Sequence[FunctionCall]]
    tool_call_id: NotRequired[str]
    carried: NotRequired[Mapping[str, Any]]


def call_text(call: FunctionCall) -> str:
    """A call as people read it: `get_weather(city="Vellin")`; arguments that are no JSON object as they came."""
    try:
        given = json.loads(call["arguments"])
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return f"{call['name']}({call['arguments']})"
    return (
        f"{call['name']}({', '.join(f'{key}={json.dumps(each, ensure_ascii=False)}' for key, each in given.items())})"
    )


def tool_name(definition: ToolDefinition) -> str:
    """What a tool is called; a question mark if its definition is none."""
    function = definition.get("function")
    return str(function.get("name", "?")) if isinstance(function, Mapping) else "?"


def identity(message: ChatMessage) -> list[Any]:
    """What tells a message from others, in a stable order: role and content, and what there is besides."""
    plain = [message["role"], message["content"]]
    return [*plain, rest] if len(message) > 2 and (rest := beyond_words(message)) else plain


def beyond_words(message: ChatMessage) -> dict[str, Any]:
    """What a message is besides its role and content, in a stable order; of most it is nothing."""
    rest: dict[str, Any] = {}
    if calls := message.get("tool_calls"):
        rest["tool_calls"] = [{"id": one["id"], "name": one["name"], "arguments": one["arguments"]} for one in calls]
    if "tool_call_id" in message:
        rest["tool_call_id"] = message["tool_call_id"]
    if carried := message.get("carried"):
        rest["carried"] = dict(carried)
    return rest
