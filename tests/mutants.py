"""Mutation testing of the modules that store data or spend money: a seeded sample of small changes to their code.

    python -m tests.mutants --sample 40 --seed 1

Works in clones of the last commit, two mutants at a time. Each mutant is run against the tests that execute its line:
all mutants against their nearest tests, then the survivors against the others. The lines that each test executes are
recorded by one run of the suite and of `tests/matrix` under coverage.py; the record is kept in `.mutants` and reused
until it is removed. A line that few tests execute, because it runs in other processes, while modules are imported, or
in a cached function, is tested by the tests that execute the rest of its module. A test that fails with a mutant is
run again without it; if it fails then too, the mutant survives. The tests of each mutant run in a fork of a process
that has already imported the installed packages, but no module of the project. The exit code is 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, takewhile
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).parent.parent
RECORD = ROOT / ".mutants"
MODULES = ("runs/engine.py", "runs/store/**/*.py", "roles/gateway/*.py", "graphs/gate/*.py")
EXTRA_FOLDERS = ("tests/matrix",)
"""Folders of tests that `make test` does not run and that execute these modules."""
MIN_TIMEOUT_SECONDS, TIMEOUT_FACTOR = 60, 5
"""A mutant's tests fail if they take longer than these seconds and this multiple of the time recorded for them."""
MAX_FIRST_SECONDS = 20
"""The seconds, as recorded, of the nearest tests that are run first; they kill most mutants."""
MIN_TESTS = 10
"""If fewer tests execute a line, those that execute the rest of its module are run too: results may be cached."""
MAX_QUICK_SECONDS = 2
"""The longest of the tests that are run first, in seconds as recorded."""
INSTALLED = (
    "pytest",
    "pytest_asyncio",
    "hypothesis",
    "langgraph.graph",
    "pydantic",
    "sqlite_utils",
    "structlog",
    "tenacity",
)
"""The packages that are imported before the process is forked."""

SETTINGS = "[run]\nrelative_files = true\nsource = dialoom, graphs, roles, runs\n"
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, Mult FloorDiv"
OPPOSITES: dict[type[ast.AST], type[Any]] = {
    getattr(ast, one): getattr(ast, other)
    for pair in PAIRS.split(", ")
    for one, other in (pair.split(), reversed(pair.split()))
}


class Mutant(NamedTuple):
    """A change: the bytes of a module from `start` to `end`, which are `removed`, become `text`."""

    path: str
    line: int
    start: int
    end: int
    removed: str
    text: str

    def __str__(self) -> str:
        """Return the place and the change in one line."""
        return f"{self.path}:{self.line}: {' '.join(self.removed.split())} -> {self.text}"


def find_mutants(folder: Path, path: str) -> Iterator[Mutant]:
    """Yield every mutant of a module; annotations and f-strings stay as they are."""
    source = (folder / path).read_bytes()
    starts = list(accumulate(map(len, source.splitlines(keepends=True)), initial=0))
    tree = ast.parse(source)
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    annotations = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    excluded = {inner for node in (*strings, *annotations) if node for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt) and node not in excluded:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            for text in find_replacements(node):
                yield Mutant(path, node.lineno, start, end, source[start:end].decode(), text)


def find_replacements(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield the replacements of an expression or statement."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OPPOSITES:
            yield _unparse(node, ops=[OPPOSITES[type(operator)]()])
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if type(node.op) in OPPOSITES:
            yield _unparse(node, op=OPPOSITES[type(node.op)]())
        case ast.UnaryOp(op=ast.Not()):
            yield f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            yield "pass"
        case ast.Return(value=ast.expr()) if ast.unparse(node) not in {"return None", "return False"}:
            yield "return None"


def _unparse(node: ast.expr | ast.stmt, **changed: object) -> str:
    text = ast.unparse(type(node)(**{**vars(node), **changed}))
    return f"({text})" if isinstance(node, ast.expr) else text


_seconds: Counter[str] = Counter()


def pytest_runtest_logstart(nodeid: str) -> None:
    """Attribute the lines that coverage.py records to the starting test; called if this module is a pytest plugin."""
    if (coverage := Coverage.current()) is not None:
        coverage.switch_context(nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Record how long a test takes."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write how long each test has taken into the working directory."""
    Path("seconds.json").write_text(json.dumps(_seconds))


def run_python(folder: Path, *arguments: str, log: Path) -> bool:
    """Return whether Python succeeds in a clone."""
    command, environment = [sys.executable, "-m", *arguments], {**os.environ, "PYTHONPATH": str(folder)}
    with log.open("wb") as output:
        return subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=output).returncode == 0


class Clone:
    """A clone of the repository and a process in it that runs tests, each time in a fork.

    Attributes:
        folder: The clone.
    """

    def __init__(self, folder: Path) -> None:
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        (folder / "settings.ini").write_text(SETTINGS)
        self.folder = folder
        self._server: subprocess.Popen[str] | None = None

    def survives(self, mutant: Mutant, tests: list[str], timeout: float) -> bool:
        """Return whether the given tests pass with a mutant, or the one that fails also fails without it."""
        if not tests:
            return True
        module = self.folder / mutant.path
        source = module.read_bytes()
        module.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
        status = self._run(tests, timeout)
        module.write_bytes(source)
        only_failed = ["--last-failed", "--last-failed-no-failures", "none"]
        return not status or self._run([*tests, *only_failed], timeout) == pytest.ExitCode.TESTS_FAILED

    def _run(self, arguments: list[str], timeout: float) -> int:
        """Run pytest in a fork and return its exit status."""
        if self._server is None:
            environment = {**os.environ, "PYTHONPATH": str(self.folder)}
            self._server = subprocess.Popen(
                [sys.executable, "-c", "from tests.mutants import serve; serve()"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps([timeout, *arguments]), file=self._server.stdin, flush=True)
        return int(self._server.stdout.readline())


def serve() -> None:
    """Run pytest with each line of the standard input, and print its exit status, until the input ends.

    A line holds a timeout in seconds and pytest's arguments. It is run in a fork, which does not inherit the modules of
    the project. A fork that takes too long is killed with all processes that it has started.
    """
    for package in INSTALLED:
        importlib.import_module(package)
    for line in sys.stdin:
        seconds, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os._exit(pytest.main(["-p", "no:xdist", "-x", "--timeout", "120", *arguments]))
        timeout = threading.Timer(seconds, os.killpg, (child, signal.SIGKILL))
        timeout.start()
        _, status = os.waitpid(child, 0)
        timeout.cancel()
        timeout.join()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _collect_modules(folder: Path, *named: str) -> list[str]:
    """Return the test modules of the suite or of the named folders, which pytest collects only when they are named."""
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", *named]
    collected = subprocess.run(collect, cwd=folder, capture_output=True, text=True, check=True).stdout
    return [name for name, colon, _ in (line.partition(": ") for line in collected.splitlines()) if colon]


class CoverageRecord:
    """The lines of each module that each test executes, read from the record of a run of the suite.

    Args:
        folders: The folders of the clones; each runs a part of the suite if there is no record.
    """

    def __init__(self, folders: list[Path]) -> None:
        modules = [module for named in ((), EXTRA_FOLDERS) for module in _collect_modules(folders[0], *named)]
        RECORD.mkdir(exist_ok=True)

        def record_part(part: int) -> bool:
            file = RECORD / f"part-{part}"
            run = ["coverage", "run", "--rcfile", "settings.ini", "--data-file", f"{file}.unfinished", "-m", "pytest"]
            plugins = ["-p", "no:xdist", "-p", "tests.mutants"]
            tests, log = modules[part :: len(folders)], Path(f"{file}.log")
            if not file.exists() and run_python(folders[part], *run, *plugins, *tests, log=log):
                (folders[part] / "seconds.json").rename(f"{file}.json")
                Path(f"{file}.unfinished").rename(file)
            return file.exists()

        with ThreadPoolExecutor() as pool:
            if not all(pool.map(record_part, range(len(folders)))):
                sys.exit(f"the tests must pass before mutants are made; see {RECORD}/part-*.log")
        self._data = [CoverageData(str(RECORD / f"part-{part}")) for part in range(len(folders))]
        for data in self._data:
            data.read()
        self._seconds: dict[str, float] = {}
        for part in range(len(folders)):
            self._seconds |= json.loads((RECORD / f"part-{part}.json").read_text())

    def _tests_by_line(self, path: str) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for data in self._data:
            for line, tests in data.contexts_by_lineno(path).items():
                found.setdefault(line, []).extend(filter(None, tests))
        return found

    def compute_timeout(self, tests: list[str]) -> float:
        """Return the seconds after which tests that have not ended count as failed."""
        return MIN_TIMEOUT_SECONDS + TIMEOUT_FACTOR * sum(self._seconds.get(test, 0) for test in tests)

    def select_tests(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """Return the tests that execute a mutant's line, or else its module: those to be run first, and the others.

        The first are the nearest, unless they take long. The nearest share most of the module's folders; among these,
        those that execute least of the module come first. The others are sorted by nearness and by the time they take.
        """
        by_line = self._tests_by_line(mutant.path)
        lines = Counter(test for tests in by_line.values() for test in tests)
        folder = Path(mutant.path).parent.parts

        def distance(test: str) -> int:
            shared = zip(folder, Path(test.partition("::")[0]).parent.parts[1:], strict=False)
            return -len([*takewhile(lambda pair: pair[0] == pair[1], shared)])

        tests = by_line.get(mutant.line, [])
        tests = sorted(tests if len(tests) >= MIN_TESTS else lines)
        quick = [test for test in tests if self._seconds.get(test, 0) <= MAX_QUICK_SECONDS]
        quick.sort(key=lambda test: (distance(test), lines[test]))
        running_total = accumulate(self._seconds.get(test, 0) for test in quick)
        first = [test for test, seconds in zip(quick, running_total, strict=True) if seconds <= MAX_FIRST_SECONDS]
        others = set(tests).difference(first)
        return first, sorted(others, key=lambda test: (distance(test), self._seconds.get(test, 0), test))


def main() -> None:
    """Run a sample of mutants and report each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40, help="number of mutants (40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        clones = [Clone(Path(name, str(number))) for number in range(2)]
        folder = clones[0].folder
        free = SimpleQueue[Clone]()
        for clone in clones:
            free.put(clone)
        record = CoverageRecord([clone.folder for clone in clones])
        paths = sorted({str(path.relative_to(folder)) for pattern in MODULES for path in folder.glob(pattern)})
        mutants = [mutant for path in paths for mutant in find_mutants(folder, path)]
        chosen = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))

        def survivors(mutants: list[Mutant], part: int, verdict: str) -> list[Mutant]:
            """Return the mutants that survive a part of their tests; print the verdict on each."""

            def has_survived(mutant: Mutant) -> bool:
                clone = free.get()
                try:
                    tests = record.select_tests(mutant)[part]
                    left = clone.survives(mutant, tests, record.compute_timeout(tests))
                finally:
                    free.put(clone)
                print(f"{verdict if left else 'killed'}: {mutant}", flush=True)
                return left

            with ThreadPoolExecutor(len(clones)) as pool:
                return [mutant for mutant, left in zip(mutants, pool.map(has_survived, mutants), strict=True) if left]

        left = survivors(chosen, 0, "left")
        surviving = len(survivors(left, 1, "SURVIVED"))
    print(f"{surviving} of {len(chosen)} mutants survived; sampled from {len(mutants)} in {len(paths)} modules")
    sys.exit(surviving > 0)


if __name__ == "__main__":
    main()
