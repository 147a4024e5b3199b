"""A run that is killed while people are made goes on to the same bytes."""

from __future__ import annotations

import signal
from pathlib import Path

import dialoom
from tests.graphs.personalens_people.players import write_schema
from tests.processes import Started
from tests.runs.test_kill_anywhere import KILLER

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
    flags = [text for name, value in SMALL.items() for text in (f"--{name.replace('_', '-')}", value)]
    for place, count in (("INSERT INTO kept_calls", 12), ("INSERT INTO outcomes", 3)):
        folder = tmp_path / str(count)
        folder.mkdir()
        command = ["run", "personalens-people", *flags, "--affinity-schema", schema, "-o", "run.db"]
        with Started(folder, place, count, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, errors
        assert exported(dialoom.resume(folder / "run.db"), folder / "resumed") == expected
