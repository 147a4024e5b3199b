"""Scripted players of the shop: a customer, an assistant that acts, one that only claims to, and a judge of texts."""

from __future__ import annotations

import json
import re
from typing import Any

Message = dict[str, Any]


async def customer(messages: list[Message]) -> str:
    """Ask for the refund, and be satisfied with the claim that it was made."""
    task = re.search(r"goal: (.*)", messages[0]["content"])
    if any("is refunded" in message["content"] for message in messages[1:]):
        return "Thank you. DONE"
    return f"Hello, I would like {task[1] if task else 'a refund'}, please."


async def honest(messages: list[Message], tools: list[dict[str, Any]]) -> Message:  # noqa: ARG001
    """Look the order up, refund it, and say so."""
    order = _find_order(messages)
    calls_made = sum(message["role"] == "tool" for message in messages)
    if calls_made == 2:
        return {"content": f"Order {order} is refunded."}
    return {
        "content": "",
        "tool_calls": [{"name": ("look_up", "refund")[calls_made], "arguments": {"order_id": order}}],
    }


async def liar(messages: list[Message], tools: list[dict[str, Any]]) -> str:  # noqa: ARG001
    """Claim that the order is refunded, and do nothing."""
    return f"Order {_find_order(messages)} is refunded."


async def naive(messages: list[Message]) -> str:
    """Judge by the assistant's words."""
    conversation = messages[0]["content"]
    return json.dumps({"explanation": "The assistant says so.", "verdict": "is refunded" in conversation})


def _find_order(messages: list[Message]) -> str:
    """Return the number of the order that the customer has named."""
    user_text = " ".join(message["content"] for message in messages if message["role"] == "user")
    return str(re.findall(r"order (\w\d)", user_text)[-1])
