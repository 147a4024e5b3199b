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

Used = dict[str, float]
"""Seconds of processor time by process."""


class Watch(threading.Thread):
    """A thread that samples the processor time of a command and of the processes that it has started."""

    def __init__(self, command: int, server: int) -> None:
        super().__init__(daemon=True)
        self._command, self._server = command, server
        self._seen: list[tuple[float, Used]] = []
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        """Sample until `end` is called."""
        by_process: dict[int, tuple[str, float]] = {}
        while not self._over.wait(SAMPLE_INTERVAL):
            by_process |= dict(processes(self._command, self._server))
            used: Used = {}
            for kind, seconds in by_process.values():
                used[kind] = used.get(kind, 0.0) + seconds
            self._seen.append((time.monotonic(), used))

    def end(self, since: float, until: float) -> Used:
        """Stop; return the processor time between two moments, in processors used."""
        self._over.set()
        self.join()
        within = [(at, used) for at, used in self._seen if since <= at <= until]
        (begun, before), (ended, after) = within[0], within[-1]
        return {kind: (after[kind] - before.get(kind, 0.0)) / (ended - begun) for kind in after}


def processes(command: int, server: int) -> Iterator[tuple[int, tuple[str, float]]]:
    """Yield the relevant processes, each with its kind and its processor time in seconds."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_text()
                kind = "workers" if line.startswith("ray::Worker") else "Ray"
                kind = "shared state" if line.startswith("ray::SharedState") else kind
                parents[int(entry.name)] = int(stat[1])
                found[int(entry.name)] = kind, (int(stat[11]) + int(stat[12])) / TICKS
    for pid, (kind, seconds) in found.items():
        above = pid
        while above > 1 and above != command:
            above = parents.get(above, 0)
        if pid in (command, server):
            yield pid, ("the command" if pid == command else "the server", seconds)
        elif above == command:
            yield pid, (kind, seconds)


def rate_of_command(path: Path, url: str, server: int, workers: int, chosen: argparse.Namespace) -> tuple[float, Used]:
    """Play one run by a command; return answers per second over the middle eight tenths, and the CPU used by kind."""
    arguments = ["run", "personalens", "--limit", chosen.served, "--turn-limit", chosen.turns, "-o", path]
    arguments += ["--model", "openai/m", "--api-base", url, "--concurrency", chosen.concurrency]
    command = subprocess.Popen(
        [sys.executable, "-m", "dialoom", *map(str, arguments), *(("--workers", str(workers)) if workers else ())],
        env=os.environ | {"OPENAI_API_KEY": "none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    watch = Watch(command.pid, server)
    if command.wait():
        raise RuntimeError(f"the run ended with {command.returncode}: the figures would compare different things")
    with urllib.request.urlopen(url) as response:
        times: list[float] = sorted(json.load(response))
    middle = times[len(times) // 10 : -len(times) // 10]
    return (len(middle) - 1) / (middle[-1] - middle[0]), watch.end(middle[0], middle[-1])


def served(chosen: argparse.Namespace) -> None:
    """Measure the rates of one process alone, one worker and two, alternately."""
    rates: dict[int, list[float]] = {0: [], 1: [], 2: []}
    used: dict[int, Used] = {}
    with serving(chosen.latency) as (url, server), tempfile.TemporaryDirectory() as folder:
        for turn in range(chosen.repeat):
            for workers, found in rates.items():
                rate, used[workers] = rate_of_command(
                    Path(folder) / f"{turn}-{workers}.db", url, server, workers, chosen
                )
                found.append(rate)
            alone, one, two = (found[-1] for found in rates.values())
            print(f"  turn {turn + 1}: alone {alone:.0f}, 1 worker {one:.0f} ({one / alone:.2f} of alone), "
                  f"2 workers {two:.0f} ({two / one:.2f} of one)", flush=True)  # fmt: skip
    alone, one, two = (statistics.median(found) for found in rates.values())
    print(f"  medians: 1 worker {one / alone:.2f} of alone, 2 workers {two / one:.2f} of one")
    print("  in parts of a processor, in the last turn:")
    for workers, name in ((0, "alone"), (1, "1 worker"), (2, "2 workers")):
        parts = sorted(used[workers].items(), key=lambda each: -each[1])
        took = ", ".join(f"{kind} {part:.2f}" for kind, part in parts)
        print(f"    {name}: {took}; a call {sum(used[workers].values()) / rates[workers][-1] * 1e3:.1f} ms")
    others = sum(part for kind, part in used[2].items() if kind != "workers")
    print(f"  two processors less all but the workers, {others:.2f}, are at most {(os.cpu_count() or 1) - others:.2f} "
          "of one worker's processor")  # fmt: skip


class Costs:
    """The costs of one judged PersonaLens dialogue, in seconds of processor time and bytes."""

    play = leasing = fold = lease = 0.0
    calls = sent = back = 0.0


async def costs(scenarios: int) -> Costs:
    """Play some dialogues offline, then transfer them and merge them into another file of the same plan."""
    found = Costs()
    with tempfile.TemporaryDirectory() as folder:
        told: dict[str, Any] = {"options": {"setting": ("I",)}, "sample": scenarios, "seed": 5}
        await dialoom.aplay("personalens", path=Path(folder) / "first.db", **told | {"sample": 1})  # imports
        empty = await dialoom.aplan("personalens", path=Path(folder) / "main.db", **told)
        started = time.process_time()
        played = await dialoom.aplay("personalens", path=Path(folder) / "played.db", **told)
        found.play = (time.process_time() - started) / scenarios
        found.calls = played.status().usage.calls / scenarios
        with RunStore(empty.path) as main, RunStore(played.path) as worker:
            works = list(main.queue.pending(main.recipe))
            started = time.process_time()
            leased = await main.leases.lease(works)
            found.sent = len(pickle.dumps(leased)) / scenarios
            found.leasing = (time.process_time() - started) / scenarios
            await worker.leases.receive([])
            back = [
                pack(worker._reader, work.position, work.thread, transfer.lease, is_leased=False)
                for work, transfer in zip(works, leased, strict=True)
            ]
            data = [pickle.dumps(transfer) for transfer in back]
            found.back = sum(map(len, data)) / scenarios
            started = time.process_time()
            for each in data:
                assert await main.leases.fold([pickle.loads(each)])
            found.fold = (time.process_time() - started) / scenarios
            found.lease = await lease(main.path)
    return found


async def lease(path: Path, calls: int = 20_000) -> float:
    """Return the processor time of one budget lease at the lender, without the cost of Ray's message."""
    shared = SharedState(path, Budget(max_calls=10**9), Spend(), 64, None)
    standing = LeaseState()
    started = time.process_time()
    for number in range(calls):
        await shared.lend(f"w{number % 64}", Spend(1), standing)
    return (time.process_time() - started) / calls


def message_cost(messages: int = 300) -> float:
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


def scenarios_per_transfer(at_once: int, rate: float) -> float:
    """Return the number of scenarios that a worker with a given rate returns in one transfer; see `Worker.report`."""
    ahead = at_once // 4 + 1
    return max(1.0, min(ahead - ahead // 2, rate * TRANSFER_INTERVAL))


def simulated(workers: int, seconds: float, at_once: int, service: float) -> tuple[float, float, float]:
    """Simulate the whole plan in virtual time; return hours, the owner's load, and the workers' load.

    Args:
        workers: The number of workers.
        seconds: The duration of a conversation at a worker with its maximum concurrency.
        at_once: The concurrent conversations of a worker.
        service: Seconds that the owner spends on a scenario: transfer, merge, and its share of the messages.
    """
    left, owner_free, owner_busy, busy = PLAN, 0.0, 0.0, 0.0
    under_way: list[float] = []
    places = workers * at_once
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
    chosen = parser.parse_args()
    if not chosen.skip_served:
        print("served (answers per second, by the server's count):")
        served(chosen)
    found = asyncio.run(costs(chosen.scenarios))
    message = message_cost()
    print("costs (milliseconds of processor time, of a judged PersonaLens dialogue):")
    print(f"  played in {found.play * 1e3:.0f}, {found.calls:.0f} calls; leased in {found.leasing * 1e3:.2f} "
          f"({found.sent / 1e3:.1f} kB), folded in {found.fold * 1e3:.2f} ({found.back / 1e3:.1f} kB)")  # fmt: skip
    print(f"  a message to an actor and back {message * 1e3:.2f}; a part of the budget {found.lease * 1e6:.0f} µs")
    # A call takes the latency, or its share of the worker's processor if that is the bottleneck.
    at_once = 16
    seconds = max(found.calls * chosen.latency, at_once * found.play)
    rate_each = at_once / seconds
    each = (
        found.leasing + found.fold + 2 * message / scenarios_per_transfer(at_once, rate_each)
    )  # a report, and the transfer in return
    print(f"simulated ({PLAN:,} scenarios, {at_once} at once a worker, {seconds:.1f} s each there):")
    for workers in (1, 4, 16, 64, 256, 1000):
        hours, owner, places = simulated(workers, seconds, at_once, each)
        print(f"  {workers:5,} workers: {hours:7.2f} h, the owner at work {owner:.0%}, workers' places {places:.0%}")
    lending = (found.lease + message) * rate_each * found.calls
    print(f"limits: the owner at {1 / (each * rate_each):,.0f} workers (leasing alone "
          f"{1 / (found.leasing * rate_each):,.0f}, merging alone {1 / (found.fold * rate_each):,.0f}); "
          f"the budget's lender, asked for each call near its end, at {1 / lending:,.0f}, for 64 calls at once "
          f"at {64 / lending:,.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
