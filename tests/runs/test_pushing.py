"""Exported folders: pushed to a hub, and written by a run."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from dialoom import DialoomError
from dialoom.personas.apollo.source import read_source
from dialoom.runs.export.pushing import push_dataset
from tests.conftest import Command


class Hub(ThreadingHTTPServer):
    """A server with the hub's endpoints that an upload needs."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, Any]] = []
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        if self.server.refuses:
            return self._answer({"error": "no such owner"}, 403)
        if self.path.endswith("/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return self._answer({"commitUrl": f"{self.server.url}/datasets/me/talks/commit/1", "commitOid": "1" * 40})
        asked = json.loads(body)
        self.server.asked.append((self.path, asked))
        if "/preupload/" in self.path:
            files = [{"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in asked["files"]]
            return self._answer({"files": files})
        if self.path.endswith("/repos/create"):
            return self._answer({"url": f"{self.server.url}/datasets/me/talks"})
        return self._answer({"errors": [], "warnings": []})

    def do_GET(self) -> None:
        self._answer({"sha": "0" * 40, "siblings": [], "id": "me/talks"})

    def _answer(self, answer: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Yield a running hub."""
    monkeypatch.setenv("HF_TOKEN", "hf_only_a_test")
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return an exported folder with train, test and a card, and a file that does not belong to the export."""
    run = api.play("personalens", path=tmp_path / "run.db", sample=4)
    run.export("dialogues", tmp_path / "out", test_share=0.3)
    (tmp_path / "out" / "notes.txt").write_text("secret")
    return tmp_path / "out"


def test_only_the_card_and_its_files_are_sent(exported: Path, hub: Hub) -> None:
    done = push_dataset(exported, "me/talks", is_sent=True, endpoint=hub.url)
    assert set(hub.files) == {"README.md", "train.jsonl", "test.jsonl"}
    assert all(content == (exported / name).read_bytes() for name, content in hub.files.items())
    (created,) = [asked for path, asked in hub.asked if path.endswith("/repos/create")]
    assert created["type"] == "dataset" and created.get("private", created.get("visibility")) in (True, "private")
    assert done.url is not None and "me/talks" in done.url


def test_nothing_is_sent_without_confirmation(exported: Path, hub: Hub, dialoom: Command) -> None:
    output = dialoom("push", exported, "me/talks", "--endpoint", hub.url).stdout
    assert "nothing was sent" in output and "train.jsonl" in output and "licence unknown" in output
    assert not hub.asked and not hub.files


def test_card_has_the_figures_once_and_still_loads(exported: Path, dialoom: Command) -> None:
    front = (exported / "README.md").read_text().split("---")[1]
    for _ in range(2):
        dialoom("describe", exported, "--card")
    card = (exported / "README.md").read_text()
    assert card.count("## What is in it\n") == 1 and card.count("### Lengths of dialogues") == 1
    assert "| lines | 4 |" in card and card.split("---")[1] == front
    assert push_dataset(exported, "me/talks").files[0] == Path("README.md")


def test_export_puts_the_figures_into_its_card(exported: Path, dialoom: Command) -> None:
    folder = exported.parent
    dialoom("describe", exported, "--card")
    dialoom("export", folder / "run.db", "--test-share", 0.3, "--card", "-o", "again")
    assert (folder / "again" / "README.md").read_bytes() == (exported / "README.md").read_bytes()
    dialoom("export", folder / "run.db", "--format", "sft", "--card", "-o", "sft.jsonl")
    assert "## What is in it\n" in (folder / "sft.jsonl.card.md").read_text()
    for more in (["--format", "dialogues", "-o", "x.jsonl"], ["--format", "personalens", "-o", "x"]):
        assert dialoom("export", folder / "run.db", "--card", *more, code=2).stderr.startswith("dialoom: --card: ")
    assert not (folder / "x.jsonl").exists() and not (folder / "x").exists()


def test_export_with_figures_can_be_repeated(exported: Path, dialoom: Command) -> None:
    command = ["export", exported.parent / "run.db", "--test-share", 0.3, "--card", "-o", "again"]
    dialoom(*command)
    before = (exported.parent / "again" / "README.md").read_bytes()
    dialoom(*command)
    assert (exported.parent / "again" / "README.md").read_bytes() == before


def test_failed_upload_leaves_the_export_unchanged(
    exported: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_only_a_test")
    with closing(socket.socket()) as unanswered:
        unanswered.bind(("127.0.0.1", 0))  # and never listens
        endpoint = f"http://127.0.0.1:{unanswered.getsockname()[1]}"
        before = {path: path.read_bytes() for path in exported.iterdir()}
        output = dialoom("push", exported, "me/talks", "--yes", "--endpoint", endpoint, code=2).stderr
    assert "me/talks: the upload failed: " in output and "is unchanged" in output
    assert len(output.splitlines()) == 1
    assert {path: path.read_bytes() for path in exported.iterdir()} == before


def test_folder_that_cannot_be_pushed_is_refused(exported: Path, hub: Hub) -> None:
    with pytest.raises(DialoomError, match="OWNER/NAME"):
        push_dataset(exported, "talks")
    hub.refuses = True
    with pytest.raises(DialoomError, match="the upload failed: "):
        push_dataset(exported, "me/talks", is_sent=True, endpoint=hub.url)
    card = exported / "README.md"
    card.write_text(card.read_text().replace("path: train.jsonl", "path: ../run.db"))
    with pytest.raises(DialoomError, match="not a file in that folder"):
        push_dataset(exported, "me/talks")
    card.unlink()
    with pytest.raises(DialoomError, match=r"no README\.md"):
        push_dataset(exported, "me/talks")


BUILD: dict[str, Any] = {"users": 1, "pairs": 1, "errands": 1}


def test_folder_equals_an_export(tmp_path: Path, dialoom: Command) -> None:
    flags = [text for name, value in BUILD.items() for text in (f"--{name}", str(value))]
    output = dialoom("run", "apollo-build", *flags, "-o", "run.db", "--folder", "made", code=0)
    assert output.stdout.splitlines()[-1] == "made is written"
    api.open_run(tmp_path / "run.db").export("apollo-source", tmp_path / "exported")
    read_source(tmp_path / "made")
    for name in ("users", "sessions", "pairs", "meta"):
        assert (tmp_path / "made" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "exported" / f"{name}.jsonl"
        ).read_bytes()


def test_run_that_ends_early_writes_drafts(tmp_path: Path) -> None:
    options = {"topics": "travel_hotel", "calls": 1, "per_call": 2, "until": "written"}
    api.play("prefeval-pairs", path=tmp_path / "run.db", options=options, folder=tmp_path / "drafts")
    assert len(json.loads((tmp_path / "drafts" / "travel_hotel.json").read_text())) == 2
    written = {"users": 1, "until": "users"}
    api.play("apollo-write", path=tmp_path / "write.db", options=written, folder=tmp_path / "users")
    assert json.loads((tmp_path / "users" / "users.jsonl").read_text())["id"] == "u01"


def test_folder_that_cannot_be_written_is_refused_before_playing(tmp_path: Path) -> None:
    with pytest.raises(api.DialoomError, match="folder 'made': personalens generates no data for a folder"):
        api.play("personalens", path=tmp_path / "run.db", folder="made")
    with pytest.raises(api.DialoomError, match="exists and is not an empty folder"):
        api.play("apollo-build", path=tmp_path / "run.db", options=BUILD, folder=tmp_path.parent)
    assert not (tmp_path / "run.db").exists()


def test_stopped_run_writes_no_folder(tmp_path: Path, dialoom: Command) -> None:
    flags = ("--users", "1", "--until", "users", "-o", "run.db", "--folder", "made")
    output = dialoom("run", "apollo-write", *flags, "--max-calls", "1", code=3).stdout
    assert (
        "made is not written; when all scenarios are done, run: dialoom export run.db --format drafts -o made" in output
    )
    assert not (tmp_path / "made").exists()
