"""Other people's servers, run as programs on loopback for as long as tests need them."""

from __future__ import annotations

import random
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PATIENCE = 120.0
"""Seconds that a server may take to be there."""


def free_port() -> int:
    """Return a port that nobody listens on, below those that the system gives to whoever asks for any."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port


@contextmanager
def running(command: Sequence[str], folder: Path, environment: Mapping[str, str], health: str) -> Iterator[None]:
    """A server, from when it answers to the end of the block; its log is in its folder.

    Args:
        command: What starts it.
        folder: Where it runs.
        environment: Its whole environment.
        health: The address at which it answers once it is there.
    """
    log = folder / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        until_there(process, health, log)
        yield
    finally:
        process.terminate()
        process.wait()


def until_there(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until a server answers; it fails the test if it ends before, or never does."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"{process.args!r} did not answer (exit code {process.poll()}): {log.read_text()[-2000:]}")
