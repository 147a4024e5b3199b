"""What PrefEval's long items cost: the whole job beside a bare asyncio loop that makes the same LiteLLM calls.

    python benchmarks/prefeval.py [--items 60] [--turns 298] [--concurrency 16] [--repeat 3]
    python benchmarks/prefeval.py --size

Items of all five methods are answered and judged by the offline model after so many unrelated turns, from a pool that
is made for it. The requests are then read from the ledger and sent again by a loop that does nothing else; both run in
this process, in turn, and the median of the ratios counts. It is processor time, as nothing here waits. Then the peak
memory of so many items, and of three times as many, each in a process of its own.

With `--size`, instead: what the file of 1,000 pairs by five methods comes to, table by table, as a multiple of the
distinct text that was said or sent. It is extrapolated from the first 10 and 60 of the shipped pairs.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dialoom
from benchmarks.long_requests import text
from benchmarks.orchestration import send_bare
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.tool_wire import wire_messages
from dialoom.runs.store.passages import read_messages, reading

METHODS = ("zero-shot", "reminder", "cot", "rag", "self-critic")


def write_pool(path: Path, turns: int) -> None:
    """A pool of so many turns, in the layout of the release's."""
    lines = [
        {"role": role, "content": text(f"{role} {turn}", size)}
        for turn in range(turns)
        for role, size in (("user", 150), ("assistant", 700))
    ]
    path.write_text(json.dumps([{"conversation": lines}]), encoding="utf-8")


def play_job(path: Path, pool: Path, arguments: argparse.Namespace) -> float:
    """Play the job into a new run; returns the seconds of the processor that it took."""
    options = {"limit": arguments.items, "turns": [arguments.turns], "method": METHODS, "distractors": pool}
    started = time.process_time()
    run = dialoom.play("prefeval", path=path, options=options, concurrency=arguments.concurrency)
    seconds = time.process_time() - started
    if run.status().failed:
        raise RuntimeError("an item failed: the figures would compare different things")
    return seconds


def requests_of(path: Path) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The run's requests, each with its scenario, as LiteLLM took them."""
    with closing(sqlite3.connect(path)) as connection:
        texts = dict(connection.execute("SELECT id, content FROM texts").fetchall())
        rows = connection.execute("SELECT scenario, model, temperature, seed, messages FROM calls ORDER BY id")
        for scenario, model, temperature, seed, messages in rows.fetchall():
            said = [(role, texts[id_]) for role, id_, *_ in read_messages(messages, reading(connection))]
            sent = wire_messages(tuple({"role": role, "content": content} for role, content in said))
            yield scenario, {"model": model, "messages": sent, "temperature": temperature, "seed": seed}


def compare(folder: Path, arguments: argparse.Namespace) -> None:
    """Both in turn, and the ratio of their rates."""
    jobs: list[float] = []
    bare: list[float] = []
    calls = 0
    for number in range(arguments.repeat + 1):
        job = play_job(folder / f"{number}.db", folder / "pool.json", arguments)
        by_scenario: dict[int | None, list[dict[str, Any]]] = {}
        for scenario, request in requests_of(folder / f"{number}.db"):
            by_scenario.setdefault(scenario, []).append(request)
        calls = sum(map(len, by_scenario.values()))
        started = time.process_time()
        send_bare(list(by_scenario.values()), arguments.concurrency)
        loop = time.process_time() - started
        if number:  # the first round warms both up
            jobs.append(job)
            bare.append(loop)
    job, loop = statistics.median(jobs), statistics.median(bare)
    print(f"{arguments.items} items after {arguments.turns} turns, {calls} calls, {arguments.concurrency} at once")
    print(f"the job:   {job:6.2f} s  {arguments.items / job:7.1f} items/s")
    print(f"bare loop: {loop:6.2f} s  {arguments.items / loop:7.1f} items/s")
    ratios = [loop / job for job, loop in zip(jobs, bare, strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"rate of the job / rate of the bare loop: {statistics.median(ratios):.2f} ({spread})")


def memory(arguments: argparse.Namespace) -> None:
    """The peak of so many items, and of three times as many."""
    for items in (arguments.items, 3 * arguments.items):
        command = [sys.executable, __file__, "--alone", "--items", items, "--turns", arguments.turns]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        print(f"{items} items: {float(done.stdout):.0f} MiB at the peak")


def size(folder: Path, arguments: argparse.Namespace) -> None:
    """What an item more adds to each table, and what 5,000 come to."""
    found: list[tuple[Counter[str], int]] = []
    few, many = 10 * len(METHODS), 60 * len(METHODS)
    for items in (few, many):
        arguments.items = items
        play_job(folder / f"{items}.db", folder / "pool.json", arguments)
        found.append(tables_of(folder / f"{items}.db"))
    (before, said_before), (after, said_after) = found
    more = {name: (after[name] - before[name]) / (many - few) for name in after}
    text = (said_after - said_before) / (many - few)
    for name, added in sorted(more.items(), key=lambda each: -each[1]):
        if added:
            print(f"{name:32}{added:8,.0f} bytes an item")
    print(f"{'all':32}{sum(more.values()):8,.0f} bytes an item, {text:,.0f} of distinct text")
    left = 1000 * len(METHODS) - many
    whole, said = after.total() + sum(more.values()) * left, said_after + text * left
    print(f"1,000 pairs: {whole / 1e6:.1f} MB, {said / 1e6:.1f} MB of distinct text: {whole / said:.2f}")


def tables_of(path: Path) -> tuple[Counter[str], int]:
    """The bytes of a run's tables and indexes, and those of the distinct text in it."""
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
        (said,) = connection.execute("SELECT sum(length(CAST(content AS BLOB))) FROM texts").fetchone()
    return Counter(dict(pages)), said


def main() -> None:
    """Measure rate and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--turns", type=int, default=298)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--size", action="store_true", help="measure the file instead")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    dialoom.tune_process()
    load_litellm()
    with tempfile.TemporaryDirectory() as folder:
        write_pool(Path(folder) / "pool.json", arguments.turns)
        if arguments.alone:
            play_job(Path(folder) / "run.db", Path(folder) / "pool.json", arguments)
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            return
        if arguments.size:
            size(Path(folder), arguments)
            return
        compare(Path(folder), arguments)
    memory(arguments)


if __name__ == "__main__":
    main()
