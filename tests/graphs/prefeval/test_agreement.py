"""What people say of an answer as a whole, beside what they say to each checker's question."""

from __future__ import annotations

import csv
from pathlib import Path

from dialoom.graphs.prefeval import RECIPE
from dialoom.runs import RunFile
from dialoom.runs.agreement import agreement, read_labels, write_sample
from tests.graphs.prefeval.test_playing import Assistant, Judge, played


def test_people_say_whether_an_answer_is_right_and_the_checkers_word_on_that_is_scored(tmp_path: Path) -> None:
    """From what the checkers saw, blind to them; an item without all of their words has none."""
    played(tmp_path, Assistant(), Judge(), limit=4, turns=(0, 1, 2, 3))
    with RunFile(tmp_path / "run.db", recipe=RECIPE) as run:
        sample = write_sample(run, tmp_path / "labels.csv", 8, ["anna"], metrics=["right", "helpful"])
        assert {str(group): count for group, count in sample.counts.items()} == {
            "right (assistant)": 4,
            "helpful (assistant)": 4,
        }
        rows = list(csv.DictReader((tmp_path / "labels.csv").read_text("utf-8-sig").splitlines()))
        asked = [row for row in rows if row["metric"] == "right"]
        assert all(row["scale"] == "yes or no" and row["about"] == "" for row in asked)
        assert asked[0]["conversation"].startswith("preference: I never want boats of kind 0.")
        assert "answer: Take this one." in rows[0]["conversation"] and "You like hats." not in str(asked)
        # By all checkers' words the answers are wrong: they violate, and hallucinate a preference.
        said = "\n".join(f"{row['item']},{'no' if number else 'yes'}" for number, row in enumerate(asked))
        (tmp_path / "filled.csv").write_text(f"item,label:anna\n{said}\n")
        (group,) = agreement(run, read_labels(tmp_path / "filled.csv")).groups
    assert (group.cohen["anna"].n, group.cohen["anna"].agreement) == (4, 0.75)


def test_an_answer_without_a_checkers_word_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    """It is told as one that has no score."""
    played(tmp_path, Assistant(), Judge(helpful="maybe"))
    with RunFile(tmp_path / "run.db", recipe=RECIPE) as run:
        sample = write_sample(run, tmp_path / "labels.csv", 9, ["anna"])
    assert sample.unscored == 2
    assert {group.metric for group in sample.counts} == {"violates", "acknowledges", "hallucinates"}
