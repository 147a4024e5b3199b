"""Every recipe with a real model in every role: properties that hold for any replies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.roles import score_type
from dialoom.roles.replies import parse_reply
from tests.invented import ALARM, write_release
from tests.llm.conftest import Server

RECIPES = (
    *("personalens", "personalens-people", "aloe", "aloe-eval", "prefeval", "prefeval-pairs", "persona-pool"),
    *("apollo-text", "apollo-native", "apollo-write"),
)
_TIMEOUT_SECONDS = 7200.0
DRAFT = {
    "topic": "boats",
    "preference": "I never row before noon.",
    "question": "When do I row to Capri?",
    "chosen": True,
}
RATED = {
    **{"preference": "I never eat meat.", "question": "What do I cook for four tonight?"},
    **{"discard": False, "violation_probability": "high", "reasoning_difficulty": "low"},
}
DOMAIN = {
    "domain": "Alarm",
    "description": "Waking up.",
    "affinities": [
        {
            **{"name": "Sound", "description": "What rings.", "is_categorical": False},
            **{"has_multiple_values": False, "possible_values": ["bells", "rain"]},
        }
    ],
}


def build_small_run(recipe: str, folder: Path, people: Path, minilm: str) -> dict[str, Any]:
    """Return the settings of a small run of a recipe: few scenarios, short profiles, short replies."""
    if recipe == "personalens":
        options: dict[str, Any] = {"profiles": write_release(folder / "release", tasks=[ALARM]), "turn_limit": 1}
    elif recipe == "prefeval":
        options = {"limit": 1, "turns": [1], "method": ["self-critic"]}
    elif recipe == "persona-pool":
        seeds = folder / "seeds.jsonl"
        seeds.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("He drives a tram.", "She bakes.")))
        options = {"seeds": seeds, "target": 4, "batch": 2, "examples": 1, "stop_after": 1, "embedder": minilm}
    elif recipe == "personalens-people":
        schema = folder / "schema.json"
        schema.write_text(json.dumps([{**DOMAIN, "tasks": []}]))
        options = {"affinity_schema": schema, "people": 1, "single_tasks": 1, "multi_tasks": 0, "repairs": 0}
    elif recipe == "prefeval-pairs":
        (folder / "drafts.jsonl").write_text(json.dumps(DRAFT) + "\n")
        (folder / "rated.json").write_text(json.dumps([RATED]))
        (folder / "personas.json").write_text(json.dumps([{"persona": "A welder who sings"}]))
        files = {name: folder / f"{name}.json" for name in ("rated", "personas")} | {"drafts": folder / "drafts.jsonl"}
        options = {**files, "candidates": 1, "shortest": 2, "longest": 2}
    elif recipe == "apollo-write":
        options = {"users": 1, "flows": "movie", "pairs": 1, "errands": 0, "offers": 1, "rewrites": 0}
    elif recipe.startswith("apollo"):
        options = {"history_sessions": [1], "limit": 1, "turn_limit": 2, "protocol": recipe.removeprefix("apollo-")}
    else:
        options = {"personas": people, "rounds": 2 if recipe == "aloe" else 1}
        options |= {"limit": 1, "verify_pairs": True} if recipe == "aloe" else {"limit": 2}
    longer = {
        **dict.fromkeys(("persona-pool", "apollo-text", "apollo-native"), ()),
        **{"aloe": ("judge", "induction"), "prefeval-pairs": ("judge", "writer", "rater")},
        "apollo-write": ("writer", "checker"),
    }
    return {"options": options, "max_reply": {"": 24, **dict.fromkeys(longer.get(recipe, ("judge",)), 64)}}


def run_query(path: Path, sql: str) -> list[Any]:
    """Return the rows of a query of a run's file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def export_bytes(run: dialoom.Run, path: Path) -> bytes:
    """Export a run and return the bytes."""
    run.export(path=path)
    return path.read_bytes()


@pytest.mark.parametrize("recipe", RECIPES)
def test_run_of_a_real_model(recipe: str, served: Server, tmp_path: Path, people: Path, minilm: str) -> None:
    plan = {
        **build_small_run(recipe, tmp_path, people, minilm),
        "seed": 5,
        "concurrency": 1,
        "cache": tmp_path / "kept.db",
    }
    plan["timeout"] = _TIMEOUT_SECONDS  # the server's log does not have attempts that time out
    answered, refused = served.count_answered(), served.count_refused()
    name = recipe.removesuffix("-text").removesuffix("-native")
    run = dialoom.play(name, path=tmp_path / "run.db", model=served.model, **plan)
    status = run.status()
    assert status.pending == 0
    for episode in run.episodes():
        assert episode.outcome.ended_by and (episode.state == "done") == (episode.error is None)
        assert all((each.score is None) == (each.status != "ok") for each in episode.outcome.judgements)
    calls = status.usage
    assert calls.calls - calls.failed == served.count_answered() - answered
    (failed,) = run_query(run.path, "SELECT count(*) FROM attempts")[0]
    assert failed == served.count_refused() - refused, "replies of a shape that the server does not support"
    assert None not in (calls.input_tokens, calls.output_tokens)
    again = dialoom.play(name, path=tmp_path / "again.db", model=served.model, **plan, replay_only=True)
    assert export_bytes(again, tmp_path / "again.jsonl") == export_bytes(run, tmp_path / "run.jsonl")
    assert calls.calls - calls.failed == served.count_answered() - answered, "no request was repeated"


def test_stopped_and_resumed_run_gives_the_same_bytes(served: Server, tmp_path: Path, people: Path) -> None:
    plan: dict[str, Any] = {
        "options": {"personas": people, "limit": 2, "rounds": 1},
        "max_reply": {"": 24, "judge": 64},
    }
    plan |= {"model": served.model, "seed": 6, "concurrency": 1, "structured": "prompt"}
    cached = {"cache": tmp_path / "cached.db", "concurrency": 1}
    whole = dialoom.play("aloe-eval", path=tmp_path / "whole.db", **{**plan, **cached})
    control = dialoom.Control()

    def stop_after_one(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioDone):
            control.interrupt()

    half = dialoom.play(
        "aloe-eval", path=tmp_path / "half.db", **{**plan, **cached}, control=control, on_event=stop_after_one
    )
    assert (half.status().done, half.status().pending) == (1, 1)
    resumed = dialoom.resume(half.path, cache=tmp_path / "cached.db", concurrency=1, replay_only=True)
    assert export_bytes(resumed, tmp_path / "resumed.jsonl") == export_bytes(whole, tmp_path / "whole.jsonl")
    given_up = "SELECT content FROM calls JOIN texts ON texts.id = reply WHERE role = 'judge' AND ask = 2"
    unparsed = [each for each in run_query(whole.path, given_up) if not _is_score(each[0])]
    judgements = [each for episode in whole.episodes() for each in episode.outcome.judgements]
    assert sum(each.status == "unparsed" for each in judgements) == len(unparsed)


def _is_score(text: str) -> bool:
    try:
        parse_reply(text, score_type(1, 5))
    except ValueError:
        return False
    return True
