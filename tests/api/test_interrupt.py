"""Ctrl-C while `play` blocks: what is under way reaches its checkpoint, and the rest is for later."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import dialoom

from .counting import counting, speaker
from .players import Messages, talk, told, user

_MAIN = threading.main_thread().ident or 0


def press_ctrl_c() -> None:
    """As the terminal, or a notebook's stop button, does it."""
    signal.pthread_kill(_MAIN, signal.SIGINT)


async def draining(control: dialoom.Control) -> None:
    """Until the main thread has taken notice of the signal."""
    while not control.is_draining:  # noqa: ASYNC110  # nobody awakes this
        await asyncio.sleep(0.005)


def test_ctrl_c_drains_and_is_raised_and_the_run_goes_on_to_the_same(release: Path, tmp_path: Path) -> None:
    """Pressed in the middle of a reply, which is kept; no other scenario begins."""
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **told(release))
    path, events, is_pressed = tmp_path / "run.db", list[dialoom.Event](), list[bool]()

    async def pressing(messages: Messages) -> str:
        if "two tonight" in str(messages) and not is_pressed:
            is_pressed.append(True)
            press_ctrl_c()
            await draining(control)
        return await user(messages)

    control = dialoom.Control()
    settings = told(release, models={"user": pressing}, concurrency=1, on_event=events.append, control=control)
    with pytest.raises(KeyboardInterrupt):
        dialoom.play("personalens", path=path, **settings)
    ended = events[-1]
    assert isinstance(ended, dialoom.Ended) and not ended.is_complete and ended.stopped is None
    run = dialoom.open_run(path)
    assert run.status().done == ended.done == 1 and run.status().failed == 0
    assert run.status().usage.unanswered == 0, "the reply that was under way is kept"
    resumed = run.resume(models={"user": user})
    assert talk(resumed) == talk(whole)


def test_a_second_ctrl_c_stops_at_once(release: Path, tmp_path: Path) -> None:
    """A reply that never comes is dropped, what was committed is not."""
    path = tmp_path / "run.db"

    async def silent(messages: Messages) -> str:
        if len(messages) > 2:
            press_ctrl_c()
            await draining(control)
            press_ctrl_c()
            await asyncio.Event().wait()
        return "So be it."

    control = dialoom.Control()
    with pytest.raises(KeyboardInterrupt):
        dialoom.play(
            "personalens", path=path, **told(release, models={"assistant": silent}, concurrency=1, control=control)
        )
    run = dialoom.open_run(path)
    assert run.status().pending == 6 and run.status().usage.calls >= 3


def test_a_second_ctrl_c_while_the_first_is_told_stops_at_once(release: Path, tmp_path: Path) -> None:
    """However soon it comes: nobody waits for a reply that never comes."""

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
            **told(release, models={"assistant": silent}, concurrency=1, control=control),
        )
    assert control.presses == 2


def test_ctrl_c_while_it_is_planned(tmp_path: Path) -> None:
    """Is raised as what it is, and nothing is left."""

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


def test_ctrl_c_ends_a_program_in_the_ordinary_way(tmp_path: Path) -> None:
    """By real signals from outside, two of them as a reply hangs; nobody says anything but the program."""
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        for word in ("asked", "draining"):
            assert program.stdout.readline() == f"{word}\n"
            program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=120) == ("interrupted 1\n", "")
    assert program.returncode == 0
