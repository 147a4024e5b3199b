"""Sources that cannot be used, on the command line: one message with what is wrong and where, and no run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.graphs.apollo.invented import source, write

Row = dict[str, Any]
Edit = Callable[[list[Row]], object]

MADE = source(["music", "food"])


def with_rows(path: Path, edit: Edit) -> None:
    """Edit the rows of a file of JSON lines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    edit(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def refusal(dialoom: Command, folder: Path) -> str:
    """What is said of a source, on one line; nothing is left of the run."""
    said = dialoom("run", "apollo", "--source", folder, "--length", "2k", "-o", "r.db", code=2).stderr
    assert said.count("\n") == 1
    assert not folder.with_name("r.db").exists()
    return said


@pytest.mark.parametrize(
    ("file", "edit", "told"),
    [
        ("sessions", lambda rows: rows[1].update(turns=[]), "sessions.jsonl:2: session s-food-1 has no turns"),
        (
            "pairs",
            lambda rows: rows[1]["gold"][0].update(name="get_wether"),
            'pairs.jsonl:2: pair food-1: there is no tool "get_wether"',
        ),
        ("meta", lambda rows: rows[0].update(world="ab" * 32), "meta.jsonl:1: made in the world abababababab..., and"),
        (
            "sessions",
            lambda rows: rows.__delitem__(slice(4, None)),
            "--length: length 2,000: the history of pair music-1 comes to",
        ),
        ("pairs", lambda rows: rows[1].update(id="music-1"), "pairs.jsonl:2: 'music-1' is also the name of line 1"),
        ("pairs", lambda rows: rows[1].update(user="u9"), "pairs.jsonl:2: pair food-1: there is no user 'u9'"),
        ("pairs", lambda rows: rows[1].update(session="s9"), "pairs.jsonl:2: pair food-1: user u1 has no session 's9'"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused(
    dialoom: Command, tmp_path: Path, file: str, edit: Edit, told: str
) -> None:
    """No turns, a call of no tool, another world, a history that cannot be filled, names that come twice or not."""
    folder = write(tmp_path / "source", MADE)
    with_rows(folder / f"{file}.jsonl", edit)
    assert told in refusal(dialoom, folder)


def test_a_line_that_is_cut_off_is_named(dialoom: Command, tmp_path: Path) -> None:
    """With the place in it."""
    folder = write(tmp_path / "source", MADE)
    path = folder / "pairs.jsonl"
    path.write_text(path.read_text()[:-40])
    assert "pairs.jsonl:2: not JSON: " in refusal(dialoom, folder)


def test_a_user_of_whom_nothing_is_asked_is_named(dialoom: Command, tmp_path: Path) -> None:
    """Beside others it is said, and alone there is nothing to plan."""
    folder = write(tmp_path / "source", MADE)
    with_rows(folder / "users.jsonl", lambda rows: rows.append({**rows[0], "id": "u9"}))
    plan = ("run", "apollo", "--source", folder, "--length", "2k", "-o", "r.db")
    told = dialoom(*plan, "--limit", 1)
    assert "2 pairs of 1 users" in told.stderr + told.stdout
    assert "no pair is of u9\n" in told.stderr + told.stdout
    alone = dialoom(*plan[:-1], "alone.db", "--users", "u9", code=2).stderr
    assert alone == "dialoom: --users: no pair of the source is of u9\n"
