"""Mutation testing of the modules that data and money depend on: a seeded sample of small changes to their code.

    python -m tests.mutants --sample 40 --seed 1

Works in a clone of the last commit. Each mutant is run against the tests that execute its line. Which these are is
recorded by one run of the suite under coverage.py, in `.mutants`, which is used again until it is removed. A line that
runs while modules are imported is tested by what executes the rest of its module. The exit code is 1 if any survives.
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
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parent.parent
RECORD = ROOT / ".mutants"
MODULES = ("runs/engine.py", "runs/store/**/*.py", "roles/gateway/*.py", "graphs/gate/*.py")
SECONDS = 900
"""After so long a mutant's tests are taken for hanging, which is a way of failing."""

SETTINGS = "[run]\ndynamic_context = test_function\nrelative_files = true\nsource = dialoom, graphs, roles, runs\n"
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


def tests_of(mutant: Mutant, data: CoverageData, folder: Path) -> list[str]:
    """Return the tests that execute a mutant's line, or else its module."""
    lines = data.contexts_by_lineno(mutant.path)
    tests = {*lines.get(mutant.line, ())} - {""} or {each for contexts in lines.values() for each in contexts if each}
    places = [each.replace(".", "/").rpartition("/") for each in sorted(tests)]
    return [f"{found}::{name}" for module, _, name in places for found in folder.glob(f"**/{module}.py")]


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
        recorded = ["--rcfile", "settings.ini", "--data-file", str(RECORD)]
        if not RECORD.exists() and not passes(folder, "coverage", "run", *recorded, "-m", "pytest", "-p", "no:xdist"):
            sys.exit("the suite must pass before mutants are made")
        data = CoverageData(str(RECORD))
        data.read()
        paths = sorted({str(path.relative_to(folder)) for pattern in MODULES for path in folder.glob(pattern)})
        mutants = [mutant for path in paths for mutant in mutants_of(folder, path)]
        chosen = random.Random(wanted.seed).sample(mutants, min(wanted.sample, len(mutants)))
        surviving = sum([survives(mutant, tests_of(mutant, data, folder), folder) for mutant in chosen])
    print(f"{surviving} of {len(chosen)} mutants survived; there are {len(mutants)} of {len(paths)} modules")
    sys.exit(surviving > 0)


if __name__ == "__main__":
    main()
