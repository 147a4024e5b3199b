"""Shared fixtures and helpers: the command as a user runs it, fast players, and the path of the real data."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialoom.cli import main
from tests.processes import CommandProcess

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("DIALOOM_PERSONALENS", ROOT.parent / "shared" / "data" / "personalens"))

needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the PersonaLens release is missing; set DIALOOM_PERSONALENS to its folder"
)

with contextlib.suppress(ImportError):  # the environments of single large dependencies have no hypothesis
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "no-deadline", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    # No deadline: the time of an example depends on the machine's load. The examples are the same in every run;
    # set `derandomize=False` to search for others.
    settings.load_profile("no-deadline")

_STATE_FOLDER = pytest.StashKey[str]()
_LITELLM_IS_FROZEN = threading.Event()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the state of test runs apart from the user's; restore SIGINT where it was ignored (`nohup`, `&`).

    Raise the thresholds of the garbage collector, which took a seventh of the suite's time.
    """
    gc.set_threshold(20_000, 20, 50)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_STATE_FOLDER] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="dialoom-state-")


def pytest_collection_finish() -> None:
    """Exempt all objects imported so far from garbage collection."""
    _freeze_objects()


def pytest_runtest_logfinish() -> None:
    """Exempt LiteLLM's objects, too, once the first test has imported it: they are as many again."""
    if "litellm" in sys.modules and not _LITELLM_IS_FROZEN.is_set():
        _LITELLM_IS_FROZEN.set()
        _freeze_objects()


def _freeze_objects() -> None:
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the state folder."""
    shutil.rmtree(config.stash[_STATE_FOLDER], ignore_errors=True)


Command = Callable[..., "subprocess.CompletedProcess[str]"]
MadeOnce = Callable[..., Path]


@pytest.fixture(autouse=True)
def _forget_imports_after_test(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget after each test the modules imported from temporary folders and examples: they share names (`shop`)."""
    yield
    _forget_imports(tmp_path_factory.getbasetemp())
    _forget_imports(ROOT / "docs" / "examples")


@pytest.fixture
def dialoom(tmp_path: Path) -> Command:
    """Return the command in an empty folder; see `command_in`."""
    return command_in(tmp_path)


@pytest.fixture(scope="session")
def _made_folders() -> dict[Hashable, Path]:
    """Return the folders that `made_once` has filled, by function and arguments."""
    return {}


@pytest.fixture
def made_once(
    _made_folders: dict[Hashable, Path], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> MadeOnce:
    """Return a function that copies into the test's folder what another function makes with the command.

    The other function is called once per session for each set of arguments, with the command, its folder and the
    arguments. For runs that many tests start from. The test's folder is returned; modules in it can be imported.
    """

    def put(make: Callable[..., object], *arguments: Hashable) -> Path:
        if (make, arguments) not in _made_folders:
            folder = tmp_path_factory.mktemp("made")
            make(command_in(folder), folder, *arguments)
            _forget_imports(folder)
            _made_folders[make, arguments] = folder
        shutil.copytree(
            _made_folders[make, arguments], tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        _copy_run_records(_made_folders[make, arguments], tmp_path)
        sys.path.insert(0, str(tmp_path))
        return tmp_path

    return put


def _copy_run_records(made: Path, copy: Path) -> None:
    """Copy what dialoom's state folder records about runs in one folder for their copies in another."""
    records = Path(os.environ["XDG_STATE_HOME"]) / "dialoom" / "given.jsonl"
    if records.exists():
        lines = [line for line in records.read_text().splitlines(keepends=True) if str(made) in line]
        with records.open("a") as file:
            file.write("".join(line.replace(str(made), str(copy)) for line in lines))


def command_in(folder: Path) -> Command:
    """Return a function that runs the command in a folder and checks the exit code, unless `code` is None.

    It runs in this process, through `main`, with the given `variables` in the environment. It runs in a separate
    process if a whole environment (`env`) or input is given, or if an event loop is running.
    """

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
            needs_process = env is not None or input is not None or _is_in_event_loop()
            done = (
                _run_in_new_process(command, folder, env, input or "")
                if needs_process
                else _run_in_this_process(command, folder)
            )
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return run


def _forget_imports(folder: Path) -> None:
    """Remove a folder's modules and paths. Strings are compared: a `Path` for each module would take 0.1 s a test.

    Modules are not asked for missing attributes, because some then import others.
    """
    inside = f"{folder}{os.sep}"
    sys.path[:] = [path for path in sys.path if path != str(folder) and not path.startswith(inside)]
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__dict__", {}).get("__file__") or "").startswith(inside):
            del sys.modules[name]


def _run_in_new_process(
    command: list[str], folder: Path, environment: Mapping[str, str] | None, text: str
) -> subprocess.CompletedProcess[str]:
    with CommandProcess(folder, *command, environment=environment) as process:
        out, err = process.communicate(text)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def _run_in_this_process(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
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


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return threading.current_thread() is not threading.main_thread()
    return True


@pytest.fixture
def players(tmp_path: Path) -> list[str]:
    """Return options for a cast of three fast Python callables, for tests whose subject is not the content."""
    return write_quick_players(tmp_path)


def write_quick_players(folder: Path) -> list[str]:
    """Write fast players into a folder and return the options that name them."""
    (folder / "players.py").write_text(
        """
async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")

async def assistant(messages):
    return f"Reply to: {messages[-1]['content']}"

async def judge(messages):
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return 'Surely: {"score": 3, "explanation": "fair"}'
"""
    )
    return [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:players:{role}")]


def replace_model(arguments: Sequence[object], model: str) -> list[object]:
    """Return a command's arguments in which `ROLE=MODEL` replaces the model of its role."""
    role = f"{model.partition('=')[0]}="
    return [model if str(each).startswith(role) else each for each in arguments]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
