"""A sitting of a run in a process of its own, which can be killed and whose memory is watched."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path


class Sitting:
    """`dialoom` at work.

    Args:
        folder: Where it works.
        environment: What it sees of the world.
        arguments: Of the command.
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
        """Wait for its end; its exit code."""
        code = self.process.wait()
        self._watcher.join()
        return code

    def kill(self) -> int:
        """End it without a warning; its exit code."""
        self.process.kill()
        return self.end()

    @property
    def errors(self) -> str:
        """What it complained of."""
        return self._errors.read_text()

    def _watch(self) -> None:
        """The peak is a high-water mark, so nothing is missed between two looks but what came after the last.

        (`ru_maxrss` would begin with the memory of the process that started it.)
        """
        status = Path(f"/proc/{self.process.pid}/status")
        ended = threading.Event()
        while self.process.poll() is None and not ended.wait(0.05):
            try:
                found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
            except OSError:
                return
            self.peak = max(self.peak, int(found[1]) if found else 0)
