"""Steppers: a rewind makes no calls, a change only those that depend on it, and the outcome stays unchanged."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import DialoomError, Stepper
from dialoom.runs.stepping import SteppingError, Stop
from tests.conftest import Command, MadeOnce
from tests.runs.stepping.played import RECIPES, call_counts, called_roles, dialogue, play, shown, shown_stops, stepping


@pytest.mark.parametrize("recipe", ["personalens", "aloe"])
def test_continuing_after_a_rewind_follows_recorded_steps(made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)
    before = call_counts(path)

    async def walk(stepper: Stepper) -> None:
        main = await stepper.stops()
        for stop in main[:-1]:
            await stepper.goto(stop.number)
            assert shown(await stepper.step()) == shown(main[main.index(stop) + 1])
        await stepper.goto(0)
        assert shown(await stepper.run()) == shown(main[-1])
        assert [branch.name for branch in stepper.branches()] == ["main"]

    stepping(path, walk)
    assert call_counts(path) == before


def test_branch_makes_only_calls_that_differ(made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    (tmp_path / "others.py").write_text("async def brief(messages):\n    return 'As you like.'\n")

    async def walk(stepper: Stepper) -> None:
        branch = await stepper.fork("mine")
        await branch.goto(3)
        said = await branch.say("user", "A quiet place, please.")
        answered = await branch.step()
        rows = call_counts(path)
        await branch.goto(said.number)
        assert (await branch.step()).checkpoint == answered.checkpoint
        assert call_counts(path) == rows
        await branch.goto(3)
        assert (await branch.step()).checkpoint != said.checkpoint
        await branch.goto(said.number)
        await branch.replace_model("assistant", "python:others:brief")
        assert (await branch.step()).state["messages"][-1].content == "As you like."
        await branch.goto(said.number)
        await branch.resample()
        assert (await branch.step()).calls[0].sample > 0

    stepping(path, walk)


@pytest.mark.parametrize("recipe", RECIPES)
def test_fork_replays_to_the_same_end_without_a_call(made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)
    rows = call_counts(path).rows

    async def rewind(stepper: Stepper) -> int:
        main = await stepper.stops()
        for number, stop in enumerate(main[: -1 : max(1, len(main) // 8)]):  # a selection in a long run
            await stepper.goto(stop.number)
            there = await stepper.fork(f"f{number}")
            before = call_counts(path).replays
            await there.run()
            assert shown_stops(await there.stops()) == shown_stops(main)
            made = sum(len(each.calls) for each in main[main.index(stop) + 1 :])
            assert call_counts(path).replays == before + made, f"from {stop.number}, {stop.ran}"
        assert shown_stops(await (await stepper.switch("main")).stops()) == shown_stops(main)
        return len(main)

    async def again(stepper: Stepper) -> None:
        main = await stepper.stops()
        branch = await stepper.switch("f1")
        assert shown_stops(await branch.stops()) == shown_stops(main)
        await branch.rewind(2)

    async def on(stepper: Stepper) -> None:
        assert stepper.branch == "f1"
        main = await (await stepper.switch("main")).stops()
        assert shown(await stepper.here())["state"] == main[-3].state
        await stepper.run()
        assert shown_stops(await stepper.stops()) == shown_stops(main)

    length = stepping(path, rewind)
    stepping(path, again)
    stepping(path, on, branch="f1")
    assert length > 5
    assert call_counts(path).rows == rows


def _export(dialoom: Command, path: Path, name: str = "out.jsonl") -> bytes:
    dialoom("export", path.name, "-o", name)
    return (path.parent / name).read_bytes()


def test_second_request_after_reasoning_alone_is_replayed(tmp_path: Path) -> None:
    async def assistant(messages: list[dict[str, str]]) -> str:
        return "Done." if "could not be used" in messages[-1]["content"] else "<think>An alarm, hm.</think>"

    run = dialoom.play("personalens", path=tmp_path / "run.db", models={"assistant": assistant}, options={"limit": 1})
    before = call_counts(run.path).rows

    async def fork() -> Stop:
        async with run.step(1) as stepper:
            await stepper.goto(2)
            return await (await stepper.fork("again")).step()

    stop = asyncio.run(fork())
    assert [(call.ask, call.reply) for call in stop.calls] == [(1, ""), (2, "Done.")]
    assert call_counts(run.path).rows == before


def test_resample_requests_a_new_reply_of_a_call_that_scenarios_share(tmp_path: Path) -> None:
    async def assistant(_messages: list[dict[str, str]]) -> str:
        return f"{word}, gladly."

    word, options = "Old", {"limit": 1}
    run = dialoom.play("prefeval", path=tmp_path / "run.db", models={"assistant": assistant}, options=options)
    word = "New"

    async def walk() -> None:
        async with run.step(1) as stepper:
            await stepper.goto_where(stepper.condition("reply"))
            same = await (await stepper.fork("same")).step()
            assert [(call.reply, call.is_common) for call in same.calls] == [("Old, gladly.", True)]
            await stepper.resample()
            anew = await stepper.step()
            assert [(call.reply, call.is_common) for call in anew.calls] == [("New, gladly.", False)]
            await stepper.rewind()
            assert (await stepper.step()).checkpoint == anew.checkpoint

    asyncio.run(walk())


def test_edit_repeats_only_calls_that_depend_on_it(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    before = call_counts(path)

    async def edit(stepper: Stepper) -> None:
        await stepper.rewind(1)
        stop = await stepper.edit("messages[-1].content", "Something else altogether.")
        assert (stepper.branch, stop.kind, stop.state["messages"][-1].content) == (
            "b1",
            "edit",
            "Something else altogether.",
        )
        assert stop.next == (await (await stepper.switch("main")).stops())[-2].next
        await stepper.run()

    stepping(path, edit)
    assert called_roles(path, before.rows) == ["judge"] * 6
    assert call_counts(path).replays == before.replays


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("messages[0].content", "Other words.", r"cannot be set after it was judged \(task_completion, "),
        ("messages", [], "cannot be set after it was judged"),
        ("judgements[0].score", 77, r"judgements\[0\].score cannot be 77: \w+ is scored from 1 to 5"),
        ("judgements[0].status", "good", r'judgements\[0\].status cannot be "good": Input should be '),
    ],
)
def test_edit_that_judgements_do_not_allow_is_refused(made_once: MadeOnce, path: str, value: Any, message: str) -> None:
    async def edit(stepper: Stepper) -> None:
        with pytest.raises(SteppingError, match=message):
            await stepper.edit(path, value)
        assert [each.name for each in stepper.branches()] == ["main"]
        await stepper.here()

    stepping(dialogue(made_once), edit)


def test_last_message_cannot_be_removed(made_once: MadeOnce) -> None:
    async def empty(stepper: Stepper) -> None:
        await stepper.goto(2)
        with pytest.raises(SteppingError, match=r"messages cannot be \[\]: no message would be left to continue from"):
            await stepper.edit("messages", [])
        assert [each.name for each in stepper.branches()] == ["main"]

    stepping(dialogue(made_once), empty)


def test_edit_in_the_middle_replays_unchanged_requests(made_once: MadeOnce) -> None:
    path = play(made_once, "aloe")
    before = call_counts(path)

    async def edit(stepper: Stepper) -> None:
        main = await stepper.stops()
        await stepper.goto_where(stepper.condition("round 1"))
        while "said" not in (stop := await stepper.step()).state or not stop.state["said"]:
            pass
        assert stepper.branch == "main"
        name = max(stop.state["said"])
        await stepper.edit(f"said.{name}", "My canoe leaks, what now?")
        end = await stepper.run()
        assert end.is_end
        assert end.counts == main[-1].counts

    stepping(path, edit)
    made, used = call_counts(path).rows - before.rows, call_counts(path).replays - before.replays
    assert made > 0
    assert used > made / 2


@pytest.mark.parametrize("recipe", ["aloe", "a file"])
def test_edit_without_a_change_makes_no_calls(made_once: MadeOnce, recipe: str) -> None:
    path = play(made_once, recipe)
    before = call_counts(path).rows

    async def edit(stepper: Stepper) -> None:
        main = await stepper.stops()
        begin = await stepper.switch("main")
        await begin.goto(0)
        with pytest.raises(DialoomError, match="the state is empty before the first step"):
            await begin.edit(next(iter(main[1].state)), [])
        for stop in main[1:-1:3]:
            there = await stepper.switch("main")
            await there.goto(stop.number)
            channel = next(iter(stop.state))
            edited = await there.edit(channel, stop.state[channel])
            assert (edited.next, edited.state) == (
                stop.next if stop.next != ("__start__",) else edited.next,
                stop.state,
            )
            end = await there.run()
            assert end.state == main[-1].state
            assert (await there.outcome()) == (await stepper.outcome())

    stepping(path, edit)
    assert call_counts(path).rows == before


def test_reply_of_a_person_holds_only_on_its_branch(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    before = call_counts(path)

    async def say(stepper: Stepper) -> None:
        ends = []
        for words in ("A quiet place, please.", "A loud one, please."):
            there = await stepper.switch("main")
            await there.goto(3)
            stop = await there.say("user", words)
            assert stop.state["messages"][-1].content == words
            assert [call.model for call in stop.calls] == ["said"]
            ends.append((await there.run()).state["messages"])
        assert [end[3].content for end in ends] == ["Reply to: A quiet place, please.", "Reply to: A loud one, please."]

    stepping(path, say)
    made = called_roles(path, before.rows)
    assert made[: len(made) // 2] == made[len(made) // 2 :]
    assert made[:3] == ["user", "assistant", "user"]
    assert call_counts(path).replays == before.replays


def test_reply_that_a_role_cannot_give_is_refused(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    before = call_counts(path)

    async def say(stepper: Stepper) -> None:
        await stepper.rewind(1)
        with pytest.raises(DialoomError, match="in several nodes; name one: judge_coherence_assistant, "):
            await stepper.say("judge", "Nice")
        with pytest.raises(DialoomError, match="judge cannot reply 'Nice' here"):
            await stepper.say("judge_task_completion", "Nice")
        with pytest.raises(DialoomError, match="the next step calls judge, not 'user'"):
            await stepper.say("user", "Hi.")
        await stepper.goto(1)
        with pytest.raises(DialoomError, match="user needs a text as its reply"):
            await stepper.say("user", "  ")
        assert (stepper.branch, [each.name for each in stepper.branches()]) == ("main", ["main"])
        await stepper.goto_where(stepper.condition("judge"))
        stop = await stepper.say("judge_task_completion", '{"verdict": false, "explanation": "no"}')
        assert [call.model for call in stop.calls].count("said") == 1
        judgements = (await stepper.outcome()).judgements
        assert [(each.metric, each.score) for each in judgements][:1] == [("task_completion", False)]

    stepping(path, say)
    assert call_counts(path) == (before.rows + 1, before.replays + 5)


def test_changed_request_model_or_sample_repeats_the_following_calls(made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    (tmp_path / "others.py").write_text("async def brief(messages):\n    return 'As you like.'\n")
    rows, replays = call_counts(path)

    async def act(stepper: Stepper) -> None:
        nonlocal rows, replays
        end = len(await stepper.stops()) - 1
        there = await stepper.switch("main")
        await there.goto(2)
        stop = await there.edit_request("assistant", [{"role": "user", "content": "Say: hello"}])
        assert stop.state["messages"][-1].content == "Reply to: Say: hello"
        assert stop.calls[0].is_edited
        assert called_roles(path, rows) == ["assistant"]
        rows += 1

        there = await stepper.switch("main")
        await there.goto(2)
        await there.replace_model("assistant", "python:others:brief")
        stop = await there.run([there.condition("judge")])
        assert {call.model for each in await there.stops() for call in each.calls if call.role == "assistant"} == {
            "python:others:brief"
        }
        assert called_roles(path, rows)[0] == "assistant"
        rows = call_counts(path).rows
        await there.goto(2)
        await there.replace_model("assistant", "python:players:assistant")
        await there.run()
        assert call_counts(path).rows == rows, "the replies of the role's own model are recorded"

        there = await stepper.switch("main")
        await there.goto(2)
        sample = await there.resample()
        await there.run()
        made = [call for each in await there.stops() for call in each.calls]
        assert [call.sample for call in made if call.sample] == [sample] * (call_counts(path).rows - rows)
        assert {call.sample for each in (await there.stops())[:3] for call in each.calls} == {0}
        assert (await there.here()).is_end
        assert end == 10 or end > 3

    stepping(path, act)


def test_main_is_unchanged_by_experiments(dialoom: Command, made_once: MadeOnce) -> None:
    path = play(made_once, "personalens")
    before, report = _export(dialoom, path), dialoom("report", "run.db").stdout
    calls = call_counts(path).rows

    async def try_out(stepper: Stepper) -> None:
        await stepper.goto(3)
        await stepper.say("user", "Something else, please.")
        await stepper.run()
        await stepper.rewind(1)
        await stepper.resample()
        await stepper.run()

    stepping(path, try_out)
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    assert status["calls"] == call_counts(path).rows > calls + 6
    dialoom("resume", "run.db")
    assert call_counts(path).rows == status["calls"]
    assert _export(dialoom, path) == before
    assert dialoom("report", "run.db").stdout == report
