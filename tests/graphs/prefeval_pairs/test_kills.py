"""A run that is killed while pairs are made goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import dialoom
from tests.graphs.prefeval_pairs.players import write_topics
from tests.runs.test_kill_anywhere import killed

SMALL = {"per_call": 3, "calls": 2}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """The files of both formats."""
    folder.mkdir()
    for name in ("pairs", "drafts"):
        run.export(name, folder / name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def test_killed_and_resumed_it_gives_the_same_bytes(tmp_path: Path) -> None:
    """In the middle of a filter, between two stages, and while the last outcome is written."""
    options = {**SMALL, "topic_file": write_topics(tmp_path, "boats", "hats")}
    whole = dialoom.play("prefeval-pairs", path=tmp_path / "whole.db", options=options)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 2 * 4 + 2
    for place, count in (("INSERT INTO kept_calls", 20), ("INTO checkpoints", 5), ("INSERT INTO outcomes", 2)):
        folder = tmp_path / str(count)
        broken = killed(folder, place, count, "run", "prefeval-pairs", **options)
        assert exported(dialoom.resume(broken), folder / "made") == expected
