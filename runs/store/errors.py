"""Errors of run files."""

import sqlite3
from pathlib import Path

from dialoom.errors import Advice
from dialoom.runs.errors import StoreError


def is_about_the_file(error: sqlite3.Error) -> bool:
    """Return whether an SQLite error concerns the whole file, and not only the values of one job."""
    return not isinstance(
        error,
        sqlite3.IntegrityError
        | sqlite3.DataError
        | sqlite3.InterfaceError
        | sqlite3.ProgrammingError
        | sqlite3.NotSupportedError,
    )


def store_error(path: Path, error: BaseException, is_new: bool = False) -> StoreError:
    """Return SQLite's error in the user's terms.

    Args:
        path: The run's file.
        error: The error raised.
        is_new: Whether the file was being created, so that nothing of it is left.
    """
    text = str(error)
    if is_new and isinstance(error, OSError):
        return StoreError(
            f"{path} cannot be made ({error.strerror}); nothing is left of it. Make room, or look at the folder"
        )
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in text:
        return StoreError(f"{path} is not a run of dialoom: it is no SQLite file")
    if "disk is full" in text or "disk I/O error" in text or "No space left" in text:
        if is_new:
            return StoreError(f"{path} cannot be made ({text}); nothing is left of it. Make room and start it again")
        return StoreError(
            f"{path} cannot be written ({text}); what was committed is kept. Make room on the disk",
            advice=Advice("resume", "then resume the run", {"path": path}),
        )
    return StoreError(f"{path}: {text}")
