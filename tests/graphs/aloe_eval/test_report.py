"""The report of a run of which a part was judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialoom


@pytest.mark.parametrize(("sample", "counts"), [(1, [2, 0, 0, 2, 2]), (2, [4, 0, 0, 0, 2])])
def test_what_was_not_sampled_did_not_fail(sample: int, counts: list[int], tmp_path: Path) -> None:
    """Three dialogues of two rounds, of which one failed in its first and so many are judged."""
    asked: list[str] = []

    async def assistant(messages: list[Any]) -> str:
        asked.append(messages[-1]["content"])
        if len(asked) == 1:
            raise ValueError("no reply")
        return "I see."

    given: Any = {"options": {"limit": 3, "rounds": 2}, "models": {"assistant": assistant}, "concurrency": 1}
    run = dialoom.play("aloe-eval", path=tmp_path / "run.db", **given)
    run = dialoom.judge(run.path, "offline/generic", name="sampled", sample=sample)
    (table,) = [each for each in run.report(judging="sampled").tables if each.name == "judgements"]
    assert table.columns[1:] == ["ok", "unparsed", "error", "not sampled", "not reached"]
    assert table.rows[0][1:] == counts
