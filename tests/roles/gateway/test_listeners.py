"""LiteLLM's log of calls: left out while nobody listens, and there for whoever does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dialoom.roles.gateway import Request
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend, load_litellm

REQUEST = Request(
    "assistant", "aloe/assistant", "0" * 64, "offline/generic", 0.7, 1, ({"role": "user", "content": "Hello."},)
)


@pytest.mark.parametrize("registry", ["callbacks", "_async_success_callback"])
async def test_a_callback_that_is_registered_with_litellm_is_called(registry: str) -> None:
    """However it was registered."""
    litellm, told = load_litellm(), asyncio.Event()
    from litellm.integrations.custom_logger import CustomLogger

    class Listener(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            told.set()

    listener = Listener()
    getattr(litellm, registry).append(listener)
    try:
        await LiteLLMBackend().complete(REQUEST, "")
        await told.wait()
    finally:
        for name in ("callbacks", "success_callback", "failure_callback", "input_callback"):
            setattr(litellm, name, [])
        for name in ("_async_success_callback", "_async_failure_callback"):
            setattr(litellm, name, [])
