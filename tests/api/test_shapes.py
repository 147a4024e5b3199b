"""What was found out about the shapes that a model can be held to is remembered in the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from tests.runs.workers.near import near_cluster
from tests.server import Answer, completion, error, serving

from .players import told


@pytest.mark.parametrize("workers", [None, 1])
def test_a_form_that_was_refused_once_is_not_tried_by_a_later_sitting(
    workers: int | None, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes llama.cpp's form alone: one refusal while the run is played, none when it is judged again.

    What a worker has found out stands in the run's file, too.
    """
    near_cluster(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def answer(body: dict[str, Any], _number: int) -> Answer:
        if body["response_format"]["type"] != "json_object":
            return error(422, "response_format: Input should be 'text' or 'json_object'")
        assert body["response_format"]["schema"]["additionalProperties"] is False
        name = next(iter(body["response_format"]["schema"]["properties"]))
        return completion(json.dumps({name: True if name == "verdict" else 2, "explanation": "so"}))

    with serving(answer) as server:
        judge = dialoom.Model("openai/small", api_base=server.url)
        plan = told(release, models={"judge": judge}, options={"limit": 1}, concurrency=1, workers=workers)
        run = dialoom.play("personalens", path=tmp_path / "run.db", **plan)
        refused = [body for body in server.requests if body["response_format"]["type"] == "json_schema"]
        assert 1 <= len(refused) <= 6, "the judges of a dialogue are asked side by side"
        assert all(each.status == "ok" for episode in run.episodes() for each in episode.outcome.judgements)
        asked = len(server.requests)
        run.judge(judge, name="again")
        assert all(body["response_format"]["type"] == "json_object" for body in server.requests[asked:])
        assert len(server.requests) > asked
