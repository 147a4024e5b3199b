"""The ALOE benchmark: conversations, judgements, and statistics against the paper's figures."""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialoom
from dialoom import Episode, Judgement, Line, Outcome
from dialoom.graphs import Estimate
from dialoom.graphs.aloe_eval import RECIPE, Alignment, Scores
from tests.conftest import Command, read_jsonl
from tests.graphs.aloe.players import cast
from tests.graphs.support import linked_columns
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER

TABLE_1 = {
    "Qwen2 base": "2.87 2.94 2.88 3.10 3.65 4.13 4.50 4.65 4.63 4.70 | 3.81 0.254 0.138 0.917",
    "Qwen2 ours": "4.05 4.26 4.66 4.86 4.93 4.95 4.98 4.98 4.98 4.98 | 4.76 0.093 0.099 0.695",
    "Qwen2 preferred": "4.12 4.18 4.38 4.52 4.53 4.56 4.81 4.90 4.86 4.83 | 4.57 0.089 0.114 0.912",
    "Qwen2 rejected": "3.80 3.82 4.04 4.11 4.16 4.25 4.43 4.46 4.14 4.35 | 4.16 0.063 0.095 0.690",
    "Llama-3 base": "3.38 3.35 3.40 3.48 3.45 3.48 3.41 3.45 3.35 3.46 | 3.42 0.005 0.037 0.084",
    "Llama-3 ours": "4.06 4.14 4.17 4.15 4.17 4.19 4.22 4.23 4.20 4.29 | 4.18 0.018 0.080 0.819",
    "Llama-3 preferred": "4.21 4.10 4.07 4.19 4.07 4.21 4.18 4.22 4.14 4.22 | 4.16 0.007 0.050 0.136",
    "Llama-3 rejected": "3.80 3.72 3.63 3.94 3.65 3.66 3.73 3.99 3.93 3.94 | 3.80 0.024 0.066 0.266",
    "Mistral base": "3.40 3.62 3.62 3.47 3.38 3.43 3.35 3.54 3.61 3.68 | 3.51 0.011 0.032 0.072",
    "Mistral ours": "3.85 3.85 3.98 3.91 4.26 4.17 4.35 4.52 4.57 4.60 | 4.21 0.095 0.127 0.932",
    "Mistral preferred": "3.64 3.69 3.75 3.75 3.88 3.89 3.85 4.03 3.93 4.08 | 3.85 0.045 0.102 0.890",
    "Mistral rejected": "3.59 3.40 3.69 3.36 3.35 3.32 3.36 3.56 3.68 3.78 | 3.51 0.018 0.040 0.103",
    "OLMo base": "2.55 2.69 2.99 3.26 3.17 3.07 2.82 2.80 2.74 2.82 | 2.89 0.002 0.003 0.001",
    "OLMo ours": "4.23 4.14 4.38 4.64 4.84 4.83 4.85 4.86 4.88 4.88 | 4.65 0.084 0.114 0.771",
    "OLMo preferred": "3.51 3.19 3.27 3.80 3.61 3.39 4.00 3.90 4.08 4.15 | 3.69 0.094 0.098 0.681",
    "OLMo rejected": "3.26 3.16 3.12 3.11 3.26 3.23 3.06 3.11 3.97 3.79 | 3.31 0.062 0.068 0.360",
}
"""Levels | average, IR, N-IR, R^2, as printed."""

PRINTED = (0.005, 0.0005, 0.001, 0.0005)
"""Tolerances between the printed figures and those of the printed levels."""

WIDER = {"Qwen2 ours": (0.005, 0.0005, 0.0014, 0.0005), "OLMo ours": (0.005, 0.0013, 0.0013, 0.0085)}
"""Tolerances of two rows whose printed levels, rounded to 0.01, do not give the printed figures to the last digit.

Qwen2's give an N-IR of 0.1003, and their range (0.93) is known only to 0.01. OLMo's give 0.0852, 0.1151 and 0.779:
rounding errors of up to 0.005 each change the slope by up to 0.0015 and R^2 by up to 0.0125.
"""


@pytest.fixture(scope="module")
def reduced_resamples() -> Iterator[None]:
    """Reduce the number of resamples to a twentieth, for tests that do not depend on the intervals' width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dialoom.graphs.aloe_eval.RESAMPLES", 100)
        yield


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1_of_the_paper_is_reproduced(name: str) -> None:
    levels, printed = (list(map(float, part.split())) for part in TABLE_1[name].split("|"))
    found = _fitted(levels)
    figures = (found.average, found.rate, found.normalized_rate, found.r_squared)
    for figure, expected, tolerance in zip(figures, printed, WIDER.get(name, PRINTED), strict=True):
        assert figure is not None
        assert abs(figure.mean - expected) <= tolerance + 1e-9


@settings(max_examples=40)
@pytest.mark.usefixtures("reduced_resamples")
@given(st.lists(st.floats(min_value=1, max_value=5), min_size=2, max_size=12))
def test_line_equals_that_of_the_standard_library(levels: list[float]) -> None:
    """Slope, intercept and R^2 equal those of `statistics`; N-IR is the slope of the normalized levels."""
    found = _fitted(levels)
    rounds = range(1, len(levels) + 1)
    slope, intercept = statistics.linear_regression(rounds, levels)
    assert _mean(found.rate) == pytest.approx(slope, abs=1e-9)
    assert found.intercept == pytest.approx(intercept, abs=1e-9)
    low, high = min(levels), max(levels)
    if high - low > 1e-6:
        normalized = [(level - low) / (high - low) for level in levels]
        assert _mean(found.normalized_rate) == pytest.approx(
            statistics.linear_regression(rounds, normalized)[0], abs=1e-6
        )
        assert _mean(found.r_squared) == pytest.approx(statistics.correlation(rounds, levels) ** 2, abs=1e-6)


def test_flat_levels_have_slope_zero_and_no_normalized_level() -> None:
    """N-IR and R^2 are None, neither 0 nor NaN, also where sums of equal levels are inexact."""
    found = _fitted([3.3] * 10)
    assert _mean(found.rate) == 0.0
    assert found.normalized_rate is None
    assert found.r_squared is None


def test_missing_rounds_are_skipped_and_one_round_has_no_slope() -> None:
    found = _fitted([1.0, None, 2.0, None, 3.0])
    assert (_mean(found.average), _mean(found.rate), found.intercept) == pytest.approx((2.0, 0.5, 0.5))
    assert (_mean(found.normalized_rate), _mean(found.r_squared)) == pytest.approx((0.25, 1.0))
    alone = _fitted([None, 4.0])
    assert (_mean(alone.average), alone.rate, alone.intercept, alone.normalized_rate) == (4.0, None, None, None)
    assert _scores([{}, {}]).alignment() is None


def _fitted(levels: Sequence[float | None]) -> Alignment:
    """Return the figures of a single dialogue with these scores."""
    found = _scores([{k: level for k, level in enumerate(levels, start=1) if level is not None}]).alignment()
    assert found is not None
    return found


def _mean(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.mean


dialogues = st.lists(
    st.dictionaries(st.integers(min_value=1, max_value=5), st.integers(min_value=1, max_value=5)), max_size=25
)


@settings(max_examples=40)
@pytest.mark.usefixtures("reduced_resamples")
@given(dialogues, st.randoms(use_true_random=False))
def test_levels_and_counts_equal_counting_by_hand(given_: list[dict[int, int]], order: random.Random) -> None:
    found = _scores(given_).alignment()
    assert found == _scores(order.sample(given_, len(given_))).alignment()
    if not any(given_):
        assert found is None
        return
    assert found is not None
    for k, level in enumerate(found.levels, start=1):
        values = [scores[k] for scores in given_ if k in scores]
        assert (level is None) == (not values)
        if level is not None:
            assert level.n == len(values)
            assert level.mean == pytest.approx(statistics.fmean(values))
            assert (level.low is None) == (level.high is None) == (len(values) < 5)
            if level.low is not None and level.high is not None:
                assert min(values) <= level.low <= level.high <= max(values)
    assert found.average.n == sum(map(bool, given_))
    plain = _fitted([level.mean if level else None for level in found.levels])
    for estimate, figure in ((found.rate, plain.rate), (found.normalized_rate, plain.normalized_rate)):
        assert _mean(estimate) == (None if figure is None else pytest.approx(figure.mean))


def test_intervals_resample_whole_dialogues() -> None:
    """A dialogue has the same score in every round, so the average is as uncertain as a single level.

    For n = 400 the bootstrap agrees with mean ± 1.96 s/sqrt(n) to a tenth of the width; with independent rounds the
    average's interval would be half as wide.
    """
    given_ = [dict.fromkeys(range(1, 5), score) for score in (2, 3, 4, 5) * 100]
    found = _scores(given_).alignment()
    assert found is not None
    half = 1.96 * statistics.pstdev([2, 3, 4, 5]) / 400**0.5
    for estimate in (found.average, found.levels[0]):
        assert estimate is not None
        assert estimate.low == pytest.approx(3.5 - half, abs=0.2 * half)
        assert estimate.high == pytest.approx(3.5 + half, abs=0.2 * half)
    assert found.rate == Estimate(n=400, mean=0.0, low=0.0, high=0.0, is_constant=False)
    assert found.normalized_rate is None


def test_intervals_of_few_dialogues_are_as_wide_as_students() -> None:
    """For five scores 1 to 5, Student's interval is 3 ± 2.776 s/sqrt(5), and the plain bootstrap's 3 ± 1.2 or less."""
    found = _scores([{1: score, 2: score + 1} for score in (1, 2, 3, 4, 5)]).alignment()
    assert found is not None
    half = 2.776 * statistics.stdev([1, 2, 3, 4, 5]) / 5**0.5
    for estimate, middle in ((found.levels[0], 3), (found.average, 3.5)):
        assert estimate is not None
        assert (estimate.low, estimate.high) == pytest.approx((middle - half, middle + half), abs=0.15 * half)


def test_dialogues_of_one_scenario_count_once_in_intervals() -> None:
    """Three equal trials of each scenario give the interval of one, and trials of few scenarios give none."""
    once, several = Scores(), Scores()
    for number, score in enumerate((1, 2, 3, 4, 5, 4, 3)):
        once.add({1: score, 2: min(5, score + number % 3)})
        for _ in range(3):
            several.add({1: score, 2: min(5, score + number % 3)}, f"case-{number}")
    alone, repeated = once.alignment(), several.alignment()
    assert alone is not None and repeated is not None
    assert (alone.average.n, repeated.average.n) == (7, 21)
    figures = zip(
        (*alone.levels, alone.average, alone.rate, alone.normalized_rate, alone.r_squared),
        (*repeated.levels, repeated.average, repeated.rate, repeated.normalized_rate, repeated.r_squared),
        strict=True,
    )
    for one, of_trials in figures:
        assert one is not None and of_trials is not None
        assert (of_trials.mean, of_trials.low, of_trials.high) == pytest.approx((one.mean, one.low, one.high))
    few = Scores()
    for number in range(12):
        few.add({1: 1 + number % 5}, f"case-{number % 4}")
    found = few.alignment()
    assert found is not None and found.levels[0] is not None
    assert (found.average.n, found.average.low, found.levels[0].low) == (12, None, None)


def test_slope_interval_covers_the_truth_as_often_as_stated() -> None:
    """About 95 of 100 intervals, each of 60 dialogues with a known slope, contain it."""
    draw = random.Random(5)
    covered = 0
    for _ in range(100):
        given_ = []
        for _ in range(60):
            liking = draw.gauss(0, 0.3)
            given_.append({k: 3 + 0.1 * k + liking + draw.gauss(0, 0.5) for k in range(1, 6)})
        found = _scores(given_).alignment()
        assert found is not None and found.rate is not None
        assert found.rate.low is not None and found.rate.high is not None
        covered += found.rate.low <= 0.1 <= found.rate.high
    assert 89 <= covered <= 99


def test_models_are_rows_of_each_table_and_missing_values_are_counted() -> None:
    steady = [_episode(number, [3, 3, 3]) for number in range(4)]
    rising = [_episode(number, [1, 2, 3, 4]) for number in range(3)]
    rising += [_episode(3, [1, None, 5, 4]), _episode(4, [1, 2], failed=True)]
    tables = {table.name: table for table in RECIPE.report_tables([("model-a", steady), ("model-b", rising)])}
    assert list(tables) == ["alignment", "improvement", "judgements", "dialogues"]
    levels = tables["alignment"]
    assert levels.columns == ["model", "k=1", "k=2", "k=3", "k=4"]
    assert [_means(row) for row in levels.rows] == [["model-a", 3.0, 3.0, 3.0, None], ["model-b", 1.0, 2.0, 3.5, 4.0]]
    assert [cell.n for cell in levels.rows[1] if isinstance(cell, Estimate)] == [5, 4, 4, 4]
    flat, steep = (_means(row) for row in tables["improvement"].rows)
    assert flat == ["model-a", 3.0, 0.0, None, None]
    assert steep[:3] == ["model-b", pytest.approx(2.625), pytest.approx(1.05)]
    assert tables["judgements"].rows == [["model-a", 12, 0, 0, 0, 0], ["model-b", 17, 1, 0, 0, 2]]
    assert tables["dialogues"].rows == [["model-a", 4, 0, 3.0, 7.0], ["model-b", 5, 1, 4.0, 7.0]]


def test_chart_has_levels_bands_and_fitted_line() -> None:
    rising = [_episode(number, [1, 2, 3, 4]) for number in range(5)]
    unscored = [_episode(0, [None, None])]
    (chart,) = RECIPE.charts([("model-a", rising), ("model-b", unscored)])
    (series,) = chart.series
    assert list(chart.y_range or ()) == [1, 5]
    assert (series.label, list(series.x), list(series.y)) == ("model-a", [1, 2, 3, 4], [1, 2, 3, 4])
    assert list(series.low) == list(series.high) == [1, 2, 3, 4]
    assert series.line is not None
    assert (series.line.intercept, series.line.slope) == pytest.approx((0, 1))
    assert series.line.label == "IR 1.000, R² 1.000"


def test_run_without_scores_has_no_levels_and_no_chart() -> None:
    unscored = [_episode(0, [None, None])]
    assert [table.name for table in RECIPE.report_tables([("a", unscored)])] == ["judgements", "dialogues"]
    assert RECIPE.charts([("a", unscored)]) == []
    assert RECIPE.report_tables([("a", [])]) == []


def _scores(dialogues: Sequence[dict[int, int] | dict[int, float]]) -> Scores:
    scores = Scores()
    for dialogue in dialogues:
        scores.add(dialogue)
    return scores


def _episode(number: int, scores: Sequence[int | None], failed: bool = False) -> Episode:
    """Return a dialogue with a judgement for each round; `None` is an unparsed one."""
    judgements = tuple(
        Judgement(
            metric="alignment", target="assistant", turn=turn, score=score, status="unparsed" if score is None else "ok"
        )
        for turn, score in enumerate(scores, start=1)
    )
    messages = tuple(Line(role=role, content="...") for _ in scores for role in ("user", "assistant"))
    return Episode(
        id=f"case-{number}",
        facets={},
        state="failed" if failed else "done",
        outcome=Outcome(messages=messages, ended_by="error" if failed else "all_rounds", judgements=judgements),
        output_tokens={"assistant": 7 * len(scores)},
    )


def _means(row: Sequence[object]) -> list[object]:
    return [cell.mean if isinstance(cell, Estimate) else cell for cell in row]


ROLES = ("user", "assistant", "judge")


def test_each_round_is_judged_and_assistant_sees_only_the_conversation(dialoom: Command, people: Path) -> None:
    dialoom("run", "aloe-eval", "--personas", people, *cast(*ROLES), "-o", "eval.db")
    dialoom("export", "eval.db", "-o", "eval.jsonl")
    for line in read_jsonl(people.parent / "eval.jsonl"):
        assert [message["role"] for message in line["messages"]] == ["user", "assistant"] * 10
        assert [judgement["turn"] for judgement in line["judgements"]] == list(range(1, 11))
        assert all(judgement["score"] in range(1, 6) for judgement in line["judgements"])
    with closing(sqlite3.connect(people.parent / "eval.db")) as connection:
        texts = dict(connection.execute("SELECT id, content FROM texts"))
        requests = [
            json.loads(row[0]) for row in connection.execute("SELECT messages FROM calls WHERE role = 'assistant'")
        ]
        steps = connection.execute("SELECT node, step FROM calls WHERE scenario = 0 ORDER BY step, node").fetchall()
    assert len(requests) == 30
    for request in requests:
        assert [role for role, _ in request] == (["user", "assistant"] * 10)[: len(request)]
        assert not any("hens" in texts[id_] or "<" in texts[id_] for _, id_ in request)
    assert steps[:6] == [("user", 1), ("assistant", 2), ("judge", 3), ("user", 3), ("assistant", 4), ("judge", 5)]


def test_people_are_drawn_by_seed_and_exclude_the_training_set(dialoom: Command, people: Path) -> None:
    trained = people.parent / "trained.jsonl"
    trained.write_text(people.read_text().splitlines()[0] + "\n")
    options = ["--personas", people, "--rounds", "1", *cast(*ROLES)]
    drawn = []
    for name in ("one", "two"):
        dialoom("run", "aloe-eval", *options, "--sample", "2", "--seed", "4", "-o", f"{name}.db")
        drawn.append(dialoom("show", f"{name}.db").stdout)
    assert drawn[0] == drawn[1]
    output = dialoom("run", "aloe-eval", *options, "--unlike", trained, "-o", "other.db").stdout
    assert "1 personas left out" in output and "planned 2 scenarios" in output
    dialoom("run", "aloe-eval", *options, "--unlike", trained, "--limit", "1", "-o", "first.db")
    assert dialoom("show", "first.db").stdout.splitlines()[1:] == dialoom("show", "other.db").stdout.splitlines()[1:2]


def test_killed_and_resumed_benchmark_is_the_same(dialoom: Command, people: Path) -> None:
    plan = ["run", "aloe-eval", "--personas", str(people), *cast(*ROLES)]
    dialoom(*plan, "-o", "whole.db")
    dialoom("export", "whole.db", "-o", "whole.jsonl")
    for number, (part, count) in enumerate(
        (("INTO kept_calls", 9), ("INTO checkpoints", 14), ("INTO pending_writes", 3))
    ):
        command = ["resume", "run.db"] if number else [*plan, "-o", "run.db"]
        with CommandProcess(people.parent, part, count, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode in (-9, 0), errors
            assert number or process.returncode == -9
    dialoom("resume", "run.db")
    dialoom("export", "run.db", "-o", "run.jsonl")
    assert (people.parent / "run.jsonl").read_bytes() == (people.parent / "whole.jsonl").read_bytes()


def test_another_judge_makes_a_second_set(dialoom: Command, people: Path) -> None:
    dialoom("run", "aloe-eval", "--personas", people, "--rounds", "3", *cast(*ROLES), "-o", "eval.db")
    dialoom("judge", "eval.db", "--model", "judge=python:players:five", "--name", "second")
    shown = dialoom("show", "eval.db", "1", "--judging", "second").stdout
    assert shown.count("unparsed") == 3


def exported(dialoom: Command, folder: Path) -> list[dict[str, Any]]:
    """Return the dialogues of `run.db`."""
    dialoom("export", "run.db", "-o", "run.jsonl")
    return read_jsonl(folder / "run.jsonl")


def calls_of(dialoom: Command) -> int:
    """Return the number of calls in `run.db`."""
    return int(json.loads(dialoom("status", "run.db", "--json").stdout)["calls"])


def test_judged_rounds_are_not_judged_again(dialoom: Command, people: Path) -> None:
    folder = people.parent
    (folder / "vague.py").write_text(
        """
from pathlib import Path
from players import judge as clear, mark

async def assistant(messages):
    return f"Answer {len(messages)}."

async def judge(messages):
    vague = "Answer 3." in str(messages) and not Path('fixed').exists()
    return 'it depends' if vague else await clear(messages)
"""
    )
    players = [*cast("user"), "--model", "assistant=python:vague:assistant", "--model", "judge=python:vague:judge"]
    dialoom("run", "aloe-eval", "--personas", people, "--rounds", 3, *players, "-o", "run.db")
    before, calls = exported(dialoom, folder), calls_of(dialoom)
    assert [[each["status"] for each in line["judgements"]] for line in before] == [["ok", "unparsed", "ok"]] * 3
    (folder / "fixed").touch()
    dialoom("retry", "run.db", "--unparsed")
    assert calls_of(dialoom) == calls + 3
    for old, new in zip(before, exported(dialoom, folder), strict=True):
        assert [each["status"] for each in new["judgements"]] == ["ok"] * 3
        assert [new["judgements"][turn] for turn in (0, 2)] == [old["judgements"][turn] for turn in (0, 2)]


@pytest.mark.parametrize(("sample", "counts"), [(1, [2, 0, 0, 2, 2]), (2, [4, 0, 0, 0, 2])])
def test_rounds_not_sampled_are_not_counted_as_failed(sample: int, counts: list[int], tmp_path: Path) -> None:
    requests: list[str] = []

    async def assistant(messages: list[Any]) -> str:
        requests.append(messages[-1]["content"])
        if len(requests) == 1:
            raise ValueError("no reply")
        return "I see."

    given: Any = {"options": {"limit": 3, "rounds": 2}, "models": {"assistant": assistant}, "concurrency": 1}
    run = dialoom.play("aloe-eval", path=tmp_path / "run.db", **given)
    run = dialoom.judge(run.path, "offline/generic", name="sampled", sample=sample)
    (table,) = [each for each in run.report(judging="sampled").tables if each.name == "judgements"]
    assert table.columns[1:] == ["ok", "unparsed", "error", "not sampled", "not reached"]
    assert table.rows[0][1:] == counts


def test_levels_link_to_the_dialogues_that_they_count(tmp_path: Path) -> None:
    """One dialogue fails without a score, and another one has no score in round 2."""
    requests: list[Any] = []

    async def assistant(messages: list[Any]) -> str:
        requests.append(messages)
        if len(requests) == 1:
            raise ValueError("no reply")
        return f"Reply {len(requests)}."

    async def judge(messages: list[Any]) -> str:
        return "five" if "Reply 3." in str(messages) else '{"score": 3, "explanation": "It was so."}'

    models = {"assistant": assistant, "judge": judge}
    options = {"limit": 4, "rounds": 3}
    run = dialoom.play("aloe-eval", path=tmp_path / "run.db", options=options, models=models, concurrency=1)
    assert [cell.n for cell in run.report()["alignment"].rows[0] if isinstance(cell, Estimate)] == [3, 2, 3]
    linked = {column for table, column in linked_columns(run) if table in ("alignment", "improvement")}
    assert linked == {"k=1", "k=3", "average AL", "IR"}
