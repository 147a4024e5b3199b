"""One language says which scenarios are wanted, wherever some are; and what a person changed is told apart."""

from __future__ import annotations

import asyncio
import csv
import json
import os
from pathlib import Path

import pytest

import dialoom
from dialoom import plan
from dialoom.runs import RunError
from tests.conftest import Command, lines_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Six dialogues, of which a person has changed the second."""
    path = tmp_path_factory.mktemp("selection") / "run.db"
    made = dialoom.play("personalens", path=path, options={"limit": 6, "tasks": "single", "setting": ["base", "I"]})

    async def change() -> None:
        async with made.step(2) as session:
            await session.goto(2)
            await session.say("assistant", "I would rather not.")
            await session.run()
            await session.promote()

    asyncio.run(change())
    return made


def test_a_report_names_the_outcomes_that_a_person_changed_and_can_leave_them_out(run: dialoom.Run) -> None:
    """Every table says so, and what was done; without them nothing is said."""
    changed = run.scenario(2).id
    for table in run.report().tables:
        assert any(f"1 outcome was changed by a person in the step debugger and counted here: {changed} "
                   "(branch b1: 1 said by a person)" in note for note in table.notes)  # fmt: skip
    without = run.report(where="not changed")
    assert sum(row[2] for row in without["dialogues"].rows) == 5  # type: ignore[misc]
    assert not any("changed by a person" in note for table in without.tables for note in table.notes)
    assert all("Only scenarios of which this holds: not changed" in table.notes for table in without.tables)


def test_expressions_know_facets_counts_scores_and_endings(run: dialoom.Run) -> None:
    """By their own names; scores of one target as a part of the metric."""
    episodes = list(run.episodes())
    user = episodes[0].facets["user"]
    base = [each.id for each in episodes if each.facets["setting"] == "base"]
    assert [each.id for each in run.episodes(where="setting == 'base'")] == base
    assert [each.id for each in run.episodes(where=f"user == {user!r} and turns >= 1 and number <= 2")] == [
        each.id for each in episodes[:2]
    ]
    good = [
        each.id
        for each in episodes
        if any(one.metric == "personalization" and (one.score or 0) >= 3 for one in each.outcome.judgements)
    ]
    assert 0 < len(good) < 6
    assert [each.id for each in run.episodes(where="personalization >= 3")] == good
    ratings = [
        next(each.score for each in one.outcome.judgements if (each.metric, each.target) == ("naturalness", "user"))
        for one in episodes
    ]
    assert [each.id for each in run.episodes(where=f"naturalness.user == {ratings[0]}")] == [
        each.id for each, rating in zip(episodes, ratings, strict=True) if rating == ratings[0]
    ]


def test_what_was_not_judged_fits_no_comparison(tmp_path: Path) -> None:
    """An unparsed score is no number, so nothing is said of it."""

    async def judge(messages: list[dict[str, str]]) -> str:  # noqa: ARG001
        return "hard to say"

    run = dialoom.play("personalens", path=tmp_path / "run.db", models={"judge": judge}, options={"limit": 1})
    for where in ("personalization < 9", "personalization != 3", "naturalness.user >= 0", "task_completion"):
        assert not list(run.episodes(where=where)), where
    assert list(run.episodes(where="unparsed == 6 and personalization is undefined"))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("personalisation >= 3", "there is no 'personalisation'; did you mean personalization? There are number, id, "),
        ("setting ==", "is no expression"),
        ("1 == 1", "names nothing"),
        ("setting >= 3", "cannot be told of"),
        ("setting.__class__.__mro__", "cannot be told of"),
    ],
)
def test_a_wrong_expression_is_told(run: dialoom.Run, where: str, said: str) -> None:
    """At once, with what there is."""
    with pytest.raises(RunError, match="where") as caught:
        list(run.episodes(where=where))
    assert said in str(caught.value)
    assert caught.value.setting == "where"


def test_the_command_line_reports_on_a_part(dialoom: Command, run: dialoom.Run) -> None:
    """`report --where`, with the flag named where the expression is wrong."""
    said = dialoom("report", run.path, "--table", "dialogues", "--where", "setting == 'I' and not changed").stdout
    assert "Only scenarios of which this holds" in said
    assert "--where: there is no 'nothing'" in dialoom("report", run.path, "--where", "nothing > 1", code=2).stderr


def test_exports_frames_and_lists_take_a_part(dialoom: Command, run: dialoom.Run, tmp_path: Path) -> None:
    """The same expression, and rows that say whose they are, with their facets and scores where these are asked for."""
    where = "setting == 'I' and not changed"
    wanted = [each.id for each in run.episodes(where=where)]
    run.export("sft", tmp_path / "sft.jsonl", where=where, include=["facets", "scores"])
    rows = lines_of(tmp_path / "sft.jsonl")
    assert [row["id"] for row in rows] == wanted
    assert {row["facets"]["setting"] for row in rows} == {"I"}
    assert all(1 <= row["scores"]["personalization.assistant"] <= 4 for row in rows)
    assert f"`where {where}`" in (tmp_path / "sft.card.md").read_text()
    assert run.frame(where=where)["id"].tolist() == wanted
    assert set(run.frame("calls", where=where)["id"]) == set(wanted)
    dialoom("export", run.path, "--format", "sft", "--where", where, "-o", "plain.jsonl")
    assert [list(row) for row in lines_of(tmp_path / "plain.jsonl")] == [["id", "messages"]] * len(wanted)
    assert "leaves no row" in dialoom("export", run.path, "--where", "turns > 99", "-o", "none.jsonl", code=2).stderr
    with pytest.raises(RunError, match="include 'colour': there are facets, scores"):
        run.export("sft", tmp_path / "sft.jsonl", include=["colour"])


def test_the_list_has_scores_and_is_sorted_by_them(dialoom: Command, run: dialoom.Run) -> None:
    """The lowest first, or the highest; pending scenarios are in it, and what has no score comes last."""
    listed = [json.loads(line) for line in dialoom("show", run.path, "--json").stdout.splitlines()]
    by_hand = sorted(listed, key=lambda line: line["scores"]["personalization"])
    sort = ["show", run.path, "--json", "--sort", "personalization"]
    assert [json.loads(line) for line in dialoom(*sort).stdout.splitlines()] == by_hand
    best = json.loads(dialoom(*sort, "--reverse").stdout.splitlines()[0])
    low, high = (line["scores"]["personalization"] for line in (by_hand[0], by_hand[-1]))
    assert best["scores"]["personalization"] == high > low
    shown = dialoom("show", run.path, "--where", "number == 3").stdout.splitlines()
    assert shown[0].split()[-2:] == ["faults", "id"]
    assert shown[1].split()[0] == "3"
    assert len(shown) == 2
    pending = planned(run.path.parent)
    assert len(dialoom("show", pending, "--where", "state == 'pending'", "--sort", "user").stdout.splitlines()) == 2
    assert "--sort: there is no 'beauty'" in dialoom("show", run.path, "--sort", "beauty", code=2).stderr


def planned(folder: Path) -> Path:
    """A run of which nothing is played."""
    path = folder / "planned.db"
    plan("personalens", path=path, options={"limit": 2})
    return path


def test_agreement_and_the_debugger_take_a_part(dialoom: Command, run: dialoom.Run, tmp_path: Path) -> None:
    """Items of these scenarios alone; the first of them is stepped through."""
    where = "personalization >= 2 and number != 1"
    ids = [each.id for each in run.episodes(where=where)]
    dialoom("agree", run.path, "--sample", 100, "--where", where, "-o", "labels.csv")
    with (tmp_path / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        items = list(csv.DictReader(file))
    assert {item["scenario"] for item in items} == set(ids)
    stepped = dialoom("step", run.path, "--where", where, input="where\n", env=os.environ.copy())
    assert "the end" in stepped.stdout
    assert f"scenario 2 is the first of {len(ids)}; the others are 3, 4, 5, 6" in stepped.stderr
