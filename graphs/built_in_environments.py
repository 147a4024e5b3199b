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
from dialoom.roles.gateway.secrets import redact

from .environment import Environment, EnvironmentFactory, RemoteTool, Tool, ToolError, format_result

SQLITE_KEY = "sqlite"
"""The only key in the snapshot of an `SqliteEnvironment`. Its value is a list of SQL statements."""

_FOREIGN_KEYS_QUERY = {"foreign_keys": "PRAGMA foreign_keys"}
_SETTING_QUERIES = {
    "application_id": "PRAGMA application_id",
    "user_version": "PRAGMA user_version",
    "recursive_triggers": "PRAGMA recursive_triggers",
    "ignore_check_constraints": "PRAGMA ignore_check_constraints",
    "case_sensitive_like": "SELECT 'a' NOT LIKE 'A'",
}
"""The settings that a snapshot includes besides the content, with the queries for their values; 0 is the default."""

_MAX_FILE_BYTES = 64 * 2**20
_MAX_QUERY_ROWS = 100
"""Maximum number of rows that the tool `query` returns."""
_MAX_INSTRUCTIONS = 20_000_000
"""Maximum number of SQLite instructions for one statement of a tool.

This limit stops endless queries, always at the same point.
"""
_INSTRUCTIONS_PER_CHECK = 100_000

_READ_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}  # 33: SQLITE_RECURSIVE
_DENIED_ACTIONS = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_TRANSACTION, 32}
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
        self.connection = _connect()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the assistant is offered."""
        return [self.query, self.execute]

    def reset(self, scenario: Any) -> None:
        """Create the database as a copy of the file, or from the schema."""
        self.connection = _connect()
        self.opened(self.connection)
        if not self.file:
            self.connection.executescript(self.schema)
        elif str(self.file).endswith(".sql"):
            self.connection.executescript(read_text(Path(self.file), _MAX_FILE_BYTES))
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
        return {
            SQLITE_KEY: [
                *_dump_settings(self.connection, _SETTING_QUERIES),
                *lines,
                *_dump_settings(self.connection, _FOREIGN_KEYS_QUERY),
            ]
        }

    def restore(self, snapshot: Mapping[str, Sequence[str]]) -> None:
        """Create the database from the SQL statements of a snapshot."""
        self.connection = restore_database(snapshot, self.opened)

    def query(self, sql: str) -> list[dict[str, Any]] | dict[str, Any]:
        """Read from the database with one SQL SELECT statement.

        Of more than 100 rows, only the first 100 are returned, and `shown` says so, e.g. "100 of 150 rows".

        Args:
            sql: The statement.
        """
        rows = execute_statement(self.connection, sql)
        first = list(islice(rows, _MAX_QUERY_ROWS))
        if not (remaining_count := sum(1 for _ in rows)):
            return first
        return {"shown": f"{len(first)} of {len(first) + remaining_count} rows", "rows": first}

    def execute(self, sql: str) -> dict[str, int]:
        """Change the database with one SQL statement (INSERT, UPDATE, DELETE).

        Args:
            sql: The statement.
        """
        before = self.connection.total_changes
        for _ in execute_statement(self.connection, sql, read_only=False):
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
        self.document = json.loads(read_text(Path(self.file), _MAX_FILE_BYTES)) if self.file else {}

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
        value = self.document
        for key in _split_path(path):
            value = value[_resolve_key(value, key)]
        return value

    def update(self, path: str, value: Any) -> Any:
        """Set a part of the document; in a list, the index after the last appends.

        Args:
            path: Keys and indexes separated by slashes, such as orders/0/state.
            value: The new value.
        """
        container, key = self._find_container(path)
        if isinstance(container, list) and key == str(len(container)):
            container.append(value)
        else:
            container[_resolve_key(container, key, may_be_new=True)] = value
        return value

    def remove(self, path: str) -> Any:
        """Remove a part of the document, and return it.

        Args:
            path: Keys and indexes separated by slashes, such as orders/0.
        """
        container, key = self._find_container(path)
        return container.pop(_resolve_key(container, key))

    def _find_container(self, path: str) -> tuple[Any, str]:
        if not (keys := _split_path(path)):
            raise ValueError("path must name a part of the document")
        return self.read("/".join(keys[:-1])), keys[-1]


def _split_path(path: str) -> list[str]:
    return [key for key in path.split("/") if key]


def _resolve_key(container: Any, key: str, may_be_new: bool = False) -> Any:
    """Return a key in the form that its container needs: a string for a mapping, an index for a list."""
    if isinstance(container, list):
        if not key.isdecimal() or int(key) >= len(container):
            raise KeyError(f"{key} is not an index; the list has {len(container)} items")
        return int(key)
    if not isinstance(container, dict):
        raise KeyError(f"{key}: {type(container).__name__} has no parts")
    if key not in container and not may_be_new:
        raise KeyError(f"there is no {key}; there are {', '.join(container) or 'none'}")
    return key


def find_environment_class(path: Path) -> EnvironmentFactory | None:
    """Return the factory of the built-in environment for a file, chosen by its suffix; `None` for other suffixes."""
    kinds: dict[str, type[Environment]] = {".json": JsonEnvironment}
    kinds |= dict.fromkeys((".db", ".sqlite", ".sqlite3", ".sql"), SqliteEnvironment)
    kind = kinds.get(path.suffix)
    return None if kind is None else type(kind.__name__, (kind,), {"file": path, "__doc__": kind.__doc__})


def _connect() -> sqlite3.Connection:
    # Synchronous nodes of a graph may call a tool from a thread; calls never overlap.
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    return connection


def _dump_settings(connection: sqlite3.Connection, settings: Mapping[str, str]) -> list[str]:
    """Return the statements that give a new connection a connection's settings, as far as they are not the default."""
    values = {name: connection.execute(query).fetchone()[0] for name, query in settings.items()}
    return [f"PRAGMA {name} = {value};" for name, value in values.items() if value]


def restore_database(
    snapshot: Mapping[str, Sequence[str]], prepare: Callable[[sqlite3.Connection], None] | None = None
) -> sqlite3.Connection:
    """Return a database in memory with the content and the settings of a snapshot.

    Args:
        snapshot: The snapshot of an `SqliteEnvironment`.
        prepare: A function that prepares the connection.
    """
    connection = _connect()
    if prepare is not None:
        prepare(connection)
    connection.executescript("\n".join(["PRAGMA foreign_keys = OFF;", *snapshot[SQLITE_KEY]]))
    return connection


def decode_snapshot(snapshot: Any) -> Any:
    """Return a snapshot in a form that is easy to compare. A database becomes a mapping of tables to lists of rows."""
    if not is_sqlite_snapshot(snapshot):
        return snapshot
    return {name: [dict(row) for row in table] for name, table in _iter_tables(snapshot)}


def list_columns(snapshot: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the names of the columns of each table in the snapshot of a database."""
    return {name: [column for column, *_ in table.description] for name, table in _iter_tables(snapshot)}


def _iter_tables(snapshot: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, sqlite3.Cursor]]:
    """Yield the name and the rows of each table in the snapshot of a database."""
    connection = restore_database(snapshot)
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    for (name,) in connection.execute(names).fetchall():
        yield name, connection.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')


def is_sqlite_snapshot(snapshot: Any) -> bool:
    """Return whether a snapshot is from an `SqliteEnvironment`."""
    return isinstance(snapshot, Mapping) and list(snapshot) == [SQLITE_KEY]


def execute_statement(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any] = (), read_only: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one SQL statement. The statement cannot access other files, and its run time is limited.

    Args:
        connection: The database.
        sql: The statement.
        values: The values of the `?` in the statement.
        read_only: Whether the statement may only read.

    Raises:
        ValueError: If the statement is wrong, is not allowed, or takes too long.
    """
    checks_left = _MAX_INSTRUCTIONS // _INSTRUCTIONS_PER_CHECK

    def count_down() -> bool:
        nonlocal checks_left
        checks_left -= 1
        return checks_left < 0

    def authorize(action: int, *_: Any) -> int:
        return (
            sqlite3.SQLITE_OK
            if (action in _READ_ACTIONS if read_only else action not in _DENIED_ACTIONS)
            else sqlite3.SQLITE_DENY
        )

    connection.set_progress_handler(count_down, _INSTRUCTIONS_PER_CHECK)
    connection.set_authorizer(authorize)
    try:
        yield from map(dict, connection.execute(sql, values))
    except (sqlite3.Error, sqlite3.Warning) as error:
        message = str(error)
        if "interrupted" in message:
            message = "the statement takes too long"
        elif "not authorized" in message or "authorization denied" in message:
            message = "this statement is not allowed" + ("; only SELECT is" if read_only else "")
        raise ValueError(message) from error
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)


NEEDS_MCP = "MCP servers need dialoom[mcp]: pip install 'dialoom[mcp]'"
"""The error message if the library for MCP servers is not installed."""


class _McpConnection:
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
            if error.message != _CONNECTION_CLOSED:
                return redact(f"error: {error}")
            raise PermanentProviderError(
                redact(f"MCP server {self._server!r} has ended, and the result of the call of {name} is unknown")
            ) from error
        except Exception as error:
            raise PermanentProviderError(
                redact(f"MCP server {self._server!r} did not answer the call of {name}: {_format_error(error)}")
            ) from error
        texts = list(map(_format_part, result.content))
        text = "\n".join(texts) if texts else format_result(result.structured_content)
        return redact(f"error: {text}" if result.is_error else text) or '""'

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
            async with Client(_build_target(self._server)) as client:
                self._client = client
                self._tools.set_result([self._build_tool(each) for each in await _list_tools(client)])
                await self._closing.wait()
        except Exception as error:
            remedy = "check that it runs" if is_url(self._server) else "start it by hand to see why"
            message = redact(f"mcp: the server {self._server!r} cannot be used: {_format_error(error)}; {remedy}")
            self._fail(ToolError(message, setting="mcp"))

    def _fail(self, error: Exception) -> None:
        if not self._tools.done():
            self._tools.set_exception(error)
            self._tools.exception()  # retrieve the exception, because there may be no waiting caller

    def _build_tool(self, tool: Any) -> RemoteTool:
        hints = tool.annotations
        is_repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        function = {
            "name": tool.name,
            "description": tool.description or tool.name,
            "parameters": tool.input_schema,
        }
        return RemoteTool(
            tool.name, {"type": "function", "function": function}, is_repeatable, partial(self._call, tool.name)
        )


_CONNECTION_CLOSED = "Connection closed"
"""The message of the library's error for a call to a server that has ended."""


def _format_part(part: Any) -> str:
    """Return a part of a tool's result as text; for a part without text, its kind and its address or media type."""
    text = getattr(part, "text", getattr(getattr(part, "resource", None), "text", None))
    if text is None:
        address = getattr(part, "uri", None) or getattr(part, "mime_type", None) or "not shown"
        return f"[{part.type}: {address}]"
    return str(text)


async def _list_tools(client: Any) -> list[Any]:
    """Return all tools of a server, page by page."""
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not (cursor := page.next_cursor):
            return tools


def _build_target(server: str) -> Any:
    """Return the target to which the client connects: a URL, or a command that inherits the environment variables."""
    if is_url(server):
        return server
    from mcp import StdioServerParameters

    command, *arguments = shlex.split(server)
    return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))


def is_url(server: str) -> bool:
    """Return whether a server is given as a URL rather than as a command."""
    return server.startswith(("http://", "https://"))


def _format_error(error: BaseException) -> str:
    """Return an error's message; for an exception group, the message of its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


class _ConnectionPool:
    """The connections to MCP servers in one event loop, by server, and the number of `mcp_connections` blocks."""

    def __init__(self) -> None:
        self.by_server: dict[str, _McpConnection] = {}
        self.users = 0


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, _ConnectionPool] = WeakKeyDictionary()


async def load_remote_tools(servers: Sequence[str]) -> list[RemoteTool]:
    """Return the tools of MCP servers. Each server is connected when it is first needed.

    Raises:
        ToolError: If a server cannot be used.
    """
    pool = _POOLS.setdefault(asyncio.get_running_loop(), _ConnectionPool())
    tools: list[RemoteTool] = []
    for server in servers:
        if server not in pool.by_server:
            pool.by_server[server] = _McpConnection(server)
        tools += await pool.by_server[server].tools()
    return tools


@asynccontextmanager
async def mcp_connections() -> AsyncIterator[None]:
    """Close the connections of this event loop at the end of the block, unless another block still uses them."""
    pool = _POOLS.setdefault(asyncio.get_running_loop(), _ConnectionPool())
    pool.users += 1
    try:
        yield
    finally:
        pool.users -= 1
        if not pool.users:
            servers, pool.by_server = pool.by_server, {}
            for connection in servers.values():
                await connection.close()
