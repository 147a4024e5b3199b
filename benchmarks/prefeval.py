"""The cost of PrefEval's long items: the whole job relative to a bare asyncio loop with the same LiteLLM calls.

    python -m benchmarks.prefeval [--items 60] [--turns 298] [--concurrency 16] [--wait 0.02] [--repeat 3]
    python -m benchmarks.prefeval --size [--pairs 1000] [--turns 298]

Items of all five methods are answered and judged after `--turns` unrelated turns, from a synthetic pool. As in
`benchmarks.orchestration`, the job and the bare loop send the same requests to a server with a fixed wait. Afterwards,
the peak memory of `--items` items and of three times as many is measured, each in its own process.

With `--size`, the file of `--pairs` pairs with five methods is measured instead, table by table, relative to its
distinct text: every text that was said or sent, counted once (a text is a whole message or reply; the prompts of two
judges are two texts, although they share most lines).
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import dialoom
from benchmarks.long_requests import make_text
from benchmarks.orchestration import compare, measure_time
from dialoom.personas.preferences import sample_pairs

METHODS = ("zero-shot", "reminder", "cot", "rag", "self-critic")


def write_pool(path: Path, turns: int) -> None:
    """Write a pool with a number of turns, in the layout of the release's pool."""
    lines = [
        {"role": role, "content": make_text(f"{role} {turn}", size)}
        for turn in range(turns)
        for role, size in (("user", 150), ("assistant", 700))
    ]
    path.write_text(json.dumps([{"conversation": lines}]), encoding="utf-8")


def play_job(
    arguments: argparse.Namespace, pool: Path, path: Path, model: str | None = None, pairs: Path | None = None
) -> None:
    """Play the job into a new run, with the offline model or with the named one."""
    options = {"limit": arguments.items, "turns": [arguments.turns], "method": METHODS, "distractors": pool}
    options |= {} if pairs is None else {"pairs": pairs}
    run = dialoom.play("prefeval", path=path, model=model, options=options, concurrency=arguments.concurrency)
    if run.status().failed:
        raise RuntimeError("an item failed: the figures would compare different things")


def measure_memory(arguments: argparse.Namespace) -> None:
    """Measure the peak memory of a number of items and of three times as many."""
    for items in (arguments.items, 3 * arguments.items):
        command = [sys.executable, "-m", "benchmarks.prefeval", "--alone", "--items", items, "--turns", arguments.turns]
        root = Path(__file__).parent.parent
        result = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True, cwd=root)
        print(f"{items} items: {float(result.stdout):.0f} MiB at the peak")


def measure_size(folder: Path, arguments: argparse.Namespace) -> None:
    """Play a hundredth, a tenth and all of the pairs with five methods; print the size of each file."""
    write_pairs(folder / "pairs.json", arguments.pairs)
    path = folder / "run.db"
    for pairs in sorted({-(-arguments.pairs // 100), -(-arguments.pairs // 10), arguments.pairs}):
        path.unlink(missing_ok=True)
        arguments.items = pairs * len(METHODS)
        job_time = measure_time(partial(play_job, arguments, folder / "pool.json", path, pairs=folder / "pairs.json"))
        tables, text_bytes, stored_bytes = read_sizes(path)
        size = path.stat().st_size
        print(
            f"{pairs} pairs x {len(METHODS)}: {size:,} bytes, {text_bytes:,} of distinct text: {size / text_bytes:.2f}"
        )
        rate = arguments.items / job_time.processor
        print(f"  {stored_bytes:,} of it is stored, without duplicate lines; {rate:.1f} items/s of processor time")
    for name, table_bytes in tables.most_common():
        print(f"{name:32}{table_bytes / arguments.items:8,.0f} bytes an item")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at the peak")


def write_pairs(path: Path, count: int) -> None:
    """Write a number of distinct pairs: the shipped ones with added words."""
    source = sample_pairs()
    shipped = [pair for topic in source.topics() for pair in source.pairs(topic, "explicit")]
    rows = []
    for number in range(count):
        pair, added_words = shipped[number % len(shipped)], make_text(f"{number}", 20)
        preference, question = pair.preference.rstrip("."), pair.question.replace("?", f", {added_words}?", 1)
        row = {"preference": f"{preference}, {added_words}.", "question": question, "explanation": pair.explanation}
        rows.append({"topic": f"topic_{number % 20}", **row})
    path.write_text(json.dumps(rows), encoding="utf-8")


def read_sizes(path: Path) -> tuple[Counter[str], int, int]:
    """Return the bytes of a run's tables and indexes, of its distinct texts, and of the texts as stored."""
    texts = "SELECT sum(length(CAST({} AS BLOB))) FROM {}"
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
        (text_bytes,) = connection.execute(texts.format("content", "texts")).fetchone()
        (stored_bytes,) = connection.execute(texts.format("coalesce(content, parts)", "kept_texts")).fetchone()
    return Counter(dict(pages)), text_bytes, stored_bytes


def main() -> None:
    """Measure rate and memory, or with `--size` the size of the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--turns", type=int, default=298)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--wait", type=float, default=0.02, metavar="SECONDS")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", action="store_true", help="measure the size of the file instead")
    parser.add_argument("--pairs", type=int, default=1000, help="number of pairs with --size")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    dialoom.tune_process()
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder) / "pool.json"
        write_pool(pool, arguments.turns)
        if arguments.alone:
            play_job(arguments, pool, Path(folder) / "run.db")
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            return
        if arguments.size:
            measure_size(Path(folder), arguments)
            return
        compare(partial(play_job, arguments, pool), Path(folder), arguments)
    measure_memory(arguments)


if __name__ == "__main__":
    main()
