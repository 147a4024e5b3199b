"""Every benchmark starts with the command in its docstring, at its smallest size."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from dialoom.graphs.apollo.scenario import SAMPLE
from tests.conftest import ROOT
from tests.processes import CommandProcess

LAUNCH = """
import runpy, sys
root, *words = sys.argv[1:]
sys.path[:] = [each for each in sys.path if each not in ("", root)]
if words[0] == "-m":
    sys.path.insert(0, root)
    sys.argv = words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
else:
    sys.path.insert(0, f"{root}/benchmarks")
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
"""
"""Does what `python -m MODULE ...` and `python FILE ...` do in the repository's folder."""

SMALLEST = {
    "apollo_size": [str(SAMPLE), "--length", "2k"],
    "apollo_world": ["--rounds", "1"],
    "checkpointing": ["--dialogues", "2", "--rounds", "1", "--repeat", "1"],
    "gateway": ["--calls", "2", "--concurrency", "2", "--wait", "0", "--repeat", "1"],
    "long_requests": ["--pairs", "2", "--methods", "1", "--turns", "1"],
    "orchestration": ["--scenarios", "1", "--repeat", "1"],
    "planning": ["--scenarios", "2", "--small", "1"],
    "prefeval": ["--items", "5", "--turns", "1", "--repeat", "1"],
    "prefeval --size": ["--size", "--pairs", "2", "--turns", "1"],
    "quick_server": ["0"],
    "resuming": ["--kills", "2"],
    "run_file": ["--workload", "aloe", "--scheme", "passages", "--size", "1"],
    "scale": ["--skip-served", "--scenarios", "1"],
    "studio": ["--scenarios", "1000", "--rounds", "1"],
}
"""The options for the smallest size."""

NEEDS = {"scale": ("ray", None), "studio": ("playwright", "chromium")}
"""The packages and programs that only the environments of `make test-ray` and `make test-studio` have."""


def documented(name: str) -> str:
    """Return the commands in a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / f"benchmarks/{name}.py").read_text(encoding="utf-8"))) or ""
    lines = re.findall(r"^    (?:\S*/)?python (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return "\n".join(lines)


def test_all_benchmarks_are_tested() -> None:
    assert {each.split()[0] for each in SMALLEST} == {each.stem for each in (ROOT / "benchmarks").glob("*.py")}


@pytest.mark.parametrize("what", SMALLEST)
def test_it_starts_as_documented(what: str) -> None:
    """The command in its docstring, with the smallest options, works in the repository's folder."""
    name, options = what.split()[0], SMALLEST[what]
    package, program = NEEDS.get(name, (None, None))
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed; make test-{'ray' if package == 'ray' else 'studio'} installs it")
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not in the path")
    text = documented(name)
    assert all(each in text for each in options if each.startswith("--"))
    start = text.split()[: 2 if text.startswith("-m") else 1]
    if program is not None:  # a browser's driver does not start in a fork, and NiceGUI checks for pytest
        environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
        command = [sys.executable, *start, *options]
        made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert made.returncode == 0 and made.stdout, made.stderr
        return
    with CommandProcess(ROOT, ROOT, *start, *options, script=LAUNCH) as benchmark:
        if name == "quick_server":
            assert benchmark.stdout.readline().strip().isdecimal()
            return
        printed, errors = benchmark.communicate()
    assert benchmark.returncode == 0, errors
    assert printed
