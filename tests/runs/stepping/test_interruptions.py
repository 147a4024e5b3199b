"""Interruptions: a stepper keeps its position and can continue, and the run's file stays intact."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dialoom import DialoomError, Stepper, step
from dialoom.roles import ProviderError
from dialoom.runs.store import RunStore
from tests.conftest import Command, MadeOnce, write_quick_players
from tests.invented import write_release
from tests.processes import CommandProcess
from tests.runs.stepping.played import UNBOUNDED, call_counts, dialogue, play, shown_stops, stepping
from tests.server import Answer, Response, completion, error, serving, silence


def stopped(dialoom: Command, folder: Path, calls: int) -> None:
    """Make a run of one dialogue that was stopped after a number of calls, and `whole.db`, which was not."""
    write_release(folder / "release")
    plan = ["run", "personalens", "--profiles", "release", "--limit", 1, *write_quick_players(folder)]
    dialoom(*plan, "--max-calls", calls, "-o", "run.db", code=3)
    dialoom(*plan, "-o", "whole.db")


def exported(dialoom: Command, path: Path) -> bytes:
    """Return the bytes of an export."""
    dialoom("export", path.name, "-o", "out.jsonl")
    return (path.parent / "out.jsonl").read_bytes()


@pytest.mark.parametrize("calls", [0, 4, 8])
@pytest.mark.parametrize("way", ["steps", "steps, then resume", "a branch, then resume", "a branch, then steps"])
def test_stepped_scenario_ends_as_a_run_would(dialoom: Command, made_once: MadeOnce, calls: int, way: str) -> None:
    folder = made_once(stopped, calls)
    path, uninterrupted = folder / "run.db", folder / "whole.db"

    async def act(stepper: Stepper) -> None:
        assert stepper.branch == "main"
        if way == "steps":
            assert (await stepper.run()).is_end
            assert stepper.branch == "main"
        elif way == "steps, then resume":
            await stepper.step()
            if not (await stepper.here()).is_end:
                await stepper.step()
        else:
            branch = await stepper.fork("before")
            await branch.run()
        if way == "a branch, then steps":
            await stepper.run()
            assert shown_stops(await stepper.stops()) == shown_stops(await branch.stops())

    stepping(path, act, budget=UNBOUNDED)
    made = call_counts(path).rows
    dialoom("resume", "run.db", "--max-calls", "none")
    whole = call_counts(uninterrupted).rows
    assert call_counts(path).rows == whole
    assert made == whole or way == "steps, then resume"
    assert exported(dialoom, path) == exported(dialoom, uninterrupted)
    assert dialoom("show", "run.db", 1, "--json").stdout == dialoom("show", "whole.db", 1, "--json").stdout

    def tokens(file: Path) -> Any:
        with closing(sqlite3.connect(file)) as connection:
            query = "SELECT role, count(*) FROM calls WHERE branch IS NULL GROUP BY role ORDER BY role"
            return connection.execute(query).fetchall()

    assert tokens(path) == tokens(uninterrupted)


def served(run_folder: Path, dialoom: Command, players: list[str], url: str) -> Path:
    """Return the path of a run of one dialogue, still without calls, whose assistant is at a server."""
    write_release(run_folder / "release")
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/m", "--api-base", f"assistant={url}"]
    plan = ["run", "personalens", "--profiles", "release", "--limit", 1, *cast, "--max-calls", 0, "-o", "run.db"]
    dialoom(*plan, code=3)
    return run_folder / "run.db"


def test_failed_step_leaves_the_stepper_where_it_was(
    dialoom: Command, players: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    is_failing = True

    def answer(body: dict[str, Any], number: int) -> Answer:  # noqa: ARG001
        return error(400, "no such thing", "bad") if is_failing else completion("fine")

    async def act(stepper: Stepper) -> None:
        nonlocal is_failing
        await stepper.run([stepper.condition("assistant")])
        branch = await stepper.fork("mine")
        await branch.resample()
        for there in (stepper, branch):
            is_failing = True
            before = await there.here()
            for _ in range(2):
                with pytest.raises(ProviderError, match="no such thing"):
                    await there.step()
                assert await there.here() == before
            is_failing = False
            stop = await there.step()
            assert (stop.ran, stop.number > before.number) == (("assistant",), True)
            assert [call.reply for call in stop.calls] == ["fine"]
        assert (await stepper.run()).is_end

    with serving(answer) as server:
        path = served(tmp_path, dialoom, players, server.url)
        stepping(path, act, budget=UNBOUNDED)
    dialoom("resume", "run.db", "--max-calls", "none")
    assert b'"ended_by": "user_terminated"' in exported(dialoom, path)


def test_cancelled_step_leaves_the_stepper_where_it_was(
    dialoom: Command, players: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    is_silent = True

    def answer(body: dict[str, Any], number: int) -> Answer | Response:  # noqa: ARG001
        return silence() if is_silent else completion("fine")

    with serving(answer) as server:
        path = served(tmp_path, dialoom, players, server.url)

        async def act(stepper: Stepper) -> None:
            nonlocal is_silent
            before = await stepper.run([stepper.condition("assistant")])
            branch = await stepper.fork("mine")
            await branch.resample()
            for there in (stepper, branch):
                is_silent = True
                seen = len(server.requests)
                task = asyncio.create_task(there.step())
                while len(server.requests) == seen and not task.done():  # noqa: ASYNC110  # the server is a thread
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                here = await there.here()
                assert (here.checkpoint, here.next) == (before.checkpoint, ("assistant",))
                is_silent = False
                assert (await there.step()).ran == ("assistant",)

        stepping(path, act, budget=UNBOUNDED)
        dialoom("resume", "run.db", "--max-calls", "none")
    assert b'"ended_by": "user_terminated"' in exported(dialoom, path)


_STEPPER = """
import asyncio, sys
import dialoom

async def main():
    async with dialoom.step("run.db", 1) as stepper:
        await stepper.goto(1)
        branch = await stepper.fork("mine")
        await branch.resample()
        for _ in range(4):
            stop = await branch.step()
            print(stop.number, stop.checkpoint, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_kill_loses_no_step(dialoom: Command, made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    before = exported(dialoom, path)
    with CommandProcess(tmp_path, script=_STEPPER) as process:
        printed = [process.stdout.readline().split() for _ in range(4)]
        with pytest.raises(DialoomError, match="another dialoom process"):
            RunStore(path)
        process.kill()

    rows = call_counts(path).rows

    async def go_on(stepper: Stepper) -> None:
        stop = await stepper.here()
        assert stop.checkpoint == printed[-1][1]
        assert [each.checkpoint for each in (await stepper.stops())[-4:]] == [id_ for _, id_ in printed]
        await stepper.rewind(4)
        await stepper.run([stepper.condition(f"messages|length == {len(stop.state['messages'])}")])
        assert call_counts(path).rows == rows
        assert (await stepper.run()).is_end

    stepping(path, go_on, branch="mine")
    assert exported(dialoom, path) == before


def test_missing_scenario_and_locked_run_are_refused(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def opened(scenario: str, **options: Any) -> None:
        async with step(path, scenario, **options):
            raise AssertionError("there is nothing to step through")

    for scenario in ("17", "nobody"):
        with pytest.raises(DialoomError, match=scenario):
            asyncio.run(opened(scenario))
    with pytest.raises(DialoomError, match="there is no branch 'mine'; the branches are main"):
        asyncio.run(opened("1", branch="mine"))
    with RunStore(path), pytest.raises(DialoomError, match="another task or thread of this process"):
        asyncio.run(opened("1"))
    with RunStore(path) as store:

        async def within() -> str:
            async with Stepper.open(store, 1) as stepper:
                return stepper.branch

        assert asyncio.run(within()) == "main"
        assert store.state_of(0) == "done", "a store that was open stays open"


@pytest.mark.parametrize("recipe", ["aloe", "personalens"])
def test_branches_survive_compacting(dialoom: Command, made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)

    async def branch_off(stepper: Stepper) -> Any:
        await stepper.rewind(3)
        await stepper.resample()
        await stepper.run()
        await stepper.rewind(1)
        await (await stepper.fork("mine")).resample()
        return shown_stops(await stepper.stops())

    stops = stepping(path, branch_off)
    dialoom("compact", "run.db")
    rows = call_counts(path).rows

    async def look(stepper: Stepper) -> None:
        assert shown_stops(await stepper.stops()) == stops
        await stepper.rewind(1)
        await stepper.run()
        main = await stepper.switch("main")
        await main.goto(1)
        await main.run()
        assert call_counts(path).rows == rows
        assert (await (await stepper.switch("mine")).run()).is_end

    stepping(path, look, branch="b1")
