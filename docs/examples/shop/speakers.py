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
    order = _order(messages)
    done = sum(message["role"] == "tool" for message in messages)
    if done == 2:
        return {"content": f"Order {order} is refunded."}
    return {"content": "", "tool_calls": [{"name": ("look_up", "refund")[done], "arguments": {"order_id": order}}]}


async def liar(messages: list[Message], tools: list[dict[str, Any]]) -> str:  # noqa: ARG001
    """Claim that the order is refunded, and do nothing."""
    return f"Order {_order(messages)} is refunded."


async def naive(messages: list[Message]) -> str:
    """Judge by the assistant's words."""
    talk = messages[0]["content"]
    return json.dumps({"explanation": "The assistant says so.", "verdict": "is refunded" in talk})


def _order(messages: list[Message]) -> str:
    """Return the number of the order that the customer has named."""
    named = re.findall(r"order (\w\d)", " ".join(each["content"] for each in messages if each["role"] == "user"))
    return str(named[-1])
