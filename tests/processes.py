"""The command in separate processes that start at once: forks of a process that has imported everything.

A new interpreter takes seconds to import what a run needs, a fork milliseconds; a fork is interrupted and killed like
any other process. Tests of start-up itself still need a new interpreter.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver, reduction
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, Self

import pytest

TIMEOUT_SECONDS = 240.0
"""Seconds after which a process counts as hung."""

_ROOT = Path(__file__).parent.parent
COMMAND = "from dialoom.cli import main\nmain()\n"


class CommandProcess:
    """A running process. As a context manager, it is killed at the end of the block unless it has ended.

    Args:
        folder: Its working directory.
        arguments: The arguments of the command, or of the script.
        script: The Python script to run; by default the command `dialoom`.
        environment: Its whole environment; by default that of this process.

    Attributes:
        pid: The process id.
        stdin, stdout, stderr: Pipes.
    """

    def __init__(
        self, folder: Path, *arguments: object, script: str = COMMAND, environment: Mapping[str, str] | None = None
    ) -> None:
        parent_ends, child_ends = zip(*(os.pipe() if number else os.pipe()[::-1] for number in range(3)), strict=True)
        self.stdin: IO[str] = os.fdopen(parent_ends[0], "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(parent_ends[1], encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(parent_ends[2], encoding="utf-8")
        self._process = start(folder, [*map(str, arguments)], script, environment or os.environ, child_ends)
        for descriptor in child_ends:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return int(self._process.pid)

    @property
    def returncode(self) -> int:
        """Return the exit code; a negative one is the signal that ended the process."""
        assert self._process.exitcode is not None, "the process is still running"
        return int(self._process.exitcode)

    def poll(self) -> int | None:
        """Return the exit code, or `None` while the process is running."""
        code: int | None = self._process.exitcode
        return code

    def send_signal(self, number: int) -> None:
        """Send the process a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process unless it has ended."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "") -> tuple[str, str]:
        """Write the whole input; return standard output and error when the process has ended."""
        killer = threading.Timer(TIMEOUT_SECONDS, self.kill)
        killer.start()
        try:
            with ThreadPoolExecutor(2) as reading:
                printed = [reading.submit(stream.read) for stream in (self.stdout, self.stderr)]
                try:
                    self.stdin.write(text)
                    self.stdin.close()
                except BrokenPipeError:  # the process has ended without reading its input
                    pass
            self._process.join()
        finally:
            killer.cancel()
        return printed[0].result(), printed[1].result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._process.join()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


def start(
    folder: Path,
    arguments: list[str],
    script: str,
    environment: Mapping[str, str],
    streams: tuple[int, ...],
    has_terminal: bool = False,
) -> Any:
    """Start a fork; return it as a `multiprocessing` process.

    Args:
        folder: Its working directory.
        arguments: Its arguments.
        script: The Python script to run.
        environment: Its whole environment.
        streams: The descriptors of its standard input, output and error.
        has_terminal: Whether they are a terminal that becomes its controlling terminal.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.warm"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT))
        forkserver.ensure_running()
    descriptors = tuple(map(_Descriptor, streams))
    process = context.Process(
        target=_run_child, args=(folder, arguments, script, dict(environment), descriptors, has_terminal), daemon=True
    )
    process.start()
    return process


class _Descriptor:
    """A file descriptor that is passed to a process being started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.number)

    def __setstate__(self, duplicate: Any) -> None:
        self.number = duplicate.detach()


def _run_child(
    folder: Path,
    arguments: list[str],
    script: str,
    environment: dict[str, str],
    streams: tuple[_Descriptor, ...],
    has_terminal: bool,
) -> None:
    """Set up the process and run the script in it."""
    for number, stream in enumerate(streams):
        os.dup2(stream.number, number)
        os.close(stream.number)
    if has_terminal:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = ["dialoom", *arguments]
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1 if has_terminal else -1)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
    sys.modules["__main__"] = module = ModuleType("__main__")
    exec(compile(script, "<script>", "exec", dont_inherit=True), module.__dict__)
