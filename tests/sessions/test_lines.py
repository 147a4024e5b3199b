"""The state from which a stateful player's call begins: that of its own branch, not others in the run's file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import dialoom
from dialoom.graphs import JsonEnvironment
from dialoom.runs.stepping import case_of
from tests.runs.workers.local_cluster import local_cluster

RULES: dict[str, Any] = {"max_turns": 2, "in_sequence": True, "ends": [{"keyword": "goodbye"}]}
TASKS = [{"goal": goal} for goal in ("a table", "a chair", "a lamp")]
OTHER_WORDS = "Something else, please."


class Repeating:
    """An assistant whose replies repeat all that it has received."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.received += [message["content"] for message in messages]
        return f"I heard: {' '.join(self.received)}"

    def snapshot(self) -> list[str]:
        return [*self.received]

    def restore(self, snapshot: list[str]) -> None:
        self.received = [*snapshot]


class Agreeing(Repeating):
    """An assistant whose replies are all equal."""

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        super().__call__(messages)
        return "Yes."


async def customer(_messages: list[dict[str, Any]], session: dialoom.Session) -> str:
    return f"Message {session.number}.{session.turn}."


def played(path: Path, kind: Any = Repeating, user: Any = customer, most: int = 9, **how: Any) -> dialoom.Run:
    """Play the conversations of people in sequence, and stop after some of them."""
    done: list[dialoom.Event] = []
    control = dialoom.Control()

    def count(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioDone):
            done.append(event)
            if len(done) == most:
                control.stop()

    assistant = kind if isinstance(kind, dialoom.Agent) else dialoom.Agent(kind, stateful=True, name="mine")
    people = how.pop("people", [{"name": "Ann"}])
    given = {**RULES, "assistant": assistant, "user": user, **how}
    return dialoom.simulate(people, TASKS, path=path, on_event=count, control=control, **given)


def talks(run: dialoom.Run) -> list[list[str]]:
    return [[line.content for line in episode.outcome.messages] for episode in run.episodes()]


async def test_next_conversation_does_not_continue_a_branch_of_the_earlier_one(tmp_path: Path) -> None:
    whole, run = played(tmp_path / "whole.db"), played(tmp_path / "run.db", most=1)
    async with run.step(1) as stepper:
        await stepper.rewind(2)
        branch = await stepper.fork("other")
        await branch.say("user", OTHER_WORDS)
        await branch.run()
    resumed = await dialoom.aresume(run.path, recipe=run.recipe, models={"assistant": _repeating()})
    assert talks(resumed) == talks(whole)


async def test_next_conversation_continues_a_promoted_branch(tmp_path: Path) -> None:
    run = played(tmp_path / "run.db", most=1)
    async with run.step(1) as stepper:
        await stepper.rewind(2)
        await stepper.resample()
        await stepper.say("user", OTHER_WORDS)
        await stepper.run()
        await stepper.promote()
    resumed = await dialoom.aresume(run.path, recipe=run.recipe, models={"assistant": _repeating()})
    assert talks(resumed)[1][1] == f"I heard: Message 1.1. {OTHER_WORDS} Message 2.1."


async def test_promotion_names_later_conversations_that_rest_on_the_former_outcome(tmp_path: Path) -> None:
    run, events = played(tmp_path / "run.db"), list[Any]()
    async with run.step(1, on_event=events.append) as stepper:
        await stepper.rewind(2)
        await stepper.say("user", OTHER_WORDS)
        await stepper.run()
        await stepper.promote()
    assert [each.text for each in events if isinstance(each, dialoom.NodeMessage)] == [
        "later conversations of the same person, in which a player remembers the former outcome: 2; "
        "retry scenario 2 to play them again"
    ]
    again = await dialoom.aretry(run.path, scenarios=[2], recipe=run.recipe, models={"assistant": _repeating()})
    assert [OTHER_WORDS in talk[1] for talk in talks(again)[1:]] == [True, True]


@pytest.mark.parametrize("workers", [None, 2])
def test_conversation_without_a_reply_keeps_the_players_state(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaving(messages: list[dict[str, Any]], session: dialoom.Session) -> str:
        return "I say goodbye." if session.number == 2 else await customer(messages, session)

    local_cluster(monkeypatch)
    people = [{"name": "Ann"}, {"name": "Bo"}]
    run = played(tmp_path / "run.db", user=leaving, people=people, workers=workers)
    assert [talk[-1] for talk in talks(run)] == [
        "I heard: Message 1.1. Message 1.2.",
        "I say goodbye.",
        "I heard: Message 1.1. Message 1.2. Message 3.1. Message 3.2.",
    ] * 2


async def stateless(messages: list[dict[str, Any]]) -> str:
    return f"I see {len(messages)}."


async def test_stateless_player_that_replaces_a_stateful_one_gets_whole_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved case records that the player is not stateful."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    run = await asyncio.to_thread(played, tmp_path / "run.db", most=1, max_turns=3)
    async with run.step(1) as stepper:
        await stepper.rewind(4)
        await stepper.replace_model("assistant", "python:tests.sessions.test_lines:stateless")
        await stepper.run()
        await stepper.rewind(2)
        await stepper.resample()
        await stepper.run()
        said = [line.content for line in (await stepper.outcome()).messages]
        case = await case_of(stepper)
    assert said[3::2] == ["I see 3.", "I see 5."]
    assert not case.models["assistant"].stateful


async def test_graph_with_a_memory_continues_a_conversation_whose_role_was_stateless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = await asyncio.to_thread(played, tmp_path / "run.db", most=1, assistant=stateless)
    async with run.step(1) as stepper:
        await stepper.rewind(3)
        await stepper.replace_model("assistant", f"graph:{Path(__file__).with_name('memories.py')}:in_memory")
        await stepper.run()
        shown = stepper.state["players"]["assistant"]["values"]["messages"]
    assert len(shown) == 4


async def test_equal_reply_to_an_edited_request_does_not_change_other_states(tmp_path: Path) -> None:
    run = played(tmp_path / "run.db", Agreeing, most=1)
    async with run.step(1) as stepper:
        before = dict(stepper.state["players"])
        await stepper.rewind(3)
        await stepper.edit_request("assistant", [{"role": "user", "content": OTHER_WORDS}])
        await stepper.run()
        assert stepper.state["players"] == {"assistant": [OTHER_WORDS, "Message 1.2."]}
        main = await stepper.switch("main")
        assert main.state["players"] == before == {"assistant": ["Message 1.1.", "Message 1.2."]}
        await main.rewind(2)
        fork = await main.fork("after")
        await fork.say("user", OTHER_WORDS)
        await fork.run()
        assert fork.state["players"] == {"assistant": ["Message 1.1.", OTHER_WORDS]}


def test_items_of_a_store_are_restored_in_their_order(tmp_path: Path) -> None:
    def node(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
        person = config["configurable"]["user_id"]
        known = [item.key for item in store.search(("notes", person), limit=100)]
        name = f"{9 - len(known)}"
        store.put(("notes", person, *(["odd"] if len(known) % 2 else [])), name, {"text": "red"})
        return {"messages": [("ai", f"{len(state['messages'])} {known}")]}

    def agent() -> dialoom.Agent:
        graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile(store=InMemoryStore())
        return dialoom.Agent(graph, stateful=True, name="mine")

    whole, run = played(tmp_path / "whole.db", agent()), played(tmp_path / "run.db", agent(), most=2)
    resumed = dialoom.resume(run.path, recipe=run.recipe, models={"assistant": agent()})
    assert talks(whole)[2][1] == "1 ['9', '7', '8', '6']"
    assert talks(resumed) == talks(whole)


def test_state_after_a_repeated_request_is_kept(tmp_path: Path) -> None:
    class Silent(Repeating):
        def __call__(self, messages: list[dict[str, Any]]) -> str:
            said = super().__call__(messages)
            return "" if len(self.received) == 1 else said

    run = played(tmp_path / "run.db", Silent)
    assert [talk[-1].count("I heard") for talk in talks(run)] == [1, 1, 1], "it does not receive its own messages"


def test_state_after_tool_calls_without_text_is_kept(tmp_path: Path) -> None:
    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        tool = next(each for each in config["configurable"]["tools"] if each.name == "read")
        call = {"name": "read", "args": {}, "id": f"{len(state['messages'])}", "type": "tool_call"}
        output = await tool.ainvoke(call)
        return {"messages": [AIMessage("", tool_calls=[call]), output, AIMessage("")]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    agent = dialoom.Agent(graph.compile(checkpointer=InMemorySaver()), stateful=True, name="mine")
    run = played(tmp_path / "run.db", agent, environment=JsonEnvironment)

    async def known() -> list[str]:
        async with run.look(1) as stepper:
            return [each["role"] for each in stepper.state["players"]["assistant"]["values"]["messages"]]

    assert asyncio.run(known()) == ["user", "assistant", "tool", "assistant"] * 2


async def test_opening_a_conversation_that_was_not_played_starts_no_player(tmp_path: Path) -> None:
    called: list[int] = []

    async def failing(_messages: list[dict[str, Any]], session: dialoom.Session) -> str:
        called.append(session.number)
        raise RuntimeError("no")

    run = played(tmp_path / "run.db", user=failing)
    async with run.step(2) as stepper:
        assert (await stepper.here()).transcript == ()
    assert called == [1]


def _repeating() -> dialoom.Agent:
    return dialoom.Agent(Repeating, stateful=True, name="mine")
