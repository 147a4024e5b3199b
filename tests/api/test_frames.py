"""A run as tables of pandas, one kind of row each."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

import dialoom

from .counting import counting, speaker
from .players import Messages, judge, told

IDENTITY = ["number", "id"]
FACETS = ["user", "task", "domains", "setting", "kind"]


@pytest.fixture
def run(release: Path, tmp_path: Path) -> dialoom.Run:
    """Six dialogues; one person's assistant fails, and one metric's judge cannot be read."""

    async def assistant(messages: Messages) -> str:
        if "user8" in str(messages) or "Goan" in str(messages):
            raise ValueError("no table is free")
        return "With pleasure."

    async def unreadable(messages: Messages) -> str:
        return "Who can say?" if "follow from what came before" in str(messages) else await judge(messages)

    models = {"assistant": assistant, "judge": unreadable}
    return dialoom.play("personalens", path=tmp_path / "run.db", **told(release, models=models))


def test_episodes(run: dialoom.Run) -> None:
    """A row per finished scenario: what it is, how it ended, and its mean scores."""
    frame = run.frame()
    own = ["state", "ended_by", "error", "branch", "lines", "offline", "faults"]
    assert list(frame.columns[:14]) == [*IDENTITY, *own, *FACETS]
    assert frame["offline"].isna().all(), "functions played"
    assert list(frame["number"]) == list(range(1, 7)) and list(frame["id"]) == [each.id for each in run.episodes()]
    assert frame["lines"].dtype.kind == "i"
    done = frame[frame["state"] == "done"]
    assert len(done) == run.status().done and set(done["ended_by"]) == {"user_terminated"}
    assert list(done["lines"]) == [6] * len(done)
    assert set(done["personalization.assistant"]) == {3.0} and set(done["task_completion.assistant"]) == {1.0}
    assert frame["personalization.assistant"].dtype.kind == "f"
    assert "coherence.assistant" not in frame.columns, "a score that could not be had is no number"


def test_lines(run: dialoom.Run) -> None:
    """A row per line, in order."""
    frame = run.frame("lines")
    assert list(frame.columns) == [*IDENTITY, "line", "role", "content"]
    said = [(e.id, line.role, line.content) for e in run.episodes() for line in e.outcome.messages]
    assert list(frame[["id", "role", "content"]].itertuples(index=False, name=None)) == said
    assert list(frame[frame["number"] == 1]["line"]) == list(range(6))


def test_judgements(run: dialoom.Run) -> None:
    """A row per judge's word; the score is a number or missing."""
    frame = run.frame("judgements")
    assert list(frame.columns[: 2 + len(FACETS)]) == [*IDENTITY, *FACETS]
    assert {"metric", "target", "turn", "score", "status", "explanation"} <= set(frame.columns)
    assert frame["score"].dtype.kind == "f"
    unparsed = frame[frame["status"] == "unparsed"]
    assert set(unparsed["metric"]) == {"coherence"} and unparsed["score"].isna().all()
    assert len(frame) == 6 * run.status().done
    run.judge("offline/generic", name="second")
    second = run.frame("judgements", judging="second")
    assert len(second) == len(frame) and set(second["status"]) == {"ok"}
    assert set(second["offline"]) == {"judge"}
    assert not math.isnan(run.frame(judging="second")["coherence.assistant"].mean())
    with pytest.raises(dialoom.DialoomError, match="no judgements named 'third'; there are run, second"):
        run.frame(judging="third")


def test_calls(run: dialoom.Run) -> None:
    """A row per call; what is not known of it is missing, not zero."""
    frame = run.frame("calls")
    assert len(frame) == run.status().usage.calls
    assert set(frame["role"]) == {"user", "assistant", "judge"}
    assert frame["cost"].isna().all() and frame["input_tokens"].isna().all()
    assert frame["latency"].dtype.kind == "f" and (frame["latency"] >= 0).all()
    assert frame["attempts"].dtype.kind == "i" and frame["step"].dtype.kind == "i"


@pytest.mark.parametrize("kind", ["episodes", "lines", "judgements", "calls"])
def test_a_run_of_which_nothing_has_come_yet(kind: str, release: Path, tmp_path: Path) -> None:
    """Gives a frame without rows that has the columns that every run's has."""
    empty = dialoom.plan("personalens", path=tmp_path / "empty.db", **told(release))
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **told(release, options={"limit": 1}))
    frames = [run.frame(kind) for run in (empty, whole)]  # type: ignore[arg-type]
    assert len(frames[0]) == 0 < len(frames[1])
    assert set(frames[0].columns) <= set(frames[1].columns) and len(frames[0].columns) > 4


def test_a_recipe_that_is_not_judged(tmp_path: Path) -> None:
    """Has its lines and no judgements; a recipe that is in no file needs not be given to read its rows."""
    dialoom.play(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker})
    run = dialoom.open_run(tmp_path / "run.db")
    frame = run.frame()
    assert list(frame["number"]) == [1, 2, 3]
    assert list(frame["facet.number"]) == [0, 1, 2], "a recipe's facet of a name that is taken"
    assert list(run.frame("lines")["content"]) == ["1", "2", "2", "3", "3", "4"]
    assert len(run.frame("judgements")) == 0


def test_what_cannot_be_had(run: dialoom.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that there is not, and libraries that are not installed."""
    with pytest.raises(
        dialoom.DialoomError, match="kind 'turns': there are episodes, lines, judgements, faults, calls"
    ) as error:
        run.frame("turns")  # type: ignore[arg-type]
    assert error.value.setting == "kind"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dialoom.DialoomError, match=r"pandas is not installed: pip install 'dialoom\[frames\]'"):
        run.frame()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(dialoom.DialoomError, match=r"datasets is not installed: pip install 'dialoom\[datasets\]'"):
        run.dataset()
