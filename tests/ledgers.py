"""Requests and places of calls, for tests of the gateway without a run, with a ledger in memory."""

from __future__ import annotations

from dialoom.roles import CallPlace
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.calls import MemoryLedger

__all__ = ["MemoryLedger", "make_place", "make_request"]


def make_request(model: str = "openai/gpt-4o-mini", text: str = "Hello.", seed: int = 1, role: str = "user") -> Request:
    """Return a request of one message."""
    return Request(role, f"test/{role}", "0" * 64, model, 0.7, seed, ({"role": "user", "content": text},))


def make_place(seed: int = 1, step: int = 1, scenario: str = "s1") -> CallPlace:
    """Return a place in a run."""
    return CallPlace(scenario, "speak", step, 0, seed)
