"""A graph that sends several tasks out to one node: its calls have one place, and are told apart all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialoom import Session
from dialoom.runs.stepping import SteppingError, case_of, replay
from tests.conftest import Command
from tests.runs.stepping.played import asked, counted, stepping, stood

_RECIPE = """
import operator
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from dialoom.graphs import Line, Outcome, Recipe, Scenario, Stage, WithPrompts, node


class Subject(Scenario):
    word: str

    @property
    def label(self):
        return self.word

    def facets(self):
        return {"word": self.word}


class State(TypedDict):
    topics: list[str]
    notes: Annotated[list[str], operator.add]
    summary: str


async def plan(state, scene):
    return {"topics": ["ferries", "alpacas", "cellos"]}


async def write(state, scene):
    return {"notes": [await scene.ask("notes/writer", topic=state["topic"])]}


async def sum_up(state, scene):
    return {"summary": await scene.ask("notes/writer", topic=" and ".join(state["notes"]))}


class Notes(Recipe, WithPrompts):
    name = "notes"
    summary = "Notes on several topics, written side by side."
    roles = {"writer": 0.5}
    prompts = ("notes/writer",)
    templates = Path(__file__).parent / "prompts"
    scenario_type = Subject

    def scenarios(self, options, draw, note):
        yield Subject(word="things")

    def graph(self, options):
        builder = StateGraph(State, context_schema=Stage)
        for each in (plan, write, sum_up):
            builder.add_node(each.__name__, node(each))
        builder.add_edge(START, "plan")
        builder.add_conditional_edges("plan", lambda s: [Send("write", {"topic": t}) for t in s["topics"]], ["write"])
        builder.add_edge("write", "sum_up")
        builder.add_edge("sum_up", END)
        return builder

    def initial(self, scenario):
        return {"topics": [], "notes": [], "summary": ""}

    def outcome(self, scenario, state, failed=False):
        lines = tuple(Line(role="writer", content=each) for each in state["notes"])
        return Outcome(messages=lines, ended_by="error" if failed else "done", details={"summary": state["summary"]})


RECIPE = Notes()
"""
_PROMPT = """---
id: notes/writer
version: 1
role: writer
inputs: [topic]
reply: text
---
=== user ===
{{ topic }}
"""
_WRITER = """
async def writer(messages):
    if messages[-1]["content"] == "Say nothing.":
        return " "
    return f"On {messages[-1]['content']}"
"""


@pytest.fixture
def run(dialoom: Command, tmp_path: Path) -> Path:
    """A finished run of the recipe."""
    (tmp_path / "prompts" / "notes").mkdir(parents=True)
    (tmp_path / "prompts" / "notes" / "writer.md").write_text(_PROMPT)
    (tmp_path / "notes.py").write_text(_RECIPE)
    (tmp_path / "authors.py").write_text(_WRITER)
    dialoom("run", f"{tmp_path / 'notes.py'}:RECIPE", "--model", "python:authors:writer", "-o", "run.db")
    return tmp_path / "run.db"


def test_each_tasks_call_is_the_steps(run: Path) -> None:
    """Found in the ledger of the engine, and noted on a branch; a rewind costs nothing."""

    async def act(session: Session) -> None:
        main = await session.stops()
        assert sorted(call.reply or "" for call in main[3].calls) == ["On alpacas", "On cellos", "On ferries"]
        await session.goto(0)
        session = await session.fork("again")
        await session.run()
        branch = await session.stops()
        assert [stop["state"] for stop in stood(branch)] == [stop["state"] for stop in stood(main)]
        assert {call.key for call in branch[-2].calls} == {call.key for call in main[3].calls}
        assert (await replay(await case_of(session))).departures == []

    stepping(run, act)
    assert counted(run) == (4, 4)


def test_one_of_them_is_said_or_asked_something_else(run: Path) -> None:
    """By its number; the others are replayed, and a case knows which was which."""

    async def act(session: Session) -> None:
        await session.goto(2)
        assert [each.name for each in await session.next_requests()] == ["write:0", "write:1", "write:2"]
        with pytest.raises(SteppingError, match="no such role as 'write:3'; there are writer"):
            await session.say("write:3", "Nothing.")
        stop = await session.say("write:1", "Alpacas hum.")
        assert stop.state["notes"] == ["On ferries", "Alpacas hum.", "On cellos"]
        assert asked(run, 4) == ["writer"]
        assert (await replay(await case_of(session))).departures == []
        await session.rewind()
        stop = await session.ask_instead("write:2", [{"role": "user", "content": "Cellos, briefly"}])
        assert stop.state["notes"] == ["On ferries", "On alpacas", "On Cellos, briefly"]
        assert sorted(call.is_edited for call in stop.calls) == [False, False, True]
        await session.run()
        assert (await replay(await case_of(session))).departures == []

    stepping(run, act)
    assert counted(run) == (4 + 1 + 1 + 1, 2 + 2)


def test_what_is_asked_again_is_what_the_person_wrote(run: Path) -> None:
    """A written request whose answer cannot be used is shown to the model once more, not the prompt."""

    async def act(session: Session) -> None:
        await session.goto(2)
        stop = await session.ask_instead("write:0", [{"role": "user", "content": "Say nothing."}])
        first, second = (call for call in stop.calls if call.is_edited)
        assert first.messages == ({"role": "user", "content": "Say nothing."},)
        assert second.messages[0] == {"role": "user", "content": "Say nothing."}
        assert "could not be used" in second.messages[-1]["content"]
        assert (first.ask, second.ask) == (1, 2)
        assert (await replay(await case_of(session))).departures == []

    stepping(run, act)


def test_the_place_before_the_beginning_is_shown(run: Path) -> None:
    """What stands before the first step has not all that the recipe begins with; it is shown as if it had."""
    stop = stepping(run, lambda session: session.goto(0))
    assert (stop.next, stop.transcript) == (("__start__",), ())
