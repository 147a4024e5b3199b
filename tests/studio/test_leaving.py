"""Closed browsers leave no resources in the studio's process."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.conftest import MadeOnce
from tests.programs import START_TIMEOUT_SECONDS
from tests.runs.stepping.played import dialogue

from .conftest import OpenPage, RunningStudio, run_studio

_COUNTING = """
import asyncio, json, os, signal

def count(*_):
    from nicegui import Client
    from nicegui.timer import Timer
    import gc
    gc.collect()
    loops = (each for each in gc.get_objects() if isinstance(each, asyncio.AbstractEventLoop))
    loop = next(each for each in loops if each.is_running())
    told = {
        "clients": len(Client.instances),
        "tasks": len(asyncio.all_tasks(loop)),
        "files": len(os.listdir("/proc/self/fd")),
        "timers": sum(isinstance(each, Timer) for each in gc.get_objects()),
    }
    with open("count.new", "w") as out:
        json.dump(told, out)
    os.replace("count.new", "count.json")

signal.signal(signal.SIGUSR1, count)
"""


def test_closed_browsers_leave_no_resources(
    made_once: MadeOnce, tmp_path: Path, browse: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dialogue(made_once)
    counting = tmp_path / "counting"
    counting.mkdir()
    (counting / "sitecustomize.py").write_text(_COUNTING)
    monkeypatch.setenv("PYTHONPATH", f"{counting}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with run_studio([path], tmp_path) as studio:
        places = ("", "/scenarios", "/report", "/scenarios/1", "/scenarios/1/step?at=3")
        for place in places:  # creates what all pages share
            browse(studio, f"/runs/run{place}").close()
        before = _settled(studio, tmp_path, None)
        pages = [browse(studio, f"/runs/run{place}") for place in (*places, places[-1])]
        assert _count(studio, tmp_path)["clients"] >= len(pages)
        pages[-1].get_by_role("button", name="Play to the end").click()
        for page in pages:
            page.close()
        after = _settled(studio, tmp_path, before)
    assert {name: count for name, count in after.items() if count > before[name]} == {}


def _settled(studio: RunningStudio, folder: Path, wanted: dict[str, int] | None) -> dict[str, int]:
    """Return the counts without a browser once they are stable, or at most `wanted`; else the last ones.

    The page that authorized a browser may remain for a minute.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    last: dict[str, int] = {}
    while True:
        found = _count(studio, folder)
        is_wanted = found == last if wanted is None else all(found[name] <= wanted[name] for name in found)
        if (is_wanted and found["clients"] <= 1) or time.monotonic() > deadline:
            return found
        last = found
        time.sleep(1)


def _count(studio: RunningStudio, folder: Path) -> dict[str, int]:
    path = folder / "count.json"
    path.unlink(missing_ok=True)
    os.kill(studio.process.pid, signal.SIGUSR1)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    found: dict[str, int] = json.loads(path.read_text())
    return found
