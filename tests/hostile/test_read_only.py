"""Runs on media that cannot be written: what can be read is read whole, what cannot be done is said in one message."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.runs import StoreError
from dialoom.runs.store import connections
from tests.hostile.replies import play


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a read-only mount answers: tests may run as root, whom no permission stops."""
    opened, connect = os.open, connections._connect

    def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY) and str(path).endswith(".db"):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *rest, **more)

    def no_writing(uri: str) -> sqlite3.Connection:
        if "mode=rw" in uri:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(uri)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(connections, "_connect", no_writing)


def test_a_log_that_cannot_be_read_is_not_passed_over(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The file alone would seem to hold less than was done, or nothing."""
    run = play(tmp_path, people=1)
    with sqlite3.connect(run.path) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE scenarios SET state = 'pending'")
        writer.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{run.path}{suffix}", tmp_path / f"media.db{suffix}")
    request.getfixturevalue("read_only")
    with pytest.raises(StoreError, match=r"media\.db-wal that cannot be read there; copy both files"):
        dialoom.open_run(tmp_path / "media.db").status()


def test_what_would_write_is_one_message(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A run without a log can be looked at all the same."""
    run = play(tmp_path, people=1)
    request.getfixturevalue("read_only")
    assert run.status().done == 1
    for operation in (dialoom.resume, dialoom.retry, dialoom.judge):
        with pytest.raises(StoreError, match="cannot be written \\(Read-only file system\\); copy it"):
            operation(run.path)
