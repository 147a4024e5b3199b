"""Conversations as LangGraph state: langchain-core messages with deterministic ids, and the reducer for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, convert_to_messages

from dialoom.prompts import FunctionCall, Utterance
from dialoom.roles import AgentReply

from .outcome import Line

TOOL = "tool"
"""The name of the speaker of tool results."""

_FINISH_REASON_KEY = "finish_reason"
_CALLS_KEY = "called"
_CARRIED_KEY = "carried"


def said(
    speaker: str,
    content: str,
    position: int,
    finish_reason: str | None = None,
    *,
    tool_calls: Sequence[FunctionCall] = (),
    carried: Mapping[str, Any] | None = None,
) -> BaseMessage:
    """Return a speaker's message (`user`, `assistant`, ...), with an id derived from its position in the conversation.

    Args:
        speaker: The speaker.
        content: The text.
        position: The number of messages before it.
        finish_reason: The reason why the message was cut off, if it was; see `Scene.finish_reason`.
        tool_calls: The message's tool calls. Only the role `assistant` makes tool calls.
        carried: Data from the provider that must be sent back to it with the calls.
    """
    fields: dict[str, Any] = {"id": f"{position}-{speaker}", "name": speaker, "content": content}
    optional = {_FINISH_REASON_KEY: finish_reason, _CALLS_KEY: [*tool_calls], _CARRIED_KEY: carried}
    extra = {name: value for name, value in optional.items() if value}
    if tool_calls or speaker == "assistant":
        return AIMessage(**fields, additional_kwargs=extra, **_to_langchain_calls(tool_calls))
    return HumanMessage(**fields, additional_kwargs=extra)


def acted(reply: AgentReply, position: int, speaker: str = "assistant") -> list[BaseMessage]:
    """Return the reply of a model with tools as messages: usually one, with the text and the calls that are run next.

    If the player has run its calls itself, return one message per call, one per result, and one with the final text.

    Args:
        reply: The reply.
        position: The number of messages before it.
        speaker: The speaker.
    """
    calls, finish_reason, carried = reply.tool_calls, reply.finish_reason, reply.carried
    if not any(reply.outputs):
        return [said(speaker, reply.content, position, finish_reason, tool_calls=calls, carried=carried)]
    messages: list[BaseMessage] = []
    for call, output in zip(calls, reply.outputs, strict=True):
        messages.append(said(speaker, "", position + len(messages), tool_calls=[call]))
        messages.append(tool_said(call, output, position + len(messages)))
    return [*messages, said(speaker, reply.content, position + len(messages), finish_reason)]


def tool_said(call: FunctionCall, content: str, position: int) -> BaseMessage:
    """Return the result of a tool call as a message of the tool.

    Args:
        call: The call.
        content: The result, such as JSON.
        position: The number of messages before it.
    """
    return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"], id=f"{position}-{TOOL}")


def calls_of(message: BaseMessage) -> Sequence[FunctionCall]:
    """Return a message's tool calls as the model wrote them.

    If the message was not created by this module, return the calls as LangChain parsed them.
    """
    if not isinstance(message, AIMessage):
        return ()
    if (stored := message.additional_kwargs.get(_CALLS_KEY)) is not None:
        return tuple(stored)
    if not message.tool_calls and not message.invalid_tool_calls:
        return ()
    valid = [(call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    invalid = [(call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls]
    return tuple({"id": id_ or "", "name": name or "", "arguments": text} for id_, name, text in (*valid, *invalid))


def _to_langchain_calls(calls: Sequence[FunctionCall]) -> dict[str, Any]:
    """Return calls in LangChain's form: first those whose arguments are a JSON object, then the invalid ones."""
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for call in calls:
        arguments: Any = None
        with suppress(ValueError, RecursionError):
            arguments = json.loads(call["arguments"])
        if isinstance(arguments, dict):
            valid.append({"name": call["name"], "args": arguments, "id": call["id"]})
        else:
            invalid.append({"name": call["name"], "args": call["arguments"], "id": call["id"], "error": None})
    return {"tool_calls": valid, "invalid_tool_calls": invalid}


def append_messages(left: Sequence[BaseMessage], right: Sequence[BaseMessage | dict[str, Any]]) -> list[BaseMessage]:
    """Reduce a conversation: append new messages. A message with a known id replaces the old one.

    Messages may also be plain values, because a server receives them in this form from a client that edits a state.

    Raises:
        ValueError: If a message has no id. No random id is assigned to it, because random ids would make runs differ.
    """
    merged = list(left)
    indexes = {message.id: index for index, message in enumerate(merged)}
    for new in right:
        message = new if isinstance(new, BaseMessage) else convert_to_messages([new])[0]
        if message.id is None:
            raise ValueError(f"a message needs an id before it is added to the state: {message.content!r:.60}")
        if message.id in indexes:
            merged[indexes[message.id]] = message
        else:
            indexes[message.id] = len(merged)
            merged.append(message)
    return merged


def joined(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """Reduce a list of plain values by appending new ones."""
    return [*left, *right]


def utterances(messages: Sequence[BaseMessage]) -> list[Utterance]:
    """Return a conversation in the form that prompts take."""
    return [_to_utterance(message) for message in messages]


def _to_utterance(message: BaseMessage) -> Utterance:
    line: Utterance = {"speaker": speaker_of(message), "content": str(message.content)}
    if calls := calls_of(message):
        line["tool_calls"] = [*calls]
    if isinstance(message, ToolMessage):
        line["tool_call_id"] = message.tool_call_id
    if carried := message.additional_kwargs.get(_CARRIED_KEY):
        line["carried"] = carried
    return line


def speaker_of(message: BaseMessage) -> str:
    """Return a message's speaker, which is `tool` for a tool's result."""
    return TOOL if isinstance(message, ToolMessage) else message.name or "user"


def lines(messages: Sequence[BaseMessage]) -> tuple[Line, ...]:
    """Return a conversation in the form that outcomes keep."""
    return tuple(
        Line(
            role=speaker_of(message),
            content=str(message.content),
            finish_reason=message.additional_kwargs.get(_FINISH_REASON_KEY),
            tool_calls=tuple(calls_of(message)),
            tool_call_id=message.tool_call_id if isinstance(message, ToolMessage) else None,
        )
        for message in messages
    )


def to_messages(lines_: Sequence[Line]) -> list[BaseMessage]:
    """Return a finished conversation in the form that the state keeps."""
    calls_by_id = {call["id"]: call for line in lines_ for call in line.tool_calls}
    return [
        tool_said(calls_by_id[line.tool_call_id], line.content, index)
        if line.tool_call_id in calls_by_id
        else said(line.role, line.content, index, line.finish_reason, tool_calls=line.tool_calls)
        for index, line in enumerate(lines_)
    ]


class DialogueState(TypedDict, total=False):
    """The state that is checkpointed after each node.

    Attributes:
        messages: The conversation so far.
        judgements: The judgements so far, as plain values.
        ended_by: The reason why the conversation ended; empty while it goes on.
        marked_opening: Whether an end marker was removed from the first message.
    """

    messages: Annotated[list[BaseMessage], append_messages]
    judgements: Annotated[list[dict[str, Any]], joined]
    ended_by: str
    marked_opening: bool
