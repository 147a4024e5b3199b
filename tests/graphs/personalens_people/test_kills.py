"""A run that is killed while people are made goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import dialoom
from tests.graphs.personalens_people.players import write_schema
from tests.runs.test_kill_anywhere import killed

SMALL = {"people": 3, "single_tasks": 2, "multi_tasks": 2, "threshold": 1.0}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """The files of the folder."""
    run.export("profiles", folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def test_killed_and_resumed_it_gives_the_same_bytes(tmp_path: Path) -> None:
    """In the middle of a stage, and while the last outcome is written."""
    schema = write_schema(tmp_path)
    options = {**SMALL, "affinity_schema": schema}
    whole = dialoom.play("personalens-people", path=tmp_path / "whole.db", options=options)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 1 + 3 * 3
    for place, count in (("INSERT INTO kept_calls", 12), ("INSERT INTO outcomes", 3)):
        folder = tmp_path / str(count)
        broken = killed(folder, place, count, "run", "personalens-people", **options)
        assert exported(dialoom.resume(broken), folder / "resumed") == expected
