"""The studio served on loopback, and a real browser that opens it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import command_in, write_quick_players
from tests.programs import START_TIMEOUT_SECONDS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing; 'make test-studio' installs it")
pytest.importorskip("nicegui")

OpenPage = Callable[..., Any]
StartStudio = Callable[..., "RunningStudio"]
SECOND = 1000
"""A second in the browser's unit, milliseconds."""

playwright.expect.set_options(timeout=30 * SECOND)  # for a machine under load


SYSTEMS: dict[str, list[object]] = {
    "tree": ["aloe", "--limit", 3, "--rounds", 3, "--branching", 1],
    "calls": ["apollo", "--limit", 4],
    "memory": ["prefeval", "--limit", 4],
}
"""Runs of the other systems, by the names of their files."""


@dataclass(frozen=True)
class RunningStudio:
    """A running studio.

    Attributes:
        url: Its URL, without a token or a trailing slash.
        log: The file with its output.
        process: The process.
    """

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def address(self) -> str:
        """Return the address with a token for the next browser."""
        return _find_addresses(self.log)[-1]


@contextmanager
def run_studio(runs: Sequence[Path], folder: Path, *more: str) -> Iterator[RunningStudio]:
    """Run `dialoom studio` on some runs from its first answer to the end of the block."""
    log = folder / "studio.log"
    command = [sys.executable, "-m", "dialoom", "studio", *map(str, runs), "--port", "0", "--no-browser", *more]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not _find_addresses(log) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _find_addresses(log), log.read_text()
        yield RunningStudio(_find_addresses(log)[0].partition("/?")[0], log, process)
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        process.wait()


def _find_addresses(log: Path) -> list[str]:
    return re.findall(r"http://\S+\?token=\S+", log.read_text()) if log.exists() else []


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of finished runs: `talk.db` and `other.db` of PersonaLens, and one for each of `SYSTEMS`."""
    folder = tmp_path_factory.mktemp("runs")
    dialoom = command_in(folder)
    talk = ["personalens", "--users", 1, "--setting", "base", "--setting", "I", "--seed", 7, "--sample", 60]
    dialoom("run", *talk, "-o", "talk.db")
    dialoom("run", "personalens", *write_quick_players(folder), "--limit", 4, "-o", "other.db")
    for name, options in SYSTEMS.items():
        dialoom("run", *options, "--seed", 7, "-o", f"{name}.db")
    sys.path.remove(str(folder)) if str(folder) in sys.path else None
    return folder


@pytest.fixture(scope="session")
def studio(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Run a studio of these runs; tests must not change them."""
    paths = [runs / f"{name}.db" for name in ("talk", "other", *SYSTEMS)]
    with run_studio(paths, tmp_path_factory.mktemp("studio")) as served:
        yield served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[StartStudio]:
    """Return a function that serves the test's own runs in the folder of their players; request it before `browse`."""
    with ExitStack() as served:
        yield lambda *runs: served.enter_context(run_studio(runs, tmp_path))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Run Debian's Chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("Chromium is not in the path: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@dataclass
class PageProblems:
    """Unwanted behaviour of pages: errors, dialogs, and requests to other servers."""

    found: list[str] = field(default_factory=list)

    def listen(self, page: Any, url: str) -> None:
        """Record the problems of a page."""
        page.on("console", lambda each: self._note("console", each.text) if each.type == "error" else None)
        page.on("pageerror", lambda each: self._note("error", str(each)))
        page.on("dialog", self._dismiss)
        page.on("request", lambda each: self._request(each.url, url))

    def _dismiss(self, dialog: Any) -> None:
        self._note("dialog", dialog.message)
        dialog.dismiss()

    def _note(self, kind: str, text: str) -> None:
        self.found.append(f"{kind}: {text:.300}")

    def _request(self, asked: str, url: str) -> None:
        if not asked.startswith((url, "data:", "blob:", url.replace("http", "ws"))):
            self._note("elsewhere", asked)


@pytest.fixture
def browse(chromium: Any) -> Iterator[OpenPage]:
    """Return a function that opens a page of a studio in an authorized browser; fail the test if it had problems.

    `browse(studio, "/runs/talk", width=390)` returns playwright's page.
    """
    problems, opened, authorized = PageProblems(), [], {}

    def open_page(served: RunningStudio, path: str = "/", width: int = 1280, shade: str = "light") -> Any:
        if served.url not in authorized:
            context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=shade)
            context.set_default_timeout(60 * SECOND)
            opened.append(context)
            authorized[served.url] = context
            first = context.new_page()
            first.goto(served.address())
            first.close()
        page = authorized[served.url].new_page()
        problems.listen(page, served.url)
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=shade)
        page.goto(served.url + path)
        page.wait_for_selector("#content .body > *")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert problems.found == []
