"""LangGraph's development server on loopback: nothing is downloaded or sent elsewhere."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.programs import START_TIMEOUT_SECONDS, free_port, running

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Server:
    """The HTTP API of a running server."""

    url: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer to a request, as plain values."""
        headers = {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=START_TIMEOUT_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def thread(self) -> str:
        """Create a thread and return its id."""
        return str(self.call("POST", "/threads", {})["thread_id"])

    def wait(self, thread: str, graph: str, input_: dict[str, Any] | None, **more: Any) -> Any:
        """Play a graph on a thread; return its final state, or its error under `__error__`."""
        return self.call("POST", f"/threads/{thread}/runs/wait", {"assistant_id": graph, "input": input_, **more})

    def state(self, thread: str) -> Any:
        """Return the state of a thread."""
        return self.call("GET", f"/threads/{thread}/state")

    def history(self, thread: str) -> Any:
        """Return a thread's checkpoints, the last one first."""
        return self.call("GET", f"/threads/{thread}/history?limit=1000")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run the server with the graphs of the project's `langgraph.json` for the session."""
    with serving(ROOT / "langgraph.json", tmp_path_factory.mktemp("langgraph")) as started:
        yield started


@contextmanager
def serving(configuration: Path, folder: Path) -> Iterator[Server]:
    """Run `langgraph dev` in its own folder, to which it writes."""
    port = free_port()
    program = Path(sys.executable).with_name("langgraph")  # of this environment, activated or not
    options = ["--config", str(configuration), "--port", str(port), "--no-browser", "--no-reload"]
    with running([str(program), "dev", *options], folder, _environment(), f"http://127.0.0.1:{port}/ok"):
        yield Server(f"http://127.0.0.1:{port}")


def _environment() -> dict[str, str]:
    """Return an environment without the user's account, in which the server does not use the network at its start."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "LANGCHAIN_"))}
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "true"}
    return {**kept, **quiet, "NO_PROXY": "127.0.0.1"}
