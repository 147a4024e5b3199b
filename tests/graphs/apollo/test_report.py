"""APOLLO's tables from samples of known scores, and the paper's figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Episode, Judgement, Outcome
from dialoom.graphs import Estimate, Table
from dialoom.graphs.apollo import RECIPE
from dialoom.graphs.apollo.report import ApolloResults, HistorySize, Sample, accuracy, build_gains_table, f1
from dialoom.graphs.tables import paired_difference
from dialoom.graphs.tables.statistics import TRIALS_NOTE, student_quantile
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import Agent, gold_lines, played

READINGS = {"strict": False, "any_order": True, "f1_multiset": 0.5, "actions": True, "stale": None}
FACETS = {
    "pair": "p1",
    "user": "u1",
    "domain": "food",
    "flow": "food",
    "kind": "direct",
    "form": "explicit",
    "query": "reactive",
    "framework": "function-calling",
    "length": 2000,
    "sessions": 7,
    "place": 3,
    "tokens": 1900,
    "evolving": False,
}


def sample(
    right: bool, f1: float, *, failed: bool = False, hit: bool | None = None, ended_by: str = "finished", **facets: Any
) -> Episode:
    """Return a finished sample with these scores; `stale` and `flags` may be among the facets."""
    given = {**FACETS, **facets}
    stale, flags = given.pop("stale", None), given.pop("flags", [])
    if failed:
        return Episode("id", given, "failed", Outcome(messages=(), ended_by="error"))
    scores = {**READINGS, "accuracy": right, "f1": f1, "stale": stale}
    details = {"protocol": "text", "flags": flags, "scores": scores, "error": None if right else "hallucination"}
    details |= {"calls": [{"name": "search", "arguments": {}}], "gold": [{"name": "search", "arguments": {}}]}
    details |= {} if hit is None else {"hit": hit}
    judgements = (
        Judgement(metric="accuracy", target="assistant", score=right),
        Judgement(metric="f1", target="assistant", score=f1),
    )
    outcome = Outcome(messages=(), ended_by=ended_by, details=details, judgements=judgements)
    return Episode("id", given, "done", outcome)


def tables(*samples: Episode, label: str = "m") -> dict[str, Table]:
    """Return the tables of a run over these samples, by name."""
    return {table.name: table for table in RECIPE.report_tables([(label, samples)])}


def means(cells: Iterable[Any]) -> list[Any]:
    """Return the means of estimates, and other cells unchanged."""
    return [round(cell.mean, 4) if isinstance(cell, Estimate) else cell for cell in cells]


def rows(table: Table) -> list[list[Any]]:
    """Return a table's rows with means for estimates."""
    return [means(row) for row in table.rows]


def test_each_length_has_its_column_and_the_mean_is_over_all() -> None:
    made = [
        sample(True, 1.0, pair="p1"),
        sample(False, 0.5, pair="p2"),
        sample(False, 0.0, pair="p1", length=12000),
        sample(False, 0.5, pair="p2", length=12000),
    ]
    found = tables(*made)
    assert found["accuracy"].columns == ["model", "framework", "2k %", "12k %", "mean %"]
    assert rows(found["accuracy"]) == [["m", "function-calling", 0.5, 0.0, 0.25]]
    assert rows(found["f1"]) == [["m", "function-calling", 0.75, 0.25, 0.5]]
    assert list(tables(*made[:2])["accuracy"].columns) == ["model", "framework", "2k %"]
    assert tables(*reversed(made))["form"].title.endswith(", over 2k, 12k"), "shorter lengths come first"


def test_mean_over_lengths_resamples_pairs() -> None:
    made = [
        sample(right, 1.0, pair=f"p{n}", length=length)
        for n, right in enumerate([True] * 3 + [False] * 3)
        for length in (2000, 4000)
    ]
    ((_, _, short, _, mean),) = tables(*made)["accuracy"].rows
    assert isinstance(short, Estimate) and isinstance(mean, Estimate)
    assert (short.n, mean.n) == (6, 12)
    assert short.low is not None and round(short.low, 3) == 0.188, "Wilson's interval of 3 of 6"
    half = (5 / 6 - 1 / 2) * (6 / 5) ** 0.5 * student_quantile(5) / student_quantile(10**9)
    assert (mean.low, mean.high) == pytest.approx((0.5 - half, 0.5 + half)), "the interval of six pairs"


def test_trials_are_resampled_with_their_pair_and_compared_with_the_same_trial() -> None:
    made = [
        replace(sample(right, 1.0, pair=f"p{n}", framework=framework), trial=trial)
        for n in range(6)
        for framework, verdicts in (("function-calling", (True, False)), ("memory", (True, n > 0)))
        for trial, right in enumerate(verdicts, 1)
    ]
    found = tables(*made)
    ((*_, gain, p),) = found["frameworks"].rows
    assert isinstance(gain, Estimate) and gain.n == 12 and gain.mean == pytest.approx(5 / 12) and p is not None
    assert all(TRIALS_NOTE in table.notes for table in found.values())


def test_forms_query_kinds_and_domains_have_rows() -> None:
    found = tables(
        sample(False, 0.2, form="tone", pair="p1", query="proactive"),
        sample(True, 1.0, form="choice", pair="p2", kind="indirect", domain="travel"),
        sample(True, 0.9, pair="p3"),
    )
    assert [row[2:] for row in rows(found["form"])] == [
        ["explicit", 1.0, 0.9],
        ["choice", 1.0, 1.0],
        ["tone", 0.0, 0.2],
        ["all implicit", 0.5, 0.6],
    ]
    assert [row[2:] for row in rows(found["query"])] == [["proactive", 0.0, 0.2], ["reactive", 1.0, 0.95]]
    assert [row[2:] for row in rows(found["kind"])] == [["direct", 0.5, 0.55], ["indirect", 1.0, 1.0]]
    assert [row[2] for row in found["domain"].rows] == ["food", "travel"]


def test_places_are_reported_where_sessions_were_given() -> None:
    made = [sample(place < 3, 0.5, length=0, sessions=10, place=place, pair="p1") for place in (3, 1, 2)]
    found = tables(*made)
    assert rows(found["place"]) == [
        ["m", "function-calling", "10 sessions", place, float(place < 3), 0.5] for place in (1, 2, 3)
    ]
    assert "place" not in tables(sample(True, 1.0))
    chart, _ = RECIPE.charts([("m", made)])
    assert (chart.name, [*chart.series[0].x], [*chart.series[0].y]) == ("place-10", [1, 2, 3], [1.0, 1.0, 0.0])


def test_changed_preferences_have_their_own_table() -> None:
    found = tables(
        sample(True, 1.0, pair="p1"),
        sample(False, 0.4, pair="p1", evolving=True, stale=True),
        sample(False, 0.6, pair="p2", evolving=True, stale=False),
    )
    assert [row[3:] for row in rows(found["evolving"])] == [["no", 1.0, 1.0, None], ["yes", 0.0, 0.5, 0.5]]
    assert rows(found["accuracy"]) == [["m", "function-calling", 1.0]]


def test_endings_flags_and_failures_are_counted() -> None:
    found = tables(
        sample(True, 1.0, flags=["asked", "mixed"]),
        sample(False, 0.0, pair="p2", ended_by="silent", flags=["asked"]),
        sample(False, 0.0, pair="p3", failed=True),
        sample(False, 0.0, pair="p4", failed=True, framework="rag"),
    )
    assert found["dialogues"].columns[2:] == [
        "protocol",
        "samples",
        "failed",
        "finished",
        "silent",
        "turn limit",
        "mixed",
        "asked",
    ]
    assert [row[1:] for row in found["dialogues"].rows] == [
        ["function-calling", "text", 3, 1, 1, 1, 0, 1, 2],
        ["rag", "", 1, 1, 0, 0, 0, 0, 0],
    ]
    assert [row[2:] for row in rows(found["readings"])] == [[0.5, 0.5, 0.0, 1.0, 0.5, 1.0]]


def test_error_labels_are_shown_as_shares_of_failures() -> None:
    found = tables(sample(True, 1.0), *(sample(False, 0.0, pair=f"p{n}") for n in (2, 3)))["errors"]
    assert [row[2:] for row in rows(found)] == [["rule", 2, 0.0, 0.0, 1.0, 0.0]]
    assert "errors" not in tables(sample(True, 1.0))


def test_rows_of_the_judge_cover_the_samples_that_it_has_labelled() -> None:
    made = [sample(False, 0.0, pair=f"p{n}") for n in range(3)]
    label = Judgement(metric="unhelpful", target="assistant", score=True)
    made[0] = replace(made[0], outcome=made[0].outcome.model_copy(update={"judgements": (label,)}))
    table = tables(*made)["errors"]
    assert [row[2:6] for row in rows(table)] == [["rule", 3, 0.0, 0.0], ["judge", 1, 1.0, 0.0]]
    assert any("Rows by the judge cover only the samples that it has labelled." in note for note in table.notes)


def test_samples_of_a_pair_count_once_in_the_intervals_of_error_labels() -> None:
    pairs = [sample(False, 0.0, pair=f"p{n}", length=length) for n in range(6) for length in (2000, 4000, 8000)]
    ((*_, hallucination, _),) = tables(*pairs)["errors"].rows
    assert isinstance(hallucination, Estimate) and (hallucination.mean, hallucination.n) == (1.0, 18)
    assert hallucination.low is not None and round(hallucination.low, 3) == 0.610, "Wilson's interval of 6 of 6"


def test_titles_state_which_settings_are_combined() -> None:
    made = [
        sample(False, 0.0, hit=True, framework="rag", evolving=evolving, length=length)
        for evolving in (False, True)
        for length in (2000, 4000)
    ]
    titles = {name: table.title for name, table in tables(*made).items()}
    both = ", with and without outdated preferences"
    assert titles["readings"].endswith(f"calls, over 2k, 4k{both}")
    assert titles["errors"].endswith(f"samples, over 2k, 4k{both}")
    assert titles["retrieval"].endswith(f"three{both}"), "lengths have rows"
    assert titles["accuracy"].endswith("history") and titles["domain"].endswith("domain, over 2k, 4k")
    (chart,) = [chart for chart in RECIPE.charts([("m", made)]) if chart.name == "errors"]
    assert chart.title == titles["errors"]
    placed = [sample(True, 1.0, length=0, sessions=10, place=place) for place in (1, 2)]
    titles = {name: table.title for name, table in tables(*placed).items()}
    several = ", over several positions of the relevant session"
    assert [name for name, title in titles.items() if not title.endswith(several)] == ["place"]


def test_mean_over_lengths_says_how_lengths_count() -> None:
    made = [
        sample(True, 1.0, pair=f"p{n}", length=length) for length, many in ((2000, 3), (4000, 1)) for n in range(many)
    ]
    note = "counts less"
    found = {name for name, table in tables(*made).items() if any(each.endswith(f"{note}.") for each in table.notes)}
    assert found == {"accuracy", "f1"}


def test_report_shows_retrieval_recall_beside_accuracy() -> None:
    made = [sample(hit, 1.0, pair=f"p{n}", framework="rag", hit=hit) for n, hit in enumerate((True, False))]
    assert rows(tables(*made)["retrieval"]) == [["m", "rag", "2k", 0.5, 0.5]]


def test_several_runs_share_a_table() -> None:
    runs = [
        ("z", [sample(True, 1.0, framework="rag"), sample(False, 0.0), sample(True, 1.0, length=4000)]),
        ("a", [sample(False, 0.5), sample(False, 0.5, length=4000)]),
    ]
    found = {table.name: table for table in RECIPE.report_tables(runs)}
    assert rows(found["accuracy"]) == [
        ["z", "function-calling", 0.0, 1.0, 0.5],
        ["z", "rag", 1.0, None, 1.0],
        ["a", "function-calling", 0.0, 0.0, 0.0],
    ]
    chart = RECIPE.charts(runs)[0]
    assert {series.label: [*series.x] for series in chart.series} == {
        "z function-calling": [2000, 4000],
        "z rag": [2000],
        "a function-calling": [2000, 4000],
    }


def test_preferences_and_queries_are_crossed_as_in_the_paper() -> None:
    made = [
        sample(True, 1.0, pair="p1"),
        sample(False, 0.0, pair="p1", length=8000),
        sample(True, 1.0, pair="p2", form="tone", query="proactive"),
        sample(False, 0.0, pair="p3", form="facts"),
        sample(False, 0.0, pair="p4", form="anti"),
    ]
    table = tables(*made)["preferences"]
    assert table.columns[2:] == ["explicit %", "implicit %", "reactive %", "proactive %"]
    assert rows(table) == [["m", "function-calling", 0.5, 0.3333, 0.25, 1.0]]
    assert rows(tables(made[0])["preferences"]) == [["m", "function-calling", 1.0, None, 1.0, None]]


def test_frameworks_are_compared_with_the_baseline_on_equal_samples() -> None:
    made = [sample(n < 2, 0.5, pair=f"p{n}", length=length) for n in range(6) for length in (2000, 4000)]
    noted = [sample(n < 5, 0.5, pair=f"p{n}", length=2000, framework="memory") for n in range(6)]
    noted += [sample(n < 3, 0.5, pair=f"p{n}", length=4000, framework="memory") for n in range(6)]
    alone = sample(True, 1.0, pair="p9", framework="memory")
    found = tables(*made, *noted, alone)["frameworks"]
    assert found.columns == ["model", "framework", "2k %", "4k %", "mean %", "p"]
    ((*labels, short, long, mean, p),) = found.rows
    assert labels == ["m", "memory"]
    assert means([short, long, mean]) == [0.5, 0.1667, 0.3333]
    assert isinstance(mean, Estimate) and mean.n == 12 and mean.low is not None and mean.low < mean.mean
    assert isinstance(p, float) and p < 0.5
    assert "frameworks" not in tables(*made)
    (bars,) = [chart for chart in RECIPE.charts([("m", [*made, *noted])]) if chart.name == "frameworks"]
    assert (bars.kind, [*bars.names], [*bars.series[0].x]) == ("bars", ["function-calling", "memory"], [0, 1])
    assert [round(value or 0, 4) for value in bars.series[0].y] == [0.3333, 0.6667]


def test_training_users_are_reported_separately() -> None:
    made = [
        sample(split == "train", 0.5, pair=split, split=split, length=length)
        for split in ("train", "test")
        for length in (2000, 4000)
    ]
    assert rows(tables(*made)["users"]) == [
        ["m", "function-calling", split, *[right] * 3, 0.5] for split, right in (("test", 0.0), ("train", 1.0))
    ]
    assert "users" not in tables(sample(True, 1.0))
    (chart,) = [chart for chart in RECIPE.charts([("m", made)]) if chart.name == "users"]
    assert [series.label for series in chart.series] == ["test", "train"]


def test_errors_are_drawn_as_stacked_shares() -> None:
    made = [sample(False, 0.0, pair=f"p{n}", framework=name) for n in range(2) for name in ("reminder", "rag")]
    (chart,) = [each for each in RECIPE.charts([("m", [*made, sample(True, 1.0)])]) if each.name == "errors"]
    assert (chart.kind, [*chart.names]) == ("stacked", ["reminder", "rag"])
    assert {series.label: [*series.y] for series in chart.series if any(series.y)} == {"hallucination": [1.0, 1.0]}
    assert not RECIPE.charts([("m", [sample(True, 1.0)])])


def test_models_are_compared_on_equal_samples_over_pairs(tmp_path: Path) -> None:
    made = source(["music", "food", "flight"], sets=2)
    right = Agent({pair.query: gold_lines(pair) for pair in made.pairs.values()})
    silent = Agent({pair.query: ["Well.", "Well."] for pair in made.pairs.values()})
    runs = [played(tmp_path / name, agent, made, length=("2k",)) for name, agent in (("a", right), ("b", silent))]
    table = dialoom.report(runs)["differences"]
    row = next(row for row in table.rows if row[1] == "accuracy (assistant)")
    difference = row[4]
    assert isinstance(difference, Estimate) and (difference.n, difference.mean) == (6, -1.0)
    assert difference.low is not None and row[5] is not None
    assert any("bootstrapped over pairs" in note for note in table.notes)


# The paper's table 1 does not give the number of samples of a cell. All accuracies are multiples of 1 / 2,192.

N = 2192
LENGTHS = (2000, 4000, 8000, 12000)

TABLE_1 = {
    "Qwen3-8B": ((966, 823, 679, 571), ".4407 .3755 .3098 .2605", ".3466", ".6535 .5848 .5248 .4757", ".5597"),
    "Qwen3-8B (think)": (
        (1019, 1037, 999, 817),
        ".4649 .4731 .4557 .3727",
        ".4416",
        ".7171 .6886 .6734 .5954",
        ".6686",
    ),
    "GPT-OSS-120B": ((916, 777, 598, 601), ".4179 .3545 .2728 .2742", ".3298", ".6007 .5373 .4576 .4424", ".5095"),
    "GPT-4o": ((1245, 1102, 1080, 1059), ".5680 .5027 .4927 .4831", ".5116", ".7408 .7086 .7057 .6987", ".7135"),
}
"""Right samples by length; accuracy by length and its mean; F1 by length and its mean."""


def samples(right: int, length: int, mean_f1: str = "1", evolving: bool = False) -> Iterator[Sample]:
    """Yield as many samples of a length as the paper has; `right` of them are right."""
    size, value = HistorySize("tokens", length), float(mean_f1)
    common = {
        "model": "m",
        "framework": "function-calling",
        "size": size,
        "place": 1,
        "evolving": evolving,
        "trial": None,
        "f1": value,
    }
    for at in range(N):
        yield {**common, "pair": str(at), "accuracy": at < right}


def printed(estimate: Estimate | None) -> str:
    """Return a mean as the paper prints it."""
    assert estimate is not None
    return rounded(Decimal(estimate.mean))


def rounded(value: Decimal) -> str:
    """Return four digits, with halves rounded up."""
    return str(value.quantize(Decimal("0.0001"), ROUND_HALF_UP)).removeprefix("0")


@pytest.mark.parametrize("model", TABLE_1)
def test_paper_table_1(model: str) -> None:
    counts, cells, mean, f1_cells, mean_f1 = TABLE_1[model]
    by_length = [
        list(samples(right, length, value))
        for right, length, value in zip(counts, LENGTHS, f1_cells.split(), strict=True)
    ]
    assert [printed(accuracy(some)) for some in by_length] == cells.split()
    assert [printed(f1(some)) for some in by_length] == f1_cells.split()
    together = [sample for some in by_length for sample in some]
    estimate = accuracy(together)
    assert printed(estimate) == mean
    assert printed(f1(together)) == mean_f1
    assert estimate is not None and estimate.n == 4 * N and estimate.low is not None and estimate.high is not None
    assert estimate.low < estimate.mean < estimate.high


@pytest.mark.parametrize(("right", "cell"), [(395, ".1802"), (581, ".2651"), (302, ".1378")])
def test_paper_table_3(right: int, cell: str) -> None:
    """Accuracies with outdated preferences at 8k are those of Qwen3-8B, Qwen3-8B (think) and Qwen3-30B-A3B."""
    assert printed(accuracy(samples(right, 8000, evolving=True))) == cell


def test_framework_gains_over_all_lengths() -> None:
    """Qwen3-8B's gains on the mean over all lengths are those of 8,768 pairs of samples."""
    counts = TABLE_1["Qwen3-8B"][0]
    for name, gain in (("reminder", ".0151"), ("reflexion", ".0755"), ("rag", ".0448")):
        more = round(Decimal(gain) * 4 * N)
        runs = [each for right, length in zip(counts, LENGTHS, strict=True) for each in samples(right, length)]
        helped = [
            {**each, "framework": name, "accuracy": each["accuracy"] or at < more}
            for at, each in enumerate(sorted(runs, key=lambda each: each["accuracy"]))
        ]
        table = build_gains_table(ApolloResults([("m", [])]), [*runs, *helped])
        ((model, framework, *cells),) = table.rows
        assert (model, framework) == ("m", name)
        assert printed(cells[-2] if isinstance(cells[-2], Estimate) else None) == gain


@pytest.mark.parametrize(
    ("before", "after", "gain", "cell"), [(966, 1129, ".0744", ".5151"), (679, 971, ".1332", ".4430")]
)
def test_notes_gain_is_a_paired_difference(before: int, after: int, gain: str, cell: str) -> None:
    """Memory and the baseline, at 2k and 8k, are played on the same pairs, so their difference is a paired one."""
    pairs = zip(samples(before, 2000), samples(after, 2000), strict=True)
    found = paired_difference((one["pair"], float(two["accuracy"]) - float(one["accuracy"])) for one, two in pairs)
    assert found is not None and found.p is not None and found.p < 0.001
    assert printed(found.estimate) == gain
    assert printed(accuracy(samples(after, 2000))) == cell


def test_paper_table_3_beside_samples_without_earlier_preferences() -> None:
    """A run with both kinds of samples has the accuracies and F1 of Qwen3-8B at 8k in one table."""
    made = _episodes(679, N, mean_f1=0.5248, length=8000) + _episodes(395, N, 0.3962, length=8000, evolving=True)
    found = [row[3:] for row in rows(tables(*made)["evolving"])]
    assert found == [["no", 0.3098, 0.5248, None], ["yes", 0.1802, 0.3962, None]]


def test_paper_figure_4() -> None:
    """GPT-4o's accuracies with the session in place 3, 6 and 9 of 10, from the smallest samples with these shares."""
    fewest = {3: (13, 24), 6: (106, 205), 9: (1, 5)}
    made = [each for place, (right, n) in fewest.items() for each in _episodes(right, n, length=0, place=place)]
    found = [(row[2], row[3], row[4]) for row in rows(tables(*made)["place"])]
    assert found == [("10 sessions", 3, 0.5417), ("10 sessions", 6, 0.5171), ("10 sessions", 9, 0.2)]
    (chart,) = [each for each in RECIPE.charts([("GPT-4o", made)]) if each.name == "place-10"]
    ((x, y),) = [(list(line.x), [round(value or 0, 4) for value in line.y]) for line in chart.series]
    assert (x, y) == ([3, 6, 9], [0.5417, 0.5171, 0.2])


def test_paper_figure_6() -> None:
    """The model trained at 4k is measured on test users at 4k and 12k."""
    before = _episodes(229, 516, length=4000, split="test")
    after = _episodes(383, 516, length=4000, split="test") + _episodes(365, 516, length=12000, split="test")
    (table,) = [each for each in RECIPE.report_tables([("before", before), ("RL", after)]) if each.name == "users"]
    assert list(table.columns)[2:5] == ["users", "4k %", "12k %"]
    assert [row[:5] for row in rows(table)] == [
        ["before", "function-calling", "test", 0.4438, None],
        ["RL", "function-calling", "test", 0.7422, 0.7074],
    ]


def _episodes(right: int, n: int, mean_f1: float = 1.0, **facets: Any) -> list[Episode]:
    """Return `n` samples of different pairs; `right` of them are right."""
    return [sample(at < right, mean_f1, pair=str(at), **{"sessions": 10, **facets}) for at in range(n)]
