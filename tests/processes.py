"""The command in processes of its own that are there at once: copies of one that has imported everything.

A new interpreter takes seconds to import what a run needs, a copy milliseconds; it is interrupted and killed like any
other process. What is about starting up itself needs a new interpreter all the same.
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

PATIENCE = 240.0
"""Seconds after which a process is taken for hanging; only a net."""

_ROOT = Path(__file__).parent.parent
COMMAND = "from dialoom.cli import main\nmain()\n"


class Started:
    """A process under way. Used as a context it is killed at the end of the block, unless it has ended.

    Args:
        folder: Where it works.
        arguments: Those of the command, or of the script.
        script: Python to be carried out; by default the command `dialoom`.
        environment: Its whole environment; by default that of this process.

    Attributes:
        pid: Its number.
        stdin, stdout, stderr: Pipes.
    """

    def __init__(
        self, folder: Path, *arguments: object, script: str = COMMAND, environment: Mapping[str, str] | None = None
    ) -> None:
        own, theirs = zip(*(os.pipe() if number else os.pipe()[::-1] for number in range(3)), strict=True)
        self.stdin: IO[str] = os.fdopen(own[0], "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(own[1], encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(own[2], encoding="utf-8")
        self._process = start(folder, [*map(str, arguments)], script, environment or os.environ, theirs)
        for descriptor in theirs:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        """Its number."""
        return int(self._process.pid)

    @property
    def returncode(self) -> int:
        """What it ended with; a negative one is the signal that ended it."""
        assert self._process.exitcode is not None, "it is at work"
        return int(self._process.exitcode)

    def poll(self) -> int | None:
        """What it ended with, or `None` while it is at work."""
        code: int | None = self._process.exitcode
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "") -> tuple[str, str]:
        """Give it all of its input; returns what it has printed, on standard output and error, when it has ended."""
        net = threading.Timer(PATIENCE, self.kill)
        net.start()
        try:
            with ThreadPoolExecutor(2) as reading:
                printed = [reading.submit(stream.read) for stream in (self.stdout, self.stderr)]
                try:
                    self.stdin.write(text)
                    self.stdin.close()
                except BrokenPipeError:  # it has ended without reading it
                    pass
            self._process.join()
        finally:
            net.cancel()
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
    """Start such a process; returns it as `multiprocessing` has it.

    Args:
        folder: Where it works.
        arguments: Its arguments.
        script: Python to be carried out.
        environment: Its whole environment.
        streams: What are to be its standard input, output and error.
        has_terminal: Whether they are a terminal that is to be its own.
    """
    copies = multiprocessing.get_context("forkserver")
    copies.set_forkserver_preload(["tests.warm"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_ROOT))
        forkserver.ensure_running()
    given = tuple(map(_Descriptor, streams))
    process = copies.Process(
        target=_carry_out, args=(folder, arguments, script, dict(environment), given, has_terminal), daemon=True
    )
    process.start()
    return process


class _Descriptor:
    """A file descriptor that is handed to a process that is started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.number)

    def __setstate__(self, handed: Any) -> None:
        self.number = handed.detach()


def _carry_out(
    folder: Path,
    arguments: list[str],
    script: str,
    environment: dict[str, str],
    streams: tuple[_Descriptor, ...],
    has_terminal: bool,
) -> None:
    """What the process does."""
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
