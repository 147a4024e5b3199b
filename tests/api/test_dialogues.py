"""Played dialogues, their data frames, and incomplete replies."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Model, play
from dialoom.prompts import PromptLibrary
from dialoom.runs.store import ScenarioQuery
from tests.conftest import Command
from tests.invented import write_release
from tests.server import Answer, completion, ended, serving

from .counting import counting, speaker
from .players import Messages, assistant, judge, run_settings, user


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """Return a release of one person with two tasks."""
    return write_release(tmp_path / "release")


def test_turn_scores_judge_each_reply(one: Path, tmp_path: Path) -> None:
    settings = run_settings(one, options={"turn_scores": True, "tasks": "single"})
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    (episode,) = run.episodes()
    assert [each.turn for each in episode.outcome.judgements if each.turn is not None] == [1, 2, 3]
    report = run.report()
    assert "P turn 3" in str(report)
    several = "A multi-domain dialogue counts in each of its domains."
    assert all(several in report[name].notes for name in ("domains", "turns-by-domain"))


def test_scores_of_turns_do_not_count_in_the_score_of_a_conversation(one: Path, tmp_path: Path) -> None:
    async def growing(messages: Messages) -> str:
        replies = str(messages).count("<assistant>")
        return "Who knows?" if replies > 2 and is_silent else json.dumps({"score": replies, "explanation": "x"})

    settings = run_settings(one, models={"judge": growing}, options={"turn_scores": True, "tasks": "single"})
    is_silent = False
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    (episode,) = run.episodes()
    found = [each.score for each in episode.outcome.judgements if each.metric == "personalization"]
    assert found == [3, 1, 2, 3]
    assert list(run.frame()["personalization.assistant"]) == [3.0]
    assert run.scenarios().rows[0].scores["personalization"] == 3.0
    run.export("dialogues", tmp_path / "out.jsonl", include=["scores"])
    assert json.loads((tmp_path / "out.jsonl").read_text())["scores"]["personalization.assistant"] == 3.0
    is_silent = True
    run = dialoom.play("personalens", path=tmp_path / "silent.db", **settings)
    (episode,) = run.episodes()
    found = [each.score for each in episode.outcome.judgements if each.metric == "personalization"]
    assert found == [None, 1, 2, None]
    assert not list(run.episodes(where="personalization >= 1"))
    assert not run.scenarios(ScenarioQuery(at_least={"personalization": 1})).rows
    assert "personalization" not in run.scenarios().rows[0].scores
    assert "personalization.assistant" not in run.frame().columns


def test_playing_without_judging_needs_no_judge(one: Path, tmp_path: Path) -> None:
    settings = run_settings(one, options={"judge": False})
    settings["models"] = {"user": user, "assistant": assistant}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    assert [len(episode.outcome.judgements) for episode in run.episodes()] == [0, 0]
    run = run.judge(judge)
    assert [len(episode.outcome.judgements) for episode in run.episodes()] == [6, 6]


def test_unparsable_judgement_is_retried_then_stored_as_unparsed(one: Path, tmp_path: Path) -> None:
    async def stubborn(_: Messages) -> str:
        return '{"score": "five"}'

    settings = run_settings(one, models={"judge": stubborn}, options={"tasks": "single"})
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    (episode,) = run.episodes()
    assert [(each.score, each.status) for each in episode.outcome.judgements] == [(None, "unparsed")] * 6
    frame = run.frame("calls")
    assert list(frame["role"]).count("judge") == 12
    report = str(run.report())
    assert "| base | single-domain | 1 | – | – | – | – | – | – |" in report
    assert "they are excluded from all means. In the scenarios of this table: Coh. assistant 1," in report


def test_turn_limit_ends_a_dialogue(one: Path, tmp_path: Path) -> None:
    """The limit is 20 turns for a task of one domain and 30 for several; the user has the last word."""

    async def endless(messages: Messages) -> str:
        return f"More, please ({len(messages)})."

    settings = run_settings(one, options={"judge": False})
    settings["models"] = {"user": endless, "assistant": assistant}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    outcomes = [episode.outcome for episode in run.episodes()]
    assert [(each.ended_by, len(each.messages)) for each in outcomes] == [("turn_limit", 41), ("turn_limit", 61)]
    assert outcomes[0].messages[-1].role == "user"


def test_override_with_an_unknown_variable_is_refused(one: Path, tmp_path: Path) -> None:
    ours = PromptLibrary.load(["personalens/assistant"])["personalens/assistant"]
    mine = tmp_path / "mine" / "assistant.md"
    mine.parent.mkdir()
    mine.write_text(ours.source + "=== user ===\nMind the {{ budget }}.\n")
    settings = run_settings(one, prompts=mine.parent)
    with pytest.raises(dialoom.DialoomError, match="variable 'budget'"):
        dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    mine.write_text(ours.source + "=== user ===\nMind the budget.\n")
    run = dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    episode = next(iter(run.episodes()))
    assert episode.outcome.messages[1].content == "Reply to: Mind the budget."
    run.export("dialogues", tmp_path / "out.jsonl")
    assert ours.hash not in (tmp_path / "out.jsonl").read_text()


def test_truncated_reply_is_shown_counted_and_exported(
    dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    answers: dict[int, Answer] = {
        1: ended("I will set it for", "length"),
        2: ended("", "stop", reasoning_content="An alarm, hm."),
        3: completion("It is set."),
        4: ended(None, "stop", refusal="I will not say that."),
    }
    with serving(lambda _body, number: answers.get(number, completion("That is done."))) as server:
        _played(tmp_path / "run.db", server.url)
    shown = dialoom("show", "run.db", "1").stdout
    assert "I will set it for\n(cut off at the token limit)" in shown
    assert "I will not say that.\n(refused)" in shown
    counts = "1 cut off, 1 refused, 1 reasoning without an answer"
    assert f"replies of assistant: {counts}" in dialoom("status", "run.db").stdout
    counted = json.loads(dialoom("status", "run.db", "--json").stdout)["roles"]["assistant"]["broken_off"]
    assert counted == {"cut off": 1, "refused": 1, "reasoning without an answer": 1}
    assert f"Incomplete replies: assistant {counts}" in " ".join(dialoom("report", "run.db").stdout.split())
    dialoom("export", "run.db", "-o", "lines.jsonl")
    lines: list[dict[str, Any]] = json.loads((tmp_path / "lines.jsonl").read_text().splitlines()[0])["messages"]
    assert "cut_line" in dialoom("show", "run.db", "1").stdout, "a truncated line is a fault of its speaker"
    reasons = [line.get("finish_reason") for line in lines if line["role"] == "assistant"]
    assert reasons[:3] == ["length", None, "refusal"]
    dialoom("step", "run.db", 1, input="save case.json\n")
    assert "case.json: the same path" in dialoom("replay", "case.json").stdout


@pytest.mark.parametrize(
    ("recipe", "role", "options", "faults"),
    [
        ("aloe", "preferred", {"limit": 1, "rounds": 2}, [("preferred", "", None), ("preferred", "r", None)]),
        ("prefeval", "assistant", {"limit": 1, "turns": [1]}, [("assistant", "", 1), ("assistant", "", 4)]),
    ],
)
def test_truncated_line_outside_the_conversation_is_a_fault_of_its_speaker(
    recipe: str, role: str, options: dict[str, Any], faults: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving(lambda _body, number: ended(f"Well, it is like number {number}.", "length")) as server:
        models = {role: Model("openai/small", api_base=server.url)}
        run = play(recipe, path=tmp_path / "run.db", models=models, options=options, seed=3)
    assert [(fault.role, fault.where, fault.message) for _, fault in run.faults() if fault.kind == "cut_line"] == faults


def _played(path: Path, url: str) -> None:
    play(
        "personalens",
        path=path,
        models={"assistant": Model("openai/small", api_base=url)},
        options={"limit": 1},
        seed=3,
    )


IDENTITY = ["number", "id"]
FACETS = ["user", "task", "domains", "setting", "kind"]


@pytest.fixture
def run(release: Path, tmp_path: Path) -> dialoom.Run:
    """Return a run of six dialogues; one person's assistant fails, and one metric is unparsed."""

    async def assistant(messages: Messages) -> str:
        if "user8" in str(messages) or "Goan" in str(messages):
            raise ValueError("no table is free")
        return "With pleasure."

    async def unreadable(messages: Messages) -> str:
        return "Who can say?" if "How coherent are" in str(messages) else await judge(messages)

    models = {"assistant": assistant, "judge": unreadable}
    return dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, models=models))


def test_episodes_frame_has_a_row_per_finished_scenario(run: dialoom.Run) -> None:
    frame = run.frame()
    own = ["state", "ended_by", "error", "branch", "lines", "offline", "faults"]
    assert list(frame.columns[:14]) == [*IDENTITY, *own, *FACETS]
    assert frame["offline"].isna().all(), "all players are functions"
    assert list(frame["number"]) == list(range(1, 7)) and list(frame["id"]) == [each.id for each in run.episodes()]
    assert frame["lines"].dtype.kind == "i"
    done = frame[frame["state"] == "done"]
    assert len(done) == run.status().done and set(done["ended_by"]) == {"user_terminated"}
    assert list(done["lines"]) == [6] * len(done)
    assert set(done["personalization.assistant"]) == {3.0} and set(done["task_completion.assistant"]) == {1.0}
    assert frame["personalization.assistant"].dtype.kind == "f"
    assert "coherence.assistant" not in frame.columns, "an unparsed score is not a number"


@pytest.mark.parametrize("kind", ["episodes", "lines", "judgements", "calls"])
def test_frame_without_rows_has_the_columns_of_all_rows(run: dialoom.Run, kind: Any) -> None:
    empty = run.frame(kind, where="ended_by == 'nothing'")
    assert not len(empty) and list(empty.columns) == list(run.frame(kind).columns)


def test_lines_frame_has_a_row_per_line(run: dialoom.Run) -> None:
    frame = run.frame("lines")
    assert list(frame.columns) == [*IDENTITY, "line", "role", "content"]
    expected = [(e.id, line.role, line.content) for e in run.episodes() for line in e.outcome.messages]
    assert list(frame[["id", "role", "content"]].itertuples(index=False, name=None)) == expected
    assert list(frame[frame["number"] == 1]["line"]) == list(range(6))


def test_judgements_frame_has_a_row_per_judgement(run: dialoom.Run) -> None:
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


def test_calls_frame_leaves_unknown_values_missing(run: dialoom.Run) -> None:
    frame = run.frame("calls")
    assert len(frame) == run.status().usage.calls
    assert set(frame["role"]) == {"user", "assistant", "judge"}
    assert frame["cost"].isna().all() and frame["input_tokens"].isna().all()
    assert frame["latency"].dtype.kind == "f" and (frame["latency"] >= 0).all()
    assert frame["attempts"].dtype.kind == "i" and frame["step"].dtype.kind == "i"


@pytest.mark.parametrize("kind", ["episodes", "lines", "judgements", "calls"])
def test_frames_of_an_empty_run_have_all_columns(kind: str, release: Path, tmp_path: Path) -> None:
    empty = dialoom.plan("personalens", path=tmp_path / "empty.db", **run_settings(release))
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **run_settings(release, options={"limit": 1}))
    frames = [run.frame(kind) for run in (empty, whole)]  # type: ignore[arg-type]
    assert len(frames[0]) == 0 < len(frames[1])
    assert set(frames[0].columns) <= set(frames[1].columns) and len(frames[0].columns) > 4
    assert not any(asdict(empty.status().usage).values()), "no calls, failures or cost"


def test_frames_of_a_recipe_without_judges(tmp_path: Path) -> None:
    dialoom.play(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker})
    run = dialoom.open_run(tmp_path / "run.db")
    frame = run.frame()
    assert list(frame["number"]) == [1, 2, 3]
    assert list(frame["facet.number"]) == [0, 1, 2], "a facet whose name is taken gets a prefix"
    assert list(run.frame("lines")["content"]) == ["1", "2", "2", "3", "3", "4"]
    assert len(run.frame("judgements")) == 0


def test_unknown_frame_or_missing_library_is_an_error(run: dialoom.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        dialoom.DialoomError, match="kind must be one of episodes, lines, judgements, faults, calls"
    ) as error:
        run.frame("turns")  # type: ignore[arg-type]
    assert error.value.setting == "kind"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dialoom.DialoomError, match=r"pandas is not installed: pip install 'dialoom\[frames\]'"):
        run.frame()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(dialoom.DialoomError, match=r"datasets is not installed: pip install 'dialoom\[datasets\]'"):
        run.dataset()
