"""An OpenAI-compatible server that answers after a delay and needs little processor time.

    python benchmarks/quick_server.py SECONDS [REPLIES]

It prints its port. REPLIES is a JSON file with the replies by `request_key`, each a message; without it, every request
gets the same reply. A GET request returns the times (of the clock `time.monotonic`) of the answers since the previous
one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_HEADER_END, _LENGTH_HEADER = b"\r\n\r\n", b"content-length:"


@contextmanager
def serving(latency: float, replies: Path | None = None) -> Iterator[tuple[str, int]]:
    """Start the server in a separate process; yield its address and the process id.

    Args:
        latency: Seconds until an answer.
        replies: The file of replies; without it, every request gets the same one.
    """
    command = [sys.executable, __file__, str(latency), *([str(replies)] if replies else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1", process.pid
        finally:
            process.kill()


def request_key(messages: list[dict[str, Any]], seed: int | None) -> str:
    """Return the key of a request's reply: a hash of the messages' roles and texts, and of the seed."""
    lines = [(message["role"], message["content"]) for message in messages]
    return hashlib.sha256(json.dumps([lines, seed]).encode()).hexdigest()


def _build_response(body: object, status: str = "200 OK") -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _build_completion(message: Mapping[str, Any]) -> bytes:
    return _build_response(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
        }
    )


class _Connection(asyncio.Protocol):
    """A persistent connection.

    Args:
        latency: Seconds until an answer.
        times: The times of the answers on all connections.
        replies: The response to each request, by `request_key`; `None` if all get the same one.
    """

    def __init__(self, latency: float, times: list[float], replies: Mapping[str, bytes] | None) -> None:
        self._latency = latency
        self._times = times
        self._replies = replies
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that has arrived completely."""
        self._buffer += data
        while (end := self._buffer.find(_HEADER_END)) >= 0:
            head = self._buffer[:end].lower()
            _, _, after = head.partition(_LENGTH_HEADER)
            request_end = end + len(_HEADER_END) + (int(after.split(b"\r\n", 1)[0]) if after else 0)
            if len(self._buffer) < request_end:
                return
            body, self._buffer = self._buffer[end + len(_HEADER_END) : request_end], self._buffer[request_end:]
            if head.startswith(b"get"):
                self._transport.write(_build_response(self._times))
                self._times.clear()
            else:
                asyncio.get_running_loop().call_later(self._latency, self._send, self._find_response(body))

    def _find_response(self, body: bytes) -> bytes:
        if self._replies is None:
            return _DEFAULT_RESPONSE
        request = json.loads(body)
        reply = self._replies.get(request_key(request["messages"], request.get("seed")))
        return reply or _build_response(
            {"error": {"message": "no reply is recorded for this request"}}, "404 Not Found"
        )

    def _send(self, response: bytes) -> None:
        self._times.append(time.monotonic())
        self._transport.write(response)


_DEFAULT_RESPONSE = _build_completion({"content": "That is how it is."})


async def _serve(latency: float, replies: Mapping[str, bytes] | None) -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(latency, times, replies), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve until the process is stopped."""
    latency, files = float(sys.argv[1]), sys.argv[2:]
    responses = {
        key: _build_completion(reply) for file in files for key, reply in json.loads(Path(file).read_text()).items()
    }
    asyncio.run(_serve(latency, responses if files else None))


if __name__ == "__main__":
    main()
