"""What tests share: the command as a user runs it, quick players, and where the real data is, if it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
REAL = Path(os.environ.get("DIALOOM_PERSONALENS", ROOT.parent / "shared" / "data" / "personalens"))

needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="the PersonaLens release is not here; DIALOOM_PERSONALENS says where it is"
)

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def dialoom(tmp_path: Path) -> Command:
    """The command in a process of its own, in an empty folder; checks the exit code that is expected."""

    def run(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dialoom", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, **options)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def players(tmp_path: Path) -> list[str]:
    """Options for a cast of three quick Python callables, for tests that are not about what is said."""
    (tmp_path / "players.py").write_text(
        """
async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")

async def assistant(messages):
    return f"Reply to: {messages[-1]['content']}"

async def judge(messages):
    if "task_completion" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return 'Surely: {"score": 3, "explanation": "fair"}'
"""
    )
    return [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:players:{role}")]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """A JSONL file's objects."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
