"""Built-in environments (an SQLite database or a JSON document, each with simple tools), and tools of MCP servers."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from dialoom.inputs import read_text
from dialoom.roles import PermanentProviderError
from dialoom.roles.gateway.secrets import redacted

from .environment import Environment, EnvironmentFactory, RemoteTool, Tool, ToolError, text_of_result

SQLITE = "sqlite"
"""The only key in the snapshot of an `SqliteEnvironment`. Its value is a list of SQL statements."""

_FOREIGN_KEYS = {"foreign_keys": "PRAGMA foreign_keys"}
_SETTINGS = {
    "application_id": "PRAGMA application_id",
    "user_version": "PRAGMA user_version",
    "recursive_triggers": "PRAGMA recursive_triggers",
    "ignore_check_constraints": "PRAGMA ignore_check_constraints",
    "case_sensitive_like": "SELECT 'a' NOT LIKE 'A'",
}
"""The settings that a snapshot includes besides the content, with the queries for their values; 0 is the default."""

_MOST_BYTES = 64 * 2**20
_MOST_ROWS = 100
"""Maximum number of rows that the tool `query` returns."""
_MOST_STEPS = 20_000_000
"""Maximum number of SQLite instructions for one statement of a tool.

This limit stops endless queries, always at the same point.
"""
_STEPS_AT_ONCE = 100_000

_READ = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}  # 33: SQLITE_RECURSIVE
_REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_TRANSACTION, 32}
"""Actions that would reach other files, change the connection, or leave a transaction open (32 is SQLITE_SAVEPOINT)."""


class SqliteEnvironment:
    """An environment that is an SQLite database in memory, with the tools `query` and `execute`.

    Subclass it to add tools of your own, which read and write `connection`. Each step has a new connection with the
    same content and the same settings `foreign_keys`, `recursive_triggers`, `ignore_check_constraints` and
    `case_sensitive_like`, which the schema, `reset` or a tool may set. Functions are registered in `opened`.

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
        file: The path of a database file or of a file of SQL statements (`.sql`). Each conversation begins with a copy
            of it.
        schema: SQL statements that create the database, in place of a file.
        connection: The connection to the database. Each statement is committed immediately.
    """

    file: ClassVar[str | Path] = ""
    schema: ClassVar[str] = ""

    def __init__(self) -> None:
        self.connection = _opened()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the assistant is offered."""
        return [self.query, self.execute]

    def reset(self, scenario: Any) -> None:
        """Create the database as a copy of the file, or from the schema."""
        self.connection = _opened()
        self.opened(self.connection)
        if not self.file:
            self.connection.executescript(self.schema)
        elif str(self.file).endswith(".sql"):
            self.connection.executescript(read_text(Path(self.file), _MOST_BYTES))
        else:
            with closing(sqlite3.connect(f"{Path(self.file).absolute().as_uri()}?mode=ro", uri=True)) as source:
                source.backup(self.connection)

    def opened(self, connection: sqlite3.Connection) -> None:
        """Prepare a new connection, before its content is created; by default nothing is done.

        Override this method to register functions (`connection.create_function`) and collations for tools and triggers.
        Checks and exports read the final state without them, so no table, index or check may need them.

        Args:
            connection: The connection of a step, to an empty database.
        """

    def snapshot(self) -> dict[str, list[str]]:
        """Return the database, and the settings that differ from those of a new database, as SQL statements."""
        lines = [line for line in self.connection.iterdump() if line not in ("BEGIN TRANSACTION;", "COMMIT;")]
        # The rows are not in the order of their references, so foreign keys are enforced only afterwards.
        return {SQLITE: [*_pragmas(self.connection, _SETTINGS), *lines, *_pragmas(self.connection, _FOREIGN_KEYS)]}

    def restore(self, snapshot: Mapping[str, Sequence[str]]) -> None:
        """Create the database from the SQL statements of a snapshot."""
        self.connection = restored(snapshot, self.opened)

    def query(self, sql: str) -> list[dict[str, Any]] | dict[str, Any]:
        """Read from the database with one SQL SELECT statement.

        Of more than 100 rows, only the first 100 are returned, and `shown` says so, e.g. "100 of 150 rows".

        Args:
            sql: The statement.
        """
        found = rows(self.connection, sql)
        first = list(islice(found, _MOST_ROWS))
        if not (left := sum(1 for _ in found)):
            return first
        return {"shown": f"{len(first)} of {len(first) + left} rows", "rows": first}

    def execute(self, sql: str) -> dict[str, int]:
        """Change the database with one SQL statement (INSERT, UPDATE, DELETE).

        Args:
            sql: The statement.
        """
        before = self.connection.total_changes
        for _ in rows(self.connection, sql, only_read=False):
            pass  # a statement with RETURNING has rows
        return {"rows_changed": self.connection.total_changes - before}


class JsonEnvironment:
    """An environment that is a JSON document, with the tools `read`, `update` and `remove`.

    Attributes:
        file: The path of a JSON file. Each conversation begins with a copy of it.
        document: The current document of the conversation.
    """

    file: ClassVar[str | Path] = ""

    def __init__(self) -> None:
        self.document: Any = {}

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the assistant is offered."""
        return [self.read, self.update, self.remove]

    def reset(self, scenario: Any) -> None:
        """Load a copy of the file; without a file, start with an empty document."""
        self.document = json.loads(read_text(Path(self.file), _MOST_BYTES)) if self.file else {}

    def snapshot(self) -> Any:
        """Return the document."""
        return self.document

    def restore(self, snapshot: Any) -> None:
        """Replace the document with the document of a snapshot."""
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
        if not (keys := _keys(path)):
            raise ValueError("path must name a part of the document")
        return self.read("/".join(keys[:-1])), keys[-1]


def _keys(path: str) -> list[str]:
    return [key for key in path.split("/") if key]


def _place(holder: Any, key: str, is_new: bool = False) -> Any:
    """Return a key in the form that its container needs: a string for a mapping, an index for a list."""
    if isinstance(holder, list):
        if not key.isdecimal() or int(key) >= len(holder):
            raise KeyError(f"{key} is not an index; the list has {len(holder)} items")
        return int(key)
    if not isinstance(holder, dict):
        raise KeyError(f"{key}: {type(holder).__name__} has no parts")
    if key not in holder and not is_new:
        raise KeyError(f"there is no {key}; there are {', '.join(holder) or 'none'}")
    return key


def environment_of_file(path: Path) -> EnvironmentFactory | None:
    """Return the factory of the built-in environment for a file, chosen by its suffix; `None` for other suffixes."""
    kinds: dict[str, type[Environment]] = {".json": JsonEnvironment}
    kinds |= dict.fromkeys((".db", ".sqlite", ".sqlite3", ".sql"), SqliteEnvironment)
    kind = kinds.get(path.suffix)
    return None if kind is None else type(kind.__name__, (kind,), {"file": path, "__doc__": kind.__doc__})


def _opened() -> sqlite3.Connection:
    # Synchronous nodes of a graph may call a tool from a thread; calls never overlap.
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    return connection


def _pragmas(connection: sqlite3.Connection, settings: Mapping[str, str]) -> list[str]:
    """Return the statements that give a new connection a connection's settings, as far as they are not the default."""
    values = {name: connection.execute(query).fetchone()[0] for name, query in settings.items()}
    return [f"PRAGMA {name} = {value};" for name, value in values.items() if value]


def restored(
    snapshot: Mapping[str, Sequence[str]], opened: Callable[[sqlite3.Connection], None] | None = None
) -> sqlite3.Connection:
    """Return a database in memory with the content and the settings of a snapshot.

    Args:
        snapshot: The snapshot of an `SqliteEnvironment`.
        opened: A function that prepares the connection.
    """
    connection = _opened()
    if opened is not None:
        opened(connection)
    connection.executescript("\n".join(["PRAGMA foreign_keys = OFF;", *snapshot[SQLITE]]))
    return connection


def readable(snapshot: Any) -> Any:
    """Return a snapshot in a form that is easy to compare. A database becomes a mapping of tables to lists of rows."""
    if not is_sqlite(snapshot):
        return snapshot
    return {name: [dict(row) for row in table] for name, table in _tables(snapshot)}


def columns_by_table(snapshot: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the names of the columns of each table in the snapshot of a database."""
    return {name: [column for column, *_ in table.description] for name, table in _tables(snapshot)}


def _tables(snapshot: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, sqlite3.Cursor]]:
    """Yield the name and the rows of each table in the snapshot of a database."""
    connection = restored(snapshot)
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    for (name,) in connection.execute(names).fetchall():
        yield name, connection.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')


def is_sqlite(snapshot: Any) -> bool:
    """Return whether a snapshot is from an `SqliteEnvironment`."""
    return isinstance(snapshot, Mapping) and list(snapshot) == [SQLITE]


def rows(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any] = (), only_read: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one SQL statement. The statement cannot access other files, and its run time is limited.

    Args:
        connection: The database.
        sql: The statement.
        values: The values of the `?` in the statement.
        only_read: Whether the statement may only read.

    Raises:
        ValueError: If the statement is wrong, is not allowed, or takes too long.
    """
    left = _MOST_STEPS // _STEPS_AT_ONCE

    def tick() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def allowed(action: int, *_: Any) -> int:
        return sqlite3.SQLITE_OK if (action in _READ if only_read else action not in _REFUSED) else sqlite3.SQLITE_DENY

    connection.set_progress_handler(tick, _STEPS_AT_ONCE)
    connection.set_authorizer(allowed)
    try:
        yield from map(dict, connection.execute(sql, values))
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


NEEDS_MCP = "MCP servers need dialoom[mcp]: pip install 'dialoom[mcp]'"
"""The error message if the library for MCP servers is not installed."""


class _Connection:
    """A session with one MCP server.

    It runs in a task of its own, because its context managers must be exited in the task that entered them.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._client: Any = None
        self._tools: asyncio.Future[list[RemoteTool]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve())

    async def tools(self) -> list[RemoteTool]:
        """Return the server's tools.

        Raises:
            PermanentProviderError: If the server cannot be reached.
        """
        return await asyncio.shield(self._tools)

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its result as text.

        Raises:
            PermanentProviderError: If the server does not answer, or has ended.
        """
        from mcp import MCPError

        try:
            result = await self._client.call_tool(name, arguments)
        except MCPError as error:
            if error.message != _CLOSED:
                return redacted(f"error: {error}")
            raise PermanentProviderError(
                redacted(f"MCP server {self._server!r} has ended, and the result of the call of {name} is unknown")
            ) from error
        except Exception as error:
            raise PermanentProviderError(
                redacted(f"MCP server {self._server!r} did not answer the call of {name}: {_message_of(error)}")
            ) from error
        texts = list(map(_part_text, result.content))
        text = "\n".join(texts) if texts else text_of_result(result.structured_content)
        return redacted(f"error: {text}" if result.is_error else text) or '""'

    async def close(self) -> None:
        """End the session."""
        self._closing.set()
        await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            from mcp import Client
        except ImportError:
            self._fail(ToolError(f"mcp: {NEEDS_MCP}", setting="mcp"))
            return
        try:
            async with Client(_target(self._server)) as client:
                self._client = client
                self._tools.set_result([self._tool(each) for each in await _listed(client)])
                await self._closing.wait()
        except Exception as error:
            remedy = "check that it runs" if is_url(self._server) else "start it by hand to see why"
            message = redacted(f"mcp: the server {self._server!r} cannot be used: {_message_of(error)}; {remedy}")
            self._fail(ToolError(message, setting="mcp"))

    def _fail(self, error: Exception) -> None:
        if not self._tools.done():
            self._tools.set_exception(error)
            self._tools.exception()  # retrieve the exception, because there may be no waiting caller

    def _tool(self, given: Any) -> RemoteTool:
        hints = given.annotations
        is_repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        function = {
            "name": given.name,
            "description": given.description or given.name,
            "parameters": given.input_schema,
        }
        return RemoteTool(
            given.name, {"type": "function", "function": function}, is_repeatable, partial(self._call, given.name)
        )


_CLOSED = "Connection closed"
"""The message of the library's error for a call to a server that has ended."""


def _part_text(part: Any) -> str:
    """Return a part of a tool's result as text; for a part without text, its kind and its address or media type."""
    text = getattr(part, "text", getattr(getattr(part, "resource", None), "text", None))
    if text is None:
        about = getattr(part, "uri", None) or getattr(part, "mime_type", None) or "not shown"
        return f"[{part.type}: {about}]"
    return str(text)


async def _listed(client: Any) -> list[Any]:
    """Return all tools of a server, page by page."""
    found, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if not (cursor := page.next_cursor):
            return found


def _target(server: str) -> Any:
    """Return the target to which the client connects: a URL, or a command that inherits the environment variables."""
    if is_url(server):
        return server
    from mcp import StdioServerParameters

    command, *arguments = shlex.split(server)
    return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))


def is_url(server: str) -> bool:
    """Return whether a server is given as a URL rather than as a command."""
    return server.startswith(("http://", "https://"))


def _message_of(error: BaseException) -> str:
    """Return an error's message; for an exception group, the message of its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


class _Connections:
    """The connections to MCP servers in one event loop, by server, and the number of active `connected` blocks."""

    def __init__(self) -> None:
        self.by_server: dict[str, _Connection] = {}
        self.users = 0


_CONNECTIONS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()


async def remote_tools(servers: Sequence[str]) -> list[RemoteTool]:
    """Return the tools of MCP servers. Each server is connected when it is first needed.

    Raises:
        ToolError: If a server cannot be used.
    """
    here = _CONNECTIONS.setdefault(asyncio.get_running_loop(), _Connections())
    found: list[RemoteTool] = []
    for server in servers:
        if server not in here.by_server:
            here.by_server[server] = _Connection(server)
        found += await here.by_server[server].tools()
    return found


@asynccontextmanager
async def connected() -> AsyncIterator[None]:
    """Close the connections of this event loop at the end of the block, unless another block still uses them."""
    here = _CONNECTIONS.setdefault(asyncio.get_running_loop(), _Connections())
    here.users += 1
    try:
        yield
    finally:
        here.users -= 1
        if not here.users:
            servers, here.by_server = here.by_server, {}
            for each in servers.values():
                await each.close()
