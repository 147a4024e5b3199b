"""A small finished run for the tests of hostile input."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import dialoom
from tests.invented import write_release


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run of two dialogues; it is made once and must not be changed."""
    folder = tmp_path_factory.mktemp("finished")
    write_release(folder / "release")
    run = dialoom.play("personalens", path=folder / "run.db", options={"profiles": folder / "release"})
    assert run.status().done == 2
    return run.path


@pytest.fixture
def damaged(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the run file, without a write-ahead log, to be damaged."""
    with sqlite3.connect(finished) as source, sqlite3.connect(tmp_path / "source") as target:
        source.backup(target)
    target.close()
    return tmp_path / "source"
