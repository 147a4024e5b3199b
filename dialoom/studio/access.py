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

_SAFE_METHODS = ("GET", "HEAD")
_SECRET_BYTES = 32
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
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of every response: nothing is loaded from or sent to another origin, and no other page frames this one."""

_REFUSAL_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dialoom studio</title><style>:root {{ color-scheme: light dark }} body {{ font: 16px/1.6 system-ui, sans-serif;
max-width: 34rem; margin: 20vh auto; padding: 0 1.5rem }}</style><h1>{title}</h1><p>{text}</p></html>"""
_NOT_ADMITTED_TEXT = (
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
        self.token = secrets.token_urlsafe(_SECRET_BYTES)
        self.cookie_value = secrets.token_urlsafe(_SECRET_BYTES)

    def exchange(self, token: str) -> bool:
        """Return whether a string is the current token; if it is, replace the token by a new one."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = secrets.token_urlsafe(_SECRET_BYTES)
        self._on_used(self.token)
        return True

    def is_admitted(self, cookie_value: str) -> bool:
        """Return whether a cookie's value is that of admitted browsers."""
        return hmac.compare_digest(cookie_value.encode(), self.cookie_value.encode())


class AccessControl:
    """A middleware in front of the whole application: its pages, its files and its web socket.

    Args:
        application: The application behind it (ASGI).
        keys: The token and the cookie of admitted browsers.
        port: The port that the studio listens on.
        host_names: The studio's host names besides those of loopback; if `is_remote`, every IP address is
            accepted as well.
        is_remote: Whether other machines may connect.
    """

    def __init__(
        self, application: Application, keys: Keys, port: int, host_names: Collection[str] = (), is_remote: bool = False
    ) -> None:
        self._application = application
        self._keys = keys
        self._port = port
        self._host_names = {"127.0.0.1", "localhost", "::1", *(name.lower() for name in host_names)}
        self._is_remote = is_remote
        self.cookie_name = f"dialoom-studio-{port}"  # cookies are shared by all ports of a machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the application."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        is_read = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
        if not self._is_own_host(headers.get("host", "")):
            await _refuse(scope, send, 421, "Misdirected", "The studio does not accept requests for this host name.")
        elif not self._is_from_own_page(headers, is_read):
            await _refuse(
                scope,
                send,
                403,
                "Request rejected",
                "This request came from a page that does not belong to the studio.",
            )
        elif scope["type"] == "http" and scope["method"] == "GET" and (token := _get_token(scope)) is not None:
            await self._exchange_token(scope, send, token, headers)
        elif not self._is_admitted(headers):
            await _refuse(scope, send, 403, "Access denied", _NOT_ADMITTED_TEXT.format(path=_path_without_token(scope)))
        else:
            await self._application(scope, receive, _add_security_headers(send))

    def _is_own_host(self, host: str) -> bool:
        """Return whether a host name is the studio's own, and not one that others let refer to it (DNS rebinding)."""
        try:
            address = urlsplit(f"//{host}")
            name, port = address.hostname or "", address.port or 80
        except ValueError:
            return False
        return port == self._port and (
            name in self._host_names or (self._is_remote and _parse_ip_address(name) is not None)
        )

    def _is_from_own_page(self, headers: Mapping[str, str], is_read: bool) -> bool:
        """Return whether a request comes from the studio's pages, by its headers; a write must state its origin."""
        origin = headers.get("origin")
        if origin is None:
            # Other sites may link to pages, but not read them.
            linking_sites = ("same-site", "cross-site") if headers.get("sec-fetch-mode") == "navigate" else ()
            return is_read and headers.get("sec-fetch-site", "none") in ("none", "same-origin", *linking_sites)
        return origin == f"http://{headers.get('host', '')}"

    def _is_admitted(self, headers: Mapping[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie_name)
        except CookieError:
            return False
        return cookie is not None and self._keys.is_admitted(cookie.value)

    async def _exchange_token(self, scope: Scope, send: Send, token: str, headers: Mapping[str, str]) -> None:
        """Exchange the token for the cookie, and redirect to the same address without it."""
        response_headers = {"location": _path_without_token(scope), "cache-control": "no-store"}
        if self._keys.exchange(token):
            response_headers["set-cookie"] = (
                f"{self.cookie_name}={self._keys.cookie_value}; HttpOnly; SameSite=Strict; Path=/"
            )
        elif not self._is_admitted(headers):
            await _refuse(
                scope, send, 403, "Address already used", _NOT_ADMITTED_TEXT.format(path=_path_without_token(scope))
            )
            return
        await _respond(send, 303, b"", response_headers)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    address = _parse_ip_address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _parse_ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _get_token(scope: Scope) -> str | None:
    return dict(_parse_query(scope)).get(TOKEN)


def _parse_query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _path_without_token(scope: Scope) -> str:
    """Return the address without the token, quoted, so that it is safe in a header and in HTML."""
    rest = urlencode([(name, value) for name, value in _parse_query(scope) if name != TOKEN])
    path = "/" + quote(scope["path"].lstrip("/"), safe="/")  # a path such as `//example.org` would lead to another host
    return path + (f"?{rest}" if rest else "")


async def _refuse(scope: Scope, send: Send, status: int, title: str, text: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before the connection is accepted, the browser sees 403
        return
    body = b"" if scope["method"] == "HEAD" else _REFUSAL_PAGE.format(title=title, text=text).encode()
    await _respond(send, status, body, {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"})


async def _respond(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    fields = {**headers, **SECURITY_HEADERS, "content-length": str(len(body))}
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _add_security_headers(send: Send) -> Send:
    """Return a sender that adds the common headers to responses, and drops headers that would allow other origins."""
    added = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in SECURITY_HEADERS.items()]

    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message.get("headers", ()) if _is_allowed_header(name)]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return send_with_headers


def _is_allowed_header(name: bytes) -> bool:
    lower_name = name.lower()
    return lower_name.decode("latin-1") not in SECURITY_HEADERS and not lower_name.startswith(b"access-control-")
