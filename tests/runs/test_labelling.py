"""Labels that are given one by one: the file is the one that kappas are made from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import dialoom
from dialoom.runs.agreement import LabelFile, agreement, labels_beside, read_labels
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from tests.conftest import Command, MadeOnce
from tests.runs.stepping.played import play


def _items(run: dialoom.Run) -> list[str]:
    shown = run.conversation(1)
    return [item.id for item in (*(item for each in shown.messages for item in each.judged), *shown.judged)]


def test_labels_given_one_by_one_are_read_as_those_of_a_sample_are(made_once: MadeOnce) -> None:
    """Kappas come of them, and each row has what a person needs who labels it after all in a spreadsheet."""
    path = play(made_once, "aloe-eval")
    run = dialoom.open_run(path)
    items = _items(run)
    for item, label in zip(items, ("4", "3", "5"), strict=False):
        run.label(1, item, "anna", label)
    run.label(1, items[0], "ben", "2")
    run.label(1, items[0], "anna", "1")
    assert run.labels("anna") == dict(zip(items, ("1", "3", "5"), strict=False))
    assert run.labels("nobody") == {}
    labels = read_labels(labels_beside(path))
    assert labels.annotators == ("anna", "ben")
    with RunFile(path) as file:
        found = agreement(file, labels)
    assert [group.cohen["anna"].n for group in found.groups] == [3]
    with labels_beside(path).open(encoding="utf-8-sig", newline="") as opened:
        row = next(csv.DictReader(opened))
    assert row["scale"] == "1 to 5" and "user: " in row["conversation"]


def test_a_sample_is_filled_in_where_it_stands(made_once: MadeOnce, dialoom: Command, tmp_path: Path) -> None:
    """Its rows and their order stay, and what another has filled in."""
    path = play(made_once, "aloe-eval")
    dialoom("agree", path, "--sample", 2, "-o", "labels.csv", "--annotators", "anna,ben")
    labels = LabelFile(tmp_path / "labels.csv")
    first, second = labels.items()
    with RunFile(path) as run:
        labels.put(run, 0, second, "ben", "3")
        labels.put(run, 0, first, "anna", "2")
        labels.put(run, 0, first, "anna", "")
    assert labels.items() == [first, second]
    assert labels.annotators() == ["anna", "ben"]
    assert (labels.labels("anna"), labels.labels("ben")) == ({}, {second: "3"})


@pytest.mark.parametrize(
    ("item", "annotator", "label", "message"),
    [
        ("no/such/item", "anna", "1", "no such judgement"),
        (None, " ", "1", "name of whoever labels"),
        (None, "anna", "6", "'6' is not a whole number from 1 to 5"),
        (None, "anna", "=1", "'=1' is not a whole number"),
    ],
)
def test_what_cannot_be_a_label_is_said_and_nothing_written(
    made_once: MadeOnce, item: str | None, annotator: str, label: str, message: str
) -> None:
    """Neither a value off the scale nor one of nobody's."""
    run = dialoom.open_run(play(made_once, "aloe-eval"))
    with pytest.raises(RunError, match=message):
        run.label(1, item or _items(run)[0], annotator, label)
    assert not labels_beside(run.path).exists()
