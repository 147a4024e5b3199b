"""Saved cases, and graphs that send several tasks to one node."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom import DialoomError, Stepper
from dialoom.cli.stepping.commands import CommandInterpreter
from dialoom.runs.stepping import ReplayResult, case_of, diff, read_case, replay, write_case
from tests.conftest import ROOT, Command, MadeOnce
from tests.runs.stepping.played import RECIPES, call_counts, called_roles, dialogue, play, shown_stops, stepping

Act = Callable[[Stepper], Any]


def saved(path: Path, act: Act | None = None) -> Path:
    """Save the case of a run's first scenario, or of the branch on which `act` ends; return its path."""

    async def save(stepper: Stepper) -> None:
        if act is not None:
            await act(stepper)
        write_case(await case_of(stepper), path.parent / "case.json")

    stepping(path, save)
    return path.parent / "case.json"


def replayed(case: Path) -> ReplayResult:
    """Return the result of a case's replay."""
    return asyncio.run(replay(read_case(case)))


def rewritten(case: Path, old: str, new: str) -> ReplayResult:
    """Replace a text in a case's file and return the result of its replay."""
    text = case.read_text()
    assert old in text
    case.write_text(text.replace(old, new, 1))
    return replayed(case)


@pytest.mark.parametrize("recipe", RECIPES)
def test_replayed_case_gives_the_same_outcome(made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)

    async def count(stepper: Stepper) -> int:
        return sum(len(stop.calls) for stop in await stepper.stops())

    calls = stepping(path, count)
    case = saved(path)
    path.unlink()
    done = replayed(case)
    assert (done.calls, done.departures) == (calls, [])
    assert done.steps > 0


@pytest.mark.parametrize("recipe", ["aloe", "a file"])
def test_branch_with_edits_can_be_saved_and_replayed(made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)

    async def act(stepper: Stepper) -> None:
        await stepper.goto(1)
        while (stop := await stepper.here()).number < 40 and not stop.is_end:
            channel = next(iter(stop.state))
            await stepper.edit(channel, stop.state[channel])
            await stepper.step()
            if len(await stepper.stops()) > 14:
                break

    done = replayed(saved(path, act))
    assert done.departures == []
    assert done.steps >= 4


def test_actions_of_a_person_are_in_the_case(made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    (tmp_path / "others.py").write_text("async def brief(messages):\n    return 'As you like.'\n")

    async def act(stepper: Stepper) -> None:
        await stepper.goto(1)
        await stepper.say("user", "Rather a quiet place.")
        await stepper.edit_request("assistant", [{"role": "user", "content": "Say: hello"}])
        await stepper.edit("messages[0].content", "Rather a loud place.")
        await stepper.replace_model("assistant", "python:others:brief")
        await stepper.run()

    case = saved(path, act)
    done = replayed(case)
    assert done.departures == []
    content = json.loads(case.read_text())
    calls = [call for step in content["steps"] for call in step["calls"]]
    assert [call["model"] for call in calls][:4] == [
        "said",
        "python:players:assistant",
        "python:players:user",
        "python:others:brief",
    ]
    assert [call["is_edited"] for call in calls][:3] == [False, True, False]
    assert sum(step["edit"] is not None for step in content["steps"]) == 1
    assert content["outcome"]["messages"][0]["content"] == "Rather a loud place."


def test_changed_reply_is_reported_at_its_first_effect(made_once: MadeOnce) -> None:
    case = saved(dialogue(made_once))
    done = rewritten(case, '"reply": "Line 1 of mine."', '"reply": "Line one of mine."')
    assert done.departures[0] == "step 4: assistant sent assistant a request that differs from the recorded one"
    assert done.departures[1:] == [
        'the outcome: messages[2].content: "Line 1 of mine." -> "Line one of mine."',
        "8 more requests differ from the recorded ones",
    ]


def test_reply_that_no_longer_parses_is_reported(made_once: MadeOnce) -> None:
    case = saved(dialogue(made_once))
    done = rewritten(case, '"reply": "{\\"verdict\\": true', '"reply": "{\\"verdict\\": \\"perhaps\\"')
    [line] = done.departures
    assert line.endswith("judge_task_completion cannot use the recorded reply of judge, and requested another")


def test_graph_that_takes_another_path_is_reported(dialoom: Command, tmp_path: Path) -> None:
    source = (ROOT / "docs/examples/twenty_questions/recipe.py").read_text()
    recipe = tmp_path / "game" / "recipe.py"
    recipe.parent.mkdir()
    (tmp_path / "game" / "prompts").symlink_to(ROOT / "docs/examples/twenty_questions/prompts")
    recipe.write_text(source)
    (tmp_path / "quiz.py").write_text("async def any(messages):\n    return f'Is it number {len(messages)}?'\n")
    plan = ["run", f"{recipe}:RECIPE", "--words", "piano", "--questions", 3, "--model", "python:quiz:any"]
    dialoom(*plan, "-o", "run.db")
    case = saved(tmp_path / "run.db")
    assert replayed(case).departures == []

    def with_source(old: str, new: str) -> list[str]:
        assert old in source
        recipe.write_text(source.replace(old, new))
        return list(replayed(case).departures)

    assert with_source('messages[-1].name == "keeper" and', 'messages[-1].name == "keeper" or') == [
        "step 3: the end would run, but guesser was recorded"
    ]
    assert with_source('Turns(("guesser", "keeper"), "questions"', 'Turns(("keeper", "guesser"), "questions"') == [
        "step 1: keeper would run, but guesser was recorded"
    ]
    assert with_source('("guesser", "keeper"), "questions"', '("guesser", "keeper"), 6')[:2] == [
        "the conversation did not end: guesser would run next",
        'the outcome: ended_by: "out_of_questions" -> "error"',
    ]
    assert with_source("if messages[-1].name ==", "if messages[2 * len(messages) - 2].name ==") == [
        "step 2: keeper failed: IndexError: list index out of range"
    ]
    assert with_source('"keeper": "twenty_questions/keeper"', '"keeper": "twenty_questions/guesser"')[0].startswith(
        "step 2: keeper asked guesser, but keeper asked keeper was recorded"
    )
    recipe.write_text("RECIPE = 3\n")
    with pytest.raises(DialoomError, match="is int; it must be an instance of"):
        replayed(case)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"", "case.json:1: not JSON"),
        (b"{}", "format: Field required"),
        (b'{"format": "dialoom case, version 9"}', "format: Input should be 'dialoom case, version 1'"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1, 2]", "is not a saved case: it: Input should be"),
    ],
)
def test_malformed_case_is_reported_in_one_line(tmp_path: Path, broken: bytes, message: str) -> None:
    (tmp_path / "case.json").write_bytes(broken)
    with pytest.raises(DialoomError, match=r"case\.json") as raised:
        read_case(tmp_path / "case.json")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_case_that_cannot_be_read_or_written_is_reported_in_one_line(made_once: MadeOnce, tmp_path: Path) -> None:
    with pytest.raises(DialoomError, match=r"none\.json: there is no such file"):
        read_case(tmp_path / "none.json")
    case = saved(dialogue(made_once))
    with pytest.raises(DialoomError, match=r"nowhere.* cannot be written"):
        write_case(read_case(case), tmp_path / "nowhere" / "case.json")
    content = json.loads(case.read_text())
    content["scenario"] = {}
    case.write_text(json.dumps(content))
    with pytest.raises(DialoomError, match="recipe 'personalens' can no longer read the case"):
        replayed(case)


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
        with Path(__file__).with_name("outcomes").open("a") as file:
            file.write(".")
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
    """Return the path of a finished run of the recipe."""
    (tmp_path / "prompts" / "notes").mkdir(parents=True)
    (tmp_path / "prompts" / "notes" / "writer.md").write_text(_PROMPT)
    (tmp_path / "notes.py").write_text(_RECIPE)
    (tmp_path / "authors.py").write_text(_WRITER)
    dialoom("run", f"{tmp_path / 'notes.py'}:RECIPE", "--model", "python:authors:writer", "-o", "run.db")
    return tmp_path / "run.db"


def test_calls_of_parallel_tasks_belong_to_the_step(run: Path) -> None:
    async def act(stepper: Stepper) -> None:
        main = await stepper.stops()
        assert sorted(call.reply or "" for call in main[3].calls) == ["On alpacas", "On cellos", "On ferries"]
        await stepper.goto(0)
        stepper = await stepper.fork("again")
        await stepper.run()
        branch = await stepper.stops()
        assert [stop["state"] for stop in shown_stops(branch)] == [stop["state"] for stop in shown_stops(main)]
        assert {call.key for call in branch[-2].calls} == {call.key for call in main[3].calls}
        assert (await replay(await case_of(stepper))).departures == []

    stepping(run, act)
    assert call_counts(run) == (4, 4)


def test_outcomes_of_passed_steps_are_not_computed(run: Path) -> None:
    async def act(stepper: Stepper) -> None:
        other = await stepper.fork("other")
        await stepper.goto_where(stepper.condition("summary != ''"))
        await stepper.history()
        await diff(stepper, other)
        await case_of(stepper)

    run.with_name("outcomes").write_text("")
    stepping(run, act)
    assert run.with_name("outcomes").read_text() == "."  # the outcome of the end


def test_answer_to_a_command_has_a_short_representation(run: Path) -> None:
    async def act(stepper: Stepper) -> None:
        answer = await CommandInterpreter(stepper, lambda _answer: None).execute("history")
        assert len(repr(answer)) < 100

    stepping(run, act)


def test_parallel_tasks_are_edited_by_number(run: Path) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(2)
        assert [each.name for each in await stepper.next_requests()] == ["write:0", "write:1", "write:2"]
        with pytest.raises(DialoomError, match="no such role as 'write:3'; the roles are writer"):
            await stepper.say("write:3", "Nothing.")
        stop = await stepper.say("write:1", "Alpacas hum.")
        assert stop.state["notes"] == ["On ferries", "Alpacas hum.", "On cellos"]
        assert called_roles(run, 4) == ["writer"]
        assert (await replay(await case_of(stepper))).departures == []
        await stepper.rewind()
        stop = await stepper.edit_request("write:2", [{"role": "user", "content": "Cellos, briefly"}])
        assert stop.state["notes"] == ["On ferries", "On alpacas", "On Cellos, briefly"]
        assert sorted(call.is_edited for call in stop.calls) == [False, False, True]
        await stepper.run()
        assert (await replay(await case_of(stepper))).departures == []

    stepping(run, act)
    assert call_counts(run) == (4 + 1 + 1 + 1, 2 + 2)


def test_line_goes_to_the_named_role_of_a_node_that_asks_two(run: Path, dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "prompts" / "notes" / "editor.md").write_text(_PROMPT.replace("writer", "editor"))
    recipe = (tmp_path / "notes.py").read_text()
    for old, new in (
        ("import operator", "import asyncio, operator"),
        ('return {"summary": await ', 'editor = scene.ask("notes/editor", topic="a")\n    writer = '),
        (
            'join(state["notes"]))}',
            'join(state["notes"]))\n    return {"summary": " ".join(await asyncio.gather(editor, writer))}',
        ),
        ('{"writer": 0.5}', '{"writer": 0.5, "editor": 0.5}'),
        ('("notes/writer",)', '("notes/writer", "notes/editor")'),
    ):
        assert old in recipe
        recipe = recipe.replace(old, new)
    (tmp_path / "notes.py").write_text(recipe)
    run.unlink()
    dialoom("run", f"{tmp_path / 'notes.py'}:RECIPE", "--model", "python:authors:writer", "-o", "run.db")
    editing = {**os.environ, "EDITOR": "sed -i s/alpacas/lamas/"}

    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        assert [each.name for each in await stepper.next_requests()] == ["sum_up:0", "sum_up:1"]
        await CommandInterpreter(stepper, lambda _answer: None).execute("say writer Enough.")
        assert stepper.state["summary"] == "On a Enough."

    stepping(run, act)
    (tmp_path / "lines.txt").write_text("goto 3\nprompt edit writer\nstate summary\n")
    assert "On a On On ferries and On lamas" in dialoom("step", run, 1, "--script", "lines.txt", env=editing).stdout
    (tmp_path / "lines.txt").write_text("goto 2\nprompt edit write:1\nstate notes\n")
    assert "On lamas" in dialoom("step", run, 1, "--script", "lines.txt", env=editing).stdout


def test_repeated_request_shows_what_the_person_wrote(run: Path) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(2)
        stop = await stepper.edit_request("write:0", [{"role": "user", "content": "Say nothing."}])
        first, second = (call for call in stop.calls if call.is_edited)
        assert first.messages == ({"role": "user", "content": "Say nothing."},)
        assert second.messages[0] == {"role": "user", "content": "Say nothing."}
        assert "could not be used" in second.messages[-1]["content"]
        assert (first.ask, second.ask) == (1, 2)
        assert (await replay(await case_of(stepper))).departures == []

    stepping(run, act)


def test_position_before_the_first_step_is_shown(run: Path) -> None:
    stop = stepping(run, lambda stepper: stepper.goto(0))
    assert (stop.next, stop.transcript) == (("__start__",), ())
