"""Mistakes in a recipe: each is one clear message before anything is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command

RECIPE = '''
from langgraph.graph import START, StateGraph

from dialoom.graphs import DialogueRecipe, DialogueState, Judge, Scenario, Stage, Turns, node
from dialoom.graphs.reporting import Facet, Pivot, score


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
        "prompt 'support/user' asks for 'gaol', which Errand does not have; it has goal"
    ),
    '    judges = [Judge("resolved", rubric="Reached: {{ gaol }}")]': (
        "judge 'resolved' asks for 'gaol', which Errand does not have; it has goal"
    ),
    '    judges = [Judge("tone", rubric={1: "rude", 5: "warm"})]': (
        "recipe 'support.py:RECIPE': support.py cannot be imported: JudgeError: judge 'tone': a rubric with numbered "
        "levels needs a scale, e.g. scale=(1, 5)"
    ),
    ENDLESS: "recipe: `graph` of Mistaken has no end: no edge leads from START to END; lead one there",
    '    pivots = [Pivot("scores", "Scores", ["gaol"], [score("resolved")])]': (
        "recipe: pivot 'scores' of Mistaken names the facet 'gaol', which no scenario has; they have goal"
    ),
    '    facets = [Facet("person", splits=True)]': (
        "recipe: `facets` of Mistaken names the facet 'person', which no scenario has; they have goal"
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_leaves_nothing(dialoom: Command, tmp_path: Path, mistake: str) -> None:
    """On one line, naming what is wrong and what would be right."""
    (tmp_path / "support.py").write_text(RECIPE.replace("MISTAKE", mistake))
    told = dialoom("run", "support.py:RECIPE", "-o", "run.db", code=2).stderr
    assert told == f"dialoom: {MISTAKES[mistake]}\n"
    assert not (tmp_path / "run.db").exists()
