"""What is refused before a run is made or paid for, and what is left when making it fails."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dialoom
from dialoom.runs import RunError, StoreError
from tests.conftest import Command
from tests.hostile.replies import play, saying
from tests.processes import Started


def test_the_runs_own_name_is_refused_for_another_judging(tmp_path: Path) -> None:
    """With the run's own judge, too, and before anything is asked."""
    run = dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1})
    before = run.status().usage.calls
    with pytest.raises(RunError, match="name 'run' is kept") as caught:
        run.judge("offline/attentive", name="run")
    assert caught.value.setting == "name"
    assert run.status().usage.calls == before


@pytest.mark.parametrize("number", [-5, 0, 10**20])
def test_concurrency_has_bounds(dialoom: Command, tmp_path: Path, number: int) -> None:
    """From a flag and from YAML alike; nothing is written."""
    (tmp_path / "c.yaml").write_text(f"concurrency: {number}\nlimit: 1\n")
    for given in (["--config", "c.yaml"], ["--concurrency", number, "--limit", 1]):
        assert "concurrency" in dialoom("run", "personalens", *given, "-o", "run.db", code=2).stderr
    assert not list(tmp_path.glob("*run.db*"))


@pytest.mark.parametrize("path", [":memory:", "file:x.db", "file::memory:?cache=shared"])
def test_what_sqlite_takes_for_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """As a run, and as a cache."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="give a file's path"):
        dialoom.plan("personalens", path=path, options={"limit": 1})
    with pytest.raises(dialoom.DialoomError, match="give a file's path"):
        dialoom.plan("personalens", path="run.db", options={"limit": 1}, cache=path)
    assert not list(tmp_path.iterdir())


_KILLED = """
import os, signal, sys
import dialoom
folder, at = sys.argv[1], int(sys.argv[2])
if sys.argv[3] == "False":
    del os.O_TMPFILE
def hook(event, arguments):
    global at
    if event in ("open", "os.link", "os.remove", "sqlite3.connect") and folder in str(arguments):
        at -= 1
        if at == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
dialoom.plan("personalens", path=folder + "/run.db", options={"limit": 1})
"""


@pytest.mark.parametrize("is_nameless", [True, False], ids=["nameless files", "files beside it"])
def test_a_run_file_appears_whole(tmp_path: Path, is_nameless: bool) -> None:
    """Killed at any time while it is made, there is a run to go on with, or none, and it can be made."""
    for at in (1, 2, 3, 4, 6):
        (folder := tmp_path / f"run{at}").mkdir()
        with Started(tmp_path, folder, at, is_nameless, script=_KILLED) as process:
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        if (path := folder / "run.db").exists():
            assert dialoom.resume(path).status().done == 1
        else:
            assert not is_nameless or not list(folder.iterdir())
            assert len(dialoom.plan("personalens", path=path, options={"limit": 1})) == 1


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """No file of this process may grow beyond that: SQLite takes it for a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("size", [20_000, 500_000], ids=["while it is made", "while it is planned"])
def test_a_full_disk_leaves_nothing_to_resume(tmp_path: Path, size: int) -> None:
    """And no word of resuming."""
    # What a file deflates must not fit for all that.
    hens = (f"She keeps the hens {Random(number).getrandbits(8_000):x}." for number in range(1000))
    people = ({"profile": each, "personality": "Calm."} for each in hens)
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    options: dict[str, Any] = {"personas": str(tmp_path / "people.jsonl")}
    with little_room(size), pytest.raises(StoreError, match="nothing is left of it") as caught:
        dialoom.plan("aloe-eval", path=tmp_path / "run.db", options=options)
    assert "resume" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["people.jsonl"]


def test_a_new_run_is_in_the_mode_that_readers_need(tmp_path: Path) -> None:
    """So that a run can be looked at while it is written."""
    run = play(tmp_path, people=1, assistant=saying("Hi."))
    with sqlite3.connect(run.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
