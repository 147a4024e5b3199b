"""Trying again pays for what was named, and for nothing else; what else is to be done is said."""

from __future__ import annotations

from pathlib import Path

import dialoom
from tests.conftest import Command


def test_a_scenario_played_anew_is_the_only_one_that_is_played(tmp_path: Path) -> None:
    """What is pending stays pending, and nothing is paid for it."""
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 5})
    dialoom.retry(run.path, scenarios=[2])
    assert (run.status().done, run.status().pending) == (1, 4)
    assert [episode.id for episode in run.episodes()] == [run.scenario(2).id]


def test_only_what_failed_is_tried_again(tmp_path: Path) -> None:
    """Also while other scenarios are pending; a chosen scenario and what failed can be had together."""

    async def assistant(messages: list[dict[str, str]]) -> str:  # noqa: ARG001
        if not calm:
            raise ValueError("not in the mood")
        return "fine"

    calm: list[bool] = []
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
    calm.append(True)
    dialoom.retry(run.path, models={"assistant": assistant})
    assert (run.status().failed, run.status().done) == (0, before.failed)
    dialoom.retry(run.path, scenarios=[5], models={"assistant": assistant})
    assert run.status().pending == before.pending - 1


def test_what_else_can_be_done_is_said(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """A resume that finds only failures names `retry`; a retry that leaves something pending names `resume`."""
    (tmp_path / "sad.py").write_text("async def assistant(messages):\n    raise ValueError('no')\n")
    cast = [*players[:2], *players[4:], "--model", "assistant=python:sad:assistant", "--limit", 3]
    dialoom("run", "personalens", *cast, "--fail-on-error", 1, "--concurrency", 1, "-o", "run.db", code=1)
    said = dialoom("retry", "run.db", "--scenario", 1, code=1).stdout
    assert "2 scenarios pending still; play what is pending with: dialoom resume run.db" in said
    dialoom("resume", "run.db", code=1)
    said = dialoom("resume", "run.db", code=1).stdout
    assert "0 done, 0 failed" in said
    assert "3 scenarios failed before; try again with: dialoom retry run.db" in said
