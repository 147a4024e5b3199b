"""What happens, as it happens; and stopping it from anywhere."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from pathlib import Path

import pytest

import dialoom
from dialoom import Began, Control, Ended, Planned, ScenarioDone, ScenarioFailed
from tests.processes import PATIENCE

from .counting import counting, speaker
from .players import Messages, assistant, talk, told


async def test_events_come_in_order(release: Path, tmp_path: Path) -> None:
    """The plan, the beginning, each scenario, the end; the same that a listener is told."""
    listened: list[dialoom.Event] = []
    path = tmp_path / "run.db"
    settings = told(release, on_event=listened.append)
    events = [event async for event in dialoom.stream("personalens", path=path, **settings)]
    assert events == listened
    planned = events.index(next(event for event in events if isinstance(event, Planned)))
    assert all(isinstance(event, dialoom.Noted) for event in events[:planned])
    assert [type(event) for event in events[planned:]] == [Planned, Began, *[ScenarioDone] * 6, Ended]
    assert events[-1] == Ended(path, 6, 0, True)
    assert {event.number for event in events if isinstance(event, ScenarioDone)} == set(range(1, 7))


async def test_a_failure_is_an_event(release: Path, tmp_path: Path) -> None:
    """And the others go on."""

    async def moody(messages: Messages) -> str:
        if "user8" in messages[0]["content"] or "two tonight" in str(messages):
            raise ValueError("not today")
        return await assistant(messages)

    settings = told(release, models={"user": moody})
    path = tmp_path / "run.db"
    events = [event async for event in dialoom.stream("personalens", path=path, **settings)]
    failed = [event for event in events if isinstance(event, ScenarioFailed)]
    assert failed and all("not today" in event.error for event in failed)
    assert isinstance(events[-1], Ended) and events[-1].failed == len(failed) < 6


async def test_leaving_early_stops_and_going_on_completes(release: Path, tmp_path: Path) -> None:
    """What was committed is kept, and the same comes out in the end."""
    whole = await dialoom.aplay("personalens", path=tmp_path / "whole.db", **told(release))
    path = tmp_path / "run.db"
    async with aclosing(dialoom.stream("personalens", path=path, **told(release, concurrency=1))) as events:
        async for event in events:
            if isinstance(event, ScenarioDone):
                break
    done = dialoom.open_run(path).status().done
    assert 1 <= done < 6
    gone_on = [event async for event in dialoom.stream(path=path)]
    assert [type(event) for event in gone_on] == [Began, *[ScenarioDone] * (6 - done), Ended]
    assert talk(dialoom.open_run(path)) == talk(whole)


def test_a_loop_that_is_simply_left_stops_with_its_event_loop(release: Path, tmp_path: Path) -> None:
    """The file is free as soon as `asyncio.run` is over."""

    async def first() -> str:
        async for event in dialoom.stream("personalens", path=tmp_path / "run.db", **told(release, concurrency=1)):
            if isinstance(event, ScenarioDone):
                return event.id
        raise AssertionError("no scenario was done")

    id_ = asyncio.run(first())
    run = dialoom.open_run(tmp_path / "run.db")
    assert run.episode(id_) is not None and run.status().pending > 0
    assert run.resume().status().pending == 0


async def test_a_run_of_an_object_is_gone_on_with_through_its_handle(tmp_path: Path) -> None:
    """Which knows the recipe."""
    run = await dialoom.aplan(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker})
    events = [event async for event in run.stream(models={"speaker": speaker})]
    assert isinstance(events[-1], Ended) and events[-1].done == 3


async def test_errors_are_raised_where_it_is_iterated(tmp_path: Path) -> None:
    """As `play` raises them."""
    with pytest.raises(dialoom.DialoomError, match="unknown recipe"):
        async for _ in dialoom.stream("nothing", path=tmp_path / "run.db"):
            pass
    with pytest.raises(dialoom.DialoomError, match="there is no run file"):
        async for _ in dialoom.stream(path=tmp_path / "run.db"):
            pass


async def test_a_task_that_is_cancelled_leaves_a_run_to_go_on_with(release: Path, tmp_path: Path) -> None:
    """As a web server cancels what nobody waits for any more."""
    asked, path = asyncio.Event(), tmp_path / "run.db"

    async def silent(_: Messages) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def watch() -> None:
        async for _ in dialoom.stream("personalens", path=path, **told(release, models={"assistant": silent})):
            pass

    watching = asyncio.create_task(watch())
    await asked.wait()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    run = dialoom.open_run(path)
    assert run.status().pending == 6
    assert (await dialoom.aresume(path, models={"assistant": assistant})).status().done == 6


@pytest.mark.parametrize("way", ["drain", "stop"])
def test_a_control_stops_it_from_another_thread(way: str, release: Path, tmp_path: Path) -> None:
    """Draining waits for the reply that is under way, stopping drops it."""
    control, asked, answered = Control(), threading.Event(), []

    async def slow(messages: Messages) -> str:
        asked.set()
        while not control.is_draining:  # noqa: ASYNC110  # it is another thread that does it
            await asyncio.sleep(0.005)
        if way == "stop":
            await asyncio.Event().wait()
        answered.append(True)
        return await assistant(messages)

    def other_thread() -> None:
        asked.wait(PATIENCE)
        getattr(control, way)()

    thread = threading.Thread(target=other_thread)
    thread.start()
    events: list[dialoom.Event] = []
    settings = told(release, models={"assistant": slow}, concurrency=1, control=control, on_event=events.append)
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    thread.join()
    assert bool(answered) == (way == "drain")
    assert run.status().usage.unanswered == (0 if way == "drain" else 1)
    assert events[-1] == Ended(run.path, 0, 0, False)
    assert run.resume(models={"assistant": assistant}).status().done == 6


def test_a_control_that_was_used_before_the_plan(release: Path, tmp_path: Path) -> None:
    """There is nothing to go on with, so that is an error, and no file is left."""
    control = Control()
    control.drain()
    with pytest.raises(dialoom.DialoomError, match="stopped while it was planned"):
        dialoom.play("personalens", path=tmp_path / "run.db", **told(release, control=control))
    assert not list(tmp_path.glob("run.db*"))
    run = dialoom.plan("personalens", path=tmp_path / "run.db", **told(release))
    assert run.resume(control=control).status().pending == 6
