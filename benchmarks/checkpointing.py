"""Checkpointing of every node transition: no saver, LangGraph's InMemorySaver and AsyncSqliteSaver, and dialoom's.

    python benchmarks/checkpointing.py [--dialogues 100] [--rounds 10] [--concurrency 50] [--repeat 9] [--many 2000]
                                       [--durability sync|async] [--profile-bytes 8000] [--message-bytes 700]

One process, one event loop, one graph: two nodes that alternate, with one message each (all different), and a profile
in the state (a different one in each dialogue). The nodes do nothing else, so LangGraph and the saver are measured. The
savers alternate, in this order and then in reverse; rates are medians over the repetitions, ratios are medians of the
ratios within a repetition.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import operator
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from dialoom.runs.store.checkpoints import RunSaver

Saver = BaseCheckpointSaver[Any]
Opener = Callable[[Path], AbstractAsyncContextManager["Saver | None"]]
WORDS = "she asked once for a table near the window and later for a quiet seat with an early train to the coast".split()
"""Words for texts that resemble prose and never repeat."""


class State(TypedDict):
    """The state of a dialogue in its checkpoints."""

    profile: dict[str, str]
    messages: Annotated[list[AnyMessage], operator.add]


def make_text(seed: str, size: int) -> str:
    """Return a text of a size in bytes, unique to the seed."""
    draw = random.Random(seed)
    return (seed + " " + " ".join(draw.choices(WORDS, k=size // 3)))[:size]


def make_profile(number: int, size: int) -> dict[str, str]:
    """Return a person's profile: sections of some 400 bytes."""
    parts = max(size // 400, 1)
    return {f"section {part}": make_text(f"profile {number}.{part}", size // parts - 14) for part in range(parts)}


def build_graph(rounds: int, message_bytes: int) -> StateGraph[State]:
    """Build a graph in which user and assistant alternate for a number of rounds."""

    async def user(state: State) -> dict[str, Any]:
        place = f"{state['profile']['section 0'][:24]} u{len(state['messages'])}"
        return {"messages": [HumanMessage(make_text(place, message_bytes), id=place)]}

    async def assistant(state: State) -> dict[str, Any]:
        place = f"{state['profile']['section 0'][:24]} a{len(state['messages'])}"
        return {"messages": [AIMessage(make_text(place, message_bytes), id=place)]}

    def should_continue(state: State) -> str:
        return END if len(state["messages"]) >= 2 * rounds else "user"

    graph = StateGraph(State)
    graph.add_node("user", user)
    graph.add_node("assistant", assistant)
    graph.add_edge(START, "user")
    graph.add_edge("user", "assistant")
    graph.add_conditional_edges("assistant", should_continue, ["user", END])
    return graph


async def play(saver: Saver | None, dialogues: range, rounds: int, options: argparse.Namespace) -> float:
    """Play a range of dialogues concurrently; return the seconds that it took."""
    graph = build_graph(rounds, options.message_bytes).compile(checkpointer=saver)
    numbers = iter(dialogues)

    async def worker() -> None:
        for number in numbers:
            config: Any = {"configurable": {"thread_id": f"dialogue-{number:05}"}, "recursion_limit": 10_000}
            begin: Any = {"profile": make_profile(number, options.profile_bytes), "messages": []}
            durability: Any = {} if saver is None else {"durability": options.durability}
            await graph.ainvoke(begin, config, **durability)

    os.sync()  # so that no saver has to wait for the writes of the previous one
    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(options.concurrency)))
    return time.perf_counter() - start


@asynccontextmanager
async def open_no_saver(_path: Path) -> AsyncIterator[None]:
    """Yield no saver."""
    yield None


@asynccontextmanager
async def open_in_memory_saver(_path: Path) -> AsyncIterator[Saver]:
    """Yield LangGraph's in-memory saver."""
    yield InMemorySaver()


@asynccontextmanager
async def open_async_sqlite_saver(path: Path) -> AsyncIterator[Saver]:
    """Yield LangGraph's SQLite saver."""
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        yield saver


@asynccontextmanager
async def open_dialoom_saver(path: Path) -> AsyncIterator[Saver]:
    """Yield dialoom's saver."""
    async with RunSaver.open(path) as saver:
        yield saver


SAVERS: dict[str, Opener] = {
    "no saver": open_no_saver,
    "InMemorySaver": open_in_memory_saver,
    "AsyncSqliteSaver": open_async_sqlite_saver,
    "ours": open_dialoom_saver,
}


async def measure(
    name: str, folder: Path, dialogues: int, rounds: int, options: argparse.Namespace
) -> tuple[float, int]:
    """Return transitions per second and the bytes of the closed file."""
    gc.collect()
    path = folder / "run.db"
    async with SAVERS[name](path) as saver:
        seconds = await play(saver, range(dialogues), rounds, options)
    size = sum(file.stat().st_size for file in folder.iterdir())
    for file in folder.iterdir():
        file.unlink()
    return dialogues * rounds * 2 / seconds, size


async def compare(folder: Path, options: argparse.Namespace) -> None:
    """Measure all savers alternately, repeatedly."""
    rates: dict[str, list[float]] = {name: [] for name in SAVERS}
    sizes: dict[str, int] = {}
    await measure("ours", folder, 4, options.rounds, options)  # imports and caches
    names = list(SAVERS)
    for repetition in range(options.repeat):
        for name in reversed(names) if repetition % 2 else names:
            rate, sizes[name] = await measure(name, folder, options.dialogues, options.rounds, options)
            rates[name].append(rate)
    text_bytes = options.profile_bytes + 2 * options.rounds * options.message_bytes
    print(f"{options.dialogues} dialogues of {2 * options.rounds} transitions, {options.concurrency} at a time")
    print(f"{'saver':18}{'transitions/s':>14}{'(lowest':>10}{'highest)':>10}{'bytes/dialogue':>16}{'x text':>8}")
    for name, saver_rates in rates.items():
        size = sizes[name] / options.dialogues
        disk = f"{size:16,.0f}{size / text_bytes:8.2f}" if size else f"{'-':>16}{'-':>8}"
        low, median, high = min(saver_rates), statistics.median(saver_rates), max(saver_rates)
        print(f"{name:18}{median:14,.0f}{low:10,.0f}{high:10,.0f}{disk}")
    for other, target in (("no saver", None), ("InMemorySaver", 0.85), ("AsyncSqliteSaver", 3.5)):
        pairs = zip(rates["ours"], rates[other], strict=True)
        ratio = statistics.median(dialoom_rate / other_rate for dialoom_rate, other_rate in pairs)
        print_ratio("ours / " + other, ratio, target)
    print_ratio("bytes / UTF-8 bytes of the text", sizes["ours"] / options.dialogues / text_bytes, -2.5)


async def measure_growth(folder: Path, options: argparse.Namespace) -> None:
    """Measure the size of a dialogue with four times the rounds."""
    dialogues = max(options.dialogues // 5, 1)
    _, short = await measure("ours", folder, dialogues, options.rounds, options)
    _, long = await measure("ours", folder, dialogues, 4 * options.rounds, options)
    print_ratio(f"bytes of {4 * options.rounds} rounds / {options.rounds} rounds", long / short, -4.4)


async def compare_growing_file(folder: Path, options: argparse.Namespace) -> None:
    """Measure whether the rate holds while a file grows to many dialogues, alternating with few in a new file.

    Both see the same load of the machine and equally many garbage collections. (A full collection before each run of
    few would delay the next one until most of them are finished.)
    """

    async def in_new_file() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as run_folder:
            async with open_dialoom_saver(Path(run_folder) / "run.db") as saver:
                return await play(saver, range(options.dialogues), options.rounds, options)

    ratios: list[float] = []
    final_ratios: list[float] = []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory(dir=folder) as run_folder:
            async with open_dialoom_saver(Path(run_folder) / "run.db") as growing:
                new_file_seconds: list[float] = []
                growing_file_seconds: list[float] = []
                for first in range(0, options.many, options.dialogues):
                    dialogues = range(first, first + options.dialogues)
                    if len(new_file_seconds) % 2:
                        new_file_seconds.append(await in_new_file())
                    growing_file_seconds.append(await play(growing, dialogues, options.rounds, options))
                    if len(new_file_seconds) < len(growing_file_seconds):
                        new_file_seconds.append(await in_new_file())
        ratios.append(sum(new_file_seconds) / sum(growing_file_seconds))
        last = len(growing_file_seconds) // 4 or 1
        final_ratios.append(sum(new_file_seconds[-last:]) / sum(growing_file_seconds[-last:]))
    title = f"rate of {options.many} / {options.dialogues} dialogues"
    print_ratio(f"{title} ({min(ratios):.2f} to {max(ratios):.2f})", statistics.median(ratios), 0.9)
    print_ratio(
        f"the last quarter of them ({min(final_ratios):.2f} to {max(final_ratios):.2f})",
        statistics.median(final_ratios),
        None,
    )


def measure_memory(options: argparse.Namespace) -> None:
    """Measure the peak memory of many dialogues and of three times as many, each in its own process."""
    peaks: list[float] = []
    for dialogues in (options.many, 3 * options.many):
        command = [sys.executable, __file__, "--alone", "--dialogues", dialogues, "--rounds", options.rounds]
        command += ["--concurrency", options.concurrency, "--profile-bytes", options.profile_bytes]
        command += ["--message-bytes", options.message_bytes, "--durability", options.durability]
        result = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        peaks.append(float(result.stdout))
        print(f"{dialogues} dialogues: {peaks[-1]:.1f} MiB at the peak")
    print_ratio(f"peak memory of {3 * options.many} / {options.many} dialogues", peaks[1] / peaks[0], -1.1)


async def print_peak_memory(folder: Path, options: argparse.Namespace) -> None:
    """Play with dialoom's saver only, for `measure_memory`, and print the peak in MiB."""
    await measure("ours", folder, options.dialogues, options.rounds, options)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def print_ratio(title: str, value: float, target: float | None) -> None:
    """Print a ratio and its target: a lower bound, or an upper bound if negative."""
    if target is None:
        print(f"{title:48}{value:6.2f}")
        return
    is_met = value >= target if target > 0 else value <= -target
    bound = f"{'at least' if target > 0 else 'at most'} {abs(target)}"
    print(f"{title:48}{value:6.2f}   {bound}: {'yes' if is_met else 'NO'}")


def main() -> None:
    """Parse the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10, help="a round is two transitions")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--profile-bytes", type=int, default=8000)
    parser.add_argument("--message-bytes", type=int, default=700)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument(
        "--durability",
        choices=["async", "sync"],
        default="sync",
        help="LangGraph's: whether a step waits for its checkpoint",
    )
    parser.add_argument("--many", type=int, help="also compare with this number of dialogues (takes minutes)")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.alone:
            asyncio.run(print_peak_memory(Path(folder), options))
            return
        asyncio.run(compare(Path(folder), options))
        asyncio.run(measure_growth(Path(folder), options))
        if options.many:
            asyncio.run(compare_growing_file(Path(folder), options))
            measure_memory(options)


if __name__ == "__main__":
    main()
