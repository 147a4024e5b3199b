"""A recipe with tools: a clerk counts the jars on the shelves of a larder, and orders those that are missing.

dialoom run docs/examples/larder/larder.py:RECIPE -o larder.db
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from pydantic import Field

from dialoom.graphs import Judgement, Outcome, Recipe, RecipeOptions, Scenario, Scene, Stage, node
from dialoom.graphs.conversation import acted, appended, calls_of, lines, tool_said, utterances
from dialoom.prompts import FunctionCall
from dialoom.roles.offline import Draws, MarkedRequest, ToolTurn, understudy


def definition(name: str, says: str, parameter: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of one parameter, as chat models are told of it."""
    parameters = {"type": "object", "properties": {parameter: schema}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": says, "parameters": parameters}}


TOOLS = (
    definition("count_jars", "How many jars stand on a shelf.", "shelf", {"type": "string"}),
    definition("order_jars", "Orders jars.", "count", {"type": "integer", "minimum": 1}),
)


class Options(RecipeOptions):
    """Each field is a flag of `dialoom run`."""

    larders: int = Field(2, ge=1, description="How many larders there are.")


class Larder(Scenario):
    """What stands on its shelves, and how many jars there should be."""

    shelves: dict[str, int]
    wanted: int

    @property
    def label(self) -> str:
        """The beginning of its id."""
        return f"{self.wanted}-jars"

    def facets(self) -> dict[str, Any]:
        """What reports group by."""
        return {"wanted": self.wanted}


class LarderState(TypedDict):
    """What is checkpointed after each node."""

    messages: Annotated[list[BaseMessage], appended]


def answer(larder: Larder, call: FunctionCall) -> dict[str, Any]:
    """What a tool says; a call that cannot run is answered with what is wrong, so that the model can mend it."""
    try:
        given = json.loads(call["arguments"])
        if call["name"] == "count_jars":
            return {"jars": larder.shelves[given["shelf"]]}
        if call["name"] == "order_jars":
            return {"ordered": int(given["count"])}
    except (ValueError, TypeError, KeyError) as error:
        return {"error": f"{call['arguments']} does not do: {type(error).__name__} {error}"}
    return {"error": f"there is no tool {call['name']!r}; there are count_jars and order_jars"}


async def clerk(state: LarderState, scene: Scene) -> dict[str, Any]:
    """One turn of the model: calls, or words."""
    larder: Larder = scene.scenario

    async def run(call: FunctionCall) -> str:
        return json.dumps(answer(larder, call))

    said_before = utterances(state["messages"])
    asked = {"shelves": list(larder.shelves), "wanted": larder.wanted, "history": said_before}
    reply = await scene.act("larder/clerk", TOOLS, run, **asked)
    return {"messages": acted(reply, len(state["messages"]), "clerk")}


async def tools(state: LarderState, scene: Scene) -> dict[str, Any]:
    """Runs what was called. It is a node of its own: a checkpoint holds what came of it."""
    messages = state["messages"]
    outputs = [json.dumps(answer(scene.scenario, call)) for call in calls_of(messages[-1])]
    answered = zip(calls_of(messages[-1]), outputs, strict=True)
    return {"messages": [tool_said(*each, len(messages) + place) for place, each in enumerate(answered)]}


class Stocktaking(Recipe):
    """All that dialoom needs to know of it."""

    name = "larder"
    summary = "A clerk with tools counts jars and orders what is missing."
    roles = {"clerk": 0.0}  # noqa: RUF012
    prompts = ("larder/clerk",)
    metrics = ("stocked",)
    evaluated = "clerk"
    templates = Path(__file__).parent / "prompts"
    options_type = Options
    scenario_type = Larder

    def scenarios(self, options: Options, draw: Random, note: Callable[[str], None]) -> Iterator[Larder]:
        """Larders in which something is missing."""
        for _ in range(options.larders):
            shelves = {name: draw.randint(1, 9) for name in ("upper", "middle", "lower")}
            yield Larder(shelves=shelves, wanted=sum(shelves.values()) + draw.randint(1, 9))

    def graph(self, options: Options) -> StateGraph[Any, Any, Any, Any]:
        """Clerk and tools in turn, until the clerk calls nothing more, or for the tenth time."""
        builder = StateGraph(LarderState, context_schema=Stage)
        builder.add_node("clerk", node(clerk))
        builder.add_node("tools", node(tools))
        builder.add_edge(START, "clerk")
        builder.add_edge("tools", "clerk")

        def after_clerk(state: LarderState) -> str:
            return "tools" if calls_of(state["messages"][-1]) and len(state["messages"]) < 20 else END

        builder.add_conditional_edges("clerk", after_clerk, ["tools", END])
        return builder

    def initial(self, scenario: Larder) -> dict[str, Any]:
        """Nothing done yet."""
        return {"messages": []}

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """How far it is, for the step debugger."""
        return {"turn": sum(message.name == "clerk" for message in state["messages"])}

    def outcome(self, scenario: Larder, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """All calls and words, and whether the only order was the right one."""
        calls = [call for message in state["messages"] for call in calls_of(message)]
        ordered = [answer(scenario, call).get("ordered") for call in calls if call["name"] == "order_jars"]
        missing = scenario.wanted - sum(scenario.shelves.values())
        judgement = Judgement(metric="stocked", target="clerk", score=ordered == [missing])
        return Outcome(
            messages=lines(state["messages"]),
            ended_by="error" if failed else "finished",
            counts={"calls": len(calls)},
            judgements=() if failed else (judgement,),
        )


RECIPE = Stocktaking()


@understudy("larder", "clerk")
def play_clerk(request: MarkedRequest, _draws: Draws) -> ToolTurn:
    """Counts shelf by shelf, orders, and says so: it knows only what the request shows."""
    counted = [json.loads(line.text) for line in request.lines if line.speaker == "tool"]
    shelves = request.inputs["shelves"]
    if len(counted) < len(shelves):
        return ToolTurn(calls=(("count_jars", json.dumps({"shelf": shelves[len(counted)]})),))
    if "ordered" in counted[-1]:
        return ToolTurn(f"I have ordered {counted[-1]['ordered']} jars.")
    missing = request.inputs["wanted"] - sum(each["jars"] for each in counted)
    return ToolTurn(calls=(("order_jars", json.dumps({"count": missing})),))
