"""An agent whose memory is LangMem's tools, with a fake model and a local embedder: `make test-frameworks`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import IndexConfig
from langgraph.store.memory import InMemoryStore

import dialoom
from docs.examples.remembering import TASKS, answer, remembered

PEOPLE = [{"name": name} for name in ("Ann", "Bo")]


class Fake(BaseChatModel):
    """A model that, with tools, saves what it is asked to remember, and searches its memory for recommendations."""

    has_tools: bool = False

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: Any, **__: Any) -> Fake:
        return Fake(has_tools=True)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last, text = messages[-1], str(messages[-1].content)
        reply = AIMessage(answer(text, ""))
        if self.has_tools and last.type == "tool":
            found = re.search(r"I eat only (\w+)", text)
            reply = AIMessage(
                answer("restaurant" if last.name == "search_memory" else "remember", found[1] if found else "")
            )
        elif self.has_tools and "remember" in text:
            reply = calling("manage_memory", {"content": text, "action": "create"})
        elif self.has_tools and "restaurant" in text:
            reply = calling("search_memory", {"query": "food that I eat"})
        return ChatResult(generations=[ChatGeneration(message=reply)])


def calling(tool: str, arguments: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "call-1", "type": "tool_call"}])


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts as counts of their words' hashes."""
    vectors = [[0.0] * 64 for _ in texts]
    for vector, text in zip(vectors, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 64] += 1.0
    return vectors


def agent() -> dialoom.Agent:
    """Return an agent with LangMem's tools over a store in memory."""
    pytest.importorskip("langmem", reason="langmem is not installed")
    from langchain.agents import create_agent
    from langmem import create_manage_memory_tool, create_search_memory_tool

    space = ("memories", "{user_id}")
    index: IndexConfig = {"dims": 64, "embed": embed}
    store = InMemoryStore(index=index)
    graph = create_agent(
        Fake(),
        [create_manage_memory_tool(namespace=space), create_search_memory_tool(namespace=space)],
        store=store,
        checkpointer=InMemorySaver(),
    )
    return dialoom.Agent(graph, stateful=True, name="langmem")


RULES: dict[str, Any] = {"checks": [remembered], "in_sequence": True, "max_turns": 1, "ends": []}


def test_agent_with_langmem_remembers_in_the_third_conversation_and_its_model_alone_does_not(tmp_path: Path) -> None:
    players = {"langmem": agent(), "alone": dialoom.Agent(Fake(), name="alone")}
    paths = [tmp_path / f"{name}.db" for name in players]
    for path, player in zip(paths, players.values(), strict=True):
        dialoom.simulate(PEOPLE, TASKS, assistant=player, path=path, **RULES)
    report = str(dialoom.report(paths))
    assert re.search(r"\| object:langmem \| 6 \| 100\.0 \[[\d., ]+\] n=2 \|", report), report
    assert re.search(r"\| object:alone \| 6 \| 0\.0 \[[\d., ]+\] n=2 \|", report), report


def test_agent_with_langmem_remembers_after_an_interruption(tmp_path: Path) -> None:
    """After an interruption, the memory is restored into an agent whose store is empty."""
    path = tmp_path / "run.db"
    events: list[dialoom.ScenarioDone] = []

    def stop(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioDone):
            events.append(event)
            if len(events) == len(PEOPLE):
                control.stop()

    control = dialoom.Control()
    run = dialoom.simulate(PEOPLE, TASKS, assistant=agent(), path=path, on_event=stop, control=control, **RULES)
    assert 0 < run.status().done < len(PEOPLE) * len(TASKS)
    run = dialoom.resume(path, models={"assistant": agent()}, recipe=run.recipe)
    talks = [[line.content for line in episode.outcome.messages] for episode in run.episodes() if episode.outcome]
    assert [talk[-1] for talk in talks[2::3]] == ["The Green Table has good vegan dishes."] * len(PEOPLE), talks
