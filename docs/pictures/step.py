"""Pictures for docs/first-debug.md and docs/debugging.md, made from real output of the debugger.

    python docs/pictures/step.py [--parts]

Plays one offline dialogue in a temporary folder, steps through it with the commands of `step.txt`, and draws the
coloured output as SVG files in the folder of this script, one per paragraph of commands. `--parts` prints it instead.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 100
RUN = ["run", "personalens", "--limit", "1", "--seed", "3", "--model", "assistant=offline/generic", "-o", "talk.db"]
PICTURES = ("wrong", "asked", "model", "diff", "history")
_WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def printed(folder: Path) -> str:
    """Return the coloured output of the session."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    dialoom = [sys.executable, "-m", "dialoom"]
    subprocess.run([*dialoom, *RUN], cwd=folder, check=True, capture_output=True)
    step = [*dialoom, "step", "talk.db", "1", "--script", str(HERE / "step.txt")]
    return subprocess.run(step, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def parts(text: str) -> list[str]:
    """Return the output of each paragraph of the script."""
    paragraphs = [part.splitlines() for part in (HERE / "step.txt").read_text().strip().split("\n\n")]
    found, rest = [], text
    for lines in paragraphs[1:]:
        before, head, after = rest.partition(_echo_in(rest, lines[0]))
        found.append(before)
        rest = head + after
    return [*found, rest]


def _echo_in(text: str, command: str) -> str:
    """Return the output line that echoes a command."""
    return next(line for line in text.splitlines() if Text.from_ansi(line).plain.endswith(f"> {command}"))


def draw(part: str, path: Path) -> None:
    """Draw terminal output as an SVG file."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(part.rstrip()))
    svg = console.export_svg(title="dialoom step talk.db 1", unique_id=path.stem)
    path.write_text(_WEB_FONTS.sub("", svg), encoding="utf-8")


def main() -> None:
    """Draw all pictures, or print their text."""
    with tempfile.TemporaryDirectory() as folder:
        shown = parts(printed(Path(folder)))
    for name, part in zip(PICTURES, shown, strict=True):
        if "--parts" in sys.argv:
            sys.stdout.write(f"--- {name}\n{Text.from_ansi(part).plain}\n")
        else:
            draw(part, HERE / f"step-{name}.svg")


if __name__ == "__main__":
    main()
