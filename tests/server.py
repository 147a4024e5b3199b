"""A real HTTP server on loopback that speaks as much of the OpenAI API as LiteLLM asks for, and keeps count."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]


@dataclass
class ChatServer:
    """What it was asked and how it answers.

    Attributes:
        answer: From a request's body and its number (from 1) to a status and a body.
        requests: Every request's body, in order of arrival.
        keys: The keys that came with them.
    """

    answer: Callable[[dict[str, Any], int], Answer]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def completion(text: str, prompt_tokens: int = 10, completion_tokens: int = 5) -> Answer:
    """A proper answer."""
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return 200, {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def error(status: int, message: str) -> Answer:
    """A provider's refusal."""
    return status, {"error": {"message": message, "type": "error", "code": str(status)}}


@contextmanager
def serving(answer: Callable[[dict[str, Any], int], Answer]) -> Iterator[ChatServer]:
    """The server, on a port of its own, until the block ends."""
    state = ChatServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with state.lock:
                state.requests.append(body)
                state.keys.append(self.headers.get("Authorization", ""))
                number = len(state.requests)
            status, content = state.answer(body, number)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed in the middle is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
