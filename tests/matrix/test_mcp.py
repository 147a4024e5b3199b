"""Assistants with the tools of an MCP server: recorded, replayed after a crash, and not executed twice."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph

import dialoom
from dialoom import DialoomError
from tests.conftest import ROOT
from tests.graphs.support import scripted
from tests.processes import CommandProcess
from tests.programs import free_port
from tests.runs.workers.local_cluster import local_cluster

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
import os
from pathlib import Path

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

CALLS = [("look_up", {"order_id": "A1"}), ("refund", {"order_id": "A1"})]
Path(__file__).with_name("client.pid").write_text(str(os.getpid()))


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


def build_server_command(folder: Path) -> str:
    """Return the command of a server that records its refunds in a folder."""
    return f"{sys.executable} {SERVER} {folder / 'book.txt'}"


@contextmanager
def serve_http(folder: Path) -> Iterator[str]:
    """Start such a server, and yield its address."""
    port = free_port()
    process = subprocess.Popen([sys.executable, SERVER, folder / "book.txt", str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(params=["its command", "its address"])
def mcp(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield a server, by its command or by its address."""
    with serve_http(folder) if request.param == "its address" else nullcontext(build_server_command(folder)) as named:
        yield named


def read_refunds(folder: Path) -> list[str]:
    """Return the refunds that the server has made."""
    book = folder / "book.txt"
    return book.read_text().splitlines() if book.exists() else []


def build_command(assistant: str, mcp: str) -> list[object]:
    """Return the command that plays the study."""
    return ["run", "shop.toml", "--mcp", mcp, *build_player_flags(assistant), "-o", "run.db"]


def build_player_flags(assistant: str) -> list[object]:
    """Return the flags for the players."""
    return ["--model", "user=graph:players.py:user", "--model", f"assistant=graph:players.py:{assistant}"]


def run_command(folder: Path, *command: object, code: int = 0) -> str:
    """Carry out a command in a process of its own, and return what it prints."""
    with CommandProcess(folder, *command) as process:
        out, errors = process.communicate()
        assert process.returncode == code, errors
    return out + errors


def run_killed_command(folder: Path, *command: object) -> None:
    """Carry out a command that the server kills."""
    with CommandProcess(folder, *command) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_calls_and_results_are_messages_and_in_the_ledger(folder: Path, assistant: str, mcp: str) -> None:
    started = time.monotonic()
    run_command(folder, *build_command(assistant, mcp))
    run = dialoom.open_run(folder / "run.db")
    (episode,) = run.episodes()
    assert [result for _, result in episode.outcome.tool_results] == ["order A1: a kettle", "refunded A1"]
    assert episode.outcome.messages[-1].content == "Done." and episode.outcome.environment is None
    calls = run.frame("calls").query("role == 'tool'").to_dict("records")
    assert [(each["model"], each["reply"], each["cost"]) for each in calls] == [
        ("tool:look_up", "order A1: a kettle", 0.0),
        ("tool:refund", "refunded A1", 0.0),
    ]
    assert all(0 < each["latency"] < time.monotonic() - started for each in calls)
    assert read_refunds(folder) == ["A1"]


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_branch_with_tool_calls_is_rewound_promoted_and_replayed(folder: Path, assistant: str) -> None:
    run_command(folder, *build_command(assistant, build_server_command(folder)))
    lines = ["goto user", "fork again", "until tools" if assistant == "function" else "next", "next", "back"]
    script = [*lines, "next", "continue", "promote", "save case.json", "goto assistant", "resample", "next", "back"]
    (folder / "lines.txt").write_text("\n".join([*script, "next", "continue", "save anew.json"]) + "\n")
    assert "now comes from again" in run_command(folder, "step", "run.db", 1, "--script", "lines.txt")
    (episode,) = dialoom.open_run(folder / "run.db").episodes()
    assert episode.branch is not None and not episode.branch.models
    assert read_refunds(folder) == ["A1", "A1"], "only 'resample' repeats the call"
    for case in ("case.json", "anew.json"):
        assert "the same path" in run_command(folder, "replay", case)


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_completed_call_is_not_executed_again(folder: Path, assistant: str, mcp: str) -> None:
    """The process dies in the second call, of a tool that may be repeated: the first one is replayed."""
    text = (folder / "players.py").read_text()
    (folder / "players.py").write_text(re.sub(r"CALLS = \[(\(.*?\)), (\(.*?\))\]", r"CALLS = [\2, \1]", text))
    (folder / "book.look_up").touch()
    run_killed_command(folder, *build_command(assistant, mcp))
    assert read_refunds(folder) == ["A1"]
    run_command(folder, "resume", "run.db")
    assert read_refunds(folder) == ["A1"]
    assert (folder / "book.looked").read_text().splitlines() == ["A1", "A1"], "a read-only tool is called again"
    (episode,) = dialoom.open_run(folder / "run.db").episodes()
    assert [result for _, result in episode.outcome.tool_results] == ["refunded A1", "order A1: a kettle"]


@pytest.mark.parametrize("assistant", ["function", "graph"])
def test_call_of_unknown_result_is_not_repeated(folder: Path, assistant: str, mcp: str) -> None:
    (folder / "book.refund").touch()
    run_killed_command(folder, *build_command(assistant, mcp))
    output = run_command(folder, "resume", "run.db", code=1)
    assert 'the tool call refund(order_id="A1") was started before an interruption, and its result is unknown' in output
    assert read_refunds(folder) == ["A1"]
    run_command(folder, "retry", "run.db", "--scenario", 1)
    assert read_refunds(folder) == ["A1", "A1"], "a retry repeats the call"


def simulate(folder: Path, assistant: Any, **changed: Any) -> Any:
    """Return the only episode of a simulation with the server."""
    settings = {
        "user": scripted(["Hello.", "DONE"]),
        "assistant": assistant,
        "mcp": [build_server_command(folder)],
        **changed,
    }
    (episode,) = dialoom.simulate([{"name": "Ada"}], path=folder / "simulated.db", **settings).episodes()
    return episode


async def look_up_missing_order(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
    """Look up an order that does not exist."""
    if messages[-1]["role"] == "tool":
        return "I cannot find it."
    assert {each["function"]["name"] for each in tools} == {"look_up", "refund", "wait"}
    return {"content": "", "tool_calls": [{"name": "look_up", "arguments": {"order_id": "Z9"}}]}


def test_error_of_a_tool_is_its_result(folder: Path) -> None:
    episode = simulate(folder, look_up_missing_order)
    ((_, result),) = episode.outcome.tool_results
    assert result is not None and result.startswith("error: ") and "look_up" in result


def test_attempt_that_is_repeated_executes_no_call_again(folder: Path) -> None:
    attempts: list[None] = []

    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001
        refund = next(each for each in config["configurable"]["tools"] if each.name == "refund")
        attempts.append(None)
        said = [await refund.ainvoke({"order_id": "A1"}) for _ in range(2)]
        if len(attempts) == 1:
            raise ConnectionError
        return {"messages": [("ai", " and ".join(said))]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()
    episode = simulate(folder, graph)
    assert (len(attempts), read_refunds(folder)) == (2, ["A1", "A1"])
    assert "refunded A1 and refunded A1" in [line.content for line in episode.outcome.messages]


SCAN = """
import os
from mcp.server import MCPServer
from mcp.types import EmbeddedResource, ImageContent, TextResourceContents

server = MCPServer("scans")

@server.tool()
def scan() -> list:
    '''Scan a receipt.'''
    text = TextResourceContents(uri="file:///receipt", text="29.50")
    image = ImageContent(type="image", data="eA==", mime_type="image/png")
    return [image, EmbeddedResource(type="resource", resource=text)]

@server.tool()
def leave() -> str:
    '''End the server.'''
    os._exit(1)

server.run()
"""


@pytest.mark.parametrize("tool", ["scan", "leave"])
def test_results_without_text_are_named_and_a_server_that_ends_fails_the_scenario(folder: Path, tool: str) -> None:
    (folder / "scan.py").write_text(SCAN)

    async def calling(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:  # noqa: ARG001
        call = {"content": "", "tool_calls": [{"name": tool, "arguments": {}}]}
        return "It is 29.50." if messages[-1]["role"] == "tool" else call

    episode = simulate(folder, calling, mcp=[f"{sys.executable} {folder / 'scan.py'}"])
    if tool == "scan":
        assert [result for _, result in episode.outcome.tool_results] == ["[image: image/png]\n29.50"]
    else:
        assert "has ended, and the result of the call of leave is unknown" in episode.error


def test_server_that_cannot_be_used_is_reported_in_one_message(folder: Path) -> None:
    with pytest.raises(DialoomError, match="mcp: the server 'no-such-command' cannot be used"):
        simulate(folder, look_up_missing_order, mcp=["no-such-command"])


@pytest.mark.parametrize("bad", ["no-such-command", "false"])
def test_server_must_be_usable_though_the_assistant_takes_no_tools(folder: Path, bad: str) -> None:
    output = run_command(folder, "run", "shop.toml", "--mcp", bad, "-o", "run.db", code=2)
    assert f"--mcp: the server '{bad}' cannot be used: " in output and "start it by hand to see why" in output
    assert dialoom.open_run(folder / "run.db").status().pending == 1
    assert "1 done" in run_command(folder, "run", "shop.toml", "--mcp", build_server_command(folder), "-o", "usable.db")
    assert dialoom.open_run(folder / "usable.db").report().tables[0].warnings


def test_workers_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    with pytest.raises(DialoomError, match="workers: tools of MCP servers are called from one process only"):
        simulate(folder, look_up_missing_order, workers=2)
    assert not (folder / "simulated.db").exists()


def test_server_of_an_untrusted_file_is_not_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_command(folder, *build_command("function", build_server_command(folder)), "--max-calls", 1, code=3)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "another-user"))
    output = run_command(folder, "resume", "run.db", "--max-calls", "none", code=2)
    assert "names" in output and "not used" in output and not read_refunds(folder)
    run_command(folder, "resume", "run.db", "--max-calls", "none", "--trust")
    assert read_refunds(folder) == ["A1"]


def test_call_without_a_result_times_out(folder: Path) -> None:
    async def waiting(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:  # noqa: ARG001
        return {"content": "", "tool_calls": [{"name": "wait", "arguments": {}}]}

    episode = simulate(folder, waiting, timeout={"tool": 0.1})
    assert episode.error == "the tool call wait() has no result after 0.1 s (timeout)"


RECIPE = """
from dialoom.graphs import DialogueRecipe, Scenario, Turns


class Errand(Scenario):
    goal: str


class Support(DialogueRecipe):
    name = "support"
    scenario_type = Errand
    prompts = {"user": "You call. {{ goal }}", "assistant": "You answer."}
    turns = Turns(max_turns=1)
    mcp = [SERVER]

    def scenarios(self, options, draw, note):
        yield Errand(goal="refund a kettle")


RECIPE = Support()
"""


def test_recipe_names_servers(folder: Path, mcp: str) -> None:
    (folder / "support.py").write_text(RECIPE.replace("SERVER", repr(mcp)))
    (folder / "book.refund").touch()
    run_killed_command(folder, "run", "support.py:RECIPE", *build_player_flags("graph"), "-o", "run.db")
    output = run_command(folder, "resume", "run.db", code=1)
    assert 'the tool call refund(order_id="A1") was started before an interruption' in output
    assert read_refunds(folder) == ["A1"]
    run_command(folder, "retry", "run.db", "--scenario", 1)
    (episode,) = dialoom.open_run(folder / "run.db").episodes()
    assert [result for _, result in episode.outcome.tool_results] == ["order A1: a kettle", "refunded A1"]


def test_study_names_servers_and_tools(folder: Path) -> None:
    (folder / "more.py").write_text('def greet() -> str:\n    """Greet."""\n    return "Hello."\n')
    (folder / "players.py").write_text(PLAYERS.replace("CALLS = [", 'CALLS = [("greet", {}), '))
    named = f"mcp = [{build_server_command(folder)!r}]\ntools = ['more.py:greet']\n"
    (folder / "shop.toml").write_text(f"{STUDY}\n[assistant]\n{named}")
    run_command(folder, "run", "shop.toml", *build_player_flags("function"), "-o", "run.db")
    (episode,) = dialoom.open_run(folder / "run.db").episodes()
    results = [result for _, result in episode.outcome.tool_results]
    assert results == ["Hello.", "order A1: a kettle", "refunded A1"]
