"""Labels that are given one by one: the file is the one that kappas are made from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dialoom import Run, Session
from dialoom import open_run as opened
from dialoom.runs import RunError, RunFile
from dialoom.runs.agreement import GivenLabel, LabelFile, agreement, labels_beside, read_labels
from tests.conftest import Command, MadeOnce
from tests.runs.stepping.played import dialogue, play, stepping


def _items(run: Run) -> list[str]:
    shown = run.conversation(1)
    return [item.id for item in (*(item for each in shown.messages for item in each.judged), *shown.judged)]


def test_labels_given_one_by_one_are_read_as_those_of_a_sample_are(made_once: MadeOnce) -> None:
    """Kappas come of them, and each row has what a person needs who labels it after all in a spreadsheet."""
    path = play(made_once, "aloe-eval")
    run = opened(path)
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
    with labels_beside(path).open(encoding="utf-8-sig", newline="") as lines:
        row = next(csv.DictReader(lines))
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
        assert list(labels.given(run, "anna")) == []
        assert list(labels.given(run, "ben")) == [GivenLabel(0, second, "3", is_earlier=False)]
    assert labels.items() == [first, second]
    assert labels.annotators() == ["anna", "ben"]


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
    run = opened(play(made_once, "aloe-eval"))
    with pytest.raises(RunError, match=message):
        run.label(1, item or _items(run)[0], annotator, label)
    assert not labels_beside(run.path).exists()


async def _another(session: Session) -> None:
    await session.goto(3)
    branch = await session.fork("other")
    await branch.say("user", "Something else, please.")
    await branch.run()
    await branch.promote()


async def _back(session: Session) -> None:
    await session.promote()


def test_labels_count_for_the_conversation_that_they_were_given_to(made_once: MadeOnce, dialoom: Command) -> None:
    """Not for another branch that becomes the outcome, and again when theirs does; each can be labelled in its turn."""
    path = dialogue(made_once)
    run, (item, *_) = opened(path), _items(opened(path))
    run.label(1, item, "anna", "yes")
    stepping(path, _another)
    assert run.labels("anna") == {}
    assert [(each.item, each.label, each.is_earlier) for each in run.given_labels("anna", 1)] == [(item, "yes", True)]
    told = dialoom("agree", path, "--labels", labels_beside(path)).stdout
    assert "given to an earlier conversation, left out: 1, of 1 scenario" in told and "judge, anna" not in told
    run.label(1, item, "anna", "no")
    assert run.labels("anna") == {item: "no"}
    found = run.agreement()
    assert [group.cohen["anna"].n for group in found.groups] == [1] and found.earlier.count == 1
    stepping(path, _back)
    assert run.labels("anna") == {item: "yes"}
    run.label(1, item, "anna", "")
    assert run.labels("anna") == {} and [each.label for each in run.given_labels("anna")] == ["no"]


def test_a_label_counts_for_every_set_of_judgements_and_without_a_digest(
    made_once: MadeOnce, dialoom: Command, tmp_path: Path
) -> None:
    """What another judge says makes no other conversation; a file from elsewhere need not say which it is of."""
    path = dialogue(made_once)
    run, (item, *_) = opened(path), _items(opened(path))
    dialoom("judge", path, "--name", "second", "--model", "offline/attentive")
    run.label(1, item, "anna", "yes")
    assert [group.cohen["anna"].n for group in run.agreement(judging="second").groups] == [1]
    bare = tmp_path / "bare.csv"
    bare.write_text(f"item,label:ben\n{item},no\n")
    stepping(path, _another)
    assert run.labels("ben", path=bare) == {item: "no"}
    assert run.agreement(path=bare).earlier.count == 0
    run.label(1, item, "anna", "yes", path=bare)
    assert run.labels("anna", path=bare) == {item: "yes"} and run.labels("ben", path=bare) == {item: "no"}


def test_pairs_of_one_round_are_told_apart_though_their_verdicts_are_alike(
    made_once: MadeOnce, dialoom: Command, tmp_path: Path
) -> None:
    """Each is shown to people as the one that it is."""
    path = play(made_once, "aloe")
    dialoom("agree", path, "--sample", 50, "-o", "s.csv")
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["turn"] == "2"]
    assert len(rows) == 2
    assert rows[0]["conversation"] != rows[1]["conversation"] and rows[0]["digest"] != rows[1]["digest"]


def test_a_scenario_is_labelled_when_all_chosen_metrics_are(made_once: MadeOnce, dialoom: Command) -> None:
    """One of six judgements is a beginning; the chosen metrics say what is wanted."""
    path = dialogue(made_once)
    run = opened(path)
    items = _items(run)
    whole = [item for item in items if item.endswith("/task_completion/assistant")]
    run.label(1, whole[0], "anna", "yes")
    found = run.labelled("anna")[0]
    assert (found.given, found.wanted, found.is_complete) == (1, len(items), False)
    assert run.labelled("anna", metrics=["task_completion"])[0].is_complete
    assert run.labelled("anna", metrics=["personalization"]) == {}
    listed = dialoom("show", path, "--labelled-by", "anna").stdout
    assert "done" not in listed
    for item in items[1:]:
        run.label(1, item, "anna", "yes" if item.endswith("/task_completion/assistant") else "3")
    run.label(1, items[0], "anna", "yes" if items[0] in whole else "3")
    assert run.labelled("anna")[0].is_complete
    assert "done" in dialoom("show", path, "--labelled-by", "anna").stdout
