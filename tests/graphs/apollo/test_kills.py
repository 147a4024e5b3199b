"""A run that is killed near its end goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import dialoom
from tests.runs.test_kill_anywhere import killed

OPTIONS = {"limit": 2, "length": "2k", "framework": "memory"}


def test_killed_near_the_end_and_resumed_it_gives_the_same_bytes(tmp_path: Path) -> None:
    """While the scores of the last sample are written."""
    whole = dialoom.play(
        "apollo", path=tmp_path / "whole.db", options={**OPTIONS, "length": ["2k"], "framework": ["memory"]}
    )
    whole.export("apollo", tmp_path / "whole.jsonl")
    broken = killed(tmp_path, "INSERT INTO outcomes", 2, "run", "apollo", **OPTIONS)
    dialoom.resume(broken).export("apollo", tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
