"""Opening a run's file: for reading by anyone at any time, and for writing by its one writer."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal

from dialoom.errors import Advice

from .damage import SIGNS, check_judgements, damaged
from .errors import StoreError
from .lock import WriteLock
from .migrations import migrate, version_of
from .schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from .views import VIEWS

BUSY_SECONDS = 60.0
"""How long a connection waits for another's transaction."""

Synchronous = Literal["normal", "full"]

_OLDER = (
    "an older dialoom has made it, and it is brought up to date once nobody writes it: wait for that one or stop it"
)


def ensure_file(path: Path) -> None:
    """Look whether a path can be that of a run.

    Raises:
        StoreError: If there is nothing, or a folder, or an empty file.
    """
    if not path.exists():
        raise StoreError(f"there is no run file {path}", advice=Advice("run", "make a run", {"path": path}))
    if not path.is_file():
        raise StoreError(f"{path} is {'a folder' if path.is_dir() else 'a pipe or a device'}; a run is one file")
    if path.stat().st_size == 0:
        raise StoreError(f"{path} is empty: its run was stopped before it began; remove it and start it again")


def open_for_reading(path: Path, locked: bool = False) -> sqlite3.Connection:
    """A connection that cannot write. It sees whole transactions only and never holds up the writer.

    Args:
        path: The run's file; one of an older layout is brought up to date first.
        locked: Whether the caller holds the file's lock.

    Raises:
        StoreError: If there is no such file, or it is no run, or one of a newer dialoom.
    """
    ensure_file(path)
    try:
        with ExitStack() as opened:
            connection = opened.enter_context(closing(_connect_reader(path)))
            if _version(path, connection) == SCHEMA_VERSION:
                check_judgements(path, connection)
                opened.pop_all()  # it stays open
                return connection
        _migrate(path, locked)
        return open_for_reading(path, locked)
    except SIGNS as error:
        raise damaged(path, error) from error


def open_for_writing(path: Path, synchronous: Synchronous = "normal") -> sqlite3.Connection:
    """The writer's connection, for several threads that use it one at a time.

    Args:
        path: The run's file.
        synchronous: `normal`: what is committed survives the death of the process at any moment; after a power cut the
            last moments may be missing, the file is whole all the same. `full`: it survives a power cut too, at the
            price of waiting for the disk at every commit.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA journal_mode = WAL")  # a new file is in none yet
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def _connect_reader(path: Path) -> sqlite3.Connection:
    """Prefer a connection that might write, held back by a pragma: a read-only one leaves its log files behind."""
    uri = path.absolute().as_uri()
    try:
        connection = _connect(uri + "?mode=rw")
    except sqlite3.OperationalError:  # the file or its folder is read-only, so nobody can be writing
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:  # what stands there would be passed over in silence
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


def _version(path: Path, connection: sqlite3.Connection) -> int:
    """The file's version, if it is a run's and not a newer one."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file, but not a run of dialoom")
    version = version_of(connection)
    _check_schema(path, connection)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was made by a newer dialoom (run-file version {version}, this one knows up to {SCHEMA_VERSION}); "
            "update dialoom to use it"
        )
    return version


def _check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse what acts of its own accord: a trigger, or another view or a virtual table in the place of one of ours."""
    is_present = version_of(connection) == SCHEMA_VERSION
    for kind, name, definition in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if is_present and name in VIEWS and definition == VIEWS[name]:
            continue
        is_other = kind == "view" or "VIRTUAL" in str(definition or "")[:30].upper()
        if kind == "trigger" or (is_other and name in TABLES) or (is_present and name in VIEWS):
            raise StoreError(f"{path} is no run as dialoom makes it: it holds {kind} {name!r:.80}, so it is not used")


def _migrate(path: Path, locked: bool) -> None:
    with ExitStack() as opened:
        if not locked:
            opened.enter_context(closing(WriteLock(path, _OLDER)))
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        version = migrate(opened.enter_context(closing(connection)))
    if version < SCHEMA_VERSION:
        raise StoreError(
            f"{path} has run-file version {version}, from before the first that this dialoom reads ({SCHEMA_VERSION})"
        )
