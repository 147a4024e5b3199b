"""Common calls, which belong to no scenario, and calls made while another one fails."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import dialoom
import dialoom as api
from benchmarks.long_requests import Recalling, assistant
from dialoom import Judgement, Outcome, Run
from dialoom.graphs import Scene, Stage, WithJudging, node
from dialoom.graphs.conversation import joined, lines
from dialoom.graphs.judge import Graph
from dialoom.prompts import ChatMessage
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from dialoom.runs.stepping import case_of, read_case, replay, write_case
from tests.conftest import ROOT, Command
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER
from tests.runs.workers.local_cluster import local_cluster

RECIPE = f"{ROOT}/benchmarks/long_requests.py:Recalling"
SMALL = {"pairs": 3, "methods": 4, "turns": 2}


@understudy("recalling", "assistant")
def play_assistant(request: MarkedRequest, draws: Draws) -> str:
    """Return a short reply drawn at random."""
    return f"{draws.pick(['Yes', 'No'])}, {len(request.said_by('assistant'))}."


def played(path: Path, model: Any = assistant, **more: Any) -> Run:
    """Play three pairs with four methods each."""
    options = {**SMALL, **more.pop("options", {})}
    return api.play(RECIPE, path=path, options=options, models={"assistant": model}, **more)


def exported(run: Run) -> bytes:
    """Return a run's exported dialogues."""
    run.export("dialogues", run.path.with_suffix(".jsonl"))
    return run.path.with_suffix(".jsonl").read_bytes()


def common(run: Run) -> list[sqlite3.Row]:
    """Return the calls that belong to no scenario."""
    with closing(sqlite3.connect(run.path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("SELECT * FROM calls WHERE scenario IS NULL ORDER BY key").fetchall()


class InitiallyEmpty:
    """A player whose first replies about the first preference are empty."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return a reply, or an empty one."""
        if messages[0]["content"].startswith("p0") and len(messages) in (1, 2):
            self.asked += 1
            self.left -= 1
            if self.left >= 0:
                return ""
        return await assistant(list(messages))


@pytest.mark.parametrize("workers", [None, 2])
def test_refused_common_call_is_not_repeated_before_a_resume(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_cluster(monkeypatch)
    requests: list[object] = []

    async def refusing(messages: Sequence[ChatMessage]) -> str:
        if messages[0]["content"].startswith("p0") and len(messages) in (1, 2):
            requests.append(messages)
            raise ValueError("no reply")
        return await assistant(list(messages))

    run = played(tmp_path / "run.db", refusing, workers=workers, concurrency=2)
    assert (run.status().done, run.status().failed, len(requests)) == (8, 4, 1)
    assert [row["error"] is None for row in common(run)].count(False) == 1
    run = api.resume(run.path, models={"assistant": refusing}, retry_failed=True, workers=workers)
    assert (run.status().failed, len(requests)) == (4, 2)
    assert [row["error"] is None for row in common(run)].count(False) == 2


def test_common_calls_are_made_and_recorded_once(tmp_path: Path) -> None:
    runs = [played(tmp_path / f"{number}.db", concurrency=number) for number in (1, 12)]
    assert exported(runs[0]) == exported(runs[1])
    for run in runs:
        status = run.status()
        assert (status.usage.calls, status.usage.replays) == (3 + 12, 0)
        assert [row["prompt"] for row in common(run)] == ["recalling/reply"] * 3
        assert run.frame("calls")["number"].isna().sum() == 3
    fewer = played(tmp_path / "fewer.db", options={"methods": 1})
    assert [row["key"] for row in common(fewer)] == [row["key"] for row in common(runs[0])]
    assert len({row["seed"] for row in common(fewer)}) == 3


def test_show_and_step_list_common_calls(dialoom: Command, tmp_path: Path) -> None:
    run = played(tmp_path / "run.db")
    assert (
        "common call: assistant, recalling/reply (requested once, used by 4 scenarios)"
        in dialoom("show", "run.db", 2).stdout
    )
    shown = json.loads(dialoom("show", "run.db", 2, "--json").stdout)
    assert shown["common_calls"][0]["prompt"] == "recalling/reply"

    async def step() -> None:
        async with run.step(2) as stepper:
            asked = [call for stop in await stepper.stops() for call in stop.calls]
            assert [(call.node, call.is_common) for call in asked] == [("reply", True), ("answer", False)]
            assert asked[0].messages[0]["content"].startswith("p0")
            write_case(await case_of(stepper), tmp_path / "case.json")

    asyncio.run(step())
    done = asyncio.run(replay(read_case(tmp_path / "case.json")))
    assert (done.calls, done.departures) == (2, [])


def test_unparsed_common_call_is_repeated_once_for_all(tmp_path: Path) -> None:
    model = InitiallyEmpty(2)
    run = played(tmp_path / "run.db", model)
    assert (run.status().failed, model.asked) == (4, 2)
    again = api.retry(run.path, models={"assistant": model})
    assert (again.status().failed, model.asked) == (0, 3)
    assert len(common(again)) == 3 + 2


def test_replayed_scenario_uses_recorded_common_calls(tmp_path: Path) -> None:
    run = played(tmp_path / "run.db")
    again = api.retry(run.path, scenarios=[2], models={"assistant": assistant})
    assert again.status().usage.calls == 3 + 12 + 1

    async def step() -> list[bool]:
        async with again.step(2) as stepper:
            return [call.is_common for stop in await stepper.stops() for call in stop.calls]

    assert asyncio.run(step()) == [True, False]


@pytest.mark.parametrize(
    ("part", "count"), [("INTO common_uses", 2), ("UPDATE kept_calls SET attempts", 2), ("INTO checkpoints", 9)]
)
def test_common_calls_survive_a_kill(part: str, count: int, tmp_path: Path) -> None:
    whole = played(tmp_path / "whole.db")
    plan = ["run", RECIPE, "--model", "assistant=python:benchmarks.long_requests:assistant", "--concurrency", 3]
    options = [text for name, value in SMALL.items() for text in (f"--{name}", value)]
    with CommandProcess(tmp_path, part, count, *plan, *options, "-o", "run.db", script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    run = api.resume(tmp_path / "run.db")
    assert exported(run) == exported(whole)
    answered = [row["key"] for row in common(run) if row["reply"] is not None]
    assert len(answered) == len(set(answered)) == 3


def test_cache_gives_common_calls_to_other_runs(tmp_path: Path) -> None:
    settings: Any = {"models": {"assistant": "offline/attentive"}, "cache": tmp_path / "cache.db"}
    for name in ("one", "two"):
        run = api.play(RECIPE, path=tmp_path / f"{name}.db", options=SMALL, **settings)
    assert [row["attempts"] for row in common(run)] == [0] * 3


def test_estimate_counts_common_calls_once() -> None:
    for pairs, methods, expected in ((2, 4, 2 + 8), (1, 32, 1 + 32), (32, 1, 8 * 2 + 32)):
        options = {"pairs": pairs, "methods": methods, "turns": 2}
        estimate = api.estimate(RECIPE, options=options, models={"assistant": "openai/gpt-4o-mini"})
        assert estimate.total.calls == pytest.approx(expected)


TABLE = {"pairs": 3, "methods": 4, "turns": 2}


class Judging(TypedDict):
    """The state of the judging graph."""

    judgements: Annotated[list[dict[str, Any]], joined]


async def judge(_state: Judging, scene: Scene) -> dict[str, Any]:
    """Ask about the preference, once for all methods, and then about the scenario."""
    preference = scene.scenario.preference
    said = str(await scene.ask_common("recalling/reply", preference=preference))
    history = [{"speaker": "user", "content": preference}, {"speaker": "assistant", "content": said}]
    await scene.ask("recalling/assistant", history=history, question=f"Method {scene.scenario.method}?")
    made = Judgement(metric="kept", target="assistant", score=len(said), explanation=said[:20])
    return {"judgements": [made.model_dump(mode="json")]}


class Judged(Recalling, WithJudging):
    """The recipe with a judging graph."""

    name = "judged"
    metrics = ("kept",)

    def judging(self) -> Graph:
        """Return a graph with one node."""
        from langgraph.graph import START, StateGraph

        builder: Graph = StateGraph(Judging, context_schema=Stage)
        builder.add_node("judge", node(judge))
        builder.add_edge(START, "judge")
        return builder

    def judging_roles(self) -> Mapping[str, float]:
        """Return the recipe's roles."""
        return self.roles

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the lines and the judgements."""
        made = tuple(Judgement.model_validate(each) for each in state.get("judgements", []))
        ended = "error" if failed else "answered"
        return Outcome(messages=lines(state.get("messages", [])), ended_by=ended, judgements=made)


async def other(messages: list[ChatMessage]) -> str:
    """Return the assistant's reply under another model name."""
    return await assistant(messages)


class Counting:
    """A judge that records the number of messages in each request."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return the assistant's reply."""
        self.asked.append(len(messages))
        return await assistant(list(messages))


def judged(run: Run, model: Any, name: str, **more: Any) -> Run:
    """Judge a run under a name."""
    return dialoom.judge(run.path, models={"assistant": model}, name=name, recipe=Judged, **more)


def rows(run: Run, query: str) -> list[Any]:
    """Return the rows of a query on the run file."""
    with closing(sqlite3.connect(run.path)) as connection:
        return connection.execute(query).fetchall()


def test_judging_graph_makes_common_calls_once(tmp_path: Path) -> None:
    run = dialoom.play(Judged, path=tmp_path / "run.db", options=TABLE, models={"assistant": assistant})
    counting = Counting()
    first = judged(run, counting, "first")
    assert sorted(counting.asked) == [1] * 3 + [3] * 12
    assert first.status().by_judging["first"].calls == 3 + 12
    assert len(rows(run, "SELECT 1 FROM common_uses WHERE judging = 'first'")) == 12
    second = judged(run, assistant, "second")  # its replies to the preferences are those of the run
    assert second.status().by_judging["second"].calls == 12
    assert len(rows(run, "SELECT 1 FROM common_uses WHERE judging = 'second'")) == 12
    scores = [[each.outcome.judgements[0].score for each in run.episodes(judging=name)] for name in ("first", "second")]
    assert scores[0] == scores[1] and len(scores[0]) == 12


def test_stopped_judging_continues(tmp_path: Path) -> None:
    run = dialoom.play(Judged, path=tmp_path / "run.db", options=TABLE, models={"assistant": assistant})
    spent = run.status().usage.calls
    stopped = judged(run, other, "again", budget=dialoom.Budget(max_calls=spent + 6), concurrency=1)
    assert stopped.ended is not None and not stopped.ended.is_complete
    whole = judged(run, other, "again", budget=dialoom.Budget(max_calls=None))
    assert whole.status().by_judging["again"].calls == 3 + 12
    assert len([each for each in whole.episodes(judging="again") if each.outcome.judgements]) == 12


@pytest.mark.parametrize("workers", [None, 1])
def test_calls_made_at_the_same_time_as_a_failing_one_are_recorded(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_cluster(monkeypatch)
    requests: list[str] = []

    async def judge(messages: Sequence[ChatMessage]) -> str:
        requests.append(messages[-1]["content"])
        if len(requests) == 1:
            raise ValueError("no verdict")
        for _ in range(50):
            await asyncio.sleep(0)
        return json.dumps({"score": 3, "verdict": True, "explanation": "so it is"})

    models = {"judge": judge}
    options = {"users": "1", "settings": ("base",), "limit": 1}
    run = dialoom.play("personalens", path=tmp_path / "run.db", options=options, models=models, workers=workers)
    status = run.status()
    assert (status.done, status.failed, status.usage.unanswered) == (0, 1, 0)
    assert len(requests) == 6
    run = dialoom.retry(run.path, models=models, workers=workers)
    assert (run.status().done, len(requests)) == (1, 6 + 1)
