"""`--dry-run`: what a run would take, before anything is sent or written."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conftest import Command
from tests.invented import write_release


def files_in(folder: Path) -> set[Path]:
    """Every file, however deep."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_an_estimate_calls_no_model_and_leaves_nothing(dialoom: Command, tmp_path: Path) -> None:
    """Scenarios, calls, tokens and cost by role; the models themselves would raise if they were asked."""
    write_release(tmp_path / "release", users=10)
    (tmp_path / "never.py").write_text("async def reply(messages):\n    raise AssertionError('it was asked')\n")
    (tmp_path / "temporary").mkdir()
    before = files_in(tmp_path)
    cast = ["--model", "openai/gpt-4o-mini", "--model", "judge=python:never:reply"]
    plan = ["run", "personalens", "--profiles", "release", *cast]
    temporary = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = dialoom(*plan, "--dry-run", "--max-calls", 7, "-o", "run.db", env=temporary)
    assert files_in(tmp_path) == before, "neither the run nor the file that it was estimated in is left"
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["20"][0] == "scenarios;"
    assert rows["judge"][0] == "python:never:reply"
    assert rows["judge"][1] == "120", "six judgements of each"
    assert rows["judge"][-1] == "unknown"
    assert float(rows["user"][-1].removeprefix("$")) > 0, "priced as the real model"
    assert rows["all"][-1] == "unknown", "a sum with an unknown part is unknown"
    assert "8 of the scenarios" in done.stdout
    assert "--price python:never:reply=IN,OUT" in done.stdout
    assert "--max-calls 7 would be used up" in done.stdout


def test_an_estimate_of_the_offline_model_is_what_it_takes(dialoom: Command, tmp_path: Path) -> None:
    """When all scenarios are in the sample, calls and tokens are the very ones."""
    write_release(tmp_path / "release", users=2)
    plan = ["run", "personalens", "--profiles", "release", "--model", "offline/attentive"]
    estimated = dialoom(*plan, "--dry-run").stdout
    dialoom(*plan, "-o", "run.db")
    total = next(line for line in dialoom("status", "run.db").stdout.splitlines() if line.split()[:1] == ["all"])
    calls, _, _, input_tokens, output_tokens, cost = total.split()[1:]
    assert f"{calls} {input_tokens} {output_tokens} {cost}" in " ".join(estimated.split())


def test_a_recipe_without_understudies_is_estimated_with_the_placeholder(dialoom: Command, tmp_path: Path) -> None:
    """The table names it."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "asker.md").write_text(
        "---\nid: asker\nversion: 1\nrole: asker\ninputs: []\nreply: verdict\n---\n=== user ===\nName a number.\n"
    )
    (tmp_path / "odd.py").write_text(
        """
from pathlib import Path
from langgraph.graph import END, START, StateGraph
from typing import TypedDict
from dialoom.graphs import Outcome, Recipe, Scenario, Stage, WithPrompts, node

class State(TypedDict):
    said: str

class Odd(Scenario):
    number: int
    @property
    def label(self): return "odd"
    def facets(self): return {}

async def ask(state, scene):
    return {"said": str(await scene.ask("asker"))}

class OddRecipe(Recipe, WithPrompts):
    name = "odd"
    summary = "Odd."
    roles = {"asker": 0.0}
    prompts = ("asker",)
    templates = Path(__file__).parent / "prompts"
    scenario_type = Odd
    def scenarios(self, options, draw, note):
        yield Odd(number=1)
    def graph(self, options):
        builder = StateGraph(State, context_schema=Stage)
        builder.add_node("ask", node(ask))
        builder.add_edge(START, "ask")
        builder.add_edge("ask", END)
        return builder
    def initial(self, scenario): return {"said": ""}
    def outcome(self, scenario, state, failed=False):
        return Outcome(messages=(), ended_by="error" if failed else "done")

RECIPE = OddRecipe()
"""
    )
    assert "offline/placeholder" in dialoom("run", "odd.py:RECIPE", "--dry-run").stdout
