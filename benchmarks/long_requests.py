"""The cost of long requests: preferences and questions, asked with several methods after hundreds of fixed turns.

    python benchmarks/long_requests.py [--pairs 50] [--methods 5] [--turns 298] [--in-state]

Each scenario is one call whose request consists of a preference, the reply to it, the fixed turns and a question. The
fixed turns are the same in all scenarios; each pair has its own preference, with one reply; the methods of a pair
differ in the last message. With `--in-state` the whole conversation is also in the state and in the outcome, as in a
recipe that plays it turn by turn. Measured are the bytes of the file relative to its distinct text, and what another
pair adds to both.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph

import dialoom
from dialoom.graphs import Line, Outcome, Recipe, RecipeOptions, Scenario, Scene, Shared, Stage, WithPrompts, node
from dialoom.graphs.conversation import append_messages, lines, said, to_messages, utterances
from dialoom.prompts import ChatMessage

WORDS = "she asked once for a table near the window and later for a quiet seat with an early train to the coast".split()


def make_text(seed: str, size: int) -> str:
    """Return a text of a size in characters, unique to the seed; one less where a trailing space is removed."""
    draw = random.Random(seed)
    return (seed + " " + " ".join(draw.choices(WORDS, k=size // 3)))[:size].rstrip()


def make_preference(pair: int) -> str:
    """Return the first message of a pair."""
    return make_text(f"p{pair}", 100)


def make_fixed_turns(turns: int) -> tuple[Line, ...]:
    """Return the turns that all requests have in the middle."""
    return tuple(
        Line(role=role, content=make_text(f"{role} {turn}", size))
        for turn in range(turns)
        for role, size in (("user", 150), ("assistant", 700))
    )


async def assistant(messages: list[ChatMessage]) -> str:
    """Return a distinct reply to each preference and a distinct answer to each question."""
    if len(messages) == 1:
        return make_text(f"reply to {messages[0]['content'][:30]}", 300)
    return make_text(f"{messages[-1]['content'][:30]} {messages[1]['content'][:30]}", 1000)


class Options(RecipeOptions):
    """The number and length of requests."""

    pairs: int = 50
    methods: int = 5
    turns: int = 298
    in_state: bool = False


class Item(Scenario):
    """A pair and a method."""

    pair: int
    method: int
    preference: str
    fixed: Shared[tuple[Line, ...]]
    in_state: bool

    def before(self) -> list[BaseMessage]:
        """Return all messages before the question, without the reply to the preference."""
        return to_messages([Line(role="user", content=self.preference), *self.fixed.value])

    @property
    def label(self) -> str:
        """Return the pair and the method."""
        return f"pair {self.pair} method {self.method}"

    def facets(self) -> dict[str, Any]:
        """Return the pair and the method."""
        return {"pair": self.pair, "method": self.method}


class State(TypedDict):
    """The state in a checkpoint."""

    reply: str
    messages: Annotated[list[BaseMessage], append_messages]


async def reply(_state: State, scene: Scene) -> dict[str, Any]:
    """Request the reply to the preference, once for all methods."""
    return {"reply": await scene.ask_common("recalling/reply", preference=scene.scenario.preference)}


async def answer(state: State, scene: Scene) -> dict[str, Any]:
    """Ask the question after all other messages."""
    item = scene.scenario
    question = make_text(f"q{item.pair} m{item.method}", 100)
    first, *rest = utterances(state["messages"] if item.in_state else item.before())
    history = [first, {"speaker": "assistant", "content": state["reply"]}, *rest]
    reply_text = await scene.ask("recalling/assistant", history=history, question=question)
    place = len(state["messages"])
    return {"messages": [said("user", question, place), said("assistant", reply_text, place + 1)]}


class Recalling(Recipe, WithPrompts):
    """A recipe that asks a question after many turns."""

    name = "recalling"
    summary = "A question after many turns."
    roles = {"assistant": 0.0}  # noqa: RUF012
    prompts = ("recalling/reply", "recalling/assistant")
    templates = Path(__file__).parent / "prompts"
    options_type = Options
    scenario_type = Item

    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Item]:
        """Yield every pair with every method."""
        turns = Shared(make_fixed_turns(options.turns))
        for pair in range(options.pairs):
            for method in range(options.methods):
                yield Item(
                    pair=pair, method=method, preference=make_preference(pair), fixed=turns, in_state=options.in_state
                )

    def graph(self, options: Any) -> StateGraph[Any, Any, Any, Any]:
        """Build a graph of two nodes."""
        builder = StateGraph(State, context_schema=Stage)
        builder.add_node("reply", node(reply))
        builder.add_node("answer", node(answer))
        builder.add_edge(START, "reply")
        builder.add_edge("reply", "answer")
        builder.add_edge("answer", END)
        return builder

    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the initial state, with all messages if they belong to it."""
        return {"reply": "", "messages": scenario.before() if scenario.in_state else []}

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome from the state."""
        return Outcome(messages=lines(state["messages"]), ended_by="error" if failed else "answered")


def measure_file(path: Path) -> tuple[int, int]:
    """Return the bytes of the file and of the distinct text in it."""
    with closing(sqlite3.connect(path)) as connection:
        (text_bytes,) = connection.execute("SELECT sum(length(CAST(content AS BLOB))) FROM texts").fetchone()
    return path.stat().st_size, text_bytes


def main() -> None:
    """Play two sizes; print both and their difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--methods", type=int, default=5)
    parser.add_argument("--turns", type=int, default=298)
    parser.add_argument("--in-state", action="store_true")
    arguments = parser.parse_args()
    if arguments.pairs < 2:
        parser.error(f"--pairs must be at least 2, as two sizes are compared, got {arguments.pairs}")
    first = max(1, arguments.pairs // 5)
    figures: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        for pairs in (first, arguments.pairs):
            path = Path(folder) / f"{pairs}.db"
            options = {**vars(arguments), "pairs": pairs}
            started = time.perf_counter()
            run = dialoom.play(Recalling, path=path, options=options, models={"assistant": assistant})
            seconds = time.perf_counter() - started
            if run.status().failed:
                raise RuntimeError("a scenario failed")
            print(f"{pairs} pairs x {arguments.methods}: {pairs * arguments.methods / seconds:.0f} scenarios/s")
            figures.append(measure_file(path))
            size, text_bytes = figures[-1]
            print(f"  {size:,} bytes, {text_bytes:,} of distinct text: {size / text_bytes:.2f}")
    (few, few_text), (many, many_text) = figures
    pairs = arguments.pairs - first
    more, more_text = (many - few) / pairs, (many_text - few_text) / pairs
    print(f"a pair more: {more:,.0f} bytes, {more_text:,.0f} of distinct text")
    remaining = 1000 - arguments.pairs
    total, total_text = (many + more * remaining) / 1e6, (many_text + more_text * remaining) / 1e6
    print(f"1,000 pairs: {total:.1f} MB, {total_text:.1f} MB of distinct text: {total / total_text:.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
