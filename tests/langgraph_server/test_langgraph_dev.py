"""Recipes behind `langgraph dev`: threads and runs over its HTTP API, with the offline model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.langgraph_server.conftest import Server, serving

pytest.importorskip(
    "langgraph_api", reason="langgraph-cli is not installed: 'make test-langgraph-server' makes an environment"
)

THIRD = {"scenario": 3, "seed": 7}


def texts_of(state: dict[str, Any]) -> list[str]:
    """Return the texts of the conversation's lines."""
    return [message["content"] for message in state["messages"]]


def test_dialogue_is_held_and_judged_on_a_thread(server: Server) -> None:
    thread = server.thread()
    final = server.wait(thread, "personalens", {})

    names = [message["name"] for message in final["messages"]]
    assert names[:3] == ["user", "assistant", "user"]
    assert len(names) >= 4
    assert final["ended_by"] == "user_terminated"
    scores = {(each["metric"], each["target"]): each["score"] for each in final["judgements"]}
    assert scores["task_completion", "assistant"] in (True, False)
    assert scores["personalization", "assistant"] in (1, 2, 3, 4)
    assert len(scores) == 6

    state = server.state(thread)
    assert state["values"]["messages"] == final["messages"]
    assert state["next"] == []
    history = server.history(thread)
    assert [len(each["values"].get("messages", [])) for each in reversed(history)][:4] == [0, 0, 0, 1]
    assert [each["next"] for each in history][-2:] == [["begin"], ["__start__"]]


def test_tree_is_grown_on_a_thread(server: Server) -> None:
    thread = server.thread()
    final = server.wait(thread, "aloe", {}, context={"scenario": 2})
    assert [len(round_["path"]) for round_ in final["rounds"]] == list(range(10))
    assert all(round_["preferred"] != round_["rejected"] for round_ in final["rounds"])
    assert server.state(thread)["next"] == []


def test_thread_holds_the_conversation_of_a_run(server: Server, dialoom: Command) -> None:
    final = server.wait(server.thread(), "personalens", {}, context=THIRD)
    dialoom("run", "personalens", "--seed", 7, "--limit", 3, "-o", "run.db")
    shown = json.loads(dialoom("show", "run.db", 3, "--json").stdout)
    assert texts_of(final) == texts_of(shown)


def test_stopped_thread_continues_with_its_context(server: Server) -> None:
    whole = server.wait(server.thread(), "personalens", {}, context=THIRD)
    thread = server.thread()
    begun = server.wait(thread, "personalens", {}, context=THIRD, interrupt_after=["assistant"])
    assert len(begun["messages"]) == 2
    assert server.state(thread)["next"] == ["user"]
    assert server.wait(thread, "personalens", None) == whole


def test_edited_line_is_answered(server: Server) -> None:
    thread = server.thread()
    before = texts_of(server.wait(thread, "personalens", {}, context=THIRD))
    checkpoint = next(each for each in server.history(thread) if len(each["values"].get("messages", [])) == 2)
    line = {**checkpoint["values"]["messages"][1], "content": "Do you read poems at all?"}
    edit = {"values": {"messages": [line]}, "as_node": "assistant", "checkpoint": checkpoint["checkpoint"]}
    server.call("POST", f"/threads/{thread}/state", edit)
    after = texts_of(server.wait(thread, "personalens", None))
    assert after[:2] == [before[0], "Do you read poems at all?"]
    assert after[2] != before[2]


def test_impossible_request_is_refused_and_the_thread_stays_usable(server: Server) -> None:
    thread = server.thread()

    def refusal(**context: Any) -> str:
        return str(server.wait(thread, "personalens", {}, context=context)["__error__"]["message"])

    for scenario in (0, 9999):
        assert re.search(rf"scenario must be from 1 to \d+ .*personalens.*, got {scenario}", refusal(scenario=scenario))
    assert "unknown role 'narrator'; the roles are user, assistant, judge" in refusal(models={"narrator": "openai/x"})
    assert "must be given where the graph is created" in refusal(model="python:os:system")
    whole = server.wait(server.thread(), "personalens", {}, context=THIRD)
    assert server.wait(thread, "personalens", {}, context=THIRD) == whole
    again = server.wait(thread, "personalens", {}, context=THIRD)
    assert "start a new thread for a new one" in again["__error__"]["message"]


def test_every_graph_has_its_nodes_and_context(server: Server) -> None:
    for assistant in server.call("POST", "/assistants/search", {}):
        drawn = server.call("GET", f"/assistants/{assistant['assistant_id']}/graph")
        schemas = server.call("GET", f"/assistants/{assistant['assistant_id']}/schemas")
        assert {"__start__", "begin"} < {each["id"] for each in drawn["nodes"]}
        assert {"scenario", "model", "models", "seed", "sample"} == set(schemas["context_schema"]["properties"])


def test_custom_recipe_and_players(tmp_path: Path) -> None:
    (tmp_path / "players.py").write_text(
        """
async def guesser(messages):
    return "Is it a heron?"

async def keeper(messages):
    return "Yes, you found it."
"""
    )
    recipe = Path(__file__).parent.parent.parent / "docs/examples/twenty_questions/recipe.py"
    (tmp_path / "mine.py").write_text(
        f"""
from dialoom.langgraph_server import serve

game = serve(
    "{recipe}:RECIPE",
    {{"words": "piano,heron"}},
    models={{"guesser": "python:players:guesser", "keeper": "python:players:keeper"}},
)
"""
    )
    (tmp_path / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": {"game": "./mine.py:game"}}))
    with serving(tmp_path / "langgraph.json", tmp_path) as server:
        final = server.wait(server.thread(), "game", {}, context={"scenario": 2})
        assert texts_of(final) == ["Is it a heron?", "Yes, you found it."]
