"""What becomes of PersonaLens dialogues whose players do not do as they should, or as usual."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom
from dialoom.prompts import PromptLibrary
from tests.invented import write_release

from .players import Messages, assistant, judge, told, user


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A release of one person with two tasks."""
    return write_release(tmp_path / "release")


def test_turn_scores_judge_each_reply(one: Path, tmp_path: Path) -> None:
    """One more personalization judgement per assistant reply, shown by turn."""
    settings = told(one, options={"turn_scores": True, "tasks": "single"})
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    (episode,) = run.episodes()
    assert [each.turn for each in episode.outcome.judgements if each.turn is not None] == [1, 2, 3]
    assert "P turn 3" in str(run.report())


def test_without_judging_no_judge_is_needed(one: Path, tmp_path: Path) -> None:
    """None is to be named; judgements can be made later."""
    settings = told(one, options={"judge": False})
    settings["models"] = {"user": user, "assistant": assistant}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    assert [len(episode.outcome.judgements) for episode in run.episodes()] == [0, 0]
    run = run.judge(judge)
    assert [len(episode.outcome.judgements) for episode in run.episodes()] == [6, 6]


def test_an_unparsable_judgement_is_asked_again_and_then_kept_as_unparsed(one: Path, tmp_path: Path) -> None:
    """Never a number, never dropped, and counted in the report."""

    async def stubborn(_: Messages) -> str:
        return '{"score": "five"}'

    settings = told(one, models={"judge": stubborn}, options={"tasks": "single"})
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    (episode,) = run.episodes()
    assert [(each.score, each.status) for each in episode.outcome.judgements] == [(None, "unparsed")] * 6
    frame = run.frame("calls")
    assert list(frame["role"]).count("judge") == 12
    report = str(run.report())
    assert "unparsed" in report
    assert "Scores by setting" not in report, "no score was had, so none is shown"


def test_the_turn_limit_ends_a_dialogue(one: Path, tmp_path: Path) -> None:
    """20 turns for a task of one domain, 30 for several; the last word is the user's."""

    async def endless(messages: Messages) -> str:
        return f"More, please ({len(messages)})."

    settings = told(one, options={"judge": False})
    settings["models"] = {"user": endless, "assistant": assistant}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    outcomes = [episode.outcome for episode in run.episodes()]
    assert [(each.ended_by, len(each.messages)) for each in outcomes] == [("turn_limit", 41), ("turn_limit", 61)]
    assert outcomes[0].messages[-1].role == "user"


def test_an_override_with_an_unknown_variable_is_refused(one: Path, tmp_path: Path) -> None:
    """And one that is right is used, and its hash recorded."""
    ours = PromptLibrary.load(["personalens/assistant"])["personalens/assistant"]
    mine = tmp_path / "mine" / "assistant.md"
    mine.parent.mkdir()
    mine.write_text(ours.source + "=== user ===\nMind the {{ budget }}.\n")
    settings = told(one, prompts=mine.parent)
    with pytest.raises(dialoom.DialoomError, match="variable 'budget'"):
        dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    mine.write_text(ours.source + "=== user ===\nMind the budget.\n")
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    episode = next(iter(run.episodes()))
    assert episode.outcome.messages[1].content == "Reply to: Mind the budget."
    run.export("dialogues", tmp_path / "out.jsonl")
    assert ours.hash not in (tmp_path / "out.jsonl").read_text()
