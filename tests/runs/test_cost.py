"""`report --cost`: what each role took, from the ledger, with prompt caches apart and unknown figures unknown."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

from dialoom.runs.cost import cost_table
from tests.conftest import Command
from tests.invented import write_release
from tests.server import Answer, completion, serving

RUN = ["run", "personalens", "--profiles", "release", "--tasks", "single", "-o", "r.db"]


def rows_of(run: Path) -> dict[str, dict[str, Any]]:
    """The table's rows, by role."""
    table = cost_table(run)
    return {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}


def partly_cached(text: str) -> Answer:
    """An answer to a request of 100 tokens, 80 of which the provider read from its cache."""
    status, body = completion(text, 100, 20)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 80}
    return status, body


def play(dialoom: Command, players: list[str], folder: Path, *more: object) -> None:
    """One dialogue whose assistant is behind a server."""
    if not (folder / "release").exists():
        write_release(folder / "release")
    with serving(lambda _body, _number: partly_cached("Certainly.")) as server:
        variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
        cast = [*players[:2], *players[4:], "--model", "assistant=openai/house"]
        dialoom(*RUN, *cast, *more, variables=variables)


def test_tokens_read_from_a_prompt_cache_are_told_apart(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Three replies at stated prices: 20 fresh, 80 cached and 20 output tokens each."""
    play(dialoom, players, tmp_path, "--price", "openai/house=10,100,1")
    assistant = rows_of(tmp_path / "r.db")["assistant"]
    assert assistant["model"] == "openai/house"
    assert (assistant["calls"], assistant["replayed"], assistant["from cache"]) == (3, 0, 0)
    assert (assistant["input tokens"], assistant["read from prompt cache"], assistant["output tokens"]) == (
        300,
        240,
        60,
    )
    assert round(assistant["read %"], 6) == 0.8
    assert round(assistant["US dollars"] * 1_000_000, 3) == 3 * (20 * 10 + 80 * 1 + 20 * 100)


def test_what_is_unknown_stays_unknown(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """A Python function tells neither tokens nor price; so the sums are unknown, and a note says what is known."""
    play(dialoom, players, tmp_path, "--price", "openai/house=10,100,1")
    rows = rows_of(tmp_path / "r.db")
    for role in ("user", "judge", "all"):
        assert rows[role]["US dollars"] is None
        assert rows[role]["input tokens"] is None
    assert rows["user"]["read from prompt cache"] is None
    assert rows["all"]["read from prompt cache"] == 240
    assert rows["all"]["calls"] == sum(rows[role]["calls"] for role in ("user", "assistant", "judge"))
    note = cost_table(tmp_path / "r.db").notes[0]
    assert "python:players:user" in note
    assert "$0.0068" in note


def test_the_command_prints_it_and_writes_it(dialoom: Command, tmp_path: Path) -> None:
    """For people, and as CSV; an offline model is called one."""
    dialoom("run", "personalens", "--limit", 2, "-o", "r.db")
    said = dialoom("report", "r.db", "--cost").stdout
    assert "Calls and what they took" in said
    assert "scripted stand-ins" in said
    dialoom("report", "r.db", "--cost", "-o", "out")
    with (tmp_path / "out" / "cost.csv").open() as file:
        roles = [row["role"] for row in csv.DictReader(file)]
    assert roles == ["user", "assistant", "judge", "all"]


def test_replays_and_lost_calls_are_told(dialoom: Command, tmp_path: Path) -> None:
    """A row without an answer is a call that may have been billed; a replay is none."""
    dialoom("run", "personalens", "--limit", 1, "-o", "r.db")
    with sqlite3.connect(tmp_path / "r.db") as connection:
        connection.execute("UPDATE kept_calls SET replays = 2 WHERE id = 1")
        connection.execute("UPDATE kept_calls SET reply = NULL, attempts = NULL WHERE id = 2")
    rows = rows_of(tmp_path / "r.db")
    assert rows["all"]["replayed"] == 2
    assert "Calls without an answer: 1." in " ".join(cost_table(tmp_path / "r.db").notes)
