"""What tests share: the command as a user runs it, quick players, and where the real data is, if it is there."""

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
from tests.processes import Started

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("DIALOOM_PERSONALENS", ROOT.parent / "shared" / "data" / "personalens"))

needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the PersonaLens release is not here; DIALOOM_PERSONALENS says where it is"
)

with contextlib.suppress(ImportError):  # the environments that are made for one large thing have no hypothesis
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "unhurried", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    # How long an example takes says how busy the machine is, and nothing else. The examples are the same in every run:
    # what passes here passes everywhere. `derandomize=False` here looks for others.
    settings.load_profile("unhurried")

_STATE = pytest.StashKey[str]()
_LITELLM_STAYS = threading.Event()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the state of the tests' runs apart from the user's; react to SIGINT where it was ignored (`nohup`, `&`).

    The garbage collector looks through everything less often: it took a seventh of the suite's time.
    """
    gc.set_threshold(20_000, 20, 50)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_STATE] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="dialoom-state-")


def pytest_collection_finish() -> None:
    """What was imported by then stays: the garbage collector need not look through it again and again."""
    _left_to_stay()


def pytest_runtest_logfinish() -> None:
    """So does LiteLLM, which the first test imports that needs it, and which is as much again."""
    if "litellm" in sys.modules and not _LITELLM_STAYS.is_set():
        _LITELLM_STAYS.set()
        _left_to_stay()


def _left_to_stay() -> None:
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """And removed."""
    shutil.rmtree(config.stash[_STATE], ignore_errors=True)


Command = Callable[..., "subprocess.CompletedProcess[str]"]
MadeOnce = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_imports_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget after each test what was imported from temporary folders and examples: modules share names (`shop`)."""
    yield
    _forget_imports(tmp_path_factory.getbasetemp())
    _forget_imports(ROOT / "docs" / "examples")


@pytest.fixture
def dialoom(tmp_path: Path) -> Command:
    """The command in an empty folder; see `command_in`."""
    return command_in(tmp_path)


@pytest.fixture(scope="session")
def _made() -> dict[Hashable, Path]:
    """What `made_once` has made."""
    return {}


@pytest.fixture
def made_once(_made: dict[Hashable, Path], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> MadeOnce:
    """Puts into the test's folder what a function makes with the command; it is called once, then its work is copied.

    For the runs that many tests start from. The function is given the command in a folder, that folder, and what else
    is said. Returns the test's folder; what lies in it can be imported, as after a run in it.
    """

    def put(make: Callable[..., object], *given: Hashable) -> Path:
        if (make, given) not in _made:
            folder = tmp_path_factory.mktemp("made")
            make(command_in(folder), folder, *given)
            _forget_imports(folder)
            _made[make, given] = folder
        shutil.copytree(_made[make, given], tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        _given_there_too(_made[make, given], tmp_path)
        sys.path.insert(0, str(tmp_path))
        return tmp_path

    return put


def _given_there_too(made: Path, copy: Path) -> None:
    """What dialoom has in mind of runs in one folder, it has in mind of their copies in another."""
    given = Path(os.environ["XDG_STATE_HOME"]) / "dialoom" / "given.jsonl"
    if given.exists():
        lines = [line for line in given.read_text().splitlines(keepends=True) if str(made) in line]
        with given.open("a") as file:
            file.write("".join(line.replace(str(made), str(copy)) for line in lines))


def command_in(folder: Path) -> Command:
    """The command in a folder; checks the exit code that is expected, if one is.

    It runs in this process, by its own `main`, with the given `variables` in the environment. With a whole environment
    (`env`) or input of its own, or where an event loop runs, it gets a process of its own.
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
            is_apart = env is not None or input is not None or _in_a_loop()
            done = _apart(command, folder, env, input or "") if is_apart else _here(command, folder)
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return run


def _forget_imports(folder: Path) -> None:
    """Remove a folder's modules and paths. Texts are compared: a `Path` for each module would take 0.1 s a test.

    Modules are not asked for attributes that they do not have, because some then import others.
    """
    inside = f"{folder}{os.sep}"
    sys.path[:] = [path for path in sys.path if path != str(folder) and not path.startswith(inside)]
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__dict__", {}).get("__file__") or "").startswith(inside):
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
    return quick_players(tmp_path)


def quick_players(folder: Path) -> list[str]:
    """Write these into a folder; the options that name them."""
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


def recast(arguments: Sequence[object], model: str) -> list[object]:
    """Return a command's arguments in which `ROLE=MODEL` replaces the model of its role."""
    role = f"{model.partition('=')[0]}="
    return [model if str(each).startswith(role) else each for each in arguments]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """A JSONL file's objects."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
