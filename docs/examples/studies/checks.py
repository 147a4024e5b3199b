"""Functions used by the example study."""

from __future__ import annotations

from dialoom.graphs import Conversation


def words_per_reply(conversation: Conversation) -> float | None:
    """Return the mean number of words in the agent's replies; `None` if there are none."""
    replies = [line.content.split() for line in conversation.messages if line.role == "assistant"]
    return round(sum(map(len, replies)) / len(replies), 1) if replies else None


def refused_for_good(conversation: Conversation) -> str:
    """Return the reason to end a conversation in which the agent has refused twice."""
    return "refused" if conversation.text("assistant").lower().count("not possible") > 1 else ""
