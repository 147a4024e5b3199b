"""An OpenAI-compatible server that gives the same answer to everything after a delay, at little processor time.

    python benchmarks/quick_server.py SECONDS

It prints its port. A GET gives the moments (of the clock `time.monotonic`) at which it has answered since the last one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

_END, _LENGTH = b"\r\n\r\n", b"content-length:"


def _response(body: object) -> bytes:
    content = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content


_MESSAGE = {"role": "assistant", "content": "That is how it is."}
_ANSWER = _response(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": _MESSAGE}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
    }
)


class _Connection(asyncio.Protocol):
    """One connection, which stays open.

    Args:
        latency: Seconds until an answer.
        times: When all connections have answered.
    """

    def __init__(self, latency: float, times: list[float]) -> None:
        self._latency = latency
        self._times = times
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what has come as a whole."""
        self._got += data
        while (end := self._got.find(_END)) >= 0:
            head = self._got[:end].lower()
            _, _, after = head.partition(_LENGTH)
            whole = end + len(_END) + (int(after.split(b"\r\n", 1)[0]) if after else 0)
            if len(self._got) < whole:
                return
            self._got = self._got[whole:]
            if head.startswith(b"get"):
                self._transport.write(_response(self._times))
                self._times.clear()
            else:
                asyncio.get_running_loop().call_later(self._latency, self._answer)

    def _answer(self) -> None:
        self._times.append(time.monotonic())
        self._transport.write(_ANSWER)


async def _serve(latency: float) -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency, times), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
