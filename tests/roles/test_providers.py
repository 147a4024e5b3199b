"""Models behind LiteLLM, against a real HTTP server: usage is booked, passing errors are retried, keys stay secret."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from tests.conftest import Command
from tests.invented import write_release
from tests.server import ChatServer, completion, error, serving

KEY = "sk-planted-4f9a8c7b6d5e4f3a2b1c"


def run(dialoom: Command, players: list[str], folder: Path, server: ChatServer, code: int = 0) -> dict[str, Any]:
    """One dialogue whose assistant is the server; returns the run's status."""
    if not (folder / "release").exists():
        write_release(folder / "release")
    variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": KEY}
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/gpt-4o-mini"]
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *cast, "-o", "r.db"]
    done = dialoom(*plan, code=code, variables=variables)
    assert KEY not in done.stdout + done.stderr
    status: dict[str, Any] = json.loads(dialoom("status", "r.db", "--json").stdout)
    return status


def test_usage_and_cost_are_booked_as_litellm_reports_them(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Three replies of 10 + 5 tokens; the model has a price, so the assistant's cost is known."""
    with serving(lambda _body, number: completion(f"Reply {number}.")) as server:
        status = run(dialoom, players, tmp_path, server)
        assert len(server.requests) == 3
        assert server.requests[0]["temperature"] == 0
        assert server.requests[0]["messages"][0]["role"] == "system"
        roles = [message["role"] for message in server.requests[-1]["messages"][1:]]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
    assistant = status["roles"]["assistant"]
    assert assistant["tokens"] == {"input": 30, "output": 15}
    assert assistant["cost"] > 0
    assert status["cost"] is None, "the other roles' prices are unknown, so the sum is"


def test_a_passing_error_is_retried_and_every_attempt_is_counted(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Two 503s and a 429, then an answer: one row with four attempts."""
    answers = {1: error(503, "overloaded"), 2: error(503, "overloaded"), 3: error(429, "slow down")}
    with serving(lambda _body, number: answers.get(number, completion("At last."))) as server:
        status = run(dialoom, players, tmp_path, server)
        assert len(server.requests) == 6
    assert status["scenarios"]["done"] == 1
    with sqlite3.connect(tmp_path / "r.db") as connection:
        attempts = connection.execute("SELECT attempts FROM calls WHERE role = 'assistant' ORDER BY id").fetchall()
    assert attempts == [(4,), (1,), (1,)]


def test_a_refusal_for_good_fails_at_once_and_never_shows_the_key(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """A 401 that quotes the key: one attempt, a failed scenario, and the key nowhere in the file."""
    with serving(lambda _body, _number: error(401, f"Incorrect API key provided: {KEY}")) as server:
        status = run(dialoom, players, tmp_path, server, code=1)
        assert len(server.requests) == 1
        assert server.keys == [f"Bearer {KEY}"]
    assert status["scenarios"]["failed"] == 1
    assert status["roles"]["assistant"]["failed_calls"] == 1
    assert "permanent" in str(sqlite3.connect(tmp_path / "r.db").execute("SELECT fault FROM scenarios").fetchall())
    dialoom("export", "r.db", "-o", "r.jsonl")
    for path in tmp_path.glob("r.*"):
        assert KEY.encode() not in path.read_bytes()


def test_an_empty_reply_is_asked_for_again(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Once; the second ask is a call of its own."""
    with serving(lambda _body, number: completion("" if number == 1 else "Words.")) as server:
        status = run(dialoom, players, tmp_path, server)
        assert len(server.requests) == 4
        assert "could not be used" in server.requests[1]["messages"][-1]["content"]
    assert status["scenarios"]["done"] == 1


def test_a_missing_key_is_said_at_once(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Before anything is planned: model, role, variable and flag; not where a cache may hold all replies."""
    write_release(tmp_path / "release")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/gpt-4o-mini"]
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *cast, "-o", "r.db"]
    said = dialoom(*plan, code=2, env=environment).stderr
    assert "no key in OPENAI_API_KEY for openai/gpt-4o-mini (assistant)" in said
    assert "--env-file" in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "r.db").exists()
    shared = dialoom(*plan, "--cache", "shared.db", code=1, env=environment).stderr
    assert "a key is needed in OPENAI_API_KEY" in shared
