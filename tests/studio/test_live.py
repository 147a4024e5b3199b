"""A run that another process plays, watched from start to end, while browsers connect and leave."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from tests.programs import START_TIMEOUT_SECONDS

from .conftest import OpenPage, playwright, run_studio

expect = playwright.expect

_PLAYERS = """
import asyncio
from pathlib import Path

async def user(messages):
    return "A line." + (" TERMINATE" if any(each["role"] == "assistant" for each in messages) else "")

async def assistant(messages):
    # It replies twice in each dialogue, the second time after the user has ended it.
    number = len([*Path("replied").iterdir()])
    while len([*Path("allowed").iterdir()]) <= number // 2:
        await asyncio.sleep(0.02)
    (Path("replied") / str(number)).touch()
    if number == 2:
        (Path("replied") / "3").touch()
        raise ValueError("the assistant fails")
    return "A reply."

async def judge(messages):
    return '{"verdict": true, "score": 3, "explanation": "fair"}'
"""


def test_run_is_watched_from_start_to_end(tmp_path: Path, browse: OpenPage) -> None:
    for name in ("allowed", "replied"):
        (tmp_path / name).mkdir()
    (tmp_path / "slow.py").write_text(_PLAYERS)
    cast = [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:slow:{role}")]
    options = ["--limit", "3", "--concurrency", "1", "--max-calls", "1000"]
    command = [sys.executable, "-m", "dialoom", "run", "personalens", *cast, *options, "-o", "live.db"]
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{tmp_path}"}
    played = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=(tmp_path / "run.log").open("wb"))
    try:
        _until_called(tmp_path / "live.db")
        with run_studio([tmp_path / "live.db"], tmp_path, "--trust") as served:
            page, other = browse(served, "/runs/live"), browse(served, "/")
            for each in (page, other):
                expect(each.locator(".badge").first).to_have_text("playing")
                expect(each.get_by_text("0 of 3 scenarios done")).to_be_visible()
            expect(page.locator("dl.figures > div").filter(has_text="in flight").locator("dd").first).to_have_text("1")
            expect(page.get_by_text("of 1,000 calls")).to_be_visible()
            (tmp_path / "allowed" / "1").touch()
            for each in (page, other):
                expect(each.get_by_text("1 of 3 scenarios done")).to_be_visible()
            figures = page.locator("dl.figures > div")
            expect(figures.filter(has_text="rate").locator("dd").first).to_have_text(re.compile(r"\d/min$"))
            user = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="user", exact=True))
            expect(user.locator("td").first).to_have_text("3")  # two in the first dialogue, one in the second
            (tmp_path / "allowed" / "2").touch()
            expect(page.get_by_text("1 failed", exact=True)).to_be_visible()
            expect(page.get_by_text("the assistant fails")).to_be_visible()
            other.close()
            (tmp_path / "allowed" / "3").touch()
            expect(page.get_by_text("2 of 3 scenarios done")).to_be_visible()
            expect(page.locator(".badge").first).to_have_text("done, some failed")
            assert played.wait(START_TIMEOUT_SECONDS) == 1
            page.get_by_role("link", name="number 2").click()
            page.wait_for_selector("#content .body > *")
    finally:
        played.kill()
        played.wait()


def _until_called(path: Path) -> None:
    """Wait until the assistant of a run's first scenario is called."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
                try:
                    if connection.execute("SELECT 1 FROM calls WHERE role = 'assistant'").fetchone():
                        return
                except sqlite3.OperationalError:
                    pass
        time.sleep(0.05)
    raise AssertionError(path.with_name("run.log").read_text())
