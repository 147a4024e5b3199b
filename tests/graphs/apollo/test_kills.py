"""A run that is killed near its end goes on to the same bytes."""

from __future__ import annotations

import signal
from pathlib import Path

import dialoom
from tests.processes import Started
from tests.runs.test_kill_anywhere import KILLER

OPTIONS = {"limit": 2, "length": ["2k"], "framework": ["memory"]}
FLAGS = ["--limit", 2, "--length", "2k", "--framework", "memory"]


def test_killed_near_the_end_and_resumed_it_gives_the_same_bytes(tmp_path: Path) -> None:
    """While the scores of the last sample are written."""
    whole = dialoom.play("apollo", path=tmp_path / "whole.db", options=OPTIONS)
    whole.export("apollo", tmp_path / "whole.jsonl")
    command = ["INSERT INTO outcomes", 2, "run", "apollo", *FLAGS, "-o", "run.db"]
    with Started(tmp_path, *command, script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    dialoom.resume(tmp_path / "run.db").export("apollo", tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
