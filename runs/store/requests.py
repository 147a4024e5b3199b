"""What a call asked, read back from the texts and passages that its request is kept as."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from dialoom.prompts import ChatMessage, ToolDefinition

from .passages import TOOLS, Said, beyond_words_of, read_messages, reading
from .references import ReadText
from .texts import reading as reading_texts

_TOOLS = TypeAdapter(list[dict[str, Any]])
_MESSAGE = TypeAdapter(ChatMessage)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        messages: In their order.
        tools: The definitions of the tools that it offered.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()


def read_asked(connection: sqlite3.Connection, column: str) -> Asked:
    """The request that a call's column `messages` stands for."""
    text = reading_texts(connection)
    said = read_messages(column, reading(connection))
    tools = _TOOLS.validate_json(text(said.pop(0)[1])) if said[:1] and said[0][0] == TOOLS else []
    return Asked(tuple(_message(each, text) for each in said), tuple(tools))


def read_request(connection: sqlite3.Connection, call: int) -> Asked | None:
    """What a call asked, by its row in the ledger; `None` if there is no such call."""
    row = connection.execute("SELECT messages FROM calls WHERE id = ?", (call,)).fetchone()
    return None if row is None else read_asked(connection, row["messages"])


def _message(said: Said, text: ReadText) -> ChatMessage:
    message: ChatMessage = {"role": said[0], "content": text(said[1])}
    if (rest := beyond_words_of(said)) is not None:
        message = _MESSAGE.validate_python({**message, **json.loads(text(rest))})
    return message
