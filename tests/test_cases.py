"""Regression test of saved conversations: those in `tests/cases` still take the same path."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialoom.runs.stepping import read_case, replay

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
async def test_saved_case_takes_the_same_path(path: Path) -> None:
    case = read_case(path)
    replayed = await replay(case)
    assert list(replayed.departures) == []
    assert replayed.steps == len(case.steps)
    assert replayed.calls == sum(len(step.calls) for step in case.steps)


def test_cases_contain_changes_by_a_person() -> None:
    cases = {path.stem: read_case(path) for path in CASES}
    talk, tree = cases["personalens-corrected"], cases["aloe-by-hand"]
    assert [step.edit is not None for step in talk.steps].count(True) == 1
    assert "It is set. Anything else?" in [call.reply for step in talk.steps for call in step.calls]
    assert "Your alarm is set for 5:00 AM. Anything else?" in [line.content for line in talk.outcome.messages]
    assert tree.recipe == "aloe"
    assert tree.is_end
