"""Opening a run's file: for reading by anyone at any time, and for writing by its one writer."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal

from dialoom.errors import Advice

from .damage import SIGNS, check_judgements, damaged
from .errors import StoreError
from .schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from .views import VIEWS

BUSY_SECONDS = 60.0
"""How long a connection waits for another's transaction."""

Synchronous = Literal["normal", "full"]


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


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot write; it sees whole transactions only and never blocks the writer.

    Raises:
        StoreError: If there is no such file, or it is no run, or one of another layout.
    """
    ensure_file(path)
    try:
        with ExitStack() as opened:
            connection = opened.enter_context(closing(_connect_reader(path)))
            _check_layout(path, connection)
            check_judgements(path, connection)
            opened.pop_all()  # it stays open
            return connection
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


def _check_layout(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is no run, has another layout, or holds anything that acts of its own accord."""
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
