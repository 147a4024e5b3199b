"""Real graphs on the saver: stopped, closed, opened again, gone on with."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt

from dialoom.runs.store.checkpoints import RunSaver
from tests.runs.store.savers import count, place


class State(TypedDict, total=False):
    """Messages, and what the branches found."""

    messages: Annotated[list[AnyMessage], add_messages]
    found: Annotated[list[str], operator.add]
    number: int


def branching(calls: list[str]) -> StateGraph[State]:
    """Two branches, one of which asks; then one task per item; then the end."""

    def ask(state: State) -> dict[str, Any]:  # noqa: ARG001  # LangGraph passes it by this name
        calls.append("ask")
        return {"found": [f"asked {interrupt('really?')}"]}

    def look(state: State) -> dict[str, Any]:  # noqa: ARG001
        calls.append("look")
        return {"found": ["looked " * 20], "messages": [AIMessage("I have looked.", id="2")]}

    def fan(_state: State) -> list[Send]:
        return [Send("item", {"number": number}) for number in range(3)]

    def item(state: State) -> dict[str, Any]:
        calls.append(f"item {state['number']}")
        if state["number"] == 1 and calls.count("item 1") == 1:
            raise ConnectionError("gone")
        return {"found": [f"item {state['number']}"]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("look", look)
    graph.add_node("item", item)
    graph.add_node("join", lambda _state: {"found": ["joined"]})
    graph.add_edge(START, "ask")
    graph.add_edge(START, "look")
    graph.add_edge(["ask", "look"], "join")
    graph.add_conditional_edges("join", fan, ["item"])
    graph.add_edge("item", END)
    return graph


async def test_a_graph_with_interrupt_branches_and_sends_resumes_after_reopening(tmp_path: Path) -> None:
    """What had been done is not done again, and nothing is pending in the end."""
    path, calls, config = tmp_path / "x.db", list[str](), place("t")
    begin: Any = {"messages": [HumanMessage("Hello", id="1")]}
    async with RunSaver.open(path) as saver:
        result = await branching(calls).compile(saver).ainvoke(begin, config, durability="sync")
        assert result["__interrupt__"][0].value == "really?"
    async with RunSaver.open(path) as saver:
        graph = branching(calls).compile(saver)
        assert (await graph.aget_state(config)).next == ("ask",)
        with pytest.raises(ConnectionError):
            await graph.ainvoke(Command(resume="yes"), config, durability="sync")
    async with RunSaver.open(path) as saver:
        graph = branching(calls).compile(saver)
        # A sibling that LangGraph cancelled in the middle may have an error of its own beside it.
        assert "gone" in [str(task.error) for task in (await graph.aget_state(config)).tasks if task.error]
        state = await graph.ainvoke(None, config, durability="sync")
    assert [message.content for message in state["messages"]] == ["Hello", "I have looked."]
    assert state["found"] == ["asked yes", "looked " * 20, "joined", "item 0", "item 1", "item 2"]
    assert calls.count("look") == 1 and calls.count("item 1") == 2 and calls.count("ask") == 2
    assert count(path, "pending_writes") == 0


def talking() -> StateGraph[State]:
    """A message at a time."""
    graph = StateGraph(State)
    graph.add_node(
        "say",
        lambda state: {
            "messages": [AIMessage(f"line {len(state['messages'])}", id=f"{state['number']}.{len(state['messages'])}")]
        },
    )
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "say" if len(state["messages"]) < 5 else END, ["say", END])
    return graph


async def test_rewinding_editing_and_forking_are_as_in_memory(tmp_path: Path) -> None:
    """The same history of values as with LangGraph's own saver, branch by branch."""
    histories = []
    async with RunSaver.open(tmp_path / "x.db") as ours:
        for saver in (ours, InMemorySaver()):
            graph, config = talking().compile(saver), place("t")
            await graph.ainvoke({"messages": [HumanMessage("Hello", id="0")], "number": 1}, config)
            history = [snapshot async for snapshot in graph.aget_state_history(config)]
            early = next(one for one in history if len(one.values["messages"]) == 3)
            await graph.ainvoke(None, early.config)
            edited = await graph.aupdate_state(early.config, {"number": 7})
            await graph.ainvoke(None, edited)
            histories.append([one async for one in graph.aget_state_history(config)])
    ours_, theirs = (
        [(one.values, one.next, (one.metadata or {}).get("step")) for one in history] for history in histories
    )
    assert ours_ == theirs


def test_the_sync_methods_serve_a_sync_graph(tmp_path: Path) -> None:
    """Without an event loop."""
    import asyncio

    with asyncio.Runner() as runner:
        opened = RunSaver.open(tmp_path / "x.db")
        saver = runner.run(opened.__aenter__())
        graph, config = talking().compile(saver), place("t")
        graph.invoke({"messages": [HumanMessage("Hello", id="0")], "number": 1}, config)
        assert len(graph.get_state(config).values["messages"]) == 5
        assert len(list(graph.get_state_history(config))) == 6
        runner.run(opened.__aexit__(None, None, None))
