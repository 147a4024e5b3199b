"""Security of the studio's port: who has access, and that requests change nothing."""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .conftest import OpenPage, RunningStudio

_HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
_SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
PATHS = ["/", "/runs/talk", "/runs/talk/scenarios", "/runs/talk/report", "/runs/talk/scenarios/1"]


def _ask(studio: RunningStudio, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    asked = http.client.HTTPConnection("127.0.0.1", urlsplit(studio.url).port, timeout=60)
    asked.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = asked.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    asked.close()
    return answer.status, found


def _authorized_cookie(studio: RunningStudio) -> str:
    """Return the cookie of an authorized browser."""
    address = urlsplit(studio.address())
    status, headers = _ask(studio, "GET", f"{address.path}?{address.query}")
    assert status == 303
    return headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize(
    "path", [*PATHS, "/_nicegui/3.18.0/static/nicegui.js", "/favicon.ico", "/openapi.json", "/docs"]
)
def test_nothing_is_served_without_the_token(studio: RunningStudio, path: str) -> None:
    assert _ask(studio, "GET", path)[0] == 403
    assert _ask(studio, "GET", f"{path}?token=AAAA")[0] == 403


def test_web_socket_accepts_only_the_studios_own_pages(studio: RunningStudio) -> None:
    cookie, host = _authorized_cookie(studio), urlsplit(studio.url).netloc
    own = {**_HANDSHAKE, "Cookie": cookie, "Origin": studio.url}
    assert _ask(studio, "GET", _SOCKET, **own)[0] == 101
    assert _ask(studio, "GET", _SOCKET, **own | {"Origin": "https://evil.example"})[0] == 403
    assert _ask(studio, "GET", _SOCKET, **own | {"Cookie": "a=b"})[0] == 403
    assert _ask(studio, "GET", _SOCKET, **own | {"Host": host.replace("127.0.0.1", "evil.example")})[0] == 403


def test_foreign_host_and_origin_are_refused(studio: RunningStudio) -> None:
    cookie, port = _authorized_cookie(studio), urlsplit(studio.url).port
    assert _ask(studio, "GET", "/", Cookie=cookie)[0] == 200
    assert _ask(studio, "GET", "/", Cookie=cookie, Host=f"evil.example:{port}")[0] == 421
    status, headers = _ask(studio, "GET", "/", Cookie=cookie, Origin="https://evil.example")
    assert status == 403
    assert not any(name.startswith("access-control") for name in headers)
    polling = _ask(studio, "GET", "/_nicegui_ws/socket.io/?EIO=4&transport=polling", Cookie=cookie, Origin=studio.url)
    assert polling[0] == 200
    assert not any(name.startswith("access-control") for name in polling[1])


def test_get_requests_write_nothing(studio: RunningStudio, runs: Path) -> None:
    cookie = _authorized_cookie(studio)
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in runs.iterdir() if path.is_file()}
    for path in PATHS:
        for query in ("", "?promote=1&fork=x&label=yes&say=hello&save=y", "?judging=run&sort=id&page=2"):
            assert _ask(studio, "GET", path + query, Cookie=cookie)[0] == 200
            assert _ask(studio, "POST", path + query, Cookie=cookie, Origin=studio.url)[0] == 405
    after = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in runs.iterdir() if path.is_file()}
    assert after == before


def test_browser_that_disconnects_early_causes_no_error(studio: RunningStudio) -> None:
    cookie, host = _authorized_cookie(studio), urlsplit(studio.url)
    for number in range(12):
        with socket.create_connection((host.hostname or "", host.port or 0)) as left:
            asked = (
                f"GET /runs/talk/scenarios?page={number} HTTP/1.1\r\nHost: {host.netloc}\r\nCookie: {cookie}\r\n\r\n"
            )
            left.sendall(asked.encode())
    assert _ask(studio, "GET", "/runs/talk", Cookie=cookie)[0] == 200
    assert "Traceback" not in studio.log.read_text()


def test_browsers_cache_library_files_and_no_page(studio: RunningStudio) -> None:
    cookie = _authorized_cookie(studio)
    kept = _ask(studio, "GET", "/_nicegui/3.18.0/static/nicegui.js", Cookie=cookie)[1]
    assert kept["cache-control"] == "max-age=31536000, immutable"
    assert "immutable" not in _ask(studio, "GET", "/runs/talk", Cookie=cookie)[1].get("cache-control", "")


def test_link_on_another_site_can_be_opened(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio)
    elsewhere = page.context.new_page()
    elsewhere.route("https://mail.example/", lambda route: route.fulfill(content_type="text/html", body=_mail(studio)))
    elsewhere.goto("https://mail.example/")
    elsewhere.get_by_role("link").click()
    elsewhere.get_by_role("link", name="open this page").click()
    elsewhere.wait_for_selector("#content .body > *")
    assert re.search(r"/runs/talk/scenarios\?state=done$", elsewhere.url)


def _mail(studio: RunningStudio) -> str:
    return f'<a href="{studio.url}/runs/talk/scenarios?state=done">look</a>'
