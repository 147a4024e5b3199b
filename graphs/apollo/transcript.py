"""An agent's turns read back from messages, whichever way its calls are written, and as a person reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from dialoom.graphs.conversation import calls_of
from dialoom.graphs.outcome import Line
from dialoom.personas.apollo.text_protocol import read_turn

from .call_lines import call_line, output_line
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
    return [_output(message) for message in messages if isinstance(message, ToolMessage)]


def read_lines(messages: Sequence[BaseMessage], is_native: bool) -> list[Line]:
    """Turns and outputs as a person reads them."""
    made: list[Line] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            made.append(Line(role="tool", content=output_line(_output(message))))
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


def attempt_text(messages: Sequence[BaseMessage], is_native: bool) -> str:
    """An attempt as a later one is shown it: its calls, what they were answered, and its words."""
    return "\n".join(f"{line.role}: {line.content}" for line in read_lines(messages, is_native))


def _output(message: ToolMessage) -> Any:
    """What a tool said; its text, where an agent's own loop had it say something else than JSON."""
    try:
        return json.loads(str(message.content))
    except ValueError:
        return str(message.content)
