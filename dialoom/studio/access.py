"""Access control: which requests the studio accepts.

A request is accepted only if its browser was admitted by the printed token, it is sent to one of the studio's own host
names, and it comes from one of the studio's own pages or opens a page by its address or a link.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = "token"
"""The query parameter that is exchanged for the cookie."""

READING = ("GET", "HEAD")
_BYTES = 32
"""The number of random bytes in a token and in the cookie's value."""

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # the UI library's pages contain inline scripts
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every response: nothing is loaded from or sent to another origin, and no other page frames this one."""

_CLOSED = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dialoom studio</title><style>:root {{ color-scheme: light dark }} body {{ font: 16px/1.6 system-ui, sans-serif;
max-width: 34rem; margin: 20vh auto; padding: 0 1.5rem }}</style><h1>{title}</h1><p>{text}</p></html>"""
_STRANGER = (
    "This page is only for the person who started the studio. Open the address that it printed in the terminal. Each "
    "address works for one browser; when it is used, the next one is printed. If this browser was admitted before, and "
    'you have followed a link: <a href="{path}">open this page</a>.'
)


class Keys:
    """The token that admits the next browser, and the value of the cookie of admitted browsers.

    Args:
        on_used: Called with the next token as soon as the current one has been used.
    """

    def __init__(self, on_used: Callable[[str], None] = lambda _token: None) -> None:
        self._on_used = on_used
        self.token = secrets.token_urlsafe(_BYTES)
        self.pass_ = secrets.token_urlsafe(_BYTES)

    def exchange(self, token: str) -> bool:
        """Return whether a string is the current token; if it is, replace the token by a new one."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = secrets.token_urlsafe(_BYTES)
        self._on_used(self.token)
        return True

    def is_known(self, pass_: str) -> bool:
        """Return whether a cookie's value is that of admitted browsers."""
        return hmac.compare_digest(pass_.encode(), self.pass_.encode())


class AccessControl:
    """A middleware in front of the whole application: its pages, its files and its web socket.

    Args:
        application: The application behind it (ASGI).
        keys: The token and the cookie of admitted browsers.
        port: The port that the studio listens on.
        names: The studio's host names besides those of loopback; if `is_remote`, every IP address is accepted as well.
        is_remote: Whether other machines may connect.
    """

    def __init__(
        self, application: Application, keys: Keys, port: int, names: Collection[str] = (), is_remote: bool = False
    ) -> None:
        self._application = application
        self._keys = keys
        self._port = port
        self._names = {"127.0.0.1", "localhost", "::1", *(name.lower() for name in names)}
        self._is_remote = is_remote
        self.cookie = f"dialoom-studio-{port}"  # cookies are shared by all ports of a machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the application."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        is_read = scope["type"] == "http" and scope["method"] in READING
        if not self._is_own_host(headers.get("host", "")):
            await _refuse(scope, send, 421, "Misdirected", "The studio does not accept requests for this host name.")
        elif not self._is_own_page(headers, is_read):
            await _refuse(
                scope,
                send,
                403,
                "Request rejected",
                "This request came from a page that does not belong to the studio.",
            )
        elif scope["type"] == "http" and scope["method"] == "GET" and (token := _token(scope)) is not None:
            await self._exchange(scope, send, token, headers)
        elif not self._is_let_in(headers):
            await _refuse(scope, send, 403, "Access denied", _STRANGER.format(path=_path(scope)))
        else:
            await self._application(scope, receive, _with_headers(send))

    def _is_own_host(self, host: str) -> bool:
        """Return whether a host name is the studio's own, and not one that others let refer to it (DNS rebinding)."""
        try:
            address = urlsplit(f"//{host}")
            name, port = address.hostname or "", address.port or 80
        except ValueError:
            return False
        return port == self._port and (name in self._names or (self._is_remote and _in_numbers(name) is not None))

    def _is_own_page(self, headers: Mapping[str, str], is_read: bool) -> bool:
        """Return whether a request comes from the studio's pages, by its headers; a write must state its origin."""
        origin = headers.get("origin")
        if origin is None:
            # Other sites may link to pages, but not read them.
            linking = ("same-site", "cross-site") if headers.get("sec-fetch-mode") == "navigate" else ()
            return is_read and headers.get("sec-fetch-site", "none") in ("none", "same-origin", *linking)
        return origin == f"http://{headers.get('host', '')}"

    def _is_let_in(self, headers: Mapping[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self._keys.is_known(found.value)

    async def _exchange(self, scope: Scope, send: Send, token: str, headers: Mapping[str, str]) -> None:
        """Exchange the token for the cookie, and redirect to the same address without it."""
        answer = {"location": _path(scope), "cache-control": "no-store"}
        if self._keys.exchange(token):
            answer["set-cookie"] = f"{self.cookie}={self._keys.pass_}; HttpOnly; SameSite=Strict; Path=/"
        elif not self._is_let_in(headers):
            await _refuse(scope, send, 403, "Address already used", _STRANGER.format(path=_path(scope)))
            return
        await _answer(send, 303, b"", answer)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    address = _in_numbers(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _in_numbers(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _token(scope: Scope) -> str | None:
    return dict(_query(scope)).get(TOKEN)


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _path(scope: Scope) -> str:
    """Return the address without the token, quoted, so that it is safe in a header and in HTML."""
    rest = urlencode([(name, value) for name, value in _query(scope) if name != TOKEN])
    path = "/" + quote(scope["path"].lstrip("/"), safe="/")  # a path such as `//example.org` would lead to another host
    return path + (f"?{rest}" if rest else "")


async def _refuse(scope: Scope, send: Send, status: int, title: str, text: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before the connection is accepted, the browser sees 403
        return
    body = b"" if scope["method"] == "HEAD" else _CLOSED.format(title=title, text=text).encode()
    await _answer(send, status, body, {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"})


async def _answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    fields = {**headers, **HEADERS, "content-length": str(len(body))}
    listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    """Return a sender that adds the common headers to responses, and drops headers that would allow other origins."""
    added = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in HEADERS.items()]

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            retained = [(name, value) for name, value in message.get("headers", ()) if _is_kept(name)]
            message = {**message, "headers": [*retained, *added]}
        await send(message)

    return sent


def _is_kept(name: bytes) -> bool:
    lowered = name.lower()
    return lowered.decode("latin-1") not in HEADERS and not lowered.startswith(b"access-control-")
