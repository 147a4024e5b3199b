"""Layouts of earlier versions: brought up to date without losing a reply; those of later ones refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.conftest import Command, lines_of
from tests.invented import write_release


def test_a_half_finished_run_of_version_1_is_migrated_and_goes_on(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Its ten calls are answered from the ledger, only the missing ones are made, and the result is a new run's."""
    write_release(tmp_path / "release")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript((Path(__file__).parent / "version1.sql").read_text())
    before = json.loads(dialoom("status", "old.db", "--json").stdout)
    assert before["scenarios"] == {"total": 2, "done": 0, "failed": 0, "pending": 2}
    assert before["calls"] == 10
    dialoom("resume", "old.db")
    after = json.loads(dialoom("status", "old.db", "--json").stdout)
    assert after["replays"] == 10
    assert after["calls"] == 12
    dialoom("run", "personalens", "--profiles", "release", *players[:4], "--no-judge", "-o", "new.db")
    for name in ("old", "new"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    old, new = lines_of(tmp_path / "old.jsonl"), lines_of(tmp_path / "new.jsonl")
    assert [line["messages"] for line in old] == [line["messages"] for line in new]


def test_a_run_of_a_later_version_is_refused_and_left_alone(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """With what to do."""
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "r.db")
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (tmp_path / "r.db").read_bytes()
    for command in ("status", "resume"):
        assert "newer dialoom" in dialoom(command, "r.db", code=2).stderr
    assert (tmp_path / "r.db").read_bytes() == before
