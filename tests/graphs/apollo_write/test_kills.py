"""A run that is killed while a source is written goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import dialoom
from tests.runs.test_kill_anywhere import killed

SMALL = {"users": 1, "pairs": 1, "errands": 0, "offers": 1, "flows": "food,music"}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """The files of both folders."""
    for name in ("apollo-source", "drafts"):
        run.export(name, folder / name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jsonl")}


def test_killed_and_resumed_it_gives_the_same_bytes(tmp_path: Path) -> None:
    """Between the calls of a session."""
    whole = dialoom.play("apollo-write", path=tmp_path / "whole.db", options=SMALL)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 4 + 5
    broken = killed(tmp_path, "INSERT INTO kept_calls", 15, "run", "apollo-write", **SMALL)
    assert exported(dialoom.resume(broken), tmp_path / "resumed") == expected
