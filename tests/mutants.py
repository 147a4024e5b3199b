"""Mutation testing of the modules that store data or spend money: a seeded sample of small changes to their code.

    python -m tests.mutants --sample 40 --seed 1

Works in clones of the last commit, two mutants at a time. Each mutant is run against the tests that execute its line:
all mutants against their nearest tests, then the survivors against the others. The lines that each test executes are
recorded by one run of the suite and of `tests/matrix` under coverage.py; the record is kept in `.mutants` and reused
until it is removed. A line that runs only in other processes, or while modules are imported, is tested by the tests
that execute the rest of its module. The exit code is 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, takewhile
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from coverage import Coverage, CoverageData

ROOT = Path(__file__).parent.parent
RECORD = ROOT / ".mutants"
MODULES = ("runs/engine.py", "runs/store/**/*.py", "roles/gateway/*.py", "graphs/gate/*.py")
EXTRA_FOLDERS = ("tests/matrix",)
"""Folders of tests that `make test` does not run and that execute these modules."""
SECONDS = 900
"""The timeout of a mutant's tests; a timeout counts as a failure of the tests."""
FIRST = 60
"""The number of nearest tests that are run first; they kill most mutants."""

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


def mutants_of(folder: Path, path: str) -> Iterator[Mutant]:
    """Yield every mutant of a module; annotations and f-strings stay as they are."""
    source = (folder / path).read_bytes()
    starts = list(accumulate(map(len, source.splitlines(keepends=True)), initial=0))
    tree = ast.parse(source)
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    annotations = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    kept = {inner for node in (*strings, *annotations) if node for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt) and node not in kept:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            for text in changes(node):
                yield Mutant(path, node.lineno, start, end, source[start:end].decode(), text)


def changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield the replacements of an expression or statement."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OPPOSITES:
            yield _unparsed(node, ops=[OPPOSITES[type(operator)]()])
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if type(node.op) in OPPOSITES:
            yield _unparsed(node, op=OPPOSITES[type(node.op)]())
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


def _unparsed(node: ast.expr | ast.stmt, **changed: object) -> str:
    text = ast.unparse(type(node)(**{**vars(node), **changed}))
    return f"({text})" if isinstance(node, ast.expr) else text


def pytest_runtest_logstart(nodeid: str) -> None:
    """Attribute the lines that coverage.py records to the starting test; called if this module is a pytest plugin."""
    if (coverage := Coverage.current()) is not None:
        coverage.switch_context(nodeid)


def passes(folder: Path, *arguments: str, seconds: float | None = None, log: Path = Path(os.devnull)) -> bool:
    """Return whether Python succeeds in a clone. The processes that it has started are killed when it ends."""
    command, environment = [sys.executable, "-m", *arguments], {**os.environ, "PYTHONPATH": str(folder)}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _modules(folder: Path, *named: str) -> list[str]:
    """Return the test modules of the suite or of the named folders, which pytest collects only when they are named."""
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", *named]
    collected = subprocess.run(collect, cwd=folder, capture_output=True, text=True, check=True).stdout
    return [name for name, colon, _ in (line.partition(": ") for line in collected.splitlines()) if colon]


class Record:
    """The lines of each module that each test executes, read from the record of a run of the suite.

    Args:
        folders: The clones; each runs a part of the suite if there is no record.
    """

    def __init__(self, folders: list[Path]) -> None:
        modules = [module for named in ((), EXTRA_FOLDERS) for module in _modules(folders[0], *named)]
        RECORD.mkdir(exist_ok=True)

        def recorded(part: int) -> bool:
            file = RECORD / f"part-{part}"
            run = ["coverage", "run", "--rcfile", "settings.ini", "--data-file", f"{file}.unfinished", "-m", "pytest"]
            plugins = ["-p", "no:xdist", "-p", "tests.mutants"]
            tests, log = modules[part :: len(folders)], Path(f"{file}.log")
            if not file.exists() and passes(folders[part], *run, *plugins, *tests, log=log):
                Path(f"{file}.unfinished").rename(file)
            return file.exists()

        with ThreadPoolExecutor() as pool:
            if not all(pool.map(recorded, range(len(folders)))):
                sys.exit(f"the tests must pass before mutants are made; see {RECORD}/part-*.log")
        self._data = [CoverageData(str(RECORD / f"part-{part}")) for part in range(len(folders))]
        for data in self._data:
            data.read()

    def _tests_by_line(self, path: str) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for data in self._data:
            for line, tests in data.contexts_by_lineno(path).items():
                found.setdefault(line, []).extend(filter(None, tests))
        return found

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's line, or else its module, the nearest first.

        The nearest share most of the module's folders; among these, those that execute least of the module come first.
        """
        by_line = self._tests_by_line(mutant.path)
        lines = Counter(test for tests in by_line.values() for test in tests)
        folder = Path(mutant.path).parent.parts

        def rank(test: str) -> tuple[int, int, str]:
            shared = zip(folder, Path(test.partition("::")[0]).parent.parts[1:], strict=False)
            return -len([*takewhile(lambda pair: pair[0] == pair[1], shared)]), lines[test], test

        return sorted(by_line.get(mutant.line) or lines, key=rank)


def survives(mutant: Mutant, tests: list[str], folder: Path) -> bool:
    """Return whether the given tests pass with a mutant."""
    module = folder / mutant.path
    source = module.read_bytes()
    module.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
    options = ["pytest", "-p", "no:xdist", "-x", "--timeout", "120"]
    passed = not tests or passes(folder, *options, *tests, seconds=SECONDS)
    module.write_bytes(source)
    return passed


def main() -> None:
    """Run a sample of mutants and report each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40, help="number of mutants (40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (1)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folders = [Path(name, str(number)) for number in range(2)]
        free = SimpleQueue[Path]()
        for folder in folders:
            subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
            (folder / "settings.ini").write_text(SETTINGS)
            free.put(folder)
        record = Record(folders)
        paths = sorted({str(path.relative_to(folder)) for pattern in MODULES for path in folder.glob(pattern)})
        mutants = [mutant for path in paths for mutant in mutants_of(folder, path)]
        chosen = random.Random(wanted.seed).sample(mutants, min(wanted.sample, len(mutants)))

        def survivors(mutants: list[Mutant], chosen: slice, verdict: str) -> list[Mutant]:
            """Return the mutants that survive a part of their tests; print the verdict on each."""

            def survived(mutant: Mutant) -> bool:
                folder = free.get()
                try:
                    left = survives(mutant, record.tests_of(mutant)[chosen], folder)
                finally:
                    free.put(folder)
                print(f"{verdict if left else 'killed'}: {mutant}", flush=True)
                return left

            with ThreadPoolExecutor(len(folders)) as pool:
                return [mutant for mutant, left in zip(mutants, pool.map(survived, mutants), strict=True) if left]

        left = survivors(chosen, slice(FIRST), "left")
        surviving = len(survivors(left, slice(FIRST, None), "SURVIVED"))
    print(f"{surviving} of {len(chosen)} mutants survived; sampled from {len(mutants)} in {len(paths)} modules")
    sys.exit(surviving > 0)


if __name__ == "__main__":
    main()
