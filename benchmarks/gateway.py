"""The gateway's overhead: its slot utilization, and its CPU time per call relative to bare `litellm.acompletion`.

    python -m benchmarks.gateway [--calls 3000] [--concurrency 128] [--wait 0.3] [--repeat 3] [--client]

A server in a separate process answers every request after a fixed wait. The gateway, with the ledger of a real run
file, sends calls to it concurrently; then a bare asyncio loop sends the same messages through LiteLLM. Both run in this
process, alternately. A slot is busy while the server waits: calls x wait / (seconds x concurrency). CPU time is that of
all threads of this process; the ratio is the median of the ratios within a turn.

Both use LiteLLM's own HTTP handler, which dialoom chooses for its calls. With `--client`, the bare loop uses OpenAI's
client, which is LiteLLM's default.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import dialoom
from benchmarks.quick_server import serving
from dialoom.prompts import ChatMessage
from dialoom.roles import CallPlace, Gateway
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.exchange import HANDLER_VARIABLE
from dialoom.roles.gateway.gateway import GatewaySettings
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.runs.store import RunStore

MODEL = "openai/gpt-4o-mini"


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of one job.

    Attributes:
        seconds: Elapsed time.
        cpu: Seconds of processor time of this process.
    """

    calls: int
    seconds: float
    cpu: float

    def compute_utilization(self, concurrency: int, wait: float) -> float:
        """Return the share of the slots' time in which a call waited for the server."""
        return self.calls * wait / (self.seconds * concurrency)

    @property
    def cpu_per_call(self) -> float:
        """Return the milliseconds of processor time per call."""
        return 1000 * self.cpu / self.calls


def build_messages(number: int) -> tuple[ChatMessage, ...]:
    """Return a request of some 2,000 characters, as in a turn of a dialogue; each is different."""
    profile = "You are the user of an assistant. " + "She likes quiet places and early trains. " * 40
    return (
        {"role": "system", "content": profile},
        {"role": "user", "content": "What can I do for you?"},
        {"role": "assistant", "content": f"A table for {number}, please, and not before eight."},
        {"role": "user", "content": "At which restaurant would you like to eat?"},
    )


async def call_concurrently(calls: int, concurrency: int, call: Callable[[int], Awaitable[None]]) -> Figures:
    """Make calls with limited concurrency."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return Figures(calls, time.perf_counter() - started, time.process_time() - cpu)


async def measure_litellm(calls: int, concurrency: int, *, uses_openai_client: bool) -> Figures:
    """Call LiteLLM alone, with its own HTTP handler or with OpenAI's client."""
    litellm = load_litellm()
    os.environ[HANDLER_VARIABLE] = str(not uses_openai_client)

    async def call(number: int) -> None:
        await litellm.acompletion(
            model=MODEL,
            messages=[{**message} for message in build_messages(number)],
            temperature=0.7,
            seed=number,
            drop_params=True,
            max_retries=0,
            num_retries=0,
        )

    return await call_concurrently(calls, concurrency, call)


async def measure_gateway(calls: int, concurrency: int, folder: Path, turn: int) -> Figures:
    """Make calls through the gateway, with the ledger of a newly planned run; they belong to its first scenarios."""
    os.environ.pop(HANDLER_VARIABLE, None)  # the gateway chooses the handler itself
    path = folder / f"{turn}.db"
    await dialoom.aplan("personalens", path=path, model=MODEL, options={"limit": 50}, seed=7)
    with RunStore(path) as store:
        pending = list(store.queue.pending(store.recipe))
        for work in pending:
            store.queue.begin(work)
        gateway = Gateway(store.ledger, GatewaySettings(concurrency=concurrency))

        async def call(number: int) -> None:
            place = CallPlace(pending[number % len(pending)].thread, "user", number, 0, seed=number)
            request = Request("user", "benchmark/user", MODEL, 0.7, number, build_messages(number))
            await gateway.complete(request, place)

        return await call_concurrently(calls, concurrency, call)


async def measure(arguments: argparse.Namespace, folder: Path) -> list[tuple[Figures, Figures]]:
    """Return pairs of (gateway, bare), one per turn, after short warm-up runs."""
    concurrency = arguments.concurrency
    await measure_litellm(concurrency, concurrency, uses_openai_client=arguments.client)
    await measure_gateway(concurrency, concurrency, folder, turn=0)
    pairs = []
    for turn in range(1, arguments.repeat + 1):
        gateway = await measure_gateway(arguments.calls, concurrency, folder, turn)
        baseline = await measure_litellm(arguments.calls, concurrency, uses_openai_client=arguments.client)
        pairs.append((gateway, baseline))
        for name, figures in (("gateway", gateway), ("LiteLLM", baseline)):
            busy = figures.compute_utilization(concurrency, arguments.wait)
            rate = figures.calls / figures.seconds
            print(f"{turn}: {name}  {rate:7.1f} calls/s  {busy:5.1%} busy  {figures.cpu_per_call:.2f} ms CPU per call")
    return pairs


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--wait", type=float, default=0.3, metavar="SECONDS")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--client", action="store_true", help="the bare loop with OpenAI's client")
    arguments = parser.parse_args()
    with serving(arguments.wait) as (address, _), tempfile.TemporaryDirectory() as name:
        os.environ |= {"OPENAI_API_BASE": address, "OPENAI_API_KEY": "none-is-needed"}
        pairs = asyncio.run(measure(arguments, Path(name)))
    utilization = statistics.median(
        gateway.compute_utilization(arguments.concurrency, arguments.wait) for gateway, _ in pairs
    )
    ratio = statistics.median(gateway.cpu_per_call / baseline.cpu_per_call for gateway, baseline in pairs)
    difference = statistics.median(gateway.cpu_per_call - baseline.cpu_per_call for gateway, baseline in pairs)
    rate = statistics.median(baseline.seconds / gateway.seconds for gateway, baseline in pairs)
    sender = "OpenAI's client" if arguments.client else "the same HTTP handler"
    print(f"slots busy: {utilization:.1%}; beside bare LiteLLM with {sender}: {rate:.2f} x its calls per second,")
    print(f"CPU per call {ratio:.2f} x its own, which is {difference:+.2f} ms")


if __name__ == "__main__":
    main()
