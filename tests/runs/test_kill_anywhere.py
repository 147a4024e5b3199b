"""A run killed at any kind of statement repeats no request whose reply it recorded, and exports the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dialoom import resume
from tests.conftest import Command
from tests.invented import write_release
from tests.processes import CommandProcess
from tests.server import Answer, completion, serving

# SQLite's trace callback gets each statement before its execution; at the n-th that contains a text, the process dies.
KILLER = """
import os, signal, sqlite3, sys
part, left = sys.argv.pop(1), int(sys.argv.pop(1))
connect = sqlite3.connect

def watched(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.set_trace_callback(watch)
    return connection

def watch(statement):
    global left
    if part in statement:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sqlite3.connect = watched
from dialoom.cli import main
main()
"""


def killed(folder: Path, place: str, count: int, *command: object, **options: object) -> Path:
    """Start a run whose process is killed before the n-th statement that contains a text; return the run's path.

    Args:
        folder: The run's folder, which is created.
        place: The text.
        count: The number of the statement, from 1.
        command: `run` with its arguments, or another command that plays the folder's `run.db`.
        options: Further options by name.
    """
    folder.mkdir(exist_ok=True)
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    with CommandProcess(folder, place, count, *command, *flags, "-o", "run.db", script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    return folder / "run.db"


PLACES = [
    ("INSERT INTO kept_calls", 5),  # before a request is sent
    ("UPDATE kept_calls SET attempts", 9),  # between a reply and the ledger
    ("INTO checkpoints", 12),  # between the ledger and the checkpoint
    ("COMMIT", 12),  # during a commit; a slow disk makes commits larger, and work must remain for the places below
    ("INSERT INTO outcomes", 1),  # while an outcome is written
    ("INSERT INTO judgements", 3),
    ("UPDATE scenarios SET state", 1),
]


def words(body: dict[str, Any], _number: int) -> Answer:
    """Return an answer that depends on the request alone."""
    hash_ = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    if "Was this goal reached" in body["messages"][-1]["content"]:
        return completion(json.dumps({"verdict": hash_ < "8", "explanation": hash_}))
    if "assess one aspect" in body["messages"][0]["content"]:
        return completion(json.dumps({"score": 1 + int(hash_[0], 16) % 4, "explanation": hash_}))
    if "You are the person described below" in body["messages"][0]["content"] and len(body["messages"]) > 4:
        return completion(hash_ + " TERMINATE")
    return completion(hash_)


def recorded(path: Path) -> set[int]:
    """Return the seeds of all calls whose replies are in the ledger; a seed identifies a call."""
    with closing(sqlite3.connect(path)) as connection:
        return {seed for (seed,) in connection.execute("SELECT seed FROM calls WHERE reply IS NOT NULL")}


def test_no_request_with_a_recorded_reply_is_repeated(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=3)
    kill_at: dict[str, Any] = {"at": 0, "process": None}

    def answer(body: dict[str, Any], number: int) -> Answer:
        if number == kill_at["at"]:  # between the request and the reply
            os.kill(kill_at["process"].pid, signal.SIGKILL)
        return words(body, number)

    with serving(answer) as server:
        variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none-of-yours"}
        plan = ["run", "personalens", "--profiles", "release", "--model", "openai/gpt-4o-mini", "--concurrency", "2"]
        dialoom(*plan, "-o", "whole.db", variables=variables)
        whole = len(server.requests)
        server.requests.clear()

        environment = {**os.environ, **variables}
        kill_at["at"] = 4
        with CommandProcess(tmp_path, *plan, "-o", "run.db", environment=environment) as process:
            kill_at["process"] = process
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        for part, count in PLACES:
            before, sent = recorded(tmp_path / "run.db"), Counter(body["seed"] for body in server.requests)
            resume = ["resume", "run.db", "--concurrency", 2]
            with CommandProcess(tmp_path, part, count, *resume, script=KILLER, environment=environment) as process:
                _, errors = process.communicate()
                assert process.returncode == -signal.SIGKILL, f"{part} {count}: {errors}"
            again = Counter(body["seed"] for body in server.requests) - sent
            assert not before & set(again), f"sent again after being killed at {part}"
        dialoom("resume", "run.db", variables=variables)
        sent = Counter(body["seed"] for body in server.requests)
    assert len(sent) == whole
    assert sent.total() <= whole + 2 * (1 + len(PLACES)), "only what was in flight at a kill may be sent again"
    for name in ("run", "whole"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_truncated_wal_file_still_opens_and_resumes(
    dialoom: Command, players: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_release(tmp_path / "release", users=4)
    plan = ["run", "personalens", "--profiles", "release", *players, "--concurrency", "2"]
    dialoom(*plan, "-o", "whole.db")
    dialoom("export", "whole.db", "-o", "whole.jsonl")
    killed(tmp_path, "INSERT INTO outcomes", 4, *plan)
    log = (tmp_path / "run.db-wal").read_bytes()
    assert len(log) > 100_000
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    frame, last = 24 + 4096, len(log)
    # The configuration is in the first pages; without it there is no run to resume.
    for cut in (last, last - 1, last - frame, last // 2, last // 2 + 7, last // 3, last // 5 + 1):
        shutil.copy("run.db", "cut.db")
        Path("cut.db-wal").write_bytes(log[:cut])
        Path("cut.db-shm").unlink(missing_ok=True)
        run = resume("cut.db", concurrency=2)
        assert run.status().failed == 0
        run.export("dialogues", "cut.jsonl")
        assert Path("cut.jsonl").read_bytes() == Path("whole.jsonl").read_bytes(), cut
        Path("cut.db").unlink()


def test_synchronous_full_is_passed_to_sqlite(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=1)
    plan = ["run", "personalens", "--profiles", "release", *players]
    for option, place, code in (
        ("full", "synchronous = full", -signal.SIGKILL),
        ("normal", "synchronous = full", 0),
        ("normal", "synchronous = normal", -signal.SIGKILL),
    ):
        command = [place, 1, *plan, "--synchronous", option, "-o", "killed.db"]
        with CommandProcess(tmp_path, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode == code, errors
        (tmp_path / "killed.db").unlink()
    for option in ("full", "normal"):
        dialoom(*plan, "--synchronous", option, "-o", f"{option}.db")
        dialoom("export", f"{option}.db", "-o", f"{option}.jsonl")
    assert (tmp_path / "full.jsonl").read_bytes() == (tmp_path / "normal.jsonl").read_bytes()
