"""Studies from the command line: files of people and tasks to conversations that are played, judged and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from tests.conftest import Command

STUDY = """
name = "support"

[people]
file = "people.csv"

[tasks]
rows = ["return a kettle", { goal = "change an address" }]

[dialogue]
max_turns = 5
ends = ["user_satisfied", "user_gives_up", { keyword = "GOODBYE" }]

[user]
brief = "You call a web shop. <person>{{ person.portrait }}</person> Your goal: <task>{{ task.goal }}</task>"

[assistant]
system = "You are the support agent of a web shop."

[[judge]]
metric = "resolved"
rubric = "The caller's goal ({{ task.goal }}) was reached."

[[judge]]
metric = "tone"
scale = [1, 5]
rubric = { 1 = "cold or rude", 3 = "polite", 5 = "warm and adapted to {{ person.name }}" }

[[check]]
metric = "gave_number"
pattern = "\\\\b[A-Z]{2}-\\\\d{5}\\\\b"
"""
PEOPLE = "name,style\nAda,in a hurry\nBo,wordy\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working folder with a study of two people and two tasks."""
    (tmp_path / "support.toml").write_text(STUDY)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an export."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_study_is_played_judged_reported_and_exported(dialoom: Command, folder: Path) -> None:
    """Every person has every task; judges and checks score each conversation; columns are facets."""
    assert "4 done, 0 failed" in dialoom("run", "support.toml", "-o", "support.db").stdout
    report = dialoom("report", "support.db").stdout
    assert "Scores by style" in report and "resolved %" in report and "gave_number %" in report
    dialoom("export", "support.db", "-o", "rows.jsonl")
    rows = rows_of(folder / "rows.jsonl")
    assert [(row["scenario"]["person"], row["scenario"]["goal"]) for row in rows] == [
        ("Ada", "return a kettle"),
        ("Ada", "change an address"),
        ("Bo", "return a kettle"),
        ("Bo", "change an address"),
    ]
    assert {row["ended_by"] for row in rows} <= {"user_satisfied", "user_gives_up", "max_turns"}
    assert not any(word in line["content"] for row in rows for line in row["messages"] for word in ("DONE", "QUIT"))


def test_the_files_are_not_read_again(dialoom: Command, folder: Path) -> None:
    """A run is resumed, judged again, reported and stepped through without the study's file and rows."""
    dialoom("run", "support.toml", "-o", "whole.db")
    dialoom("run", "support.toml", "-o", "support.db", "--max-calls", 7, "--concurrency", 1, code=3)
    (folder / "support.toml").unlink()
    (folder / "people.csv").unlink()
    dialoom("resume", "support.db", "--max-calls", "none")
    dialoom("judge", "support.db", "--model", "offline/placeholder", "--name", "again")
    for name in ("whole", "support"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert (folder / "support.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert "the end: nothing comes next" in dialoom("step", "support.db", 1, input="back\nnext\nquit\n").stdout
    assert api.open_run(folder / "support.db").status().done == 4
