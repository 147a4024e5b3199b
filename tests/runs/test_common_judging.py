"""Common calls of a judging graph: made once for all scenarios and sets that ask the same, replayed, gone on with."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import dialoom
from benchmarks.long_requests import Recalling, assistant
from dialoom import Judgement, Outcome, Run
from dialoom.graphs import Scene, Stage, WithJudging, node
from dialoom.graphs.conversation import joined, lines
from dialoom.graphs.recipe import Graph
from dialoom.prompts import ChatMessage

TABLE = {"pairs": 3, "methods": 4, "turns": 2}


class Judging(TypedDict):
    """What is checkpointed."""

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
    """Recalls, and can be judged."""

    name = "judged"
    metrics = ("kept",)

    def judging(self) -> Graph:
        """One node."""
        from langgraph.graph import START, StateGraph

        builder: Graph = StateGraph(Judging, context_schema=Stage)
        builder.add_node("judge", node(judge))
        builder.add_edge(START, "judge")
        return builder

    def judging_roles(self) -> Mapping[str, float]:
        """The only role."""
        return self.roles

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Lines or judgements."""
        made = tuple(Judgement.model_validate(each) for each in state.get("judgements", []))
        ended = "error" if failed else "answered"
        return Outcome(messages=lines(state.get("messages", [])), ended_by=ended, judgements=made)


async def other(messages: list[ChatMessage]) -> str:
    """Another model with the same words."""
    return await assistant(messages)


class Counting:
    """A judge who counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """As the other ones."""
        self.asked.append(len(messages))
        return await assistant(list(messages))


def judged(run: Run, model: Any, name: str, **more: Any) -> Run:
    """A set of judgements."""
    return dialoom.judge(run.path, models={"assistant": model}, name=name, recipe=Judged, **more)


def rows(run: Run, query: str) -> list[Any]:
    """What the file says."""
    with closing(sqlite3.connect(run.path)) as connection:
        return connection.execute(query).fetchall()


def test_a_judging_graph_asks_them_once(tmp_path: Path) -> None:
    """For all its scenarios, booked on its set; a set that asks the same of the same model asks nothing twice."""
    run = dialoom.play(Judged, path=tmp_path / "run.db", options=TABLE, models={"assistant": assistant})
    judge_of_sets = Counting()
    first = judged(run, judge_of_sets, "first")
    assert sorted(judge_of_sets.asked) == [1] * 3 + [3] * 12
    assert first.status().by_judging["first"].calls == 3 + 12
    assert len(rows(run, "SELECT 1 FROM common_uses WHERE judging = 'first'")) == 12
    second = judged(run, assistant, "second")  # who has replied to the preferences in the run itself
    assert second.status().by_judging["second"].calls == 12
    assert len(rows(run, "SELECT 1 FROM common_uses WHERE judging = 'second'")) == 12
    scores = [[each.outcome.judgements[0].score for each in run.episodes(judging=name)] for name in ("first", "second")]
    assert scores[0] == scores[1] and len(scores[0]) == 12


def test_a_judging_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """What was answered is not asked again, be it common or not."""
    run = dialoom.play(Judged, path=tmp_path / "run.db", options=TABLE, models={"assistant": assistant})
    spent = run.status().usage.calls
    stopped = judged(run, other, "again", budget=dialoom.Budget(max_calls=spent + 6), concurrency=1)
    assert stopped.ended is not None and not stopped.ended.is_complete
    whole = judged(run, other, "again", budget=dialoom.Budget(max_calls=None))
    assert whole.status().by_judging["again"].calls == 3 + 12
    assert len([each for each in whole.episodes(judging="again") if each.outcome.judgements]) == 12
