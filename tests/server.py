"""A real HTTP server on loopback that speaks as much of the OpenAI API as LiteLLM asks for, and keeps count.

It can also be what providers are on a bad day: slow, busy, silent, broken off in the middle, or wrong.
"""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of which more is to be said than a status and a body.

    Attributes:
        body: Sent as JSON.
        headers: Sent besides the usual ones.
        raw: Sent instead of `body`, as it stands.
        delay: Seconds before anything is sent; it ends early when the server closes.
        cut: How many bytes of the body are sent before the connection is closed; `None` for all of them.
        is_endless: Whether the body is sent again and again until the client leaves or the server closes.
    """

    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    cut: int | None = None
    is_endless: bool = False


@dataclass
class ChatServer:
    """What it was asked and how it answers.

    Attributes:
        answer: From a request's body and its number (from 1) to a status and a body, or a `Response`.
        reports: What it says of itself, by path; who asks is not counted.
        requests: Every request's body, in order of arrival.
        keys: The keys that came with them.
        encodings: What they said of the compressions that they take.
        paths: The paths that they were sent to.
        headers: The names of their headers, in lower case.
        in_flight: How many requests are being answered.
        most_in_flight: How many were at most.
        completed: How many answers were sent to their end, refusals included.
    """

    answer: Callable[[dict[str, Any], int], Answer | Response]
    reports: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    encodings: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[set[str]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    completed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)


def completion(text: str, prompt_tokens: int = 10, completion_tokens: int = 5) -> Answer:
    """A proper answer."""
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return ended(text, "stop", usage=usage)


def ended(text: str | None, finish_reason: str, usage: Any = None, **message: Any) -> Answer:
    """An answer that ended for another reason than usual, or with another usage; what else its message holds."""
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": said}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return 200, body if usage is None else {**body, "usage": usage}


def error(status: int, message: str, code: str | None = None, kind: str = "error") -> Answer:
    """A provider's refusal."""
    return status, {"error": {"message": message, "type": kind, "code": code or str(status)}}


def busy(status: int = 429, **headers: str) -> Response:
    """Turned away for now; `retry_after="7"` and the like become headers."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(*error(status, "slow down"), headers=said)


def http_date(seconds_from_now: float) -> str:
    """The other form of Retry-After."""
    return email.utils.formatdate(time.time() + seconds_from_now, usegmt=True)


def too_long(most: int = 8192) -> Answer:
    """The request is longer than the model reads."""
    message = f"This model's maximum context length is {most} tokens. However, your messages resulted in 9000 tokens."
    return error(400, message, "context_length_exceeded", "invalid_request_error")


def silence() -> Response:
    """Nothing comes until the server closes."""
    return Response(delay=3600.0, cut=0)


def broken_off() -> Response:
    """The connection is lost in the middle of a proper answer."""
    return Response(*completion("half of this will arrive"), cut=40)


@contextmanager
def serving(
    answer: Callable[[dict[str, Any], int], Answer | Response],
    port: int = 0,
    reports: Mapping[str, dict[str, Any]] | None = None,
) -> Iterator[ChatServer]:
    """The server, on a port of its own or a given one, until the block ends; then every connection is cut."""
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
                state.in_flight += 1
                state.most_in_flight = max(state.most_in_flight, state.in_flight)
            try:
                answer = state.answer(body, number)
                self._send(answer if isinstance(answer, Response) else Response(*answer))
            finally:
                with state.lock:
                    state.in_flight -= 1

        def _send(self, answer: Response) -> None:
            if answer.delay:
                state.closing.wait(answer.delay)
            data = json.dumps(answer.body).encode() if answer.raw is None else answer.raw
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            if answer.is_endless:
                self._send_on(data)
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

        def _send_on(self, data: bytes) -> None:
            self.close_connection = True
            self.end_headers()
            with suppress(OSError):
                while not state.closing.wait(0.01):
                    self.wfile.write(data)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed in the middle is what some tests are about."""

    server = Server(("127.0.0.1", port), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    # It looks so often, in seconds, whether it is to stop; with the usual half a second every test would wait for that.
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
