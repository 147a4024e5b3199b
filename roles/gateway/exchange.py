"""Rules for HTTP exchanges with a model's server: no redirect to another server, no compression, limited size."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

from dialoom.roles.errors import PermanentProviderError

from .secrets import redact

MAX_RESPONSE_BYTES = 64 * 2**20
"""Maximum size of an accepted response body in bytes: enough for a batch of embeddings."""

MAX_REDIRECTS = 5
"""Maximum number of redirects, within the same server, that one attempt follows."""

_COMPRESSIONS = frozenset({"br", "deflate", "gzip", "x-gzip", "zstd"})
_MAX_ADDRESS_CHARACTERS = 200

_Send = Callable[[Any, httpx.Request], Awaitable[httpx.Response]]


@dataclass(slots=True)
class Exchange:
    """The data that one attempt sends to a model's server and receives from it.

    Attributes:
        max_bytes: Maximum size of an accepted response body in bytes.
        refusal: The reason why the request was not sent or the response was rejected; `None` if neither happened.
        check_body: Called once with the body of the request; it returns a reason not to send it, or `None`.
        body: The body of the response as far as it has arrived.
        is_complete: Whether the body has arrived completely.
        failure: The error because of which no response, or only a part of it, arrived.
    """

    max_bytes: int = field(default_factory=lambda: MAX_RESPONSE_BYTES)
    refusal: str | None = None
    check_body: Callable[[dict[str, Any]], str | None] | None = None
    _redirects: int = 0
    _status: int | None = None
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False
    failure: Exception | None = None

    @property
    def response_text(self) -> str | None:
        """The text of a successful response that arrived completely; `None` if there is none."""
        is_answer = self.is_complete and self._status is not None and 200 <= self._status < 300
        return self.body.decode(errors="replace") if is_answer else None

    def ensure_accepted(self, model: str) -> None:
        """Raise an error if the response was rejected, because LiteLLM treats a rejection as a lost connection.

        Raises:
            PermanentProviderError: If the response was rejected; the message states the model and the reason.
        """
        if self.refusal is not None:
            raise PermanentProviderError(f"{model}: {self.refusal}")

    async def send(self, send: _Send, transport: Any, request: httpx.Request) -> httpx.Response:
        """Send a request and check the headers of the response. The body is checked while it is read."""
        # LiteLLM sends a request again after a reset connection, and OpenAI's client, for embeddings, after any error.
        if self.refusal is not None:
            raise self.refuse(self.refusal)
        if self.failure is not None:
            raise self.failure
        if self.check_body is not None and (body := _parse_body(request)) is not None:
            refusal, self.check_body = self.check_body(body), None
            if refusal is not None:
                raise self.refuse(refusal)
        request.headers["accept-encoding"] = "identity"
        try:
            response = await send(transport, request)
        except Exception as error:
            self.failure = error
            raise
        response.headers["x-should-retry"] = "false"  # to OpenAI's client
        self._status, self.body, self.is_complete = response.status_code, bytearray(), False
        if (refusal := self._check_response(request, response)) is not None:
            await response.aclose()
            raise self.refuse(refusal)
        if response.status_code >= 400 and (compression := _find_compression(response)):
            await response.aclose()
            message = f"the error's text is compressed ({compression}), which was not requested, so it was not read"
            return httpx.Response(response.status_code, json={"error": {"message": message}}, request=request)
        response.stream = _LimitedStream(response.stream, self)
        return response

    def _check_response(self, request: httpx.Request, response: httpx.Response) -> str | None:
        """Return the reason why a response is rejected because of its headers; `None` if it is accepted."""
        if not response.has_redirect_location:
            compression = _find_compression(response)
            if response.status_code >= 400 or not compression:
                return None
            reason = f"the response is compressed ({compression}), which was not requested"
            return f"{reason}: disable compression at the server"
        source = request.url
        here = _format_address(source)
        try:
            target = source.join(response.headers["location"])
        except (httpx.InvalidURL, ValueError):
            return f"{here} redirects to an invalid address: check the address (api_base)"
        there = _format_address(target)
        if (source.scheme, source.host, source.port) != (target.scheme, target.host, target.port):
            return (
                f"{here} redirects to another server, {there}, and nothing was sent there: if the "
                "model is served there, give that address (api_base)"
            )
        if request.method == "POST" and response.status_code in (301, 302, 303):
            return (
                f"{here} redirects to {there} with status {response.status_code}, which would send the "
                "request without its body: give the address that needs no redirect (api_base)"
            )
        self._redirects += 1
        if self._redirects > MAX_REDIRECTS:
            return f"{here} redirects too often, the last time to {there}: check the address (api_base)"
        return None

    def refuse(self, reason: str) -> httpx.ReadError:
        """Store the reason why the request or the response is refused, and return the error to raise."""
        self.refusal = reason
        return httpx.ReadError(reason)


def _parse_body(request: httpx.Request) -> dict[str, Any] | None:
    """Return the JSON object in the body of a request; `None` if it has none, e.g. in a request for a token."""
    try:
        body = json.loads(request.content)
    except (httpx.RequestNotRead, ValueError):
        return None
    return body if isinstance(body, dict) else None


class _LimitedStream(httpx.AsyncByteStream):
    """A body whose size is checked while it is read."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        try:
            async for chunk in self._stream:
                if len(exchange.body) + len(chunk) > exchange.max_bytes:
                    raise exchange.refuse(
                        f"the response is larger than {exchange.max_bytes:,} bytes, so it was rejected"
                    )
                exchange.body += chunk
                yield chunk
            exchange.is_complete = True
        except Exception as error:
            exchange.failure = error
            raise
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _find_compression(response: httpx.Response) -> str | None:
    encodings = {each.strip().lower() for each in response.headers.get("content-encoding", "").split(",")}
    return ", ".join(sorted(encodings & _COMPRESSIONS)) or None


def _format_address(url: httpx.URL) -> str:
    """Return an address without its login and query, which may contain secrets."""
    return redact(f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}{url.path}"[:_MAX_ADDRESS_CHARACTERS])


_current: ContextVar[Exchange | None] = ContextVar("dialoom_exchange", default=None)


@contextlib.contextmanager
def use_exchange(exchange: Exchange) -> Iterator[None]:
    """Apply the rules to LiteLLM's requests and responses in a `with` block, but not to those of other code."""
    token = _current.set(exchange)
    try:
        yield
    finally:
        _current.reset(token)


HANDLER_VARIABLE = "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"
"""The environment variable that makes LiteLLM send to OpenAI-compatible servers itself, without OpenAI's client."""


def install(litellm: Any) -> None:
    """Make LiteLLM apply the rules of the current exchange. Called once, when LiteLLM is imported.

    Within an exchange, LiteLLM's own HTTP handler sends to OpenAI-compatible servers, which takes a third less
    processor time per call than OpenAI's client. Other code that uses LiteLLM keeps OpenAI's client. If the
    environment variable is set, it decides for all code.
    """
    transport = importlib.import_module("litellm.llms.custom_httpx.aiohttp_transport").LiteLLMAiohttpTransport
    transports: tuple[Any, ...] = (transport, httpx.AsyncHTTPTransport)
    for each in transports:
        each.handle_async_request = _wrap_send(each.handle_async_request)
    get_secret_bool = litellm.main.get_secret_bool

    def decide(name: str, default: bool | None = None) -> bool | None:
        if name == HANDLER_VARIABLE and _current.get() is not None and name not in os.environ:
            return True
        value: bool | None = get_secret_bool(name, default)
        return value

    litellm.main.get_secret_bool = decide


def _wrap_send(send: _Send) -> _Send:
    async def wrapped_send(transport: Any, request: httpx.Request) -> httpx.Response:
        exchange = _current.get()
        return await (send(transport, request) if exchange is None else exchange.send(send, transport, request))

    return wrapped_send
