"""A sample of a plan: drawn with the seed, spread evenly, the same again, and no more than a plan of fewer."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.runs import RunError
from tests.conftest import Command

OPTIONS = {"setting": ["base", "I", "all"]}


def planned(path: Path, recipe: str = "personalens", **settings: Any) -> list[dict[str, Any]]:
    """The facets of what is planned."""
    run = dialoom.plan(recipe, path=path, **settings)
    return [{**run.scenario(number + 1).facets(), "id": run.scenario(number + 1).id} for number in range(len(run))]


def test_a_sample_is_spread_over_people_and_settings(tmp_path: Path) -> None:
    """Everybody comes up, and every setting as often as any other, where the first of the plan are two people."""
    said: list[str] = []
    found = planned(
        tmp_path / "run.db",
        options=OPTIONS,
        sample=24,
        on_event=lambda event: said.append(event.text) if isinstance(event, dialoom.Noted) else None,
    )
    assert len(found) == len({each["id"] for each in found}) == 24
    assert set(Counter(each["setting"] for each in found).values()) == {8}
    people = Counter(each["user"] for each in found)
    assert len(people) == 12
    assert max(people.values()) <= 3
    assert {each["kind"] for each in found} == {"single", "multi"}
    assert any("sample: 24 of 1,578 scenarios" in text and "user all 12" in text for text in said)
    first = planned(tmp_path / "first.db", options={**OPTIONS, "limit": 24})
    assert len({each["user"] for each in first}) == 1, "what a limit takes"


def test_no_facet_of_a_sample_stands_for_another(tmp_path: Path) -> None:
    """All pairs of values of two facets come up about equally often, so that what a table compares can be compared."""
    axes = {"form": ["explicit", "persona"], "method": ["zero-shot", "reminder", "cot"], "turns": [0, 1]}
    found = planned(tmp_path / "run.db", "prefeval", options=axes, sample=144)
    for first, second in combinations(("topic", *axes), 2):
        pairs = Counter((each[first], each[second]) for each in found)
        values = len({each[first] for each in found}) * len({each[second] for each in found})
        assert len(pairs) == values
        assert max(pairs.values()) - min(pairs.values()) <= 2, (first, second)
    assert len({(each["topic"], *(each[axis] for axis in axes)) for each in found}) > 60, "of 72 cells"


def test_a_sample_follows_from_the_seed_and_holds_the_smaller_one(tmp_path: Path) -> None:
    """In plan order."""
    ids = {
        name: [each["id"] for each in planned(tmp_path / name, options=OPTIONS, sample=size, seed=seed)]
        for name, size, seed in (("a", 30, 1), ("b", 30, 1), ("c", 10, 1), ("d", 30, 2))
    }
    assert ids["a"] == ids["b"] != ids["d"]
    assert [each for each in ids["a"] if each in ids["c"]] == ids["c"]


@pytest.mark.parametrize(("recipe", "whole"), [("aloe", 20), ("aloe-eval", 20), ("persona-pool", 1)])
def test_every_recipe_can_be_sampled(tmp_path: Path, recipe: str, whole: int) -> None:
    """Also where there is less than is wanted: then all of it."""
    assert len(planned(tmp_path / "few.db", recipe, sample=3)) == min(3, whole)
    run = dialoom.plan(recipe, path=tmp_path / "all.db", sample=1000)
    assert len(run) == whole
    assert run.config.sample == 1000


def test_a_sample_of_nothing_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    for wrong in (0, -1, True):
        with pytest.raises(RunError, match="sample"):
            dialoom.plan("aloe", path=tmp_path / "run.db", sample=wrong)
    assert not list(tmp_path.iterdir())


def test_the_realised_test_share_is_printed(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """A sample has everybody, and the share of the rows is told beside the one that was asked for."""
    run = ["run", "personalens", "--sample", 24, *players[:4], "--no-judge", "-o", "run.db"]
    assert "sample: 24 of 526 scenarios" in dialoom(*run).stdout
    said = dialoom("export", "run.db", "--format", "sft", "--test-share", 0.2, "-o", "out").stdout
    test = len((tmp_path / "out" / "test.jsonl").read_text().splitlines())
    train = len((tmp_path / "out" / "train.jsonl").read_text().splitlines())
    assert f"test share {test / (test + train):.1%} of the rows (20.0% was asked for" in said
    assert f"{test / (test + train):.1%} of the rows are for testing" in (tmp_path / "out" / "README.md").read_text()
