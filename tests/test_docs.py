"""What the documents show works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT, Command


def test_the_checkpointer_works_in_a_graph_of_ones_own(tmp_path: Path) -> None:
    """The program that docs/store.md writes."""
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "['Ada', 'Hello for the 1. time.', 'Ben', 'Hello for the 3. time.']\nCompacted(before="
    )


def test_the_library_example_of_debugging(dialoom: Command, tmp_path: Path) -> None:
    """The session that docs/debugging.md writes, on the dialogue that it steps through."""
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    made = re.search(r"^    dialoom (run .* -o talk\.db)$", text, re.MULTILINE)
    assert made is not None
    dialoom(*made[1].split())
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Pair(left=('assistant', 'Thank you for the information." in done.stdout
    assert "Your alarm is set for 3:30 PM." in done.stdout
