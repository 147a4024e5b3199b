"""Requests to a test server through the gateway."""

from __future__ import annotations

from typing import Any

from dialoom.prompts import ChatMessage
from dialoom.roles import Completion, Gateway
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.gateway import GatewaySettings
from tests.ledgers import MemoryLedger, make_place

KEY = "sk-planted-4f9a8c7b6d5e4f3a2b1c"
QUICK = GatewaySettings(max_backoff=0.01)


def request(url: str | None, model: str = "openai/gpt-4o-mini", content: str = "Say heron.", **fields: Any) -> Request:
    """Return a request to a server."""
    messages: tuple[ChatMessage, ...] = (
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": content},
    )
    given: dict[str, Any] = {"messages": messages, **fields}
    return Request("judge", "asked", model, 0.0, 5, api_base=url, **given)


async def ask(asked: Request, ledger: MemoryLedger | None = None, settings: GatewaySettings = QUICK) -> Completion:
    """Make one call through a gateway with short waits."""
    return await Gateway(ledger or MemoryLedger(), settings).complete(asked, make_place())
