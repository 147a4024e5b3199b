"""A scenario's outcome: main's until a branch is promoted, and then the branch's; main can be restored."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dialoom import DialoomError, Stepper, open_run
from dialoom.roles import UnparsedReplyError
from tests.conftest import Command, MadeOnce, read_jsonl
from tests.invented import write_release
from tests.runs.stepping.played import RECIPES, UNBOUNDED, call_counts, dialogue, play, stepping


def exported(dialoom: Command, path: Path, *options: object) -> bytes:
    """Return the bytes of an export."""
    dialoom("export", path.name, *options, "-o", "out.jsonl")
    return (path.parent / "out.jsonl").read_bytes()


async def another_ending(stepper: Stepper) -> None:
    """Play a branch with a person's reply, another model and an edit to its end."""
    await stepper.goto(3)
    await stepper.say("user", "By the river, please.")
    await stepper.replace_model("assistant", "python:others:brief")
    await stepper.step()
    await stepper.edit("messages[0].content", "Good morning.")
    await stepper.run()


def others(folder: Path) -> None:
    """Write a module with another assistant and another judge."""
    (folder / "others.py").write_text(
        """
from players import judge as fair

async def brief(messages):
    return "As you like."

async def strict(messages):
    return (await fair(messages)).replace("3", "1").replace("true", "false")
"""
    )


def test_promoted_branch_is_the_outcome_and_main_can_be_restored(
    dialoom: Command, made_once: MadeOnce, tmp_path: Path
) -> None:
    path = dialogue(made_once)
    others(tmp_path)
    before, detailed = exported(dialoom, path), dialoom("show", "run.db", 1, "--json").stdout

    async def promote(stepper: Stepper) -> Any:
        await another_ending(stepper)
        outcome = await stepper.promote()
        assert stepper.outcome_branch == stepper.branch == "b1"
        return outcome

    outcome = stepping(path, promote)
    exported(dialoom, path)
    [line] = read_jsonl(tmp_path / "out.jsonl")
    assert line["branch"] == {
        "name": "b1",
        "models": {"assistant": "python:others:brief"},
        "replaced": {"assistant": "python:players:assistant"},
        "edits": 1,
        "said": 1,
        "prompts": 0,
    }
    changed = "assistant played by python:others:brief instead of python:players:assistant, 1 edited"
    assert changed in dialoom("show", "run.db", 1).stdout
    assert [each["content"] for each in line["messages"]] == [each.content for each in outcome.messages]
    assert line["messages"][0]["content"] == "Good morning."
    assert [each["score"] for each in line["judgements"]] == [each.score for each in outcome.judgements]
    rows = call_counts(path)
    dialoom("resume", "run.db")
    assert call_counts(path) == rows, "nothing is left to play"

    async def back(stepper: Stepper) -> None:
        assert stepper.branch == "main"
        await stepper.promote()

    stepping(path, back)
    assert exported(dialoom, path) == before
    assert dialoom("show", "run.db", 1, "--json").stdout == detailed


def test_promoted_branch_names_all_its_models(dialoom: Command, made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    others(path.parent)

    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        for model in ("python:others:brief", "offline/attentive"):
            await stepper.replace_model("assistant", model)
            await stepper.run([stepper.condition("user")])
        if not (await stepper.here()).is_end:
            await stepper.run()
        await stepper.promote()

    stepping(path, act)
    exported(dialoom, path)
    [line] = read_jsonl(path.parent / "out.jsonl")
    assert line["models"]["assistant"] == "python:others:brief, offline/attentive"
    dialoom("export", "run.db", "--format", "personalens", "-o", "release-files")
    [file] = (path.parent / "release-files").rglob("*_dialogue.json")
    assert json.loads(file.read_text())["assistant_model"] == "python:others:brief, offline/attentive"


def test_judges_of_a_later_set_are_named_in_the_export_of_a_branch(dialoom: Command, made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    others(path.parent)

    async def act(stepper: Stepper) -> None:
        await stepper.goto_where(stepper.condition("judge"))
        await stepper.replace_model("judge", "python:others:strict")
        await stepper.run()
        await stepper.promote()

    stepping(path, act)
    dialoom("judge", "run.db", "--name", "again", "--model", "judge=offline/attentive")
    for judging, judge in (("run", "python:others:strict"), ("again", "offline/attentive")):
        exported(dialoom, path, "--judging", judging)
        [line] = read_jsonl(path.parent / "out.jsonl")
        assert line["models"]["judge"] == judge


@pytest.mark.parametrize("recipe", RECIPES)
def test_promoting_branches_and_then_main_restores_the_export(
    dialoom: Command, made_once: MadeOnce, recipe: str
) -> None:
    path = play(made_once, recipe)
    before = exported(dialoom, path)

    async def promote(stepper: Stepper) -> None:
        await stepper.rewind(3)
        await stepper.resample()
        await stepper.run()
        await stepper.promote()
        await stepper.rewind(2)
        await stepper.resample()
        await stepper.run()
        await stepper.promote()
        await (await stepper.switch("main")).promote()

    stepping(path, promote)
    assert exported(dialoom, path) == before


def test_tokens_are_those_of_the_branchs_path(made_once: MadeOnce) -> None:
    path = play(made_once, "aloe-eval")

    async def tokens(stepper: Stepper) -> dict[str, int]:
        summed: dict[str, int] = {}
        for stop in await stepper.stops():
            for call in stop.calls:
                summed[call.role] = summed.get(call.role, 0) + (call.output_tokens or 0)
        return summed

    def reported() -> Any:
        with open_run(path) as run:
            [episode] = run.episodes()
        return episode.output_tokens

    async def promote(stepper: Stepper) -> dict[str, int]:
        await stepper.goto_where(stepper.condition("user"))
        await stepper.say("user", "Well, tell me about harbour seals, and at length, as I know nothing of them.")
        await stepper.run()
        await stepper.promote()
        return await tokens(stepper)

    assert reported() == stepping(path, tokens)
    of_branch = stepping(path, promote)
    assert reported() == of_branch
    assert of_branch != stepping(path, tokens)


def test_calls_that_two_branches_share_do_not_count_for_the_outcome(made_once: MadeOnce) -> None:
    path = play(made_once, "aloe-eval")

    def reported() -> Any:
        with open_run(path) as run:
            [episode] = run.episodes()
        return episode.output_tokens

    async def branch(stepper: Stepper, name: str) -> None:
        own = await stepper.fork(name)
        await own.goto_where(own.condition("user"))
        await own.say("user", "Well, tell me about harbour seals.")
        await own.step()

    before = reported()
    stepping(path, lambda stepper: branch(stepper, "one"))
    made = call_counts(path)
    stepping(path, lambda stepper: branch(stepper, "two"))
    assert call_counts(path).replays == made.replays + 1
    assert reported() == before


def test_other_judges_verdicts_are_dropped_and_requested_again(
    dialoom: Command, made_once: MadeOnce, tmp_path: Path
) -> None:
    path = dialogue(made_once)
    others(tmp_path)
    judge = ["judge", "run.db", "--model", "judge=python:others:strict", "--name", "strict"]
    dialoom(*judge)
    strict = exported(dialoom, path, "--judging", "strict")
    rows = call_counts(path).rows

    async def promote(stepper: Stepper) -> None:
        await another_ending(stepper)
        await stepper.promote()

    stepping(path, promote)
    tried = call_counts(path).rows
    assert tried > rows
    dialoom(*judge)
    assert call_counts(path).rows == tried + 6, "the changed dialogue is judged again"
    exported(dialoom, path, "--judging", "strict")
    [line] = read_jsonl(tmp_path / "out.jsonl")
    assert line["messages"][0]["content"] == "Good morning."
    assert {each["score"] for each in line["judgements"]} == {1, False}

    stepping(path, lambda stepper: stepper.promote())
    dialoom(*judge)
    assert call_counts(path).rows == tried + 6
    assert exported(dialoom, path, "--judging", "strict") == strict


def test_promoting_the_current_outcome_keeps_other_judgements(
    dialoom: Command, made_once: MadeOnce, tmp_path: Path
) -> None:
    path = dialogue(made_once)
    others(tmp_path)
    dialoom("judge", "run.db", "--model", "judge=python:others:strict", "--name", "strict")
    before = exported(dialoom, path, "--judging", "strict")
    stepping(path, lambda stepper: stepper.promote())
    assert exported(dialoom, path, "--judging", "strict") == before


def test_unfinished_branch_is_not_promoted(dialoom: Command, made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    before = exported(dialoom, path)

    async def promote(stepper: Stepper) -> None:
        end = (await stepper.here()).number
        there = f"main is not at its end, but at {end - 1}; go to {end} or play it to its end first"
        await stepper.rewind(1)
        with pytest.raises(DialoomError, match=there):
            await stepper.promote()
        branch = await stepper.fork("mine")
        with pytest.raises(
            DialoomError, match=r"mine is not at its end, so it has no outcome yet; play it to its end first"
        ):
            await branch.promote()

    stepping(path, promote)
    assert exported(dialoom, path) == before


def test_failed_scenario_is_finished_in_a_branch(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        """
from pathlib import Path
from players import judge as fair

async def judge(messages):
    if "Was this goal reached" in messages[-1]["content"] and not Path("fixed").exists():
        raise ValueError("not yet")
    return await fair(messages)
"""
    )
    path = dialogue_failing(dialoom, tmp_path, [*players[:4], "--model", "judge=python:failing:judge"])
    rows = call_counts(path).rows

    async def go_on(stepper: Stepper) -> None:
        assert (stepper.branch, len((await stepper.here()).next)) == ("main", 6)
        with pytest.raises(Exception, match="not yet"):
            await stepper.step()
        assert stepper.branch == "b1"
        stop = await stepper.here()
        assert len(stop.next) == 6
        assert call_counts(path).rows == rows + 1, "only the failed call is repeated"
        await stepper.resample()
        await stepper.replace_model("judge", "python:players:judge")
        end = await stepper.step()
        assert end.is_end
        assert {call.sample for call in end.calls} == {1}
        assert len(end.calls) == 6, "judges that had answered are called again, too"
        assert len((await stepper.promote()).judgements) == 6

    stepping(path, go_on)
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    assert status["scenarios"] == {"total": 1, "done": 1, "failed": 0, "pending": 0}
    exported(dialoom, path)
    [line] = read_jsonl(tmp_path / "out.jsonl")
    assert line["branch"]["name"] == "b1"
    assert "error" not in line or line["error"] is None
    dialoom("retry", "run.db", code=0)
    assert exported(dialoom, path).count(b'"b1"') == 1

    async def cannot(stepper: Stepper) -> None:
        with pytest.raises(DialoomError, match="main is not at its end"):
            await stepper.promote()

    stepping(path, cannot)


def dialogue_failing(dialoom: Command, folder: Path, cast: list[str]) -> Path:
    """Return the path of a run whose only dialogue fails."""
    write_release(folder / "release")
    dialoom("run", "personalens", "--profiles", "release", "--limit", 1, *cast, "-o", "run.db", code=1)
    return folder / "run.db"


def test_retried_scenario_has_no_earlier_branches(dialoom: Command, made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    others(tmp_path)

    async def promote(stepper: Stepper) -> None:
        await another_ending(stepper)
        await stepper.promote()

    stepping(path, promote)
    dialoom("retry", "run.db", "--scenario", 1)
    anew = exported(dialoom, path)
    assert b'"b1"' not in anew

    async def again(stepper: Stepper) -> None:
        assert [each.name for each in stepper.branches()] == ["main"]
        rows = call_counts(path).rows
        main = await stepper.stops()
        await stepper.goto(1)
        branch = await stepper.fork("b1")
        assert (await branch.run()).state == main[-1].state
        assert call_counts(path).rows == rows
        await branch.promote()
        await (await stepper.switch("main")).promote()

    stepping(path, again)
    assert exported(dialoom, path) == anew


def test_promoted_branch_finishes_an_unfinished_scenario(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    plan = ["run", "personalens", "--profiles", "release", "--limit", 1, *players, "--max-calls", 3, "-o", "run.db"]
    dialoom(*plan, code=3)

    async def promote(stepper: Stepper) -> None:
        assert stepper.branch == "main"
        branch = await stepper.fork("mine")
        await branch.say("assistant", "I see.")
        await branch.run()
        await branch.promote()
        await stepper.step()
        assert stepper.branch == "b1"
        with pytest.raises(DialoomError, match="main is not at its end"):
            await (await stepper.switch("main")).promote()

    stepping(tmp_path / "run.db", promote, budget=UNBOUNDED)
    rows = call_counts(tmp_path / "run.db")
    dialoom("resume", "run.db", "--max-calls", "none")
    assert call_counts(tmp_path / "run.db") == rows
    exported(dialoom, tmp_path / "run.db")
    [line] = read_jsonl(tmp_path / "out.jsonl")
    assert (line["branch"]["name"], line["branch"]["said"], line["messages"][3]["content"]) == ("mine", 1, "I see.")


def test_retry_uses_no_replies_of_a_branch(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    (tmp_path / "terse.py").write_text(
        """
asked = 0

async def assistant(messages):
    global asked
    asked += 1
    return "" if asked <= 4 else "At last."
"""
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:terse:assistant"]
    path = dialogue_failing(dialoom, tmp_path, cast)

    async def act(stepper: Stepper) -> int:
        sample = await stepper.resample()
        with pytest.raises(UnparsedReplyError):
            await stepper.step()
        return sample

    assert stepping(path, act) == 1
    dialoom("retry", "run.db")
    assert [line["ended_by"] for line in _lines(dialoom, path)] == ["user_terminated"]
    with closing(sqlite3.connect(path)) as connection:
        samples = "SELECT DISTINCT sample FROM calls WHERE role = 'assistant' ORDER BY id"
        assert [row[0] for row in connection.execute(samples)] == [0, 1, 2]

    async def back(stepper: Stepper) -> None:
        await stepper.rewind(1)
        await stepper.resample()
        await stepper.run()
        await stepper.promote()
        await (await stepper.switch("main")).promote()

    tokens = _counted_calls(path)
    before = exported(dialoom, path)
    stepping(path, back)
    assert (_counted_calls(path), exported(dialoom, path)) == (tokens, before)


def _lines(dialoom: Command, path: Path) -> list[dict[str, Any]]:
    exported(dialoom, path)
    return read_jsonl(path.parent / "out.jsonl")


def _counted_calls(path: Path) -> list[Any]:
    """Return the ids of the calls that count for the outcome's figures."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT id FROM calls WHERE branch IS NULL AND reply IS NOT NULL ORDER BY id"
        ).fetchall()
