"""A run and the folder that it is made for, in one go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom as door
from dialoom.personas.apollo.source import read_source
from tests.conftest import Command

BUILD: dict[str, Any] = {"users": 1, "pairs": 1, "errands": 1}


def test_the_folder_is_what_an_export_would_be(tmp_path: Path, dialoom: Command) -> None:
    """And it is there when the command ends."""
    flags = [text for name, value in BUILD.items() for text in (f"--{name}", str(value))]
    said = dialoom("run", "apollo-build", *flags, "-o", "run.db", "--folder", "made", code=0)
    assert said.stdout.splitlines()[-1] == "made is written"
    door.open_run(tmp_path / "run.db").export("apollo-source", tmp_path / "exported")
    read_source(tmp_path / "made")
    for name in ("users", "sessions", "pairs", "meta"):
        assert (tmp_path / "made" / f"{name}.jsonl").read_bytes() == (
            tmp_path / "exported" / f"{name}.jsonl"
        ).read_bytes()


def test_a_run_that_ends_before_writes_drafts(tmp_path: Path) -> None:
    """What people mend, of the recipes that have stages."""
    options = {"topics": "travel_hotel", "calls": 1, "per_call": 2, "until": "written"}
    door.play("prefeval-pairs", path=tmp_path / "run.db", options=options, folder=tmp_path / "drafts")
    assert len(json.loads((tmp_path / "drafts" / "travel_hotel.json").read_text())) == 2
    written = {"users": 1, "until": "users"}
    door.play("apollo-write", path=tmp_path / "write.db", options=written, folder=tmp_path / "users")
    assert json.loads((tmp_path / "users" / "users.jsonl").read_text())["id"] == "u01"


def test_nothing_is_begun_that_cannot_be_written(tmp_path: Path) -> None:
    """A recipe that makes no folder, and a folder in which something is."""
    with pytest.raises(door.DialoomError, match="folder 'made': personalens is not made for one"):
        door.play("personalens", path=tmp_path / "run.db", folder="made")
    with pytest.raises(door.DialoomError, match="exists and is no empty folder"):
        door.play("apollo-build", path=tmp_path / "run.db", options=BUILD, folder=tmp_path.parent)
    assert not (tmp_path / "run.db").exists()


def test_nothing_is_written_of_a_run_that_was_stopped(tmp_path: Path, dialoom: Command) -> None:
    """And it is said how it is written afterwards."""
    flags = ("--users", "1", "--until", "users", "-o", "run.db", "--folder", "made")
    said = dialoom("run", "apollo-write", *flags, "--max-calls", "1", code=3).stdout
    assert "made is not written; when all is done: dialoom export run.db --format drafts -o made" in said
    assert not (tmp_path / "made").exists()
