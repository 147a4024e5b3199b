"""Events, interruption and process state of runs played through the Python API."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Control, Ended, Planned, ScenarioDone, ScenarioFailed
from tests.processes import TIMEOUT_SECONDS, CommandProcess
from tests.server import completion, serving

from .counting import counting, speaker
from .players import Messages, assistant, outcome_texts, run_settings, user


async def test_events_are_in_order(release: Path, tmp_path: Path) -> None:
    listened: list[dialoom.Event] = []
    path = tmp_path / "run.db"
    settings = run_settings(release, on_event=listened.append)
    events = [event async for event in dialoom.stream("personalens", path=path, **settings)]
    assert events == listened
    planned = events.index(next(event for event in events if isinstance(event, Planned)))
    assert all(isinstance(event, dialoom.Notice) for event in events[:planned])
    assert [type(event) for event in events[planned:]] == [Planned, dialoom.Started, *[ScenarioDone] * 6, Ended]
    assert events[-1] == Ended(path, 6, 0, True)
    assert {event.number for event in events if isinstance(event, ScenarioDone)} == set(range(1, 7))


async def test_failure_is_an_event_and_other_scenarios_go_on(release: Path, tmp_path: Path) -> None:
    async def moody(messages: Messages) -> str:
        if "user8" in messages[0]["content"] or "two tonight" in str(messages):
            raise ValueError("not today")
        return await assistant(messages)

    settings = run_settings(release, models={"user": moody})
    path = tmp_path / "run.db"
    events = [event async for event in dialoom.stream("personalens", path=path, **settings)]
    failed = [event for event in events if isinstance(event, ScenarioFailed)]
    assert failed and all("not today" in event.error for event in failed)
    assert isinstance(events[-1], Ended) and events[-1].failed == len(failed) < 6


async def test_leaving_a_stream_stops_the_run_and_resuming_completes_it(release: Path, tmp_path: Path) -> None:
    whole = await dialoom.aplay("personalens", path=tmp_path / "whole.db", **run_settings(release))
    path = tmp_path / "run.db"
    async with aclosing(dialoom.stream("personalens", path=path, **run_settings(release, concurrency=1))) as events:
        async for event in events:
            if isinstance(event, ScenarioDone):
                break
    done = dialoom.open_run(path).status().done
    assert 1 <= done < 6
    resumed_events = [event async for event in dialoom.stream(path=path)]
    assert [type(event) for event in resumed_events] == [dialoom.Started, *[ScenarioDone] * (6 - done), Ended]
    assert outcome_texts(dialoom.open_run(path)) == outcome_texts(whole)


def test_abandoned_stream_stops_with_its_event_loop(release: Path, tmp_path: Path) -> None:
    async def first() -> str:
        async for event in dialoom.stream(
            "personalens", path=tmp_path / "run.db", **run_settings(release, concurrency=1)
        ):
            if isinstance(event, ScenarioDone):
                return event.id
        raise AssertionError("no scenario was done")

    id_ = asyncio.run(first())
    run = dialoom.open_run(tmp_path / "run.db")
    assert run.episode(id_) is not None and run.status().pending > 0
    assert run.resume().status().pending == 0


async def test_run_of_an_object_is_resumed_through_its_handle(tmp_path: Path) -> None:
    run = await dialoom.aplan(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker})
    events = [event async for event in run.stream(models={"speaker": speaker})]
    assert isinstance(events[-1], Ended) and events[-1].done == 3


async def test_stream_raises_errors_where_it_is_iterated(tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError, match="unknown recipe"):
        async for _ in dialoom.stream("nothing", path=tmp_path / "run.db"):
            pass
    with pytest.raises(dialoom.DialoomError, match="there is no run file"):
        async for _ in dialoom.stream(path=tmp_path / "run.db"):
            pass


async def test_cancelled_task_leaves_a_run_that_can_be_resumed(release: Path, tmp_path: Path) -> None:
    asked, path = asyncio.Event(), tmp_path / "run.db"

    async def silent(_: Messages) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def watch() -> None:
        async for _ in dialoom.stream("personalens", path=path, **run_settings(release, models={"assistant": silent})):
            pass

    watching = asyncio.create_task(watch())
    await asked.wait()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    run = dialoom.open_run(path)
    assert run.status().pending == 6
    assert (await dialoom.aresume(path, models={"assistant": assistant})).status().done == 6


@pytest.mark.parametrize("action", ["drain", "stop"])
def test_control_stops_from_another_thread(action: str, release: Path, tmp_path: Path) -> None:
    control, asked, answered = Control(), threading.Event(), []

    async def slow(messages: Messages) -> str:
        asked.set()
        while not control.is_draining:  # noqa: ASYNC110  # it is set in another thread
            await asyncio.sleep(0.005)
        if action == "stop":
            await asyncio.Event().wait()
        answered.append(True)
        return await assistant(messages)

    def other_thread() -> None:
        asked.wait(TIMEOUT_SECONDS)
        getattr(control, action)()

    thread = threading.Thread(target=other_thread)
    thread.start()
    events: list[dialoom.Event] = []
    settings = run_settings(release, models={"assistant": slow}, concurrency=1, control=control, on_event=events.append)
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    thread.join()
    assert bool(answered) == (action == "drain")
    assert run.status().usage.unanswered == (0 if action == "drain" else 1)
    assert events[-1] == Ended(run.path, 0, 0, False)
    assert run.resume(models={"assistant": assistant}).status().done == 6


def test_control_used_before_planning_is_an_error_without_a_file(release: Path, tmp_path: Path) -> None:
    control = Control()
    control.drain()
    with pytest.raises(dialoom.DialoomError, match="stopped during planning; nothing was written"):
        dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, control=control))
    assert not list(tmp_path.glob("run.db*"))
    run = dialoom.plan("personalens", path=tmp_path / "run.db", **run_settings(release))
    assert run.resume(control=control).status().pending == 6


_MAIN = threading.main_thread().ident or 0


def press_ctrl_c() -> None:
    """Send SIGINT to the main thread, as a terminal or a notebook's stop button does."""
    signal.pthread_kill(_MAIN, signal.SIGINT)


async def until_draining(control: dialoom.Control) -> None:
    """Wait until the main thread has handled the signal."""
    while not control.is_draining:  # noqa: ASYNC110  # it is set in another thread
        await asyncio.sleep(0.005)


def test_ctrl_c_drains_raises_and_the_run_can_be_resumed(release: Path, tmp_path: Path) -> None:
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **run_settings(release))
    path, events, is_pressed = tmp_path / "run.db", list[dialoom.Event](), list[bool]()

    async def pressing(messages: Messages) -> str:
        if "two tonight" in str(messages) and not is_pressed:
            is_pressed.append(True)
            press_ctrl_c()
            await until_draining(control)
        return await user(messages)

    control = dialoom.Control()
    settings = run_settings(release, models={"user": pressing}, concurrency=1, on_event=events.append, control=control)
    with pytest.raises(KeyboardInterrupt):
        dialoom.play("personalens", path=path, **settings)
    ended = events[-1]
    assert isinstance(ended, dialoom.Ended) and not ended.is_complete and ended.stopped is None
    run = dialoom.open_run(path)
    assert run.status().done == ended.done == 1 and run.status().failed == 0
    assert run.status().usage.unanswered == 0, "the reply in flight is stored"
    resumed = run.resume(models={"user": user})
    assert outcome_texts(resumed) == outcome_texts(whole)


def test_second_ctrl_c_stops_at_once(release: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"

    async def silent(messages: Messages) -> str:
        if len(messages) > 2:
            press_ctrl_c()
            await until_draining(control)
            press_ctrl_c()
            await asyncio.Event().wait()
        return "So be it."

    control = dialoom.Control()
    with pytest.raises(KeyboardInterrupt):
        dialoom.play(
            "personalens",
            path=path,
            **run_settings(release, models={"assistant": silent}, concurrency=1, control=control),
        )
    run = dialoom.open_run(path)
    assert run.status().pending == 6 and run.status().usage.calls >= 3


def test_second_ctrl_c_while_the_first_is_handled_stops_at_once(release: Path, tmp_path: Path) -> None:
    class Pressed(dialoom.Control):
        presses = 0

        def interrupt(self) -> None:
            super().interrupt()
            self.presses += 1
            if self.presses == 1:
                raise KeyboardInterrupt

    async def silent(_messages: Messages) -> str:
        press_ctrl_c()
        await asyncio.Event().wait()
        return ""

    control = Pressed()
    with pytest.raises(KeyboardInterrupt):
        dialoom.play(
            "personalens",
            path=tmp_path / "run.db",
            **run_settings(release, models={"assistant": silent}, concurrency=1, control=control),
        )
    assert control.presses == 2


def test_ctrl_c_while_planning_leaves_no_file(tmp_path: Path) -> None:
    def on_planned(number: int) -> None:
        if number == 100:
            press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        dialoom.play(
            counting(tmp_path, on_planned),
            path=tmp_path / "run.db",
            models={"speaker": speaker},
            options={"upto": 10_000_000},
        )
    assert not list(tmp_path.glob("run.db*"))


_PROGRAM = """
import asyncio
import dialoom

control = dialoom.Control()

async def hanging(messages):
    print("asked", flush=True)
    while not control.is_draining:
        await asyncio.sleep(0.01)
    print("draining", flush=True)
    await asyncio.Event().wait()

async def other(messages):
    return "Yes."

try:
    models = {"user": hanging, "assistant": other, "judge": other}
    dialoom.play("personalens", path="run.db", models=models, options={"limit": 1}, control=control)
except KeyboardInterrupt:
    print("interrupted", dialoom.open_run("run.db").status().pending, flush=True)
"""


def test_ctrl_c_ends_a_program_with_keyboard_interrupt(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for word in ("asked", "draining"):
            assert program.stdout.readline() == f"{word}\n"
            program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=120) == ("interrupted 1\n", "")
    assert program.returncode == 0


_FRESH = """
import asyncio, gc, os, signal, sys, threading

def stands():
    return dict(os.environ), [signal.getsignal(number) for number in range(1, signal.NSIG)], gc.get_freeze_count()

before, seen, found = stands(), [], []
import dialoom, dialoom.roles, dialoom.api
assert "litellm" not in sys.modules, "it takes seconds: only the first call imports it"

class Looking:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread():
            found.append(name)

async def main():
    within, looking = stands(), Looking()
    sys.meta_path.insert(0, looking)
    await dialoom.aplay(
        "personalens", path="awaited.db", options={"limit": 1}, on_event=lambda event: seen.append(stands() == within)
    )
    sys.meta_path.remove(looking)

asyncio.run(main())
assert "litellm" in sys.modules
dialoom.play("personalens", path="served.db", model="openai/m", options={"limit": 1})
table = "litellm.litellm_core_utils.default_encoding"
assert not {"pandas", "openai.resources", table} & set(sys.modules), "each would take much time or memory"
heavy = {"litellm", "litellm.main", "openai", "tiktoken"}
assert not heavy & set(found), found
run = dialoom.play(
    "personalens", path="run.db", options={"limit": 2}, on_event=lambda event: seen.append(stands() == before)
)
run.judge("offline/generic", name="second")
run.resume()
str(run.report()), list(run.episodes()), run.export("dialogues", "out.jsonl"), run.status()
dialoom.estimate("personalens", options={"limit": 1})
assert len(seen) >= 8 and all(seen), seen
after = stands()
assert after == before, [name for name in after[0] if after[0][name] != before[0].get(name)]
"""


def test_fresh_process_is_left_unchanged(tmp_path: Path) -> None:
    """Playing prints nothing and changes no environment variable, signal handler or file, although it imports LiteLLM.

    LiteLLM takes seconds to import, so it is imported on first use and outside the event loop's thread. Only a fresh
    process is certain not to have imported it.
    """
    (tmp_path / ".env").write_text("OF_THE_FOLDER=1\n")
    environment = {
        name: value for name, value in os.environ.items() if "LITELLM" not in name and "TIKTOKEN" not in name
    }
    command = [sys.executable, "-c", _FRESH]
    with serving(lambda _body, _number: completion("heron")) as server:
        environment |= {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "none-is-needed"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert server.requests
    assert {path.name for path in tmp_path.iterdir()} == {".env", "awaited.db", "served.db", "run.db", "out.jsonl"}


def test_no_signal_handler_is_set_while_playing(release: Path, tmp_path: Path) -> None:
    numbers = [number for number in signal.Signals if number not in (signal.SIGKILL, signal.SIGSTOP)]

    def handlers() -> list[Any]:
        return [signal.getsignal(number) for number in numbers]

    before, during = handlers(), []
    dialoom.play(
        "personalens", path=tmp_path / "run.db", **run_settings(release, on_event=lambda _: during.append(handlers()))
    )
    assert len(during) >= 8
    assert all(each == before for each in [*during, handlers()])


@pytest.mark.parametrize("is_first", [True, False])
def test_only_tune_process_changes_the_process(is_first: bool, tmp_path: Path) -> None:
    """`tune_process` exempts imported objects from garbage collection and sets no environment variable.

    It is called before LiteLLM is first used, or after.
    """
    code = (
        "import dialoom, gc, os\n"
        "from dialoom.roles.gateway import litellm_backend\n"
        "litellm_backend._import_litellm.cache_clear()\n"  # as in a process that has not used it yet
        "gc.unfreeze()\n"
        f"if not {is_first}: litellm_backend.load_litellm()\n"
        "before = dict(os.environ)\n"
        "dialoom.tune_process()\n"
        f"assert (gc.get_freeze_count() == 0) is {is_first}\n"
        "dialoom.play('personalens', path='run.db', options={'limit': 1})\n"
        "assert gc.get_freeze_count() > 10_000\n"
        "assert dict(os.environ) == before\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPERIMENTAL_")}
    with CommandProcess(tmp_path, script=code, environment=environment) as process:
        assert process.communicate() == ("", "")
        assert process.returncode == 0


@pytest.mark.parametrize("action", [dialoom.play, dialoom.plan])
def test_playing_prints_nothing(
    action: Callable[..., dialoom.Run], release: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def broken(_: Messages) -> str:
        raise ValueError("it has a bad day")

    run = action("personalens", path=tmp_path / "run.db", **run_settings(release, models={"assistant": broken}))
    assert capfd.readouterr() == ("", "")
    assert run.status().failed == (6 if action is dialoom.play else 0)
    assert gc.isenabled()
