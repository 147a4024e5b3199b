"""Pictures for docs/studio.md: screenshots of the studio in a browser.

    .venv-studio/bin/python docs/pictures/studio.py [--all DIR]

Plays offline dialogues and trees in a temporary folder, serves them, and writes the pictures to the folder of this
script; `--all` instead writes one of each page, light and dark, wide and narrow, to DIR, for review.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
RUNS = {
    "talk": "personalens --users 6 --setting base --setting I --sample 120 --seed 7",
    "tree": "aloe --limit 2 --rounds 4 --branching 1 --seed 7",
}
PAGES = {
    "runs": "/",
    "progress": "/runs/talk",
    "scenarios": "/runs/talk/scenarios?facet.setting=I&sort=score:personalization",
    "conversation": "/runs/talk/scenarios/2",
    "tree": "/runs/tree/scenarios/1/tree",
    "step": "/runs/talk/scenarios/2/step",
    "report": "/runs/talk/report",
}
_PATIENCE = 120.0


class Shot(NamedTuple):
    """A screenshot of a page, with its width and colour scheme."""

    page: str
    width: int = 1280
    shade: str = "light"

    @property
    def file(self) -> str:
        """Return the name of the file."""
        more = ("" if self.width == 1280 else "-narrow") + ("" if self.shade == "light" else "-dark")
        return f"studio-{self.page}{more}.png"


SHOTS = [*map(Shot, ("runs", "scenarios", "conversation", "tree", "step", "report"))]
SHOTS += [Shot("conversation", shade="dark"), Shot("scenarios", 390), Shot("conversation", 390, "dark")]
EVERY = [Shot(page, width, shade) for page in PAGES for width in (1280, 390) for shade in ("light", "dark")]


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run the studio on the runs; yield the address with its token."""
    dialoom = [sys.executable, "-m", "dialoom"]
    for name, options in RUNS.items():
        subprocess.run(
            [*dialoom, "run", *options.split(), "-o", f"{name}.db"], cwd=folder, check=True, capture_output=True
        )
    log = folder / "log.txt"
    runs = [f"{name}.db" for name in RUNS]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    with log.open("w") as out:
        served = subprocess.Popen([*dialoom, "studio", *runs, "--no-browser"], cwd=folder, env=environment, stdout=out)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not (found := re.search(r"http://\S+", log.read_text())) and time.monotonic() < deadline:
            time.sleep(0.1)
        if found is None:
            raise SystemExit("the studio did not start")
        yield found[0]
    finally:
        served.terminate()
        served.wait()


def take(page: Page, url: str, shot: Shot, folder: Path) -> None:
    """Take one screenshot."""
    page.set_viewport_size({"width": shot.width, "height": 800})
    page.emulate_media(color_scheme="dark" if shot.shade == "dark" else "light")
    page.goto(url + PAGES[shot.page])
    page.wait_for_selector("#content .body > *")
    if shot.page == "tree":
        page.locator(".fork details.step summary").first.click()
    page.wait_for_timeout(1000)  # for charts that are drawn later
    page.screenshot(path=folder / shot.file)


def main() -> None:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="DIR")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address, sync_playwright() as playwright:
        browser: Any = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(_PATIENCE * 1000)
        page.goto(address)
        for shot in EVERY if chosen.all else SHOTS:
            take(page, address.partition("/?")[0], shot, chosen.all or HERE)
        browser.close()


if __name__ == "__main__":
    main()
