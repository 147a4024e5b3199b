"""A shop as an MCP server, with its state in a file: each refund is a line, so that a repeated one is noticed.

With a second argument, a port, it is served over HTTP.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

BOOK = Path(sys.argv[1])
server = MCPServer("shop")


@server.tool()
def refund(order_id: str) -> str:
    """Refund an order."""
    with BOOK.open("a") as book:
        book.write(f"{order_id}\n")
    _die("refund")
    return f"refunded {order_id}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(order_id: str) -> str:
    """Look up an order."""
    with BOOK.with_suffix(".looked").open("a") as book:
        book.write(f"{order_id}\n")
    _die("look_up")
    if order_id == "Z9":
        raise ValueError("there is no order Z9")
    return f"order {order_id}: a kettle"


@server.tool()
async def wait() -> str:
    """Wait for something that never happens."""
    await asyncio.Event().wait()
    return "over"


def _die(tool: str) -> None:
    """Kill the client, whose pid is in a file, once, before the result is sent, if a file requests it."""
    wanted = BOOK.with_suffix(f".{tool}")
    if wanted.exists():
        wanted.unlink()
        os.kill(int(BOOK.with_name("client.pid").read_text()), signal.SIGKILL)


if len(sys.argv) > 2:
    server.run("streamable-http", port=int(sys.argv[2]))
else:
    server.run()
