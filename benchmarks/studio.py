"""The loading times of the studio's pages relative to an empty page of the same library, in a browser.

    .venv-studio/bin/python benchmarks/studio.py [--scenarios 122133] [--rounds 5]

A run of one dialogue is played on the offline model, and its rows (scenarios, outcomes, judgements) are copied, so that
pages, filters and orders have as much data as after a run of the full PersonaLens size (its calls are not copied).
Another run has one dialogue of 60 messages. Each page is opened in Chromium and timed until its content is shown; the
minimum of the rounds counts, because other load can only add to it. An empty page is served for comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

_TIMEOUT_SECONDS = 300.0
_EMPTY_PAGE_SCRIPT = """
from nicegui import ui
ui.page("/")(lambda: ui.label("x").classes("body-like"))
ui.run(port={port}, show=False, reload=False, tailwind=False)
"""
_ROW_SELECTOR = "tbody tr"
PAGES = {
    "runs": ("/", "section.card"),
    "progress": ("/runs/many", "section.card"),
    "scenarios, first page": ("/runs/many/scenarios", _ROW_SELECTOR),
    "scenarios, a late page": ("/runs/many/scenarios?page={late}", _ROW_SELECTOR),
    "scenarios, by state": ("/runs/many/scenarios?state=done", _ROW_SELECTOR),
    "scenarios, by ending": ("/runs/many/scenarios?ended_by=user_terminated", _ROW_SELECTOR),
    "scenarios, by a facet": ("/runs/many/scenarios?facet.user=user7", _ROW_SELECTOR),
    "scenarios, sorted by a score": ("/runs/many/scenarios?sort=score:personalization&order=desc", _ROW_SELECTOR),
    "scenarios, by a score and a fault": ("/runs/many/scenarios?min.personalization=2&fault=none", _ROW_SELECTOR),
    "one of those sorted by a score": ("/runs/many/scenarios/900?sort=score:personalization", "a[rel=next]"),
    "conversation of 60 messages": ("/runs/long/scenarios/1", "#m60"),
}
"""Addresses, and a selector for the loaded content; there are more than `late` pages."""
SLOW_PAGES = {
    "by an expression, evaluated for each": (
        "/runs/many/scenarios?where=turns > 0 and personalization > 1",
        _ROW_SELECTOR,
    ),
    "the next page of that": ("/runs/many/scenarios?where=turns > 0 and personalization > 1&page=2", _ROW_SELECTOR),
    "by words, without the index": ("/runs/many/scenarios?search=alarm", _ROW_SELECTOR),
    "by other words, with the index": ("/runs/many/scenarios?search=phone reset", _ROW_SELECTOR),
    "report, computed": ("/runs/many/report", _ROW_SELECTOR),
    "report, cached": ("/runs/many/report", _ROW_SELECTOR),
}
"""Pages that are slow the first time and fast afterwards."""


def make_runs(folder: Path, scenarios: int) -> None:
    """Make `many.db`, with a number of finished scenarios, and `long.db`, with a dialogue of 60 messages."""
    dialoom = [sys.executable, "-m", "dialoom", "run", "personalens"]
    (folder / "talkers.py").write_text(
        "async def user(messages):\n    return f'Line {len(messages)} of mine, which asks for something.'\n"
        "async def assistant(messages):\n    return f'Reply {len(messages)} to that, which says something.'\n"
    )
    talkers = ["--model", "user=python:talkers:user", "--model", "assistant=python:talkers:assistant"]
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{folder}"}
    for name, options in (("many", []), ("long", [*talkers, "--turn-limit", "30"])):
        command = [*dialoom, *options, "--limit", "1", "-o", f"{name}.db"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    with closing(sqlite3.connect(folder / "many.db")) as connection, connection:
        for table, key in (("scenarios", "position"), ("outcomes", "scenario"), ("judgements", "scenario")):
            _multiply_rows(connection, table, key, scenarios)
        connection.execute("UPDATE scenarios SET facets = json_set(facets, '$.user', 'user' || (position % 1500))")


def _multiply_rows(connection: sqlite3.Connection, table: str, key: str, count: int) -> None:
    """Copy a table's rows of scenario 0 to all others, with different ids and spread scores."""
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    expressions = {key: "number", "id": "id || '-' || number", "score": "score * (1 + number % 7) / 7.0"}
    values = ", ".join(expressions.get(name, name) for name in names)
    connection.execute(
        "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ? - 1) "
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM numbers, {table} WHERE {key} = 0",
        (count,),
    )


@contextmanager
def serving(command: list[str], folder: Path, pattern: str) -> Iterator[tuple[str, int]]:
    """Start a server and wait until its log gives its address; yield the address and its process."""
    log = folder / f"log-{time.monotonic_ns()}.txt"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not (match := re.search(pattern, log.read_text())) and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.1)
        if match is None:
            raise SystemExit(log.read_text())
        yield match[0], process.pid
    finally:
        process.terminate()
        process.wait()


def measure_load_time(page: Page, url: str, selector: str, rounds: int) -> float:
    """Return the milliseconds until a page is loaded, the minimum of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(selector)
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


def measure_resident_megabytes(pid: int) -> float:
    """Return the megabytes of resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=122_133)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.scenarios < 1000:
        parser.error(
            f"--scenarios must be at least 1000, as the page of number 900 is opened, got {arguments.scenarios}"
        )
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        make_runs(folder, arguments.scenarios)
        (folder / "empty.py").write_text(_EMPTY_PAGE_SCRIPT.format(port=8791) + "\n")
        browser: Any = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(1000 * _TIMEOUT_SECONDS)
        command = [sys.executable, "-m", "dialoom", "studio", "many.db", "long.db", "--no-browser", "--trust"]
        empty_page = [sys.executable, "empty.py"]
        with serving(empty_page, folder, "NiceGUI ready"), serving(command, folder, r"http://\S+") as (address, pid):
            empty = measure_load_time(page, "http://127.0.0.1:8791/", ".body-like", arguments.rounds)
            page.goto(address)
            before = measure_resident_megabytes(pid)
            print(f"{'empty page':40} {empty:8.0f} ms    1.0")
            timings: dict[str, float] = {}
            for title, (path, selector) in {**PAGES, **SLOW_PAGES}.items():
                rounds = 1 if title in SLOW_PAGES else arguments.rounds
                path = path.format(late=max(1, arguments.scenarios // 61))  # 2,002 for the full plan
                timings[title] = measure_load_time(page, address.partition("/?")[0] + path, selector, rounds)
                print(f"{title:40} {timings[title]:8.0f} ms {timings[title] / empty:6.1f}")
            print(f"server: {before:.0f} MB before, {measure_resident_megabytes(pid):.0f} MB after all of them")
            print(json.dumps({"scenarios": arguments.scenarios, "empty": empty, **timings}))
        browser.close()


if __name__ == "__main__":
    main()
