"""Assistants with tools: environments restored with the conversation, and scores of the final state."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel

import dialoom
import dialoom as api
from dialoom import Check, DialoomError, Stepper
from dialoom.graphs import Conversation, JsonEnvironment, SqliteEnvironment
from tests.conftest import ROOT, Command
from tests.graphs.support import judge, scripted
from tests.processes import CommandProcess
from tests.runs.stepping.played import stepping
from tests.runs.test_kill_anywhere import KILLER
from tests.runs.workers.local_cluster import local_cluster
from tests.server import Answer, completion, ended, serving

SHOP = ROOT / "docs" / "examples" / "shop"
Messages = list[dict[str, Any]]


def players(assistant: str) -> dict[str, Any]:
    """Return the scripted players of the shop."""
    named = {"user": "customer", "judge": "naive"}
    models = {role: f"graph:{SHOP / 'speakers.py'}:{name}" for role, name in named.items()}
    return {**models, "assistant": f"graph:{SHOP}/{assistant}"}


HONEST, LIAR, GRAPH = "speakers.py:honest", "speakers.py:liar", "agents.py:graph"


def played(path: Path, assistant: str, **how: Any) -> dialoom.Run:
    """Return a run of the shop."""
    return dialoom.play(str(SHOP / "shop.toml"), path=path, models=players(assistant), seed=3, **how)


def scores(run: dialoom.Run) -> list[dict[str, Any]]:
    """Return each conversation's scores by metric."""
    return [{each.metric: each.score for each in episode.outcome.judgements} for episode in run.episodes()]


def exported(run: dialoom.Run) -> str:
    """Return a run's export."""
    target = run.path.with_suffix(".jsonl")
    run.export("dialogues", target)
    return target.read_text()


def test_claims_and_actions_are_scored_separately(tmp_path: Path) -> None:
    honest, liar = played(tmp_path / "honest.db", HONEST), played(tmp_path / "liar.db", LIAR)
    assert scores(honest) == [{"said_refunded": True, "refunded": True, "right_state": True}] * 4
    assert scores(liar) == [{"said_refunded": True, "refunded": False, "right_state": False}] * 4
    (explained,) = {
        each.explanation for each in next(liar.episodes()).outcome.judgements if each.metric == "right_state"
    }
    assert explained == 'refunds: missing {"order_id": "A1"}'
    report = str(dialoom.report([honest.path, liar.path]))
    assert "| run | ended by | dialogues | no tool call | state unchanged |" in report
    assert f"| graph:{SHOP}/{LIAR} | user_satisfied | 4 | 4 | 4 |" in report
    assert f"| graph:{SHOP}/{HONEST} | user_satisfied | 4 | 0 | 0 |" in report


@pytest.mark.parametrize("assistant", [HONEST, GRAPH])
def test_calls_results_and_final_state_are_exported(tmp_path: Path, assistant: str) -> None:
    run = played(tmp_path / "run.db", assistant)
    row = json.loads(exported(run).splitlines()[0])
    assert row["environment"]["refunds"] == [{"order_id": "A1", "amount": 29.5}]
    said = row["messages"]
    assert [line["role"] for line in said][-4:] == ["assistant", "tool", "assistant", "user"]
    assert (said[-4]["tool_calls"][0]["name"], said[-3]["content"]) == ("refund", "refunded 29.5")
    assert said[-3]["tool_call_id"] == said[-4]["tool_calls"][0]["id"]
    frame = run.frame("episodes")
    assert list(frame["changes"]) == [1] * 4
    assert json.loads(frame["environment"][0])["refunds"] == row["environment"]["refunds"]


def test_user_does_not_see_tool_calls(tmp_path: Path) -> None:
    requests: list[Messages] = []

    async def user(messages: Messages) -> str:
        requests.append(messages)
        return "Please refund order A1." if len(messages) < 3 else "DONE"

    models = {**players(HONEST), "user": user}
    dialoom.play(str(SHOP / "shop.toml"), path=tmp_path / "run.db", models=models, sample=1)
    assert [each["role"] for each in requests[-1][1:]] == ["user", "assistant", "user"]
    assert not any("tool" in json.dumps(each) for each in requests[-1][1:])


BEFORE_A_CALL, BEFORE_ITS_REPLY = ("INSERT INTO kept_calls", 2), ("UPDATE kept_calls SET attempts", 1)
"""Where a process is killed: before its second new call is recorded; before its first reply is recorded."""


@pytest.mark.parametrize("assistant", [HONEST, GRAPH])
def test_run_killed_at_every_call_exports_the_same_bytes(tmp_path: Path, assistant: str) -> None:
    given = [part for role, model in players(assistant).items() for part in ("--model", f"{role}={model}")]
    whole = exported(played(tmp_path / "whole.db", assistant, sample=1))
    calls = len(dialoom.open_run(tmp_path / "whole.db").frame("calls"))
    command = ["run", SHOP / "shop.toml", *given, "--seed", 3, "--sample", 1, "-o", "run.db"]
    for part, count in [("INSERT INTO kept_calls", 1), BEFORE_ITS_REPLY] + [BEFORE_A_CALL, BEFORE_ITS_REPLY] * (
        calls - 1
    ):
        with CommandProcess(tmp_path, part, count, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, f"{part} {count}: {errors}"
        command = ["resume", "run.db"]
    assert exported(dialoom.resume(tmp_path / "run.db")) == whole


DEADLY = """
import os, signal
from pathlib import Path
from shop import Shop as Safe

class Shop(Safe):
    def refund(self, order_id: str) -> str:
        "Refund an order."
        found = super().refund(order_id)
        if not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    @property
    def tools(self):
        return [self.look_up, self.refund]
"""


@pytest.mark.parametrize("assistant", [HONEST, GRAPH])
def test_run_killed_within_a_tool_refunds_once(tmp_path: Path, assistant: str) -> None:
    shutil.copytree(SHOP, tmp_path, dirs_exist_ok=True)
    (tmp_path / "deadly.py").write_text(DEADLY)
    study = (tmp_path / "shop.toml").read_text().replace("shop.py:Shop", "deadly.py:Shop")
    (tmp_path / "shop.toml").write_text(study)
    given = [part for role, model in players(assistant).items() for part in ("--model", f"{role}={model}")]
    with CommandProcess(tmp_path, "run", "shop.toml", *given, "--sample", 1, "-o", "run.db") as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    (tmp_path / "again").mkdir()
    (tmp_path / "died").rename(tmp_path / "again" / "died")
    with CommandProcess(tmp_path, "resume", "run.db") as process:
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "a tool call without a recorded result is repeated"
    with CommandProcess(tmp_path, "resume", "run.db") as process:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    (episode,) = dialoom.open_run(tmp_path / "run.db", trust=True).episodes()
    assert episode.outcome.counts["changes"] == 1
    assert [each.score for each in episode.outcome.judgements] == [True] * 3


@pytest.mark.parametrize("assistant", [HONEST, GRAPH])
def test_fork_and_rewind_restore_the_environment(tmp_path: Path, assistant: str) -> None:
    run = played(tmp_path / "run.db", assistant, sample=1)

    def refunds(stepper: Stepper) -> int:
        return sum("refunds" in line and "INSERT" in line for line in stepper.state["environment"]["sqlite"])

    async def act(stepper: Stepper) -> None:
        stops = await stepper.stops()
        acted = next(
            stop
            for stop in stops
            if any(change.path.startswith("environment") for change in stop.changes) and stop.ran != ("begin",)
        )
        await stepper.goto(acted.number)
        assert refunds(stepper) == 1
        await stepper.rewind(1 if assistant == GRAPH else 2)
        assert refunds(stepper) == 0
        fork = await stepper.fork("again")
        await fork.replace_model("assistant", f"graph:{SHOP}/{LIAR}")
        while not (await fork.here()).is_end:
            await fork.step()
        outcome = await fork.outcome()
        assert outcome.counts["changes"] == 0 and not outcome.judgements[1].score

    stepping(run.path, act)


def test_workers_and_trials_give_equal_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    alone = played(tmp_path / "alone.db", GRAPH, trials=2)
    among = played(tmp_path / "workers.db", GRAPH, trials=2, workers=2)
    assert exported(alone) == exported(among)
    assert len(scores(alone)) == 8 and all(each["refunded"] for each in scores(alone))
    states = [episode.outcome.environment for episode in alone.episodes()]
    assert all(sum("refunds" in line and "INSERT" in line for line in each["sqlite"]) == 1 for each in states)


class Desk(JsonEnvironment):
    """An environment: a JSON document with one ticket."""

    def reset(self, scenario: Any) -> None:
        """Create the person's ticket."""
        self.document = {"tickets": [{"who": scenario.name, "open": True}]}


def calling(*calls: tuple[str, dict[str, Any]]) -> Any:
    """Return an assistant that makes the calls one by one, and then says that it is done."""

    async def agent(messages: Messages, tools: list[Any]) -> Any:  # noqa: ARG001
        done = sum(message["role"] == "tool" for message in messages)
        if done == len(calls):
            return "It is done."
        return {"content": "", "tool_calls": [{"name": calls[done][0], "arguments": calls[done][1]}]}

    return agent


def simulated(path: Path, assistant: Any, environment: Any, **changed: Any) -> Any:
    """Return the only episode of a simulation."""
    user = scripted(["I need help.", "DONE"])
    given = {"user": user, "assistant": assistant, "environment": environment, **changed}
    (episode,) = dialoom.simulate([{"name": "Ada"}], path=path, **given).episodes()
    return episode


def closed(talk: Conversation) -> bool:
    """Return whether the ticket is closed."""
    return talk.environment["tickets"][0]["open"] is False


def test_json_document_is_read_and_updated(tmp_path: Path) -> None:
    agent = calling(
        ("read", {"path": "tickets/0/who"}),
        ("update", {"path": "tickets/0/open", "value": False}),
        ("read", {"path": "tickets/7"}),
    )
    gold = Check.state("right", {"tickets": [{"open": False}]})
    episode = simulated(tmp_path / "run.db", agent, Desk, checks=[closed, gold])
    assert episode.outcome.environment == {"tickets": [{"who": "Ada", "open": False}]}
    results = [result for _, result in episode.outcome.tool_results]
    assert results[0] == "Ada" and results[2] == "error: KeyError: '7 is not an index; the list has 1 items'"
    assert [each.score for each in episode.outcome.judgements] == [True, True]


async def test_environment_that_mutates_its_snapshot_does_not_change_earlier_steps(tmp_path: Path) -> None:
    agent = calling(("update", {"path": "first", "value": 1}), ("update", {"path": "second", "value": 2}))
    given: dict[str, Any] = {"user": scripted(["I need help.", "DONE"]), "environment": JsonEnvironment}
    run = await dialoom.asimulate([{"name": "Ada"}], path=tmp_path / "run.db", assistant=agent, **given)
    assert next(run.episodes()).outcome.counts["changes"] == 2
    async with run.look(1) as stepper:
        states = [stop.state["environment"] for stop in await stepper.stops() if stop.ran == ("tools",)]
    assert states == [{"first": 1}, {"first": 1, "second": 2}]


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()])
def test_attempt_that_failed_leaves_nothing_in_the_environment(checkpointer: Any, tmp_path: Path) -> None:
    attempts: list[None] = []

    async def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001
        append = next(each for each in config["configurable"]["tools"] if each.name == "update")
        attempts.append(None)
        await append.ainvoke({"path": f"refund {len(attempts)}", "value": "A1"})
        if len(attempts) == 1:
            raise ConnectionError
        return {"messages": [("ai", "It is done.")]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile(checkpointer=checkpointer)
    agent = graph if checkpointer is None else dialoom.Agent(graph, stateful=True, name="mine")
    episode = simulated(tmp_path / "run.db", agent, JsonEnvironment, max_turns=1, ends=[])
    assert (len(attempts), episode.outcome.environment) == (2, {"refund 2": "A1"})


class Ledger(SqliteEnvironment):
    """A database with one table, and the built-in tools."""

    schema = "CREATE TABLE entries (id INTEGER PRIMARY KEY, amount REAL, note TEXT);"


def test_sql_of_an_assistant_is_limited_to_its_database(tmp_path: Path) -> None:
    target = tmp_path / "stolen.db"
    agent = calling(
        ("execute", {"sql": "INSERT INTO entries (amount, note) VALUES (0.1, 'it''s')"}),
        ("execute", {"sql": f"ATTACH '{target}' AS other"}),
        ("execute", {"sql": f"VACUUM INTO '{target}'"}),
        ("query", {"sql": "DELETE FROM entries"}),
        ("query", {"sql": "SELECT amount, note FROM entries"}),
        (
            "query",
            {"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"},
        ),
    )
    episode = simulated(tmp_path / "run.db", agent, Ledger)
    results = [str(result) for _, result in episode.outcome.tool_results]
    assert results[0] == '{"rows_changed": 1}' and results[4] == '[{"amount": 0.1, "note": "it\'s"}]'
    assert all(each.startswith("error: ValueError: this statement is not allowed") for each in results[1:4]), results
    assert "takes too long" in results[5]
    assert not target.exists() and episode.outcome.counts["changes"] == 1


MANY = (
    "INSERT INTO entries (id) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
    "SELECT i FROM n"
)


@pytest.mark.parametrize(
    ("sql", "expected", "score", "explanation"),
    [
        ("SELECT id FROM entries", [*range(1, 151)], True, "[1, 2, 3, "),
        (
            "SELECT id FROM entries",
            [*range(1, 101)],
            False,
            "150 rows, expected 100; they differ first in row 101: 101, expected nothing",
        ),
        (
            "SELECT id FROM entries LIMIT 120",
            [*range(1, 120), 121, 122],
            False,
            "120 rows, expected 121; they differ first in row 120: 120, expected 121",
        ),
        (
            "SELECT group_concat(id, '') FROM entries",
            "1234",
            False,
            '342 characters, expected 4; they differ first in character 5: "5", expected nothing',
        ),
        ("SELECT id FROM entries LIMIT 2", [1, 3], False, "[1, 2], expected [1, 3]"),
        ("SELECT id FROM entries ORDER BY id DESC", 150, True, "150, expected 150"),
    ],
)
def test_a_check_compares_all_rows(tmp_path: Path, sql: str, expected: Any, score: bool, explanation: str) -> None:
    agent = calling(("execute", {"sql": MANY.format(150)}))
    episode = simulated(tmp_path / "run.db", agent, Ledger, checks=[Check.sql("found", sql, expected)])
    (found,) = episode.outcome.judgements
    assert found.score is score and found.explanation.startswith(f"{sql}: {explanation}"), found.explanation


def test_a_list_of_too_many_rows_is_an_error(tmp_path: Path) -> None:
    agent = calling(("execute", {"sql": MANY.format(400)}))
    many = "SELECT 1 FROM entries, entries AS others"
    checks = [Check.sql("all", many, [1]), Check.sql("first", many, 1)]
    episode = simulated(tmp_path / "run.db", agent, Ledger, checks=checks)
    every, first = episode.outcome.judgements
    assert every.status == "error" and "sql must select at most 100,000 rows to compare" in every.explanation
    assert first.score is True


@pytest.mark.parametrize(("count", "shown"), [(100, None), (150, "100 of 150 rows")])
def test_query_says_how_many_rows_it_leaves_out(tmp_path: Path, count: int, shown: str | None) -> None:
    agent = calling(("execute", {"sql": MANY.format(count)}), ("query", {"sql": "SELECT id FROM entries"}))
    episode = simulated(tmp_path / "run.db", agent, Ledger)
    done, told = [json.loads(str(result)) for _, result in episode.outcome.tool_results]
    rows = [{"id": number} for number in range(1, 101)]
    assert done == {"rows_changed": count}
    assert told == (rows if shown is None else {"shown": shown, "rows": rows})


def test_long_values_and_results_say_that_they_are_cut(tmp_path: Path) -> None:
    agent = calling(
        ("execute", {"sql": f"INSERT INTO entries (note) VALUES ('{'a' * 300}')"}),
        ("query", {"sql": "SELECT hex(zeroblob(150000)) AS x"}),
    )
    gold = Check.state("right", {"entries": [{"note": "a" * 299 + "b"}]})
    episode = simulated(tmp_path / "run.db", agent, Ledger, checks=[gold])
    value = f'{{"note": "{"a" * 190}'[:200]
    (found,) = episode.outcome.judgements
    parts = [f"entries: {what} {value}... (312 characters)" for what in ("missing", "unexpected")]
    assert found.explanation == "; ".join(parts)
    *_, (_, told) = episode.outcome.tool_results
    assert told == '[{"x": "' + "0" * (200_000 - 8) + "\n[cut: 200,000 of 300,011 characters]"


class Strict(SqliteEnvironment):
    """A database with settings, whose tables are not in the order of their references."""

    schema = """
    PRAGMA foreign_keys = ON;
    PRAGMA recursive_triggers = ON;
    PRAGMA ignore_check_constraints = ON;
    PRAGMA case_sensitive_like = ON;
    PRAGMA user_version = 7;
    CREATE TABLE lines (number TEXT REFERENCES orders ON DELETE CASCADE, count INTEGER CHECK (count > 0));
    CREATE TABLE orders (number TEXT PRIMARY KEY);
    INSERT INTO orders VALUES ('A1'), ('B2');
    INSERT INTO lines VALUES ('A1', 0), ('B2', 1);
    """

    def opened(self, connection: sqlite3.Connection) -> None:
        """Register a function."""
        connection.create_function("shout", 1, str.upper)

    def describe(self) -> list[Any]:
        """Return the settings, and what a function returns."""
        names = ("foreign_keys", "recursive_triggers", "ignore_check_constraints", "user_version")
        found = [self.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        return [*found, *self.connection.execute("SELECT 'a' LIKE 'A', shout('b')").fetchone()]

    @property
    def tools(self) -> list[Any]:
        """The tools."""
        return [*super().tools, self.describe]


def test_settings_and_functions_of_a_connection_hold_in_every_step(tmp_path: Path) -> None:
    agent = calling(
        ("describe", {}),
        ("execute", {"sql": "INSERT INTO lines VALUES ('Z9', 1)"}),
        ("execute", {"sql": "DELETE FROM orders WHERE number = 'A1'"}),
        ("describe", {}),
    )
    gold = {"orders": [{"number": "B2"}], "lines": [{"number": "B2", "count": 1}]}
    checks = [Check.sql("left", "SELECT 'a' LIKE 'A'", 0), Check.state("right", gold)]
    episode = simulated(tmp_path / "run.db", agent, Strict, checks=checks)
    first, refused, deleted, last = [str(result) for _, result in episode.outcome.tool_results]
    assert json.loads(first) == json.loads(last) == [1, 1, 1, 7, 0, "B"]
    assert refused == "error: ValueError: FOREIGN KEY constraint failed" and deleted == '{"rows_changed": 2}'
    assert [each.score for each in episode.outcome.judgements] == [True, True]


async def test_foreign_keys_hold_after_a_rewind_and_in_a_branch(tmp_path: Path) -> None:
    agent = calling(("execute", {"sql": "INSERT INTO lines VALUES ('Z9', 1)"}))
    players = {"user": scripted(["I need help.", "DONE"]), "assistant": agent}
    run = await dialoom.asimulate([{"name": "Ada"}], path=tmp_path / "run.db", environment=Strict, **players)
    async with run.step(1, models=players) as stepper:
        await stepper.rewind(2)
        fork = await stepper.fork("again")
        while not (await fork.here()).is_end:
            await fork.step()
        outcome = await fork.outcome()
    assert [result for _, result in outcome.tool_results] == ["error: ValueError: FOREIGN KEY constraint failed"]


class Listing(SqliteEnvironment):
    """A database whose tool returns its rows as they are."""

    schema = "CREATE TABLE orders (number TEXT, price REAL); INSERT INTO orders VALUES ('A1', 2.5);"

    def orders(self) -> Any:
        """Return all orders."""
        return self.connection.execute("SELECT * FROM orders").fetchall()

    @property
    def tools(self) -> list[Any]:
        """The tool."""
        return [self.orders]


@dataclass
class Parcel:
    """A parcel."""

    sent: date
    labels: frozenset[str]


class Order(BaseModel):
    """An order."""

    number: str
    price: Decimal
    parcels: list[Parcel]


class Bare:
    """An object without a text of its own."""


def returning(found: Any) -> Any:
    """Return a tool that returns an object."""

    def find() -> Any:
        """Find it."""
        return found

    return find


def test_rows_of_a_database_are_a_result(tmp_path: Path) -> None:
    episode = simulated(tmp_path / "run.db", calling(("orders", {})), Listing)
    assert [result for _, result in episode.outcome.tool_results] == ['[{"number": "A1", "price": 2.5}]']


PARCEL = Parcel(date(2026, 1, 2), frozenset("edcba"))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"parcel": PARCEL}, '{"parcel": {"sent": "2026-01-02", "labels": ["a", "b", "c", "d", "e"]}}'),
        (
            Order(number="A1", price=Decimal("2.50"), parcels=[PARCEL]),
            '{"number": "A1", "price": "2.50", '
            '"parcels": [{"sent": "2026-01-02", "labels": ["a", "b", "c", "d", "e"]}]}',
        ),
        ([UUID(int=1), Path("a/b"), {"1", 1}], '["00000000-0000-0000-0000-000000000001", "a/b", ["1", 1]]'),
        ("text", "text"),
    ],
)
def test_a_result_is_the_same_text_in_every_process(tmp_path: Path, found: Any, text: str) -> None:
    episode = simulated(tmp_path / "run.db", calling(("find", {})), None, tools=[returning(found)])
    assert [result for _, result in episode.outcome.tool_results] == [text]


async def looping(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:  # noqa: ARG001
    """Call a tool as a graph with a loop of its own, and go on if it fails."""
    with suppress(Exception):
        await config["configurable"]["tools"][0].ainvoke({})
    return {"messages": [("ai", "It is done.")]}


@pytest.mark.parametrize(
    "assistant",
    [
        calling(("find", {})),
        StateGraph(MessagesState).add_node("node", looping).add_edge(START, "node").compile(),
    ],
    ids=["function", "graph"],
)
def test_an_object_that_is_no_result_fails_its_scenario(tmp_path: Path, assistant: Any) -> None:
    episode = simulated(tmp_path / "run.db", assistant, None, tools=[returning([Bare()])])
    message = "tool find returned a list that cannot be sent: Bare is not a JSON value; return a string, a number"
    assert episode.state == "failed" and message in episode.error and " at 0x" not in episode.error


def hang_up() -> str:
    """End the call."""
    return "ended"


def test_dialogue_ends_on_a_tool_call(tmp_path: Path) -> None:
    agent = calling(("hang_up", {}), ("hang_up", {}))
    episode = simulated(tmp_path / "run.db", agent, None, tools=[hang_up], ends=[{"tool": "hang_up"}])
    assert episode.outcome.ended_by == "tool hang_up" and episode.outcome.environment is None
    assert [line.role for line in episode.outcome.messages] == ["user", "assistant", "tool"]
    assert episode.outcome.counts == {"turns": 1, "tool_calls": 1}
    with pytest.raises(
        DialoomError, match="ends name the tool 'hang_up', which is not offered; the tools are read, update, remove"
    ):
        simulated(tmp_path / "other.db", agent, Desk, ends=[{"tool": "hang_up"}])


def test_tool_calls_of_a_graph_without_a_tool_loop_are_run(tmp_path: Path) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        if last.type == "tool":
            return {"messages": [("ai", f"Done: {last.content}")]}
        call = {"name": "update", "args": {"path": "done", "value": True}, "id": "1", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    graph = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile()
    episode = simulated(tmp_path / "run.db", graph, JsonEnvironment, max_turns=1, ends=[])
    assert [line.role for line in episode.outcome.messages] == ["user", "assistant", "tool", "assistant"]
    assert episode.outcome.environment == {"done": True}


def test_check_that_requires_a_tool_call_fails_without_one(tmp_path: Path) -> None:
    checks = [
        Check("called", lambda talk: bool(talk.tool_results)),
        Check("calls", lambda talk: len(talk.tool_results)),
    ]
    for name, calls in (("idle", 0), ("busy", 1)):
        agent = calling(*[("read", {"path": "tickets"})] * calls)
        episode = simulated(tmp_path / f"{name}.db", agent, Desk, checks=checks)
        assert [each.score for each in episode.outcome.judgements] == [bool(calls), calls]


def test_results_belong_to_their_calls_if_a_graph_reuses_ids(tmp_path: Path) -> None:
    def agent(tools: list[Any]) -> Any:
        def think(state: MessagesState) -> dict[str, Any]:
            done = sum(message.type == "tool" for message in state["messages"])
            if done == 2:
                return {"messages": [AIMessage("It is done.")]}
            path = ("tickets/0/who", "tickets/0/open")[done]
            return {"messages": [AIMessage("", tool_calls=[{"name": "read", "args": {"path": path}, "id": "call_0"}])]}

        builder = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode(tools))
        builder.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
        return builder.compile()

    episode = simulated(tmp_path / "run.db", agent, Desk, max_turns=1, ends=[])
    assert [result for _, result in episode.outcome.tool_results] == ["Ada", "true"]


def test_message_of_a_graph_is_not_the_result_of_its_call_without_an_id(tmp_path: Path) -> None:
    def agent(tools: list[Any]) -> Any:  # noqa: ARG001
        def think(state: MessagesState) -> dict[str, Any]:  # noqa: ARG001
            call = {"name": "read", "args": {"path": "tickets"}, "id": None}
            return {"messages": [AIMessage("I look it up.", tool_calls=[call]), AIMessage("It is done.")]}

        return StateGraph(MessagesState).add_node("think", think).add_edge(START, "think").compile()

    episode = simulated(tmp_path / "run.db", agent, Desk, max_turns=1, ends=[])
    results = {result for _, result in episode.outcome.tool_results}
    assert results == {'[{"who": "Ada", "open": true}]'}  # the graph did not run its call


def test_assistant_that_never_answers_is_stopped(tmp_path: Path) -> None:
    episode = simulated(tmp_path / "run.db", calling(*[("read", {})] * 99), Desk)
    assert (episode.outcome.ended_by, episode.outcome.counts["tool_calls"]) == ("max_tool_turns", 10)


def test_report_warns_of_a_player_without_tools(tmp_path: Path) -> None:
    (tmp_path / "desk.json").write_text('{"tickets": [{"open": true}]}')
    simulated(tmp_path / "run.db", scripted(["It is done."]), str(tmp_path / "desk.json"), checks=[closed])
    report = str(dialoom.open_run(tmp_path / "run.db").report())
    warning = (
        "Warning: the assistant was offered no tools in 1 of 1 dialogues, because its player is not known to accept "
        "tools"
    )
    assert report.count(warning) >= 2 and report.index(warning) < report.index("| scenarios |")
    dialoom.open_run(tmp_path / "run.db").export("sft", tmp_path / "rows.jsonl")
    card = (tmp_path / "rows.jsonl.card.md").read_text()
    assert "**In 1 of 1 dialogues the assistant was offered no tools" in card


@pytest.mark.parametrize("is_stated", [False, True])
def test_unlisted_model_is_offered_tools_only_with_takes_tools(tmp_path: Path, is_stated: bool) -> None:
    def answer(body: dict[str, Any], _number: int) -> Answer:
        if body["messages"][-1]["role"] == "tool" or "tools" not in body:
            return completion("It is done.")
        function = {"name": "update", "arguments": '{"path": "tickets/0/open", "value": false}'}
        return ended(None, "tool_calls", tool_calls=[{"id": "1", "type": "function", "function": function}])

    with serving(answer) as server:
        given = {"takes_tools": "assistant"} if is_stated else {}
        address = {"api_base": {"assistant": server.url}}
        episode = simulated(tmp_path / "run.db", "openai/my-own-agent", Desk, checks=[closed], **address, **given)
    assert episode.outcome.judgements[0].score is is_stated
    assert ("tools" in server.requests[0]) == is_stated


def test_report_warns_of_an_assistant_that_never_calls_a_tool(tmp_path: Path) -> None:
    def said(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"It is done, {len(state['messages'])}.")]}

    graph = StateGraph(MessagesState).add_node("node", said).add_edge(START, "node").compile()
    people: dict[str, Any] = {
        "people": [{"name": f"Person {number}"} for number in range(5)],
        "max_turns": 1,
        "ends": [],
    }
    run = dialoom.simulate(assistant=graph, environment=Desk, path=tmp_path / "run.db", **people)
    warning = "Warning: the assistant was offered tools and called none in any of 5 dialogues"
    assert warning in str(run.report())


def test_takes_tools_is_refused_for_a_player_that_does_not_accept_tools(tmp_path: Path) -> None:
    with pytest.raises(DialoomError, match=r"takes_tools: assistant is played by object:[\w-]+, which does not accept"):
        simulated(tmp_path / "run.db", scripted(["It is done."]), Desk, takes_tools="assistant")


def test_turns_are_judged_with_their_calls(tmp_path: Path) -> None:
    """A message that has only calls is not a turn; the judge of the turn sees the calls and their results."""
    shown: list[str] = []

    async def recording_judge(messages: Messages) -> str:
        shown.append(str(messages))
        return await judge(messages)

    agent = calling(("read", {}), ("update", {"path": "tickets/0/open", "value": False}))
    judges = [dialoom.Judge("useful", rubric="The reply is useful.", per_turn=True)]
    episode = simulated(tmp_path / "run.db", agent, Desk, judge=recording_judge, judges=judges)
    assert [each.turn for each in episode.outcome.judgements] == [1]
    assert len(shown) == 1 and "tickets/0/open" in shown[0] and "It is done." in shown[0]


def test_environment_given_as_an_object_resumes_after_an_interruption(tmp_path: Path) -> None:
    agent = calling(("read", {}), ("update", {"path": "tickets/0/open", "value": False}))
    user = scripted(["I need help.", "DONE"])
    run = dialoom.simulate(
        [{"name": "Ada"}],
        path=tmp_path / "run.db",
        user=user,
        assistant=agent,
        environment=Desk,
        budget={"max_calls": 2},
    )
    assert run.status().done == 0
    players = {"user": user, "assistant": agent}
    again = dialoom.resume(run.path, models=players, recipe=run.recipe, budget={"max_calls": None})
    (episode,) = again.episodes()
    assert episode.outcome.environment == {"tickets": [{"who": "Ada", "open": False}]}
    rows = tmp_path / "rows.jsonl"
    dialoom.open_run(run.path).export("sft", rows)
    (row,) = map(json.loads, rows.read_text().splitlines())
    assert [each["role"] for each in row["messages"]].count("tool") == 2 and "tools" not in row


def test_judge_reads_the_final_state(tmp_path: Path) -> None:
    shown: list[str] = []

    async def recording_judge(messages: Messages) -> str:
        shown.append(messages[-1]["content"])
        return await judge(messages)

    rubric = "The ticket is closed, as the state says: {{ environment }}"
    agent = calling(("update", {"path": "tickets/0/open", "value": False}))
    simulated(tmp_path / "run.db", agent, Desk, judge=recording_judge, judges=[dialoom.Judge("closed", rubric=rubric)])
    assert '"open": false' in shown[0]


class Broken(JsonEnvironment):
    """An environment whose reset fails."""

    def reset(self, scenario: Any) -> None:
        """Raise an exception."""
        raise RuntimeError("no database")


class Opaque(JsonEnvironment):
    """An environment whose snapshot is not JSON."""

    def snapshot(self) -> Any:
        """Return a set."""
        return {1, 2}


class Numbered(JsonEnvironment):
    """An environment whose snapshot has a number as a key."""

    def snapshot(self) -> Any:
        """Return tickets by their numbers."""
        return {"tickets": [{1: "open"}]}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (Broken, "reset of environment Broken raised RuntimeError: no database [tests/runs/test_environments.py:"),
        (Opaque, "environment Opaque: snapshot must return a JSON value"),
        (Numbered, "numbers, true, false, null): the key 1 is not a string, and would be restored as one"),
    ],
)
def test_failing_environment_is_named(tmp_path: Path, environment: Any, message: str) -> None:
    episode = simulated(tmp_path / "run.db", calling(), environment)
    assert episode.state == "failed" and message in episode.error and episode.at_fault == "provider, permanent"


class Unsaved(JsonEnvironment):
    """An environment without snapshots."""

    snapshot = None  # type: ignore[assignment]


class Unaware(JsonEnvironment):
    """An environment whose reset does not accept a scenario."""

    def reset(self) -> None:  # type: ignore[override]
        """Do nothing."""


class Waiting(JsonEnvironment):
    """An environment that is restored asynchronously."""

    async def restore(self, snapshot: Any) -> None:  # type: ignore[override]
        """Do nothing."""


class Uncalled(JsonEnvironment):
    """An environment whose tools are a method instead of a property."""

    def tools(self) -> list[Any]:  # type: ignore[override]
        """Return no tools."""
        return []


class Halved(JsonEnvironment):
    """An environment and a tool that return half of a character."""

    @property
    def tools(self) -> list[Any]:
        """The tool."""
        return [self.half]

    def half(self) -> str:
        """Return half of a character."""
        return "\ud83d"

    def snapshot(self) -> Any:
        """Return half of a character."""
        return {"\ud83d": ["\ud83d"]}

    def restore(self, snapshot: Any) -> None:
        """Do nothing."""


def test_half_of_a_character_is_replaced(tmp_path: Path) -> None:
    outcome = simulated(tmp_path / "run.db", calling(("half", {})), Halved).outcome
    assert outcome.environment == {"\ufffd": ["\ufffd"]}
    assert [line.content for line in outcome.messages if line.role == "tool"] == ["\ufffd"]


def undocumented(order: str) -> str:
    return order


def open_ended(order: str, **more: str) -> str:
    """Return the order."""
    return f"{order} {more}"


def positional(order: str, /) -> str:
    """Return the order."""
    return order


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tools": [open_ended]}, "tools: open_ended has the variadic keyword parameter 'more', but tools get their"),
        ({"tools": [positional]}, "tools: positional has the positional-only parameter 'order'"),
        (
            {"environment": Unsaved},
            "environment Unsaved must have a method snapshot() that is not async, but Unsaved has",
        ),
        (
            {"environment": Unaware},
            "Unaware must have a method reset(scenario) that is not async, but Unaware has one that",
        ),
        ({"environment": Waiting}, "restore(snapshot) that is not async, but Waiting has an async one"),
        ({"environment": lambda: None}, "must have a method reset(scenario) that is not async, but NoneType has none"),
        ({"environment": Uncalled}, "tools must be a list, as a @property or an attribute, got method"),
        ({"tools": [undocumented]}, "tools: undocumented needs a docstring"),
        ({"environment": "shop.csv"}, "environment = 'shop.csv' must be file.py:NAME, or a file .db"),
        ({"environment": "missing.json"}, "environment = 'missing.json': there is no file"),
    ],
)
def test_unusable_tools_are_refused_before_the_run(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(DialoomError) as caught:
        simulated(tmp_path / "run.db", calling(), **{"environment": None, **given})
    assert message in str(caught.value) and not (tmp_path / "run.db").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= {{ task.order }}", "= '{{ task.order }}'", "sql has a {{ ... }} within quotes; leave out the quotes"),
        ("= {{ task.order }}", "= {{ task.number }}", "there is no column 'number', which the sql of refunded uses"),
        ("expected = 1", 'pattern = "x"', "'refunded' needs one of pattern, python, sql and gold"),
        (
            "expected = 1",
            'expected = 1\n[[check]]\nmetric = "x"\nexpected = 2\npattern = "x"',
            "shop.toml:29: [[check]] 'x': give expected only",
        ),
        ("gold = {", "expected = 2\ngold = {", "[[check]] 'right_state': give expected only with sql"),
        ('order_id = "{{ task.order }}"', 'order_id = "{{ task.order + }}"', "is not an expression"),
        ('"shop.py:Shop"', '"shop.py:Store"', "has no function or class 'Store'"),
    ],
)
def test_wrong_state_checks_are_refused_with_their_line(
    dialoom: Command, tmp_path: Path, old: str, new: str, message: str
) -> None:
    shutil.copytree(SHOP, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "shop.toml").read_text()
    assert old in text
    (tmp_path / "shop.toml").write_text(text.replace(old, new))
    output = dialoom("run", "shop.toml", "-o", "run.db", code=2).stderr
    assert message in output and "Traceback" not in output
    assert not (tmp_path / "run.db").exists()


def test_values_are_bound_and_never_part_of_the_sql(tmp_path: Path) -> None:
    agent = calling(("execute", {"sql": "INSERT INTO entries (note) VALUES ('x')"}))
    injection = "x' OR '1' = '1"
    check = Check.sql("found", "SELECT count(*) FROM entries WHERE note = {{ task.note }}", 0)
    episode = simulated(tmp_path / "run.db", agent, Ledger, tasks=[{"goal": "g", "note": injection}], checks=[check])
    (found,) = episode.outcome.judgements
    assert found.score is True and found.explanation.endswith(f"with {json.dumps([injection])}: 0, expected 0")


@pytest.mark.parametrize(
    ("sql", "expected", "score"),
    [
        ("SELECT 12", "{{ task.n }}", True),
        ("SELECT 12.0", "{{ task.n }}", True),
        ("SELECT '12'", "{{ task.n }}", True),
        ("SELECT 13", "{{ task.n }}", False),
        ("SELECT 12", "{{ task.goal }}", False),
        ("SELECT 2.50", "{{ task.values }}", True),
        ("SELECT {{ task.n }}", "{{ task.n }}", True),
        ("SELECT 12 UNION SELECT 2.5 ORDER BY 1 DESC", ["{{ task.n }}", "{{ task.values }}"], True),
        ("SELECT 12", "12", False),
        ("SELECT '12'", 12, False),
    ],
)
def test_cell_of_a_csv_file_equals_the_number_it_spells(tmp_path: Path, sql: str, expected: Any, score: bool) -> None:
    """Cells of CSV files are strings that equal the numbers they spell. A string in the study equals only a string."""
    (tmp_path / "tasks.csv").write_text("goal,n,values\nadd,12,2.50\n")
    agent = calling(("execute", {"sql": "INSERT INTO entries (id, amount) VALUES (12, 2.5)"}))
    checks = [
        Check.sql("sql", sql, expected),
        Check.state("state", {"entries": [{"id": "{{ task.n }}", "amount": "{{ task.values }}"}]}),
        Check.state("other", {"entries": [{"id": "12"}]}),
    ]
    episode = simulated(tmp_path / "run.db", agent, Ledger, tasks=tmp_path / "tasks.csv", checks=checks)
    assert [each.score for each in episode.outcome.judgements] == [score, True, False]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"entry": []}, "gold has an unknown table 'entry'; the tables are entries, shelves"),
        ({"entries": [{"note": "x", "notee": 1}]}, "gold has an unknown column 'notee' of entries; its columns are "),
        ({"shelves": [{"nr": 1}]}, "gold has an unknown column 'nr' of shelves; its columns are number"),
        ("{{ task.after }}", "gold has an unknown table 'notes'; the tables are entries, shelves"),
    ],
)
def test_unknown_tables_and_columns_of_a_right_state_are_errors(tmp_path: Path, gold: Any, message: str) -> None:
    """Columns of a table without rows are known, too."""

    class Shelves(Ledger):
        schema = f"{Ledger.schema}; CREATE TABLE shelves (number INTEGER);"

    agent = calling(("execute", {"sql": "INSERT INTO entries (note) VALUES ('x')"}))
    checks = [Check.state("wrong", gold), Check.state("right", {"entries": [{"note": "x"}], "shelves": []})]
    tasks = [{"goal": "g", "after": '{"notes": []}'}]
    episode = simulated(tmp_path / "run.db", agent, Shelves, tasks=tasks, checks=checks)
    wrong, right = episode.outcome.judgements
    assert (wrong.status, wrong.score) == ("error", None) and message in wrong.explanation
    assert right.score is True


def test_conversations_begin_with_a_copy_of_a_file(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "stock.db")) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE stock (item TEXT, count INTEGER)")
        connection.execute("INSERT INTO stock VALUES ('kettle', 3)")
    before = (tmp_path / "stock.db").read_bytes()
    agent = calling(("execute", {"sql": "UPDATE stock SET count = count - 1"}))
    check = Check.sql("left", "SELECT count FROM stock")
    episode = simulated(tmp_path / "run.db", agent, tmp_path / "stock.db", checks=[check])
    assert episode.outcome.judgements[0].score == 2
    assert (tmp_path / "stock.db").read_bytes() == before


def test_documentation_shows_the_example_and_its_output(
    dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    shutil.copytree(SHOP, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for kind, file in (("python", "shop.py"), ("toml", "shop.toml")):
        (block,) = re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)
        assert block.strip() in (tmp_path / file).read_text()
    commands = re.findall(r"^    dialoom (.*)$", page.partition("## Scores")[0], re.MULTILINE)
    for command in commands:
        dialoom(*command.split())
    report = str(api.report(["honest.db", "liar.db"]))
    shown = [line for line in page.splitlines() if line.startswith("| graph:speakers.py:")]
    assert len(commands) == 3 and len(shown) == 4 and all(f"\n{line}\n" in report for line in shown)
