"""Players of the user's own: what each kind replies, what is refused at the start, and what a bad reply is told as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

import dialoom
from tests.conftest import Command

from .players import CAST, Messages, told

CALL = {"name": "search", "args": {"query": "x"}, "id": "1"}


def graph(work: Any, name: str = "mine", **compiled: Any) -> Any:
    """A graph of one node."""
    builder = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work")
    return builder.compile(name=name, **compiled)


def noted(state: MessagesState) -> dict[str, Any]:
    """A good reply."""
    return {"messages": [AIMessage(f"Noted: {state['messages'][-1].content}")]}


def returning(reply: Any, name: str = "mine") -> Any:
    """An async function that returns the same thing at every call, or raises it."""

    async def mine(_: Messages) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    mine.__name__ = name
    return mine


def one_dialogue(release: Path, path: Path, assistant: Any) -> dialoom.Episode:
    """A dialogue with an assistant."""
    given = told(release, models={"assistant": assistant}, options={"limit": 1})
    (episode,) = dialoom.play("personalens", path=path, **given).episodes()
    return episode


def shortened(state: MessagesState) -> dict[str, Any]:
    """A good reply in place of the whole conversation, as of a graph that sums it up."""
    return {"messages": [*(RemoveMessage(each.id or "") for each in state["messages"]), AIMessage("In short: yes.")]}


@pytest.mark.parametrize(
    ("player", "reply"),
    [
        (returning(AIMessage("Yes.")), "Yes."),
        (returning(AIMessage([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s."}])), "Yes."),
        (returning({"role": "assistant", "content": "Yes."}), "Yes."),
        (graph(shortened), "In short: yes."),
        (lambda tools: graph(noted), "Noted: Line 0 of mine."),  # noqa: ARG005
        (FakeListChatModel(responses=["As you like."]), "As you like."),
        (FakeListChatModel(responses=["As you like."]) | (lambda message: message.content), "As you like."),
    ],
    ids=["message", "parts", "dictionary", "shortened", "maker", "chat model", "chain"],
)
def test_every_kind_of_player_replies(release: Path, tmp_path: Path, player: Any, reply: str) -> None:
    """Functions return a text, a dictionary or LangChain's message; chat models and chains are called with messages."""
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.error is None
    assert episode.outcome.messages[1].content == reply


BAD: Mapping[str, tuple[Any, str]] = {
    "None": (returning(None), "mine returned None; a text, a dictionary with 'content'"),
    "wrong type": (returning(HumanMessage("Hm.")), "mine returned HumanMessage HumanMessage(content='Hm.'"),
    "wrong key": (returning({"reply": "Hm."}), "mine returned dict {'reply': 'Hm.'}; a text"),
    "wrong content": (returning({"content": 3}), "mine returned dict {'content': 3}; a text"),
    "empty": (
        returning(""),
        "mine gave no usable reply to 'personalens/assistant' in two attempts (the answer is empty)",
    ),
    "raises": (
        returning(ValueError("no data")),
        "mine raised ValueError: no data [tests/api/test_own_players.py:",
    ),
    "too long": (returning("x" * 1_000_001), "mine: the reply has 1,000,001 letters; 1,000,000 are the most"),
    "only calls": (
        returning(AIMessage("", tool_calls=[CALL])),
        "mine returned only tool calls (search), and no tools were offered; text is needed",
    ),
    "graph that ends with calls": (
        graph(lambda _: {"messages": [AIMessage("", tool_calls=[CALL])]}),
        "mine returned only tool calls (search), and no tools were offered; text is needed",
    ),
    "graph that adds nothing": (
        graph(lambda _: {"messages": []}),
        "mine returned no new message: its final state ends with the message that it was given last",
    ),
    "graph that forgets": (
        graph(lambda state: {"messages": [RemoveMessage(each.id or "") for each in state["messages"]]}),
        "mine returned no new message: its final state has none under 'messages'",
    ),
}


@pytest.mark.parametrize(("player", "sentence"), BAD.values(), ids=BAD.keys())
def test_a_bad_reply_fails_the_scenario_with_a_sentence_that_names_the_player(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    """And never becomes a line of the dialogue."""
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.state == "failed" and episode.error is not None
    assert episode.error.startswith(sentence)


OUTER = StateGraph(MessagesState).add_node("inner", graph(noted, checkpointer=InMemorySaver())).add_edge(START, "inner")
REFUSED: Mapping[str, tuple[Any, str]] = {
    "checkpointer": (
        graph(noted, checkpointer=InMemorySaver()),
        "models: mine is compiled with a checkpointer (InMemorySaver): every call gives it the whole conversation in a "
        "new thread, so its memory would always be empty; compile it without a checkpointer",
    ),
    "store": (graph(noted, store=InMemoryStore()), "models: mine is compiled with a store (InMemoryStore): all conv"),
    "subgraph": (
        OUTER.compile(name="mine"),
        "models: mine has a subgraph 'inner' that is compiled with a checkpointer",
    ),
    "maker": (lambda tools: graph(noted, checkpointer=InMemorySaver()), "is compiled with a checkpointer"),  # noqa: ARG005
    "maker of nothing": (lambda tools: None, "returned a NoneType; a function of `tools` must return a compiled"),  # noqa: ARG005
    "not async": (print, "models: print is no player: <built-in function print> is no async function of `messages`"),
    "not compiled": (OUTER, "models: StateGraph is no player: <langgraph.graph.state.StateGraph"),
}


@pytest.mark.parametrize(("player", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_play_is_refused_before_anything_is_written(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    """By `play`, by a scorecard and by a judging."""
    run = dialoom.play("personalens", path=tmp_path / "run.db", **told(release, options={"limit": 1}))
    starts: list[Callable[[], object]] = [
        lambda: dialoom.play("personalens", path=tmp_path / "0", models={"assistant": player}),
        lambda: dialoom.scorecard(tmp_path / "1", models={"assistant": [CAST["assistant"], player]}),
        lambda: run.judge(model=player, name="mine"),
    ]
    for number, start in enumerate(starts):
        with pytest.raises(dialoom.DialoomError) as error:
            start()
        assert sentence in str(error.value) and error.value.setting == "models"
        assert not (tmp_path / str(number)).exists()
    assert len(run.judgement_sets) == 1


FILE = """
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState).add_node("a", lambda state: {"messages": [AIMessage("Yes.")]}).add_edge(START, "a")
forgetful = builder.compile(checkpointer=InMemorySaver())

def made(tools):
    return forgetful
"""


@pytest.mark.parametrize("name", ["graph:agent.py:forgetful", "graph:agent.py:made", "python:agent:forgetful"])
def test_the_command_line_refuses_a_graph_with_a_checkpointer(
    dialoom: Command, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exit code 2, and nothing is left."""
    (tmp_path / "agent.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for command in (["run", "personalens", "-o", "run.db"], ["scorecard", "-o", "card"]):
        refused = dialoom(*command, "--model", f"assistant={name}", code=2)
        assert f"{name} is compiled with a checkpointer (InMemorySaver)" in refused.stderr
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("__")] == ["agent.py"]
