"""Kills and torn writes, run by hand: commands killed at their n-th write to a file give the same bytes once resumed.

    python -m tests.kills [--kills 1000] [--seed 0] [--only judge ...]

Each command is run once undisturbed, to count its writes, then repeatedly on copies of one folder, where it is killed
at a randomly drawn write: before it, or (three times in five) after a part of its bytes is written.
Needs a C compiler: a library that is loaded before libc replaces its functions for writing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.processes import CommandProcess

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static long count, last = -1, share;

void torn_arm(long n, long percent) { count = 0; last = n; share = percent; }
long torn_count(void) { return count; }

static int dies(int fd) {
    struct stat status;
    if (last < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode)) return 0;
    return __sync_add_and_fetch(&count, 1) == last;
}

#define AT(name)                                                          \
    ssize_t name(int fd, const void *bytes, size_t size, off_t at) {      \
        static ssize_t (*real)(int, const void *, size_t, off_t);         \
        if (!real) real = dlsym(RTLD_NEXT, #name);                        \
        if (dies(fd)) {                                                   \
            if (share) real(fd, bytes, size * share / 100, at);           \
            kill(getpid(), SIGKILL);                                      \
        }                                                                 \
        return real(fd, bytes, size, at);                                 \
    }
AT(pwrite)
AT(pwrite64)

ssize_t write(int fd, const void *bytes, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (dies(fd)) {
        if (share) real(fd, bytes, size * share / 100);
        kill(getpid(), SIGKILL);
    }
    return real(fd, bytes, size);
}
"""

SCRIPT = """
import ctypes, json, sys
library = ctypes.CDLL(None)
commands, last, share, has_workers = json.loads(sys.argv[1])
from dialoom.cli import main
if has_workers:
    import pytest
    from tests.runs.workers.local_cluster import local_cluster
    local_cluster(pytest.MonkeyPatch())
codes, written = [], 0
for command in commands:
    sys.argv[1:] = command
    library.torn_arm(last, share)
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code or 0)
    finally:
        written = library.torn_count()
        library.torn_arm(-1, 0)
open("codes.json", "w").write(json.dumps([codes, written]))
"""
"""Runs commands; a positive number kills it at that write, 0 counts the writes."""

_NO_KILL = -1
"""In place of that number: neither kill nor count."""


@dataclass(frozen=True)
class Case:
    """A command to be killed.

    Attributes:
        before: The commands that prepare its input.
        command: The command.
        after: The commands that complete its work after a kill.
        export: The command that writes the result, `out`, which is compared.
        killed_at_write: The write at which `before` is itself killed; 0 for none.
        has_workers: Whether the commands use workers.
    """

    before: list[list[str]]
    command: list[str]
    after: list[list[str]]
    export: list[str]
    killed_at_write: int = 0
    has_workers: bool = False


_RUN = ["run", "personalens", "--limit", "2", "--setting", "all", "-o", "run.db", "--concurrency", "2"]
_RESUME = ["resume", "run.db", "--concurrency", "2"]
_JUDGE = ["judge", "run.db", "--model", "judge=offline/generic", "--name", "again"]
_REVIEW = ["review", "run.db", "--model", "offline/attentive", "--name", "looked"]
_RETRY = ["retry", "run.db", "--scenario", "1"]
_BUILD = ["personas", "build", "--kind", "profile", "--target", "45", "-o", "out"]
_EXPORT = ["export", "run.db", "-o", "out"]

CASES = {
    "run": Case([], _RUN, [_RESUME], _EXPORT),
    "resume": Case([_RUN], _RESUME, [_RESUME], _EXPORT, killed_at_write=60),
    "judge": Case([_RUN], _JUDGE, [_JUDGE], [*_EXPORT, "--judging", "again"]),
    "retry": Case([_RUN], _RETRY, [_RESUME], _EXPORT),
    "review": Case([_RUN], _REVIEW, [_REVIEW], [*_EXPORT, "--judging", "looked"]),
    "personas build": Case([], _BUILD, [_BUILD], []),
    "workers": Case([], [*_RUN, "--workers", "2"], [[*_RESUME, "--workers", "2"]], _EXPORT, has_workers=True),
}


class Failure(Exception):
    """A wrong state after a kill."""


def run_commands(
    folder: Path, commands: list[list[str]], kill_at: int = _NO_KILL, share: int = 0, has_workers: bool = False
) -> tuple[list[int], int]:
    """Run commands; return their exit codes and the writes of the last one, or no codes if they were killed.

    Raises:
        Failure: If they ended in another way.
    """
    (folder / "codes.json").unlink(missing_ok=True)
    with CommandProcess(folder, json.dumps([commands, kill_at, share, has_workers]), script=SCRIPT) as process:
        output = process.communicate()
    if process.returncode == -signal.SIGKILL and kill_at > 0:
        return [], 0
    if process.returncode:
        raise Failure(f"exit code {process.returncode}: {output}")
    codes, written = json.loads((folder / "codes.json").read_text())
    if any("Traceback" in part for part in output):
        raise Failure(f"exit codes {codes}: {output}")
    return codes, written


def read_result(folder: Path, case: Case) -> bytes:
    """Write the result and return its bytes.

    Raises:
        Failure: If it cannot be written, or a run file fails its integrity check.
    """
    codes, _ = run_commands(folder, [case.export] if case.export else [])
    if any(codes):
        raise Failure(f"{case.export}: exit code {codes}")
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            problems = connection.execute("PRAGMA integrity_check").fetchall()
        if problems != [("ok",)]:
            raise Failure(f"{path.name}: {problems}")
    return (folder / "out").read_bytes()


def complete_work(folder: Path, case: Case, before_retry: bytes | None) -> bytes:
    """Complete the work after a kill and return the result."""
    codes, _ = run_commands(folder, case.after, has_workers=case.has_workers)
    if codes == [2] and not case.before:  # killed before the plan was complete, which is an error
        for path in folder.glob("run.db*"):
            path.unlink()
        codes, _ = run_commands(folder, [case.command], has_workers=case.has_workers)
    if codes != [0]:
        raise Failure(f"exit code {codes} of {case.after[0]}")
    completed = read_result(folder, case)
    if completed == before_retry:  # killed before the retry had changed anything
        (folder / "out").unlink()
        run_commands(folder, [case.command])
        completed = read_result(folder, case)
    return completed


def run_campaign(name: str, kills: int, draw: random.Random, root: Path) -> Counter[str]:
    """Kill a command `kills` times; return the count of each outcome."""
    case, outcomes = CASES[name], Counter[str]()
    base, undisturbed, work = (root / part for part in ("base", "whole", "work"))
    for folder in (base, undisturbed, work):
        shutil.rmtree(folder, ignore_errors=True)
    base.mkdir()
    run_commands(base, case.before, case.killed_at_write or _NO_KILL, 0)
    shutil.copytree(base, undisturbed)
    codes, writes = run_commands(undisturbed, [case.command], 0, 0, case.has_workers)
    expected = read_result(undisturbed, case)
    before_retry = None
    if name == "retry":
        shutil.copytree(base, work)
        before_retry = read_result(work, case)
        assert before_retry != expected, "the retried scenario has a different result"
    assert codes == [0] and writes > 0, codes
    while outcomes.total() - outcomes["not reached"] < kills:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(base, work)
        kill_at, share = draw.randint(1, writes), draw.choice((0, 0, 25, 50, 99))
        try:
            codes, _ = run_commands(work, [case.command], kill_at, share, case.has_workers)
            if codes:
                outcomes["not reached"] += 1
                continue
            completed = complete_work(work, case, before_retry)
            outcome = "same bytes" if completed == expected else "OTHER BYTES"
        except Failure as failure:
            outcome = "FAILED"
            print(f"{name}, write {kill_at} of {writes}, {share} %: {failure}", flush=True)
        if outcome != "same bytes":
            shutil.copytree(work, root / f"{name} {kill_at} {share}", dirs_exist_ok=True)
        outcomes[outcome] += 1
    print(f"{name:16}{writes:6,} writes: {dict(outcomes)}", flush=True)
    return outcomes


def main() -> None:
    """Run the kills of each case and report them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="total number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=list(CASES))
    parser.add_argument("--keep", type=Path, help="an existing folder to which failed cases are copied")
    options = parser.parse_args()
    names = options.only or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "torn.so"
        source = Path(folder) / "torn.c"
        source.write_text(LIBRARY)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        os.environ["LD_PRELOAD"] = str(library)
        root = options.keep or Path(folder)
        draw = random.Random(options.seed)
        total = Counter[str]()
        for name in names:
            total += run_campaign(name, -(-options.kills // len(names)), draw, root)
    print(f"total: {dict(total)}")
    sys.exit(total.keys() - {"same bytes", "not reached"} != set())


if __name__ == "__main__":
    main()
