"""What a run does to the process that plays it: nothing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom

from .players import Messages, told

_FRESH = """
import gc, os, signal, sys

def stands():
    return dict(os.environ), [signal.getsignal(number) for number in range(1, signal.NSIG)], gc.get_freeze_count()

before, seen = stands(), []
import dialoom

run = dialoom.play(
    "personalens", path="run.db", options={"limit": 2}, on_event=lambda event: seen.append(stands() == before)
)
run.judge("offline/generic", name="second")
run.resume()
str(run.report()), list(run.episodes()), run.export("dialogues", "out.jsonl"), run.status()
dialoom.estimate("personalens", options={"limit": 1})
assert "litellm" in sys.modules and len(seen) >= 5 and all(seen), seen
after = stands()
assert after == before, [name for name in after[0] if after[0][name] != before[0].get(name)]
"""


def test_a_fresh_process_is_left_as_it_was(tmp_path: Path) -> None:
    """LiteLLM is imported in it, as the offline model answers: no variable, no signal handler, no word, no file."""
    (tmp_path / ".env").write_text("OF_THE_FOLDER=1\n")
    environment = {
        name: value for name, value in os.environ.items() if "LITELLM" not in name and "TIKTOKEN" not in name
    }
    command = [sys.executable, "-c", _FRESH]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {".env", "run.db", "out.jsonl"}


def test_no_signal_handler_while_it_plays(release: Path, tmp_path: Path) -> None:
    """Looked at from the players' side: Ctrl-C and the others do what they did."""
    numbers = [number for number in signal.Signals if number not in (signal.SIGKILL, signal.SIGSTOP)]

    def handlers() -> list[Any]:
        return [signal.getsignal(number) for number in numbers]

    before, during = handlers(), []
    dialoom.play("personalens", path=tmp_path / "run.db", **told(release, on_event=lambda _: during.append(handlers())))
    assert len(during) >= 8
    assert all(each == before for each in [*during, handlers()])


def test_only_the_call_that_says_so_tunes_the_process(tmp_path: Path) -> None:
    """`tune_process` takes what was imported from the collector's rounds and sets LiteLLM's variable, no other."""
    code = (
        "import dialoom, gc, os\n"
        "before = dict(os.environ)\n"
        "dialoom.tune_process()\n"
        "dialoom.play('personalens', path='run.db', options={'limit': 1})\n"
        "assert gc.get_freeze_count() > 10_000\n"
        "assert dict(os.environ) == before | {'EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER': 'True'}\n"
    )
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}  # LiteLLM would write over it
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("action", [dialoom.play, dialoom.plan])
def test_nothing_is_printed(
    action: Callable[..., dialoom.Run], release: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where something fails, and where planning has something to say."""

    async def broken(_: Messages) -> str:
        raise ValueError("it has a bad day")

    run = action("personalens", path=tmp_path / "run.db", **told(release, models={"assistant": broken}))
    assert capfd.readouterr() == ("", "")
    assert run.status().failed == (6 if action is dialoom.play else 0)
    assert gc.isenabled()
