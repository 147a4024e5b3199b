"""Stateful assistants: sessions, the display of states, and damaged states; `tests/matrix` tests the docs' table."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import re
import shutil
import sqlite3
import time
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

import dialoom
from dialoom.roles import BindingError
from dialoom.roles.gateway.stateful import BoundedDict
from tests.processes import CommandProcess
from tests.server import Answer, busy, completion, serving

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
"""The number of the assistant's calls: two people, two conversations each, of two turns."""

ALONE = "python:memories:alone"


@dataclass
class Note:
    """A user-defined type in the state of a graph."""

    text: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parent / "memories.py", tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def command(folder: Path, *arguments: object, die_at: int = 0, status: int | None = 0, text: str = "") -> str:
    environment = os.environ | ({"DIE_AT": str(die_at)} if die_at else {})
    with CommandProcess(folder, *arguments, environment=environment) as process:
        printed, errors = process.communicate(text)
        assert status is None or process.returncode == status, errors
    return printed + errors


def play(folder: Path, model: str, path: str = "run.db", *more: object, study: str = "study.toml", **how: Any) -> None:
    flags = ("--model", f"assistant={model}", "--stateful", "assistant", "--no-judge", "--concurrency", "2")
    command(folder, "run", study, *flags, "-o", path, *more, **how)


def exported(folder: Path, path: str = "run.db") -> bytes:
    to = folder / f"{path}.jsonl"
    command(folder, "export", path, "-o", to)
    return to.read_bytes()


def rows(export: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.splitlines()]


def replies(export: bytes) -> list[list[str]]:
    return [[each["content"] for each in row["messages"] if each["role"] == "assistant"] for row in rows(export)]


@pytest.mark.parametrize("player", ["in_memory", "in_file"])
def test_debugger_shows_what_a_step_has_changed_in_a_graph(folder: Path, player: str) -> None:
    """This includes a persistent checkpointer, whose values are in its own database."""
    play(folder, f"graph:memories.py:{player}")
    shown = command(folder, "step", "run.db", "1", "--trust", text="state players\nback 2\nfull on\nnext 2\nquit\n")
    assert '"role": "assistant",\n          "content": "I know 1 messages of this talk and' in shown, shown
    assert '+ players.assistant.values.messages[3] {"role": "assistant", "content": "I know 3 messages' in shown, shown


async def test_read_only_stepper_shows_the_values_of_a_persistent_checkpoint_or_why_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The studio reads runs in this way."""
    play(folder, "graph:memories.py:in_file")
    monkeypatch.chdir(folder)
    run = dialoom.open_run("run.db", trust=True)
    async with run.look(1) as stepper:
        stops = await stepper.stops()
        contents = [each["content"] for each in stepper.state["players"]["assistant"]["values"]["messages"]]
    assert contents[-1].startswith("I know 3 messages")
    changed = [[change.path for change in stop.changes if "players" in change.path] for stop in stops]
    assert "players.assistant.values.messages[3]" in changed[-1], changed
    with closing(sqlite3.connect("agent.db")) as connection, connection:
        connection.execute("DELETE FROM checkpoints")
    async with dialoom.open_run("run.db", trust=True).look(1) as stepper:
        shown = stepper.state["players"]["assistant"]
        assert shown["no_values"] == "PlayerError: its checkpointer does not have this checkpoint"
    (folder / "memories.py").unlink()
    async with dialoom.open_run("run.db", trust=True).look(1) as stepper:
        assert "there is no file 'memories.py'" in stepper.state["players"]["assistant"]["no_values"]


async def test_values_of_a_graph_given_as_an_object_are_shown_only_where_it_was_given(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        agent = graph_of(no_memory, checkpointer=saver)
        run = await dialoom.asimulate(
            [{"name": "Ann"}], assistant=agent, path=tmp_path / "run.db", max_turns=1, ends=[]
        )
        async with run.look(1) as stepper:
            assert stepper.state["players"]["assistant"]["values"]["messages"][1]["content"] == "I see 1 messages."
        async with dialoom.open_run(run.path, run.recipe).look(1) as stepper:
            shown = stepper.state["players"]["assistant"]
    assert "values" not in shown and shown["no_values"].endswith("given as an object, and has to be given again")


def test_player_that_cannot_be_restored_starts_again_and_exports_say_so(folder: Path) -> None:
    play(folder, ALONE, die_at=3, status=-9)
    assert "was restarted from its beginning: " in command(folder, "resume", "run.db", "--trust")
    export = exported(folder)
    assert all(re.findall(r"\d+ messages", each[-1]) == ["3 messages"] for each in replies(export))
    again = [row.get("earlier_attempts") for row in rows(export)]
    assert again.count(1) in (1, 2) and set(again) == {None, 1}  # of two in progress, one or both had begun
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        unanswered = connection.execute("SELECT count(*) FROM calls WHERE reply IS NULL").fetchone()
        answered = connection.execute("SELECT count(*) FROM calls WHERE role = 'assistant'").fetchone()
    assert unanswered[0] >= 1 and answered[0] > CALLS  # both attempts are in the ledger


@pytest.mark.parametrize(("player", "forgets"), [(ALONE, True), ("python:memories:Snapshots", False)])
def test_player_that_may_have_forgotten_a_person_is_named_by_resume_and_in_reports(
    folder: Path, player: str, forgets: bool
) -> None:
    play(folder, player, die_at=CALLS - 1, status=-9)
    reason = "may have lost what it knew of the person's earlier"
    resumed = command(folder, "resume", "run.db", "--trust")
    assert (f"conversations, a stateful player without snapshots {reason} conversations" in resumed) == forgets
    report = " ".join(command(folder, "report", "run.db", "--trust").split())
    said = f"The run stopped before these conversations, so a stateful player without snapshots {reason} ones: "
    assert (said in report) == forgets
    assert "4 done" in command(folder, "status", "run.db")


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
    assert errors[1] == "not played, because the conversation before it, scenario 1, failed; retry to play both"
    done.append(1)
    assert dialoom.retry(run.path, models={"assistant": agent}, recipe=run.recipe).status().done == 4


def test_sequence_in_which_no_player_remembers_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(Path(__file__).parent / "memories.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    notice = "in_sequence: no player knows a person's earlier conversations; declare the player that should remember"

    def is_reported(assistant: Any, in_sequence: bool = True) -> bool:
        events, path = list[Any](), tmp_path / f"{len([*tmp_path.glob('*.db')])}.db"
        rules: dict[str, Any] = {"max_turns": 1, "ends": [], "in_sequence": in_sequence, "on_event": events.append}
        dialoom.simulate([{"name": "Ann"}], assistant=assistant, path=path, **rules)
        return any(notice in each.text for each in events if isinstance(each, dialoom.Notice))

    without_store = graph_of(no_memory, checkpointer=InMemorySaver())
    assert is_reported(without_store)
    assert is_reported("offline/placeholder")
    assert is_reported(dialoom.Agent("graph:memories.py:made", stateful=True))
    assert not is_reported(without_store, in_sequence=False)
    assert not is_reported(graph_of(no_memory, checkpointer=InMemorySaver(), store=InMemoryStore()))
    assert not is_reported(dialoom.Agent(ALONE, stateful=True))


@pytest.mark.parametrize("stateful", [True, False])
def test_retried_conversation_is_followed_by_the_later_ones_of_a_player_that_remembers(
    stateful: bool, tmp_path: Path
) -> None:
    events: list[Any] = []
    agent: Any = graph_of(no_memory, store=InMemoryStore()) if stateful else "offline/placeholder"
    people, tasks = [{"name": "Ann"}, {"name": "Bo"}], [{"goal": "a chair"}, {"goal": "a desk"}, {"goal": "a lamp"}]
    rules: dict[str, Any] = {"max_turns": 1, "in_sequence": True, "ends": [], "on_event": events.append}
    run = dialoom.simulate(people, tasks, assistant=agent, path=tmp_path / "run.db", trials=2, **rules)
    events.clear()
    given: dict[str, Any] = {"models": {"assistant": agent}} if stateful else {}
    dialoom.retry(run.path, scenarios=[2], recipe=run.recipe, on_event=events.append, **given)
    played = [each.id for each in events if isinstance(each, dialoom.ScenarioDone)]
    assert played == [episode.id for episode in run.episodes()][1 : 3 if stateful else 2]
    notices = [each.text for each in events if isinstance(each, dialoom.Notice) and "later conversations" in each.text]
    assert len(notices) == stateful, notices


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


async def test_server_that_refuses_a_message_as_overloaded_is_sent_it_again(tmp_path: Path) -> None:
    """The conversation is not started again, because the server did not take the message into its state."""
    with serving(lambda _body, number: busy(retry_after="0") if number == 2 else completion("Yes.")) as server:
        model = dialoom.Model("openai/agent", api_base=server.url, session="user", stateful=True)
        run = await dialoom.asimulate(
            [{"name": "Ann"}], assistant=model, path=tmp_path / "run.db", max_turns=2, ends=[]
        )
    assert [episode.state for episode in run.episodes()] == ["done"]
    assert server.requests[2] == server.requests[1] and len(server.requests) == 3


def test_ids_of_sessions_are_in_no_key_and_no_export(tmp_path: Path) -> None:
    """They differ between runs, so two runs with equal keys, bytes and cached replies hold none of them."""
    ids: set[str] = set()
    exports, keys = list[bytes](), list[str]()
    runs: list[tuple[str, Literal["metadata"] | None, str | None]] = [
        ("none", None, None),
        ("one", "metadata", None),
        ("other", "metadata", "cache.db"),
        ("last", "metadata", "cache.db"),
    ]
    with serving(lambda body, _number: completion(f"I was sent {len(body['messages'])} messages.")) as server:
        for name, form, cache in runs:
            sent = len(server.requests)
            settings: dict[str, Any] = {} if cache is None else {"cache": tmp_path / cache}
            model = dialoom.Model("openai/agent", api_base=server.url, session=form)
            run = dialoom.simulate(
                [{"name": "Ann"}], assistant=model, path=tmp_path / f"{name}.db", max_turns=2, ends=[], **settings
            )
            new = [body["metadata"] for body in server.requests[sent:] if "metadata" in body]
            ids |= {each[kind] for each in new for kind in ("conversation", "person")}
            assert len(server.requests) - sent == (0 if name == "last" else 2)
            with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
                keys.append(str(connection.execute("SELECT key FROM calls ORDER BY id").fetchall()))
            run.export("dialogues", tmp_path / f"{name}.jsonl")
            exports.append((tmp_path / f"{name}.jsonl").read_bytes())
        cached = b"".join(path.read_bytes() for path in tmp_path.glob("cache.db*"))
    assert len(ids) == 4, "a conversation and a person in each of the two runs that sent them"
    assert len(set(keys)) == len(set(exports)) == 1
    assert not [each for each in ids if each.encode() in exports[0] + cached]


def test_example_shows_which_assistant_remembers(tmp_path: Path) -> None:
    """The page has the table that the example prints."""
    root = Path(__file__).parents[2]
    script = "from docs.examples.remembering import play\nfrom pathlib import Path\nprint(play(Path()))"
    environment = os.environ | {"PYTHONPATH": str(root)}
    with CommandProcess(
        tmp_path, script=f"import sys\nsys.path.insert(0, {str(root)!r})\n{script}", environment=environment
    ) as process:
        printed, errors = process.communicate()
    page = (root / "docs" / "sessions.md").read_text(encoding="utf-8")
    table = page.rpartition("```\n|")[2].partition("```")[0]
    assert f"|{table}" in printed, errors


@pytest.mark.parametrize("damaged", [b"\0", zlib.compress(b" " * (70 * 2**20))], ids=["not a state", "huge state"])
def test_damaged_state_of_a_player_is_reported_in_one_message(folder: Path, damaged: bytes) -> None:
    play(folder, "python:memories:Snapshots")
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute("UPDATE player_states SET state = ?", (damaged,))
    output = command(folder, "step", "run.db", "1", "--trust", text="state players\nquit\n", status=None)
    assert "run.db" in output and "Traceback" not in output, output


def test_roles_with_one_player_have_separate_states(tmp_path: Path) -> None:
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


def test_attempt_that_failed_leaves_nothing_in_the_state(tmp_path: Path) -> None:
    """The second attempt at a message begins from the player's state before the first one."""

    class Failing:
        attempts = 0

        def __init__(self) -> None:
            self.seen: list[str] = []

        async def __call__(self, messages: list[dict[str, Any]]) -> str:
            self.seen += [message["content"] for message in messages]
            Failing.attempts += 1
            if Failing.attempts == 2:
                raise ConnectionError("lost")
            self.seen.append(f"I have {len(self.seen)} messages.")
            return self.seen[-1]

    class Begins(Failing):
        async def begin(self, _session: dialoom.Session, messages: list[dict[str, Any]]) -> None:
            self.seen = [message["content"] for message in messages]

    class Snapshots(Failing):
        def snapshot(self) -> list[str]:
            return [*self.seen]

        def restore(self, snapshot: list[str]) -> None:
            self.seen = [*snapshot]

    for kind in (Begins, Snapshots, Failing):
        Failing.attempts = 0
        player = dialoom.Agent(kind, stateful=True, name="mine")
        path = tmp_path / f"{kind.__name__}.db"
        run = dialoom.simulate([{"name": "Ann"}], assistant=player, path=path, max_turns=2, ends=[])
        (episode,) = run.episodes()
        said = [line.content for line in episode.outcome.messages if line.role == "assistant"]
        assert said == ["I have 1 messages.", "I have 3 messages."]
        assert Failing.attempts == (4 if kind is Failing else 3)  # one that cannot be restored starts again


def graph_of(node: Any, state: Any = MessagesState, name: str = "mine", **memory: Any) -> dialoom.Agent:
    """Return a stateful agent that is a graph of one node."""
    graph = StateGraph(state).add_node("node", node).add_edge(START, "node").compile(**memory)
    return dialoom.Agent(graph, stateful=True, name=name)


@pytest.mark.parametrize("refused", ["values", "namespace", "items", "snapshot", "keys"])
def test_player_found_to_be_unrestorable_stops_the_run_which_can_be_resumed_with_another(
    refused: str, tmp_path: Path
) -> None:
    class State(MessagesState):
        note: Any

    class Snapshots:
        seen: Any = Note("red")

        def __call__(self, _messages: list[dict[str, Any]]) -> str:
            return "Yes."

        def snapshot(self) -> Any:
            return self.seen

        def restore(self, snapshot: Any) -> None:
            self.seen = snapshot

    class Better(Snapshots):
        seen = "red"

    class Numbered(Snapshots):
        seen = {7: "red"}

    def noting(note: Any) -> Any:
        return lambda _state: {"messages": [("ai", "Yes.")], "note": note}

    def keeping(*space: str, value: Any = "red") -> Any:
        async def node(_state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
            await store.aput((*space, config["configurable"]["user_id"])[:2], "first", {"text": value})
            return {"messages": [("ai", "Yes.")]}

        return node

    said, bad, good = {
        "values": (
            "mine has values in its state that cannot be restored: with InMemorySaver, only LangChain messages and "
            "plain values can; compile it with a persistent checkpointer",
            graph_of(noting(Note("red")), State, checkpointer=InMemorySaver()),
            graph_of(noting("red"), State, checkpointer=InMemorySaver()),
        ),
        "namespace": (
            "mine has items in the namespace ('notes', 'all') of its store, which belongs to no person and so cannot "
            "be restored; put the person's id into it: config['configurable']['user_id']",
            graph_of(keeping("notes", "all"), store=InMemoryStore()),
            graph_of(keeping("notes"), store=InMemoryStore()),
        ),
        "items": (
            "mine has values in its store that are not JSON, and so cannot be restored: Object of type Note is not",
            graph_of(keeping("notes", value=Note("red")), store=InMemoryStore()),
            graph_of(keeping("notes"), store=InMemoryStore()),
        ),
        "snapshot": (
            "mine must return a JSON value or bytes from snapshot(): Object of type Note is not JSON serializable",
            dialoom.Agent(Snapshots, stateful=True, name="mine"),
            dialoom.Agent(Better, stateful=True, name="mine"),
        ),
        "keys": (
            "mine must return a JSON value or bytes from snapshot(): the key 7 is not a string, and would be restored",
            dialoom.Agent(Numbered, stateful=True, name="mine"),
            dialoom.Agent(Better, stateful=True, name="mine"),
        ),
    }[refused]
    path = tmp_path / "run.db"
    people = [{"name": name} for name in ("Ann", "Bo", "Cy")]
    with pytest.raises(BindingError, match=re.escape(f"models: {said}")):
        dialoom.simulate(people, assistant=bad, path=path, max_turns=1, ends=[])
    assert dialoom.open_run(path).status().pending == len(people), "no conversation has failed"
    assert dialoom.resume(path, models={"assistant": good}).status().done == len(people)


def test_stateful_function_without_a_session_parameter_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    def alone(_messages: list[dict[str, Any]]) -> str:
        return "Yes."

    with pytest.raises(BindingError, match="mine is declared stateful and cannot tell one conversation from another"):
        dialoom.simulate(
            [{"name": "Ann"}],
            assistant=dialoom.Agent(alone, stateful=True, name="mine"),
            path=tmp_path / "run.db",
        )
    assert not (tmp_path / "run.db").exists()


class Talk:
    """A player that remembers its replies in one conversation; each has a hash of these and of the request."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def __call__(self, messages: list[dict[str, Any]]) -> str:
        digest = zlib.crc32(repr((self.said, messages)).encode())
        await asyncio.sleep(digest % 8 / 100)  # so that calls of several conversations and roles would overlap
        self.said.append(f"Reply {len(self.said) + 1} ({digest}).")
        return self.said[-1]


class Begins(Talk):
    """A player that gets its earlier replies when they are lost."""

    async def begin(self, _session: dialoom.Session, messages: list[dict[str, Any]]) -> None:
        self.said = [message["content"] for message in messages if message["role"] == "assistant"]


class Snapshots(Talk):
    """A player that can be restored, and whose snapshot is its own mutable list."""

    def snapshot(self) -> list[str]:
        return self.said

    def restore(self, snapshot: list[str]) -> None:
        self.said = snapshot


@pytest.mark.parametrize("kind", [Begins, Snapshots])
def test_one_object_serves_people_roles_and_runs_like_separate_objects(kind: type[Talk], tmp_path: Path) -> None:
    def talks(name: str, player: Any) -> list[list[str]]:
        run = dialoom.simulate(
            [{"name": "Ann"}, {"name": "Bo"}],
            assistant=dialoom.Agent(player, stateful=True, name="one"),
            user=dialoom.Agent(player, stateful=True, name="other"),
            path=tmp_path / f"{name}.db",
            max_turns=3,
            ends=[],
            concurrency=2,
        )
        return [[line.content for line in episode.outcome.messages] for episode in run.episodes()]

    shared, right = kind(), talks("right", kind)
    assert [talks("first", shared), talks("second", shared)] == [right, right]


class SynchronousStore(InMemoryStore):
    """A store without asynchronous methods."""

    async def abatch(self, ops: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("store", [InMemoryStore(), SynchronousStore()], ids=["asynchronous", "synchronous"])
def test_graphs_that_share_a_store_do_not_see_each_others_items(store: BaseStore, tmp_path: Path) -> None:
    """This holds while one person's conversations are played concurrently."""

    def counting(state: MessagesState, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
        space = ("calls", config["configurable"]["user_id"])
        found = store.get(space, "number")
        number = 1 if found is None else found.value["number"] + 1
        time.sleep(zlib.crc32(repr((number, state["messages"][-1].content)).encode()) % 4 / 100)
        store.put(space, "number", {"number": number})
        return {"messages": [("ai", f"{state['messages'][-1].content[:40]} {number}")]}

    run = dialoom.simulate(
        [{"name": "Ann"}],
        [{"goal": f"goal {number}"} for number in range(4)],
        assistant=graph_of(counting, name="one", store=store),
        user=graph_of(counting, name="other", store=store),
        path=tmp_path / "run.db",
        max_turns=3,
        ends=[],
        concurrency=4,
    )
    numbers = [[line.content[-1] for line in episode.outcome.messages] for episode in run.episodes()]
    assert numbers == [["1", "1", "2", "2", "3", "3"]] * 4


def test_store_of_many_people_is_listed_in_one_page(tmp_path: Path) -> None:
    """Each call lists the store's namespaces, of all people, before and after the reply."""

    class Counted(InMemoryStore):
        listed = 0

        async def alist_namespaces(self, **given: Any) -> Any:
            self.listed += 1
            return await super().alist_namespaces(**given)

    store = Counted()
    for number in range(2_000):
        store.put(("notes", f"person-{number:020x}"), "first", {"text": "red"})
    agent = graph_of(lambda _state: {"messages": [("ai", "Yes.")]}, store=store)
    dialoom.simulate([{"name": "Ann"}], assistant=agent, path=tmp_path / "run.db", max_turns=1, ends=[])
    assert store.listed == 2


def no_memory(state: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", f"I see {len(state['messages'])} messages.")]}


async def session_aware(messages: list[dict[str, Any]], session: dialoom.Session) -> str:
    """Play a function that could keep state by the ids of a session, and cannot be restored."""
    return f"Yes, {session.turn} of {len(messages)}."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"assistant": graph_of(no_memory)}, "mine is declared stateful, but is compiled with neither a checkpointer"),
        (
            {"assistant": dialoom.Model("offline/placeholder", stateful=True)},
            "stateful: offline/placeholder keeps no state",
        ),
        (
            {
                "assistant": session_aware,
                "judge": dialoom.Agent(session_aware, stateful=True),
                "judges": [dialoom.Judge("kind", rubric="It is kind.")],
            },
            "judge cannot be stateful, because its prompt 'simulation/judge-kind' holds the conversation as text",
        ),
    ],
    ids=["graph without state", "offline model", "judge"],
)
def test_player_that_cannot_be_stateful_is_refused_before_anything_is_played(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(dialoom.DialoomError, match=re.escape(message)):
        dialoom.simulate([{"name": "Ann"}], path=tmp_path / "run.db", **given)
    assert not (tmp_path / "run.db").exists()


def test_stateful_player_in_calls_that_scenarios_share_stops_the_run(tmp_path: Path) -> None:
    recipe = f"{Path(__file__).parents[2]}/benchmarks/long_requests.py:Recalling"
    models = {"assistant": dialoom.Agent(session_aware, stateful=True, name="mine")}
    path = tmp_path / "run.db"
    said = "models: mine keeps state, and this call belongs to no conversation, .*; begin a new run in which it is not"
    with pytest.raises(BindingError, match=said):
        dialoom.play(recipe, path=path, models=models, options={"pairs": 1, "methods": 1, "turns": 1})
    assert dialoom.open_run(path).status().failed == 0


def test_replay_of_a_later_conversation_with_a_player_that_keeps_state_is_refused(folder: Path) -> None:
    play(folder, "graph:memories.py:in_memory")
    command(folder, "step", "run.db", "2", "--trust", text="save case.json\nquit\n")
    assert (folder / "case.json").exists()
    output = command(folder, "replay", "case.json", "--live", "assistant", status=2)
    assert "'assistant' keeps state, this is the person's conversation 2, and the case does not" in output


def test_debugger_does_not_continue_what_a_lost_player_began(folder: Path) -> None:
    play(folder, ALONE, die_at=3, status=-9)
    output = command(folder, "step", "run.db", "1", "--trust", text="continue\nquit\n", status=None)
    assert "cannot go on: it has no snapshot(), restore() or begin(), and the state after the last message is" in output


def test_store_with_items_of_no_person_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    store = InMemoryStore()
    store.put(("notes", "everybody"), "first", {"text": "closed on Monday"})
    agent = graph_of(lambda _state: {"messages": [("ai", "Yes.")]}, store=store)
    with pytest.raises(BindingError, match=r"mine has items in the namespace \('notes', 'everybody'\) of its store"):
        dialoom.simulate([{"name": "Ann"}], assistant=agent, path=tmp_path / "run.db", max_turns=1, ends=[])
    assert not (tmp_path / "run.db").exists()


class Single(MessagesState):
    """A state with a value of a user-defined type."""

    note: Note


class Several(MessagesState):
    """A state with a list of such values and a reducer."""

    note: Annotated[list[Note], operator.add]


class OptionalMapping(MessagesState):
    """A state with an optional mapping to such values."""

    note: dict[str, Note] | None


@pytest.mark.parametrize("state", [Single, Several, OptionalMapping])
def test_graph_that_declares_values_that_cannot_be_restored_is_refused_before_anything_is_played(
    state: Any, tmp_path: Path
) -> None:
    agent = graph_of(lambda _state: {"messages": [("ai", "Yes.")]}, state, checkpointer=InMemorySaver())
    with pytest.raises(BindingError, match=r"mine has values .+ restored \('note' is declared with Note\): with InMem"):
        dialoom.simulate([{"name": "Ann"}], assistant=agent, path=tmp_path / "run.db", max_turns=1, ends=[])
    assert not (tmp_path / "run.db").exists()


def test_latest_entries_are_bounded_and_the_oldest_is_dropped() -> None:
    latest = BoundedDict[int](2)
    for name, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        latest[name] = value
    assert dict(latest) == {"a": 3, "c": 4}, "an entry that is set again is a new one"


def test_branch_continues_from_the_player_state_of_its_own_reply(folder: Path) -> None:
    """Equal replies may leave different states; the fork's next call begins from the fork's own."""
    (folder / "equal.py").write_text(
        "from pathlib import Path\n"
        "LOG = Path('begun.txt')\n"
        "class Equal:\n"
        "    number = 0\n"
        "    def __call__(self, messages):\n"
        "        calls = len(LOG.read_text().split()) if LOG.exists() else 0\n"
        "        with LOG.open('a') as log:\n"
        "            print(self.number, file=log)\n"
        "        self.number = calls + 1\n"
        "        return 'Yes.'\n"
        "    def snapshot(self):\n"
        "        return self.number\n"
        "    def restore(self, snapshot):\n"
        "        self.number = snapshot\n"
    )
    (folder / "one.toml").write_text(
        STUDY.replace(', { name = "Bo", style = "wordy" }', "").replace(
            ', { goal = "the same table, but on Sunday" }', ""
        )
    )
    play(folder, "python:equal:Equal", study="one.toml")
    begun = folder / "begun.txt"
    assert begun.read_text().split() == ["0", "1"]
    command(folder, "step", "run.db", "1", "--trust", text="back 4\nnext 1\nresample\nnext 3\nquit\n")
    assert begun.read_text().split() == ["0", "1", "0", "3"]


@pytest.mark.parametrize("size", [2, 4, 5])
def test_sample_contains_each_persons_first_conversations(tmp_path: Path, size: int) -> None:
    people = 'rows = [{ name = "Ann" }, { name = "Bo" }, { name = "Cy" }]'
    tasks = 'rows = [{ goal = "one" }, { goal = "two" }, { goal = "three" }]'
    study = tmp_path / "study.toml"
    dialogue = "max_turns = 1\nin_sequence = true\nends = []"
    study.write_text(f'name = "memory"\n[people]\n{people}\n[tasks]\n{tasks}\n[dialogue]\n{dialogue}\n')
    models: dict[str, Any] = {"user": "offline/placeholder", "assistant": "offline/placeholder"}
    run = dialoom.play(str(study), path=tmp_path / "run.db", models=models, sample=size)
    with run:
        ids = [episode.id.split("-")[:2] for episode in run.episodes()]
    assert len(ids) == size
    for name in ("Ann", "Bo", "Cy"):
        goals = [goal for person, goal in ids if person == name]
        assert goals == ["one", "two", "three"][: len(goals)]
