"""Assistants with the tools of an MCP server: recorded, replayed after a crash, and not executed twice."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import DialoomError
from tests.conftest import ROOT
from tests.graphs.support import played_by
from tests.processes import Started
from tests.runs.workers.near import near_cluster

pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'dialoom[mcp]'")

SERVER = ROOT / "tests" / "mcp_server.py"
STUDY = """
name = "shop"

[people]
rows = [{ name = "Ada" }]

[tasks]
rows = ["a refund"]
"""
PLAYERS = """
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

CALLS = [("look_up", {"order_id": "A1"}), ("refund", {"order_id": "A1"})]


async def user(messages):
    return "Please refund order A1." if len(messages) < 3 else "DONE"


async def function(messages, tools):
    done = sum(message["role"] == "tool" for message in messages)
    if done == len(CALLS):
        return "Done."
    return {"content": "", "tool_calls": [{"name": CALLS[done][0], "arguments": CALLS[done][1]}]}


def graph(tools):
    async def think(state):
        done = sum(isinstance(each, ToolMessage) for each in state["messages"])
        if done == len(CALLS):
            return {"messages": [AIMessage("Done.")]}
        call = {"name": CALLS[done][0], "args": CALLS[done][1], "id": str(done)}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    async def after(state):
        return "tools" if getattr(state["messages"][-1], "tool_calls", ()) else END

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", after, ["tools", END])
    builder.add_edge("tools", "think")
    return builder.compile()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a study and its players."""
    (tmp_path / "shop.toml").write_text(STUDY)
    (tmp_path / "players.py").write_text(PLAYERS)
    return tmp_path


def server(folder: Path) -> str:
    """Return the command of a server that keeps its book in a folder."""
    return f"{sys.executable} {SERVER} {folder / 'book.txt'}"


def refunds(folder: Path) -> list[str]:
    """Return the refunds that the server has made."""
    book = folder / "book.txt"
    return book.read_text().splitlines() if book.exists() else []


def command(folder: Path, assistant: str) -> list[object]:
    """Return the command that plays the study."""
    models = ["--model", "user=graph:players.py:user", "--model", f"assistant=graph:players.py:{assistant}"]
    return ["run", "shop.toml", "--mcp", server(folder), *models, "-o", "run.db"]


def finished(folder: Path, *command: object, code: int = 0) -> str:
    """Carry out a command in a process of its own, and return what it prints."""
    with Started(folder, *command) as process:
        out, errors = process.communicate()
        assert process.returncode == code, errors
    return out + errors


def killed(folder: Path, *command: object) -> None:
    """Carry out a command that the server kills."""
    with Started(folder, *command) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_calls_and_results_are_messages_and_in_the_ledger(folder: Path, assistant: str) -> None:
    finished(folder, *command(folder, assistant))
    run = dialoom.open_run(folder / "run.db")
    (episode,) = run.episodes()
    assert [result for _, result in episode.outcome.tool_results] == ["order A1: a kettle", "refunded A1"]
    assert episode.outcome.messages[-1].content == "Done." and episode.outcome.environment is None
    calls = run.frame("calls").query("role == 'tool'").to_dict("records")
    assert [(each["model"], each["reply"], each["cost"]) for each in calls] == [
        ("tool:look_up", "order A1: a kettle", 0.0),
        ("tool:refund", "refunded A1", 0.0),
    ]
    assert refunds(folder) == ["A1"]


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_completed_call_is_not_executed_again(folder: Path, assistant: str) -> None:
    """The process dies in the second call, of a tool that may be repeated: the first one is replayed."""
    text = (folder / "players.py").read_text()
    (folder / "players.py").write_text(re.sub(r"CALLS = \[(\(.*?\)), (\(.*?\))\]", r"CALLS = [\2, \1]", text))
    (folder / "book.look_up").touch()
    killed(folder, *command(folder, assistant))
    assert refunds(folder) == ["A1"]
    finished(folder, "resume", "run.db")
    assert refunds(folder) == ["A1"]
    assert (folder / "book.looked").read_text().splitlines() == ["A1", "A1"], "what only reads is called again"
    (episode,) = dialoom.open_run(folder / "run.db").episodes()
    assert [result for _, result in episode.outcome.tool_results] == ["refunded A1", "order A1: a kettle"]


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_call_of_unknown_result_is_not_repeated(folder: Path, assistant: str) -> None:
    (folder / "book.refund").touch()
    killed(folder, *command(folder, assistant))
    told = finished(folder, "resume", "run.db", code=1)
    assert 'the tool call refund(order_id="A1") was begun before an interruption, and its result is unknown' in told
    assert refunds(folder) == ["A1"]
    finished(folder, "retry", "run.db", "--scenario", 1)
    assert refunds(folder) == ["A1", "A1"], "played anew, as the user wishes"


def simulated(folder: Path, assistant: Any, **changed: Any) -> Any:
    """Return the only episode of a simulation with the server."""
    given = {"user": played_by(["Hello.", "DONE"]), "assistant": assistant, "mcp": [server(folder)], **changed}
    (episode,) = dialoom.simulate([{"name": "Ada"}], path=folder / "simulated.db", **given).episodes()
    return episode


async def unlucky(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
    """Look up an order that does not exist."""
    if messages[-1]["role"] == "tool":
        return "I cannot find it."
    assert {each["function"]["name"] for each in tools} == {"look_up", "refund"}
    return {"content": "", "tool_calls": [{"name": "look_up", "arguments": {"order_id": "Z9"}}]}


def test_error_of_a_tool_is_its_result(folder: Path) -> None:
    episode = simulated(folder, unlucky)
    ((_, result),) = episode.outcome.tool_results
    assert result is not None and result.startswith("error: ") and "look_up" in result


def test_server_that_cannot_be_used_is_one_message(folder: Path) -> None:
    with pytest.raises(DialoomError, match="mcp: the server 'no-such-command' cannot be used"):
        simulated(folder, unlucky, mcp=["no-such-command"])


def test_workers_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near_cluster(monkeypatch)
    with pytest.raises(DialoomError, match="workers: tools of MCP servers are called from one process only"):
        simulated(folder, unlucky, workers=2)
    assert not (folder / "simulated.db").exists()


def test_server_of_a_strangers_file_is_not_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(folder, *command(folder, "function"), "--max-calls", 1, code=3)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "another-user"))
    told = finished(folder, "resume", "run.db", "--max-calls", "none", code=2)
    assert "names" in told and "not used" in told and not refunds(folder)
    finished(folder, "resume", "run.db", "--max-calls", "none", "--trust")
    assert refunds(folder) == ["A1"]
