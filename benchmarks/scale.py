"""Several processes: the gain from a second worker, the cost of the first one, and the limit of adding more.

    .venv-ray/bin/python -m benchmarks.scale [--served 288] [--turns 5] [--repeat 3] [--latency 0.3]
        [--scenarios 40] [--skip-served]

There are three parts. *Served*: one run by the command alone, with one worker and with two, alternately, against a
model on a server process that answers after 0.3 s. Calls per second are counted by the server over the middle of each
run, so that the start of Ray, which takes seconds once, is not included. The processor time of each process in that
period shows how much was available (read from /proc, so on Linux only). *Costs*: the processor time that the run's own
process spends on a scenario (transferring it, merging its result), and that the process that leases the budget spends
on a call, measured on the same machine. *Simulated*: with these costs, the full plan of 122,133 scenarios in virtual
time on 1 to 1,000 workers.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dialoom
from benchmarks.quick_server import serving
from dialoom.roles.gateway.budget import Spend
from dialoom.runs.store import RunStore
from dialoom.runs.store.transfer import pack
from dialoom.runs.workers.cluster import ray_settings
from dialoom.runs.workers.shared_budget import LeaseState
from dialoom.runs.workers.shared_state import SharedState
from dialoom.settings import Budget

PLAN = 122_133
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_INTERVAL, TRANSFER_INTERVAL = 1.0, 0.5

ProcessorTime = dict[str, float]
"""Seconds of processor time by process."""


class ProcessMonitor(threading.Thread):
    """A thread that samples the processor time of a command and of the processes that it has started."""

    def __init__(self, command: int, server: int) -> None:
        super().__init__(daemon=True)
        self._command, self._server = command, server
        self._samples: list[tuple[float, ProcessorTime]] = []
        self._is_ended = threading.Event()
        self.start()

    def run(self) -> None:
        """Sample until `stop` is called."""
        by_process: dict[int, tuple[str, float]] = {}
        while not self._is_ended.wait(SAMPLE_INTERVAL):
            by_process |= dict(find_processes(self._command, self._server))
            seconds_by_kind: ProcessorTime = {}
            for kind, seconds in by_process.values():
                seconds_by_kind[kind] = seconds_by_kind.get(kind, 0.0) + seconds
            self._samples.append((time.monotonic(), seconds_by_kind))

    def stop(self, since: float, until: float) -> ProcessorTime:
        """Stop; return the processor time between two moments, in processors used."""
        self._is_ended.set()
        self.join()
        within = [(at, seconds_by_kind) for at, seconds_by_kind in self._samples if since <= at <= until]
        (begun, before), (ended, after) = within[0], within[-1]
        return {kind: (after[kind] - before.get(kind, 0.0)) / (ended - begun) for kind in after}


def find_processes(command: int, server: int) -> Iterator[tuple[int, tuple[str, float]]]:
    """Yield the relevant processes, each with its kind and its processor time in seconds."""
    parents: dict[int, int] = {}
    times: dict[int, tuple[str, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_text()
                kind = "workers" if line.startswith("ray::Worker") else "Ray"
                kind = "shared state" if line.startswith("ray::SharedState") else kind
                parents[int(entry.name)] = int(stat[1])
                times[int(entry.name)] = kind, (int(stat[11]) + int(stat[12])) / TICKS
    for pid, (kind, seconds) in times.items():
        ancestor = pid
        while ancestor > 1 and ancestor != command:
            ancestor = parents.get(ancestor, 0)
        if pid in (command, server):
            yield pid, ("the command" if pid == command else "the server", seconds)
        elif ancestor == command:
            yield pid, (kind, seconds)


def measure_rate(
    path: Path, url: str, server: int, workers: int, arguments: argparse.Namespace
) -> tuple[float, ProcessorTime]:
    """Play one run by a command; return answers per second over the middle eight tenths, and the CPU used by kind."""
    command_line = ["run", "personalens", "--limit", arguments.served, "--turn-limit", arguments.turns, "-o", path]
    command_line += ["--model", "openai/m", "--api-base", url, "--concurrency", arguments.concurrency]
    command = subprocess.Popen(
        [sys.executable, "-m", "dialoom", *map(str, command_line), *(("--workers", str(workers)) if workers else ())],
        env=os.environ | {"OPENAI_API_KEY": "none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    monitor = ProcessMonitor(command.pid, server)
    if command.wait():
        raise RuntimeError(f"the run ended with {command.returncode}: the figures would compare different things")
    with urllib.request.urlopen(url) as response:
        times: list[float] = sorted(json.load(response))
    middle = times[len(times) // 10 : -len(times) // 10]
    return (len(middle) - 1) / (middle[-1] - middle[0]), monitor.stop(middle[0], middle[-1])


def measure_served(arguments: argparse.Namespace) -> None:
    """Measure the rates of one process alone, one worker and two, alternately."""
    rates: dict[int, list[float]] = {0: [], 1: [], 2: []}
    seconds_by_kind: dict[int, ProcessorTime] = {}
    with serving(arguments.latency) as (url, server), tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.repeat):
            for workers, worker_rates in rates.items():
                rate, seconds_by_kind[workers] = measure_rate(
                    Path(folder) / f"{turn}-{workers}.db", url, server, workers, arguments
                )
                worker_rates.append(rate)
            alone, one, two = (values[-1] for values in rates.values())
            print(f"  turn {turn + 1}: alone {alone:.0f}, 1 worker {one:.0f} ({one / alone:.2f} of alone), "
                  f"2 workers {two:.0f} ({two / one:.2f} of one)", flush=True)  # fmt: skip
    alone, one, two = (statistics.median(values) for values in rates.values())
    print(f"  medians: 1 worker {one / alone:.2f} of alone, 2 workers {two / one:.2f} of one")
    print("  in parts of a processor, in the last turn:")
    for workers, name in ((0, "alone"), (1, "1 worker"), (2, "2 workers")):
        parts = sorted(seconds_by_kind[workers].items(), key=lambda each: -each[1])
        summary = ", ".join(f"{kind} {part:.2f}" for kind, part in parts)
        print(
            f"    {name}: {summary}; a call {sum(seconds_by_kind[workers].values()) / rates[workers][-1] * 1e3:.1f} ms"
        )
    others = sum(part for kind, part in seconds_by_kind[2].items() if kind != "workers")
    print(f"  two processors less all but the workers, {others:.2f}, are at most {(os.cpu_count() or 1) - others:.2f} "
          "of one worker's processor")  # fmt: skip


class Costs:
    """The costs of one judged PersonaLens dialogue, in seconds of processor time and bytes."""

    play = leasing = fold = lease = 0.0
    calls = sent_bytes = returned_bytes = 0.0


async def measure_costs(scenarios: int) -> Costs:
    """Play some dialogues offline, then transfer them and merge them into another file of the same plan."""
    costs = Costs()
    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"options": {"setting": ("I",)}, "sample": scenarios, "seed": 5}
        await dialoom.aplay("personalens", path=Path(folder) / "first.db", **settings | {"sample": 1})  # imports
        empty = await dialoom.aplan("personalens", path=Path(folder) / "main.db", **settings)
        started = time.process_time()
        played = await dialoom.aplay("personalens", path=Path(folder) / "played.db", **settings)
        costs.play = (time.process_time() - started) / scenarios
        costs.calls = played.status().usage.calls / scenarios
        with RunStore(empty.path) as main, RunStore(played.path) as worker:
            works = list(main.queue.pending(main.recipe))
            started = time.process_time()
            leased = await main.leases.lease(works)
            costs.sent_bytes = len(pickle.dumps(leased)) / scenarios
            costs.leasing = (time.process_time() - started) / scenarios
            await worker.leases.receive([])
            returned = [
                pack(worker._reader, work.position, work.thread, transfer.lease, is_leased=False)
                for work, transfer in zip(works, leased, strict=True)
            ]
            data = [pickle.dumps(transfer) for transfer in returned]
            costs.returned_bytes = sum(map(len, data)) / scenarios
            started = time.process_time()
            for each in data:
                assert await main.leases.merge([pickle.loads(each)])
            costs.fold = (time.process_time() - started) / scenarios
            costs.lease = await measure_lease_seconds(main.path)
    return costs


async def measure_lease_seconds(path: Path, calls: int = 20_000) -> float:
    """Return the processor time of one budget lease at the lender, without the cost of Ray's message."""
    shared = SharedState(path, Budget(max_calls=10**9), Spend(), 64, None)
    standing = LeaseState()
    started = time.process_time()
    for number in range(calls):
        await shared.lend(f"w{number % 64}", Spend(1), standing)
    return (time.process_time() - started) / calls


def measure_message_seconds(messages: int = 300) -> float:
    """Return this process's seconds for a message to an actor and its answer."""
    import ray

    class Echo:
        async def say(self, said: bytes) -> int:
            return len(said)

    with ray_settings():
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        maker: Any = ray.remote(Echo)
        actor = maker.remote()
        ray.get(actor.say.remote(b""))
        said = bytes(500)
        started = time.process_time()
        for _ in range(messages):
            ray.get(actor.say.remote(said))
        return (time.process_time() - started) / messages
    finally:
        ray.shutdown()


def compute_scenarios_per_transfer(concurrency: int, rate: float) -> float:
    """Return the number of scenarios that a worker with a given rate returns in one transfer; see `Worker.report`."""
    ahead = concurrency // 4 + 1
    return max(1.0, min(ahead - ahead // 2, rate * TRANSFER_INTERVAL))


def simulate(workers: int, seconds: float, concurrency: int, service: float) -> tuple[float, float, float]:
    """Simulate the whole plan in virtual time; return hours, the owner's load, and the workers' load.

    Args:
        workers: The number of workers.
        seconds: The duration of a conversation at a worker with its maximum concurrency.
        concurrency: The concurrent conversations of a worker.
        service: Seconds that the owner spends on a scenario: transfer, merge, and its share of the messages.
    """
    left, owner_free, owner_busy, busy = PLAN, 0.0, 0.0, 0.0
    under_way: list[float] = []
    places = workers * concurrency
    for number in range(min(places, left)):
        # Conversations differ, so they do not end together.
        heapq.heappush(under_way, seconds * (0.5 + number % 97 / 97))
    left -= len(under_way)
    now = 0.0
    while under_way:
        now = heapq.heappop(under_way)
        busy += seconds
        owner_free = max(owner_free, now) + service
        owner_busy += service
        if left:
            left -= 1
            heapq.heappush(under_way, owner_free + seconds)
    end = max(now, owner_free)
    return end / 3600, owner_busy / end, min(1.0, busy / (end * places))


def main() -> None:
    """Print all three parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--served", type=int, default=288)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=192)
    parser.add_argument("--scenarios", type=int, default=40)
    parser.add_argument("--skip-served", action="store_true")
    arguments = parser.parse_args()
    if not arguments.skip_served:
        print("served (answers per second, by the server's count):")
        measure_served(arguments)
    costs = asyncio.run(measure_costs(arguments.scenarios))
    message = measure_message_seconds()
    print("costs (milliseconds of processor time, of a judged PersonaLens dialogue):")
    print(f"  played in {costs.play * 1e3:.0f}, {costs.calls:.0f} calls; leased in {costs.leasing * 1e3:.2f} "
          f"({costs.sent_bytes / 1e3:.1f} kB), "
          f"folded in {costs.fold * 1e3:.2f} ({costs.returned_bytes / 1e3:.1f} kB)")  # fmt: skip
    print(f"  a message to an actor and back {message * 1e3:.2f}; a part of the budget {costs.lease * 1e6:.0f} µs")
    # A call takes the latency, or its share of the worker's processor if that is the bottleneck.
    concurrency = 16
    seconds = max(costs.calls * arguments.latency, concurrency * costs.play)
    rate_each = concurrency / seconds
    each = (
        costs.leasing + costs.fold + 2 * message / compute_scenarios_per_transfer(concurrency, rate_each)
    )  # a report, and the transfer in return
    print(f"simulated ({PLAN:,} scenarios, {concurrency} at once a worker, {seconds:.1f} s each there):")
    for workers in (1, 4, 16, 64, 256, 1000):
        hours, owner, places = simulate(workers, seconds, concurrency, each)
        print(f"  {workers:5,} workers: {hours:7.2f} h, the owner at work {owner:.0%}, workers' places {places:.0%}")
    lending = (costs.lease + message) * rate_each * costs.calls
    print(f"limits: the owner at {1 / (each * rate_each):,.0f} workers (leasing alone "
          f"{1 / (costs.leasing * rate_each):,.0f}, merging alone {1 / (costs.fold * rate_each):,.0f}); "
          f"the budget's lender, asked for each call near its end, at {1 / lending:,.0f}, for 64 calls at once "
          f"at {64 / lending:,.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
