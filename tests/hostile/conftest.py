"""A small run that hostile tests look at and write about."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import dialoom
from tests.invented import write_release


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two dialogues; made once, and not to be changed."""
    folder = tmp_path_factory.mktemp("kept")
    write_release(folder / "release")
    run = dialoom.play("personalens", path=folder / "run.db", options={"profiles": folder / "release"})
    assert run.status().done == 2
    return run.path


@pytest.fixture
def damaged(kept: Path, tmp_path: Path) -> Path:
    """A copy to be damaged, in no log."""
    with sqlite3.connect(kept) as source, sqlite3.connect(tmp_path / "source") as target:
        source.backup(target)
    target.close()
    return tmp_path / "source"
