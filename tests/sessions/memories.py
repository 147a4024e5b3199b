"""Stateful assistants of every kind, and their users. Every reply depends on all that its speaker remembers.

With `DIE_AT=N` in the environment, the process dies in the N-th call, when the player has changed its state and before
it replies. With `DIE_AFTER=N`, it dies when a persistent checkpointer has N replies, of which dialoom has N - 1.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

OTHER_WORDS = "And on the terrace, please."


def die_if_due(name: str) -> None:
    """Count down a variable of the environment, which the players' separate modules share; die at zero."""
    if name in os.environ:
        os.environ[name] = str(int(os.environ[name]) - 1)
        if os.environ[name] == "0":
            os.kill(os.getpid(), signal.SIGKILL)


async def customer(messages: list[dict[str, Any]], session: Any) -> str:
    """Play a user whose messages contain their position."""
    die_if_due("DIE_AT")
    return f"This is my message {session.turn} of conversation {session.number}, after {len(messages)} of the prompt."


async def other_customer(messages: list[dict[str, Any]], session: Any) -> str:
    """Play the same user with another message in the last turn."""
    if (session.number, session.turn) == (2, 2):
        return OTHER_WORDS
    return await customer(messages, session)


def reply_of(conversation: list[str], person: list[str]) -> str:
    """Return a reply with a hash of the speaker's whole state."""
    die_if_due("DIE_AT")
    digest = hashlib.sha256(repr((conversation, person)).encode()).hexdigest()[:8]
    return f"I know {len(conversation)} messages of this talk and {len(person)} of yours ({digest})."


async def remember(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
    """Run the node of graphs with a store, which remembers the person's earlier conversations."""
    space = ("memories", config["configurable"]["user_id"])
    known = [item.value["text"] for item in await store.asearch(space, limit=100)]
    known.append(str(state["messages"][-1].content))
    await store.aput(space, str(len(known)), {"text": known[-1]})
    return {"messages": [("ai", reply_of([str(each.content) for each in state["messages"]], known))]}


def count_messages(state: MessagesState) -> dict[str, Any]:
    """Run the node of a synchronous graph without a store."""
    return {"messages": [("ai", reply_of([str(each.content) for each in state["messages"]], []))]}


def _graph(node: Any) -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder


in_memory = _graph(remember).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
store_only = _graph(remember).compile(store=InMemoryStore())


class Saver(SqliteSaver):
    """A checkpointer whose process may die when a reply is stored."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint."""
        stored = super().put(config, checkpoint, metadata, new_versions)
        if str(checkpoint["channel_values"].get("messages", [""])[-1]).startswith("content='I know"):
            die_if_due("DIE_AFTER")
        return stored


saver = Saver(sqlite3.connect("agent.db", check_same_thread=False, timeout=30))
in_file = _graph(count_messages).compile(checkpointer=saver)


class Served(BaseCheckpointSaver[str]):
    """A checkpointer that all processes share, like one in a database server."""

    get_next_version = saver.get_next_version

    def get_tuple(self, config: Any) -> Any:
        """Return a checkpoint."""
        return saver.get_tuple(config)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint."""
        return saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, *given: Any) -> None:
        """Store the writes of a task."""
        saver.put_writes(*given)


served = _graph(count_messages).compile(checkpointer=Served())

_held = InMemorySaver()


def made(tools: list[Any]) -> Any:  # noqa: ARG001
    """Return the graph for some tools; all graphs share a checkpointer."""
    return _graph(count_messages).compile(checkpointer=_held)


class Snapshots:
    """An assistant that can be restored; one object serves one conversation."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.seen += [message["content"] for message in messages]
        self.seen.append(reply_of(self.seen, []))
        return str(self.seen[-1])

    def snapshot(self) -> list[str]:
        return [*self.seen]

    async def restore(self, snapshot: list[str]) -> None:
        self.seen = [*snapshot]


shared = Snapshots()
"""One object for all conversations."""


class Begins:
    """An assistant that gets the earlier messages when its state is lost."""

    async def begin(self, session: Any, messages: list[dict[str, Any]]) -> None:
        self.session = session.conversation
        self.seen = [message["content"] for message in messages]

    async def __call__(self, messages: list[dict[str, Any]], session: Any) -> str:
        assert session.conversation == self.session
        self.seen += [message["content"] for message in messages]
        self.seen.append(reply_of(self.seen, []))
        return str(self.seen[-1])


_talks: dict[str, list[str]] = {}


async def alone(messages: list[dict[str, Any]], session: Any) -> dict[str, Any]:
    """Play an assistant that cannot be restored."""
    seen = _talks.setdefault(session.conversation, [])
    seen += [message["content"] for message in messages]
    seen.append(reply_of(seen, []))
    return {"content": seen[-1]}
