"""A recipe that judges while it plays, and has no judging of its own: nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dialoom
from tests.conftest import ROOT

RECIPE = f"{ROOT / 'docs/examples/twenty_questions/recipe.py'}:RECIPE"


async def guesser(messages: list[Any]) -> str:
    """Asks thrice."""
    return f"Is it a piano? ({len(messages)})"


async def keeper(messages: list[Any]) -> str:
    """Says no twice."""
    return "You have found it." if len(messages) > 4 else "No."


async def judge(messages: list[Any]) -> str:
    """Has a verdict on herons, and nothing to say of otters."""
    if any("otter" in message["content"] for message in messages):
        return "I cannot say."
    return '{"verdict": true, "explanation": "every answer was true"}'


def test_judgements_of_a_recipe_without_judging_roles_are_kept_and_shown(tmp_path: Path) -> None:
    """In episodes, the report, frames and exports; what could not be read is no verdict."""
    run = dialoom.play(
        RECIPE,
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


def test_a_run_without_judges_has_the_judgements_of_its_checks(tmp_path: Path) -> None:
    """They cost nothing, so they are there whether a judge is asked or not."""
    run = dialoom.play(
        RECIPE, path=tmp_path / "run.db", models={"guesser": guesser, "keeper": keeper}, options={"words": "heron"}
    )
    assert [each.metric for episode in run.episodes() for each in episode.outcome.judgements] == ["found"]
