"""Calibrated scores: bias and coverage with accurate and inaccurate judges; reports, frames and samples."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dialoom
from dialoom import DialoomError, Run
from dialoom.graphs.tables.statistics import student_quantile, wilson
from dialoom.runs.agreement.calibration import (
    Calibration,
    Strata,
    calibrate,
    design_effect,
    labels_to_halve_interval,
    strata_limit,
    stratify,
)
from tests.conftest import Command

REPETITIONS, ITEMS = 4_000, (400, 2_000)
JUDGES = {
    "strict": (0.7, 0.95),
    "lenient": (0.97, 0.6),
    "biased": (0.9, 0.7),
    "nearly right": (1.0, 0.97),
    "right": (1.0, 1.0),
    "chance": (0.5, 0.5),
    "inverted": (0.2, 0.3),
    "constant": (1.0, 0.0),
    "mostly no": (0.1, 0.9),
}
"""Sensitivity and specificity of the judges, relative to people's verdicts."""
Counts = NDArray[np.int64]


def _draw_sample(draw: np.random.Generator, kinds: Counts, size: int, stratified_sample: bool) -> tuple[Strata, Counts]:
    """Return a labelled sample of items (counts by the two verdicts), and the true labels of a simple random sample."""
    said_yes, said_no = kinds[:, 0] + kinds[:, 1], kinds[:, 2] + kinds[:, 3]
    if stratified_sample:
        asked = np.rint(size * said_yes / kinds.sum(1)).astype(np.int64)
        asked = np.clip(asked, np.minimum(2, said_yes), size - np.minimum(2, said_no))
    else:
        asked = draw.hypergeometric(said_yes, said_no, size)
    labels = np.stack([size - asked, asked], axis=1)
    true = [draw.hypergeometric(kinds[:, at], kinds[:, at + 1], labels[:, side]) for side, at in ((0, 2), (1, 0))]
    sums = np.stack(true, axis=1)
    simple = draw.hypergeometric(kinds[:, 0] + kinds[:, 2], kinds[:, 1] + kinds[:, 3], size)
    items = np.stack([said_no, said_yes], axis=1)
    return Strata(*(each.astype(float) for each in (items, labels, sums, sums))), simple


def _wilson_width(true: Counts, n: int) -> float:
    """Return the mean width of Wilson's interval, computed independently of the product."""
    share, z = true / n, 1.959964
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    return float((np.minimum(1, middle + half) - np.maximum(0, middle - half)).mean())


def _covers(found: Calibration, truth: float) -> float:
    return float(((found.low <= truth) & (truth <= found.high)).mean())


@pytest.mark.parametrize("base_rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("size", [30, 100, 300])
def test_intervals_of_shares_cover_the_truth_and_are_no_wider_than_those_of_labels(size: int, base_rate: float) -> None:
    """Nine judges, two numbers of items, and simple and stratified samples are simulated 4,000 times each."""
    draw = np.random.default_rng(1000 * size + round(100 * base_rate))
    relative_widths = []
    for (sensitivity, specificity), items, is_stratified in (
        (judge, items, sample) for judge in JUDGES.values() for items in ITEMS for sample in (False, True)
    ):
        shares = [base_rate * sensitivity, (1 - base_rate) * (1 - specificity)]
        shares += [base_rate * (1 - sensitivity), (1 - base_rate) * specificity]
        strata, simple = _draw_sample(draw, draw.multinomial(items, shares, REPETITIONS), size, is_stratified)
        found = calibrate(strata)
        where = (sensitivity, specificity, items, is_stratified)
        assert _covers(found, base_rate) >= 0.94, where
        width, alone = (
            float(each.mean()) for each in (found.high - found.low, found.labels_only_high - found.labels_only_low)
        )
        assert width <= 1.02 * alone, where
        # Five standard errors; a simple sample of 30 may have no label of a rare score.
        error = 5 * float(found.mean.std()) / REPETITIONS**0.5 + (1e-9 if is_stratified or size > 30 else 0.01)
        assert abs(float(found.mean.mean()) - base_rate) < error, where
        relative_widths.append(width / _wilson_width(simple, size))
        assert relative_widths[-1] <= 1.04, where
    assert np.mean(relative_widths) <= 1.02
    assert min(relative_widths) < 0.6, "an accurate judge narrows the interval"


SHAPES = {"even": [0.2] * 5, "middle": [0.02, 0.1, 0.7, 0.15, 0.03], "two": [0.1, 0, 0, 0, 0.9]}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("size", [30, 100])
def test_intervals_of_scores_cover_the_truth(size: int, shape: list[float]) -> None:
    draw = np.random.default_rng(size)
    covered, widths, alone = 0, 0.0, 0.0
    truth = float(np.dot(shape, np.arange(5))) / 4
    repetitions = 500
    for _ in range(repetitions):
        people = draw.choice(5, 600, p=shape)
        judge = np.where(draw.random(600) < 0.7, np.maximum(people - 1, 0), draw.integers(0, 5, 600))
        chosen = draw.choice(600, size, replace=False)
        labels: dict[tuple[float, ...], list[float]] = {}
        for each in chosen:
            labels.setdefault((float(judge[each]),), []).append(people[each] / 4)
        strata, _ = stratify(Counter((float(each),) for each in judge), labels, max_strata=strata_limit(size))
        found = calibrate(strata, step=0.25, quantile=max(2.0, student_quantile(size - 1)))
        covered += bool(found.low <= truth <= found.high)
        widths += float(found.high - found.low)
        alone += float(found.labels_only_high - found.labels_only_low)
    assert covered / repetitions >= 0.92, "500 repetitions determine a coverage of 95 % to within two points"
    assert widths < 0.95 * alone


def test_mean_of_verdicts_equals_that_of_ppi_with_the_tuned_weight() -> None:
    """The mean of PPI++ is that of the labels plus lambda times the difference of the judge's means."""
    draw = np.random.default_rng(3)
    judge = draw.random(200) < 0.4
    people = np.where(draw.random(40) < 0.8, judge[:40], ~judge[:40])
    weight = np.cov(people, judge[:40])[0, 1] / judge[:40].var(ddof=1)
    labels: dict[tuple[float, ...], list[float]] = {
        (float(said),): [float(p) for p, j in zip(people, judge, strict=False) if j == said] for said in (0, 1)
    }
    strata, _ = stratify(Counter((float(said),) for said in judge), labels, max_strata=2)
    expected = people.mean() + weight * (judge.mean() - judge[:40].mean())
    assert float(calibrate(strata).mean) == pytest.approx(expected)


def test_quantiles_equal_those_of_students_t() -> None:
    from scipy.stats import t  # type: ignore[import-untyped]

    assert [student_quantile(degrees) for degrees in (4, 5, 10, 100)] == pytest.approx(
        [t.ppf(0.975, degrees) for degrees in (4, 5, 10, 100)], abs=0.01
    )


def test_scores_without_labels_join_the_nearest_and_labels_keep_their_weight() -> None:
    items: dict[tuple[float, ...], int] = {(1.0,): 50, (2.0,): 10, (5.0,): 40}
    strata, groups = stratify(items, {(1.0,): [0.0, 0.0], (5.0,): [1.0, 0.5]}, max_strata=5)
    assert groups == [[(1.0,), (2.0,)], [(5.0,)]]
    assert strata.items.tolist() == [60, 40] and strata.labels.tolist() == [2, 2]
    assert float(calibrate(strata).mean) == pytest.approx(0.4 * 0.75)
    strata, _ = stratify({(1.0,): 90, (2.0,): 10}, {(1.0,): [0.0, 0.0], (2.0,): [1.0, 1.0]}, max_strata=1)
    assert float(calibrate(strata).mean) == pytest.approx(0.1)
    assert strata.labels[0] < 4, "labels of unequal weight have a smaller effective number"


@pytest.mark.parametrize("labels", [[0.5] * 30, [0.4] * 7, [0.5] * 8 + [1.0] * 2])
def test_judge_with_a_single_score_adds_nothing_to_equal_or_averaged_labels(labels: list[float]) -> None:
    """The mean of two annotators' labels varies less than a single label could."""
    strata, _ = stratify({(1.0,): 60}, {(1.0,): labels}, max_strata=3)
    found = calibrate(strata, step=1.0 if 1.0 in labels else 0.25)
    assert float(found.low) == pytest.approx(float(found.labels_only_low))
    assert float(found.high) == pytest.approx(float(found.labels_only_high))
    assert float(found.high) - float(found.low) > 0.03
    assert float(found.effective_labels) == pytest.approx(len(labels))


def test_labels_of_one_unit_count_together() -> None:
    values = [("ada", 1.0), ("ada", 1.0), ("bo", 0.0), ("bo", 0.0)]
    assert design_effect(values, 0.5) == 2
    assert design_effect([(str(number), value) for number, (_, value) in enumerate(values)], 0.5) == 1
    strata = Strata(*(np.array([each]) for each in (100.0, 40.0, 20.0, 20.0)))
    alone, clustered = calibrate(strata), calibrate(strata, designs=(2, 2, 2))
    assert float(clustered.high - clustered.low) > 1.3 * float(alone.high - alone.low)


def test_more_labels_is_the_number_that_quarters_the_variance_or_none() -> None:
    def found(fixed: float) -> Calibration:
        return Calibration(*(np.array(each) for each in (0.5, 0.4, 0.6, 0.5, 0.4, 0.6, 30, fixed)))

    assert labels_to_halve_interval(found(0.0), 30, 1000) == 90
    assert labels_to_halve_interval(found(0.1), 30, 1000) == 150
    assert labels_to_halve_interval(found(0.0), 30, 100) is None
    assert labels_to_halve_interval(found(0.3), 30, 1000) is None


async def _user(messages: list[Any]) -> str:
    return "DONE" if sum(each["role"] == "assistant" for each in messages) else "I want my money back."


def _judged(
    folder: Path,
    name: str,
    yes: Callable[[int], bool],
    people: int = 60,
    user: Any = _user,
    is_by_turn: bool = False,
    **settings: Any,
) -> Run:
    """Return a run in which the judge says yes about the people whose number satisfies `yes`."""

    async def judge(messages: list[Any]) -> str:
        number = int(str(messages).rpartition("number ")[2].split()[0])
        return '{"explanation": "So it seems.", "verdict": %s}' % ("true" if yes(number) else "false")

    async def assistant(_messages: list[Any]) -> str:
        return f"By {name}."

    return dialoom.simulate(
        people=[{"number": each} for each in range(people)],
        assistant=assistant,
        user=user,
        judge=judge,
        judges=[
            dialoom.Judge("paid", rubric="The money was paid to number {{ person.number }} .", per_turn=is_by_turn)
        ],
        path=folder / f"{name}.db",
        **settings,
    )


def _label(run: Run, path: Path, yes: Callable[[int], bool], size: int) -> list[dict[str, str]]:
    """Draw a sample and label it by the people's numbers."""
    run.sample_to_label(path, size, ["anna"])
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        number = int(row["about"].partition("number: ")[2].split()[0])
        row["label:anna"] = "yes" if yes(number) else "no"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_lenient_judge_is_corrected_in_reports_and_frames(tmp_path: Path, dialoom: Command) -> None:
    run = _judged(tmp_path, "run", lambda number: number % 3 < 2)
    rows = _label(run, tmp_path / "run.labels.csv", lambda number: number % 3 == 0, 30)
    scores = {each.id: each.outcome.judgements[0].score for each in run.episodes()}
    assert Counter(scores[row["scenario"]] for row in rows) == {True: 20, False: 10}
    table = run.report(labels=True)["calibrated"]
    row: Any = table.rows[0]
    assert len(table.rows) == 1
    metric, labels, judge, calibrated, alone, worth, more = row
    said = sum(r["label:anna"] == "yes" for r in rows) / 20
    assert metric == "paid (assistant)" and labels == 30
    assert judge.mean == pytest.approx(2 / 3) and calibrated.mean == pytest.approx(said * 2 / 3)
    assert calibrated.low < 1 / 3 < calibrated.high < judge.mean
    assert calibrated.high - calibrated.low < alone.high - alone.low and calibrated.n == 60 and alone.n == 30
    assert worth > 30 and more is None
    assert "prediction-powered" in " ".join(table.notes)
    frame = run.frame("calibrated").to_dict("records")
    assert [(each["metric"], each["mean"], each["alone"]) for each in frame] == [("paid", calibrated.mean, alone.mean)]
    printed = dialoom("report", "run.db", "--trust", "--calibrated", "--table", "calibrated").stdout
    assert (
        "Calibrated scores" in printed
        and "paid (assistant) %" in printed
        and f" {100 * calibrated.mean:.1f} " in printed
        and "Scores\n" not in printed
    )
    (tmp_path / "run.labels.csv").rename(tmp_path / "own.csv")
    assert (
        f" {100 * calibrated.mean:.1f} "
        in dialoom("report", "run.db", "--trust", "--calibrated", "--labels", "own.csv", "--table", "calibrated").stdout
    )
    assert "--calibrated" in dialoom("report", "run.db", "--labels", "own.csv", code=2).stderr
    output = dialoom("report", "run.db", "--trust", "--calibrated", code=2).stderr
    assert "--labels must be the path of a file of people's labels, as there is no run.labels.csv" in output


def test_judge_has_the_interval_of_other_tables_which_counts_trials_once(tmp_path: Path) -> None:
    run = _judged(tmp_path, "run", lambda number: number % 4 > 0, people=20, trials=3)
    _label(run, tmp_path / "run.labels.csv", lambda number: number % 4 > 1, 30)
    judge: Any = run.report(labels=True)["calibrated"].rows[0][2]
    (required,) = run.require("paid >= 1%", allow=["unhealthy"])
    assert required.estimate is not None and judge.n == 60
    assert (judge.mean, judge.low, judge.high) == pytest.approx(
        (required.estimate.mean, required.estimate.low, required.estimate.high)
    )


def test_judge_has_the_interval_of_other_tables_which_counts_turns_once(tmp_path: Path) -> None:
    async def user(messages: list[Any]) -> str:
        return f"I want my money back, {len(messages)}."

    run = _judged(tmp_path, "run", lambda _: True, people=20, user=user, is_by_turn=True, max_turns=3)
    _label(run, tmp_path / "run.labels.csv", lambda number: number % 4 > 1, 30)
    judge: Any = run.report(labels=True)["calibrated"].rows[0][2]
    (required,) = run.require("paid >= 1%", allow=["unhealthy"])
    assert required.estimate is not None and judge.n == 60
    assert (judge.low, judge.high) == (required.estimate.low, required.estimate.high) == wilson(1.0, 20)


def test_equal_scores_of_a_check_are_not_marked(tmp_path: Path) -> None:
    run = _judged(tmp_path, "run", lambda _: True, people=8, checks=[dialoom.Check("said", lambda _: True)])
    items = [f"{each.id}/{metric}/assistant,yes" for each in run.episodes() for metric in ("paid", "said")]
    (tmp_path / "run.labels.csv").write_text("\n".join(["item,label:anna", *items]))
    rows: list[Any] = run.report(labels=True)["calibrated"].rows
    assert {row[0]: row[2].is_constant for row in rows} == {"paid (assistant)": True, "said (assistant)": None}


def test_estimate_from_labels_alone_is_their_mean_when_scores_are_merged(tmp_path: Path) -> None:
    async def judge(messages: list[Any]) -> str:
        (number,) = map(int, re.findall(r"to number (\d+) ", str(messages)))
        return f'{{"explanation": "So it seems.", "score": {1 + number % 5}}}'

    run = dialoom.simulate(
        people=[{"number": each} for each in range(60)],
        assistant=_user,
        user=_user,
        judge=judge,
        judges=[dialoom.Judge("paid", rubric="The money was paid to number {{ person.number }} .", scale=(1, 5))],
        path=tmp_path / "run.db",
    )
    run.sample_to_label(tmp_path / "run.labels.csv", 20, ["anna"])
    with (tmp_path / "run.labels.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    given = [5 if place < 3 else 1 + place % 3 for place, _ in enumerate(rows)]
    rows = [{**row, "label:anna": str(label)} for row, label in zip(rows, given, strict=True)][:17]
    with (tmp_path / "run.labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    row: Any = run.report(labels=True)["calibrated"].rows[0]
    assert row[1] == 17 and row[4].mean == pytest.approx(sum(given[:17]) / 17)


def test_differences_between_runs_use_the_same_labelled_items_if_there_are_enough(tmp_path: Path) -> None:
    one = _judged(tmp_path, "one", lambda number: number % 3 < 2)
    two = _judged(tmp_path, "two", lambda number: number % 3 < 2 or number % 2 == 0)
    _label(one, tmp_path / "one.labels.csv", lambda number: number % 3 == 0, 60)
    _label(two, tmp_path / "two.labels.csv", lambda number: number % 3 == 0 or number % 2 == 0, 60)
    found = dialoom.report(one, two, labels=True)
    row: Any = found["calibrated-differences"].rows[0]
    assert row[1:4] == ["paid (assistant)", "yes", 60]
    truth = sum(number % 3 and not number % 2 for number in range(60)) / 60
    assert row[5].mean == pytest.approx(truth) and row[5].low < truth < row[5].high
    assert len(found["calibrated"].rows) == 2
    _keep(tmp_path / "one.labels.csv", tmp_path / "even.csv", 0)
    _keep(tmp_path / "two.labels.csv", tmp_path / "odd.csv", 1)
    found = dialoom.report(one, two, labels=[tmp_path / "even.csv", tmp_path / "odd.csv"])
    row = found["calibrated-differences"].rows[0]
    assert row[2] == "no" and row[5].low < row[5].mean < row[5].high
    with pytest.raises(DialoomError, match="1 files for 2 runs"):
        dialoom.report(one, two, labels=tmp_path / "odd.csv")


def test_difference_from_a_run_of_a_stand_in_says_so(tmp_path: Path) -> None:
    async def judge(messages: list[Any]) -> str:
        return f'{{"explanation": "So it seems.", "verdict": {str(len(str(messages)) % 2 == 0).lower()}}}'

    runs = []
    for name, assistant in (("one", "offline/placeholder"), ("two", _user)):
        run = dialoom.simulate(
            people=[{"number": each} for each in range(12)],
            assistant=assistant,
            user=_user,
            judge=judge,
            judges=[dialoom.Judge("paid", rubric="The money was paid to number {{ person.number }} .")],
            path=tmp_path / f"{name}.db",
        )
        labels = [
            f"{each.id}/paid/assistant,{'yes' if place % 3 else 'no'}" for place, each in enumerate(run.episodes())
        ]
        (tmp_path / f"{name}.labels.csv").write_text("\n".join(["item,label:anna", *labels]))
        runs.append(run)
    found = dialoom.report(*runs, labels=True)
    assert [row[-1] for row in found["calibrated"].rows] == ["assistant", None]
    assert [row[-1] for row in found["calibrated-differences"].rows] == ["assistant"]


def _keep(path: Path, target: Path, side: int) -> None:
    """Write the rows of a labels file about people with even numbers, or with odd ones."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if int(row["about"].partition("number: ")[2].split()[0]) % 2 == side]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
