"""The cost of planning APOLLO's samples: file size in relation to the source's text, time, peak memory.

    dialoom run apollo-build -o build.db --folder source     # 20 users, 2,160 pairs
    python benchmarks/apollo_size.py source [--length 2k --length 4k ...]

The text is that of the source's files, which contain every session, query and person once. Histories of four lengths
share it; with their messages written out, it would be some thirty times as much.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from dialoom.graphs.apollo import RECIPE
from dialoom.roles import ModelBinding
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.store import OWN_JUDGEMENTS, JudgementSet, RunStore


def plan_samples(source: Path, path: Path, **overrides: Any) -> int:
    """Plan all samples of a source, at four lengths unless others are given, into a new file; return their number."""
    options = RECIPE.options_type.model_validate({"source": str(source), **overrides})
    models = {role: ModelBinding(model="offline/attentive", temperature=0.0) for role in RECIPE.roles}
    config = RunConfig(recipe="apollo", options=options.model_dump(mode="json"), models=models, seed=0)
    with closing(RunStore.create(path, config, RECIPE.library())) as store:
        own = JudgementSet(OWN_JUDGEMENTS, {}, {})
        return store.plan(RECIPE.scenarios(options, random.Random(0), lambda _note: None), [], own)


def count_text_bytes(source: Path) -> int:
    """Return the bytes of a source's users, sessions and pairs."""
    return sum((source / f"{name}.jsonl").stat().st_size for name in ("users", "sessions", "pairs"))


def read_table_sizes(path: Path) -> list[tuple[str, int]]:
    """Return the bytes of each table and index, the largest first."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC"
        return connection.execute(query).fetchall()


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("source", type=Path, help="a folder created by apollo-build")
    parser.add_argument(
        "--length", action="append", help="length of the histories in tokens; repeatable; by default four"
    )
    arguments = parser.parse_args()
    source: Path = arguments.source
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.db"
        started = time.process_time()
        samples = plan_samples(source, path, length=tuple(arguments.length or ()))
        seconds = time.process_time() - started
        size, text = path.stat().st_size, count_text_bytes(source)
        largest = ", ".join(f"{name} {size_bytes / 1e6:.2f}" for name, size_bytes in read_table_sizes(path)[:5])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{samples:,} samples: planned in {seconds:.0f} s of CPU time, peak {peak:.0f} MiB ({before:.0f} after imports)"
    )
    print(f"the file has {size / 1e6:.2f} MB, {size / text:.2f} times the source's text of {text / 1e6:.2f} MB")
    print(f"MB: {largest}")


if __name__ == "__main__":
    main()
