"""Conversations with tools: recorded, replayed, cached, resumed, stepped through and exported."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import dialoom
from dialoom import DialoomError, Stepper
from dialoom.cli.stepping.editing import format_messages, parse_messages
from dialoom.graphs.conversation import calls_of, lines, to_messages
from dialoom.runs.stepping import case_of, replay
from dialoom.runs.stepping.values import to_plain
from dialoom.runs.store import RunFile
from tests.conftest import ROOT, Command, MadeOnce
from tests.runs.stepping.played import stepping
from tests.server import Answer, ended, serving

LARDER = f"{ROOT / 'docs/examples/larder/larder.py'}:RECIPE"
ORDER = '{"name": "order_jars", "arguments": {"count": 2}}'


@pytest.fixture
def made(made_once: MadeOnce) -> Path:
    """Return the path of a finished run of two larders, played by the understudy."""

    def play(_dialoom: Command, folder: Path) -> None:
        dialoom.play(LARDER, path=folder / "run.db", seed=3)

    return made_once(play) / "run.db"


def exported(path: Path) -> bytes:
    """Return the bytes of a run's export."""
    rows = path.with_suffix(".jsonl")
    dialoom.open_run(path).export("dialogues", rows)
    return rows.read_bytes()


def names(episode: dialoom.Episode) -> list[str]:
    """Return the names of the called tools."""
    return [call["name"] for line in episode.outcome.messages for call in line.tool_calls]


def test_documented_recipe_counts_and_orders(made: Path) -> None:
    for episode in dialoom.open_run(made).episodes():
        said = episode.outcome.messages
        assert [line.role for line in said] == ["clerk", "tool"] * 4 + ["clerk"]
        assert names(episode) == ["count_jars"] * 3 + ["order_jars"]
        assert [line.tool_call_id for line in said[1::2]] == [line.tool_calls[0]["id"] for line in said[:-1:2]]
        assert episode.outcome.judgements[0].score is True
        assert (episode.outcome.faults, lines(to_messages(said))) == ((), said)
    with RunFile(made) as file:
        first = next(iter(file.calls()))
    assert (first["reply"], first["tool_calls"][0]["name"]) == ("", "count_jars")
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", page.partition("## A recipe with tools")[2], re.DOTALL)
    source = (ROOT / "docs/examples/larder/larder.py").read_text(encoding="utf-8")
    assert shown and all(part.strip() in source for block in shown for part in block.split("...\n\n\n"))


def test_estimate_counts_tool_definitions() -> None:
    assert dialoom.estimate(LARDER, seed=3).total.calls == 10


def faulty_answer(body: dict[str, Any], number: int) -> Answer:
    """Return a faulty reply: malformed arguments, an unknown tool, two calls with text, and then nothing."""
    outputs = sum(message["role"] == "tool" for message in body["messages"])
    turns = {
        0: ("", [("count_jars", '{"shelf": "upp')]),
        1: (None, [("weigh_jars", "{}")]),
        2: ("Two at once.", [("count_jars", '{"shelf": "upper"}'), ("order_jars", '{"count": "3"}')]),
        4: ("", []),
    }
    text, calls = turns[outputs]
    made = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    return ended(text, "tool_calls" if made else "stop", usage, **({"tool_calls": made} if made else {}))


def test_malformed_calls_are_recorded_replayed_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody")
    whole, cut, shared = (tmp_path / f"{name}.db" for name in ("whole", "cut", "shared"))
    cache = tmp_path / "cache.db"
    with serving(faulty_answer) as server:
        settings: dict[str, Any] = {"seed": 3, "model": dialoom.Model("openai/gpt-4o-mini", api_base=server.url)}
        episodes = list(dialoom.play(LARDER, path=whole, **settings, cache=cache).episodes())
        asked = len(server.requests)
        dialoom.play(LARDER, path=cut, **settings, budget=dialoom.Budget(max_calls=5))
        run = dialoom.resume(cut, budget=dialoom.Budget(max_calls=None))
        assert len(server.requests) == 2 * asked == 16
        dialoom.play(LARDER, path=shared, **settings, cache=cache)
        assert len(server.requests) == 2 * asked
    assert run.status().done == 2 and exported(whole) == exported(cut) == exported(shared)
    for episode in episodes:
        said = episode.outcome.messages
        assert [line.role for line in said] == "clerk tool clerk tool clerk tool tool clerk".split()
        assert said[0].tool_calls[0]["arguments"] == '{"shelf": "upp' and "error" in said[1].content
        assert "no tool 'weigh_jars'" in said[3].content and said[4].spoken.startswith(
            "Two at once.\ncalls count_jars("
        )
        assert (json.loads(said[6].content), said[-1].content) == ({"ordered": 3}, "")

    async def act(stepper: Stepper) -> list[Any]:
        stops = await stepper.stops()
        assert (await replay(await case_of(stepper))).departures == []
        state = stops[3].state["messages"]
        assert state[0].invalid_tool_calls[0]["args"] == '{"shelf": "upp' and isinstance(state[1], ToolMessage)
        call = next(call for stop in stops for call in stop.calls)
        assert call.tools[0]["function"]["name"] == "count_jars"
        return [call.messages for stop in stops for call in stop.calls]

    requests = stepping(whole, act)
    assert [
        message["role"] for message in requests[-1]
    ] == "system user assistant tool assistant tool assistant tool tool".split()


def test_person_replaces_a_reply_with_a_call(made: Path) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        for wrong, message in (('{"name": "order_jars", "arg', "not valid JSON"), ("", "needs a text as its reply")):
            with pytest.raises(DialoomError, match=message):
                await stepper.say("clerk", wrong)
        stop = await stepper.say("clerk", ORDER)
        assert stop.calls[0].tool_calls[0]["arguments"] == '{"count": 2}' and stop.next == ("tools",)
        assert [line.spoken for line in stop.transcript][-1:] == ["calls order_jars(count=2)"]  # type: ignore[union-attr]
        stop = await stepper.step()
        assert stop.state["messages"][-1].content == '{"ordered": 2}'
        assert (await replay(await case_of(stepper))).departures == []
        stop = await stepper.say("clerk", "I stop here.")
        assert stop.is_end and not stop.calls[0].tool_calls
        outcome = await stepper.outcome()
        assert outcome.judgements[0].score is False

    stepping(made, act)


def test_request_with_calls_is_edited_and_sent(made: Path) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        (asked,) = await stepper.next_requests()
        text = format_messages(asked.request.messages)
        assert parse_messages(text) == [*asked.request.messages] and '=== tool {"tool_call_id"' in text
        stop = await stepper.edit_request("clerk", parse_messages(text.replace('{"jars": ', '{"jars": 1')))
        assert stop.calls[0].is_edited and stop.calls[0].messages[2] == asked.request.messages[2]
        await stepper.goto(3)
        await stepper.edit("messages[1].content", '{"jars": 0}')
        whole = to_plain(stepper.state["messages"])
        assert whole[0]["tool_calls"] and whole[1]["tool_call_id"] == whole[0]["tool_calls"][0]["id"]
        await stepper.edit("messages", whole)
        assert calls_of(stepper.state["messages"][0])[0]["name"] == "count_jars"

    stepping(made, act)


@pytest.mark.parametrize(
    ("like", "content"),
    [('[{"type":%', "[3]"), ('[{"type":%', "{"), ('{"tool_calls":%', '{"tool_calls": 3}'), ('{"tool_call_id":%', "[]")],
)
def test_damaged_tool_call_is_reported_as_corruption(made: Path, like: str, content: str) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.stops()

    with closing(sqlite3.connect(made)) as connection, connection:
        which = "id IN (SELECT id FROM texts WHERE content LIKE ?)"
        update = f"UPDATE kept_texts SET content = ?, parts = NULL WHERE {which}"
        changed = connection.execute(update, (content, like)).rowcount
    assert changed > 0
    with pytest.raises(DialoomError, match="damaged"):
        stepping(made, act)


def agent(tools: list[Any]) -> Any:
    """Return a LangGraph agent for the given tools: it counts two shelves at once, and then orders."""

    async def think(state: MessagesState) -> dict[str, Any]:
        outputs = [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]
        if not outputs:
            calls = [("count_jars", {"shelf": "upper"}), ("count_jars", {"shelf": "middle"}), ("sing", {})]
        else:
            calls = [("order_jars", {"count": 1 + json.loads(outputs[0])["jars"]})] if len(outputs) == 3 else []
        made = [{"name": name, "args": given, "id": f"{name}{place}"} for place, (name, given) in enumerate(calls)]
        return {"messages": [AIMessage("" if made else "Done.", tool_calls=made)]}

    def after(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", ()) else END

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "think")
    builder.add_edge("tools", "think")
    builder.add_conditional_edges("think", after, ["tools", END])
    return builder.compile()


async def function(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str | Mapping[str, Any]:
    """Call the last offered tool once."""
    if messages[-1]["role"] == "tool":
        return f"It said {messages[-1]['content']}"
    return {"content": None, "tool_calls": [{"name": tools[-1]["function"]["name"], "arguments": {"count": 4}}]}


def silent(tools: list[Any]) -> Any:
    """Return an agent that calls a tool within its node, without a message."""

    def work(state: MessagesState) -> dict[str, Any]:  # noqa: ARG001
        return {"messages": [AIMessage(tools[1].invoke({"count": 5}))]}

    return StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").add_edge("work", END).compile()


def test_user_defined_players_call_tools(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"options": {"larders": 1}, "seed": 3}
    for player, called, last in (
        (agent, ["count_jars", "count_jars", "sing", "order_jars"], "Done."),
        (silent, ["order_jars"], '{"ordered": 5}'),
        (function, ["order_jars"], 'It said {"ordered": 4}'),
    ):
        path = tmp_path / f"{player.__name__}.db"
        (episode,) = dialoom.play(LARDER, path=path, models={"clerk": player}, **settings).episodes()
        assert (episode.error, names(episode)) == (None, called)
        assert episode.outcome.messages[-1].content == last
        outputs = [line.content for line in episode.outcome.messages if line.role == "tool"]
        assert len(outputs) == len(called) and json.loads(outputs[-1]).keys() == {"ordered"}
