"""A recipe's relative path is found again from any folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dialoom
from benchmarks.long_requests import assistant
from tests.conftest import ROOT
from tests.runs.workers.near import near_cluster

SPEC = "talks/recipe.py:Recalling"
PLAYERS = {"assistant": assistant}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recipe and, in another one, a run of two scenarios that was planned from there."""
    folder = tmp_path / "project"
    (folder / "talks").mkdir(parents=True)
    (folder / "runs").mkdir()
    shutil.copy(ROOT / "benchmarks/long_requests.py", folder / "talks/recipe.py")
    shutil.copytree(ROOT / "benchmarks/prompts", folder / "talks/prompts")
    monkeypatch.chdir(folder)
    dialoom.plan(SPEC, path="runs/run.db", models=PLAYERS, options={"pairs": 1, "methods": 2, "turns": 1})
    monkeypatch.chdir(tmp_path)
    return folder


def test_where_the_run_was_made(project: Path) -> None:
    """Though the command is in another folder; nothing is to be trusted anew."""
    assert dialoom.resume(project / "runs/run.db", models=PLAYERS).status().done == 2


@pytest.mark.parametrize("workers", [None, 2])
def test_beside_the_run(project: Path, workers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder has moved since: the file is another one then, which is trusted anew, or not."""
    near_cluster(monkeypatch)
    moved = project.rename(project.with_name("moved"))
    run = (moved / "runs/run.db").rename(moved / "run.db")
    with pytest.raises(dialoom.DialoomError, match=r"names the recipe talks/recipe\.py:Recalling, .*moved"):
        dialoom.resume(run, models=PLAYERS)
    assert dialoom.resume(run, models=PLAYERS, trust=True, workers=workers).status().done == 2


def test_nowhere(project: Path, tmp_path: Path) -> None:
    """All folders are named that were looked into."""
    run = (project / "runs/run.db").rename(tmp_path / "run.db")
    shutil.rmtree(project / "talks")
    looked = f"'{SPEC}': there is no such file in any of {project}, {tmp_path}; put it into one of them"
    with pytest.raises(dialoom.DialoomError, match=looked):
        dialoom.resume(run, models=PLAYERS)
    assert (
        dialoom.resume(run, models=PLAYERS, recipe=f"{ROOT}/benchmarks/long_requests.py:Recalling").status().done == 2
    )
