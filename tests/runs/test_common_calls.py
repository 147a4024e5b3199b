"""Calls that belong to no scenario: made once, booked once, told wherever a scenario used them."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom as door
from benchmarks.long_requests import assistant
from dialoom import Run
from dialoom.prompts import ChatMessage
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from dialoom.runs.stepping import case_of, read_case, replay, write_case
from tests.conftest import ROOT, Command
from tests.processes import Started
from tests.runs.test_kill_anywhere import KILLER
from tests.runs.workers.near import near_cluster

RECIPE = f"{ROOT}/benchmarks/long_requests.py:Recalling"
SMALL = {"pairs": 3, "methods": 4, "turns": 2}


@understudy("recalling", "assistant")
def play_assistant(request: MarkedRequest, draws: Draws) -> str:
    """Anything."""
    return f"{draws.pick(['Yes', 'No'])}, {len(request.said_by('assistant'))}."


def played(path: Path, model: Any = assistant, **more: Any) -> Run:
    """Three pairs by four methods."""
    options = {**SMALL, **more.pop("options", {})}
    return door.play(RECIPE, path=path, options=options, models={"assistant": model}, **more)


def exported(run: Run) -> bytes:
    """Its dialogues."""
    run.export("dialogues", run.path.with_suffix(".jsonl"))
    return run.path.with_suffix(".jsonl").read_bytes()


def common(run: Run) -> list[sqlite3.Row]:
    """The calls that belong to no scenario."""
    with closing(sqlite3.connect(run.path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT * FROM calls WHERE scenario IS NULL ORDER BY key").fetchall()


class Hesitant:
    """A player who has nothing to say to the first preference, so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """A reply, or nothing."""
        if messages[0]["content"].startswith("p0") and len(messages) in (1, 2):
            self.asked += 1
            self.left -= 1
            if self.left >= 0:
                return ""
        return await assistant(list(messages))


@pytest.mark.parametrize("workers", [None, 2])
def test_a_call_that_is_refused_for_good_is_not_made_again(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All scenarios that want it fail by it, those that come later, too; a resume makes it once more."""
    near_cluster(monkeypatch)
    asked: list[object] = []

    async def refusing(messages: Sequence[ChatMessage]) -> str:
        if messages[0]["content"].startswith("p0") and len(messages) in (1, 2):
            asked.append(messages)
            raise ValueError("no reply")
        return await assistant(list(messages))

    run = played(tmp_path / "run.db", refusing, workers=workers, concurrency=2)
    assert (run.status().done, run.status().failed, len(asked)) == (8, 4, 1)
    assert [row["error"] is None for row in common(run)].count(False) == 1
    run = door.resume(run.path, models={"assistant": refusing}, retry_failed=True, workers=workers)
    assert (run.status().failed, len(asked)) == (4, 2)
    assert [row["error"] is None for row in common(run)].count(False) == 2


def test_failures_of_equal_duration_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated call is a row of its own, although nothing but its identity tells it from the first."""
    near_cluster(monkeypatch)
    monkeypatch.setattr("dialoom.runs.store.ledger.PER_SECOND", 0)  # a clock so coarse that all calls take as long

    async def refusing(messages: Sequence[ChatMessage]) -> str:
        if messages[0]["content"].startswith("p0") and len(messages) in (1, 2):
            raise ValueError("no reply")
        return await assistant(list(messages))

    run = played(tmp_path / "run.db", refusing, workers=2, concurrency=2)
    run = door.resume(run.path, models={"assistant": refusing}, retry_failed=True, workers=2)
    assert [row["error"] is None for row in common(run)].count(False) == 2


def test_they_are_made_and_booked_once(tmp_path: Path) -> None:
    """Whatever the concurrency, to the same bytes, with draws that follow from what is asked."""
    runs = [played(tmp_path / f"{number}.db", concurrency=number) for number in (1, 12)]
    assert exported(runs[0]) == exported(runs[1])
    for run in runs:
        status = run.status()
        assert (status.usage.calls, status.usage.replays) == (3 + 12, 0)
        assert [row["prompt"] for row in common(run)] == ["recalling/reply"] * 3
        assert run.frame("calls")["number"].isna().sum() == 3
    fewer = played(tmp_path / "fewer.db", options={"methods": 1})
    assert [row["key"] for row in common(fewer)] == [row["key"] for row in common(runs[0])]
    assert len({row["seed"] for row in common(fewer)}) == 3


def test_show_and_step_name_them(dialoom: Command, tmp_path: Path) -> None:
    """With how many use them; the step at which they were asked shows the request and the reply."""
    run = played(tmp_path / "run.db")
    assert (
        "common call: assistant, recalling/reply (asked once, used by 4 scenarios)"
        in dialoom("show", "run.db", 2).stdout
    )
    shown = json.loads(dialoom("show", "run.db", 2, "--json").stdout)
    assert shown["common_calls"][0]["prompt"] == "recalling/reply"

    async def step() -> None:
        async with run.step(2) as session:
            asked = [call for stop in await session.stops() for call in stop.calls]
            assert [(call.node, call.is_common) for call in asked] == [("reply", True), ("answer", False)]
            assert asked[0].messages[0]["content"].startswith("p0")
            write_case(await case_of(session), tmp_path / "case.json")

    asyncio.run(step())
    done = asyncio.run(replay(read_case(tmp_path / "case.json")))
    assert (done.calls, done.departures) == (2, [])


def test_one_that_cannot_be_read_is_asked_again_once_for_all(tmp_path: Path) -> None:
    """By those that are tried again; the others need nothing."""
    model = Hesitant(2)
    run = played(tmp_path / "run.db", model)
    assert (run.status().failed, model.asked) == (4, 2)
    again = door.retry(run.path, models={"assistant": model})
    assert (again.status().failed, model.asked) == (0, 3)
    assert len(common(again)) == 3 + 2


def test_a_scenario_that_is_played_anew_uses_what_there_is(tmp_path: Path) -> None:
    """As the reply belongs to all that use it."""
    run = played(tmp_path / "run.db")
    again = door.retry(run.path, scenarios=[2], models={"assistant": assistant})
    assert again.status().usage.calls == 3 + 12 + 1

    async def step() -> list[bool]:
        async with again.step(2) as session:
            return [call.is_common for stop in await session.stops() for call in stop.calls]

    assert asyncio.run(step()) == [True, False]


@pytest.mark.parametrize(
    ("part", "count"), [("INTO kept_uses", 2), ("UPDATE kept_calls SET attempts", 2), ("INTO checkpoints", 9)]
)
def test_they_survive_a_kill(part: str, count: int, tmp_path: Path) -> None:
    """A reply that was had is not asked for again, and the bytes are the same."""
    whole = played(tmp_path / "whole.db")
    plan = ["run", RECIPE, "--model", "assistant=python:benchmarks.long_requests:assistant", "--concurrency", 3]
    options = [text for name, value in SMALL.items() for text in (f"--{name}", value)]
    with Started(tmp_path, part, count, *plan, *options, "-o", "run.db", script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    run = door.resume(tmp_path / "run.db")
    assert exported(run) == exported(whole)
    answered = [row["key"] for row in common(run) if row["reply"] is not None]
    assert len(answered) == len(set(answered)) == 3


def test_a_cache_gives_them_to_other_runs(tmp_path: Path) -> None:
    """Of the same seed."""
    told: Any = {"models": {"assistant": "offline/attentive"}, "cache": tmp_path / "cache.db"}
    for name in ("one", "two"):
        run = door.play(RECIPE, path=tmp_path / f"{name}.db", options=SMALL, **told)
    assert [row["attempts"] for row in common(run)] == [0] * 3


def test_an_estimate_counts_them_once() -> None:
    """What all of the sample use, for the whole run; what each uses alone, as far as a sample can tell."""
    for pairs, methods, expected in ((2, 4, 2 + 8), (1, 32, 1 + 32), (32, 1, 8 * 2 + 32)):
        options = {"pairs": pairs, "methods": methods, "turns": 2}
        estimate = door.estimate(RECIPE, options=options, models={"assistant": "openai/gpt-4o-mini"})
        assert estimate.total.calls == pytest.approx(expected)
