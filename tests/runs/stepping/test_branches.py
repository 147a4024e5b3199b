"""Branches: their positions, their checkpoints' names, and the constant numbers of the history."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dialoom import DialoomError, Stepper
from dialoom.runs.stepping import Cost, diff
from tests.conftest import MadeOnce
from tests.runs.stepping.played import call_counts, dialogue, play, shown, shown_stops, stepping


def test_numbers_of_stops_never_change(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    known: dict[int, str] = {}

    async def act(stepper: Stepper) -> None:
        async def check() -> None:
            points = stepper.context.points().values()
            assert [point.number for point in points] == list(range(len(points)))
            known.update({point.number: known.get(point.number, point.id) for point in points})
            assert known == {point.number: point.id for point in points}

        await check()
        await stepper.goto(3)
        for name in ("one", "two"):
            branch = await stepper.fork(name)
            await branch.resample()
            await branch.step()
            await check()
            await (await branch.fork(f"{name}-again")).run()
            await check()
            await branch.edit("messages[0].content", "Good morning.")
            await branch.step()
            await check()
        for number, checkpoint in known.items():
            assert (await stepper.goto(number)).checkpoint == checkpoint
            assert (await stepper.goto(f"#{number}")).checkpoint == checkpoint
            assert (await stepper.goto(checkpoint)).number == number

    stepping(path, act)

    async def again(stepper: Stepper) -> None:
        assert {point.number: point.id for point in stepper.context.points().values()} == known

    stepping(path, again)


def test_finished_branch_keeps_its_end(made_once: MadeOnce) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        await stepper.say("user", "Rather not.")
        assert stepper.branch == "b1"
        await stepper.goto(3)
        await stepper.say("user", "Not at all.")
        assert stepper.branch == "b1"
        end = await stepper.run()
        await stepper.goto(3)
        await stepper.say("user", "By no means.")
        assert stepper.branch == "b2"
        back = await stepper.goto(end.number)
        assert (stepper.branch, back.is_end) == ("b1", True)

    stepping(dialogue(made_once), act)


def test_promoted_branch_keeps_its_conversation(made_once: MadeOnce) -> None:
    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        await stepper.say("user", "Perhaps.")
        unfinished = (await stepper.here()).number
        await stepper.goto(3)
        await stepper.say("user", "Rather not.")
        end = await stepper.run()
        await stepper.promote()
        copy = await stepper.fork("copy")
        await copy.rewind(2)
        await copy.resample()
        assert copy.branch == "copy"  # its end is that of its origin, which keeps it
        for number, name in ((end.number, "b2"), (unfinished, "b3"), (5, "b4")):
            changed = await stepper.switch("b1")
            await changed.goto(number)
            await changed.edit("ended_by", "turn_limit")
            assert changed.branch == name
        kept = await stepper.switch("b1")
        await kept.goto(end.number)
        with pytest.raises(DialoomError, match="0 steps were played after this one on b1"):
            await kept.forward()

    path = dialogue(made_once)
    stepping(path, act)


def test_going_to_another_branchs_checkpoint_switches_branches(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        branch = await stepper.fork("mine")
        stop = await branch.say("user", "Rather not.")
        shared = await branch.goto(2)
        assert (branch.branch, shared.number) == ("mine", 2)
        assert stepper.branch == "main"
        there = await stepper.goto(stop.number)
        assert (stepper.branch, shown(there)) == ("mine", shown(stop))
        await stepper.step()
        assert stepper.branch == "mine"
        with pytest.raises(DialoomError, match=r"no checkpoint 99; the history has 0 to \d+"):
            await stepper.goto(99)

    stepping(path, act)


def test_branch_of_a_branch_inherits_its_settings(made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    (tmp_path / "others.py").write_text("async def brief(messages):\n    return 'As you like.'\n")

    async def act(stepper: Stepper) -> None:
        await stepper.goto(2)
        first = await stepper.fork("first")
        await first.replace_model("assistant", "python:others:brief")
        sample = await first.resample()
        await first.step()
        second = await first.fork("second")
        await second.replace_model("assistant", "python:players:assistant")
        await second.run()
        await first.run()
        said = [[m.content for m in each.state["messages"] if m.name == "assistant"] for each in (first, second)]
        assert set(said[0]) == {"As you like."}
        assert (said[1][0], set(said[1][1:]) & {"As you like."}) == ("As you like.", set())
        found = {each.name: each for each in stepper.branches()}
        assert [(each.origin, each.sample) for each in found.values()] == [
            (None, 0),
            ("main", sample),
            ("first", sample),
        ]
        assert dict(found["first"].models) == {"assistant": "python:others:brief"}
        assert dict(found["second"].models) == {}
        difference = await diff(first, second)
        assert (difference.names, difference.shared) == (("first", "second"), 2)
        assert [pair.is_same for pair in difference.lines[:2]] == [True, True]
        assert not all(pair.is_same for pair in difference.lines)

    stepping(path, act)


@pytest.mark.parametrize("name", ["", "a b", "über", "a/b", "x" * 41, "a~b", "a#b"])
def test_bad_branch_name_is_refused(made_once: MadeOnce, name: str) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        with pytest.raises(DialoomError, match="is not a valid name for a branch; use letters"):
            await stepper.fork(name)
        assert len(stepper.branches()) == 1

    stepping(path, act)


def test_existing_branch_name_is_refused_and_skipped(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        await stepper.fork("b1")
        for name in ("b1", "main"):
            with pytest.raises(DialoomError, match=f"a branch '{name}' exists already"):
                await stepper.fork(name)
        await stepper.resample()
        assert stepper.branch == "b2"
        with pytest.raises(DialoomError, match="there is no branch 'b3'; the branches are main, b1, b2"):
            await stepper.switch("b3")

    stepping(path, act)


def test_rewind_takes_at_most_the_steps_before(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        main = await stepper.stops()
        for count in (0, -1, len(main)):
            with pytest.raises(DialoomError, match=f"there are {len(main) - 1} steps before this one"):
                await stepper.rewind(count)
        assert (await stepper.rewind(len(main) - 1)).number == 0
        await stepper.goto(3)
        stepped = await stepper.step()
        edited = await stepper.edit("messages[0].content", "Good morning.")
        assert (await stepper.rewind()).number == stepped.number
        assert (await stepper.rewind()).number == 3
        again = await stepper.goto(edited.number)
        assert shown(again) == shown(edited)
        with pytest.raises(DialoomError, match="b1 has no further steps"):
            await stepper.run()
            await stepper.step()

    stepping(path, act)


def test_run_stops_at_conditions_and_goto_finds_them(made_once: MadeOnce) -> None:
    path = play(made_once, "personalens")
    rows = call_counts(path).rows

    async def act(stepper: Stepper) -> None:
        end = await stepper.here()
        assert (await stepper.goto_where(stepper.condition("turn 2"))).counts == {"turn": 2}
        assert (await stepper.goto_where(stepper.condition("assistant"))).number == 2
        stop = await stepper.goto_where(stepper.condition("messages[-1].role == 'assistant'"))
        assert (stop.number, stepper.branch) == (3, "main")
        with pytest.raises(DialoomError, match="turn 99 is not met anywhere on main"):
            await stepper.goto_where(stepper.condition("turn 99"))
        with pytest.raises(DialoomError, match="there is no 'name'"):
            await stepper.goto_where(stepper.condition("messages[-1].name == 'assistant'"))
        assert (await stepper.here()).number == 3
        assert (await stepper.run([stepper.condition("judge"), stepper.condition("turn 3")])).counts == {"turn": 3}
        assert (await stepper.run([stepper.condition("judge")])).next == tuple(stepper.nodes[2:])
        assert shown_stops([end]) == shown_stops([await (await stepper.switch("main")).here()])

    stepping(path, act)
    assert call_counts(path).rows == rows


def test_going_forward_follows_what_was_played_last(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        await stepper.goto(3)
        assert (await stepper.forward(2)).number == 5
        with pytest.raises(DialoomError, match="3 steps were played after this one on main"):
            await stepper.forward(4)
        await stepper.goto(3)
        branch = await stepper.fork("mine")
        with pytest.raises(DialoomError, match="after this one on mine; forward goes no further; 'next' plays a step"):
            await branch.forward()
        first = await branch.step()
        await branch.rewind()
        await branch.resample()
        second = await branch.step()
        third = await branch.step()
        await branch.rewind(2)
        assert [(await branch.forward()).number for _ in range(2)] == [second.number, third.number]
        assert (await branch.goto(first.number)).number == first.number
        assert (
            await branch.goto_where(branch.condition(f"messages|length == {len(first.state['messages'])}"))
        ) == first
        assert (branch.branch, stepper.branch) == ("mine", "main")

    stepping(path, act)


def test_branch_contains_only_its_own_path(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        last = (await stepper.here()).number
        await stepper.goto(3)
        branch = await stepper.fork("mine")
        await branch.run()
        stops = await branch.stops()
        assert [stop.kind for stop in stops] == ["input"] + ["step"] * (len(stops) - 1)
        assert [stop.number for stop in stops] == [0, 1, 2, 3, *range(last + 1, 2 * last - 2)]
        await branch.goto(last)
        assert branch.branch == "main"

    stepping(path, act)


def test_two_steppers_on_one_branch_keep_each_others_changes(made_once: MadeOnce, tmp_path: Path) -> None:
    path = dialogue(made_once)
    (tmp_path / "others.py").write_text("async def brief(messages):\n    return 'As you like.'\n")

    async def act(stepper: Stepper) -> None:
        await stepper.goto(2)
        one = await stepper.fork("mine")
        other = await stepper.switch("mine")
        await other.replace_model("assistant", "python:others:brief")
        await other.resample()
        stop = await one.step()
        assert stop.state["messages"][-1].content == "As you like."
        await one.replace_model("user", "python:others:brief")
        [branch] = stepper.branches()[1:]
        assert (sorted(branch.models), branch.head) == (["assistant", "user"], stop.checkpoint)

    stepping(path, act)


def test_conversations_are_compared_turn_by_turn(made_once: MadeOnce) -> None:
    path = dialogue(made_once)

    async def act(stepper: Stepper) -> None:
        lines = stepper.state["messages"]
        branch = await stepper.fork("early")
        await branch.goto(3)
        await branch.say("user", lines[4].content)
        pairs = (await diff(stepper, branch)).lines
        assert [pair.is_same for pair in pairs[:3]] == [True, True, False]
        assert [pair.right is None for pair in pairs] == [False] * 3 + [True] * (len(lines) - 3)

    stepping(path, act)


def test_fork_and_comparison_read_no_earlier_requests(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE kept_calls SET messages = '' WHERE id < (SELECT max(id) FROM kept_calls) - 5")

    async def act(stepper: Stepper) -> None:
        found = await diff(stepper, await stepper.fork("same"))
        assert found.before.calls == call_counts(path).rows
        assert found.costs == (Cost(), Cost())

    stepping(path, act)


def test_every_judgement_of_a_tree_is_compared(made_once: MadeOnce) -> None:
    async def act(stepper: Stepper) -> None:
        judged = (await stepper.outcome()).judgements
        assert len({(each.metric, each.target, each.turn) for each in judged}) < len(judged)
        found = await diff(stepper, await stepper.fork("same"))
        assert len(found.judgements) == len({name for name, *_ in found.judgements}) == len(judged)
        assert all(ours == theirs is not None for _, ours, theirs in found.judgements)

    stepping(play(made_once, "aloe"), act)
