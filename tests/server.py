"""An HTTP server on loopback that implements the part of the OpenAI API that LiteLLM uses, and records requests.

It can also simulate a failing provider: slow, rate-limited, silent, disconnecting or with invalid answers.
"""

from __future__ import annotations

import email.utils
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]

REQUESTED_MODEL = "the model of the request"
"""The name in the answers of `ended` that the server replaces by the requested model."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with more than a status and a body.

    Attributes:
        body: Sent as JSON.
        headers: Sent besides the usual ones.
        raw: Sent unchanged instead of `body`.
        delay: Seconds before anything is sent; it ends early when the server closes.
        cut: The number of bytes of the body that are sent before the connection is closed; `None` for all.
        is_endless: Whether the body is sent again and again until the client leaves or the server closes.
        is_reset: Whether the connection is reset instead.
    """

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    cut: int | None = None
    is_endless: bool = False
    is_reset: bool = False


@dataclass
class ChatServer:
    """The server's answers and the requests it has received.

    Attributes:
        answer: Maps a request's body and its number (from 1) to a status and a body, or a `Response`.
        reports: The bodies of the server's own endpoints, by path; requests for them are not counted.
        requests: The body of every request, in order of arrival.
        keys: The API key of each request.
        encodings: The `Accept-Encoding` header of each request.
        paths: The path of each request.
        headers: The names of each request's headers, in lower case.
        completed: The number of answers sent completely, errors included.
    """

    answer: Callable[[dict[str, Any], int], Answer | Response]
    reports: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    encodings: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[set[str]] = field(default_factory=list)
    completed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)


def completion(text: str, prompt_tokens: int = 10, completion_tokens: int = 5) -> Answer:
    """Return a regular answer."""
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return ended(text, "stop", usage=usage)


def ended(text: str | None, finish_reason: str, usage: Any = None, **message: Any) -> Answer:
    """Return an answer with the given finish reason, usage and further fields of its message."""
    reply = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": reply}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": REQUESTED_MODEL, "choices": [choice]}
    return 200, body if usage is None else {**body, "usage": usage}


def error(status: int, message: str, code: str | None = None, kind: str = "error") -> Answer:
    """Return a provider's error."""
    return status, {"error": {"message": message, "type": kind, "code": code or str(status)}}


def busy(status: int = 429, **headers: str) -> Response:
    """Return a temporary rejection; `retry_after="7"` and the like become headers."""
    headers_ = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(*error(status, "slow down"), headers=headers_)


def http_date(seconds_from_now: float) -> str:
    """Return the date form of Retry-After."""
    return email.utils.formatdate(time.time() + seconds_from_now, usegmt=True)


def too_long(most: int = 8192) -> Answer:
    """Return the error for a request that exceeds the model's context."""
    message = f"This model's maximum context length is {most} tokens. However, your messages resulted in 9000 tokens."
    return error(400, message, "context_length_exceeded", "invalid_request_error")


def silence() -> Response:
    """Return an answer of which nothing is sent until the server closes."""
    return Response(delay=3600.0, cut=0)


def broken_off() -> Response:
    """Return a regular answer whose connection is closed in the middle."""
    return Response(*completion("half of this will arrive"), cut=40)


@contextmanager
def serving(
    answer: Callable[[dict[str, Any], int], Answer | Response],
    port: int = 0,
    reports: Mapping[str, dict[str, Any]] | None = None,
) -> Iterator[ChatServer]:
    """Run the server, on a free port or the given one, until the block ends; then close every connection."""
    state = ChatServer(answer, reports or {})
    connections: set[socket.socket] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            with state.lock:
                connections.add(self.connection)

        def finish(self) -> None:
            with state.lock:
                connections.discard(self.connection)
            super().finish()

        def do_GET(self) -> None:
            report = state.reports.get(self.path.partition("?")[0])
            self._send(Response(404) if report is None else Response(body=report))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path in state.reports:
                self.do_GET()
                return
            with state.lock:
                state.requests.append(body)
                state.keys.append(self.headers.get("Authorization") or self.headers.get("x-api-key") or "")
                state.encodings.append(self.headers.get("Accept-Encoding") or "")
                state.paths.append(self.path)
                state.headers.append({name.lower() for name in self.headers})
                number = len(state.requests)
            answer = state.answer(body, number)
            response = answer if isinstance(answer, Response) else Response(*answer)
            if response.body.get("model") == REQUESTED_MODEL:
                response = replace(response, body={**response.body, "model": body.get("model")})
            self._send(response)

        def _send(self, answer: Response) -> None:
            if answer.delay:
                state.closing.wait(answer.delay)
            if answer.is_reset:
                self.close_connection = True
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                os.close(self.connection.detach())
                return
            data = json.dumps(answer.body).encode() if answer.raw is None else answer.raw
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            if answer.is_endless:
                self._send_repeatedly(data)
                return
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: answer.cut])
            if answer.cut is None:
                with state.lock:
                    state.completed += 1
            else:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True

        def _send_repeatedly(self, data: bytes) -> None:
            self.close_connection = True
            self.end_headers()
            with suppress(OSError):
                while not state.closing.wait(0.01):
                    self.wfile.write(data)

        def log_message(self, *_arguments: Any) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore errors of connections: some tests kill the client in the middle of a request."""

    server = Server(("127.0.0.1", port), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    # The interval, in seconds, at which it checks for shutdown; the default of 0.5 s would delay every test.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
        with state.lock, suppress(OSError):
            for connection in connections:
                connection.shutdown(socket.SHUT_RDWR)
