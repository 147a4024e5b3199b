"""Reports and exports of a run that is being played: all their figures are of one moment."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import dialoom


@pytest.fixture
def begun(tmp_path: Path) -> dialoom.Run:
    """Return a run with one of six conversations finished."""
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 6})
    return dialoom.retry(run.path, scenarios=[1])


def finish(run: dialoom.Run) -> None:
    """Play the rest of a run, unless it is finished."""
    if run.status().pending:
        dialoom.resume(run.path)


def test_export_has_the_rows_of_the_moment_at_which_it_began(begun: dialoom.Run) -> None:
    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            finish(begun)
            return super().write(text)

    begun.export("dialogues", target := Slow())
    assert begun.status().done == 6
    assert len(target.getvalue().splitlines()) == 1


def test_figures_of_a_report_are_of_one_moment(begun: dialoom.Run) -> None:
    before = str(begun.report())
    found = dialoom.report(begun, on_progress=lambda _count: finish(begun))
    assert begun.status().done == 6
    assert str(found) == before
