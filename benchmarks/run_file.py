"""What each scheme of the run file saves: four workloads, played with and without it.

    python -m benchmarks.run_file [--workload prefeval ...] [--scheme passages ...] [--size 20] [--profiles FOLDER]

Offline models play and judge: PersonaLens dialogues (of a release with `--profiles`), PrefEval's pairs by five methods
after 298 turns, ALOE's trees, and APOLLO's samples; `--size` is the number of PrefEval's pairs, and the others are in
proportion. A scheme's figure is the share by which the file would be larger without it, in parts of that larger file:
for that, the scheme is switched off in a process of its own. Processor seconds are of the whole job.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import dialoom
from benchmarks.prefeval import METHODS, write_pairs, write_pool
from dialoom.runs.store import ledger, passages, references, texts
from dialoom.runs.store.checkpoints import batch, items, memory

_NEVER = 10**9
_numbers = count()


def _without_list_prefixes() -> None:
    follow = memory._List.follow
    _set(memory._List, "follow", lambda _self, elements: follow(memory._List(), elements))


def _without_kinds() -> None:
    def inserted(_self: object, connection: Any, kind: ledger.CallKind) -> Any:
        return connection.execute(ledger._INSERT_KIND, kind).lastrowid

    _set(ledger.CallKinds, "id_of", inserted)


SCHEMES: dict[str, Callable[[], None]] = {
    "documents": lambda: _set(references, "LONG_PART", _NEVER),
    "passages": lambda: _set(passages, "LONG", _NEVER),
    "composed texts": lambda: _set(texts.Sources, "parts_of", lambda _self, _content: None),
    "references to texts": lambda: _set(references, "LONG_TEXT", _NEVER),
    "additions to lists": _without_list_prefixes,
    "fields of the input": lambda: _set(items, "START", ""),
    "frames": lambda: _set(batch._Frame, "hash", property(lambda _self: next(_numbers).to_bytes(16))),
    "kinds of calls": _without_kinds,
}
"""What switches each scheme off."""


def _set(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


def workload(name: str, folder: Path, size: int, profiles: Path | None) -> dict[str, Any]:
    """Return the options of a workload."""
    match name:
        case "personalens":
            return {"limit": 3 * size} | ({"profiles": profiles} if profiles else {})
        case "prefeval":
            write_pool(folder / "pool.json", 298)
            write_pairs(folder / "pairs.json", size)
            return {
                "turns": [298],
                "method": METHODS,
                "distractors": folder / "pool.json",
                "pairs": folder / "pairs.json",
            }
        case "aloe":
            return {"limit": max(size // 4, 1)}
        case _:
            return {"limit": 5 * size}


def play(name: str, scheme: str, size: int, profiles: Path | None) -> tuple[int, float]:
    """Play a workload without a scheme (with all if it is empty); return the file's bytes and the processor time."""
    if scheme:
        SCHEMES[scheme]()
    with tempfile.TemporaryDirectory() as folder:
        options = workload(name, Path(folder), size, profiles)
        started = time.process_time()
        run = dialoom.play(name, path=Path(folder) / "run.db", options=options, concurrency=16)
        seconds = time.process_time() - started
        if run.status().failed:
            raise RuntimeError("a scenario failed: the figures would compare different things")
        return run.path.stat().st_size, seconds


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("personalens", "prefeval", "aloe", "apollo")
    parser.add_argument("--workload", action="append", choices=names)
    parser.add_argument("--scheme", action="append", choices=list(SCHEMES))
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--profiles", type=Path, help="a folder of a PersonaLens release")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        name, scheme = options.alone
        print(*play(name, scheme, options.size, options.profiles))
        return
    print(f"{'':14}{'without':24}{'bytes':>12}{'saved':>8}{'seconds':>9}")
    for name in options.workload or names:
        whole = 0
        for scheme in ("", *(options.scheme or SCHEMES)):
            command = [
                sys.executable,
                "-m",
                "benchmarks.run_file",
                "--alone",
                name,
                scheme,
                "--size",
                str(options.size),
            ]
            command += ["--profiles", str(options.profiles)] if options.profiles else []
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parent.parent
            )
            size, seconds = int(done.stdout.split()[-2]), float(done.stdout.split()[-1])
            whole = whole or size
            print(f"{name:14}{scheme or '(nothing)':24}{size:12,}{1 - whole / size:8.0%}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
