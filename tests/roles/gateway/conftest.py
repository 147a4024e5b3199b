"""API keys for providers that are never contacted."""

from __future__ import annotations

import pytest

from tests.roles.gateway.asking import KEY


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the keys of several providers in the environment."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, KEY)
