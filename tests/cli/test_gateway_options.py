"""`--env-file`, `--rpm` and `--tpm` as a user gives them: what reaches the provider, what is kept, and what is said."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.invented import write_release
from tests.server import Answer, ChatServer, completion, serving

KEY = "planted+5d1c/9e8f=7a6b"
"""It has not the shape of a key: only its file says that it is one."""

MODEL = "openai/house"


@pytest.fixture
def plan(tmp_path: Path) -> list[object]:
    """One dialogue, all of whose roles are one model."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", "--model", MODEL, "-o", "run.db"]


def answer(body: dict[str, Any], number: int) -> Answer:
    """A user who has enough after three lines, an assistant that numbers its replies, and judges."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "assess one thing" in text:
        verdict = "Was this goal reached" in text
        return completion(f'{{"{"verdict" if verdict else "score"}": {"true" if verdict else 3}, "explanation": "so"}}')
    lines = sum(message["role"] == "assistant" for message in body["messages"])
    return completion(f"Line {number} is mine." + (" TERMINATE" if lines >= 2 else ""))


def environment(server: ChatServer | None = None, **more: str) -> Mapping[str, str]:
    """That of somebody without keys, who has a server."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**bare, **({} if server is None else {"OPENAI_API_BASE": server.url}), **more}


def status_of(dialoom: Command, run: str = "run.db") -> dict[str, Any]:
    """What `status` says, for programs."""
    return dict(json.loads(dialoom("status", run, "--json").stdout))


def ensure_unwritten(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    """The key stands in no file but its own, and in nothing that was printed."""
    assert KEY not in done.stdout + done.stderr
    for path in folder.rglob("*"):
        assert not path.is_file() or path.name == "keys.env" or KEY.encode() not in path.read_bytes(), path


def test_a_key_from_the_file_reaches_the_provider_and_nothing_else(
    dialoom: Command, plan: list[object], tmp_path: Path
) -> None:
    """In the run, in a resume that logs for programs, and where the provider quotes it in a refusal."""
    (tmp_path / "keys.env").write_text(f"# mine\nexport OPENAI_API_KEY='{KEY}'\n")
    keyed = ["--env-file", "keys.env"]
    with serving(answer) as server:
        ensure_unwritten(tmp_path, dialoom(*plan, *keyed, "--max-calls", 3, code=3, env=environment(server)))
        resumed = dialoom(
            "resume", "run.db", *keyed, "--log-format", "json", "--max-calls", "none", env=environment(server)
        )
        assert set(server.keys) == {f"Bearer {KEY}"}
        ensure_unwritten(tmp_path, resumed)
    assert status_of(dialoom)["scenarios"]["done"] == 1
    refusal = 401, {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "error", "code": "401"}}
    with serving(lambda _body, _number: refusal) as server:
        refused = dialoom(*plan[:-1], "other.db", *keyed, code=1, env=environment(server))
        assert server.keys == [f"Bearer {KEY}"]
    assert "Incorrect API key provided" in refused.stderr
    ensure_unwritten(tmp_path, refused)


def test_the_environment_wins_over_the_file(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    """As everywhere: what is set for this one command is meant."""
    (tmp_path / "keys.env").write_text(f"OPENAI_API_KEY={KEY}\n")
    with serving(answer) as server:
        dialoom(*plan, "--env-file", "keys.env", env=environment(server, OPENAI_API_KEY="sk-of-this-shell"))
        assert set(server.keys) == {"Bearer sk-of-this-shell"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"A=1\n{KEY}\n", "line 2: "),
        (f"OPENAI_API_KEY: {KEY}\n", "line 1: "),
        (f"\nOPENAI_API_KEY='{KEY}\n", "line 2: not of the form NAME=VALUE"),
        ("OPENAI_API_KEY=\n", "line 1: OPENAI_API_KEY has no value; NAME=VALUE is needed"),
        (None, "keys.env: there is no such file"),
    ],
)
def test_a_key_file_that_is_none_is_one_message(
    dialoom: Command, plan: list[object], tmp_path: Path, text: str | None, said: str
) -> None:
    """Its line and what would be right, never its content; exit code 2, and nothing is written."""
    if text is not None:
        (tmp_path / "keys.env").write_text(text)
    refused = dialoom(*plan, "--env-file", "keys.env", code=2)
    assert "keys.env" in refused.stderr
    assert said in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    ensure_unwritten(tmp_path, refused)
    assert not list(tmp_path.glob("run.db*"))


@pytest.mark.parametrize("flag", ["--rpm", "--tpm"])
@pytest.mark.parametrize("value", ["0", "x", "-5", "1.5", "", f"{MODEL}=0", f"{MODEL}="])
def test_a_rate_that_is_none_is_one_message(
    dialoom: Command, plan: list[object], tmp_path: Path, flag: str, value: str
) -> None:
    """The flag, the value, and what would be right."""
    refused = dialoom(*plan, flag, value, code=2)
    wrong = value.rpartition("=")[2]
    assert refused.stderr == (
        f"dialoom: {flag} {wrong!r} is no whole number from 1; give N, or MODEL=N for one model\n"
    )
    assert not list(tmp_path.glob("run.db*"))


def test_rates_are_kept_and_all_calls_come_through(dialoom: Command, plan: list[object]) -> None:
    """So small that calls wait for them; `status` shows them, also when a resume has changed one."""
    rates = ["--rpm", f"{MODEL}=1500", "--tpm", 60_000]
    with serving(answer) as server:
        keyed = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
        dialoom(*plan, *rates, "--max-calls", 5, code=3, variables=keyed)
        limits = status_of(dialoom)["limits"]
        assert (limits["rpm"], limits["tpm"]) == ({MODEL: 1500}, {"": 60_000})
        assert f"{MODEL}: at most 1,500 requests a minute" in dialoom("status", "run.db").stdout
        assert "every model: at most 60,000 tokens a minute" in dialoom("status", "run.db").stdout
        dialoom("resume", "run.db", "--max-calls", "none", "--tpm", 6_000, variables=keyed)
        sent = len(server.requests)
    status = status_of(dialoom)
    assert (status["limits"]["rpm"], status["limits"]["tpm"]) == ({MODEL: 1500}, {"": 6_000})
    assert status["scenarios"]["done"] == 1
    assert status["calls"] == sent
    assert status["failed_calls"] == 0


def test_rates_change_nothing_of_what_is_said(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    """A run that keeps to some exports the same bytes as one that has none."""
    exports = []
    for name, rates in (("free", []), ("bound", ["--rpm", 3000, "--tpm", 100_000])):
        with serving(lambda body, _number: answer(body, 0)) as server:
            keyed = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
            dialoom(*plan[:-1], f"{name}.db", *rates, variables=keyed)
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
        exports.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert exports[0] == exports[1]
