"""The built wheel, installed into an empty environment outside the checkout and used from there.

`make test-release` builds it first. The tests use nothing of the checkout but the versions in `constraints.txt`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 300.0
"""Seconds after which a process counts as hung."""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `dialoom` command of a new environment."""
    (wheel,) = (ROOT / "dist").glob("dialoom-*.whl")
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), f"{wheel}[studio]"], check=True)
    return folder / "bin" / "dialoom"


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "120"}


def _output_of(command: Path, folder: Path, *arguments: object) -> str:
    done = subprocess.run(
        [str(command), *map(str, arguments)], cwd=folder, env=_environment(folder), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _started(command: Path, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(command), *map(str, arguments)],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_sdist_has_the_version_of_the_wheel() -> None:
    (wheel,) = (ROOT / "dist").glob("dialoom-*.whl")
    (sdist,) = (ROOT / "dist").glob("dialoom-*.tar.gz")
    version = wheel.name.split("-")[1]
    with tarfile.open(sdist) as packed:
        assert f"dialoom-{version}/tests/release/test_release.py" in packed.getnames()


def test_package_is_imported_from_the_environment(command: Path, tmp_path: Path) -> None:
    script = "import dialoom; print(dialoom.__file__, dialoom.__version__)"
    python = command.with_name("python")
    printed = subprocess.check_output([python, "-c", script], cwd=tmp_path, env=_environment(tmp_path), text=True)
    assert printed.startswith(str(command.parent.parent))
    assert _output_of(command, tmp_path, "--version").split()[-1] == printed.split()[-1]


def test_demo_plays(command: Path, tmp_path: Path) -> None:
    _output_of(command, tmp_path, "run", "personalens", "--model", "offline/attentive", "--limit", 6, "-o", "demo.db")
    _output_of(command, tmp_path, "export", "demo.db", "-o", "dialogues.jsonl")
    assert len((tmp_path / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()) == 6
    assert "TCR" in _output_of(command, tmp_path, "report", "demo.db", "--table", "scores")


def test_study_plays(command: Path, tmp_path: Path) -> None:
    _output_of(command, tmp_path, "new", "study", "shop")
    _output_of(command, tmp_path, "run", "shop/study.toml", "-o", "shop.db")
    assert _output_of(command, tmp_path, "status", "shop.db")
    assert _output_of(command, tmp_path, "report", "shop.db")


def test_killed_run_resumes_to_the_same_bytes(command: Path, tmp_path: Path) -> None:
    arguments = ("run", "personalens", "--model", "offline/attentive", "--seed", 3, "--limit", 60, "--concurrency", 2)
    _output_of(command, tmp_path, *arguments, "-o", "whole.db")
    process = _started(command, tmp_path, *arguments, "-o", "killed.db")
    _until_played(tmp_path / "killed.db", process)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert "60 done" in _output_of(command, tmp_path, "resume", "killed.db")
    for name in ("whole", "killed"):
        _output_of(command, tmp_path, "export", f"{name}.db", "-o", f"{name}.jsonl")
    assert (tmp_path / "killed.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def _until_played(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a run's plan is stored and messages are being added."""
    planned = None
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, "the process ended before it was killed"
        size = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
        planned = planned or size or None
        if planned and size > planned + 200_000:
            return
        time.sleep(0.01)
    raise AssertionError("the run has not begun")


def test_studio_serves_a_run(command: Path, tmp_path: Path) -> None:
    _output_of(command, tmp_path, "run", "personalens", "--model", "offline/attentive", "--limit", 2, "-o", "run.db")
    process = _started(command, tmp_path, "studio", "run.db", "--no-browser", "--port", 0)
    try:
        assert process.stdout
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        page = opener.open(address, timeout=PATIENCE).read().decode()
        assert "<title>Runs · dialoom</title>" in page
        assert "personalens" in page
        (sheet,) = re.findall(r'href="(/studio-\w+\.css)"', page)
        assert opener.open(urllib.parse.urljoin(address, sheet), timeout=PATIENCE).status == 200
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
