"""Pools of unrelated talk: chats in the layout of PrefEval's `filtered_inter_turns.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError

from .json_rows import read_rows, text_of
from .pair import ChatLine

DEFAULT_POOL = Path(__file__).parent / "samples" / "filtered_inter_turns.json"
_SPEAKERS = ("user", "assistant")


def read_chats(path: Path) -> list[list[ChatLine]]:
    """The chats of a pool, in its order; each goes strictly from user to assistant, and ends with the assistant.

    A pool's own counts (`turn`) are not looked at: in the release, ten of 24 are wrong.

    Raises:
        DataError: If the file is broken: names the chat and the message.
    """
    return [list(_utterances(path, number, row)) for number, row in enumerate(read_rows(path))]


def _utterances(path: Path, number: int, row: dict[str, Any]) -> Iterator[ChatLine]:
    messages = row.get("conversation")
    if not isinstance(messages, list) or not messages or len(messages) % 2:
        raise DataError(path, f"chat {number}: 'conversation' is no list of messages of user and assistant in turn")
    for place, message in enumerate(messages):
        wanted = _SPEAKERS[place % 2]
        if not isinstance(message, dict) or message.get("role") != wanted:
            found = message.get("role") if isinstance(message, dict) else message
            raise DataError(path, f"chat {number}, message {place}: {found!r:.60} where the {wanted} speaks")
        yield ChatLine(speaker=wanted, content=text_of(path, f"chat {number}, message {place}", message, "content"))
