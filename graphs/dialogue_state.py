"""The state of a dialogue that is checkpointed after each node."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage

from .conversation import appended, joined


class DialogueState(TypedDict, total=False):
    """The state that is checkpointed after each node.

    Attributes:
        messages: The conversation so far.
        judgements: Judgements as plain values.
        ended_by: The reason for which the conversation ended; empty while it goes on.
        marked_opening: Whether the first message held the end marker, which was removed.
    """

    messages: Annotated[list[BaseMessage], appended]
    judgements: Annotated[list[dict[str, Any]], joined]
    ended_by: str
    marked_opening: bool
