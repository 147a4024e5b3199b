"""Connections to run files: opening, the writer lock, atomic creation, and the change signature."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

from dialoom.errors import Advice
from dialoom.outputs import partial_file
from dialoom.runs.errors import StoreError
from dialoom.settings import Synchronous

from .corruption import SIGNS, check_judgements, damaged
from .schema import APPLICATION_ID, SCHEMA_VERSION, TABLES, VIEWS

BUSY_SECONDS = 60.0
"""The time that a connection waits for another's transaction."""


def ensure_file(path: Path) -> None:
    """Check that a path can be a run's file.

    Raises:
        StoreError: If the path does not exist, is no regular file, or is empty.
    """
    if not path.exists():
        raise StoreError(f"there is no run file {path}", advice=Advice("run", "make a run", {"path": path}))
    if not path.is_file():
        raise StoreError(f"{path} is {'a folder' if path.is_dir() else 'a pipe or a device'}; a run is one file")
    if path.stat().st_size == 0:
        raise StoreError(f"{path} is empty: its run was stopped before it began; remove it and start it again")


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Return a read-only connection. It sees committed transactions only and never blocks the writer.

    Raises:
        StoreError: If the file does not exist, is no run, or has another schema version.
    """
    ensure_file(path)
    try:
        with ExitStack() as opened:
            connection = opened.enter_context(closing(_connect_reader(path)))
            _check_layout(path, connection)
            check_judgements(path, connection)
            opened.pop_all()  # keep it open
            return connection
    except SIGNS as error:
        raise damaged(path, error) from error


def open_for_writing(path: Path, synchronous: Synchronous = "normal") -> sqlite3.Connection:
    """Return the writer's connection, for several threads that use it one at a time.

    Args:
        path: The run's file.
        synchronous: `normal`: committed data survives the death of the process at any moment; a power cut may lose the
            last transactions, but the file stays consistent. `full`: committed data survives a power cut too, at the
            price of waiting for the disk at every commit.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA journal_mode = WAL")  # a new file is not in WAL mode yet
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def _connect_reader(path: Path) -> sqlite3.Connection:
    """Return a connection for reading.

    A read-write one with `query_only` is preferred: a read-only one leaves its log files behind.
    """
    uri = path.absolute().as_uri()
    try:
        connection = _connect(uri + "?mode=rw")
    except sqlite3.OperationalError:  # the file or its folder is read-only, so nobody can be writing
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:  # `immutable` would ignore the log silently
            raise StoreError(
                f"{path} lies where nothing can be written, with work in {log.name} that cannot be read there; copy "
                "both files to a folder that can be written, and look at the copy"
            ) from None
        connection = _connect(uri + "?mode=ro&immutable=1")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_layout(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is no run, has another schema version, or contains triggers or foreign views."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, but not a run of dialoom")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{path} has run-file layout {version}, this dialoom reads layout {SCHEMA_VERSION}; "
            "use the dialoom that made it, or play the run again"
        )
    for kind, name, definition in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if name in VIEWS and definition == VIEWS[name]:
            continue
        is_other = kind == "view" or "VIRTUAL" in str(definition or "")[:30].upper()
        if kind == "trigger" or name in VIEWS or (is_other and name in TABLES):
            raise StoreError(f"{path} is no run as dialoom makes it: it holds {kind} {name!r:.80}, so it is not used")


def appear(path: Path, content: bytes) -> None:
    """Create a new file with this content atomically.

    Args:
        path: The file.
        content: The complete content.

    Raises:
        StoreError: If the path exists, cannot be a file's path, or its folder cannot be written.
        OSError: If the disk is full.
    """
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(f"path {str(path)!r} is SQLite's word for something else; give a file's path", setting="path")
    if os.path.lexists(path):
        raise _exists(path)
    try:
        _appear(path, content)
    except FileExistsError as error:
        raise _exists(path) from error
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StoreError(f"{path} cannot be made: {error.strerror}") from error


def _appear(path: Path, content: bytes) -> None:
    """Create the file by way of an unnamed one, of which a kill leaves nothing; fall back to a named one beside it."""
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except (AttributeError, OSError):
        _appear_by_name(path, content)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:  # Python follows the link only if a folder is given
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            _appear_by_name(path, content)
        finally:
            os.close(folder)


def _appear_by_name(path: Path, content: bytes) -> None:
    with partial_file(path, "wb") as (beside, file):
        file.write(content)
        file.flush()
        _give_name(beside, path)


def _give_name(beside: Path, path: Path) -> None:
    """Give a finished file its name, without replacing a file that appeared there meanwhile."""
    try:
        os.link(beside, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        beside.replace(path)


def _exists(path: Path) -> StoreError:
    text = f"go on with dialoom.resume({str(path)!r}), or give another path"
    advice = Advice("resume_or_new_path", text, {"path": path})
    return StoreError(f"{path} exists", advice=advice)


_A_MOMENT = 0.05
"""The wait before the second try at a lock, in seconds."""

_held: set[tuple[int, int]] = set()
"""The files that this process writes, by device and inode. Checked before a file is opened: closing a descriptor of
one of them would drop SQLite's own locks on it.
"""

_asking = threading.Lock()


def is_written(path: Path) -> bool:
    """Return whether some process holds a run file's writer lock. For processes without an open connection to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_written_by_another(path: Path) -> bool:
    """Return whether another process holds a run file's writer lock. Any process may call it: a child checks.

    Closing a file drops all of its process's locks on it, including SQLite's; a child process has none.
    """
    ask = "import fcntl, os, sys\nfcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)"
    with _asking:
        found = path.stat()
        if (found.st_dev, found.st_ino) in _held:
            return False
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ask, path.absolute()], stderr=subprocess.PIPE, text=True)
    return done.returncode != 0 and "BlockingIOError" in done.stderr


class WriteLock:
    """The exclusive writer lock of a run file. It is held on the file itself, so no lock file is left behind.

    SQLite locks byte ranges (`fcntl`), this locks the whole open file (`flock`); on Linux the two do not interact. The
    descriptor must outlive every connection of this process, because closing it would drop SQLite's locks.

    Args:
        path: The file.
        instead: Advice for the error message if the lock is held; by default, the advice for a run.

    Raises:
        StoreError: If another process (or another store of this one) holds the lock, or the file cannot be written.
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
        """Release the lock. Call it after the last connection is closed."""
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
    """Take the lock, with a second try: another process may hold it briefly while checking it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(_A_MOMENT)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


Signature = tuple[tuple[int, int] | None, ...]


def signature(path: Path) -> Signature:
    """Return the modification times and sizes of the file and its log."""
    found: list[tuple[int, int] | None] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            status = each.stat()
        except OSError:
            found.append(None)
        else:
            # Opening the file creates an empty log, even for reading.
            found.append((status.st_mtime_ns, status.st_size) if status.st_size else None)
    return tuple(found)
