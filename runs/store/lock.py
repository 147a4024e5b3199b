"""One writer per run file: an advisory lock that the system lets go when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from dialoom.errors import Advice

from .errors import StoreError

_A_MOMENT = 0.05
"""Seconds."""

_held: set[tuple[int, int]] = set()
"""The files that this process writes, by device and number. Asked first: to open one of them only to find it locked,
and to close it again, would drop SQLite's own locks on it."""

_asking = threading.Lock()


def is_written(path: Path) -> bool:
    """Whether somebody holds the lock of a run file. Asked where this process has no connection to it open."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_written_by_another(path: Path) -> bool:
    """As `is_written`, of other processes, and in any process: it is asked by a child.

    Whoever closes a file drops all of its process's locks on it, SQLite's too; a child has none.
    """
    ask = "import fcntl, os, sys\nfcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)"
    with _asking:
        found = path.stat()
        if (found.st_dev, found.st_ino) in _held:
            return False
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ask, path.absolute()], stderr=subprocess.PIPE, text=True)
    return done.returncode != 0 and "BlockingIOError" in done.stderr


class WriteLock:
    """Holds the exclusive lock of a run file. It lives on the file itself, so nothing is left beside it.

    SQLite locks byte ranges (`fcntl`), this locks the whole open file (`flock`); on Linux the two do not meet. The
    descriptor must outlive every connection of this process, as closing it would drop SQLite's locks.

    Args:
        path: The file.
        instead: What to do where it is taken, if not what one does about a run.

    Raises:
        StoreError: If another process (or another store of this one) holds it, or the file cannot be written.
    """

    def __init__(self, path: Path, instead: str | None = None) -> None:
        with _asking:
            found = path.stat()
            self._file = found.st_dev, found.st_ino
            if self._file in _held:
                raise _is_taken(path, "another task or thread of this process", instead)
            self._descriptor = _opened(path)
            try:
                _take(self._descriptor)
            except OSError as error:
                os.close(self._descriptor)
                raise _is_taken(path, "another dialoom process", instead) from error
            _held.add(self._file)

    def close(self) -> None:
        """Let others write. Call it after the last connection is closed."""
        with _asking:
            if self._file in _held:
                _held.remove(self._file)
                os.close(self._descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror}); copy it to a folder that can, and go on with the copy"
        ) from error


def _is_taken(path: Path, writer: str, instead: str | None) -> StoreError:
    message = f"{path} is being written by {writer}"
    if instead is not None:
        return StoreError(f"{message}; {instead}")
    return StoreError(
        f"{message}; it can be read all the same. To write it, wait for that one or stop it",
        advice=Advice("resume", "then resume the run", {"path": path}),
    )


def _take(descriptor: int) -> None:
    """Take the lock, if need be at a second try: somebody may just be asking whether it is held."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(_A_MOMENT)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
