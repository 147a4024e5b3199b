"""Runs played in a script, in a running event loop, in threads, and several at once."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.personalens import RECIPE as PERSONALENS
from tests.processes import TIMEOUT_SECONDS

from .counting import counting, speaker
from .players import Messages, assistant, outcome_texts, run_settings


@pytest.fixture
def plain(release: Path, tmp_path: Path) -> list[str]:
    """Return the outcomes of a run played in the main thread."""
    run = dialoom.play("personalens", path=tmp_path / "plain.db", **run_settings(release))
    assert run.status().done == len(run) == 6
    return outcome_texts(run)


async def test_blocking_form_works_in_a_running_event_loop(release: Path, tmp_path: Path, plain: list[str]) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release))
    assert outcome_texts(run) == plain


async def test_awaitable_form_runs_in_the_callers_event_loop(release: Path, tmp_path: Path, plain: list[str]) -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    async def mine(messages: Messages) -> str:
        loops.add(asyncio.get_running_loop())
        return await assistant(messages)

    run = await dialoom.aplay(
        "personalens", path=tmp_path / "run.db", **run_settings(release, models={"assistant": mine})
    )
    assert loops == {asyncio.get_running_loop()}
    assert outcome_texts(run) == plain


def test_several_runs_at_once_in_threads(release: Path, tmp_path: Path, plain: list[str]) -> None:
    barrier = threading.Barrier(3, timeout=TIMEOUT_SECONDS)

    def play(number: int) -> list[str]:
        has_waited: list[object] = []

        async def mine(messages: Messages) -> str:
            if not has_waited:
                has_waited.append(await asyncio.to_thread(barrier.wait))
            return await assistant(messages)

        settings = run_settings(release, models={"assistant": mine}, concurrency=1)
        return outcome_texts(dialoom.play("personalens", path=tmp_path / f"{number}.db", **settings))

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(play, range(3))) == [plain] * 3


async def test_several_runs_at_once_in_one_event_loop(release: Path, tmp_path: Path, plain: list[str]) -> None:
    barrier = asyncio.Barrier(3)

    async def play(number: int) -> list[str]:
        has_waited: list[object] = []

        async def mine(messages: Messages) -> str:
            if not has_waited:
                has_waited.append(True)
                await barrier.wait()
            return await assistant(messages)

        settings = run_settings(release, models={"assistant": mine}, concurrency=2)
        return outcome_texts(await dialoom.aplay("personalens", path=tmp_path / f"{number}.db", **settings))

    assert await asyncio.gather(*map(play, range(3))) == [plain] * 3


def test_run_can_be_read_while_it_is_played(release: Path, tmp_path: Path) -> None:
    path, seen = tmp_path / "run.db", list[int]()

    def on_event(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioDone):
            run = dialoom.open_run(path)
            episode = run.episode(event.id)
            assert episode is not None and episode.outcome.ended_by == "user_terminated"
            seen.append(run.status().done)

    dialoom.play("personalens", path=path, **run_settings(release, on_event=on_event))
    assert seen == sorted(seen) and seen[-1] == len(seen) == 6


def test_run_being_played_cannot_be_written_by_another_thread(release: Path, tmp_path: Path) -> None:
    path, refused = tmp_path / "run.db", list[Exception]()

    def on_event(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioDone) and not refused:
            with pytest.raises(dialoom.DialoomError, match="being written by another task or thread") as error:
                dialoom.resume(path)
            refused.append(error.value)

    run = dialoom.play("personalens", path=path, **run_settings(release, on_event=on_event))
    assert refused and run.status().done == 6


def test_players_and_listeners_see_the_callers_context_variables(release: Path, tmp_path: Path) -> None:
    of_caller: contextvars.ContextVar[str] = contextvars.ContextVar("of_caller", default="nothing")
    of_caller.set("a trace")
    found: set[str] = set()

    def on_event(_: dialoom.Event) -> None:
        found.add(of_caller.get())

    dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, on_event=on_event))
    assert found == {"a trace"}


async def test_event_loop_is_not_blocked_by_planning(tmp_path: Path) -> None:
    has_ticked = threading.Event()

    async def tick() -> None:
        await is_planning.wait()
        has_ticked.set()

    is_planning, loop = asyncio.Event(), asyncio.get_running_loop()
    turns: list[bool] = []

    def on_planned(number: int) -> None:
        if number == 1500:
            loop.call_soon_threadsafe(is_planning.set)
            turns.append(has_ticked.wait(TIMEOUT_SECONDS))

    ticker = asyncio.create_task(tick())
    recipe = counting(tmp_path, on_planned)
    settings: dialoom.PlaySettings = {"models": {"speaker": speaker}, "options": {"upto": 3000}}
    run = await dialoom.aplan(recipe, path=tmp_path / "run.db", **settings)
    assert turns == [True] and len(run) == 3000
    turns.clear()
    has_ticked.clear()
    ticker = asyncio.create_task(tick())

    class Watched(type(PERSONALENS)):  # type: ignore[misc]
        """A recipe with understudies that reports its planning."""

        def scenarios(self, *arguments: Any) -> Iterator[dialoom.Scenario]:
            for number, scenario in enumerate(super().scenarios(*arguments), start=1401):
                on_planned(number)
                yield scenario

    estimate = await dialoom.aestimate(Watched, options={"limit": 200})
    assert turns == [True] and estimate.scenarios == 200
    await ticker


async def test_cancelled_planning_leaves_no_file(tmp_path: Path) -> None:
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_planned(number: int) -> None:
        if number == 10:
            loop.call_soon_threadsafe(begun.set)

    recipe = counting(tmp_path, on_planned)
    settings: dialoom.PlaySettings = {"models": {"speaker": speaker}, "options": {"upto": 10_000_000}}
    path = tmp_path / "run.db"
    planning = asyncio.create_task(dialoom.aplay(recipe, path=path, **settings))
    await begun.wait()
    planning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await planning
    assert not list(tmp_path.glob("run.db*"))
    settings["options"] = {"upto": 3}
    run = await dialoom.aplay(recipe, path=path, **settings)
    assert run.status().done == 3


def test_expected_errors_have_a_short_traceback(tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError) as error:
        dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": "some"})
    shown = "".join(traceback.format_exception(error.value))
    assert "limit must be a whole number, got 'some'" in shown and shown.count("Traceback") == 1
    assert "concurrent/futures" not in shown and "asyncio/" not in shown and "operations.py" not in shown
