"""Built-in environments: an SQLite database and a JSON document, each with simple tools."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from dialoom.inputs import read_text

from .environment import Environment, EnvironmentFactory, Tool

SQLITE = "sqlite"
"""The only key of the snapshot of an `SqliteEnvironment`; its value is a list of SQL statements."""

_MOST_BYTES = 64 * 2**20
_MOST_ROWS = 100
"""The most rows that the tool `query` returns."""
_MOST_STEPS = 20_000_000
"""The most instructions of SQLite's machine for one statement of a tool: endless queries end, always at one place."""
_STEPS_AT_ONCE = 100_000

_READ = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}  # 33: SQLITE_RECURSIVE
_REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_TRANSACTION, 32}
"""Actions that would reach other files, change the connection, or leave a transaction open (32: SQLITE_SAVEPOINT)."""


class SqliteEnvironment:
    """A copy in memory of an SQLite database, with the tools `query` and `execute`.

    Subclass it for tools of your own, which use `connection`.

    Example:
        >>> class Shop(SqliteEnvironment):
        ...     schema = "CREATE TABLE refunds (order_id TEXT, amount REAL);"
        ...
        ...     def refund(self, order_id: str, amount: float) -> str:
        ...         "Refund an amount of an order."
        ...         self.connection.execute("INSERT INTO refunds VALUES (?, ?)", (order_id, amount))
        ...         return "refunded"
        ...
        ...     @property
        ...     def tools(self):
        ...         return [self.refund]

    Attributes:
        file: A database file, or a text of SQL statements (`.sql`), that each conversation begins with a copy of.
        schema: SQL statements in place of a file.
        connection: The database. Statements commit by themselves.
    """

    file: ClassVar[str | Path] = ""
    schema: ClassVar[str] = ""

    def __init__(self) -> None:
        self.connection = _opened()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools."""
        return [self.query, self.execute]

    def reset(self, scenario: Any) -> None:
        """Begin with a copy of the file, or with the schema."""
        self.connection = _opened()
        if not self.file:
            self.connection.executescript(self.schema)
        elif str(self.file).endswith(".sql"):
            self.connection.executescript(read_text(Path(self.file), _MOST_BYTES))
        else:
            with closing(sqlite3.connect(f"{Path(self.file).absolute().as_uri()}?mode=ro", uri=True)) as source:
                source.backup(self.connection)

    def snapshot(self) -> dict[str, list[str]]:
        """Return the database as SQL statements."""
        return {SQLITE: [line for line in self.connection.iterdump() if line not in ("BEGIN TRANSACTION;", "COMMIT;")]}

    def restore(self, snapshot: Mapping[str, Sequence[str]]) -> None:
        """Make the database from SQL statements."""
        self.connection = restored(snapshot)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Read from the database with one SQL SELECT statement.

        Args:
            sql: The statement.
        """
        return rows(self.connection, sql, only_read=True)

    def execute(self, sql: str) -> dict[str, int]:
        """Change the database with one SQL statement (INSERT, UPDATE, DELETE).

        Args:
            sql: The statement.
        """
        before = self.connection.total_changes
        rows(self.connection, sql, only_read=False)
        return {"rows_changed": self.connection.total_changes - before}


class JsonEnvironment:
    """A JSON document with the tools `read`, `update` and `remove`.

    Attributes:
        file: The file that each conversation begins with a copy of.
        document: The document, while a conversation goes on.
    """

    file: ClassVar[str | Path] = ""

    def __init__(self) -> None:
        self.document: Any = {}

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools."""
        return [self.read, self.update, self.remove]

    def reset(self, scenario: Any) -> None:
        """Begin with a copy of the file, or with an empty document."""
        self.document = json.loads(read_text(Path(self.file), _MOST_BYTES)) if self.file else {}

    def snapshot(self) -> Any:
        """Return the document."""
        return self.document

    def restore(self, snapshot: Any) -> None:
        """Replace the document."""
        self.document = snapshot

    def read(self, path: str = "") -> Any:
        """Read a part of the document.

        Args:
            path: Keys and indexes separated by slashes, such as orders/0/state; empty for the whole document.
        """
        found = self.document
        for key in _keys(path):
            found = found[_place(found, key)]
        return found

    def update(self, path: str, value: Any) -> Any:
        """Set a part of the document; in a list, the index after the last appends.

        Args:
            path: Keys and indexes separated by slashes, such as orders/0/state.
            value: The new value.
        """
        holder, key = self._holder(path)
        if isinstance(holder, list) and key == str(len(holder)):
            holder.append(value)
        else:
            holder[_place(holder, key, is_new=True)] = value
        return value

    def remove(self, path: str) -> Any:
        """Remove a part of the document, and return it.

        Args:
            path: Keys and indexes separated by slashes, such as orders/0.
        """
        holder, key = self._holder(path)
        return holder.pop(_place(holder, key))

    def _holder(self, path: str) -> tuple[Any, str]:
        keys = _keys(path)
        if not keys:
            raise ValueError("path must name a part of the document")
        return self.read("/".join(keys[:-1])), keys[-1]


def _keys(path: str) -> list[str]:
    return [key for key in path.split("/") if key]


def _place(holder: Any, key: str, is_new: bool = False) -> Any:
    """Return a key as the mapping or list that holds it takes it."""
    if isinstance(holder, list):
        if not key.isdecimal() or int(key) >= len(holder):
            raise KeyError(f"{key} is no index; the list has {len(holder)} items")
        return int(key)
    if not isinstance(holder, dict):
        raise KeyError(f"{key}: {type(holder).__name__} has no parts")
    if key not in holder and not is_new:
        raise KeyError(f"there is no {key}; there are {', '.join(holder) or 'none'}")
    return key


def environment_of_file(path: Path) -> EnvironmentFactory | None:
    """Return the factory of the built-in environment that begins with a file, by the file's suffix; else `None`."""
    kinds: dict[str, type[Environment]] = {".json": JsonEnvironment}
    kinds |= dict.fromkeys((".db", ".sqlite", ".sqlite3", ".sql"), SqliteEnvironment)
    kind = kinds.get(path.suffix)
    return None if kind is None else type(kind.__name__, (kind,), {"file": path, "__doc__": kind.__doc__})


def _opened() -> sqlite3.Connection:
    # Synchronous nodes of a graph may call a tool from a thread; calls never overlap.
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    return connection


def restored(snapshot: Mapping[str, Sequence[str]]) -> sqlite3.Connection:
    """Return a database in memory with the content of a snapshot."""
    connection = _opened()
    connection.executescript("\n".join(snapshot[SQLITE]))
    return connection


def readable(snapshot: Any) -> Any:
    """Return a snapshot in the form that people compare: a database as its tables, each a list of rows."""
    if not is_sqlite(snapshot):
        return snapshot
    connection = restored(snapshot)
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return {
        name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')]
        for (name,) in connection.execute(names).fetchall()
    }


def is_sqlite(snapshot: Any) -> bool:
    """Return whether a snapshot is that of a database."""
    return isinstance(snapshot, Mapping) and list(snapshot) == [SQLITE]


def rows(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any] = (), only_read: bool = True
) -> list[dict[str, Any]]:
    """Return the first rows of one SQL statement, which can reach no other file and ends after limited work.

    Args:
        connection: The database.
        sql: The statement.
        values: The values of its `?`.
        only_read: Whether it may only read.

    Raises:
        ValueError: If it is wrong, not allowed, or takes too long.
    """
    left = _MOST_STEPS // _STEPS_AT_ONCE

    def tick() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def allowed(action: int, *_: Any) -> int:
        is_allowed = action in _READ if only_read else action not in _REFUSED
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    connection.set_progress_handler(tick, _STEPS_AT_ONCE)
    connection.set_authorizer(allowed)
    try:
        return [dict(row) for row in connection.execute(sql, values).fetchmany(_MOST_ROWS)]
    except (sqlite3.Error, sqlite3.Warning) as error:
        message = str(error)
        if "interrupted" in message:
            message = "the statement takes too long"
        elif "not authorized" in message or "authorization denied" in message:
            message = "this statement is not allowed" + ("; only SELECT is" if only_read else "")
        raise ValueError(message) from error
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
