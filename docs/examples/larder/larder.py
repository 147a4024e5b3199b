"""A recipe with tools: a clerk counts the jars on the shelves of a larder, and orders those that are missing.

dialoom run docs/examples/larder/larder.py:RECIPE -o larder.db
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from dialoom.graphs import (
    Check,
    Conversation,
    DialogueRecipe,
    DialogueState,
    RecipeOptions,
    Scenario,
    Scene,
    Stage,
    Turns,
    node,
)
from dialoom.graphs.conversation import acted, calls_of, tool_said, utterances
from dialoom.prompts import FunctionCall
from dialoom.roles.offline import Draws, MarkedRequest, ToolTurn, understudy


def define_tool(name: str, description: str, parameter: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool with one parameter, as chat models expect it."""
    parameters = {"type": "object", "properties": {parameter: schema}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = (
    define_tool("count_jars", "How many jars stand on a shelf.", "shelf", {"type": "string"}),
    define_tool("order_jars", "Orders jars.", "count", {"type": "integer", "minimum": 1}),
)


class Options(RecipeOptions):
    """The options; each field is a flag of `dialoom run`."""

    larders: int = Field(2, ge=1, description="How many larders there are.")


class Larder(Scenario):
    """A larder: the jars on its shelves, and the number of jars wanted."""

    shelves: dict[str, int]
    wanted: int


def run_tool(larder: Larder, call: FunctionCall) -> dict[str, Any]:
    """Return a tool's output; for an invalid call it describes the error, so that the model can correct it."""
    try:
        arguments = json.loads(call["arguments"])
        if call["name"] == "count_jars":
            return {"jars": larder.shelves[arguments["shelf"]]}
        if call["name"] == "order_jars":
            return {"ordered": int(arguments["count"])}
    except (ValueError, TypeError, KeyError) as error:
        return {"error": f"{call['arguments']} is invalid: {type(error).__name__} {error}"}
    return {"error": f"there is no tool {call['name']!r}; there are count_jars and order_jars"}


async def clerk(state: DialogueState, scene: Scene) -> dict[str, Any]:
    """Play one turn of the model: tool calls or a reply."""
    larder: Larder = scene.scenario

    async def run(call: FunctionCall) -> str:
        return json.dumps(run_tool(larder, call))

    history = utterances(state["messages"])
    inputs = {"shelves": list(larder.shelves), "wanted": larder.wanted, "history": history}
    reply = await scene.act("larder/clerk", TOOLS, run, **inputs)
    done = acted(reply, len(state["messages"]), "clerk")
    goes_on = calls_of(done[-1]) and len(state["messages"]) < 19
    return {"messages": done, "ended_by": "" if goes_on else "finished"}


async def tools(state: DialogueState, scene: Scene) -> dict[str, Any]:
    """Run the tool calls, in a node of its own so that a checkpoint stores their outputs."""
    messages = state["messages"]
    outputs = [json.dumps(run_tool(scene.scenario, call)) for call in calls_of(messages[-1])]
    results = zip(calls_of(messages[-1]), outputs, strict=True)
    return {"messages": [tool_said(*each, len(messages) + place) for place, each in enumerate(results)]}


def is_stocked(stocktaking: Conversation) -> bool:
    """Return whether the only order was for exactly the missing jars."""
    larder: Larder = stocktaking.scenario
    ordered = [
        run_tool(larder, call).get("ordered") for call, _ in stocktaking.tool_results if call["name"] == "order_jars"
    ]
    return ordered == [larder.wanted - sum(larder.shelves.values())]


class Stocktaking(DialogueRecipe):
    """A clerk with tools counts jars and orders what is missing."""

    name = "larder"
    roles = {"clerk": 0.0}
    prompts = ("larder/clerk",)
    turns = Turns(("clerk",))
    checks = [Check("stocked", is_stocked, target="clerk")]
    evaluated = "clerk"
    templates = Path(__file__).parent / "prompts"
    options_type = Options
    scenario_type = Larder

    def scenarios(self, options: Options, draw: Random, note: Callable[[str], None]) -> Iterator[Larder]:
        """Yield larders in which jars are missing."""
        for _ in range(options.larders):
            shelves = {name: draw.randint(1, 9) for name in ("upper", "middle", "lower")}
            yield Larder(shelves=shelves, wanted=sum(shelves.values()) + draw.randint(1, 9))

    def graph(self, options: Options) -> StateGraph[Any, Any, Any, Any]:
        """Return the graph: clerk and tools alternate until the clerk makes no call, at most ten times."""
        builder = StateGraph(DialogueState, context_schema=Stage)
        builder.add_node("clerk", node(clerk))
        builder.add_node("tools", node(tools))
        builder.add_edge(START, "clerk")
        builder.add_edge("tools", "clerk")

        def after_clerk(state: DialogueState) -> str:
            return END if state["ended_by"] else "tools"

        builder.add_conditional_edges("clerk", after_clerk, ["tools", END])
        return builder


RECIPE = Stocktaking()


@understudy("larder", "clerk")
def play_clerk(request: MarkedRequest, _draws: Draws) -> ToolTurn:
    """Count shelf by shelf, order, and say so, from what the request shows."""
    results = [json.loads(line.text) for line in request.lines if line.speaker == "tool"]
    shelves = request.inputs["shelves"]
    if len(results) < len(shelves):
        return ToolTurn(calls=(("count_jars", json.dumps({"shelf": shelves[len(results)]})),))
    if "ordered" in results[-1]:
        return ToolTurn(f"I have ordered {results[-1]['ordered']} jars.")
    missing = request.inputs["wanted"] - sum(result["jars"] for result in results)
    return ToolTurn(calls=(("order_jars", json.dumps({"count": missing})),))
