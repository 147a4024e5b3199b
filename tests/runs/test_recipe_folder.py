"""User-defined recipes: where they are found, error messages, understudies and judgements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import dialoom
from benchmarks.long_requests import assistant
from dialoom.roles.offline import Draws, MarkedRequest, SilentUnderstudyError, Words, play, understudy
from tests.api.counting import counting
from tests.conftest import ROOT, Command
from tests.runs.workers.local_cluster import local_cluster

SPEC = "talks/recipe.py:Recalling"
PLAYERS = {"assistant": assistant}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a recipe and, in a subfolder, a run of two scenarios that was planned there."""
    folder = tmp_path / "project"
    (folder / "talks").mkdir(parents=True)
    (folder / "runs").mkdir()
    shutil.copy(ROOT / "benchmarks/long_requests.py", folder / "talks/recipe.py")
    shutil.copytree(ROOT / "benchmarks/prompts", folder / "talks/prompts")
    monkeypatch.chdir(folder)
    dialoom.plan(SPEC, path="runs/run.db", models=PLAYERS, options={"pairs": 1, "methods": 2, "turns": 1})
    monkeypatch.chdir(tmp_path)
    return folder


def test_recipe_is_found_in_the_folder_where_the_run_was_planned(project: Path) -> None:
    assert dialoom.resume(project / "runs/run.db", models=PLAYERS).status().done == 2


@pytest.mark.parametrize("workers", [None, 2])
def test_recipe_is_found_beside_the_run(project: Path, workers: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    moved = project.rename(project.with_name("moved"))
    run = (moved / "runs/run.db").rename(moved / "run.db")
    with pytest.raises(dialoom.DialoomError, match=r"names the recipe talks/recipe\.py:Recalling, .*moved"):
        dialoom.resume(run, models=PLAYERS)
    assert dialoom.resume(run, models=PLAYERS, trust=True, workers=workers).status().done == 2


def test_missing_recipe_names_all_searched_folders(project: Path, tmp_path: Path) -> None:
    run = (project / "runs/run.db").rename(tmp_path / "run.db")
    shutil.rmtree(project / "talks")
    looked = f"'{SPEC}': there is no such file in any of {project}, {tmp_path}; put it into one of them"
    with pytest.raises(dialoom.DialoomError, match=looked):
        dialoom.resume(run, models=PLAYERS)
    assert (
        dialoom.resume(run, models=PLAYERS, recipe=f"{ROOT}/benchmarks/long_requests.py:Recalling").status().done == 2
    )


RECIPE = '''
from langgraph.graph import START, StateGraph

from dialoom.graphs import DialogueRecipe, DialogueState, Judge, Scenario, Stage, Turns, node
from dialoom.graphs.tables import Facet, Pivot, score


class Errand(Scenario):
    goal: str


class Support(DialogueRecipe):
    """Callers and an agent."""

    name = "support"
    scenario_type = Errand
    prompts = {"user": "You call. <task>{{ goal }}</task>", "assistant": "You answer."}
    turns = Turns(max_turns=1)
    judges = [Judge("resolved", rubric="The goal was reached: {{ goal }}")]

    def scenarios(self, options, draw, note):
        yield Errand(goal="return a kettle")


class Mistaken(Support):
MISTAKE


RECIPE = Mistaken()
'''
ENDLESS = """
    def graph(self, options):
        builder = StateGraph(DialogueState, context_schema=Stage)
        for role, following in (("user", "assistant"), ("assistant", "user")):
            builder.add_node(role, node(self.speaker(role)))
            builder.add_edge(role, following)
        builder.add_edge(START, "user")
        return builder
"""
MISTAKES = {
    '    prompts = {"user": "You call. {{ gaol }}", "assistant": "You answer."}': (
        "prompt 'support/user' declares the input 'gaol', which Errand does not have; it has goal"
    ),
    '    judges = [Judge("resolved", rubric="Reached: {{ gaol }}")]': (
        "judge 'resolved' declares the input 'gaol', which Errand does not have; its fields are goal"
    ),
    '    judges = [Judge("tone", rubric={1: "rude", 5: "warm"})]': (
        "recipe 'support.py:RECIPE': support.py cannot be imported: JudgeError: judge 'tone': a rubric with numbered "
        "levels needs a scale, e.g. scale=(1, 5)"
    ),
    '    judges = [Judge("polite", rubric="It is polite", target="asistant")]': (
        "judge 'polite' has the target 'asistant', which is not a role; the roles are user, assistant"
    ),
    '    def scenarios(self, options, draw, note):\n        return [Errand(goal="buy tea")] * 2': (
        "scenario 'buy-tea-2d53015842' is planned twice; scenarios must differ in at least one field"
    ),
    '    def scenarios(self, options, draw, note):\n        yield Errand(gaol="buy tea")': (
        "recipe: `scenarios` of Mistaken makes an invalid Errand: goal: Field required"
    ),
    "    def scenarios(self, options, draw, note):\n        Errand(goal='buy tea')": (
        "recipe: `scenarios` of Mistaken returns None; it must yield objects of Errand"
    ),
    ENDLESS: "recipe: `graph` of Mistaken never ends: no path of edges leads from START to END; add an edge to END",
    '    pivots = [Pivot("scores", "Scores", ["gaol"], [score("resolved")])]': (
        "recipe: pivot 'scores' of Mistaken names the facet 'gaol', which no scenario has; they have goal"
    ),
    '    pivots = [Pivot("scores", "Scores", ["goal"], [score("tone")])]': (
        "recipe: pivot 'scores' of Mistaken has a column of the metric 'tone'; it may use resolved"
    ),
    '    pivots = [Pivot("scores", "Scores", ["goal"], [score("resolved")], charted=["tone"])]': (
        "recipe: pivot 'scores' of Mistaken charts the column 'tone'; it may use resolved"
    ),
    '    turns = Turns(("user", "agent"))': (
        "turns name the role 'agent', which has no prompt; the roles with prompts are user, assistant"
    ),
    '    turns = Turns(max_turns="rounds")': (
        "max_turns names the field 'rounds', which Errand does not have; it has goal"
    ),
    '    facets = [Facet("person", splits=True)]': (
        "recipe: `facets` of Mistaken names the facet 'person', which no scenario has; they have goal"
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_recipe_mistake_is_one_message_and_creates_no_run(dialoom: Command, tmp_path: Path, mistake: str) -> None:
    (tmp_path / "support.py").write_text(RECIPE.replace("MISTAKE", mistake))
    output = dialoom("run", "support.py:RECIPE", "-o", "run.db", code=2).stderr
    assert output == f"dialoom: {MISTAKES[mistake]}\n"
    assert not (tmp_path / "run.db").exists()


def test_role_without_an_understudy_is_refused_at_once(tmp_path: Path) -> None:
    recipe = counting(tmp_path)
    with pytest.raises(dialoom.DialoomError, match="role 'speaker' is played by offline/attentive") as error:
        dialoom.play(recipe, path=tmp_path / "run.db", model="offline/attentive")
    assert error.value.setting == "models"
    assert not list(tmp_path.glob("*.db*"))


def test_role_without_an_understudy_is_played_by_the_placeholder(tmp_path: Path) -> None:
    recipe = counting(tmp_path)
    runs = [dialoom.play(recipe, path=tmp_path / f"{number}.db") for number in (1, 2)]
    assert runs[0].config.models["speaker"].model == "offline/placeholder"
    assert runs[0].status().failed == 0
    spoken = [[line.content for each in run.episodes() for line in each.outcome.messages] for run in runs]
    assert spoken[0] == spoken[1] and all(spoken[0])
    assert dialoom.estimate(recipe, model="openai/gpt-4o-mini").total.calls


class Answers(BaseModel):
    """A reply type with most kinds of fields and a validator."""

    chosen: Literal["a", "b"]
    numbers: Annotated[list[int], Field(min_length=2, max_length=4)]
    share: Annotated[float, Field(ge=0, le=1)]
    names: Annotated[tuple[str, ...], Field(min_length=2)]
    nested: dict[str, str] | None
    reason: Literal["late", "early"]
    explanation: Annotated[str, Field(max_length=20)] | None

    @field_validator("names")
    @classmethod
    def _differ(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("the names must differ")
        return names


def test_placeholder_gives_valid_instances_of_any_reply_type() -> None:
    found = {
        play(
            "placeholder",
            [{"role": "user", "content": "<task>Buy tea</task>"}],
            "x/y",
            "judge",
            seed=seed,
            reply_type=Answers,
        ).words
        for seed in range(5)
    }
    assert len(found) > 1
    for text in found:
        Answers.model_validate_json(text)


@pytest.mark.parametrize(
    ("bank", "message"),
    [
        ('anser = "Yes."', "speaker.toml: there is no bank answer at its top level; there are anser"),
        ('answer = ["Yes, {nmae}."]', "speaker.toml: answer needs {nmae}; the slots that are filled: name"),
        ('[answer]\nlong = "Yes."', "speaker.toml: there is no bank answer at its top level; there are none"),
    ],
)
def test_understudy_without_words_names_its_file(tmp_path: Path, bank: str, message: str) -> None:
    (tmp_path / "speaker.toml").write_text(bank + "\n")
    words = Words(tmp_path / "speaker.toml")

    @understudy("silence", "mute")
    def speaker(_request: MarkedRequest, draws: Draws) -> str:
        return words.say("answer", draws, {"name": "Ada"})

    with pytest.raises(SilentUnderstudyError) as error:
        play("attentive", [{"role": "user", "content": "Hello"}], "silence/speech", "mute")
    assert message in str(error.value)


JUDGING = f"{ROOT / 'docs/examples/twenty_questions/recipe.py'}:RECIPE"


async def guesser(messages: list[Any]) -> str:
    """Return a guess."""
    return f"Is it a piano? ({len(messages)})"


async def keeper(messages: list[Any]) -> str:
    """Return no twice, and then yes."""
    return "You have found it." if len(messages) > 4 else "No."


async def judge(messages: list[Any]) -> str:
    """Return a verdict, or for the otter a reply without one."""
    if any("otter" in message["content"] for message in messages):
        return "I cannot say."
    return '{"verdict": true, "explanation": "every answer was true"}'


def test_judgements_of_a_recipe_without_judging_are_kept_and_shown(tmp_path: Path) -> None:
    run = dialoom.play(
        JUDGING,
        path=tmp_path / "run.db",
        models={"guesser": guesser, "keeper": keeper, "judge": judge},
        options={"words": "heron,otter", "judge": True},
    )
    assert [each.name for each in run.judgement_sets] == ["run"]
    found = [
        [(each.metric, each.score, each.status) for each in episode.outcome.judgements] for episode in run.episodes()
    ]
    assert found == [
        [("honesty", True, "ok"), ("found", True, "ok")],
        [("honesty", None, "unparsed"), ("found", True, "ok")],
    ]
    assert "| 100.0 [20.7, 100.0] n=1 |" in str(run.report())
    run.export("dialogues", tmp_path / "out.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["judgements"][0]["status"] for line in lines] == ["ok", "unparsed"]
    assert run.frame("judgements")["status"].tolist() == ["ok", "ok", "unparsed", "ok"]


def test_run_without_judges_has_the_judgements_of_its_checks(tmp_path: Path) -> None:
    run = dialoom.play(
        JUDGING, path=tmp_path / "run.db", models={"guesser": guesser, "keeper": keeper}, options={"words": "heron"}
    )
    assert [each.metric for episode in run.episodes() for each in episode.outcome.judgements] == ["found"]
