"""Tools of MCP servers: connections, which live as long as a run, and calls, whose results the ledger keeps.

A server's tools act outside: its state is no part of a conversation, and is neither restored nor taken back.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from dialoom.roles import PermanentProviderError
from dialoom.roles.gateway.secrets import redacted

from .environment import RemoteTool, ToolError, text_of_result


class _Connection:
    """A session with one server, in a task of its own: its scopes must end in the task in which they began."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._client: Any = None
        self._tools: asyncio.Future[list[RemoteTool]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve())

    async def tools(self) -> list[RemoteTool]:
        """Return the server's tools.

        Raises:
            PermanentProviderError: If it cannot be reached.
        """
        return await asyncio.shield(self._tools)

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its result as text."""
        from mcp import MCPError

        try:
            result = await self._client.call_tool(name, arguments)
        except MCPError as error:
            return redacted(f"error: {error}")
        except Exception as error:
            raise PermanentProviderError(
                redacted(f"MCP server {self._server!r} did not answer the call of {name}: {_told(error)}")
            ) from error
        texts = [each.text for each in result.content if getattr(each, "text", None) is not None]
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
            self._fail(ToolError("mcp: MCP servers need dialoom[mcp]: pip install 'dialoom[mcp]'", setting="mcp"))
            return
        try:
            async with Client(_target(self._server)) as client:
                self._client = client
                self._tools.set_result([self._tool(each) for each in await _listed(client)])
                await self._closing.wait()
        except Exception as error:
            message = redacted(f"mcp: the server {self._server!r} cannot be used: {_told(error)}")
            self._fail(ToolError(message, setting="mcp"))

    def _fail(self, error: Exception) -> None:
        if not self._tools.done():
            self._tools.set_exception(error)
            self._tools.exception()  # mark it as retrieved: there may be no waiting caller

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


async def _listed(client: Any) -> list[Any]:
    """Return all tools of a server, page by page."""
    found, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if not (cursor := page.next_cursor):
            return found


def _target(server: str) -> Any:
    """Return what the client connects to: a URL, or a command, which inherits the environment."""
    if is_url(server):
        return server
    from mcp import StdioServerParameters

    command, *arguments = shlex.split(server)
    return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))


def is_url(server: str) -> bool:
    """Return whether a server is named by its address."""
    return server.startswith(("http://", "https://"))


def _told(error: BaseException) -> str:
    """Return an error's message; of a group, that of its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


class _Connections:
    """The connections of one event loop, by server, and the number of runs that use them."""

    def __init__(self) -> None:
        self.by_server: dict[str, _Connection] = {}
        self.users = 0


_CONNECTIONS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()


async def remote_tools(servers: Sequence[str]) -> list[RemoteTool]:
    """Return the tools of MCP servers, each of which is connected when it is wanted first.

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
