"""The overhead of orchestration: a PersonaLens job relative to a bare asyncio loop with the same LiteLLM calls.

    python -m benchmarks.orchestration [--scenarios 120] [--concurrency 16] [--wait 0.02] [--repeat 7]

The job is first played on the offline model, which gives the replies. A server in a separate process then answers every
request after a fixed wait. The job is played with the server as its model (planning, graph, checkpoints, ledger,
judgements, outcomes), alternating with a loop that only makes the same requests through LiteLLM with the same HTTP
handler: the calls of a scenario in sequence, and equally many scenarios concurrently. The results are the medians of
the ratios and differences within a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dialoom
from benchmarks.quick_server import request_key, serving
from dialoom.roles.gateway.exchange import HANDLER_VARIABLE
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.wire import convert_messages
from dialoom.runs.store.passages import make_passage_reader, read_messages

MODEL = "openai/recorded"


class ProcessTime(NamedTuple):
    """The time of a job.

    Attributes:
        seconds: Elapsed time.
        processor: Seconds of processor time of this process.
    """

    seconds: float
    processor: float


def measure_time(job: Callable[[], object]) -> ProcessTime:
    """Return the time that a job takes."""
    started, processor = time.perf_counter(), time.process_time()
    job()
    return ProcessTime(time.perf_counter() - started, time.process_time() - processor)


def read_requests(path: Path) -> tuple[list[list[dict[str, Any]]], dict[str, dict[str, str]]]:
    """Return the run's requests by scenario, and the recorded replies by `request_key`."""
    by_scenario: dict[int, list[dict[str, Any]]] = {}
    replies = {}
    with closing(sqlite3.connect(path)) as connection:
        texts = dict(connection.execute("SELECT id, content FROM texts").fetchall())
        rows = connection.execute("SELECT scenario, temperature, seed, messages, reply FROM calls ORDER BY id")
        for scenario, temperature, seed, packed, reply in rows.fetchall():
            turns = [(role, texts[id_]) for role, id_, *_ in read_messages(packed, make_passage_reader(connection))]
            messages = convert_messages(tuple({"role": role, "content": content} for role, content in turns))
            call = {"model": MODEL, "messages": messages, "temperature": temperature, "seed": seed}
            by_scenario.setdefault(scenario, []).append(call)
            replies[request_key(messages, seed)] = {"content": texts.get(reply, "")}
    return list(by_scenario.values()), replies


def send_bare(requests: list[list[dict[str, Any]]], concurrency: int) -> None:
    """Make the same calls without anything else."""
    litellm = load_litellm()

    async def run() -> None:
        slots = asyncio.Semaphore(concurrency)

        async def scenario(calls: list[dict[str, Any]]) -> None:
            async with slots:
                for call in calls:
                    await litellm.acompletion(**call, drop_params=True, max_retries=0, num_retries=0)

        await asyncio.gather(*(scenario(calls) for calls in requests))

    asyncio.run(run())


def compare(play: Callable[[Path, str | None], None], folder: Path, arguments: argparse.Namespace) -> None:
    """Measure a job and the bare loop alternately; print the ratios.

    Args:
        play: Plays the job into a new run, with the offline model or with the named one.
        folder: The folder for runs.
        arguments: `concurrency`, `wait` and `repeat`.
    """
    dialoom.tune_process()
    load_litellm()
    os.environ |= {"OPENAI_API_KEY": "none-is-needed", HANDLER_VARIABLE: "true"}
    play(folder / "offline.db", None)
    requests, replies = read_requests(folder / "offline.db")
    (folder / "replies.json").write_text(json.dumps(replies), encoding="utf-8")
    jobs: list[ProcessTime] = []
    loops: list[ProcessTime] = []
    with serving(arguments.wait, folder / "replies.json") as (address, _):
        os.environ["OPENAI_API_BASE"] = address
        for number in range(arguments.repeat + 1):
            job = measure_time(partial(play, folder / f"{number}.db", MODEL))
            loop = measure_time(partial(send_bare, requests, arguments.concurrency))
            if number:  # the first round warms both up
                jobs.append(job)
                loops.append(loop)
    calls = sum(map(len, requests))
    print(f"{calls} calls, {arguments.concurrency} at once")
    for title, times in (("the job:  ", jobs), ("bare loop:", loops)):
        seconds, processor = map(statistics.median, zip(*times, strict=True))
        print(
            f"{title} {seconds:6.2f} s {calls / seconds:7.0f} calls/s {1000 * processor / calls:6.2f} ms of CPU a call"
        )
    pairs = list(zip(jobs, loops, strict=True))
    ratios = [loop.seconds / job.seconds for job, loop in pairs]
    overheads = [1000 * (job.processor - loop.processor) / calls for job, loop in pairs]
    for title, values in (
        ("rate of the job / rate of the bare loop", ratios),
        ("ms of CPU a call beyond it", overheads),
    ):
        print(f"{title}: {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


def main() -> None:
    """Measure the PersonaLens job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", type=int, default=120)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--wait", type=float, default=0.02, metavar="SECONDS")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    options = {"limit": arguments.scenarios, "setting": ["base", "I"]}

    def play(path: Path, model: str | None) -> None:
        run = dialoom.play(
            "personalens", path=path, model=model, options=options, seed=7, concurrency=arguments.concurrency
        )
        if run.status().failed:
            raise RuntimeError("a scenario failed: the figures would compare different things")

    with tempfile.TemporaryDirectory() as folder:
        compare(play, Path(folder), arguments)


if __name__ == "__main__":
    main()
