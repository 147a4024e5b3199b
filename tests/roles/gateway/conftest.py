"""Keys for providers that are never reached."""

from __future__ import annotations

import pytest

from tests.roles.gateway.asking import KEY


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of somebody who has keys."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, KEY)
