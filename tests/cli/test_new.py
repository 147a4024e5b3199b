"""`dialoom new`: a recipe that works, to be changed into one's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command


def test_the_new_recipe_passes_its_test_and_is_played(dialoom: Command, tmp_path: Path) -> None:
    """As it is, with a name of several words."""
    dialoom("new", "recipe", "web-shop")
    folder = tmp_path / "web-shop"
    assert {path.name for path in folder.iterdir()} == {"web_shop.py", "test_web_shop.py", "README.md"}
    readme = (folder / "README.md").read_text()
    assert sum(bool(line.strip()) for line in readme.splitlines()) <= 10 and "web_shop.py:RECIPE" in readme
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True
    )
    assert tested.returncode == 0, tested.stdout
    dialoom("run", "web-shop/web_shop.py:RECIPE", "-o", "run.db")
    assert "resolved %" in dialoom("report", "run.db").stdout


@pytest.mark.parametrize("name", ["Web-shop", "web_shop", "-shop", "../shop", "taken"])
def test_what_cannot_be_made_is_refused(dialoom: Command, tmp_path: Path, name: str) -> None:
    """A name that is none, and a folder that holds something: nothing is written."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").write_text("mine")
    told = dialoom("new", "recipe", "--", name, code=2).stderr
    assert ("exists already" if name == "taken" else "lower-case words") in told
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["note.txt"]
