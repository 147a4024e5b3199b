"""Which players are offered tools by default, and what tables say of those that call none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

import dialoom
from dialoom.graphs import Estimate
from tests.conftest import Command
from tests.graphs.apollo.invented import source, write
from tests.graphs.apollo.players import FINISH, episodes, played
from tests.server import completion, serving

MADE = source()
PAIR = MADE.pairs["commute-rule-1"]
CALLS = PAIR.calls()


def turn(messages: list[Any], tools: list[Any]) -> Mapping[str, Any]:
    """The next of the right calls, if tools are offered; then the end."""
    done = sum(bool(each.get("tool_calls")) for each in messages)
    left = CALLS[done:] if tools else []
    return {"content": "" if left else FINISH, "tool_calls": left[:1]}


async def agent(messages: list[Any], tools: list[Any]) -> Mapping[str, Any]:
    """A function that takes tools."""
    return turn(messages, tools)


async def plain(messages: list[Any]) -> Mapping[str, Any]:
    """The same without the parameter."""
    return turn(messages, [])


class ToolModel(FakeListChatModel):
    """A chat model that takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, Any]:
        """The model with tools."""

        def reply(messages: list[Any]) -> AIMessage:
            made = turn(messages, tools)
            calls = [{"name": c["name"], "args": c["arguments"], "id": c["name"]} for c in made["tool_calls"]]
            return AIMessage(made["content"], tool_calls=calls)

        return RunnableLambda(reply)


def graph(name: str | None = None) -> Any:
    """A compiled graph that finds the tools in its configuration."""

    def work(_: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        tools = {tool.name: tool for tool in config["configurable"].get("tools", ())}
        for call in CALLS if tools else ():
            tools[call["name"]].invoke(call["arguments"])
        return {"messages": [AIMessage("All is arranged.")]}

    node: Any = work
    return StateGraph(MessagesState).add_node("work", node).add_edge(START, "work").compile(name=name)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of one sample, the pair's."""
    made = type(MADE).of(MADE.users.values(), MADE.sessions.values(), [PAIR], MADE.meta)
    system = {
        "recipe": "apollo",
        "options": {"source": str(write(tmp_path / "source", made)), "length": ["2k"]},
        "headlines": [{"name": "accuracy %", "table": "accuracy", "column": "2k %"}],
        "contrasts": [{"name": "accuracy", "metric": "accuracy"}],
    }
    path = tmp_path / "ours.yaml"
    path.write_text(yaml.safe_dump({"suite": "ours", "version": 1, "systems": [system]}), encoding="utf-8")
    return path


def test_a_scorecard_offers_tools_to_whoever_takes_them(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions, graphs and chat models are right; of whoever made no call, tables say so above their figures."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody")
    with serving(lambda _body, _number: completion(FINISH)) as server:
        takers: list[Any] = [agent, dialoom.Model(graph(), name="graph"), ToolModel(responses=["-"], name="chat")]
        others: list[Any] = [plain, dialoom.Model("openai/gpt-4o-mini", api_base=server.url)]
        card = dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": [*takers, *others]})
    own = f"python:{__name__}"
    names = [f"{own}:agent", "object:graph", "object:chat", f"{own}:plain", "openai/gpt-4o-mini"]
    assert card.assistants == names
    means = [each.value.mean for each in card.figures if isinstance(each.value, Estimate)]
    assert means == [1.0, 1.0, 1.0, 0.0, 0.0]
    warnings = card["apollo"].warnings
    assert [each.partition(", so")[0] for each in warnings] == [
        f"{name} made no tool call in any sample, although the right answers of 1 of 1 contain calls"
        for name in names[3:]
    ]
    assert "It was offered no tools: they were only described in its prompt" in warnings[0]
    assert "It was offered the tools (protocol native)" in warnings[1]
    assert card["differences"].warnings == warnings
    shown = json.loads((tmp_path / "card" / "scorecard.json").read_text())["tables"]["apollo"]
    assert shown["warnings"] == warnings
    for name in ("index.html", "scorecard.md"):
        text = (tmp_path / "card" / name).read_text()
        assert text.index("offered no tools") < text.index("n=1")


def test_a_report_warns_above_its_figures(dialoom: Command, tmp_path: Path) -> None:
    """Of one run, and of several side by side; not of a player that called something."""
    silent, busy = (played(tmp_path / each.__name__, each, limit=1, users="u1") for each in (plain, agent))
    for runs in ([silent.path], [busy.path, silent.path]):
        shown = dialoom("report", *runs).stdout
        assert shown.index("Warning: ") < shown.index("n=1") and "offered no tools" in shown
        assert "agent made no tool call" not in shown
    assert "Warning" not in dialoom("report", busy.path).stdout
    assert all(chart.notes[0].startswith("Warning: ") for chart in silent.report().charts)


def test_who_takes_no_tools_and_is_offered_some_fails(tmp_path: Path) -> None:
    """A function without the parameter, and a chat model that binds none: no figure comes of it."""
    for number, player in enumerate((plain, FakeListChatModel(responses=["-"]))):
        run = played(tmp_path / str(number), player, limit=1, users="u1", protocol="native")
        (episode,) = run.episodes()
        assert episode.state == "failed" and "takes no tools, and it is offered 8" in (episode.error or "")
    run = played(tmp_path / "text", FakeListChatModel(responses=[FINISH]), limit=1, users="u1")
    assert {each.outcome.details["protocol"] for each in episodes(run).values()} == {"text"}


def test_two_graphs_of_one_name_need_names(suite: Path, tmp_path: Path) -> None:
    """They would have one file and one row; the message says how to name them."""
    with pytest.raises(dialoom.DialoomError) as error:
        dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": [graph(), graph()]})
    assert str(error.value) == (
        "models: two assistants are named object:LangGraph; give each a name of its own: "
        "dialoom.Model(LangGraph, name=...)"
    )
    named = [dialoom.Model(graph(), name="one"), graph("other")]
    card = dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": named})
    assert card.assistants == ["object:one", "object:other"]
