"""Several processes: what a second worker brings, what the first one costs, and where more of them meet a wall.

    python benchmarks/scale.py [--pairs 40] [--methods 10] [--repeat 3] [--latency 0.3] [--skip-served]

Three parts. *Served*: one run by this process alone, by one worker and by two, in turns, against a model on a server
process of its own that answers after 0.3 s; calls per second are the server's own count over the middle of each run, so
that starting Ray, which takes seconds once, is not in them. *Costs*: what the run's own process spends on a scenario
(dealing it, folding what came back), and the process that lends out the budget on a call, in seconds of processor time,
measured on the same machine. *Simulated*: with these costs, the full plan of 122,133 scenarios in virtual time on 1 to
1,000 workers.
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
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dialoom
from dialoom.roles.gateway.budget import Budget, Taken
from dialoom.runs.store import RunStore
from dialoom.runs.store.parcels import pack
from dialoom.runs.workers.cluster import manners
from dialoom.runs.workers.commons import Commons
from dialoom.runs.workers.purse import LeaseStanding

RECIPE = f"{Path(__file__).parent}/long_requests.py:Recalling"
PLAN = 122_133
SERVER = """
import asyncio, json, sys, time
times = []
async def handle(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = 0
            for line in head.split(b"\\r\\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            await reader.readexactly(length)
            if head.startswith(b"GET"):
                body = json.dumps(times).encode()
                times.clear()
            else:
                await asyncio.sleep(float(sys.argv[1]))
                times.append(time.monotonic())
                usage = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
                message = {"role": "assistant", "content": "That is how it is."}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                body = json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m",
                                   "choices": [choice], "usage": usage}).encode()
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n")
            writer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def serving(latency: float) -> Iterator[str]:
    """The model, on a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(latency)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()


def rate(url: str) -> float:
    """Answers per second over the middle eight tenths of those since this was asked last."""
    with urllib.request.urlopen(url) as response:
        times: list[float] = sorted(json.load(response))
    middle = times[len(times) // 10 : -len(times) // 10]
    return (len(middle) - 1) / (middle[-1] - middle[0])


def served(options: dict[str, int], repeat: int, latency: float, concurrency: int) -> None:
    """The rates of one process alone, one worker and two, in turns."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    rates: dict[int | None, list[float]] = {None: [], 1: [], 2: []}
    with serving(latency) as url, tempfile.TemporaryDirectory() as folder:
        for turn in range(repeat):
            for workers, found in rates.items():
                dialoom.play(
                    RECIPE,
                    path=Path(folder) / f"{turn}-{workers}.db",
                    options=options,
                    models={"assistant": "openai/m"},
                    api_base=url,
                    concurrency=concurrency,
                    workers=workers,
                )
                found.append(rate(url))
            alone, one, two = (found[-1] for found in rates.values())
            print(f"  turn {turn + 1}: alone {alone:.0f}, 1 worker {one:.0f} ({one / alone:.2f} of alone), "
                  f"2 workers {two:.0f} ({two / one:.2f} of one)")  # fmt: skip
    pairs = list(zip(rates[None], rates[1], rates[2], strict=True))
    print(f"  medians: 1 worker {statistics.median(b / a for a, b, _ in pairs):.2f} of alone, "
          f"2 workers {statistics.median(c / b for _, b, c in pairs):.2f} of one")  # fmt: skip


class Costs:
    """Seconds of processor time, and bytes, of one judged PersonaLens dialogue."""

    play = deal = fold = lease = 0.0
    calls = sent = back = 0.0


async def costs(scenarios: int) -> Costs:
    """Play some dialogues offline, then deal them and fold them into another file of the same plan."""
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
            dealt = await main.deals.deal(works)
            found.sent = len(pickle.dumps(dealt)) / scenarios
            found.deal = (time.process_time() - started) / scenarios
            await worker.deals.receive([])
            back = [
                pack(worker._reader, work.position, work.thread, parcel.deal, is_dealt=False)
                for work, parcel in zip(works, dealt, strict=True)
            ]
            data = [pickle.dumps(parcel) for parcel in back]
            found.back = sum(map(len, data)) / scenarios
            started = time.process_time()
            for each in data:
                assert await main.deals.fold([pickle.loads(each)])
            found.fold = (time.process_time() - started) / scenarios
            found.lease = await lease(main.path)
    return found


async def lease(path: Path, calls: int = 20_000) -> float:
    """What one request for a part of the budget takes at who lends it, without what Ray takes to carry it."""
    commons = Commons(path, Budget(max_calls=10**9), Taken(), 64, None)
    standing = LeaseStanding()
    started = time.process_time()
    for number in range(calls):
        await commons.lend(f"w{number % 64}", Taken(1), standing)
    return (time.process_time() - started) / calls


def carried(messages: int = 300) -> float:
    """Seconds of this process's own time for a message to an actor and its answer."""
    import ray

    class Echo:
        async def say(self, said: bytes) -> int:
            return len(said)

    with manners():
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


def simulated(workers: int, seconds: float, at_once: int, each: float, message: float) -> tuple[float, float, float]:
    """The whole plan in virtual time: hours, how busy the owner is, how busy the workers' places are.

    Args:
        workers: How many.
        seconds: Of a conversation, at a worker that has as many under way as it can.
        at_once: Conversations under way at a worker.
        each: Seconds that the owner spends on a scenario.
        message: Seconds that it spends on a message; there is one for each that comes back, at most 50 a second of a
            worker.
    """
    left, owner_free, owner_busy, busy = PLAN, 0.0, 0.0, 0.0
    under_way: list[float] = []
    places = workers * at_once
    per_message = max(1.0, at_once / seconds / 50)
    service = each + message / per_message
    for number in range(min(places, left)):
        # As conversations differ, they do not end together.
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
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--methods", type=int, default=10)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--scenarios", type=int, default=40)
    parser.add_argument("--skip-served", action="store_true")
    chosen = parser.parse_args()
    if not chosen.skip_served:
        print("served (answers per second, by the server's count):")
        options = {"pairs": chosen.pairs, "methods": chosen.methods, "turns": chosen.turns}
        served(options, chosen.repeat, chosen.latency, chosen.concurrency)
    found = asyncio.run(costs(chosen.scenarios))
    message = carried()
    print("costs (milliseconds of processor time, of a judged PersonaLens dialogue):")
    print(f"  played in {found.play * 1e3:.0f}, {found.calls:.0f} calls; dealt in {found.deal * 1e3:.2f} "
          f"({found.sent / 1e3:.1f} kB), folded in {found.fold * 1e3:.2f} ({found.back / 1e3:.1f} kB)")  # fmt: skip
    print(f"  a message to an actor and back {message * 1e3:.2f}; a part of the budget {found.lease * 1e6:.0f} µs")
    # A call takes the latency, or where a worker's processor is the bottleneck, its part of that.
    at_once = 16
    seconds = max(found.calls * chosen.latency, at_once * found.play)
    each = found.deal + found.fold
    print(f"simulated ({PLAN:,} scenarios, {at_once} at once a worker, {seconds:.1f} s each there):")
    for workers in (1, 4, 16, 64, 256, 1000):
        hours, owner, places = simulated(workers, seconds, at_once, each, message)
        print(f"  {workers:5,} workers: {hours:7.2f} h, the owner at work {owner:.0%}, workers' places {places:.0%}")
    rate_each = at_once / seconds
    lending = (found.lease + message) * rate_each * found.calls
    print(f"walls: the owner at {1 / ((each + message) * rate_each):,.0f} workers (dealing alone "
          f"{1 / (found.deal * rate_each):,.0f}, folding alone {1 / (found.fold * rate_each):,.0f}); "
          f"who lends the budget, asked for each call as near its end, at {1 / lending:,.0f}, for 64 calls at once at "
          f"{64 / lending:,.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
