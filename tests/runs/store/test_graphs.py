"""The checkpoint saver: LangGraph's suite, real graphs, and a plain model in memory."""

from __future__ import annotations

import asyncio
import copy
import operator
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt

from dialoom.runs.store.checkpoints import RunSaver
from tests.runs.store.savers import checkpoint_of, count, place


class State(TypedDict, total=False):
    """A state with messages and the findings of branches."""

    messages: Annotated[list[AnyMessage], add_messages]
    found: Annotated[list[str], operator.add]
    number: int


def branching(calls: list[str]) -> StateGraph[State]:
    """Return a graph of two branches, one with an interrupt, followed by one task per item."""

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


async def test_graph_with_interrupts_and_sends_resumes_after_reopening(tmp_path: Path) -> None:
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
        # A sibling task that LangGraph cancelled may have an error, too.
        assert "gone" in [str(task.error) for task in (await graph.aget_state(config)).tasks if task.error]
        state = await graph.ainvoke(None, config, durability="sync")
    assert [message.content for message in state["messages"]] == ["Hello", "I have looked."]
    assert state["found"] == ["asked yes", "looked " * 20, "joined", "item 0", "item 1", "item 2"]
    assert calls.count("look") == 1 and calls.count("item 1") == 2 and calls.count("ask") == 2
    assert count(path, "pending_writes") == 0


def talking() -> StateGraph[State]:
    """Return a graph that adds one message per step."""
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


async def test_rewinding_editing_and_forking_equal_those_of_the_in_memory_saver(tmp_path: Path) -> None:
    histories = []
    async with RunSaver.open(tmp_path / "x.db") as run_saver:
        for saver in (run_saver, InMemorySaver()):
            graph, config = talking().compile(saver), place("t")
            await graph.ainvoke({"messages": [HumanMessage("Hello", id="0")], "number": 1}, config)
            history = [snapshot async for snapshot in graph.aget_state_history(config)]
            early = next(one for one in history if len(one.values["messages"]) == 3)
            await graph.ainvoke(None, early.config)
            edited = await graph.aupdate_state(early.config, {"number": 7})
            await graph.ainvoke(None, edited)
            histories.append([one async for one in graph.aget_state_history(config)])
    stored_history, memory_history = (
        [(one.values, one.next, (one.metadata or {}).get("step")) for one in history] for history in histories
    )
    assert stored_history == memory_history


def test_sync_methods_serve_a_sync_graph(tmp_path: Path) -> None:
    import asyncio

    with asyncio.Runner() as runner:
        opened = RunSaver.open(tmp_path / "x.db")
        saver = runner.run(opened.__aenter__())
        graph, config = talking().compile(saver), place("t")
        graph.invoke({"messages": [HumanMessage("Hello", id="0")], "number": 1}, config)
        assert len(graph.get_state(config).values["messages"]) == 5
        assert len(list(graph.get_state_history(config))) == 6
        runner.run(opened.__aexit__(None, None, None))


async def test_conformance_suite_passes_with_all_capabilities(tmp_path: Path) -> None:
    files = iter(range(100))

    @checkpointer_test(name="RunSaver")
    async def saver() -> AsyncIterator[RunSaver]:
        async with RunSaver.open(tmp_path / f"{next(files)}.db") as opened:
            yield opened

    report = await validate(saver)
    for capability in Capability:
        result = report.results[capability.value]
        assert result.detected and result.passed, f"{capability.value}: {result.failures}"
    assert sum(result.tests_passed for result in report.results.values()) > 70


THREADS = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["", "", "inner:1"])
SMALL = st.integers(0, 3)


class Stored:
    """A checkpoint of the model."""

    def __init__(self, values: dict[str, Any], versions: dict[str, int], parent: str | None, run: str) -> None:
        self.values = values
        self.versions = versions
        self.parent = parent
        self.run = run
        self.writes: dict[tuple[str, str, int], tuple[str, str, Any]] = {}


class SaverMachine(RuleBasedStateMachine):
    """A machine with equal operations on the saver and on `self.model`: (thread, namespace) to checkpoints by id."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "x.db"
        self.model: dict[tuple[str, str], dict[str, Stored]] = {}
        self.clock = 0
        self.runner = asyncio.Runner()
        self.enter()

    def enter(self) -> None:
        """Open the file."""
        self.opened = RunSaver.open(self.path)
        self.saver = self.runner.run(self.opened.__aenter__())

    def leave(self) -> None:
        """Close the file."""
        self.runner.run(self.opened.__aexit__(None, None, None))

    def teardown(self) -> None:
        self.leave()
        self.runner.close()
        self.folder.cleanup()

    def heads(self, thread: str, namespace: str) -> dict[str, Stored]:
        """Return the checkpoints of a thread's namespace."""
        return self.model.get((thread, namespace), {})

    def add(self, thread: str, namespace: str, values: dict[str, Any], parent: str | None, run: str) -> None:
        """Put a checkpoint, which consumes the pending writes of its parent.

        A channel keeps its version unless its value has changed, so siblings have equal versions.
        """
        stored = self.model.setdefault((thread, namespace), {})
        before = stored[parent] if parent else Stored({}, {}, None, "")
        versions = {
            name: before.versions.get(name, 0) + (name not in before.values or before.values[name] != value)
            for name, value in values.items()
        }
        checkpoint = checkpoint_of(values)
        checkpoint["channel_versions"] = dict(versions)
        checkpoint["id"] = str(uuid6(clock_seq=1))
        metadata: Any = {"source": "loop", "step": 0, "run_id": run}
        config = self.saver.put(place(thread, parent, namespace), checkpoint, metadata, {})
        assert config == place(thread, checkpoint["id"], namespace)
        stored[checkpoint["id"]] = Stored(copy.deepcopy(values), versions, parent, run)
        if parent in stored:
            stored[parent].writes.clear()

    @rule(
        thread=THREADS, namespace=NAMESPACES, more=st.lists(SMALL, max_size=3), size=st.sampled_from([1, 90]), run=SMALL
    )
    def extend(self, thread: str, namespace: str, more: list[int], size: int, run: int) -> None:
        """Add messages to the latest checkpoint."""
        stored = self.heads(thread, namespace)
        parent = max(stored, default=None)
        messages = stored[parent].values.get("messages", []) if parent else []
        new = [HumanMessage(str(number) * size, id=str(number)) for number in more]
        profile = {"text": f"profile {thread in 'ab'} " * 20}
        self.add(thread, namespace, {"messages": [*messages, *new], "profile": profile, "n": size}, parent, f"run{run}")

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data(), keep=SMALL)
    def rewind_or_fork(self, data: st.DataObject, keep: int) -> None:
        """Add a child with some of the messages to any checkpoint."""
        thread, namespace = data.draw(st.sampled_from(sorted(key for key, stored in self.model.items() if stored)))
        stored = self.model[thread, namespace]
        parent = data.draw(st.sampled_from(sorted(stored)))
        values = copy.deepcopy(stored[parent].values)
        values["messages"] = [*values["messages"][:keep], "forked"]
        self.add(thread, namespace, values, parent, "fork")

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data(), task=SMALL, values=st.lists(st.sampled_from(["x", "y" * 99, ["z" * 99]]), max_size=3))
    def put_writes(self, data: st.DataObject, task: int, values: list[Any]) -> None:
        """Put a task's writes; its repeated writes are ignored, but an interrupt replaces the one before."""
        thread, namespace = data.draw(st.sampled_from(sorted(key for key, stored in self.model.items() if stored)))
        stored = self.model[thread, namespace]
        parent = data.draw(st.sampled_from(sorted(stored)))
        special = data.draw(st.booleans())
        writes = [("__interrupt__", value) for value in values[:1]] if special else [("c", value) for value in values]
        self.saver.put_writes(place(thread, parent, namespace), writes, f"task{task}", f"path{3 - task}")
        for position, (channel, value) in enumerate(writes):
            key = (f"path{3 - task}", f"task{task}", -3 if special else position)
            if special or key not in stored[parent].writes:
                stored[parent].writes[key] = (f"task{task}", channel, copy.deepcopy(value))

    @rule(thread=THREADS)
    def delete_thread(self, thread: str) -> None:
        """Delete a thread with all its namespaces."""
        self.saver.delete_thread(thread)
        self.model = {key: stored for key, stored in self.model.items() if key[0] != thread}

    @rule(runs=st.lists(SMALL, max_size=2))
    def delete_for_runs(self, runs: list[int]) -> None:
        """Delete the checkpoints of runs in all threads."""
        names = [f"run{run}" for run in runs]
        self.saver.delete_for_runs(names)
        for key, stored in self.model.items():
            self.model[key] = {id_: one for id_, one in stored.items() if one.run not in names}

    @rule(source=THREADS, into=THREADS)
    def copy_thread(self, source: str, into: str) -> None:
        """Replace a thread with a copy of another."""
        if source == into:
            return
        self.saver.delete_thread(into)
        self.saver.copy_thread(source, into)
        self.model = {key: stored for key, stored in self.model.items() if key[0] != into}
        for (thread, namespace), stored in list(self.model.items()):
            if thread == source:
                self.model[into, namespace] = copy.deepcopy(stored)

    @rule(threads=st.lists(THREADS, max_size=3), everything=st.booleans())
    def prune(self, threads: list[str], everything: bool) -> None:
        """Keep the latest checkpoint of each namespace, or none."""
        self.saver.prune(threads, strategy="delete" if everything else "keep_latest")
        for key, stored in self.model.items():
            if key[0] in threads:
                latest = max(stored, default="")
                self.model[key] = {} if everything else {id_: one for id_, one in stored.items() if id_ == latest}

    @rule()
    def compact(self) -> None:
        """Compact the file, which changes nothing that can be read."""
        self.saver.compact()

    @rule()
    def reopen(self) -> None:
        """Reopen the file, with nothing in the saver's memory."""
        self.leave()
        self.enter()

    @invariant()
    def contents_equal_the_model(self) -> None:
        """Compare all checkpoints, the latest ones and the pending writes with the model."""
        found = {
            (t.config["configurable"]["thread_id"], t.config["configurable"]["checkpoint_ns"], t.checkpoint["id"]): t
            for t in self.saver.list(None)
        }
        expected = {(*key, id_): one for key, stored in self.model.items() for id_, one in stored.items()}
        assert found.keys() == expected.keys()
        for key, one in expected.items():
            read = found[key]
            assert read.checkpoint["channel_values"] == one.values
            parent = None if one.parent is None else place(key[0], one.parent, key[1])
            assert read.parent_config == parent
            assert read.pending_writes == [write for _, write in sorted(one.writes.items())]
        for (thread, namespace), stored in self.model.items():
            latest = self.saver.get_tuple(place(thread, namespace=namespace))
            assert (latest and latest.checkpoint["id"]) == max(stored, default=None)


SaverMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestSaver = SaverMachine.TestCase
