"""A `dialoom` process that can be killed and whose peak memory is recorded."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path


class WatchedProcess:
    """A process that executes a command of `dialoom`.

    Args:
        folder: The working folder.
        environment: The environment variables.
        arguments: The command's arguments.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *arguments: object) -> None:
        command = [sys.executable, "-m", "dialoom", *map(str, arguments)]
        quiet = subprocess.DEVNULL
        self._errors = folder / "errors.txt"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=errors)
        self.peak = 0
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait()
        self._watcher.join()
        return code

    def kill(self) -> int:
        """Kill the process and return the exit code."""
        self.process.kill()
        return self.end()

    @property
    def errors(self) -> str:
        """Return what the process wrote to stderr."""
        return self._errors.read_text()

    def _watch(self) -> None:
        """Record the peak memory, a high-water mark, so only growth after the last reading is missed.

        `ru_maxrss` would begin with the memory of the parent process.
        """
        status = Path(f"/proc/{self.process.pid}/status")
        ended = threading.Event()
        while self.process.poll() is None and not ended.wait(0.05):
            try:
                found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
            except OSError:
                return
            self.peak = max(self.peak, int(found[1]) if found else 0)
