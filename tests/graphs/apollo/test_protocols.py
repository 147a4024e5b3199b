"""Agents with native tool calls, and graphs with a tool loop of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from dialoom.personas.apollo.source import ApolloPair
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import FINISH, episodes, played, scores

MADE = source()
PAIR = MADE.pairs["commute-rule-1"]
CALLS = PAIR.calls()


def message(*calls: Mapping[str, Any], content: str | None = None) -> dict[str, Any]:
    """Return an assistant's message in the providers' format; arguments may be a string that is not JSON."""
    made = [
        {
            "id": f"theirs-{number}",
            "type": "function",
            "function": {
                "name": call["name"],
                "arguments": call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"]),
            },
        }
        for number, call in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


BROKEN = {"name": "get_weather", "arguments": "{city: Rome}"}
UNKNOWN = {"name": "teleport", "arguments": {}}
A, B, C = CALLS
TURNS: Mapping[str, tuple[list[Any], tuple[bool, float], list[str]]] = {
    "gold": ([message(A), message(B), message(C), FINISH], (True, 1.0), []),
    "broken": ([message(BROKEN), message(A), message(B), message(C), FINISH], (False, 0.857143), ["failed_call"]),
    "unknown": ([message(UNKNOWN), message(A), message(B), message(C), FINISH], (False, 0.857143), ["failed_call"]),
    "at once": ([message(A, B), message(C), FINISH], (True, 1.0), ["parallel"]),
    "mixed": ([message(A, content="First this."), message(B), message(C), FINISH], (True, 1.0), ["mixed"]),
    "empty": ([message(), message(A), message(B), message(C), FINISH], (True, 1.0), ["empty"]),
    "as text": ([f"<tool_call>{json.dumps(A)}</tool_call>", "Well."], (False, 0.0), []),
}


@pytest.mark.parametrize("protocol", ["native", "text"])
def test_lone_surrogates_in_a_call_do_not_fail_a_sample(tmp_path: Path, protocol: str) -> None:
    half = "\\ud800"
    calls = [
        {"name": "get_weather", "arguments": json.loads(f'{{"{half}": "{half}"}}')},
        {"name": "get_weather", "arguments": json.loads(f'{{"city": "{half}", "date": "{half}"}}')},
    ]
    unnamed = f'<tool_call>{{"name": "{half}", "arguments": {{}}}}</tool_call>'
    lines = [f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls]
    turns: Sequence[Any] = [*map(message, calls), FINISH] if protocol == "native" else [*lines, unnamed, FINISH]

    async def agent(messages: Sequence[Mapping[str, Any]], tools: object = None) -> Any:
        assert bool(tools) == (protocol == "native")
        return turns[sum(each["role"] == "assistant" for each in messages)]

    run = played(tmp_path, agent, users="u1", limit=1, protocol=protocol)
    (episode,) = episodes(run).values()
    assert (scores(episode), episode.outcome.details["flags"]) == ((False, 0.0), ["failed_call"])


def test_native_calls_score_as_calls_in_text(tmp_path: Path) -> None:
    pairs = [PAIR.model_copy(update={"id": name, "query": f"{PAIR.query} ({name})"}) for name in TURNS]
    made = type(MADE).of(MADE.users.values(), MADE.sessions.values(), pairs, MADE.meta)
    seen: dict[str, list[Mapping[str, Any]]] = {}

    async def agent(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Any:
        assert len(tools) == 8 and "<tools>" not in messages[0]["content"]
        name = messages[1]["content"].rpartition("(")[2].split(")")[0]
        seen[name] = [*messages]
        return TURNS[name][0][sum(each["role"] == "assistant" for each in messages)]

    found = episodes(played(tmp_path, agent, made, protocol="native"))
    for name, (_, wanted, flags) in TURNS.items():
        outcome = found[name].outcome
        assert (scores(found[name]), outcome.details["flags"]) == (wanted, flags), name
        assert outcome.details["protocol"] == "native"
    assert [each["role"] for each in seen["at once"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    called = [call["id"] for each in seen["at once"] for call in each.get("tool_calls") or ()]
    assert called == [each["tool_call_id"] for each in seen["at once"] if each["role"] == "tool"]
    assert all(len(id_) == 9 and id_.isalnum() for id_ in called) and len(set(called)) == 3
    assert "no JSON" in seen["broken"][3]["content"]


def own_loop(pair: ApolloPair) -> Any:
    """Return a factory of a graph with a common tool loop: a model that calls tools, and a node that runs them."""

    def make(tools: list[Any]) -> Any:
        said = [
            AIMessage("", tool_calls=[{"name": c["name"], "args": c["arguments"], "id": c["name"]}])
            for c in pair.calls()
        ]
        model = GenericFakeChatModel(messages=iter([*said, AIMessage("All is arranged.")]))

        def think(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        builder = StateGraph(MessagesState)
        builder.add_node("think", think)
        builder.add_node("tools", ToolNode(tools))
        builder.add_edge(START, "think")
        builder.add_conditional_edges("think", tools_condition)
        builder.add_edge("tools", "think")
        return builder.compile()

    return make


def test_graph_with_its_own_loop_is_scored_by_its_calls(tmp_path: Path) -> None:
    run = played(tmp_path, own_loop(PAIR), MADE, protocol="native", limit=1)
    (episode,) = run.episodes()
    assert scores(episode) == (True, 1.0), episode.error
    outcome = episode.outcome
    assert (outcome.ended_by, outcome.counts["turns"], outcome.details["flags"]) == ("finished", 4, [])
    assert [line.role for line in outcome.messages][-7:] == ["assistant", "tool"] * 3 + ["assistant"]
    assert outcome.messages[-1].content == "All is arranged."
    assert run.status().usage.calls == 1
