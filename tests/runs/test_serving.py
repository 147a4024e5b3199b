"""What is served, played without a server: contexts are plain values, checkpoints and memory are LangGraph's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from dialoom.runs import RunError, recipe_names, served
from dialoom.runs.langgraph_server import RequestError, serve

ROOT = Path(__file__).parent.parent.parent
THREAD = {"configurable": {"thread_id": "a-thread"}}


def kept(graph: Any, store: bool = True) -> Any:
    """A graph with the checkpointer and the store that a server would give it."""
    return graph.copy(update={"checkpointer": InMemorySaver(), "store": InMemoryStore() if store else None})


async def test_an_empty_input_starts_the_scenario() -> None:
    """Which is the first one, where the context says nothing."""
    final = await serve("personalens").ainvoke({}, context={})
    assert final["ended_by"]
    assert len(final["judgements"]) == 6


async def test_a_scenario_can_be_given_whole() -> None:
    """Somebody whom no sample knows; what is missing of a scenario is named."""
    graph = serve("aloe", {"rounds": 2})
    whole = {"person": "p1", "profile": "She keeps bees.", "personality": "She is blunt.", "rounds": 2}
    final = await graph.ainvoke({}, context={"scenario": whole})
    assert "bees" in final["rounds"][0]["user"] + final["rounds"][1]["user"]
    del whole["personality"]
    with pytest.raises(RequestError, match="scenario: personality: Field required; it must be a whole aloe scenario"):
        await graph.ainvoke({}, context={"scenario": whole})


async def test_the_same_request_has_the_same_replies_and_another_sample_others() -> None:
    """Across threads, as in a run's file."""
    graph = serve("personalens")
    first, second, other = [await graph.ainvoke({}, context={"scenario": 2, "sample": sample}) for sample in (0, 0, 1)]
    assert first == second
    assert [line.content for line in other["messages"]] != [line.content for line in first["messages"]]


async def test_a_model_plays_every_role_that_is_not_named() -> None:
    """By the context; the generic assistant personalizes less than the attentive one."""

    async def personalization(**context: Any) -> int:
        final = await serve("personalens", {"settings": ["I"]}).ainvoke({}, context={"scenario": 4, **context})
        return int(next(each["score"] for each in final["judgements"] if each["metric"] == "personalization"))

    attentive = await personalization(model="offline/attentive")
    assert attentive > await personalization(models={"assistant": "offline/generic"})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"scenario": 0}, r"scenario 0: aloe has 20 here; give a number from 1 to that"),
        ({"scenario": 21}, r"scenario 21: aloe has 20 here"),
        ({"models": {"narrator": "openai/x"}}, r"models: unknown role 'narrator'; the roles are user, induction"),
        ({"model": "offline/nobody"}, r"unknown model 'offline/nobody'"),
        ({"models": {"user": "graph:any/file.py:name"}}, r"code of this machine is named where the graph is made"),
    ],
)
async def test_what_a_request_cannot_have(context: dict[str, Any], message: str) -> None:
    """Each error names the value and what would be right."""
    with pytest.raises(RequestError, match=message):
        await serve("aloe").ainvoke({}, context=context)


async def test_a_thread_goes_on_as_it_began() -> None:
    """A context that is left out is the one that the thread began with; where nothing is known of it, that is said."""
    graph = kept(serve("personalens"))
    whole = await serve("personalens").ainvoke({}, context={"scenario": 3, "seed": 5})
    await graph.ainvoke({}, THREAD, context={"scenario": 3, "seed": 5}, interrupt_after=["assistant"])
    assert await graph.ainvoke(None, THREAD, context={}) == whole

    forgetful = kept(serve("personalens"), store=False)
    await forgetful.ainvoke({}, THREAD, context={"scenario": 3, "seed": 5}, interrupt_after=["assistant"])
    with pytest.raises(RequestError, match="say in the context which scenario it holds"):
        await forgetful.ainvoke(None, THREAD, context={})
    assert await forgetful.ainvoke(None, THREAD, context={"scenario": 3, "seed": 5}) == whole


async def test_a_thread_holds_one_conversation() -> None:
    """A second beginning is refused; one after a refused request is not, and plays the same."""
    graph = kept(serve("personalens"))
    with pytest.raises(RequestError, match="scenario 0"):
        await graph.ainvoke({}, THREAD, context={"scenario": 0})
    final = await graph.ainvoke({}, THREAD, context={"scenario": 1})
    assert final == await serve("personalens").ainvoke({}, context={})
    with pytest.raises(RequestError, match="a new one needs a new thread"):
        await graph.ainvoke({}, THREAD, context={"scenario": 1})


async def test_players_of_this_machine_are_named_with_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe in a file, with options and Python functions; a model for all the others does not take their parts."""
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


def test_a_role_that_there_is_not_is_told_where_the_graph_is_made() -> None:
    """Before anything is served."""
    with pytest.raises(RunError, match="models: unknown role 'narrator'"):
        serve("personalens", models={"narrator": "openai/x"})


def test_every_installed_recipe_is_served() -> None:
    """`langgraph.json` names a compiled graph for each of them."""
    graphs = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    assert sorted(graphs) == recipe_names()
    for name, entry in graphs.items():
        module, _, variable = entry["path"].partition(":")
        assert module == "dialoom.runs.served"
        assert vars(served)[variable].name == name
