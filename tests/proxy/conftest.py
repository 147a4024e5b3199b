"""LiteLLM's own proxy on loopback, with mock models: nothing is downloaded or sent elsewhere."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.programs import free_port, running

pytest.importorskip("fastapi_sso", reason="LiteLLM's proxy is not installed; 'make test-proxy' installs it")

MASTER_KEY = "sk-of-the-proxy-4f9a8c7b6d5e"
VERDICT = json.dumps({"score": 4, "explanation": "It suits the person."})
MODELS = {
    "chatty": "That is how it is.",
    "strict": VERDICT,
    "forgetful": "litellm.ContextWindowExceededError",  # LiteLLM raises this error
}


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    url: str

    def usage(self, model: str) -> dict[str, int]:
        """Return the usage that the proxy reports for a model's reply."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hello."}]}
        headers = {"Authorization": f"Bearer {MASTER_KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as response:
            return dict(json.load(response)["usage"])


@pytest.fixture(scope="session")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Run the proxy for the session."""
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "config.yaml").write_text(json.dumps(_configuration()))  # JSON is YAML
    port = free_port()
    program = Path(sys.executable).with_name("litellm")  # of this environment, activated or not
    command = [
        str(program),
        "--config",
        "config.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--telemetry",
        "False",
    ]
    with running(command, folder, _environment(), f"http://127.0.0.1:{port}/health/liveliness"):
        yield Proxy(f"http://127.0.0.1:{port}/v1")


def _configuration() -> dict[str, Any]:
    models = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "none", "mock_response": reply}}
        for name, reply in MODELS.items()
    ]
    return {
        "model_list": models,
        "general_settings": {"master_key": MASTER_KEY},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


def _environment() -> dict[str, str]:
    """Return an environment without the user's database and key, in which LiteLLM uses its packaged data."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "LITELLM_MASTER_KEY")}
    local = ("MODEL_COST_MAP", "ANTHROPIC_BETA_HEADERS", "POLICY_TEMPLATES", "BLOG_POSTS")
    return {**kept, "NO_PROXY": "127.0.0.1", **{f"LITELLM_LOCAL_{name}": "True" for name in local}}
