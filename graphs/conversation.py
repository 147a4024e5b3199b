"""The conversation as LangGraph state: langchain-core messages with ids of our own, and their reducer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from dialoom.prompts import Utterance

from .outcome import Line

_FINISH_REASON = "finish_reason"


def said(speaker: str, content: str, position: int, finish_reason: str | None = None) -> BaseMessage:
    """A message by a speaker (`user`, `assistant`, ...); its id follows from its place in the conversation.

    Args:
        speaker: Who says it.
        content: What is said.
        position: How many messages there are before it.
        finish_reason: Why it breaks off, if it does; see `Scene.finish_reason`.
    """
    class_ = AIMessage if speaker == "assistant" else HumanMessage
    more = {} if finish_reason is None else {_FINISH_REASON: finish_reason}
    return class_(content=content, id=f"{position}-{speaker}", name=speaker, additional_kwargs=more)


def appended(left: Sequence[BaseMessage], right: Sequence[BaseMessage | dict[str, Any]]) -> list[BaseMessage]:
    """The reducer of a conversation: new messages go to the end, one whose id is known takes that one's place.

    Messages may also be plain values, as a server gets them from whoever edits a state.

    Raises:
        ValueError: If a message has no id: a random one would make runs differ.
    """
    merged = list(left)
    places = {message.id: index for index, message in enumerate(merged)}
    for given in right:
        message = given if isinstance(given, BaseMessage) else convert_to_messages([given])[0]
        if message.id is None:
            raise ValueError(f"a message needs an id before it is kept: {message.content!r:.60}")
        if message.id in places:
            merged[places[message.id]] = message
        else:
            places[message.id] = len(merged)
            merged.append(message)
    return merged


def joined(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The reducer of a list of plain values that only grows."""
    return [*left, *right]


def utterances(messages: Sequence[BaseMessage]) -> list[Utterance]:
    """The conversation as prompts take it."""
    return [{"speaker": message.name or "user", "content": str(message.content)} for message in messages]


def lines(messages: Sequence[BaseMessage]) -> tuple[Line, ...]:
    """The conversation as outcomes keep it."""
    return tuple(
        Line(
            role=message.name or "user",
            content=str(message.content),
            finish_reason=message.additional_kwargs.get(_FINISH_REASON),
        )
        for message in messages
    )


def messages_of(lines_: Sequence[Line]) -> list[BaseMessage]:
    """The state's messages of a finished conversation."""
    return [said(line.role, line.content, index, line.finish_reason) for index, line in enumerate(lines_)]
