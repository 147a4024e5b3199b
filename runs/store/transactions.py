"""Jobs for the writer whose troubles with SQLite are told in the user's terms."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from .errors import is_about_the_file, store_error
from .writer import Result, Writer


class Transactions:
    """What writes to a run's file, each job whole or not at all.

    Args:
        writer: The file's.
        path: The file.
    """

    def __init__(self, writer: Writer, path: Path) -> None:
        self._writer = writer
        self._path = path

    async def soon(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Carry out a short job; returns what it returned once that is durable.

        Raises:
            StoreError: If the file cannot be written.
            Exception: What the job raised; if SQLite has something against its values, that.
        """
        try:
            return await self._writer.submit(job)
        except sqlite3.Error as error:
            if not is_about_the_file(error):
                raise
            raise store_error(self._path, error) from error

    def now(self, job: Callable[[sqlite3.Connection], Result], once: bool = False) -> Result:
        """Carry out a job, waiting until it is durable; for callers without an event loop.

        Args:
            job: The job.
            once: Whether it must not be carried out a second time, as it may be when others of its batch fail.

        Raises:
            StoreError: If the file cannot be written.
        """
        try:
            return self._writer.enqueue(job, once).result()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    def forget(self) -> None:
        """Have what was remembered of the file's content forgotten. For jobs that remove some of it."""
        self._writer.forget()
