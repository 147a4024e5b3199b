"""The wheel: whole, and at peace with folders of the user's that have the same names as ours."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, cwd=folder)
    (wheel,) = folder.glob("dialoom-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_one_package_with_templates_and_samples(unpacked: Path) -> None:
    """Everything under `dialoom`, nothing else at the top."""
    tops = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"dialoom"}
    assert (unpacked / "dialoom" / "prompts" / "personalens" / "user.md").is_file()
    assert len(list((unpacked / "dialoom" / "personas" / "samples").rglob("profile.json"))) >= 12
    assert (unpacked / "dialoom" / "py.typed").is_file()


def test_it_works_beside_folders_called_prompts_and_runs(unpacked: Path, tmp_path: Path) -> None:
    """Even as packages of the user's, and even first on the path."""
    for name in ("prompts", "runs", "graphs", "roles", "personas"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one was imported')\n")
    script = (
        "import sys; sys.path.insert(0, '.'); "
        "sys.argv[1:] = ['run', 'personalens', '--limit', '2', '--model', 'offline/attentive', '-o', 'r.db']; "
        "from dialoom.runs.cli import main; import dialoom; print(dialoom.__file__); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(unpacked), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert str(unpacked) in done.stdout
    assert "2 done, 0 failed" in done.stdout
