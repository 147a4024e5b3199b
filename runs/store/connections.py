"""Connections to run files: opening, the writer lock, atomic creation, and a signature that shows changes."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from dialoom.errors import Advice
from dialoom.inputs import is_sqlite
from dialoom.outputs import partial_file
from dialoom.runs.errors import StoreError, store_error
from dialoom.settings import Synchronous

from .corruption import CORRUPTION_ERRORS, check_judgements, corruption_error
from .schema import APPLICATION_ID, SCHEMA_VERSION, TABLES, VIEWS

BUSY_SECONDS = 60.0
"""The time in seconds for which a connection waits for the transaction of another connection."""


def ensure_file(path: Path) -> None:
    """Check that a path may be the path of a run's file.

    Raises:
        StoreError: If the path does not exist, is not a regular file, or is an empty file.
    """
    if not path.exists():
        raise StoreError(f"there is no run file {path}", advice=Advice("run", "start a run", {"path": path}))
    if not path.is_file():
        raise StoreError(f"{path} is {'a folder' if path.is_dir() else 'a pipe or a device'}; a run is one file")
    if path.stat().st_size == 0:
        raise StoreError(
            f"{path} is empty: its run was stopped before planning; remove the file and start the run again"
        )


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Return a read-only connection. It sees committed transactions only and never blocks the writer.

    Raises:
        StoreError: If the file does not exist, is not a run, or has another schema version.
    """
    ensure_file(path)
    try:
        with ExitStack() as opened:
            connection = opened.enter_context(closing(_connect_reader(path)))
            _check_layout(path, connection)
            check_judgements(path, connection)
            opened.pop_all()  # keep the connection open
            return connection
    except CORRUPTION_ERRORS as error:
        raise corruption_error(path, error) from error


def open_for_writing(path: Path, synchronous: Synchronous = "normal") -> sqlite3.Connection:
    """Return the writer's connection. Several threads may use it, one at a time.

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

    A read-write connection with `query_only` is preferred, because a read-only connection leaves its log files behind.
    """
    uri = path.absolute().as_uri()
    try:
        connection = _connect(uri + "?mode=rw")
    except sqlite3.OperationalError:  # the file or its folder is read-only, so nobody can be writing
        log = log_path(path)
        if log.exists() and log.stat().st_size:  # `immutable` would ignore the log silently
            raise StoreError(
                f"{path} is in a read-only folder, where the data in {log.name} cannot be read; copy both files to a "
                "writable folder, and open the copy"
            ) from None
        connection = _connect(uri + "?mode=ro&immutable=1")
    connection.execute("PRAGMA query_only = ON")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Read in one transaction, so that everything read is of one moment while others write; transactions may nest."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


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
    """Raise an error if a file is not a run, has another schema version, or contains triggers or foreign views."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, but not a run of dialoom")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{path} has run-file layout {version}, but this version of dialoom reads layout {SCHEMA_VERSION}; use "
            "the version that created it, or play the run again"
        )
    for kind, name, definition in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if name in VIEWS and definition == VIEWS[name]:
            continue
        is_other = kind == "view" or "VIRTUAL" in str(definition or "")[:30].upper()
        if kind == "trigger" or name in VIEWS or (is_other and name in TABLES):
            raise StoreError(
                f"{path} was not created by dialoom alone: it contains {kind} {name!r:.80}, so it is not opened"
            )


def create_atomically(path: Path, content: bytes) -> None:
    """Create a new file with this content atomically.

    Args:
        path: The file.
        content: The complete content.

    Raises:
        StoreError: If the path exists or is not a valid path of a file, if the log of an earlier file is beside it, or
            if its folder cannot be written, or the disk is full.
    """
    if str(path) == ":memory:" or str(path).startswith("file:"):
        raise StoreError(
            f"path {str(path)!r} has a special meaning for SQLite; give the path of a file", setting="path"
        )
    if os.path.lexists(path):
        raise _exists(path)
    for log in (path.with_name(path.name + ending) for ending in ("-wal", "-journal")):
        if log.exists() and log.stat().st_size:  # SQLite would copy its content into the new file
            raise StoreError(
                f"{log} contains the last changes of another file, which was named {path.name}",
                advice=Advice("remove_or_new_path", "remove it, or give another path"),
            )
    try:
        _appear(path, content)
    except FileExistsError as error:
        raise _exists(path) from error
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StoreError(f"{path} cannot be created: {error.strerror}") from error
    except OSError as error:
        raise store_error(path, error, is_new=True) from error


def copy_run(source: Path, target: Path) -> None:
    """Copy a run's file, even while another process writes it. An unfinished copy is removed.

    Raises:
        StoreError: If the copy cannot be written.
    """
    try:
        with partial_file(Path(os.path.realpath(target)), "wb") as (partial, _):
            read_only = sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)
            with closing(read_only) as run, closing(sqlite3.connect(partial)) as copy:
                run.backup(copy)
            partial.replace(target)
    except (sqlite3.Error, OSError) as error:
        raise store_error(target, error, is_new=True) from error


def _appear(path: Path, content: bytes) -> None:
    """Create the file, either as an unnamed file, which vanishes if the process is killed, or as a temporary file."""
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except (AttributeError, OSError):
        _appear_by_name(path, content)
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:  # Python follows the symbolic link only if a descriptor of the folder is given
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:
            _appear_by_name(path, content)
        finally:
            os.close(folder)


def _appear_by_name(path: Path, content: bytes) -> None:
    """Create the file under a temporary name, without replacing a file that has appeared under its name meanwhile."""
    with partial_file(path, "wb") as (beside, file):
        file.write(content)
        file.flush()
        try:
            os.link(beside, path)
        except FileExistsError:
            raise
        except OSError:  # the file system has no hard links
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            beside.replace(path)


def _exists(path: Path) -> StoreError:
    if not is_sqlite(path):
        if path.is_file() and not path.stat().st_size:
            advice = Advice("remove_or_new_path", "remove it, or give another path")
            return StoreError(f"{path} exists and is empty", advice=advice)
        return StoreError(f"{path} exists and is not a run", advice=Advice("new_path", "give another path"))
    advice = Advice(
        "resume_or_new_path", f"continue it with dialoom.resume({str(path)!r}), or give another path", {"path": path}
    )
    return StoreError(f"{path} exists", advice=advice)


_A_MOMENT = 0.05
"""The wait in seconds before the second attempt to take a lock."""

_locked: set[tuple[int, int]] = set()
"""The files that this process has open for writing, by device and inode.

They must not be opened again, because closing a further descriptor would drop SQLite's own locks on the file.
"""

_asking = threading.Lock()


def is_written_by_another(path: Path) -> bool:
    """Return whether another process holds a run file's writer lock. Any process may call this function.

    A child process does the check, because closing a file drops all locks of its process on this file, including
    SQLite's.
    """
    ask = "import fcntl, os, sys\nfcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)"
    with _asking:
        found = path.stat()
        if (found.st_dev, found.st_ino) in _locked:
            return False
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ask, path.absolute()], stderr=subprocess.PIPE, text=True)
    return done.returncode != 0 and "BlockingIOError" in done.stderr


class WriteLock:
    """The exclusive writer lock of a run file. The file itself is locked, so no lock file is left behind.

    SQLite locks byte ranges (`fcntl`), and this class locks the whole file (`flock`); on Linux these locks do not
    interact. The descriptor must outlive every connection of this process, because closing it would drop SQLite's
    locks.

    Args:
        path: The file.
        instead: Advice in the error message if the lock is held; by default, the advice for a run.

    Raises:
        StoreError: If another process, or another store in this process, holds the lock, or if the file cannot be
            written.
    """

    def __init__(self, path: Path, instead: str | None = None) -> None:
        with _asking:
            found = path.stat()
            self._file = found.st_dev, found.st_ino
            if self._file in _locked:
                raise _is_taken(path, "another task or thread of this process", instead)
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise StoreError(
                    f"{path} cannot be written ({error.strerror}); copy it to a writable folder, and continue with the "
                    "copy"
                ) from error
            try:
                _take(self._descriptor)
            except OSError as error:
                os.close(self._descriptor)
                raise _is_taken(path, "another dialoom process", instead) from error
            _locked.add(self._file)

    def close(self) -> None:
        """Release the lock. Call it after the last connection is closed."""
        with _asking:
            if self._file in _locked:
                _locked.remove(self._file)
                os.close(self._descriptor)


def _is_taken(path: Path, writer: str, instead: str | None) -> StoreError:
    message = f"{path} is being written by {writer}"
    if instead is not None:
        return StoreError(f"{message}; {instead}")
    return StoreError(
        f"{message}; it can still be read. To write it, wait for the other process to end, or stop it",
        advice=Advice("resume", "then resume the run", {"path": path}),
    )


def _take(descriptor: int) -> None:
    """Take the lock. A second attempt is made, because another process may hold the lock briefly to check it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(_A_MOMENT)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def log_path(path: Path) -> Path:
    """Return the path of a file's log. SQLite writes it beside the file to which a symbolic link refers."""
    real = Path(os.path.realpath(path))
    return real.with_name(real.name + "-wal")


def identity(path: Path) -> tuple[int, int] | None:
    """Return a file's device and inode, which change if it is replaced by another file; `None` if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


Signature = tuple[tuple[int, int] | None, ...]


def signature(path: Path) -> Signature:
    """Return the modification times and sizes of the file and its log."""
    found: list[tuple[int, int] | None] = []
    for each in (path, log_path(path)):
        try:
            status = each.stat()
        except OSError:
            found.append(None)
        else:
            # Opening the file creates an empty log, even for reading.
            found.append((status.st_mtime_ns, status.st_size) if status.st_size else None)
    return tuple(found)
