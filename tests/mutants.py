"""Mutation testing of the modules that data and money depend on: a seeded sample of small changes to their code.

    python -m tests.mutants --sample 40 --seed 1

Works in a clone of the last commit. Each mutant is run against the test modules that execute its line. Which these are
is recorded by coverage.py, which runs each test module in a process of its own; its record is kept in `.mutants` and is
used again until it is removed. A line that runs while modules are imported is tested by what executes the rest of its
module. The exit code is 1 if any survives.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parent.parent
RECORD = ROOT / ".mutants"
MODULES = ("runs/engine.py", "runs/store/**/*.py", "roles/gateway/*.py", "graphs/gate/*.py")
SECONDS = 900
"""After so long a mutant's tests are taken for hanging, which is a way of failing."""

SETTINGS = "[run]\nrelative_files = true\nsource = dialoom, graphs, roles, runs\n"
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, Mult FloorDiv"
OPPOSITES: dict[type[ast.AST], type[Any]] = {
    getattr(ast, one): getattr(ast, other)
    for pair in PAIRS.split(", ")
    for one, other in (pair.split(), reversed(pair.split()))
}


class Mutant(NamedTuple):
    """One change: the bytes of a module from `start` to `end` become `text`."""

    path: str
    line: int
    start: int
    end: int
    text: str


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
                yield Mutant(path, node.lineno, start, end, text)


def changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield what may stand in the place of an expression or statement."""
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
        case ast.Return(value=ast.expr()) if ast.unparse(node) != "return None":
            yield "return None"


def _unparsed(node: ast.expr | ast.stmt, **changed: object) -> str:
    text = ast.unparse(type(node)(**{**vars(node), **changed}))
    return f"({text})" if isinstance(node, ast.expr) else text


def passes(folder: Path, *arguments: str, seconds: float | None = None) -> bool:
    """Tell whether Python succeeds in the clone. What it has started ends with it."""
    command, environment = [sys.executable, "-m", *arguments], {**os.environ, "PYTHONPATH": str(folder)}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, start_new_session=True) as process:
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False


def record(folder: Path) -> dict[str, CoverageData]:
    """Return the lines that each test module executes; modules without a record are run first, two at a time."""
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    collected = subprocess.run(collect, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    files = {
        name: RECORD / name.replace("/", ".")
        for name, colon, _ in (line.partition(": ") for line in collected)
        if colon
    }
    RECORD.mkdir(exist_ok=True)

    def recorded(name: str) -> bool:
        run = ["run", "--rcfile", "settings.ini", "--data-file", f"{files[name]}.part"]
        if not passes(folder, "coverage", *run, "-m", "pytest", "-q", "-p", "no:xdist", name):
            return False
        Path(f"{files[name]}.part").rename(files[name])
        return True

    missing = [name for name, file in files.items() if not file.exists()]
    with ThreadPoolExecutor(2) as pool:
        failed = [name for name, passed in zip(missing, pool.map(recorded, missing), strict=True) if not passed]
    if failed:
        sys.exit(f"these must pass before mutants are made: {' '.join(failed)}")
    found = {name: CoverageData(str(file)) for name, file in files.items()}
    for data in found.values():
        data.read()
    return found


def tests_of(mutant: Mutant, executed: dict[str, CoverageData]) -> list[str]:
    """Return the test modules that execute a mutant's line, or else its module; those that execute least come first."""
    lines = {name: set(data.lines(mutant.path) or ()) for name, data in executed.items()}
    of_line = [name for name, found in lines.items() if mutant.line in found]
    return sorted(of_line or (name for name, found in lines.items() if found), key=lambda name: len(lines[name]))


def survives(mutant: Mutant, tests: list[str], folder: Path) -> bool:
    """Tell whether the tests pass with a mutant."""
    module = folder / mutant.path
    source = module.read_bytes()
    module.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
    options = ["-x", "-n", "2", "--dist", "worksteal", "--timeout", "120"]
    passed = not tests or passes(folder, "pytest", *options, *tests, seconds=SECONDS)
    removed = " ".join(source[mutant.start : mutant.end].decode().split())
    print(f"{'SURVIVED' if passed else 'killed  '} {mutant.path}:{mutant.line}: {removed} -> {mutant.text}", flush=True)
    module.write_bytes(source)
    return passed


def main() -> None:
    """Run a sample of mutants, and report each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=40, help="number of mutants (40)")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other mutants (1)")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
        (folder / "settings.ini").write_text(SETTINGS)
        executed = record(folder)
        paths = sorted({str(path.relative_to(folder)) for pattern in MODULES for path in folder.glob(pattern)})
        mutants = [mutant for path in paths for mutant in mutants_of(folder, path)]
        chosen = random.Random(wanted.seed).sample(mutants, min(wanted.sample, len(mutants)))
        surviving = sum([survives(mutant, tests_of(mutant, executed), folder) for mutant in chosen])
    print(f"{surviving} of {len(chosen)} mutants survived; there are {len(mutants)} of {len(paths)} modules")
    sys.exit(surviving > 0)


if __name__ == "__main__":
    main()
