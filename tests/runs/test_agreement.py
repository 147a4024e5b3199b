"""Kappas, intervals, scales and label files."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from dialoom import DialoomError, Judgement, Line, Outcome, Run, Stepper
from dialoom import open_run as opened
from dialoom.graphs.check import select_judged_messages
from dialoom.personas import DataError
from dialoom.runs.agreement import LabelFile, Scales, StoredLabel, compute_agreement, default_labels_path, read_labels
from dialoom.runs.agreement.labels import LabelRow
from dialoom.runs.report.rater_agreement import (
    MISSING,
    Codes,
    cohen_kappa,
    fleiss_kappa,
    mean_cohen_kappa,
    observed_agreement,
)
from dialoom.runs.store import RunFile
from tests.conftest import Command, MadeOnce
from tests.programs import START_TIMEOUT_SECONDS
from tests.runs.stepping.played import dialogue, play, stepping

LEVELS = 5
_RANDOM = np.random.default_rng(4)
JUDGE: Codes = _RANDOM.integers(LEVELS, size=60)
NEAR: Codes = np.where(_RANDOM.random(60) < 0.7, JUDGE, _RANDOM.integers(LEVELS, size=60))
FAR: Codes = np.where(_RANDOM.random(60) < 0.3, JUDGE, _RANDOM.integers(LEVELS, size=60))


def _codes(text: str) -> Codes:
    return np.array([MISSING if letter == "-" else int(letter) for letter in text])


@pytest.mark.parametrize("weighted", [False, True])
def test_cohens_kappa_and_its_interval_equal_those_of_statsmodels(weighted: bool) -> None:
    table = np.zeros((LEVELS + 1, LEVELS + 1))
    for one, other in zip(JUDGE, FAR, strict=True):
        table[one, other] += 1
    expected = inter_rater.cohens_kappa(table, wt="quadratic" if weighted else None)
    actual = cohen_kappa(JUDGE, FAR, LEVELS + 1, weighted)
    assert actual is not None
    assert (actual.value, actual.low, actual.high) == pytest.approx(
        (expected.kappa, expected.kappa_low, expected.kappa_upp)
    )


def test_fleiss_kappa_equals_that_of_statsmodels() -> None:
    labels = np.column_stack([JUDGE, NEAR, FAR])
    kappa = fleiss_kappa(labels, LEVELS)
    assert kappa is not None
    assert kappa.value == pytest.approx(inter_rater.fleiss_kappa(inter_rater.aggregate_raters(labels)[0]))


def test_mean_is_over_annotators_and_bootstrapped_over_items() -> None:
    annotators = np.column_stack([NEAR, FAR])
    mean, near, far = (
        mean_cohen_kappa(JUDGE, annotators, LEVELS),
        cohen_kappa(JUDGE, NEAR, LEVELS),
        cohen_kappa(JUDGE, FAR, LEVELS),
    )
    assert mean is not None and near is not None and far is not None
    assert mean.value == pytest.approx((near.value + far.value) / 2)
    assert mean == mean_cohen_kappa(JUDGE, annotators, LEVELS)
    more = mean_cohen_kappa(np.tile(JUDGE, 4), np.tile(annotators, (4, 1)), LEVELS)
    assert more is not None
    assert more.value == pytest.approx(mean.value)
    assert more.low and more.high and mean.low and mean.high
    assert more.high - more.low < 0.7 * (mean.high - mean.low)


def test_intervals_contain_the_estimate() -> None:
    annotators = np.column_stack([NEAR, FAR])
    for kappa in (
        cohen_kappa(JUDGE, NEAR, LEVELS),
        cohen_kappa(JUDGE, NEAR, LEVELS, weighted=True),
        mean_cohen_kappa(JUDGE, annotators, LEVELS),
        mean_cohen_kappa(JUDGE, annotators, LEVELS, weighted=True),
        fleiss_kappa(annotators, LEVELS),
    ):
        assert kappa is not None and kappa.low is not None and kappa.high is not None
        assert -1 <= kappa.low < kappa.value < kappa.high <= 1


def test_prefeval_agreement_is_the_share_of_equal_answers() -> None:
    """The paper gives shares of 100 answers for each form (explicit, choice, persona), by checker."""
    paper = {
        "violates": (0.92, 0.86, 0.95),
        "acknowledges": (0.88, 0.90, 0.97),
        "hallucinates": (0.98, 0.96, 0.92),
        "helpful": (0.96, 0.93, 0.90),
    }
    judge = _codes("10" * 50)
    for shares in paper.values():
        for share in shares:
            other = round(100 * (1 - share))
            person = np.concatenate([1 - judge[:other], judge[other:]])
            assert observed_agreement(judge, person) == pytest.approx(share)


def test_full_agreement_is_one_and_its_opposite_minus_one() -> None:
    for other, value in (("0101", 1.0), ("1010", -1.0)):
        kappa = cohen_kappa(_codes("0101"), _codes(other), 2)
        assert kappa is not None
        assert kappa.value == pytest.approx(value)
        between = fleiss_kappa(np.column_stack([_codes("0101"), _codes(other)]), 2)
        assert between is not None
        assert between.value == pytest.approx(value)


def test_raters_of_a_single_value_have_no_kappa() -> None:
    """Kappa is None if a rater gives only one value, even where the formula would yield 0 or 1."""
    same, mixed = _codes("1111"), _codes("0110")
    assert cohen_kappa(same, same, 2) is None
    assert mean_cohen_kappa(same, np.column_stack([same, same]), 2) is None
    assert fleiss_kappa(np.column_stack([same, same]), 2) is None
    assert (
        cohen_kappa(same, mixed, 2) is cohen_kappa(mixed, same, 2) is cohen_kappa(_codes("0"), _codes("1"), 2) is None
    )
    assert mean_cohen_kappa(mixed, np.column_stack([same, same]), 2) is None
    assert fleiss_kappa(np.array([[0, 1]]), 2) is None


def test_meaningless_interval_is_none() -> None:
    few, many = _codes("0110"), _codes("01100101")
    other = _codes("01100110")
    for kappa in (
        cohen_kappa(few, _codes("0100"), 2),
        mean_cohen_kappa(few, np.column_stack([_codes("0100")]), 2),
        fleiss_kappa(np.column_stack([few, _codes("0100")]), 2),
        cohen_kappa(many, many, 2),
        mean_cohen_kappa(many, np.column_stack([many]), 2),
        fleiss_kappa(np.column_stack([many, many]), 2),
    ):
        assert kappa is not None
        assert kappa.low is kappa.high is None
    for kappa in (cohen_kappa(many, other, 2), fleiss_kappa(np.column_stack([many, other]), 2)):
        assert kappa is not None and kappa.low is not None and kappa.high is not None
        assert kappa.low < kappa.value < kappa.high


def test_missing_labels_are_left_out_of_every_pair() -> None:
    assert cohen_kappa(_codes("01-10"), _codes("0-110"), 2) == cohen_kappa(_codes("010"), _codes("010"), 2)
    assert cohen_kappa(_codes("--"), _codes("01"), 2) is None
    assert observed_agreement(_codes("--"), _codes("01")) is None
    assert fleiss_kappa(np.empty((0, 2), dtype=np.int64), 2) is None


def test_annotator_without_a_kappa_is_not_in_the_mean() -> None:
    judge, silent, defined = _codes("0011"), _codes("----"), _codes("0010")
    mean, alone = mean_cohen_kappa(judge, np.column_stack([silent, defined]), 2), cohen_kappa(judge, defined, 2)
    assert mean is not None and alone is not None
    assert mean.value == pytest.approx(alone.value)
    assert mean.skipped > 0, "some bootstrap samples of four items have a single value"


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=12))
def test_kappa_is_none_or_a_number_in_its_interval(pairs: list[tuple[int, int]]) -> None:
    """For any labels, kappa is None or a number from -1 to 1, never NaN."""
    first, second = np.array(pairs).T
    for weighted in (False, True):
        kappa = cohen_kappa(first, second, 4, weighted)
        if kappa is None:
            assert len({*first}) == 1 or len({*second}) == 1
            continue
        assert -1 - 1e-9 <= kappa.value <= 1 + 1e-9
        if kappa.low is not None and kappa.high is not None:
            assert -1 - 1e-9 <= kappa.low <= kappa.value + 1e-9
            assert kappa.value - 1e-9 <= kappa.high <= 1 + 1e-9


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", 1), ("NO", 0), ("True", 1), ("false", 0), ("1", 1), ("0", 0), ("maybe", None), ("2", None)],
)
def test_verdicts_are_parsed_in_several_spellings(text: str, value: int | None) -> None:
    scale = Scales({}).get("goal")
    if value is None:
        with pytest.raises(ValueError, match="is not yes or no"):
            scale.parse(text)
    else:
        assert scale.parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("5", 5), ("4.0", 4), ("0", None), ("6", None), ("3.5", None), ("yes", None), ("٣", None)],
)
def test_score_is_a_whole_number_on_the_scale(text: str, value: int | None) -> None:
    """4.0, as a spreadsheet writes it, is a whole number."""
    scale = Scales({"fit": (1, 5)}).get("fit")
    if value is None:
        with pytest.raises(ValueError, match="is not a whole number from 1 to 5"):
            scale.parse(text)
    else:
        assert scale.parse(text) == value


def test_judges_score_must_be_on_the_given_scale() -> None:
    score, verdict = Judgement(metric="fit", target="a", score=5), Judgement(metric="fit", target="a", score=True)
    assert Scales({}, ["fit=1-5"]).integer_score(score) == 5
    assert Scales({}).integer_score(verdict) == 1
    assert Scales({"fit": (1, 4)}, ["fit=0-10"]).integer_score(score) == 5
    assert Scales({}).integer_score(Judgement(metric="fit", target="a", status="unparsed")) is None
    for scales, judgement, message in (
        (Scales({}), score, "give fit=LOW-HIGH"),
        (Scales({"fit": (1, 4)}), score, "score 5 of fit is not a whole number from 1 to 4"),
        (Scales({"fit": (1, 5)}), Judgement(metric="fit", target="a", score=3.5), "3.5 of fit is not a whole number"),
        (Scales({"fit": (1, 5)}), verdict, "is a verdict"),
    ):
        with pytest.raises(DialoomError, match=message):
            scales.integer_score(judgement)
    for wrong in ("fit", "fit=5-1", "fit=a-b", "=1-5"):
        with pytest.raises(DialoomError, match="METRIC=LOW-HIGH"):
            Scales({}, [wrong])


def test_turn_ends_with_the_targets_message() -> None:
    roles = ("user", "assistant", "user", "assistant", "user")
    outcome = Outcome(messages=tuple(Line(role=role, content=str(n)) for n, role in enumerate(roles)), ended_by="x")
    for target, turn, length in (
        ("assistant", None, 5),
        ("assistant", 1, 2),
        ("assistant", 2, 4),
        ("user", 2, 3),
        ("pair", 2, 3),
        ("assistant", 9, 5),
    ):
        assert len(select_judged_messages(outcome, Judgement(metric="m", target=target, turn=turn))) == length


def _write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("item,label:anna,label:ben\na/1,3,\n,,\na/2,,4\n", "utf-8"),
        ("item,label:anna,label:ben\r\na/1,3\r\na/2,,4\r\n", "utf-8-sig"),
        ('"item";"Label: anna";"label:ben"\n"a/1";3;""\na/2; ;4\n', "utf-8"),
        ("notes\tItem\tlabel:anna\tlabel:ben\nthis, that\ta/1\t3\t\n\ta/2\t\t4\n", "utf-8"),
        ('conversation,item,label:anna,label:ben\n"one\ntwo ""três""\n",a/1,3,\nx,a/2,,4\n', "utf-8"),
    ],
    ids=["plain", "CRLF, byte order mark, short row", "semicolons", "tabs", "multi-line text"],
)
def test_labels_are_read_as_spreadsheets_write_them(text: str, encoding: str, tmp_path: Path) -> None:
    labels = read_labels(_write(tmp_path / "labels.csv", text, encoding))
    assert labels.annotators == ("anna", "ben")
    assert {row.item: row.cells for row in labels.rows} == {"a/1": ("3", ""), "a/2": ("", "4")}
    assert read_labels(tmp_path / "labels.csv", ["ben"]).annotators == ("ben",)


def test_long_conversation_fits_in_a_cell(tmp_path: Path) -> None:
    path = _write(tmp_path / "labels.csv", f'item,conversation,label:anna\na/1,"{"word, " * 50_000}",3\n')
    assert read_labels(path).rows == (LabelRow("a/1", "", 2, ("3",)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("name,label:anna\na/1,3\n", ":1: no column 'item' in the header"),
        ("item,anna\na/1,3\n", ":1: there is no annotator's column"),
        ("item,label:\na/1,3\n", ":1: the column 'label:' has no annotator's name"),
        ("item,label:anna,label:anna\na/1,3,3\n", ":1: two columns are named label:anna"),
        ('item,text,label:anna\na/1,"x\ny",3\na/2,z,3\na/1,x,4\n', ":5: item 'a/1' is already on line 2"),
        ("item,label:anna\n,3\n", ":2: this row has no 'item'"),
        ("item,label:anna\na/1,3,4\n", ":2: 3 cells under 2 columns"),
        ("item,label:anna\na/1,\na/2, \n", "there is no label in label:anna"),
        ("item,label:anna,anna\na/1,,3\n", "the column 'anna' is not read: rename it to label:anna"),
        ('item,label:anna\na/1,3\na/2,"4\n', ":3: not a valid CSV file: unexpected end of data"),
        ("item,label:anna\na/1,3\0\n", ":2: not a text file"),
        ("item,label:ben,lable:anna\na/1,3,3\n", ":1: the column 'lable:anna' is not read: rename it to label:NAME"),
        ("item,label:ben,labels_anna\na/1,3,3\n", ":1: the column 'labels_anna' is not read"),
        ("item,label:ben,label\na/1,3,3\n", ":1: the column 'label' is not read"),
    ],
)
def test_invalid_label_file_is_refused_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "labels.csv", text)
    with pytest.raises(DataError) as caught:
        read_labels(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_wrong_encoding_and_unknown_names_are_reported(tmp_path: Path) -> None:
    path = _write(tmp_path / "labels.csv", "item,text,label:anna\na/1,ok,3\na/2,café,3\n", "cp1252")
    with pytest.raises(DataError, match=r":3: not UTF-8: byte 0xe9; save it as UTF-8"):
        read_labels(path)
    with pytest.raises(DataError, match="there is no such file"):
        read_labels(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="no column label:zoe; there are label:anna"):
        read_labels(_write(path, "item,label:anna\na/1,3\n"), ["zoe"])


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def _items(run: Run) -> list[str]:
    shown = run.conversation(1)
    return [item.id for item in (*(item for each in shown.messages for item in each.judged), *shown.judged)]


def test_single_labels_are_read_as_those_of_a_sample(made_once: MadeOnce) -> None:
    path = play(made_once, "aloe-eval")
    run = opened(path)
    items = _items(run)
    for item, label in zip(items, ("4", "3", "5"), strict=False):
        run.label(1, item, "anna", label)
    run.label(1, items[0], "ben", "2")
    run.label(1, items[0], "anna", "1")
    assert run.labels("anna") == dict(zip(items, ("1", "3", "5"), strict=False))
    assert run.labels("nobody") == {}
    labels = read_labels(default_labels_path(path))
    assert labels.annotators == ("anna", "ben")
    with RunFile(path) as file:
        found = compute_agreement(file, labels)
    assert [group.cohen["anna"].n for group in found.groups] == [3]
    row = _rows(default_labels_path(path))[0]
    assert row["scale"] == "1 to 5" and "user: " in row["conversation"]


def test_sample_is_filled_in_place(made_once: MadeOnce, dialoom: Command, tmp_path: Path) -> None:
    path = play(made_once, "aloe-eval")
    dialoom("agree", path, "--sample", 2, "-o", "labels.csv", "--annotators", "anna,ben")
    labels = LabelFile(tmp_path / "labels.csv")
    first, second = [row["item"] for row in _rows(labels.path)]
    with RunFile(path) as run:
        labels.put(run, 0, second, "ben", "3")
        labels.put(run, 0, first, "anna", "2")
        labels.put(run, 0, first, "anna", "")
        assert list(labels.iter_labels(run, "anna")) == []
        assert list(labels.iter_labels(run, "ben")) == [StoredLabel(0, second, "3", is_earlier=False)]
    filled = _rows(labels.path)
    assert [(row["item"], row["label:anna"], row["label:ben"]) for row in filled] == [
        (first, "", ""),
        (second, "", "3"),
    ]


@pytest.mark.parametrize(
    ("item", "annotator", "label", "message"),
    [
        ("no/such/item", "anna", "1", "no judgement with this id"),
        (None, " ", "1", "name of the person who labels"),
        (None, "anna", "6", "'6' is not a whole number from 1 to 5"),
        (None, "anna", "=1", "'=1' is not a whole number"),
    ],
)
def test_impossible_label_is_refused_and_not_written(
    made_once: MadeOnce, item: str | None, annotator: str, label: str, message: str
) -> None:
    run = opened(play(made_once, "aloe-eval"))
    with pytest.raises(DialoomError, match=message):
        run.label(1, item or _items(run)[0], annotator, label)
    assert not default_labels_path(run.path).exists()


async def _promote_a_fork(stepper: Stepper) -> None:
    await stepper.goto(3)
    branch = await stepper.fork("other")
    await branch.say("user", "Something else, please.")
    await branch.run()
    await branch.promote()


async def _promote_the_original(stepper: Stepper) -> None:
    await stepper.promote()


def test_labels_count_for_the_conversation_they_were_given_to(made_once: MadeOnce, dialoom: Command) -> None:
    path = dialogue(made_once)
    run, (item, *_) = opened(path), _items(opened(path))
    run.label(1, item, "anna", "yes")
    stepping(path, _promote_a_fork)
    assert run.labels("anna") == {}
    assert [(each.item, each.label, each.is_earlier) for each in run.given_labels("anna", 1)] == [(item, "yes", True)]
    output = dialoom("agree", path, "--labels", default_labels_path(path)).stdout
    assert "given to an earlier conversation, left out: 1, of 1 scenario" in output and "judge, anna" not in output
    run.label(1, item, "anna", "no")
    assert run.labels("anna") == {item: "no"}
    found = run.agreement()
    assert [group.cohen["anna"].n for group in found.groups] == [1] and found.earlier.count == 1
    stepping(path, _promote_the_original)
    assert run.labels("anna") == {item: "yes"}
    run.label(1, item, "anna", True)
    assert run.labels("anna") == {item: "True"}, "a label need not be a text"
    run.label(1, item, "anna", "")
    assert run.labels("anna") == {} and [each.label for each in run.given_labels("anna")] == ["no"]


def test_label_counts_for_every_judgement_set_and_without_a_digest(
    made_once: MadeOnce, dialoom: Command, tmp_path: Path
) -> None:
    path = dialogue(made_once)
    run, (item, *_) = opened(path), _items(opened(path))
    dialoom("judge", path, "--name", "second", "--model", "offline/attentive")
    run.label(1, item, "anna", "yes")
    assert [group.cohen["anna"].n for group in run.agreement(judging="second").groups] == [1]
    bare = tmp_path / "bare.csv"
    bare.write_text(f"item,label:ben\n{item},no\n")
    stepping(path, _promote_a_fork)
    assert run.labels("ben", path=bare) == {item: "no"}
    assert run.agreement(path=bare).earlier.count == 0
    run.label(1, item, "anna", "yes", path=bare)
    assert run.labels("anna", path=bare) == {item: "yes"} and run.labels("ben", path=bare) == {item: "no"}


def test_pairs_of_one_round_have_different_ids(made_once: MadeOnce, dialoom: Command, tmp_path: Path) -> None:
    path = play(made_once, "aloe")
    dialoom("agree", path, "--sample", 50, "-o", "s.csv")
    rows = [row for row in _rows(tmp_path / "s.csv") if row["turn"] == "2"]
    assert len(rows) == 2
    assert rows[0]["conversation"] != rows[1]["conversation"] and rows[0]["digest"] != rows[1]["digest"]


def test_scenario_is_labelled_when_all_chosen_metrics_are(made_once: MadeOnce, dialoom: Command) -> None:
    path = dialogue(made_once)
    run = opened(path)
    items = _items(run)
    whole = [item for item in items if item.endswith("/task_completion/assistant")]
    run.label(1, whole[0], "anna", "yes")
    found = run.labelled("anna")[0]
    assert (found.labelled, found.total, found.is_complete) == (1, len(items), False)
    assert run.labelled("anna", metrics=["task_completion"])[0].is_complete
    assert run.labelled("anna", metrics=["personalization"]) == {}
    listed = dialoom("show", path, "--labelled-by", "anna").stdout
    assert "done" not in listed
    for item in items[1:]:
        run.label(1, item, "anna", "yes" if item.endswith("/task_completion/assistant") else "3")
    run.label(1, items[0], "anna", "yes" if items[0] in whole else "3")
    assert run.labelled("anna")[0].is_complete
    assert "done" in dialoom("show", path, "--labelled-by", "anna").stdout


_LABELLING = """
import sys, dialoom
run = dialoom.open_run("run.db")
for item in run.conversation(1).judged * 4:
    run.label(1, item.id, sys.argv[1], "yes" if item.judgement.metric == "task_completion" else "3")
"""


def test_processes_that_label_at_the_same_time_lose_no_label(made_once: MadeOnce) -> None:
    path = dialogue(made_once)
    names = ["ann", "bo", "cy"]
    started = [subprocess.Popen([sys.executable, "-c", _LABELLING, name], cwd=path.parent) for name in names]
    assert [each.wait(START_TIMEOUT_SECONDS) for each in started] == [0, 0, 0]
    run = opened(path)
    expected = {item.id for item in run.conversation(1).judged}
    assert [set(run.labels(name)) for name in names] == [expected] * 3
