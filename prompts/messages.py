"""Messages of chat models: requests and replies, including tool calls and tool results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypeAlias

from typing_extensions import TypedDict  # the standard library's has no fields for pydantic before Python 3.12

ToolDefinition: TypeAlias = Mapping[str, Any]
"""The definition of a tool in the form that chat models accept: an OpenAI function, `{"type": "function", "function":
{"name": ..., "description": ..., "parameters": JSON Schema}}`.
"""


class FunctionCall(TypedDict):
    """A tool call in the form in which a model made it.

    Attributes:
        id: The call's id, which is unique in its conversation: nine letters and digits.
        name: The tool's name; the model may have invented it.
        arguments: The text of the arguments as received, which is normally a JSON object.
    """

    id: str
    name: str
    arguments: str


def pair_results(messages: Iterable[tuple[Sequence[str], str | None, str]]) -> list[str | None]:
    """Return the result of each tool call, in the order of the calls; `None` for a call that was never answered.

    A result belongs to the first unanswered call with its id. Later messages may reuse the ids of earlier calls, whose
    results must then precede these messages.

    Args:
        messages: For each message the ids of its calls, the id of the call that it answers, if any, and its text.
    """
    results: list[str | None] = []
    unanswered: dict[str, list[int]] = {}
    for ids, answered_id, text in messages:
        unanswered |= {id_: [] for id_ in ids}
        for id_ in ids:
            unanswered[id_].append(len(results))
            results.append(None)
        if answered_id is not None and (indexes := unanswered.get(answered_id)):
            results[indexes.pop(0)] = text
    return results


class _MessageFields(TypedDict):
    """The keys that messages and utterances have in common.

    Attributes:
        content: The text.
        tool_calls: The tool calls of an assistant's message, in addition to its text.
        tool_call_id: The id of the call that a tool's message answers.
        carried: Data that must be sent back to the provider with the calls, such as signed thoughts. Nothing else reads
            it.
    """

    content: str
    tool_calls: NotRequired[Sequence[FunctionCall]]
    tool_call_id: NotRequired[str]
    carried: NotRequired[Mapping[str, Any]]


class ChatMessage(_MessageFields):
    """A message of a request. Its `role` is `system`, `user`, `assistant`, or `tool` for a tool's result."""

    role: str


class Utterance(_MessageFields):
    """A line of a conversation, and its `speaker`."""

    speaker: str


def format_call(call: FunctionCall) -> str:
    """Return a call in readable form, e.g. `get_weather(city="Vellin")`. Invalid arguments are shown unchanged."""
    try:
        arguments = json.loads(call["arguments"])
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return f"{call['name']}({call['arguments']})"
    values = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{call['name']}({', '.join(values)})"


def get_tool_name(definition: ToolDefinition) -> str:
    """Return a tool's name, or a question mark if its definition is invalid."""
    function = definition.get("function")
    return str(function.get("name", "?")) if isinstance(function, Mapping) else "?"


def message_identity(message: ChatMessage) -> list[Any]:
    """Return the values that identify a message, in a stable order: role, content, and any other fields."""
    plain = [message["role"], message["content"]]
    return [*plain, extra] if len(message) > 2 and (extra := get_extra_fields(message)) else plain


def get_extra_fields(message: ChatMessage) -> dict[str, Any]:
    """Return a message's fields other than role and content, in a stable order. Most messages have none."""
    extra: dict[str, Any] = {}
    if calls := message.get("tool_calls"):
        extra["tool_calls"] = [
            {"id": call["id"], "name": call["name"], "arguments": call["arguments"]} for call in calls
        ]
    if "tool_call_id" in message:
        extra["tool_call_id"] = message["tool_call_id"]
    if carried := message.get("carried"):
        extra["carried"] = dict(carried)
    return extra
