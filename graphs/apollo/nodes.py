"""The state and the nodes of a sample: notes or retrieval, the agent and its tools in turn, and the scores.

What goes to the agent is built anew at each call from the scenario and the turns, so no checkpoint has a history in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage, ToolMessage
from pydantic import BaseModel, ConfigDict

from dialoom.graphs.conversation import appended, joined, said, tool_said, utterances
from dialoom.graphs.judgement_scope import is_judged
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo import TOOLS, CallScores, World, compare, execute
from dialoom.personas.apollo.text_protocol import responses_text
from dialoom.prompts import FunctionCall, Utterance
from dialoom.roles import UnparsedReplyError

from .errors import LABELS
from .loop import calls_of, ending
from .retrieval import nearest
from .scenario import ApolloScenario, NumberedSession
from .transcript import attempt_text, turn_of, turns_of

ASSISTANT = "assistant"
METRICS = ("accuracy", "f1", *LABELS)


class PreferenceNotes(BaseModel):
    """What a session shows of its user's preferences."""

    model_config = ConfigDict(frozen=True)
    notes: tuple[str, ...]


class ErrorLabel(BaseModel):
    """Why a sample failed."""

    model_config = ConfigDict(frozen=True)
    label: Literal["unhelpful", "unawareness", "hallucination", "tool_related"]
    explanation: str = ""


class AgentState(TypedDict, total=False):
    """What is checkpointed.

    Attributes:
        framework: As the scenario has it, for the edges; so is `turn_limit`.
        is_native: Whether calls are written as the provider has them.
        notes: With memory, what was noted, with the number of its session.
        unread: With memory, the numbers of the sessions whose notes could not be read.
        retrieved: With rag, the numbers of the sessions found, in their order.
        messages: The agent's turns, what tools said to them, and what it was told when it only talked.
        began: Where in these each attempt begins.
        has_own_loop: Whether the agent is a graph that ran the tools by itself.
        transcript: For a judge: what the last attempt came to, as a person reads it; with its `scores`.
        judgements: As plain values.
    """

    framework: str
    turn_limit: int
    is_native: bool
    notes: list[dict[str, Any]]
    unread: list[int]
    retrieved: list[int]
    messages: Annotated[list[BaseMessage], appended]
    began: list[int]
    has_own_loop: bool
    transcript: str
    scores: dict[str, bool | float]
    judgements: Annotated[list[dict[str, Any]], joined]


async def prepare(state: AgentState, scene: Scene) -> Update:
    """How calls are written; with memory, notes on each session, and with rag the sessions most like the request."""
    scenario = _scenario(scene)
    world_of(scenario)
    update: Update = {"is_native": await _is_native(scenario, scene)}
    if state["framework"] == "memory":
        update["notes"], update["unread"] = await _noted(scenario, scene)
    if state["framework"] == "rag":
        update["retrieved"] = await nearest(scene)
    return update


async def agent(state: AgentState, scene: Scene) -> Update:
    """One turn. If it is words and does not end the loop, the agent is told to go on."""
    scenario, messages = _scenario(scene), state["messages"]
    definitions = [TOOLS[name].definition() for name in scenario.case.value.tools] if state["is_native"] else []

    async def run(call: FunctionCall) -> str:
        return _answered(scenario, call)

    history = (utterances if state["is_native"] else _as_text)(_current(state))
    given = agent_inputs(scenario, state, "" if state["is_native"] else _calling(scene))
    reply = await scene.act("apollo/agent", definitions, run, **given, history=history)
    if any(reply.outputs):
        return {"messages": _own_loop(reply.content, reply.tool_calls, reply.outputs, len(messages)), **_OWN_LOOP}
    turn = said(
        ASSISTANT,
        reply.content,
        len(messages),
        reply.finish_reason,
        tool_calls=reply.tool_calls,
        carried=reply.carried,
    )
    made = [turn]
    if not turn_of(turn, state["is_native"]).calls and not _ending({**state, "messages": [*messages, turn]}):
        told = scene.rendered("apollo/unanswered")[-1]["content"]
        made.append(said("user", told, len(messages) + 1))
    return {"messages": made}


async def tools(state: AgentState, scene: Scene) -> Update:
    """What the tools say to the last turn's calls, in order."""
    scenario, messages = _scenario(scene), state["messages"]
    calls: Sequence[Any] = turn_of(messages[-1], state["is_native"]).calls
    named: list[FunctionCall] = [
        {"id": call.get("id") or _call_id(len(messages), number), "name": call["name"], "arguments": call["arguments"]}
        for number, call in enumerate(calls)
    ]
    outputs = [tool_said(call, _answered(scenario, call), len(messages) + at) for at, call in enumerate(named)]
    return {"messages": outputs}


async def score(state: AgentState, scene: Scene) -> Update:
    """What the calls are worth; or, if they failed and there is another attempt, where it begins."""
    scenario = _scenario(scene)
    scores = scores_of(scenario, _current(state), state["is_native"])
    if not scores.accuracy and len(state["began"]) <= scenario.played.reflections:
        return {"began": [*state["began"], len(state["messages"])]}
    return {"judgements": _judgements({"accuracy": scores.accuracy, "f1": round(scores.f1, 6)})}


async def label(state: AgentState, scene: Scene) -> Update:
    """A judge's word on why the sample failed, beside the scores; of the labels one holds."""
    scenario = _scenario(scene)
    made = _judgements(state["scores"])
    if state["scores"]["accuracy"] or all(is_judged(state["judgements"], metric, ASSISTANT) for metric in LABELS):
        return {"judgements": made}
    about = {name: scenario.described()[name] for name in ("request", "preference", "gold")}
    try:
        found: ErrorLabel = await scene.ask("apollo/judge-error", **about, transcript=state["transcript"])
    except UnparsedReplyError as error:
        return {"judgements": made + _judgements(dict.fromkeys(LABELS), status="unparsed", explanation=str(error))}
    verdicts = {metric: metric == found.label for metric in LABELS}
    return {"judgements": made + _judgements(verdicts, explanation=found.explanation)}


def after_agent(state: AgentState) -> str:
    """The tools if they are called, the agent again if it only talks, else the scores."""
    if state.get("has_own_loop"):
        return "score"
    if turn_of(state["messages"][-1], state["is_native"]).calls:
        return "tools"
    return "score" if _ending(state) else "agent"


def after_tools(state: AgentState) -> str:
    """The agent, while there are turns left."""
    return "score" if _ending(state) else "agent"


def is_scored(state: AgentState) -> bool:
    """Whether there is no further attempt."""
    return bool(state["judgements"])


def scores_of(scenario: ApolloScenario, messages: Sequence[BaseMessage], is_native: bool) -> CallScores:
    """What the calls of an attempt are worth."""
    return compare(calls_of(turns_of(messages, is_native)), scenario.pair.calls(), scenario.case.value.stale)


def attempts_of(state: AgentState) -> list[list[BaseMessage]]:
    """The messages of each attempt."""
    ends = [*state["began"][1:], len(state["messages"])]
    return [state["messages"][start:end] for start, end in zip(state["began"], ends, strict=True)]


def ended_by(state: AgentState) -> str:
    """Why the last attempt ended."""
    return "finished" if state.get("has_own_loop") else _ending(state) or "error"


def world_of(scenario: ApolloScenario) -> World:
    """The world of a sample.

    Raises:
        RecipeError: If this version's is another one, in which its calls would be wrong.
    """
    world = _world(scenario.played.world_seed)
    if world.hash != scenario.played.world:
        raise RecipeError(
            f"source: the sample was made in the world {scenario.played.world[:12]}..., and this version's is "
            f"{world.hash[:12]}...: make the source anew",
            setting="source",
        )
    return world


_OWN_LOOP = {"has_own_loop": True}


def _judgements(scores: Mapping[str, bool | float | None], **about: Any) -> list[dict[str, Any]]:
    made = [Judgement(metric=metric, target=ASSISTANT, score=value, **about) for metric, value in scores.items()]
    return [judgement.model_dump(mode="json") for judgement in made]


@lru_cache(maxsize=4)
def _world(seed: int) -> World:
    return World(seed)


def _ending(state: AgentState) -> str | None:
    return ending(turns_of(_current(state), state["is_native"]), state["turn_limit"])


def _current(state: AgentState) -> list[BaseMessage]:
    return state["messages"][state["began"][-1] :]


async def _is_native(scenario: ApolloScenario, scene: Scene) -> bool:
    if scenario.played.protocol == "auto":
        return await scene.takes_tools("apollo/agent")
    return scenario.played.protocol == "native"


async def _noted(scenario: ApolloScenario, scene: Scene) -> tuple[list[dict[str, Any]], list[int]]:
    """Notes on every session, in order, and the numbers of those whose notes could not be read.

    They are common calls: a session's notes depend on nothing else.
    """

    async def of(numbered: NumberedSession) -> PreferenceNotes | None:
        try:
            found: PreferenceNotes = await scene.ask_common("apollo/notes", session=numbered.session.lines)
        except UnparsedReplyError:
            return None
        return found

    notes: list[dict[str, Any]] = []
    unread: list[int] = []
    for number, found in enumerate(await asyncio.gather(*map(of, scenario.history)), start=1):
        if found is None:
            unread.append(number)
        else:
            notes += [{"session": number, "text": note} for note in found.notes]
    return notes, unread


def agent_inputs(scenario: ApolloScenario, state: AgentState, calling: str) -> dict[str, Any]:
    """What the agent's prompt says, besides its turns.

    Args:
        scenario: The sample.
        state: Where it stands.
        calling: How calls are written as text; empty where the provider has them.
    """
    pair, retrieved = scenario.pair, state.get("retrieved")
    shown = [each for each in scenario.history if retrieved is None or each.number in retrieved]
    return {
        "calling": calling,
        "reminder": state["framework"] == "reminder",
        "notes": state.get("notes", []),
        "user": scenario.user.information(pair.today),
        "sessions": [{"number": each.number, "lines": each.session.lines} for each in shown],
        "request": pair.query,
        "failed": [attempt_text(messages, state["is_native"]) for messages in attempts_of(state)[:-1]],
    }


def calling_inputs(scenario: ApolloScenario) -> dict[str, Any]:
    """What the prompt says that tells how calls are written as text."""
    names = scenario.case.value.tools
    return {"tools": [json.dumps(TOOLS[name].definition(), ensure_ascii=False) for name in names]}


def _calling(scene: Scene) -> str:
    """How calls are written as text."""
    return scene.rendered("apollo/calling", **calling_inputs(_scenario(scene)))[0]["content"]


def _as_text(messages: Sequence[BaseMessage]) -> list[Utterance]:
    """Turns whose calls are text; what tools said to one turn is one message."""
    made: list[Utterance] = []
    outputs: list[str] = []
    for message in [*messages, None]:
        if isinstance(message, ToolMessage):
            outputs.append(str(message.content))
            continue
        if outputs:
            made.append({"speaker": "tool", "content": responses_text(outputs)})
            outputs = []
        if message is not None:
            made += utterances([message])
    return made


def _own_loop(words: str, calls: Sequence[FunctionCall], outputs: Sequence[str], position: int) -> list[BaseMessage]:
    """What an agent did that has a loop of its own: a turn for each call, and its last words."""
    made: list[BaseMessage] = []
    for call, output in zip(calls, outputs, strict=False):
        made.append(said(ASSISTANT, "", position + len(made), tool_calls=[call]))
        made.append(tool_said(call, output, position + len(made)))
    return [*made, said(ASSISTANT, words, position + len(made))]


def _answered(scenario: ApolloScenario, call: FunctionCall) -> str:
    """What a tool says, as JSON."""
    if call["name"]:
        output: Any = execute(world_of(scenario), {**call}, scenario.case.value.tools)
    else:
        output = {"error": "this is no call: give one JSON object with a name and arguments"}
    return json.dumps(output, ensure_ascii=False)


def _call_id(position: int, number: int) -> str:
    """A name for a call that has none, as it was written as text."""
    return f"call{position % 1000:03}{number % 100:02}"


def _scenario(scene: Scene) -> ApolloScenario:
    scenario: ApolloScenario = scene.scenario
    return scenario
