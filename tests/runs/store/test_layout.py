"""Run files of another layout."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Command


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_file_of_another_layout_is_refused_and_left_as_it_is(dialoom: Command, tmp_path: Path, version: int) -> None:
    """Whatever the command, with one sentence that names both versions."""
    dialoom("run", "personalens", "--limit", 1, "--model", "offline/attentive", "-o", "run.db")
    with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = (tmp_path / "run.db").read_bytes()
    for command in ("status", "resume", "report"):
        message = dialoom(command, "run.db", code=2).stderr
        assert f"run.db has run-file layout {version}, this dialoom reads layout 1" in message
        assert message.count("\n") == 1
    assert (tmp_path / "run.db").read_bytes() == before
