"""Equal runs export equal bytes; samples and expressions that select scenarios."""

from __future__ import annotations

import asyncio
import csv
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialoom
from dialoom import DialoomError, Event, ScenarioDone, ScenarioFailed, plan
from tests.conftest import Command, read_jsonl
from tests.invented import write_release


def played(folder: Path, seed: int, concurrency: int, interruptions: list[int]) -> bytes:
    """Return the export of a run that is interrupted after each of these numbers of results and resumed."""
    path = folder / "run.db"
    options = {"profiles": folder / "release", "setting": ["base", "all"]}
    for count, results in enumerate([*interruptions, 0]):
        control = dialoom.Control()
        watched: dict[str, Any] = {
            "concurrency": concurrency,
            "control": control,
            "on_event": interrupting(control, results),
        }
        if count:
            run = dialoom.resume(path, **watched)
        else:
            run = dialoom.play("personalens", path=path, options=options, seed=seed, **watched)
    assert run.status().pending == 0
    run.export("dialogues", folder / "out.jsonl")
    return (folder / "out.jsonl").read_bytes()


def interrupting(control: dialoom.Control, results: int) -> Callable[[Event], None]:
    """Return a handler that stops the run after a number of results (0: never) and asserts that no scenario fails."""
    left = itertools.count(results - 1, -1)

    def on_event(event: Event) -> None:
        assert not isinstance(event, ScenarioFailed), event
        if isinstance(event, ScenarioDone) and next(left) == 0:
            control.drain()

    return on_event


@settings(max_examples=4)
@given(
    seed=st.integers(min_value=0, max_value=3),
    concurrency=st.integers(min_value=1, max_value=9),
    interruptions=st.lists(st.integers(min_value=1, max_value=4), max_size=3),
)
def test_equal_runs_export_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, concurrency: int, interruptions: list[int]
) -> None:
    if seed not in _SEQUENTIAL:
        plain = tmp_path_factory.mktemp("plain")
        write_release(plain / "release", users=2)
        _SEQUENTIAL[seed] = played(plain, seed, 1, [])
    other = tmp_path_factory.mktemp("other")
    write_release(other / "release", users=2)
    assert played(other, seed, concurrency, interruptions) == _SEQUENTIAL[seed]
    assert len(set(_SEQUENTIAL.values())) == len(_SEQUENTIAL), "different seeds give different dialogues"


_SEQUENTIAL: dict[int, bytes] = {}
"""Exports of sequential runs without interruptions, by seed."""


OPTIONS = {"setting": ["base", "I", "all"]}


def planned(path: Path, recipe: str = "personalens", **settings: Any) -> list[dict[str, Any]]:
    """Return the facets and ids of the planned scenarios."""
    run = dialoom.plan(recipe, path=path, **settings)
    return [{**run.scenario(number + 1).facets(), "id": run.scenario(number + 1).id} for number in range(len(run))]


def test_sample_is_spread_over_people_and_settings(tmp_path: Path) -> None:
    said: list[str] = []
    found = planned(
        tmp_path / "run.db",
        options=OPTIONS,
        sample=24,
        on_event=lambda event: said.append(event.text) if isinstance(event, dialoom.Notice) else None,
    )
    assert len(found) == len({each["id"] for each in found}) == 24
    assert set(Counter(each["setting"] for each in found).values()) == {8}
    people = Counter(each["user"] for each in found)
    assert len(people) == 12
    assert max(people.values()) <= 3
    assert {each["kind"] for each in found} == {"single", "multi"}
    assert any("sample: 24 of 1,578 scenarios" in text and "user: all 12" in text for text in said)
    first = planned(tmp_path / "first.db", options={**OPTIONS, "limit": 24})
    assert len({each["user"] for each in first}) == 1, "a limit takes the first scenarios"


def test_facets_of_a_sample_are_not_confounded(tmp_path: Path) -> None:
    axes = {"form": ["explicit", "persona"], "method": ["zero-shot", "reminder", "cot"], "turns": [0, 1]}
    found = planned(tmp_path / "run.db", "prefeval", options=axes, sample=144)
    for first, second in combinations(("topic", *axes), 2):
        pairs = Counter((each[first], each[second]) for each in found)
        values = len({each[first] for each in found}) * len({each[second] for each in found})
        assert len(pairs) == values
        assert max(pairs.values()) - min(pairs.values()) <= 2, (first, second)
    assert len({(each["topic"], *(each[axis] for axis in axes)) for each in found}) > 60, "more than 60 of the 72 cells"


def test_sample_is_reproducible_and_contains_smaller_ones(tmp_path: Path) -> None:
    ids = {
        name: [each["id"] for each in planned(tmp_path / name, options=OPTIONS, sample=size, seed=seed)]
        for name, size, seed in (("a", 30, 1), ("b", 30, 1), ("c", 10, 1), ("d", 30, 2))
    }
    assert ids["a"] == ids["b"] != ids["d"]
    assert [each for each in ids["a"] if each in ids["c"]] == ids["c"]


@pytest.mark.parametrize(("recipe", "whole"), [("aloe", 20), ("aloe-eval", 20), ("persona-pool", 1)])
def test_every_recipe_can_be_sampled(tmp_path: Path, recipe: str, whole: int) -> None:
    assert len(planned(tmp_path / "few.db", recipe, sample=3)) == min(3, whole)
    run = dialoom.plan(recipe, path=tmp_path / "all.db", sample=1000)
    assert len(run) == whole
    assert run.config.sample == 1000


def test_empty_sample_is_refused(tmp_path: Path) -> None:
    for wrong in (0, -1, True):
        with pytest.raises(DialoomError, match="sample"):
            dialoom.plan("aloe", path=tmp_path / "run.db", sample=wrong)
    assert not list(tmp_path.iterdir())


def test_realised_test_share_is_printed(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    run = ["run", "personalens", "--sample", 24, *players[:4], "--no-judge", "-o", "run.db"]
    assert "sample: 24 of 526 scenarios" in dialoom(*run).stdout
    output = dialoom("export", "run.db", "--format", "sft", "--test-share", 0.2, "-o", "out").stdout
    test = len((tmp_path / "out" / "test.jsonl").read_text().splitlines())
    train = len((tmp_path / "out" / "train.jsonl").read_text().splitlines())
    assert f"test share {test / (test + train):.1%} of the rows (20.0% was requested" in output
    assert f"has {test / (test + train):.1%} of the rows (20.0% were requested)" in " ".join(
        (tmp_path / "out" / "README.md").read_text().split()
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Return a run of six dialogues, the second of which a person has changed."""
    path = tmp_path_factory.mktemp("selection") / "run.db"
    made = dialoom.play("personalens", path=path, options={"limit": 6, "tasks": "single", "setting": ["base", "I"]})

    async def change() -> None:
        async with made.step(2) as stepper:
            await stepper.goto(2)
            await stepper.say("assistant", "I would rather not.")
            await stepper.run()
            await stepper.promote()

    asyncio.run(change())
    return made


def test_report_names_outcomes_changed_by_people_and_can_leave_them_out(run: dialoom.Run) -> None:
    changed = run.scenario(2).id
    for table in run.report().tables:
        assert any(f"1 outcome was changed by a person in the step debugger and included here: {changed} "
                   "(branch b1: 1 said by a person)" in note for note in table.notes)  # fmt: skip
    without = run.report(where="not changed")
    assert sum(row[2] for row in without["dialogues"].rows) == 5  # type: ignore[misc]
    assert not any("changed by a person" in note for table in without.tables for note in table.notes)
    assert all("Only scenarios that match: not changed" in table.notes for table in without.tables)


def test_expressions_select_by_facets_counts_and_scores(run: dialoom.Run) -> None:
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


def test_unjudged_scenarios_match_no_comparison(tmp_path: Path) -> None:
    async def judge(messages: list[dict[str, str]]) -> str:  # noqa: ARG001
        return "hard to say"

    run = dialoom.play("personalens", path=tmp_path / "run.db", models={"judge": judge}, options={"limit": 1})
    for where in ("personalization < 9", "personalization != 3", "naturalness.user >= 0", "task_completion"):
        assert not list(run.episodes(where=where)), where
    assert list(run.episodes(where="unparsed == 6 and personalization is undefined"))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("personalisation >= 3", "there is no 'personalisation'; did you mean personalization? There are number, id, "),
        ("setting ==", "is not a valid expression"),
        ("1 == 1", "does not depend on the scenarios"),
        ("setting >= 3", "cannot be evaluated for"),
        ("setting.__class__.__mro__", "cannot be evaluated for"),
    ],
)
def test_wrong_expression_is_refused(run: dialoom.Run, where: str, message: str) -> None:
    with pytest.raises(DialoomError, match="where") as caught:
        list(run.episodes(where=where))
    assert message in str(caught.value)
    assert caught.value.setting == "where"


def test_report_takes_an_expression(dialoom: Command, run: dialoom.Run) -> None:
    output = dialoom("report", run.path, "--table", "dialogues", "--where", "setting == 'I' and not changed").stdout
    assert "Only scenarios that match:" in output
    assert "--where: there is no 'nothing'" in dialoom("report", run.path, "--where", "nothing > 1", code=2).stderr


def test_exports_frames_and_lists_take_an_expression(dialoom: Command, run: dialoom.Run, tmp_path: Path) -> None:
    where = "setting == 'I' and not changed"
    wanted = [each.id for each in run.episodes(where=where)]
    run.export("sft", tmp_path / "sft.jsonl", where=where, include=["facets", "scores"])
    rows = read_jsonl(tmp_path / "sft.jsonl")
    assert [row["id"] for row in rows] == wanted
    assert {row["facets"]["setting"] for row in rows} == {"I"}
    assert all(1 <= row["scores"]["personalization.assistant"] <= 4 for row in rows)
    assert f"`where {where}`" in (tmp_path / "sft.jsonl.card.md").read_text()
    assert run.frame(where=where)["id"].tolist() == wanted
    assert set(run.frame("calls", where=where)["id"]) == set(wanted)
    dialoom("export", run.path, "--format", "sft", "--where", where, "-o", "plain.jsonl")
    assert [list(row) for row in read_jsonl(tmp_path / "plain.jsonl")] == [["id", "messages"]] * len(wanted)
    assert "selects no row" in dialoom("export", run.path, "--where", "turns > 99", "-o", "none.jsonl", code=2).stderr
    with pytest.raises(DialoomError, match="include must be among facets, scores"):
        run.export("sft", tmp_path / "sft.jsonl", include=["colour"])


def test_list_has_scores_and_is_sorted_by_them(dialoom: Command, run: dialoom.Run) -> None:
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
    pending = planned_run(run.path.parent)
    assert len(dialoom("show", pending, "--where", "state == 'pending'", "--sort", "user").stdout.splitlines()) == 2
    assert "--sort: there is no 'beauty'" in dialoom("show", run.path, "--sort", "beauty", code=2).stderr


def planned_run(folder: Path) -> Path:
    """Return the path of a planned run."""
    path = folder / "planned.db"
    plan("personalens", path=path, options={"limit": 2})
    return path


def test_agreement_and_step_take_an_expression(dialoom: Command, run: dialoom.Run, tmp_path: Path) -> None:
    where = "personalization >= 2 and number != 1"
    ids = [each.id for each in run.episodes(where=where)]
    dialoom("agree", run.path, "--sample", 100, "--where", where, "-o", "labels.csv")
    with (tmp_path / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        items = list(csv.DictReader(file))
    assert {item["scenario"] for item in items} == set(ids)
    stepped = dialoom("step", run.path, "--where", where, input="where\n", env=os.environ.copy())
    assert "the end" in stepped.stdout
    assert f"scenario 2 is the first of {len(ids)}; the others are 3, 4, 5, 6" in stepped.stderr
