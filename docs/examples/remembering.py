"""Does an assistant remember? Three conversations for each person, with an assistant with memory and one without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import dialoom
from dialoom.graphs.check import Conversation

TASKS = ["remember that I eat only vegan food", "the opening hours of the library", "a restaurant for tonight"]


def answer(text: str, diet: str) -> str:
    """Return the reply to a message, with the person's diet if it is known."""
    if "restaurant" in text:
        return f"The Green Table has good {diet or 'local'} dishes."
    return "I will remember that." if "remember" in text else "It is open from nine to five."


async def remember(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    """Store what the person says about their food, and use it in later conversations."""
    text = str(state["messages"][-1].content)
    namespace = ("diets", config["configurable"]["user_id"])
    if match := re.search(r"I eat only (\w+)", text):
        await store.aput(namespace, "diet", {"is": match[1]})
    stored = await store.aget(namespace, "diet")
    return {"messages": [("ai", answer(text, stored.value["is"] if stored else ""))]}


async def forgetful(messages: list[dict[str, Any]]) -> str:
    """Reply with the knowledge of this conversation only."""
    return answer(messages[-1]["content"], "")


def remembered(conversation: Conversation) -> bool | None:
    """Return whether the preference of the first conversation is used in the third; `None` for the others."""
    return "vegan" in conversation.text("assistant") if "restaurant" in conversation.scenario.task["goal"] else None


def play(folder: Path) -> dialoom.Report:
    """Play both assistants and return a report that compares them."""
    builder = StateGraph(MessagesState).add_node("remember", remember).add_edge(START, "remember")
    graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    assistants = [
        dialoom.Agent(graph, stateful=True, name="with memory"),
        dialoom.Agent(forgetful, name="without"),
    ]
    paths = [folder / f"{assistant.name}.db" for assistant in assistants]
    people = [{"name": name} for name in ("Ann", "Bo", "Cem", "Dee")]
    for path, assistant in zip(paths, assistants, strict=True):
        dialoom.simulate(
            people,
            TASKS,
            assistant=assistant,
            checks=[remembered],
            in_sequence=True,
            max_turns=1,
            ends=[],
            path=path,
        )
    return dialoom.report(paths)


if __name__ == "__main__":
    print(play(Path()))  # noqa: T201
