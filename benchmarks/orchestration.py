"""The overhead of orchestration: the whole PersonaLens job beside a bare asyncio loop with the same LiteLLM calls.

    python benchmarks/orchestration.py [--scenarios 120] [--concurrency 16] [--repeat 7]

The job is played on the offline model (planning, graph, checkpoints, ledger, judgements, outcomes). Its requests are
then read from the ledger and made again, with the recorded replies, by a loop that does nothing else: a scenario's
calls one after the other, as many scenarios at once. The job's time includes the offline model's own. Both run in this
process, in turn; the median of the ratios within a turn is what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import dialoom
from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.wire import wire_messages
from dialoom.runs.store.connections import open_for_reading


def play_job(path: Path, scenarios: int, concurrency: int) -> float:
    """Play the job into a new run; return its seconds."""
    options = {"limit": scenarios, "setting": ["base", "I"]}
    started = time.perf_counter()
    run = dialoom.play("personalens", path=path, options=options, seed=7, concurrency=concurrency)
    seconds = time.perf_counter() - started
    if run.status().failed:
        raise RuntimeError("a scenario failed: the figures would compare different things")
    return seconds


def requests_of(path: Path) -> list[list[dict[str, Any]]]:
    """Return the run's requests by scenario, with the recorded replies for LiteLLM to answer with."""
    connection = open_for_reading(path)
    texts = dict(connection.execute("SELECT id, content FROM texts").fetchall())
    by_scenario: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute("SELECT scenario, temperature, seed, messages, reply FROM calls ORDER BY id"):
        request: list[ChatMessage] = [
            {"role": role, "content": texts[id_]} for role, id_ in json.loads(row["messages"])
        ]
        messages = wire_messages(tuple(request))
        call = {"messages": messages, "temperature": row["temperature"], "seed": row["seed"]}
        call |= {"model": "openai/recorded", "mock_response": texts.get(row["reply"], "")}
        by_scenario.setdefault(row["scenario"], []).append(call)
    connection.close()
    return list(by_scenario.values())


def send_bare(requests: list[list[dict[str, Any]]], concurrency: int) -> float:
    """Make the same calls and nothing else; return the seconds."""
    litellm = load_litellm()

    async def run() -> None:
        places = asyncio.Semaphore(concurrency)

        async def scenario(calls: list[dict[str, Any]]) -> None:
            async with places:
                for call in calls:
                    await litellm.acompletion(**call, drop_params=True, max_retries=0, num_retries=0)

        await asyncio.gather(*(scenario(calls) for calls in requests))

    started = time.perf_counter()
    asyncio.run(run())
    return time.perf_counter() - started


def main() -> None:
    """Measure both in turn and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", type=int, default=120)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    dialoom.tune_process()
    load_litellm()
    jobs: list[float] = []
    bare: list[float] = []
    calls = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.repeat + 1):
            path = Path(folder) / f"{number}.db"
            job = play_job(path, arguments.scenarios, arguments.concurrency)
            requests = requests_of(path)
            calls = sum(map(len, requests))
            loop = send_bare(requests, arguments.concurrency)
            if number:  # the first round warms both up
                jobs.append(job)
                bare.append(loop)
    job, loop = statistics.median(jobs), statistics.median(bare)
    print(f"{arguments.scenarios} judged dialogues, {calls} calls, {arguments.concurrency} at once")
    print(f"the job:   {job:6.2f} s  {arguments.scenarios / job:7.1f} dialogues/s  {calls / job:7.0f} calls/s")
    print(f"bare loop: {loop:6.2f} s  {arguments.scenarios / loop:7.1f} dialogues/s  {calls / loop:7.0f} calls/s")
    ratios = [loop / job for job, loop in zip(jobs, bare, strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"rate of the job / rate of the bare loop: {statistics.median(ratios):.2f} ({spread})")
    own = statistics.median(job - loop for job, loop in zip(jobs, bare, strict=True))
    print(f"the job beyond the bare loop, with the offline model: {1000 * own / calls:.2f} ms a call")


if __name__ == "__main__":
    main()
