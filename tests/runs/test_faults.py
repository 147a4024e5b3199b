"""Runs that only fail are stopped; retries."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import open_run
from tests.conftest import Command
from tests.invented import write_release
from tests.server import Answer, completion, error, serving


def failing_players(folder: Path, players: list[str]) -> list[str]:
    """Return a cast whose assistant fails until a file `fixed` exists, each time with another message."""
    (folder / "failing.py").write_text(
        "from pathlib import Path\n"
        "repeats = []\n"
        "async def assistant(messages):\n"
        "    if not Path('fixed').exists():\n"
        "        repeats.append('very')\n"
        "        raise ValueError(' '.join([*repeats, 'wrong']))\n"
        "    return 'fine'\n"
    )
    return [*players[:2], *players[4:], "--model", "assistant=python:failing:assistant"]


@pytest.mark.parametrize(
    ("bound", "least", "most"), [("3", 3, 5), ("50 %", 20, 22)], ids=["number", "share of at least 20"]
)
def test_run_that_only_fails_is_stopped(
    dialoom: Command, players: list[str], tmp_path: Path, bound: str, least: int, most: int
) -> None:
    write_release(tmp_path / "release", users=20)
    cast = failing_players(tmp_path, players)
    plan = ["run", "personalens", "--profiles", "release", *cast, "--concurrency", 2, "-o", "run.db"]
    stopped = dialoom(*plan, "--fail-on-error", bound, code=1)
    assert f"--fail-on-error {bound}" in stopped.stdout
    assert (
        "Continue with: dialoom resume run.db --concurrency 2 (to retry what failed: dialoom retry run.db)"
        in stopped.stdout
    )
    scenarios = json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]
    assert least <= scenarios["failed"] <= most, "at most the calls in progress fail, too"
    assert scenarios["pending"] == scenarios["total"] - scenarios["failed"]
    (tmp_path / "fixed").touch()
    dialoom("resume", "run.db", "--retry-failed", "--fail-on-error", bound)
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]["done"] == scenarios["total"]


def test_accepted_share_of_failures_does_not_stop_a_run(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Every fourth dialogue fails, which is below 30 %."""
    write_release(tmp_path / "release", users=12)
    (tmp_path / "some.py").write_text(
        "begun = 0\n"
        "async def assistant(messages):\n"
        "    global begun\n"
        "    begun += len(messages) < 3\n"
        "    if len(messages) < 3 and begun % 4 == 0:\n"
        "        raise ValueError('every fourth')\n"
        "    return 'fine'\n"
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:some:assistant"]
    plan = ["run", "personalens", "--profiles", "release", *cast, "--concurrency", 1, "-o", "run.db"]
    dialoom(*plan, "--fail-on-error", "30%", code=1)
    scenarios = json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]
    assert (scenarios["failed"], scenarios["pending"]) == (6, 0)
    with open_run(tmp_path / "run.db") as run:
        found = Counter((episode.state, episode.at_fault) for episode in run.episodes())
    assert found == {("failed", "provider, permanent"): 6, ("done", None): scenarios["done"]}


def test_status_counts_throttled_attempts(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    def answer(body: dict[str, Any], number: int) -> Answer:  # noqa: ARG001
        refusals = {1: error(429, "slow down"), 3: error(500, "oh dear")}
        return refusals.get(number, completion("fine"))

    write_release(tmp_path / "release")
    with serving(answer) as server:
        cast = [*players[:2], *players[4:], "--model", "assistant=openai/m", "--api-base", f"assistant={server.url}"]
        plan = ["run", "personalens", "--profiles", "release", *cast, "--concurrency", 1, "-o", "run.db"]
        dialoom(*plan, variables={"OPENAI_API_KEY": "sk-test"})
    assert "openai/m: 2 attempts failed, 1 of them throttled" in dialoom("status", "run.db").stdout


def test_only_the_replayed_scenario_is_played(tmp_path: Path) -> None:
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 5})
    dialoom.retry(run.path, scenarios=[2])
    assert (run.status().done, run.status().pending) == (1, 4)
    assert [episode.id for episode in run.episodes()] == [run.scenario(2).id]


def test_only_failed_scenarios_are_retried(tmp_path: Path) -> None:
    async def assistant(messages: list[dict[str, str]]) -> str:  # noqa: ARG001
        if not fixed:
            raise ValueError("not yet")
        return "fine"

    fixed: list[bool] = []
    run = dialoom.play(
        "personalens",
        path=tmp_path / "run.db",
        models={"assistant": assistant},
        options={"limit": 5, "judge": False},
        concurrency=1,
        fail_on_error=1,
    )
    before = run.status()
    assert before.failed and before.pending > 1
    fixed.append(True)
    dialoom.retry(run.path, models={"assistant": assistant})
    assert (run.status().failed, run.status().done) == (0, before.failed)
    dialoom.retry(run.path, scenarios=[5], models={"assistant": assistant})
    assert run.status().pending == before.pending - 1


def test_resume_and_retry_name_each_other(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    (tmp_path / "sad.py").write_text("async def assistant(messages):\n    raise ValueError('no')\n")
    cast = [*players[:2], *players[4:], "--model", "assistant=python:sad:assistant", "--limit", 3]
    dialoom("run", "personalens", *cast, "--fail-on-error", 1, "--concurrency", 1, "-o", "run.db", code=1)
    output = dialoom("retry", "run.db", "--scenario", 1, code=1).stdout
    assert "2 scenarios still pending; play the rest with: dialoom resume run.db" in output
    dialoom("resume", "run.db", code=1)
    output = dialoom("resume", "run.db", code=1).stdout
    assert "0 done, 0 failed" in output
    assert "3 scenarios failed earlier; retry with: dialoom retry run.db" in output
