"""An agent's turns read back from messages, whichever way its calls are written, and as a person reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from dialoom.graphs.conversation import calls_of
from dialoom.graphs.outcome import Line
from dialoom.personas.apollo.calls import CallError, arguments_of, shown
from dialoom.personas.apollo.text_protocol import read_turn

from .loop import AgentTurn


def turn_of(message: BaseMessage, is_native: bool) -> AgentTurn:
    """A message of the agent's as a turn.

    Args:
        message: The message.
        is_native: Whether calls stand beside the words, as providers have them, or among them as text.
    """
    if is_native:
        return AgentTurn(str(message.content).strip(), calls_of(message))
    words, calls = read_turn(str(message.content))
    return AgentTurn(words, calls)


def turns_of(messages: Sequence[BaseMessage], is_native: bool) -> list[AgentTurn]:
    """The agent's turns among messages."""
    return [turn_of(message, is_native) for message in messages if isinstance(message, AIMessage)]


def outputs_of(messages: Sequence[BaseMessage]) -> list[Any]:
    """What tools said, in order."""
    return [json.loads(str(message.content)) for message in messages if isinstance(message, ToolMessage)]


def read_lines(messages: Sequence[BaseMessage], is_native: bool) -> list[Line]:
    """Turns and outputs as a person reads them."""
    made: list[Line] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            made.append(Line(role="tool", content=output_line(json.loads(str(message.content)))))
        elif isinstance(message, AIMessage):
            turn = turn_of(message, is_native)
            words = [turn.words] if turn.words or not turn.calls else []
            said = "\n".join([*words, *map(call_line, turn.calls)])
            made.append(
                Line(role="assistant", content=said, finish_reason=message.additional_kwargs.get("finish_reason"))
            )
        else:
            made.append(Line(role="user", content=str(message.content)))
    return made


def call_line(call: Mapping[str, Any]) -> str:
    """A call on a line: `book_flight(flight_id="FL381", cabin="economy")`."""
    try:
        given = ", ".join(f"{name}={shown(value)}" for name, value in arguments_of(call).items())
    except CallError:
        given = str(call["arguments"])
    return f"{call['name'] or '?'}({given})"


def output_line(output: Any) -> str:
    """What a tool said: an object on a line, rows on a line each."""
    if isinstance(output, list):
        return "\n".join([f"{len(output)} row{'' if len(output) == 1 else 's'}", *map(_pairs, output)])
    return _pairs(output) if isinstance(output, dict) else shown(output)


def attempt_text(messages: Sequence[BaseMessage], is_native: bool) -> str:
    """An attempt as a later one is shown it: its calls, what they were answered, and its words."""
    return "\n".join(f"{line.role}: {line.content}" for line in read_lines(messages, is_native))


def _pairs(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value if isinstance(value, str) else shown(value)}" for name, value in row.items())
