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
from tests.processes import Started

from .players import Messages, told

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
heavy = {"litellm", "litellm.main", "litellm.litellm_core_utils.default_encoding", "openai", "tiktoken"}
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


def test_a_fresh_process_is_left_as_it_was(tmp_path: Path) -> None:
    """LiteLLM is imported in it, as the offline model answers: no variable, no signal handler, no word, no file.

    And it is not imported before, nor in the event loop's thread, as that takes seconds. Only in a fresh process is it
    certain that it is not there yet.
    """
    (tmp_path / ".env").write_text("OF_THE_FOLDER=1\n")
    environment = {
        name: value for name, value in os.environ.items() if "LITELLM" not in name and "TIKTOKEN" not in name
    }
    command = [sys.executable, "-c", _FRESH]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path.name for path in tmp_path.iterdir()} == {".env", "awaited.db", "run.db", "out.jsonl"}


def test_no_signal_handler_while_it_plays(release: Path, tmp_path: Path) -> None:
    """Looked at from the players' side: Ctrl-C and the others do what they did."""
    numbers = [number for number in signal.Signals if number not in (signal.SIGKILL, signal.SIGSTOP)]

    def handlers() -> list[Any]:
        return [signal.getsignal(number) for number in numbers]

    before, during = handlers(), []
    dialoom.play("personalens", path=tmp_path / "run.db", **told(release, on_event=lambda _: during.append(handlers())))
    assert len(during) >= 8
    assert all(each == before for each in [*during, handlers()])


@pytest.mark.parametrize("is_first", [True, False])
def test_only_the_call_that_says_so_tunes_the_process(is_first: bool, tmp_path: Path) -> None:
    """`tune_process` takes what was imported from the collector's rounds and sets LiteLLM's variable, no other.

    Called before LiteLLM is first used, or after.
    """
    code = (
        "import dialoom, gc, os\n"
        "from dialoom.roles.gateway import litellm_backend\n"
        "litellm_backend._imported.cache_clear()\n"  # as in a process that has not used it yet
        "gc.unfreeze()\n"
        f"if not {is_first}: litellm_backend.load_litellm()\n"
        "before = dict(os.environ)\n"
        "dialoom.tune_process()\n"
        f"assert (gc.get_freeze_count() == 0) is {is_first}\n"
        "dialoom.play('personalens', path='run.db', options={'limit': 1})\n"
        "assert gc.get_freeze_count() > 10_000\n"
        "assert dict(os.environ) == before | {'EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER': 'True'}\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EXPERIMENTAL_")}
    with Started(tmp_path, script=code, environment=environment) as process:
        assert process.communicate() == ("", "")
        assert process.returncode == 0


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
