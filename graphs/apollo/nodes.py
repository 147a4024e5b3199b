"""The state and the nodes of a sample: notes or retrieval, the agent and its tools in turn, and the scores.

The agent's prompt is rendered at each call from the scenario and the turns, so no checkpoint holds a history.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage, ToolMessage

from dialoom.graphs import Line, Outcome, RecipeError, Scene, Update
from dialoom.graphs.conversation import acted, append_messages, said, tool_said, utterances
from dialoom.graphs.embedding import embed_as_rows, find_highest
from dialoom.inputs import Frozen
from dialoom.personas.apollo import TOOLS, CallScores, World, compare, execute
from dialoom.personas.apollo.scores import format_responses
from dialoom.personas.apollo.source import ApolloSession, Speech
from dialoom.prompts import FunctionCall, Utterance
from dialoom.roles import UnparsedReplyError

from .loop import (
    collect_calls,
    describe_call,
    describe_messages,
    describe_output,
    find_ending,
    message_turn,
    message_turns,
)
from .scenario import ApolloScenario

ASSISTANT = "assistant"
RETRIEVED_SESSIONS = 3
"""The number of sessions that rag retrieves."""
HISTORY_ROLE = "history"
"""The role of lines that show a past session, or that replace several past sessions."""
_REFLEXION_ROLE = "reflexion"
"""The role of the line that introduces a further attempt."""


class PreferenceNotes(Frozen):
    """What a session shows of its user's preferences."""

    notes: tuple[str, ...]


class ErrorLabel(Frozen):
    """Why a sample failed."""

    label: Literal["unhelpful", "unawareness", "hallucination", "tool_related"]
    explanation: str = ""


class AgentState(TypedDict, total=False):
    """The state that is checkpointed.

    Attributes:
        framework: The scenario's framework. It and `turn_limit` are in the state because the edges read them.
        is_native: Whether calls have the provider's native format.
        notes: With memory, the notes with the numbers of their sessions.
        unread: With memory, the numbers of the sessions whose notes could not be parsed.
        retrieved: With rag, the numbers of the retrieved sessions, in order.
        messages: The agent's turns, the tools' results, and the messages sent when the agent made no call.
        began: The index of each attempt's first message.
        has_own_loop: Whether the agent is a graph that ran the tools itself.
        is_scored: Whether the last attempt is over and no further one follows.
    """

    framework: str
    turn_limit: int
    is_native: bool
    notes: list[dict[str, Any]]
    unread: list[int]
    retrieved: list[int]
    messages: Annotated[list[BaseMessage], append_messages]
    began: list[int]
    has_own_loop: bool
    is_scored: bool


async def prepare(state: AgentState, scene: Scene[ApolloScenario]) -> Update:
    """Choose the format of calls; with memory, take notes on each session; with rag, retrieve similar sessions."""
    scenario = scene.scenario
    load_world(scenario)
    protocol = scenario.played.protocol
    is_auto = protocol == "auto"
    update: Update = {"is_native": await scene.takes_tools("apollo/agent") if is_auto else protocol == "native"}
    if state["framework"] == "memory":
        update["notes"], update["unread"] = await _take_notes(scenario, scene)
    if state["framework"] == "rag":
        update["retrieved"] = await _retrieve_sessions(scenario, scene)
    return update


async def agent(state: AgentState, scene: Scene[ApolloScenario]) -> Update:
    """Request one turn of the agent.

    If the turn has no call and does not end the loop, add a message that asks the agent to go on.
    """
    scenario = scene.scenario
    messages, is_native = state["messages"], state["is_native"]
    definitions = [TOOLS[name].definition() for name in scenario.case.value.tools] if is_native else []

    async def run(call: FunctionCall) -> str:
        return _run_tool(scenario, call)

    history = (utterances if is_native else _convert_to_text)(split_attempts(state)[-1])
    calling = "" if is_native else scene.render("apollo/calling", **build_calling_inputs(scenario))[0]["content"]
    reply = await scene.act(
        "apollo/agent", definitions, run, **build_agent_inputs(scenario, state, calling), history=history
    )
    made = acted(reply, len(messages))
    if reply.outputs:
        return {"messages": made, "has_own_loop": True}
    if not message_turn(made[0], is_native).calls and not _find_ending({**state, "messages": [*messages, *made]}):
        made.append(said("user", scene.render("apollo/unanswered")[-1]["content"], len(messages) + 1))
    return {"messages": made}


async def tools(state: AgentState, scene: Scene) -> Update:
    """Return the tools' results for the last turn's calls, in order; a call written as text is given an id."""
    position, outputs = len(state["messages"]), list[BaseMessage]()
    for number, call in enumerate(message_turn(state["messages"][-1], state["is_native"]).calls):
        id_ = call.get("id") or f"call{position % 1000:03}{number % 100:02}"
        named: FunctionCall = {"id": id_, "name": call["name"], "arguments": call["arguments"]}
        outputs.append(tool_said(named, _run_tool(scene.scenario, named), position + number))
    return {"messages": outputs}


async def score(state: AgentState, scene: Scene) -> Update:
    """Score the calls. If they are wrong and attempts are left, record where the next attempt begins instead."""
    scores = compute_scores(scene.scenario, split_attempts(state)[-1], state["is_native"])
    if not scores.accuracy and len(state["began"]) <= scene.scenario.played.reflections:
        return {"began": [*state["began"], len(state["messages"])]}
    return {"is_scored": True}


async def after_agent(state: AgentState) -> str:
    """Return the next node: `tools` after calls, the agent while the loop goes on, and otherwise the scores."""
    if state.get("has_own_loop"):
        return "score"
    return "tools" if message_turn(state["messages"][-1], state["is_native"]).calls else await after_tools(state)


async def after_tools(state: AgentState) -> str:
    """Return the next node: the agent while there are turns left, and otherwise the scores."""
    return "score" if _find_ending(state) else "agent"


def compute_scores(scenario: ApolloScenario, messages: Sequence[BaseMessage], is_native: bool) -> CallScores:
    """Return the scores of an attempt's calls."""
    return compare(collect_calls(message_turns(messages, is_native)), scenario.pair.calls(), scenario.case.value.stale)


def split_attempts(state: AgentState) -> list[list[BaseMessage]]:
    """Return the messages of each attempt."""
    ends = [*state["began"][1:], len(state["messages"])]
    return [state["messages"][start:end] for start, end in zip(state["began"], ends, strict=True)]


def find_end_reason(state: AgentState) -> str:
    """Return the reason why the last attempt ended."""
    return "finished" if state.get("has_own_loop") else _find_ending(state) or "error"


def load_world(scenario: ApolloScenario) -> World:
    """Return the simulated world of a sample, in which the tools run.

    Raises:
        RecipeError: If this version's world differs, so that the sample's calls would be wrong.
    """
    world = _build_world(scenario.played.world_seed)
    if world.hash != scenario.played.world:
        raise RecipeError(
            f"source: the sample was made in the world {scenario.played.world[:12]}..., and this version has the world "
            f"{world.hash[:12]}...; generate the source again",
            setting="source",
        )
    return world


def build_agent_inputs(scenario: ApolloScenario, state: AgentState, calling: str) -> dict[str, Any]:
    """Return the inputs of the agent's prompt, besides its turns.

    Args:
        scenario: The sample.
        state: The graph's state.
        calling: The text that explains how to write calls as text; empty for native calls.
    """
    pair, retrieved, is_native = scenario.pair, state.get("retrieved"), state["is_native"]
    shown = {number: each for number, each in scenario.history.items() if retrieved is None or number in retrieved}
    failed = [describe_messages(messages, is_native) for messages in split_attempts(state)[:-1]]
    return {
        "calling": calling,
        "reminder": state["framework"] == "reminder",
        "notes": state.get("notes", []),
        "user": scenario.user.information(pair.today),
        "sessions": [{"number": number, "lines": session.lines} for number, session in shown.items()],
        "request": pair.query,
        "failed": [_join_lines(attempt) for attempt in failed],
    }


def build_calling_inputs(scenario: ApolloScenario) -> dict[str, Any]:
    """Return the inputs of the prompt that explains how to write calls as text."""
    return {"tools": [json.dumps(TOOLS[name].definition(), ensure_ascii=False) for name in scenario.case.value.tools]}


def build_lines(scenario: ApolloScenario, state: AgentState) -> Iterator[Line]:
    """Yield a sample as readable lines: the user, the relevant sessions, the request, and each attempt."""
    pair = scenario.pair
    yield Line(role="user information", content="\n".join(scenario.user.information(pair.today)))
    history = scenario.history
    for is_relevant, run in groupby(history, key=lambda number: number in scenario.places):
        numbers = list(run)
        yield from (
            [_format_session(each, history[each]) for each in numbers]
            if is_relevant
            else [_summarize_sessions(numbers)]
        )
    noted = [(note["session"], note["text"]) for note in state.get("notes", [])]
    noted += [(number, "(the reply could not be read)") for number in state.get("unread", [])]
    if noted:
        notes = (f"session {number}: {text}" for number, text in sorted(noted, key=itemgetter(0)))
        yield Line(role="notes", content="\n".join(notes))
    if found := state.get("retrieved"):
        yield Line(role="retrieved", content=", ".join(f"session {number}" for number in found))
    yield Line(role="user", content=pair.query)
    for number, messages in enumerate(split_attempts(state)):
        if number:
            yield Line(role=_REFLEXION_ROLE, content="it failed, and begins anew with what it did before its eyes")
        yield from describe_messages(messages, state.get("is_native", False))


def format_last_attempt(scenario: ApolloScenario, outcome: Outcome) -> str:
    """Return the last attempt of a finished sample as text."""
    lines = list(outcome.messages)
    starts = [at for at, line in enumerate(lines) if line.role == _REFLEXION_ROLE]
    start = starts[-1] if starts else lines.index(Line(role="user", content=scenario.pair.query))
    return _join_lines(lines[start + 1 :])


def _join_lines(lines: Sequence[Line]) -> str:
    return "\n".join(f"{line.role}: {line.content}" for line in lines)


def _format_session(number: int, session: ApolloSession) -> Line:
    lines = [f"session {number}"]
    for turn in session.turns:
        if isinstance(turn, Speech):
            lines.append(f"{turn.speaker}: {turn.text}")
        else:
            lines += [f"assistant: {describe_call(turn.call())}", f"tool: {describe_output(turn.output)}"]
    return Line(role=HISTORY_ROLE, content="\n".join(lines))


def _summarize_sessions(numbers: Sequence[int]) -> Line:
    first, last = numbers[0], numbers[-1]
    which = f"session {first} is" if first == last else f"sessions {first} to {last} are"
    return Line(role=HISTORY_ROLE, content=f"{which} about other things")


_build_world = lru_cache(maxsize=4)(World)


def _find_ending(state: AgentState) -> str | None:
    return find_ending(message_turns(split_attempts(state)[-1], state["is_native"]), state["turn_limit"])


async def _take_notes(scenario: ApolloScenario, scene: Scene) -> tuple[list[dict[str, Any]], list[int]]:
    """Return notes on every session, in order, and the numbers of sessions whose notes could not be parsed.

    The calls are shared between samples, because a session's notes depend only on the session.
    """

    async def of(session: ApolloSession) -> PreferenceNotes | None:
        with suppress(UnparsedReplyError):
            return await scene.ask_common("apollo/notes", session=session.lines)  # type: ignore[no-any-return]
        return None

    found = list(enumerate(await asyncio.gather(*map(of, scenario.history.values())), start=1))
    notes = [{"session": number, "text": note} for number, each in found if each for note in each.notes]
    return notes, [number for number, each in found if each is None]


async def _retrieve_sessions(scenario: ApolloScenario, scene: Scene) -> list[int]:
    """Return the numbers of the sessions whose embeddings are most similar to the request's, in ascending order."""
    texts = ["\n".join(session.lines) for session in scenario.history.values()]
    request = await embed_as_rows([scenario.pair.query], scene, scenario.played.embedder)
    sessions = await embed_as_rows(texts, scene, scenario.played.embedder)
    return sorted(place + 1 for place in find_highest(sessions @ request[0], RETRIEVED_SESSIONS))


def _convert_to_text(messages: Sequence[BaseMessage]) -> list[Utterance]:
    """Return the messages as utterances: calls are text, and all results of one turn form one utterance."""
    made: list[Utterance] = []
    for is_output, run in groupby(messages, key=lambda message: isinstance(message, ToolMessage)):
        if is_output:
            made.append({"speaker": "tool", "content": format_responses([str(each.content) for each in run])})
        else:
            made += utterances([*run])
    return made


def _run_tool(scenario: ApolloScenario, call: FunctionCall) -> str:
    """Return a tool's result as JSON."""
    no_call = {"error": "this is no call: give one JSON object with a name and arguments"}
    output = execute(load_world(scenario), {**call}, scenario.case.value.tools) if call["name"] else no_call
    return json.dumps(output, ensure_ascii=False)
