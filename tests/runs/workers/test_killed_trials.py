"""Runs of two trials on two workers, killed repeatedly: the exports equal those of one process that is not."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER

ON_WORKERS = """
import pytest
from tests.runs.workers.local_cluster import local_cluster
local_cluster(pytest.MonkeyPatch())
"""
"""The start of a script whose `--workers` are in the same process, so that a kill ends them, too."""

STUDIES = f"{ROOT}/docs/examples/studies"

RUNS: dict[str, list[object]] = {
    "personalens": ["personalens", "--users", 1, "--setting", "I", "--limit", 1],
    "aloe": ["aloe", "--limit", 2, "--rounds", 1],
    "prefeval": ["prefeval", "--limit", 2, "--turns", 2],
    "apollo": ["apollo", "--limit", 2],
    "study": [f"{STUDIES}/support.toml", "--sample", 3],
    "mediation": [f"{STUDIES}/mediation.toml"],
}

KILLS = [("UPDATE kept_calls SET attempts", 7), ("INSERT INTO outcomes", 2)]
"""Statements of SQLite before whose n-th execution the process is killed, by the owner or by a worker."""


def answered(path: Path) -> Counter[bytes]:
    """Return the keys of a run's answered calls."""
    with closing(sqlite3.connect(path)) as connection:
        return Counter(key for (key,) in connection.execute("SELECT key FROM kept_calls WHERE reply IS NOT NULL"))


@pytest.mark.parametrize("name", RUNS)
def test_killed_workers_playing_trials_give_the_export_of_one_process(
    name: str, dialoom: Command, tmp_path: Path
) -> None:
    plan = ["run", *RUNS[name], "--trials", 2, "--seed", 3]
    dialoom(*plan, "--concurrency", 1, "-o", "whole.db")
    command = [*plan, "--workers", 2, "-o", "run.db"]
    for place, count in KILLS:
        with CommandProcess(tmp_path, place, count, *command, script=ON_WORKERS + KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, errors
        command = ["resume", "run.db", "--workers", 2]
    with CommandProcess(tmp_path, "no such statement", 1, *command, script=ON_WORKERS + KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    for path in ("whole", "run"):
        dialoom("export", f"{path}.db", "-o", f"{path}.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    first, second = ([row | {"trial": None} for row in rows if row["trial"] == trial] for trial in (1, 2))
    assert [row["id"] for row in first] == [row["id"] for row in second]
    assert (first != second) is (name != "apollo"), (
        "the second trial is sampled anew; APOLLO's understudies draw nothing"
    )
    assert answered(tmp_path / "run.db") == answered(tmp_path / "whole.db")
