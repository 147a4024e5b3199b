"""A call that fails does not cut off the calls beside it: they were sent, and may have to be paid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import dialoom
from dialoom.prompts import ChatMessage
from tests.runs.workers.near import near_cluster


@pytest.mark.parametrize("workers", [None, 1])
def test_what_is_asked_at_the_same_time_is_in_the_books(
    workers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All judges but the first answer after it has failed, and are not asked again."""
    near_cluster(monkeypatch)
    asked: list[str] = []

    async def judge(messages: Sequence[ChatMessage]) -> str:
        asked.append(messages[-1]["content"])
        if len(asked) == 1:
            raise ValueError("no verdict")
        for _ in range(50):
            await asyncio.sleep(0)
        return json.dumps({"score": 3, "verdict": True, "explanation": "so it is"})

    models = {"judge": judge}
    options = {"users": "1", "settings": ("base",), "limit": 1}
    run = dialoom.play("personalens", path=tmp_path / "run.db", options=options, models=models, workers=workers)
    status = run.status()
    assert (status.done, status.failed, status.usage.unanswered) == (0, 1, 0)
    assert len(asked) == 6
    run = dialoom.retry(run.path, models=models, workers=workers)
    assert (run.status().done, len(asked)) == (1, 6 + 1)
