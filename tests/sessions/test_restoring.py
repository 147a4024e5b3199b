"""Assistants with a memory are restored exactly: after a crash, in a fork, in a rewind, among workers, in trials."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import dialoom
from dialoom import DialoomError
from tests.processes import Started
from tests.runs.workers.near import near_cluster
from tests.server import Answer, completion, serving

STUDY = """
name = "memory"
[people]
rows = [{ name = "Ann", style = "brief" }, { name = "Bo", style = "wordy" }]
[tasks]
rows = [{ goal = "a table for two" }, { goal = "the same table, but on Sunday" }]
[dialogue]
max_turns = 2
in_sequence = true
ends = []
"""
CALLS = 8
"""How often the assistant is called in all: two people, two conversations each, of two turns."""

RESTORED = [
    "graph:memories.py:in_memory",
    "graph:memories.py:store_only",
    "graph:memories.py:in_file",
    "graph:memories.py:made",
    "python:memories:Snapshots",
    "python:memories:shared",
    "python:memories:Begins",
]
ALONE = "python:memories:alone"


@dataclass
class Note:
    """A type of the user's own, in the state of a graph."""

    text: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parent / "memories.py", tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def command(folder: Path, *arguments: object, die_at: int = 0, status: int | None = 0, text: str = "") -> str:
    environment = os.environ | {"DIE_AT": str(die_at)}
    with Started(folder, *arguments, environment=environment) as process:
        printed, errors = process.communicate(text)
        assert status is None or process.returncode == status, errors
    return printed + errors


def play(folder: Path, model: str, path: str = "run.db", *more: object, **how: Any) -> None:
    flags = ("--model", f"assistant={model}", "--stateful", "assistant", "--no-judge", "--concurrency", "2")
    command(folder, "run", "study.toml", *flags, "-o", path, *more, **how)


def exported(folder: Path, path: str = "run.db") -> bytes:
    to = folder / f"{path}.jsonl"
    command(folder, "export", path, "-o", to)
    return to.read_bytes()


def rows(export: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.splitlines()]


def replies(export: bytes) -> list[list[str]]:
    return [[each["content"] for each in row["messages"] if each["role"] == "assistant"] for row in rows(export)]


@pytest.mark.parametrize("model", RESTORED)
def test_state_is_the_same_after_crashes_in_a_fork_among_workers_and_in_trials(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashes in the first call, one within a conversation, and one in a person's second conversation."""
    play(folder, model, "whole.db")
    whole = exported(folder, "whole.db")
    for call in (1, 4, 6):
        play(folder, model, f"{call}.db", die_at=call, status=-9)
        command(folder, "resume", f"{call}.db", "--trust")
        assert exported(folder, f"{call}.db") == whole, f"killed in call {call}"

    script = "back 2\nresample\nnext 2\nquit\n"  # the last turn of Ann's second conversation, lived again
    said = command(folder, "step", "whole.db", "2", "--trust", text=script)
    memory = replies(whole)[1][1].partition("(")[0]  # of as many messages as when it was played first
    assert said.count(memory) >= 2, said
    assert exported(folder, "whole.db") == whole  # the fork has changed nothing in the conversation that it left

    play(folder, model, "trials.db", "--trials", "2")
    first = [row for row in rows(exported(folder, "trials.db")) if row["trial"] == 1]
    assert [each["messages"] for each in first] == [each["messages"] for each in rows(whole)]

    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    near_cluster(monkeypatch)
    players = {"assistant": dialoom.Agent(model, stateful=True)}
    run = dialoom.play("study.toml", path="workers.db", models=players, options={"judge": False}, workers=2)
    run.export("dialogues", "workers.jsonl")
    assert rows(Path("workers.jsonl").read_bytes()) == rows(whole)


def test_player_that_cannot_be_restored_starts_again_and_exports_say_so(folder: Path) -> None:
    play(folder, ALONE, die_at=3, status=-9)
    command(folder, "resume", "run.db", "--trust")
    export = exported(folder)
    assert all(re.findall(r"\d+ messages", each[-1]) == ["3 messages"] for each in replies(export))
    again = [row.get("earlier_attempts") for row in rows(export)]
    assert again.count(1) in (1, 2) and set(again) == {None, 1}  # of two in progress, one or both had begun
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        unanswered = connection.execute("SELECT count(*) FROM calls WHERE reply IS NULL").fetchone()
        answered = connection.execute("SELECT count(*) FROM calls WHERE role = 'assistant'").fetchone()
    assert unanswered[0] >= 1 and answered[0] > CALLS  # both attempts are in the ledger


def test_player_that_cannot_be_restored_is_refused_where_it_would_have_to_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(folder, ALONE)
    said = command(folder, "step", "run.db", "1", "--trust", text="back 2\nresample\nnext 2\nquit\n", status=None)
    assert "python:memories:alone cannot go on: it has no snapshot(), restore() or begin()" in said
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    near_cluster(monkeypatch)
    players = {"assistant": dialoom.Agent(ALONE, stateful=True)}
    with pytest.raises(
        DialoomError, match="workers: assistant is played by python:memories:alone, whose state no other"
    ):
        dialoom.play("study.toml", path="workers.db", models=players, options={"judge": False}, workers=2)


def test_failed_conversation_is_reported_for_those_after_it(tmp_path: Path) -> None:
    async def agent(messages: list[dict[str, Any]]) -> str:
        if "fail" in messages[-1]["content"] and not done:
            raise RuntimeError("no")
        return "Yes."

    done: list[int] = []
    people, tasks = [{"name": "Ann"}, {"name": "Bo"}], [{"goal": "please fail"}, {"goal": "a chair"}]
    rules: dict[str, Any] = {"max_turns": 1, "in_sequence": True, "ends": []}
    run = dialoom.simulate(people, tasks, assistant=agent, path=tmp_path / "run.db", **rules)
    errors = [episode.error for episode in run.episodes()]
    assert [error is not None for error in errors] == [True] * 4
    assert errors[1] == "not played, because the conversation before it, scenario 1, failed; retry plays both"
    done.append(1)
    assert dialoom.retry(run.path, models={"assistant": agent}, recipe=run.recipe).status().done == 4


async def test_server_of_a_model_learns_the_session_as_configured(tmp_path: Path) -> None:
    def answer(body: dict[str, Any], _number: int) -> Answer:
        return completion(f"I was sent {len(body['messages'])} messages.")

    named = re.compile(r"person-[0-9a-f]{20}")
    for form in ("user", "metadata", "headers"):
        with serving(answer) as server:
            model = dialoom.Model("openai/agent", api_base=server.url, session=form, stateful=True)
            run = await dialoom.asimulate(
                [{"name": "Ann"}], assistant=model, path=tmp_path / f"{form}.db", max_turns=2, ends=[]
            )
            (episode,) = run.episodes()
            answers = [line.content for line in episode.outcome.messages if line.role == "assistant"]
            assert answers == ["I was sent 1 messages."] * 2  # only what is new
            assert (named.fullmatch(server.requests[1].get("user", "")) is not None) == (form == "user")
            metadata = server.requests[1].get("metadata", {})
            assert (metadata.get("turn"), metadata.get("session")) == (
                ("2", "1") if form == "metadata" else (None, None)
            )
            assert ("x-dialoom-conversation" in server.headers[1]) == (form == "headers")


def test_example_shows_which_assistant_remembers(tmp_path: Path) -> None:
    """The page has the table that the example prints."""
    root = Path(__file__).parents[2]
    script = "from docs.examples.remembering import play\nfrom pathlib import Path\nprint(play(Path()))"
    environment = os.environ | {"PYTHONPATH": str(root)}
    with Started(
        tmp_path, script=f"import sys\nsys.path.insert(0, {str(root)!r})\n{script}", environment=environment
    ) as process:
        printed, errors = process.communicate()
    page = (root / "docs" / "sessions.md").read_text(encoding="utf-8")
    table = page.rpartition("```\n|")[2].partition("```")[0]
    assert f"|{table}" in printed, errors


@pytest.mark.parametrize("damaged", [b"\0", zlib.compress(b" " * (70 * 2**20))], ids=["no state", "a huge one"])
def test_damaged_state_of_a_player_is_one_message(folder: Path, damaged: bytes) -> None:
    play(folder, "python:memories:Snapshots")
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute("UPDATE player_states SET state = ?", (damaged,))
    said = command(folder, "step", "run.db", "1", "--trust", text="state players\nquit\n", status=None)
    assert "run.db" in said and "Traceback" not in said, said


def test_roles_with_one_player_have_states_of_their_own(tmp_path: Path) -> None:
    begun: list[int] = []

    class Counting:
        async def begin(self, _session: dialoom.Session, messages: list[dict[str, Any]]) -> None:
            begun.append(len(messages))
            self.calls = 0

        async def __call__(self, messages: list[dict[str, Any]]) -> str:
            self.calls += 1
            return f"This is my message {self.calls}."

    player = dialoom.Agent(Counting, stateful=True)
    run = dialoom.simulate(
        [{"name": "Ann"}], assistant=player, user=player, path=tmp_path / "run.db", max_turns=2, ends=[]
    )
    (episode,) = run.episodes()
    assert [line.content[-2:] for line in episode.outcome.messages] == ["1.", "1.", "2.", "2."]
    assert begun == [0, 0]


def test_state_in_memory_that_cannot_be_restored_is_refused(tmp_path: Path) -> None:
    class State(MessagesState):
        note: Any

    builder = StateGraph(State).add_node("node", lambda _state: {"messages": [("ai", "Yes.")], "note": Note("red")})
    graph = builder.add_edge(START, "node").compile(checkpointer=InMemorySaver())
    agent = dialoom.Agent(graph, stateful=True, name="mine")
    run = dialoom.simulate([{"name": "Ann"}], assistant=agent, path=tmp_path / "run.db", max_turns=1, ends=[])
    (episode,) = run.episodes()
    assert episode.error is not None
    assert episode.error.startswith("mine has values in its state that cannot be restored: with InMemorySaver, only")
