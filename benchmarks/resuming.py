"""An agent with a memory, killed and resumed: repeated calls and lost memories, with dialoom and with inspect_ai.

    python benchmarks/resuming.py [--inspect PATH/TO/bin/python] [--kills 9 15 21]

Four people have three conversations of two turns with a LangGraph agent, two people at a time. In the first
conversation they say what they eat, in the third one they ask for a restaurant. The process is killed in a given call
of the agent, and resumed. inspect_ai needs its own environment, with langgraph; a sample is a person. With checkpoints,
there is one after each turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

AGENT = """
import os, re, signal
from pathlib import Path
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

CONVERSATIONS = [
    ["Remember that I eat only vegan food.", "Thank you."],
    ["When is the library open?", "Thank you."],
    ["Recommend a restaurant for tonight.", "Thank you."],
]

async def reply(state: MessagesState, config: RunnableConfig, *, store: BaseStore):
    with open("calls.txt", "a") as calls:
        print("call", file=calls)
    if len(Path("calls.txt").read_text().splitlines()) == int(os.environ.get("DIE_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)
    text, space = str(state["messages"][-1].content), ("diets", config["configurable"]["user_id"])
    if found := re.search(r"I eat only (\\w+)", text):
        await store.aput(space, "diet", {"is": found[1]})
    kept = await store.aget(space, "diet")
    diet = kept.value["is"] if kept else "local"
    return {"messages": [("ai", f"The Green Table is {diet}." if "restaurant" in text else "All right.")]}

builder = StateGraph(MessagesState).add_node("reply", reply).add_edge(START, "reply")
graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())

async def customer(messages, session):
    return CONVERSATIONS[session.number - 1][session.turn - 1]
"""

TASK = """
from agent import CONVERSATIONS, graph
from inspect_ai import Task, task
from inspect_ai.agent import AgentState, agent
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.util import CheckpointConfig, TurnInterval, checkpointer

@agent
def conversations():
    async def execute(state: AgentState) -> AgentState:
        person = state.messages[0].text
        async with checkpointer() as cp:
            state.messages = cp.track("messages", lambda: state.messages, [], value_type=list[ChatMessage])
            turns = [(number, text) for number, talk in enumerate(CONVERSATIONS) for text in talk]
            for number, text in turns[len(state.messages) // 2 :]:
                place = {"thread_id": f"{person}-{number}", "user_id": person}
                final = await graph.ainvoke({"messages": [("user", text)]}, {"configurable": place})
                reply = ChatMessageAssistant(content=final["messages"][-1].content)
                state.messages = [*state.messages, ChatMessageUser(content=text), reply]
                state.output.completion = " ".join(message.text for message in state.messages)
                await cp.tick()
        return state
    return execute

@scorer(metrics=[accuracy()])
def remembered():
    async def score(state, target):
        return Score(value=int("The Green Table is vegan" in state.output.completion))
    return score

@task
def memory(checkpoints: bool = False):
    people = [Sample(input=name) for name in ("Ann", "Bo", "Cem", "Dee")]
    every = CheckpointConfig(trigger=TurnInterval(every=1)) if checkpoints else None
    return Task(dataset=people, solver=conversations(), scorer=remembered(), checkpoint=every)
"""

STUDY = """
name = "memory"
[people]
rows = [{ name = "Ann" }, { name = "Bo" }, { name = "Cem" }, { name = "Dee" }]
[tasks]
rows = [{ goal = "to be remembered" }, { goal = "the library" }, { goal = "a restaurant" }]
[dialogue]
max_turns = 2
in_sequence = true
ends = []
"""

PEOPLE = 4
TOTAL_CALLS = PEOPLE * 3 * 2


def run_command(folder: Path, *command: str, die_at: int = 0) -> str:
    """Run a command in a folder; return its output."""
    variables = os.environ | {"DIE_AT": str(die_at), "INSPECT_DISPLAY": "none"}
    result = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if result.returncode != (-9 if die_at else 0):
        raise SystemExit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def play_with_dialoom(folder: Path, die_at: int) -> int:
    """Play the conversations with dialoom; return the number of people who are remembered."""
    (folder / "study.toml").write_text(STUDY)
    dialoom = str(Path(sys.executable).with_name("dialoom"))
    models = ("--model", "assistant=graph:agent.py:graph", "--model", "user=graph:agent.py:customer")
    flags = (*models, "--stateful", "assistant", "--no-judge", "--concurrency", "2", "-o", "run.db")
    run_command(folder, dialoom, "run", "study.toml", *flags, die_at=die_at)
    run_command(folder, dialoom, "resume", "run.db", "--trust", "--concurrency", "2")
    run_command(folder, dialoom, "export", "run.db", "-o", "out.jsonl")
    return (folder / "out.jsonl").read_text().count("The Green Table is vegan")


def make_inspect_player(python: str, *, checkpoints: bool) -> Callable[[Path, int], int]:
    """Return a function that plays the conversations with inspect_ai and returns the number of people remembered."""

    def play(folder: Path, die_at: int) -> int:
        (folder / "task.py").write_text(TASK)
        inspect = str(Path(python).with_name("inspect"))
        flags = ("-T", f"checkpoints={str(checkpoints).lower()}", "--model", "mockllm/model", "--max-samples", "2")
        run_command(folder, inspect, "eval", "task.py", *flags, die_at=die_at)
        (log,) = (folder / "logs").glob("*.eval")
        run_command(folder, inspect, "eval-retry", str(log))
        latest = max((folder / "logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
        samples = json.loads(run_command(folder, inspect, "log", "dump", str(latest)))["samples"]
        return sum(int(sample["scores"]["remembered"]["value"]) for sample in samples)

    return play


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inspect", help="the Python of an environment with inspect_ai and langgraph")
    parser.add_argument("--kills", type=int, nargs="+", default=[9, 15, 21])
    options = parser.parse_args()
    play_by_tool: dict[str, Callable[[Path, int], int]] = {"dialoom resume": play_with_dialoom}
    if options.inspect:
        play_by_tool["inspect eval-retry"] = make_inspect_player(options.inspect, checkpoints=False)
        play_by_tool["inspect eval-retry, a checkpoint each turn"] = make_inspect_player(
            options.inspect, checkpoints=True
        )
    print("| resumed with | killed in call | calls paid twice | people forgotten |\n| --- | --- | --- | --- |")
    for tool, play in play_by_tool.items():
        for die_at in options.kills:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "agent.py").write_text(AGENT)
                remembered = play(folder, die_at)
                paid_calls = len((folder / "calls.txt").read_text().splitlines())
            print(f"| {tool} | {die_at} | {paid_calls - TOTAL_CALLS} | {PEOPLE - remembered} of {PEOPLE} |", flush=True)


if __name__ == "__main__":
    main()
