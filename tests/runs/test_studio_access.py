"""Access to the studio, and the reports that it computes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

from dialoom import DialoomError, Report, Run, open_run
from dialoom.studio.access import AccessControl, Keys
from dialoom.studio.background import AbandonedError, Computation, ReportCache
from dialoom.studio.server import build_address, open_socket, serve
from tests.conftest import Command, MadeOnce
from tests.runs.stepping.played import play

OWN = "http://127.0.0.1:8790"


class _Application:
    """An application behind access control that records its requests and answers with permissive headers."""

    def __init__(self, is_remote: bool = False) -> None:
        self.reached: list[str] = []
        self.tokens: list[str] = []
        self.keys = Keys(self.tokens.append)
        self._access = AccessControl(self._answer, self.keys, 8790, ("studio.example",) if is_remote else (), is_remote)

    async def _answer(self, scope: MutableMapping[str, Any], _receive: Any, send: Any) -> None:
        self.reached.append(scope["path"])
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        headers = [(b"access-control-allow-origin", b"*"), (b"x-frame-options", b"ALLOWALL")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"everything"})

    async def request(
        self, path: str = "/", query: str = "", method: str = "GET", type_: str = "http", **headers: str
    ) -> tuple[int, dict[str, str]]:
        """Return the status and headers of the answer; the status of a web socket is 101 or 403."""
        sent: list[Any] = []
        given = {"host": "127.0.0.1:8790"} | {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": type_,
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        async def receive() -> MutableMapping[str, Any]:
            return {}

        await self._access(scope, receive, send)
        if type_ == "websocket":
            return (101 if sent[0]["type"] == "websocket.accept" else 403), {}
        return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}

    @property
    def cookie(self) -> str:
        return f"{self._access.cookie_name}={self.keys.cookie_value}"


async def test_token_admits_one_browser() -> None:
    app = _Application()
    token = app.keys.token
    status, headers = await app.request("/runs/a", f"state=done&token={token}&facet.x=a+b")
    assert (status, headers["location"]) == (303, "/runs/a?state=done&facet.x=a+b")
    cookie, *flags = headers["set-cookie"].split("; ")
    assert {*flags} == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert (await app.request(cookie=cookie))[0] == 200
    assert (await app.request("/", f"token={token}"))[0] == 403
    assert app.tokens == [app.keys.token] != [token]
    assert (await app.request("/", f"token={app.tokens[0]}"))[0] == 303


@pytest.mark.parametrize(
    "cookie", ["", "dialoom-studio-8790=", "dialoom-studio-8790=é", "a=b; c", "dialoom-studio-1={}"]
)
async def test_requests_without_the_token_are_refused(cookie: str) -> None:
    app = _Application()
    given = {"cookie": cookie.format(app.keys.cookie_value)}
    assert (await app.request(**given))[0] == 403
    assert (await app.request("/", "token=wrong", **given))[0] == 403
    assert (await app.request("/", "token=", **given))[0] == 403
    assert (await app.request("/ws", type_="websocket", origin=OWN, **given))[0] == 403
    assert app.reached == []


@pytest.mark.parametrize(
    "host",
    ["evil.example:8790", "127.0.0.1.evil.example:8790", "127.0.0.1", "localhost:1", "", "[::1", "192.168.1.5:8790"],
)
async def test_foreign_host_name_is_refused(host: str) -> None:
    app = _Application()
    assert (await app.request(host=host, cookie=app.cookie, origin=f"http://{host}"))[0] == 421
    assert (await app.request(type_="websocket", host=host, cookie=app.cookie, origin=f"http://{host}"))[0] == 403
    assert (await app.request("/", f"token={app.keys.token}", host=host))[0] == 421
    assert app.reached == []


@pytest.mark.parametrize("host", ["127.0.0.1:8790", "localhost:8790", "LOCALHOST:8790", "[::1]:8790"])
async def test_own_host_names_are_answered(host: str) -> None:
    app = _Application()
    assert (await app.request(host=host, cookie=app.cookie))[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:8791", "https://127.0.0.1:8790"])
async def test_foreign_origin_can_neither_read_nor_write(origin: str) -> None:
    app = _Application()
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        assert (await app.request(method=method, origin=origin, cookie=app.cookie))[0] == 403
    assert (await app.request(type_="websocket", origin=origin, cookie=app.cookie))[0] == 403
    assert app.reached == []


async def test_request_without_an_origin_can_only_read() -> None:
    app = _Application()
    assert (await app.request(cookie=app.cookie))[0] == 200
    assert (await app.request(method="POST", cookie=app.cookie))[0] == 403
    assert (await app.request(type_="websocket", cookie=app.cookie))[0] == 403
    assert (await app.request(cookie=app.cookie, sec_fetch_site="cross-site", sec_fetch_mode="no-cors"))[0] == 403
    assert (await app.request(cookie=app.cookie, sec_fetch_site="cross-site", sec_fetch_mode="navigate"))[0] == 200
    assert (await app.request(method="POST", cookie=app.cookie, origin=OWN))[0] == 200
    assert (await app.request(type_="websocket", cookie=app.cookie, origin=OWN))[0] == 101


async def test_answers_allow_no_other_origin() -> None:
    app = _Application()
    _, headers = await app.request(cookie=app.cookie)
    assert "access-control-allow-origin" not in headers
    assert headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "connect-src 'self'" in headers["content-security-policy"]


async def test_redirect_stays_on_this_host() -> None:
    app = _Application()
    _, headers = await app.request("//evil.example/\r\nset-cookie: a=b", f"token={app.keys.token}")
    assert headers["location"] == "/evil.example/%0D%0Aset-cookie%3A%20a%3Db"


async def test_other_machines_are_admitted_by_address_or_allowed_name() -> None:
    app = _Application(is_remote=True)
    for host, status in (("192.168.1.5:8790", 200), ("studio.example:8790", 200), ("evil.example:8790", 421)):
        assert (await app.request(host=host, cookie=app.cookie))[0] == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "studio.example"])
def test_other_machines_need_an_explicit_option(host: str) -> None:
    with pytest.raises(DialoomError, match=r"not encrypted.*allow_remote"):
        serve([], host=host, on_address=lambda _address: None)


def test_terminal_explains_the_option_for_other_machines(dialoom: Command, tmp_path: Path) -> None:
    output = dialoom("studio", tmp_path / "run.db", "--host", "0.0.0.0", code=2).stderr
    assert "not encrypted" in output and "--allow-remote" in output and "token" not in output
    help_ = " ".join(dialoom("studio", "--help").stdout.split())
    assert "--allow-remote" in help_ and "not encrypted" in help_


async def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, expected: bytes) -> bool:
        compared.append((given, expected))
        return given == expected

    monkeypatch.setattr("dialoom.studio.access.hmac.compare_digest", compare)
    app = _Application()
    token, cookie = app.keys.token, app.cookie
    await app.request("/", "token=guess")
    await app.request("/", f"token={token}")
    await app.request(cookie=f"{cookie}x")
    await app.request(cookie=cookie)
    cookie_value = app.keys.cookie_value.encode()
    assert compared == [
        (b"guess", token.encode()),
        (token.encode(),) * 2,
        (cookie_value + b"x", cookie_value),
        (cookie_value, cookie_value),
    ]


def test_host_that_cannot_be_listened_on_is_named() -> None:
    with pytest.raises(DialoomError, match=r"host '192\.0\.2\.1': cannot listen on it: ") as caught:
        open_socket("192.0.2.1", None)
    assert caught.value.setting == "host"


def test_address_can_be_opened() -> None:
    assert build_address("127.0.0.1", 80, "t") == "http://127.0.0.1:80/?token=t"
    assert build_address("0.0.0.0", 80, "t") == "http://127.0.0.1:80/?token=t"
    assert build_address("::1", 80, "t") == "http://[::1]:80/?token=t"


class Browser:
    """A page that is left after a number of checks; `is_deleted` is checked at each scenario that is read."""

    def __init__(self, checks: int = 1_000_000) -> None:
        self.checked = 0
        self._checks = checks
        self.may_continue = threading.Event()
        self.may_continue.set()

    @property
    def is_deleted(self) -> bool:
        """Return whether the page is left; the reading thread waits here until `may_continue` is set."""
        if threading.current_thread() is not threading.main_thread():
            self.may_continue.wait()
        self.checked += 1
        return self.checked > self._checks


@pytest.fixture
def run(made_once: MadeOnce) -> Run:
    """Return a run with several finished scenarios."""
    return open_run(play(made_once, "aloe-eval"))


async def test_report_is_computed_once_for_all_viewers(run: Run) -> None:
    reports, browser = ReportCache(), Browser()
    browser.may_continue.clear()
    first = await reports.find([run], None, None)
    assert isinstance(first, Computation)
    first.add_viewer(browser)
    second = await reports.find([run], None, None)
    browser.may_continue.set()
    assert second is first
    found = await first.result()
    assert first.scenarios_read >= len(run) and str(found) == str(run.report())
    await asyncio.sleep(0)
    assert isinstance(await reports.find([run], None, None), Report)


async def test_report_is_cancelled_when_its_page_is_left(run: Run) -> None:
    reports, browser = ReportCache(), Browser(checks=1)
    computation = await reports.find([run], None, None)
    assert isinstance(computation, Computation)
    computation.add_viewer(browser)
    with pytest.raises(AbandonedError):
        await computation.result()
    assert computation.scenarios_read == 2
    another = await reports.find([run], None, None)
    assert isinstance(another, Computation) and another is not computation
    another.add_viewer(Browser())
    assert isinstance(await another.result(), Report)


async def test_changed_run_gets_a_new_report(run: Run) -> None:
    reports = ReportCache()
    for asked in range(2):
        computation = await reports.find([run], None, None)
        assert isinstance(computation, Computation), asked
        computation.add_viewer(Browser())
        await computation.result()
        await asyncio.sleep(0)
        _touch(run.path)
    assert isinstance(await reports.find([run], None, "state == 'done'"), Computation)


def _touch(path: Path) -> None:
    path.touch()
