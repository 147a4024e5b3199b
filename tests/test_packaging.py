"""The sdist and the wheel: complete, and unaffected by the user's folders of the same names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import dialoom
from tests.conftest import ROOT

PACKAGES = ("runs", "graphs", "roles", "prompts", "personas")
_EXCLUDED = (
    ".git",
    ".venv*",
    ".*_cache",
    ".hypothesis",
    ".langgraph_api",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
)
_BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked sdist, built from a copy so that files of earlier builds have no influence."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "checkout", symlinks=True, ignore=shutil.ignore_patterns(*_EXCLUDED, "site", "demo"))
    with tarfile.open(_built("sdist", folder / "checkout", folder)) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = folder.glob("dialoom-*/")
    return unpacked


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the content of the wheel that is built from the sdist, as users of an index get it."""
    folder = tmp_path_factory.mktemp("wheel")
    zipfile.ZipFile(_built("wheel", sdist, folder)).extractall(folder / "site")
    return folder / "site"


def _built(kind: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-c", _BUILD.format(kind=kind), str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


def _files(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_sdist_holds_tests_docs_and_tools(sdist: Path) -> None:
    for folder in ("tests", "docs", "benchmarks"):
        assert _files(sdist / folder) == _files(ROOT / folder)
        assert len(_files(sdist / folder)) > 3
    for name in (
        "LICENSE",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Makefile",
        "constraints.txt",
        "mkdocs.yml",
        ".ci/run",
    ):
        assert (sdist / name).read_bytes() == (ROOT / name).read_bytes()


def test_wheel_holds_one_package_with_all_its_files(unpacked: Path) -> None:
    tops = {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"dialoom"}
    assert (unpacked / "dialoom" / "py.typed").is_file()
    for package_name in PACKAGES:
        ours = _files(ROOT / "dialoom" / package_name)
        assert _files(unpacked / "dialoom" / package_name) == ours
        assert "__init__.py" in ours
    assert "samples/README.md" in _files(unpacked / "dialoom" / "personas")


def test_citation_has_the_version_and_the_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (dialoom.__version__, "Apache-2.0")


def test_licence_is_in_the_wheel(unpacked: Path) -> None:
    (information,) = unpacked.glob("*.dist-info")
    assert (information / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "License-Expression: Apache-2.0\n" in (information / "METADATA").read_text(encoding="utf-8")


def test_wheel_works_beside_folders_of_the_same_names(unpacked: Path, tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one was imported')\n")
    script = (
        "import sys; sys.path.insert(0, '.'); "
        "sys.argv[1:] = ['run', 'personalens', '--limit', '2', '--model', 'offline/attentive', '-o', 'r.db']; "
        "from dialoom.cli import main; import dialoom; print(dialoom.__file__); main()"
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


def test_checkout_without_symlinks_names_the_remedy(tmp_path: Path) -> None:
    package = tmp_path / "dialoom"
    package.mkdir()
    for module in (ROOT / "dialoom").glob("*.py"):
        shutil.copy(module, package)
    for name in PACKAGES:
        (package / name).write_text(f"../{name}")
    done = subprocess.run(
        [sys.executable, "-c", "import dialoom.runs"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: dialoom/runs must be a symbolic link")
    assert "git config core.symlinks true" in last
