"""A recipe class that is in no module's namespace, like one defined in a notebook's cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from pydantic import Field

from dialoom import Outcome, Recipe, RecipeOptions, Scenario
from dialoom.graphs import Scene, Stage, WithPrompts, node
from dialoom.graphs.conversation import append_messages, lines, said, utterances

from .players import Messages

PROMPT = """---
id: counting/speaker
version: 1
role: speaker
inputs: [start, history]
reply: text
---
=== system ===
Count on from {{ start }}, one number at a time.
=== history ===
=== user ===
The next number, please.
"""


class State(TypedDict):
    """The checkpointed state."""

    messages: Annotated[list[BaseMessage], append_messages]


async def speaker(messages: Messages) -> str:
    """Return the next number."""
    start = int(messages[0]["content"].split()[3].strip(","))
    return str(start + 1 + sum(message["role"] == "assistant" for message in messages))


def counting(folder: Path, on_planned: Callable[[int], None] = lambda _: None) -> type[Recipe]:
    """Return the recipe's class.

    Args:
        folder: The folder to which its prompt is written.
        on_planned: Called with each number before its scenario is planned.
    """
    prompt = folder / "templates" / "counting" / "speaker.md"
    prompt.parent.mkdir(parents=True, exist_ok=True)
    prompt.write_text(PROMPT)

    class Options(RecipeOptions):
        upto: int = Field(3, ge=0, description="How many scenarios there are.")
        rounds: int = Field(2, ge=1, description="How often it is asked.")

    class Start(Scenario):
        number: int
        rounds: int

        @property
        def label(self) -> str:
            return f"from {self.number}"

        def facets(self) -> dict[str, Any]:
            return {"number": self.number}

    async def speak(state: State, scene: Scene) -> dict[str, Any]:
        history = utterances(state["messages"])
        text = await scene.ask("counting/speaker", history=history, start=scene.scenario.number)
        return {"messages": [said("speaker", text, len(history))]}

    class Counting(Recipe, WithPrompts):
        """A recipe whose speaker counts."""

        name = "counting"
        summary = "Somebody counts."
        roles = {"speaker": 0.5}
        prompts = ("counting/speaker",)
        templates = folder / "templates"
        options_type = Options
        scenario_type = Start

        def scenarios(self, options: Any, draw: Random, note: Callable[[str], None]) -> Iterator[Start]:
            for number in range(options.upto):
                on_planned(number)
                yield Start(number=number, rounds=options.rounds)

        def graph(self, options: Any) -> StateGraph[Any, Any, Any, Any]:
            builder = StateGraph(State, context_schema=Stage)
            builder.add_node("speak", node(speak))
            builder.add_edge(START, "speak")

            def after(state: State) -> str:
                return END if len(state["messages"]) >= options.rounds else "speak"

            builder.add_conditional_edges("speak", after, ["speak", END])
            return builder

        def initial(self, scenario: Any) -> dict[str, Any]:
            return {"messages": []}

        def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
            return Outcome(messages=lines(state["messages"]), ended_by="error" if failed else "counted")

    return Counting
