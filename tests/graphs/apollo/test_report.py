"""Every number of APOLLO's tables, from samples whose scores are known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dialoom
from dialoom import Episode, Judgement, Outcome
from dialoom.graphs import Estimate, Table
from dialoom.graphs.apollo import RECIPE
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
    """A finished sample with these scores; `stale` and `flags` may be among the facets."""
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
    """The tables of a run over these, by name."""
    return {table.name: table for table in RECIPE.compared([(label, samples)])}


def means(cells: Iterable[Any]) -> list[Any]:
    """The means of cells that have one, else the cells."""
    return [round(cell.mean, 4) if isinstance(cell, Estimate) else cell for cell in cells]


def rows(table: Table) -> list[list[Any]]:
    """A table's rows with means for estimates."""
    return [means(row) for row in table.rows]


def test_each_length_has_its_column_and_the_mean_is_over_all() -> None:
    """Of a table with one length there is no mean."""
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
    assert tables(*reversed(made))["form"].title.endswith(", over 2k, 12k"), "shorter ones first, whatever the plan"


def test_the_mean_over_lengths_resamples_pairs_and_a_single_length_has_wilsons_interval() -> None:
    """Six pairs whose lengths agree say no more than six: not as much as twelve samples would."""
    made = [
        sample(right, 1.0, pair=f"p{n}", length=length)
        for n, right in enumerate([True] * 3 + [False] * 3)
        for length in (2000, 4000)
    ]
    ((_, _, short, _, mean),) = tables(*made)["accuracy"].rows
    assert isinstance(short, Estimate) and isinstance(mean, Estimate)
    assert (short.n, mean.n) == (6, 12)
    assert short.low is not None and round(short.low, 3) == 0.188, "Wilson's of 3 of 6"
    assert (mean.low, mean.high) == (1 / 6, 5 / 6), "no narrower than that of six"


def test_forms_kinds_of_query_and_domains_have_their_rows() -> None:
    """In the order of the forms, the implicit ones also together."""
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


def test_places_are_told_where_the_number_of_sessions_was_given() -> None:
    """And drawn as a chart."""
    made = [sample(place < 3, 0.5, length=0, sessions=10, place=place, pair="p1") for place in (3, 1, 2)]
    found = tables(*made)
    assert rows(found["place"]) == [
        ["m", "function-calling", "10 sessions", place, float(place < 3), 0.5] for place in (1, 2, 3)
    ]
    assert "place" not in tables(sample(True, 1.0))
    chart, _ = RECIPE.charts([("m", made)])
    assert (chart.name, [*chart.series[0].x], [*chart.series[0].y]) == ("place-10", [1, 2, 3], [1.0, 1.0, 0.0])


def test_samples_with_changed_preferences_stand_in_a_table_of_their_own() -> None:
    """Beside those of the same length without; they count in no other."""
    found = tables(
        sample(True, 1.0, pair="p1"),
        sample(False, 0.4, pair="p1", evolving=True, stale=True),
        sample(False, 0.6, pair="p2", evolving=True, stale=False),
    )
    assert [row[3:] for row in rows(found["evolving"])] == [["no", 1.0, 1.0, None], ["yes", 0.0, 0.5, 0.5]]
    assert rows(found["accuracy"]) == [["m", "function-calling", 1.0]]


def test_endings_flags_and_failures_are_counted() -> None:
    """A framework of which nothing was finished has a row, too."""
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


def test_what_the_rule_says_of_failures_is_shown_as_shares() -> None:
    """Of the samples that failed; without a judge there is no kappa."""
    found = tables(sample(True, 1.0), *(sample(False, 0.0, pair=f"p{n}") for n in (2, 3)))["errors"]
    assert [row[2:] for row in rows(found)] == [["rule", 2, 0.0, 0.0, 1.0, 0.0]]
    assert "errors" not in tables(sample(True, 1.0))


def test_recall_of_retrieval_stands_beside_its_accuracy() -> None:
    """By length."""
    made = [sample(hit, 1.0, pair=f"p{n}", framework="rag", hit=hit) for n, hit in enumerate((True, False))]
    assert rows(tables(*made)["retrieval"]) == [["m", "rag", "2k", 0.5, 0.5]]


def test_several_runs_stand_in_one_table_by_their_models_and_frameworks() -> None:
    """Models as the runs were named, frameworks as the paper has them; a line of the chart for each."""
    runs = [
        ("z", [sample(True, 1.0, framework="rag"), sample(False, 0.0), sample(True, 1.0, length=4000)]),
        ("a", [sample(False, 0.5), sample(False, 0.5, length=4000)]),
    ]
    found = {table.name: table for table in RECIPE.compared(runs)}
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


def test_preferences_and_queries_stand_beside_each_other_as_in_the_paper() -> None:
    """Over all lengths; what there is none of is left open."""
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


def test_frameworks_are_compared_with_the_baseline_on_the_same_samples() -> None:
    """Each pair with itself, by length and over all; what the baseline has not played counts in no difference."""
    made = [sample(n < 2, 0.5, pair=f"p{n}", length=length) for n in range(6) for length in (2000, 4000)]
    noted = [sample(n < 5, 0.5, pair=f"p{n}", length=2000, framework="memory") for n in range(6)]
    noted += [sample(n < 3, 0.5, pair=f"p{n}", length=4000, framework="memory") for n in range(6)]
    alone = sample(True, 1.0, pair="p9", framework="memory")
    found = tables(*made, *noted, alone)["frameworks"]
    assert found.columns == ["model", "framework", "2k %", "4k %", "mean %", "p"]
    ((*told, short, long, mean, p),) = found.rows
    assert told == ["m", "memory"]
    assert means([short, long, mean]) == [0.5, 0.1667, 0.3333]
    assert isinstance(mean, Estimate) and mean.n == 12 and mean.low is not None and mean.low < mean.mean
    assert isinstance(p, float) and p < 0.5
    assert "frameworks" not in tables(*made)
    (bars,) = [chart for chart in RECIPE.charts([("m", [*made, *noted])]) if chart.name == "frameworks"]
    assert (bars.kind, [*bars.names], [*bars.series[0].x]) == ("bars", ["function-calling", "memory"], [0, 1])
    assert [round(value or 0, 4) for value in bars.series[0].y] == [0.3333, 0.6667]


def test_users_that_were_trained_on_are_set_apart() -> None:
    """In a table and a chart, where it is said which."""
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


def test_errors_are_drawn_on_top_of_each_other() -> None:
    """A bar for each model and framework: shares of what failed, which make one together."""
    made = [sample(False, 0.0, pair=f"p{n}", framework=name) for n in range(2) for name in ("reminder", "rag")]
    (chart,) = [each for each in RECIPE.charts([("m", [*made, sample(True, 1.0)])]) if each.name == "errors"]
    assert (chart.kind, [*chart.names]) == ("stacked", ["reminder", "rag"])
    assert {series.label: [*series.y] for series in chart.series if any(series.y)} == {"hallucination": [1.0, 1.0]}
    assert not RECIPE.charts([("m", [sample(True, 1.0)])])


def test_models_are_compared_on_the_same_samples_over_pairs(tmp_path: Path) -> None:
    """Of one user there are enough pairs for an interval, as lengths of a pair are what hangs together."""
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
