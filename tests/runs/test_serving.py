"""Served graphs, played without a server: plain contexts, LangGraph's own checkpointers and stores."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from dialoom import DialoomError, langgraph_graphs
from dialoom.langgraph_server import RequestError, serve
from dialoom.runs.configuration.recipes import recipe_names

ROOT = Path(__file__).parent.parent.parent
THREAD = {"configurable": {"thread_id": "a-thread"}}


def persistent(graph: Any, store: bool = True) -> Any:
    """Return a graph with the checkpointer and the store that a server would attach."""
    return graph.copy(update={"checkpointer": InMemorySaver(), "store": InMemoryStore() if store else None})


async def test_empty_input_starts_the_first_scenario() -> None:
    final = await serve("personalens").ainvoke({}, context={})
    assert final["ended_by"]
    assert len(final["judgements"]) == 6


async def test_scenario_can_be_given_in_full() -> None:
    graph = serve("aloe", {"rounds": 2})
    whole = {"person": "p1", "profile": "She keeps bees.", "personality": "She is blunt.", "rounds": 2}
    final = await graph.ainvoke({}, context={"scenario": whole})
    assert "bees" in final["rounds"][0]["user"] + final["rounds"][1]["user"]
    del whole["personality"]
    with pytest.raises(
        RequestError, match="scenario: personality: Field required; it must be a complete aloe scenario"
    ):
        await graph.ainvoke({}, context={"scenario": whole})


async def test_same_request_has_the_same_replies() -> None:
    graph = serve("personalens")
    first, second, other = [await graph.ainvoke({}, context={"scenario": 2, "sample": sample}) for sample in (0, 0, 1)]
    assert first == second
    assert [line.content for line in other["messages"]] != [line.content for line in first["messages"]]


async def test_context_names_a_model_for_every_role() -> None:
    async def personalization(**context: Any) -> int:
        final = await serve("personalens", {"settings": ["I"]}).ainvoke({}, context={"scenario": 4, **context})
        return int(next(each["score"] for each in final["judgements"] if each["metric"] == "personalization"))

    attentive = await personalization(model="offline/attentive")
    assert attentive > await personalization(models={"assistant": "offline/generic"})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"scenario": 0}, r"scenario must be from 1 to 20 .*, got 0"),
        ({"scenario": 21}, r"scenario must be from 1 to 20 .*, got 21"),
        ({"models": {"narrator": "openai/x"}}, r"models: unknown role 'narrator'; the roles are user, induction"),
        ({"model": "offline/nobody"}, r"unknown model 'offline/nobody'"),
        ({"models": {"user": "graph:any/file.py:name"}}, r"must be given where the graph is created"),
    ],
)
async def test_impossible_request_is_refused(context: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        await serve("aloe").ainvoke({}, context=context)


async def test_thread_keeps_its_context() -> None:
    graph = persistent(serve("personalens"))
    whole = await serve("personalens").ainvoke({}, context={"scenario": 3, "seed": 5})
    await graph.ainvoke({}, THREAD, context={"scenario": 3, "seed": 5}, interrupt_after=["assistant"])
    assert await graph.ainvoke(None, THREAD, context={}) == whole

    without_store = persistent(serve("personalens"), store=False)
    await without_store.ainvoke({}, THREAD, context={"scenario": 3, "seed": 5}, interrupt_after=["assistant"])
    with pytest.raises(RequestError, match="state the scenario in the context"):
        await without_store.ainvoke(None, THREAD, context={})
    assert await without_store.ainvoke(None, THREAD, context={"scenario": 3, "seed": 5}) == whole


async def test_thread_holds_one_conversation() -> None:
    graph = persistent(serve("personalens"))
    with pytest.raises(RequestError, match="scenario must be from 1"):
        await graph.ainvoke({}, THREAD, context={"scenario": 0})
    final = await graph.ainvoke({}, THREAD, context={"scenario": 1})
    assert final == await serve("personalens").ainvoke({}, context={})
    with pytest.raises(RequestError, match="start a new thread for a new one"):
        await graph.ainvoke({}, THREAD, context={"scenario": 1})


async def test_players_of_this_machine_are_given_with_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gamers.py").write_text(
        "async def guesser(messages):\n    return 'Is it a heron?'\n\n"
        "async def keeper(messages):\n    return 'Yes, you found it.'\n"
    )
    recipe = f"{ROOT / 'docs/examples/twenty_questions/recipe.py'}:RECIPE"
    models = {role: f"python:gamers:{role}" for role in ("guesser", "keeper")}
    final = await serve(recipe, {"words": "piano,heron"}, models).ainvoke({}, context={"scenario": 2})
    assert [line.content for line in final["messages"]] == ["Is it a heron?", "Yes, you found it."]
    same = await serve(recipe, {}, models).ainvoke({}, context={"model": "offline/generic"})
    assert [line.content for line in same["messages"]] == ["Is it a heron?", "Yes, you found it."]
    sys.modules.pop("gamers")


def test_unknown_role_is_refused_when_the_graph_is_made() -> None:
    with pytest.raises(DialoomError, match="models: unknown role 'narrator'"):
        serve("personalens", models={"narrator": "openai/x"})


def test_every_installed_recipe_is_served() -> None:
    graphs = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    assert sorted(graphs) == recipe_names()
    for name, entry in graphs.items():
        module, _, variable = entry["path"].partition(":")
        assert module == "dialoom.langgraph_graphs"
        assert vars(langgraph_graphs)[variable].name == name
