"""`--cache FILE`: a second run of the same plan sends nothing, and a resumed one gets what it would have got."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.invented import write_release
from tests.server import ChatServer, completion, serving


@pytest.fixture
def plan(tmp_path: Path) -> list[object]:
    """One dialogue, all of whose roles are behind a server."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", "--cache", "replies.db"]


def answer(body: dict[str, Any], number: int) -> Any:
    """A user who has enough after three lines, an assistant that numbers its replies, and judges."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "assess one thing" in text:
        verdict = "Was this goal reached" in text
        return completion(f'{{"{"verdict" if verdict else "score"}": {"true" if verdict else 3}, "explanation": "so"}}')
    lines = sum(message["role"] == "assistant" for message in body["messages"])
    return completion(f"Line {number} is mine." + (" TERMINATE" if lines >= 2 else ""))


def command(dialoom: Command, server: ChatServer, *arguments: object, code: int = 0) -> Any:
    """A command whose models are all behind the server."""
    variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
    return dialoom(*arguments, code=code, variables=variables)


def said(dialoom: Command, folder: Path, run: str) -> bytes:
    """A run's dialogues as they are exported."""
    dialoom("export", run, "-o", f"{run}.jsonl")
    return (folder / f"{run}.jsonl").read_bytes()


def test_a_second_run_is_the_same_and_sends_nothing(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    """Also with no budget and nothing but replays allowed; its calls took nothing, and it resumes as any other."""
    models = ["--model", "openai/house", "--price", "openai/house=1,2"]
    with serving(answer) as server:
        command(dialoom, server, *plan, *models, "-o", "one.db")
        sent = len(server.requests)
        command(dialoom, server, *plan, *models, "--max-calls", 0, "-o", "two.db")
        command(dialoom, server, *plan, *models, "--replay-only", "-o", "three.db")
        assert len(server.requests) == sent
        command(dialoom, server, *plan, *models, "--seed", 9, "-o", "four.db")
        assert len(server.requests) > sent, "another seed draws other samples"
    assert said(dialoom, tmp_path, "one.db") == said(dialoom, tmp_path, "two.db") == said(dialoom, tmp_path, "three.db")
    one, two = (json.loads(dialoom("status", name, "--json").stdout) for name in ("one.db", "two.db"))
    assert one["cost"] > 0
    assert two["cost"] == 0
    assert two["tokens"] == {"input": 0, "output": 0}
    assert two["calls"] == one["calls"] == sent
    with sqlite3.connect(tmp_path / "two.db") as connection:
        assert connection.execute("SELECT DISTINCT attempts FROM calls").fetchall() == [(0,)]


def test_a_run_that_was_stopped_goes_on_with_the_cache(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    """A resume shifts no sample: what two sittings have kept is what another run finds, each reply in its place."""
    models = ["--model", "openai/house"]
    with serving(answer) as server:
        command(dialoom, server, *plan, *models, "--max-calls", 3, "-o", "one.db", code=3)
        command(dialoom, server, "resume", "one.db", "--max-calls", "none", "--cache", "replies.db")
        sent = len(server.requests)
        command(dialoom, server, *plan, *models, "--max-calls", 0, "-o", "two.db")
        assert len(server.requests) == sent
    assert said(dialoom, tmp_path, "one.db") == said(dialoom, tmp_path, "two.db")


def test_a_cache_that_is_none_stops_the_run_before_it_is_made(
    dialoom: Command, plan: list[object], tmp_path: Path
) -> None:
    """With exit code 2 and the file's name."""
    (tmp_path / "replies.db").write_text("a diary\n" * 500)
    assert "replies.db" in dialoom(*plan, "-o", "r.db", code=2).stderr
    assert not list(tmp_path.glob("r.db*"))
