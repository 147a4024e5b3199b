"""Means, intervals, aggregates and comparisons against simple computations of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialoom
from dialoom import Check, Episode, Judgement, Line, Outcome
from dialoom.graphs import Estimate, Table, Tally, side_by_side
from dialoom.graphs.personalens import RECIPE
from dialoom.graphs.tables import (
    Pivot,
    ScenarioFilter,
    count,
    holm,
    mean,
    mean_of_shares,
    paired_difference,
    score,
    share_of,
    wilson,
)
from dialoom.graphs.tables.table import find_verdict_combinations
from tests.graphs.support import Support, judge, scripted

scores = st.lists(st.integers(min_value=1, max_value=5), min_size=1, max_size=60)


@given(scores)
def test_tally_has_the_mean_and_an_interval(values: list[int]) -> None:
    tally, backwards = Tally(), Tally()
    for value in values:
        tally.add(value)
    for value in reversed(values):
        backwards.add(value)
    estimate = tally.estimate()
    assert estimate is not None
    assert estimate.n == len(values)
    assert abs(estimate.mean - statistics.fmean(values)) < 1e-9
    assert estimate == backwards.estimate()
    assert (estimate.low is None) == (estimate.high is None) == (len(values) < 5)
    if estimate.low is not None and estimate.high is not None:
        assert min(values) - 1e-9 <= estimate.low <= estimate.mean + 1e-9
        assert estimate.mean - 1e-9 <= estimate.high <= max(values) + 1e-9


def test_interval_is_as_wide_as_the_normal_one_for_many_scores() -> None:
    """For n = 400 people the bootstrap and mean ± 1.96 s/sqrt(n) agree to a tenth of the width."""
    tally = Tally()
    values = [1, 2, 3, 4] * 100
    for value in values:
        tally.add(value)
    low, high = ends(tally)
    half = 1.96 * statistics.pstdev(values) / len(values) ** 0.5
    assert abs(low - (2.5 - half)) < 0.2 * half
    assert abs(high - (2.5 + half)) < 0.2 * half


def test_paired_difference_is_tested_over_people() -> None:
    pairs = [(person, float(difference)) for person, difference in enumerate([1, 1, 0, 1, 1, 2, 0, 1])]
    found, repeated = paired_difference(pairs), paired_difference(pairs * 50)
    assert found is not None and repeated is not None and found.p is not None
    assert (found.estimate.n, found.estimate.mean, found.p) == (8, 0.875, 2 / 2001)
    assert (repeated.estimate.low, repeated.p) == (found.estimate.low, found.p) and repeated.estimate.n == 400
    even = paired_difference((person, float(person % 2 * 2 - 1)) for person in range(40))
    assert even is not None and even.p is not None and even.p > 0.8
    few = paired_difference(pairs[:4])
    assert few is not None and (few.p, few.estimate.low) == (None, None)
    assert paired_difference([]) is None


def test_holm_correction_of_the_textbook() -> None:
    """Corrected values never decrease in the order of p and are at most 1; an untested value stays None."""
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == [0.03, 0.06, None, 0.06, 0.02]
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == []


groups = st.lists(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=8
)


@given(groups)
def test_mean_of_shares_weighs_groups_equally(counts: list[tuple[int, int]]) -> None:
    found = mean_of_shares(counts)
    assert found is not None and found == mean_of_shares(counts[::-1])
    assert found.mean == pytest.approx(statistics.fmean(count / n for count, n in counts))
    assert found.n == sum(n for _, n in counts)
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= 1 and found.low < found.high
    assert mean_of_shares([*counts, (0, 0)]) is None, "a group without observations has no share"


def test_interval_of_a_mean_of_shares_uses_each_groups_spread() -> None:
    """For two groups of 200, the mean's variance is half the mean of the groups' variances, less than a pooled one."""
    found = mean_of_shares([(20, 200), (180, 200)])
    assert found is not None and found.low is not None and found.high is not None
    half = 1.96 * (2 * 0.1 * 0.9 / 200) ** 0.5 / 2
    assert abs(found.low - (0.5 - half)) < 0.15 * half
    assert abs(found.high - (0.5 + half)) < 0.15 * half
    assert mean_of_shares([(20, 200)]) == share_of(20, 200), "a single group has Wilson's interval"


def test_dialogues_of_one_person_are_not_independent() -> None:
    few, many = Tally(), Tally()
    for person in range(10):
        few.add(1 + person % 4)
        for _ in range(40):
            many.add(1 + person % 4, person)
    assert ends(many) == pytest.approx(ends(few))
    four = Tally()
    for person in range(400):
        four.add(1 + person % 4, person % 4)
    found = four.estimate()
    assert found is not None
    assert (found.n, found.low, found.high) == (400, None, None), "four people are too few for an interval"


def test_verdicts_of_one_person_are_not_independent() -> None:
    """Half of ten people always succeed: V is 1/36, p (1 - p) / V is 9, and the effective n is (1.96 / 2.26)² of 9."""
    tally, mixed = Tally(), Tally()
    for person in range(10):
        for number in range(4):
            tally.add(person < 5, person)
            mixed.add(number < 2, person)
    assert ends(tally) == pytest.approx(wilson(0.5, 9 * (1.959964 / 2.262157) ** 2), abs=1e-4)
    assert ends(mixed) == pytest.approx(wilson(0.5, 40)), "people who do not differ have no design effect"
    four = Tally()
    for number in range(40):
        four.add(number % 4 < 2, number % 4)
    assert ends(four) == pytest.approx(wilson(0.5, 40)), "the variance between four people is not known well enough"


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_intervals_of_verdicts_contain_the_truth_when_people_differ(share: float) -> None:
    """Twelve people have 20 dialogues each, with an intraclass correlation of 0.2."""
    draw, found = np.random.default_rng(5), 0
    for _ in range(400):
        tally = Tally()
        for person, own in enumerate(draw.beta(4 * share, 4 * (1 - share), 12)):
            for verdict in draw.random(20) < own:
                tally.add(bool(verdict), person)
        low, high = ends(tally)
        found += low <= share <= high
    assert found >= 0.92 * 400


@pytest.mark.parametrize(
    ("right", "n", "interval"),
    # Wilson's intervals by statsmodels: proportion_confint(right, n, method="wilson").
    [
        (1, 1, (0.206549, 1.0)),
        (2, 2, (0.342380, 1.0)),
        (5, 5, (0.565518, 1.0)),
        (0, 20, (0.0, 0.161125)),
        (17, 20, (0.639581, 0.947631)),
    ],
)
def test_extreme_verdicts_have_an_interval_of_some_width(right: int, n: int, interval: tuple[float, float]) -> None:
    tally = Tally()
    for number in range(n):
        tally.add(number < right, person="the same")
    assert ends(tally) == pytest.approx(interval, abs=1e-6)


def test_wilsons_interval_contains_the_share_despite_rounding() -> None:
    for n in range(1, 200):
        for share in (0.0, 1 / n, 1 - 1 / n, 1.0):
            low, high = wilson(share, n)
            assert 0.0 <= low <= share <= high <= 1.0


def test_constant_scores_of_a_judge_are_reported() -> None:
    def is_constant(scores: Sequence[float], judged: bool = True) -> bool | None:
        tally = Tally(judged=judged)
        for each in scores:
            tally.add(each)
        estimate = tally.estimate()
        assert estimate is not None
        return estimate.is_constant

    assert is_constant([3] * 5) and is_constant([True] * 5) and is_constant([False] * 5)
    assert is_constant([3] * 4) is False
    assert is_constant([3] * 40 + [4]) is False
    assert is_constant([1.0] * 5, judged=False) is None


def ends(tally: Tally) -> tuple[float, float]:
    """Return the ends of an interval, which must exist."""
    estimate = tally.estimate()
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_no_scores_have_no_mean() -> None:
    assert Tally().estimate() is None


COLUMNS = {
    "TCR %": ("task_completion", "assistant"),
    "P": ("personalization", "assistant"),
    "Nat. assistant": ("naturalness", "assistant"),
    "Nat. user": ("naturalness", "user"),
    "Coh. assistant": ("coherence", "assistant"),
    "Coh. user": ("coherence", "user"),
}
judgements = st.builds(
    lambda column, score, status: Judgement(
        metric=column[0],
        target=column[1],
        score=None if status != "ok" else score >= 3 if column[0] == "task_completion" else score,
        status=status,
    ),
    st.sampled_from(sorted(COLUMNS.values())),
    st.integers(min_value=1, max_value=5),
    st.sampled_from(["ok", "ok", "ok", "unparsed"]),
)
episodes = st.lists(
    st.builds(
        lambda setting, domains, judged, failed: Episode(
            id="x",
            facets={
                "user": "ada",
                "setting": setting,
                "domains": domains,
                "kind": "single" if len(domains) == 1 else "multi",
            },
            state="failed" if failed else "done",
            outcome=Outcome(
                messages=(Line(role="user", content="a"), Line(role="assistant", content="b")),
                ended_by="error" if failed else "user_terminated",
                judgements=tuple(judged),
            ),
        ),
        st.sampled_from(["base", "I"]),
        st.lists(st.sampled_from(["Alarm", "Books", "Music"]), min_size=1, max_size=3, unique=True),
        st.lists(judgements, max_size=6),
        st.booleans(),
    ),
    max_size=30,
)


@given(episodes)
def test_tables_agree_with_counting_by_hand(given_episodes: list[Episode]) -> None:
    by_name = {table.name: table for table in RECIPE.tables(given_episodes)}
    for name, group_of in (
        ("scores", lambda e: ["single-domain" if e.facets["kind"] == "single" else "multi-domain"]),
        ("domains", lambda e: e.facets["domains"]),
    ):
        table = by_name.get(name)
        for row in table.rows if table else []:
            cells = dict(zip(table.columns, row, strict=True)) if table else {}
            group = cells.get("tasks") or cells.get("domain")
            for column, (metric, target) in COLUMNS.items():
                values = [
                    float(j.score)
                    for episode in given_episodes
                    if episode.facets["setting"] == cells["setting"] and group in group_of(episode)
                    for j in episode.outcome.judgements
                    if (j.metric, j.target) == (metric, target) and j.score is not None
                ]
                cell = cells[column]
                assert isinstance(cell, Estimate) if values else cell is None
                if isinstance(cell, Estimate):
                    assert cell.n == len(values)
                    assert abs(cell.mean - statistics.fmean(values)) < 1e-9
    everything = [j for episode in given_episodes for j in episode.outcome.judgements]
    counted = by_name["judgements"].rows if "judgements" in by_name else []
    assert sum(int(str(row[3])) for row in counted) == sum(j.status == "unparsed" for j in everything)
    assert sum(int(str(row[2])) for row in counted) == sum(j.status == "ok" for j in everything)


def _table(
    *rows: list[str | float], columns: tuple[str, ...] = ("setting", "TCR %"), note: str = "TCR: share."
) -> Table:
    return Table("scores", "Scores", list(columns), list(rows), [note])


def test_compared_rows_are_in_one_table() -> None:
    first = _table(["base", 0.5], ["I", 0.9])
    second = _table(["base", 0.6], ["P", 0.7], note="Another note.")
    for each in (first, second):
        each.notes.append("Of both.")
    (table,) = side_by_side([("model-a", [first]), ("model-b", [second])])
    assert table.columns == ["run", "setting", "TCR %"]
    assert table.rows == [
        ["model-a", "base", 0.5],
        ["model-b", "base", 0.6],
        ["model-a", "I", 0.9],
        ["model-b", "P", 0.7],
    ]
    assert table.notes == ["model-a: TCR: share.", "Of both.", "model-b: Another note."]
    assert (table.name, table.title) == ("scores", "Scores")


def test_tables_with_different_columns_stay_separate() -> None:
    longer = _table(["base", 0.5, 0.4], columns=("setting", "turn 1", "turn 2"))
    shorter = _table(["base", 0.5], columns=("setting", "turn 1"))
    tables = side_by_side([("a.db", [longer]), ("b.db", [shorter])])
    assert [(table.name, table.title) for table in tables] == [
        ("scores-1", "Scores (a.db)"),
        ("scores-2", "Scores (b.db)"),
    ]
    assert [table.columns[:2] for table in tables] == [["run", "setting"]] * 2
    assert [table.rows for table in tables] == [[["a.db", "base", 0.5, 0.4]], [["b.db", "base", 0.5]]]
    assert longer.name == "scores", "the given table is unchanged"


def test_warnings_of_all_runs_are_shown() -> None:
    first, second = _table(["base", 0.5]), _table(["base", 0.6])
    second.warnings.append("Few.")
    (table,) = side_by_side([("a.db", [first]), ("b.db", [second])])
    assert table.warnings == ["b.db: Few."]


def test_table_that_only_one_run_has_is_shown() -> None:
    (table,) = side_by_side([("a.db", []), ("b.db", [_table(["base", 0.5])])])
    assert table.rows == [["b.db", "base", 0.5]]


class Counting(Support):
    """A recipe that counts endings in several ways."""

    checks = [*Support.checks, Check("unheard of", lambda _talk: None)]
    pivots = (
        Pivot(
            "endings",
            "Endings",
            columns=[
                count("all"),
                count("by marker", ended_by="end_marker"),
                count("by limit", ended_by="max_turns"),
                count("long", lambda episode: len(episode.outcome.messages) > 100),
                mean("turns", lambda episode: episode.outcome.counts["turns"], interval=False),
                score("resolved", title="resolved %"),
                score("unheard of"),
            ],
        ),
    )


def test_figure_records_which_scenarios_it_counts(tmp_path: Path) -> None:
    models: dict[str, Any] = {"user": scripted(["I want it.", "Thanks. DONE"]), "assistant": scripted(["Done."])}
    run = dialoom.play(Counting, path=tmp_path / "run.db", models={**models, "judge": judge})
    table = run.report()["endings"]
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert (cells["all"], cells["by marker"], cells["by limit"], cells["long"]) == (len(run), len(run), 0, 0)
    assert table.counted == {
        "by limit": ScenarioFilter(ended_by="max_turns"),
        "unheard of": ScenarioFilter("unheard of", "assistant"),
    }
    assert table.chosen == {"long": None}


def test_default_tables_have_the_scales_of_their_metrics(tmp_path: Path) -> None:
    models: dict[str, Any] = {"user": scripted(["I want it.", "Thanks. DONE"]), "assistant": scripted(["Done."])}
    run = dialoom.play(Support, path=tmp_path / "run.db", models={**models, "judge": judge})
    scales = run.report()["scores"].scales
    assert scales and set(scales.values()) == {(1, 5)}
    assert not any("resolved" in column for column in scales)


async def silent(_: list[Any]) -> str:
    """Answer nothing that could be parsed as a verdict or a score."""
    return "no comment"


def test_pivot_notes_how_many_judgements_have_no_score(tmp_path: Path) -> None:
    models: dict[str, Any] = {"user": scripted(["I want it.", "Thanks. DONE"]), "assistant": scripted(["Done."])}
    run = dialoom.play(Counting, path=tmp_path / "run.db", models={**models, "judge": silent})
    table = run.report()["endings"]
    notes, row = " ".join(table.notes), dict(zip(table.columns, table.rows[0], strict=True))
    assert row["all"] == len(run) and row["resolved %"] is None
    assert (
        f"could not be parsed; they are excluded from all means. In the scenarios of this table: resolved % {len(run)}."
        in notes
    )


def _is_correct(verdicts: Mapping[str, bool | None]) -> bool:
    return verdicts["kept"] is True and (verdicts["named"] is False or verdicts["true"] is True)


def test_verdicts_that_imply_a_condition_are_minimal() -> None:
    found = find_verdict_combinations(("kept", "named", "true"), _is_correct)
    assert [*found] == [{"kept": True, "named": False}, {"kept": True, "true": True}]


def test_counted_scenarios_are_selected_by_their_expression(tmp_path: Path) -> None:
    """Each condition is an expression over the run that selects the scenarios that meet it."""
    models: dict[str, Any] = {"user": scripted(["I want it.", "Thanks. DONE"]), "assistant": scripted(["Done."])}
    run = dialoom.play(Support, path=tmp_path / "run.db", models={**models, "judge": judge})

    def selected(counted: ScenarioFilter) -> int:
        return len(list(run.episodes(where=counted.expression)))

    assert selected(ScenarioFilter("resolved", "assistant")) == len(run) == 2
    assert selected(ScenarioFilter("tone", "assistant", "ok", by_turn=True)) == len(run)
    assert selected(ScenarioFilter("tone", "assistant", "ok", by_turn=False)) == 0
    assert selected(ScenarioFilter(status="unparsed")) == 0
    assert selected(ScenarioFilter(is_judged=True)) == len(run) and selected(ScenarioFilter(is_judged=False)) == 0
    assert selected(ScenarioFilter(other_than={"goal": "return a kettle"})) == 1
    assert selected(ScenarioFilter(verdicts=[{"resolved": True, "gave_number": False}, {"resolved": None}])) == len(run)
    assert selected(ScenarioFilter(verdicts=[{"resolved": False}])) == 0


@pytest.mark.parametrize("people", [5, 12])
def test_intervals_and_tests_of_means_hold_for_few_people(people: int) -> None:
    """Each person has three scores with an intraclass correlation of 0.5, and the true mean is 0."""
    draw, found, rejected = np.random.default_rng(7), 0, 0
    for _ in range(400):
        tally, pairs = Tally(), list[tuple[int, float]]()
        for person, own in enumerate(draw.normal(size=people)):
            pairs += [(person, float(own + each)) for each in draw.normal(size=3)]
        for person, each in pairs:
            tally.add(each, person)
        low, high = ends(tally)
        difference = paired_difference(pairs)
        assert difference is not None and difference.p is not None
        found += low <= 0 <= high
        rejected += difference.p < 0.05
    assert found >= 0.92 * 400 and rejected <= 0.08 * 400


@pytest.mark.parametrize(("topics", "pairs"), [(20, 1), (20, 2), (5, 2), (20, 10)])
def test_intervals_of_a_mean_of_shares_hold_for_few_pairs(topics: int, pairs: int) -> None:
    draw, found = np.random.default_rng(7), 0
    for _ in range(400):
        shares = draw.beta(6, 2, size=topics)
        estimate = mean_of_shares([(int(each), pairs) for each in draw.binomial(pairs, shares)])
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        found += estimate.low <= shares.mean() <= estimate.high
    assert found >= 0.92 * 400
