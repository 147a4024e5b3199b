"""Third-party servers, run as programs on loopback while tests need them."""

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

START_TIMEOUT_SECONDS = 120.0
"""Seconds that a server may take to start."""


def free_port() -> int:
    """Return a port that nothing listens on, below the ephemeral ports of the system."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port


@contextmanager
def running(command: Sequence[str], folder: Path, environment: Mapping[str, str], health: str) -> Iterator[None]:
    """Run a server from its first answer to the end of the block; its log is in its folder.

    Args:
        command: The command that starts it.
        folder: Its working directory.
        environment: Its whole environment.
        health: The URL that answers once the server is ready.
    """
    log = folder / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        wait_until_ready(process, health, log)
        yield
    finally:
        process.terminate()
        process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until a server answers; fail the test if it exits first or times out."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"{process.args!r} did not answer (exit code {process.poll()}): {log.read_text()[-2000:]}")
