"""What tests share: the command as a user runs it, quick players, and where the real data is, if it is there."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dialoom.runs.cli import main
from tests.processes import Started

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("DIALOOM_PERSONALENS", ROOT.parent / "shared" / "data" / "personalens"))

needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the PersonaLens release is not here; DIALOOM_PERSONALENS says where it is"
)

_STATE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """What dialoom keeps in mind of its user's runs is kept apart from that of whoever runs the tests."""
    config.stash[_STATE] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="dialoom-state-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """And removed."""
    shutil.rmtree(config.stash[_STATE], ignore_errors=True)


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def dialoom(tmp_path: Path) -> Iterator[Command]:
    """The command in an empty folder; checks the exit code that is expected, if one is.

    It runs in this process, by its own `main`, with the given `variables` in the environment. With a whole environment
    (`env`) or input of its own, or where an event loop runs, it gets a process of its own.
    """
    before = set(sys.modules), list(sys.path)

    def run(
        *arguments: object,
        code: int | None = 0,
        variables: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        command = [*map(str, arguments)]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (variables or {}).items():
                patch.setenv(name, value)
            is_apart = env is not None or input is not None or _in_a_loop()
            done = _apart(command, tmp_path, env, input or "") if is_apart else _here(command, tmp_path)
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    yield run
    sys.path[:] = before[1]
    for name in set(sys.modules) - before[0]:  # the test's own modules, such as its players
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def _apart(
    command: list[str], folder: Path, environment: Mapping[str, str] | None, text: str
) -> subprocess.CompletedProcess[str]:
    with Started(folder, *command, environment=environment) as process:
        out, err = process.communicate(text)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def _here(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    code, arguments = 0, sys.argv
    sys.argv = ["dialoom", *command]
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as exit_:
                code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
            except BaseException:
                traceback.print_exc()
                code = 1
    finally:
        sys.argv = arguments
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return threading.current_thread() is not threading.main_thread()
    return True


@pytest.fixture
def players(tmp_path: Path) -> list[str]:
    """Options for a cast of three quick Python callables, for tests that are not about what is said."""
    (tmp_path / "players.py").write_text(
        """
async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")

async def assistant(messages):
    return f"Reply to: {messages[-1]['content']}"

async def judge(messages):
    if "task_completion" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return 'Surely: {"score": 3, "explanation": "fair"}'
"""
    )
    return [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:players:{role}")]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """A JSONL file's objects."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
