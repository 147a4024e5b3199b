"""PrefEval's tables, charts and verdicts."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dialoom import Episode, Judgement
from dialoom.graphs import Chart, Estimate, Table
from dialoom.graphs.prefeval import RECIPE
from dialoom.graphs.prefeval.report import build_charts, build_tables
from dialoom.graphs.prefeval.results import CHECKERS, classify_error, find_error
from dialoom.graphs.tables import Cell
from dialoom.graphs.tables.statistics import TRIALS_NOTE
from dialoom.runs.agreement import compute_agreement, read_labels, write_sample
from dialoom.runs.store import RunFile
from tests.graphs.prefeval.finished import RIGHT, UNAWARE, choice, item, right_of
from tests.graphs.prefeval.test_playing import Assistant, Judge, played
from tests.graphs.support import linked_columns

SIZES = [56, 58, 46, 56, 52, 62, 51, 57, 52, 53, 54, 56, 35, 31, 54, 36, 43]
"""Rows of 17 topics in the release, in the protocol's order; table 5 has them."""
OLDER = {0: 53, 5: 60, 12: 32, 13: 26, 16: 35}
"""Sizes of topics that differ in table 5's RAG rows."""
SONNET_ZERO_SHOT = [3, 3, 5, 6, 4, 6, 9, 2, 3, 6, 3, 8, 5, 6, 20, 5, 9]
HAIKU_RAG = [28, 40, 42, 50, 45, 55, 46, 31, 49, 48, 48, 51, 28, 25, 50, 30, 34]


def report(*items: Episode, more: Sequence[tuple[str, Iterable[Episode]]] = ()) -> dict[str, Table]:
    """Return the tables of a run of `model` (and of more runs) by name."""
    return {table.name: table for table in build_tables([("model", items), *more])}


def figures(*items: Episode) -> dict[str, Chart]:
    """Return the charts of a run by name."""
    return {chart.name: chart for chart in build_charts([("model", items)])}


def row(table: Table, *begins: str) -> dict[str, Cell]:
    """Return the row that begins with these texts, by column."""
    (found,) = [row for row in table.rows if tuple(row[: len(begins)]) == begins]
    return dict(zip(table.columns, found, strict=True))


def mean(cell: Cell) -> float:
    """Return an estimate's mean."""
    assert isinstance(cell, Estimate)
    return cell.mean


@pytest.mark.parametrize(
    ("right", "sizes", "first", "unweighted", "pooled"),
    [
        (SONNET_ZERO_SHOT, SIZES, 5.36, 12.53, 12.09),
        (HAIKU_RAG, [OLDER.get(number, n) for number, n in enumerate(SIZES)], 52.83, 85.10, 84.24),
    ],
)
def test_averages_are_means_over_topics_and_not_over_pairs(
    right: list[int], sizes: list[int], first: float, unweighted: float, pooled: float
) -> None:
    """Two rows of table 5, with its 17 topics, are reproduced."""
    items = [
        each
        for number, (count, n) in enumerate(zip(right, sizes, strict=True))
        for each in right_of(count, n, topic=f"topic {number:02}")
    ]
    found = row(report(*items)["generation-explicit-10-turns"], "model", "zero-shot")
    average = found["Average %"]
    assert isinstance(average, Estimate) and average.low is not None and average.high is not None
    assert round(100 * mean(found["topic 00 %"]), 2) == first
    assert round(100 * average.mean, 2) == unweighted
    assert round(100 * sum(right) / sum(sizes), 2) == pooled
    assert average.n == sum(sizes)
    assert average.low < average.mean < average.high


def test_models_are_compared_by_method_and_length() -> None:
    """Table 4 has one topic of 56 pairs at 10 and 300 turns, zero-shot and with a reminder."""
    counts = {"sonnet": (4, 25, 1, 1), "gemini": (4, 51, 5, 3), "o1": (28, 55, 8, 55), "gpt": (4, 55, 3, 13)}
    settings = list(product((8, 298), ("zero-shot", "reminder")))

    def items(model: str) -> Iterator[Episode]:
        for (turns, method), count in zip(settings, counts[model], strict=True):
            yield from right_of(count, 56, topic="travel_restaurant", turns=turns, method=method)

    table = report(*items("sonnet"), more=[(model, items(model)) for model in list(counts)[1:]])["accuracy"]
    for (turns, method), place in zip(settings, range(4), strict=True):
        for model, label in zip(counts, ("model", "gemini", "o1", "gpt"), strict=True):
            cell = row(table, label, method)[f"{turns + 2} turns %"]
            assert mean(cell) == counts[model][place] / 56
    assert "travel_restaurant" in table.title


def test_training_on_a_method_shows_before_and_after() -> None:
    """Table 17 has one topic of 56 pairs before and after training, in two forms."""
    counts = {"before": {"persona": 1, "choice": 2}, "after": {"persona": 31, "choice": 8}}

    def items(label: str) -> Iterator[Episode]:
        for form, count in counts[label].items():
            yield from right_of(count, 56, topic="travel_restaurant", form=form)

    table = {each.name: each for each in build_tables([(label, items(label)) for label in counts])}["accuracy"]
    cells = [dict(zip(table.columns, each, strict=True)) for each in table.rows]
    found = {(each["model"], each["form"]): round(100 * mean(each["10 turns %"]), 2) for each in cells}
    assert found == {
        ("before", "persona"): 1.79,
        ("before", "choice"): 3.57,
        ("after", "persona"): 55.36,
        ("after", "choice"): 14.29,
    }


def test_every_combination_of_verdicts_has_its_error() -> None:
    """Of 16 combinations, 8 are unhelpful, 2 unaware, 1 a hallucination, 1 an inconsistency and 4 right."""
    tables = report(*(item(words) for words in product((True, False), repeat=4)))
    found = row(tables["errors"], "model", "zero-shot")
    kinds = ("answers", "right", "unaware", "hallucination", "inconsistency", "unhelpful", "unparsed", "not judged")
    assert [found[kind] for kind in kinds] == [16, 4, 2, 1, 1, 8, 0, 0]
    assert mean(row(tables["accuracy"], "model", "zero-shot")["10 turns %"]) == 0.25


def test_missing_value_is_none_and_not_zero() -> None:
    tables = report(
        item(RIGHT, topic="a"),
        item(UNAWARE, topic="b"),
        item(RIGHT, topic="a", turns=298),
        item(topic="b", turns=298, failed="context"),
        item(topic="b", turns=298, failed="provider, permanent"),
        item(None, topic="a", method="cot"),
    )
    by_length = tables["accuracy"]
    assert mean(row(by_length, "model", "zero-shot")["10 turns %"]) == 0.5
    assert row(by_length, "model", "zero-shot")["300 turns %"] is None
    assert row(by_length, "model", "cot")["10 turns %"] is None
    long = row(tables["generation-explicit-300-turns"], "model", "zero-shot")
    assert (long["Average %"], mean(long["a %"]), long["b %"]) == (None, 1.0, None)
    note = "Not counted, because a request exceeded the model's context window: 1 items."
    assert [note in tables[name].notes for name in ("accuracy", "generation-explicit-300-turns")] == [True, True]
    assert note not in tables["generation-explicit-10-turns"].notes
    items = row(tables["dialogues"], "model", "300 turns")
    assert (items["items"], items["failed"], items["too long"]) == (3, 2, 1)


def test_unparsed_verdict_counts_but_is_no_success() -> None:
    tables = report(item(RIGHT), item((False, True, None, True)), item((None, False, None, True)))
    accuracy = row(tables["accuracy"], "model", "zero-shot")["10 turns %"]
    assert isinstance(accuracy, Estimate)
    assert (accuracy.n, accuracy.mean) == (3, 1 / 3)
    assert row(tables["errors"], "model", "zero-shot")["unparsed"] == 2


def test_figures_link_to_the_items_that_they_count(tmp_path: Path) -> None:
    class Breaking(Assistant):
        async def __call__(self, messages: list[Any]) -> str:
            asked = messages[-1]["content"]
            if "<retrieved>" in asked and "hats would you buy, number 1?" in asked and len(messages) == 12:
                raise ValueError("no hats today")
            return await super().__call__(messages)

    options: dict[str, Any] = {"extra": (0, 2), "position": (0.0, 1.0), "method": ("rag", "zero-shot"), "limit": None}
    run = played(tmp_path, Breaking(), Judge(), topics="hats, lamps", turns=(2, 4), **options)
    assert run.status().failed == 4
    linked = {table for table, _ in linked_columns(run)}
    assert linked >= {"accuracy", "position", "preferences", "retrieval", "generation-explicit-4-turns"}


def test_trials_of_an_item_count_once_in_intervals() -> None:
    method: dict[str, Any] = {"method": "rag", "retrieved": 2}
    once = [
        replace(each, id=f"{topic}-{number}")
        for topic, right in (("a", 4), ("b", 7))
        for number in range(10)
        for each in [item(RIGHT if number < right else UNAWARE, details={"hit": number > 2}, topic=topic, **method)]
    ]
    again = [
        replace(each, id=each.id if trial == 1 else f"{each.id}~{trial}", trial=trial)
        for each in once
        for trial in (1, 2, 3)
    ]
    alone, repeated = report(*once), report(*again)
    for name in ("accuracy", "generation-explicit-10-turns", "retrieval"):
        assert TRIALS_NOTE in repeated[name].notes and TRIALS_NOTE not in alone[name].notes
        for first, second in zip(alone[name].rows[0], repeated[name].rows[0], strict=True):
            if isinstance(first, Estimate):
                assert isinstance(second, Estimate) and second == replace(first, n=3 * first.n)


def test_choices_without_a_letter_are_wrong_and_counted() -> None:
    tables = report(choice(True), choice(False), choice(False), choice(False, None))
    found = row(tables["choices"], "model", "zero-shot")
    assert [found[column] for column in ("choices", "right", "wrong", "wrong without a letter")] == [4, 1, 3, 1]
    assert mean(row(tables["accuracy"], "model", "zero-shot")["10 turns %"]) == 0.25


def test_only_tables_with_content_are_shown() -> None:
    assert set(report(item())) == {"accuracy", "errors", "dialogues"}
    assert set(report(item(), choice(True))) == {"accuracy", "errors", "choices", "dialogues"}
    assert report() == {} and figures() == {}
    assert set(figures(item())) == {"errors"}


def test_positions_further_preferences_and_conflict_have_tables_and_charts() -> None:
    items = [
        *right_of(6, 10, turns=98),
        *(each for at, count in ((0.5, 2), (1.0, 8)) for each in right_of(count, 10, turns=98, position=at)),
        *(each for count in (3, 5) for each in right_of(count, 10, turns=98, preferences=count)),
        *(
            each
            for arm, count in (("agreeing", 4), ("conflicting", 5), ("alone", 3))
            for each in right_of(count, 10, turns=98, arm=arm, position=0.5, preferences=1 + (arm != "alone"))
        ),
    ]
    tables, drawn = report(*items), figures(*items)
    assert mean(row(tables["accuracy"], "model", "zero-shot")["100 turns %"]) == 0.6
    positions, preferences, conflict = (
        row(tables[name], "model", "zero-shot") for name in ("position", "preferences", "conflict")
    )
    assert [mean(positions[f"at {at} %"]) for at in ("0", "0.5", "1")] == [0.6, 0.2, 0.8]
    assert [mean(preferences[f"{n} %"]) for n in ("1 preference", "3 preferences", "5 preferences")] == [0.6, 0.3, 0.5]
    assert [column for column in conflict if column.endswith("%")] == ["alone %", "agreeing %", "conflicting %"]
    (turns,), (bars,) = drawn["position"].series, drawn["conflict"].series
    assert (list(turns.x), list(turns.y)) == ([1, 50, 99], [0.6, 0.2, 0.8])
    assert (drawn["conflict"].kind, list(drawn["conflict"].names)) == ("bars", ["alone", "agreeing", "conflicting"])
    assert list(bars.y) == [0.3, 0.4, 0.5]


def test_retrieval_shows_how_often_the_preference_was_found() -> None:
    """Figure 12 shows accuracy and hits over k."""
    items = [
        item(RIGHT if index < right else UNAWARE, method="rag", retrieved=k, details={"hit": index < hits})
        for k, right, hits in ((1, 2, 4), (5, 6, 8))
        for index in range(10)
    ]
    table = report(*items)["retrieval"]
    assert [mean(row(table, "model", f"k={k}")["preference found %"]) for k in (1, 5)] == [0.4, 0.8]
    accuracy, found = figures(*items)["retrieval"].series
    assert (list(accuracy.x), list(accuracy.y), list(found.y)) == ([1, 5], [0.2, 0.6], [0.4, 0.8])


def test_tasks_are_correlated_over_cells_and_not_over_items() -> None:
    cells = {8: (4, 2, 9), 18: (2, 1, 7), 28: (1, 0, 6), 48: (0, 2, 4)}
    items: list[Episode] = []
    expected = []
    for turns, (a, b, chosen) in cells.items():
        items += [*right_of(a, 10, topic="a", turns=turns), *right_of(b, 2, topic="b", turns=turns)]
        items += [choice(index < chosen, topic=topic, turns=turns) for topic in "ab" for index in range(10)]
        expected.append(((a / 10 + b / 2) / 2, chosen / 10))
    found = row(report(*items)["correlation"], "explicit")
    assert found["cells"] == 4
    assert found["r"] == pytest.approx(statistics.correlation(*zip(*expected, strict=True)))
    chart = figures(*items)["tasks-explicit"]
    assert (chart.kind, len(chart.series[0].x)) == ("points", 4)
    two = [each for each in items if each.facets["turns"] < 28]
    assert "correlation" not in report(*two), "two points always lie on a line"


def test_lines_go_over_turns_by_model_method_and_form() -> None:
    """In figures 3 to 6, 7 and 13 the varying axes name the charts and the lines."""
    items = [
        each
        for form, method, turns in product(("explicit", "persona"), ("zero-shot", "reminder"), (8, 68))
        for each in right_of(5, 10, form=form, method=method, turns=turns, tokens=turns * 300)
    ]
    drawn = figures(*items)
    assert {
        *("turns-explicit", "turns-persona", "tokens-explicit", "tokens-persona"),
        *("methods-explicit", "methods-persona", "forms", "errors-explicit", "errors-persona"),
        *("error-numbers-explicit-reminder", "error-numbers-persona-zero-shot"),
    } <= set(drawn)
    assert [series.label for series in drawn["methods-explicit"].series] == ["zero-shot", "reminder"]
    assert [series.label for series in drawn["forms"].series] == ["explicit", "persona"]
    assert [list(series.x) for series in drawn["tokens-explicit"].series] == [[2400.0, 20400.0]]
    shares = drawn["errors-explicit"]
    assert (shares.kind, list(shares.names)) == ("stacked", ["zero-shot", "reminder"])
    assert "10 turns" in shares.title
    assert list(shares.series[0].y) == [0.5, 0.5]
    assert list(drawn["error-numbers-explicit-reminder"].series[0].y) == [5, 5]


def test_lengths_in_tokens_are_a_column_each() -> None:
    tables = report(item(RIGHT, turns=8, token_limit=3000), item(UNAWARE, turns=9, token_limit=3000))
    assert mean(row(tables["accuracy"], "model", "zero-shot")["3,000 tokens %"]) == 0.5


def test_people_rate_whole_answers_blind_to_the_checkers(tmp_path: Path) -> None:
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
        # By the checkers' verdicts all answers are wrong: they violate the preference and hallucinate one.
        said = "\n".join(f"{row['item']},{'no' if number else 'yes'}" for number, row in enumerate(asked))
        (tmp_path / "filled.csv").write_text(f"item,label:anna\n{said}\n")
        (group,) = compute_agreement(run, read_labels(tmp_path / "filled.csv")).groups
    assert (group.cohen["anna"].n, group.cohen["anna"].agreement) == (4, 0.75)


def test_answer_without_a_checkers_verdict_has_no_score(tmp_path: Path) -> None:
    played(tmp_path, Assistant(), Judge(helpful="maybe"))
    with RunFile(tmp_path / "run.db", recipe=RECIPE) as run:
        sample = write_sample(run, tmp_path / "labels.csv", 9, ["anna"])
    assert sample.unscored == 2
    assert {group.metric for group in sample.counts} == {"violates", "acknowledges", "hallucinates"}


@pytest.mark.parametrize(
    ("violates", "acknowledges", "hallucinates", "helpful", "error"),
    [
        (True, False, None, True, "unaware"),
        (True, True, True, True, "hallucination"),
        (True, True, False, True, "inconsistency"),
        (False, True, True, True, None),
        (False, False, None, True, None),
        (True, True, True, False, "unhelpful"),
        (False, False, None, False, "unhelpful"),
        (None, False, None, True, "unparsed"),
        (False, None, None, True, "unparsed"),
        (False, True, None, True, "unparsed"),
        (True, False, None, None, "unparsed"),
        (None, False, None, False, "unparsed"),
    ],
)
def test_each_error_and_missing_verdict(
    violates: bool | None, acknowledges: bool | None, hallucinates: bool | None, helpful: bool | None, error: str | None
) -> None:
    assert classify_error(violates, acknowledges, hallucinates, helpful) == error


def test_error_of_a_set_of_judgements() -> None:
    def said(**scores: bool | None) -> list[Judgement]:
        return [
            Judgement(metric=metric, target="assistant", score=score, status="unparsed" if score is None else "ok")
            for metric, score in scores.items()
        ]

    assert find_error(said(violates=False, acknowledges=False, helpful=True)) is None
    assert find_error(said(violates=True, acknowledges=True, hallucinates=False, helpful=True)) == "inconsistency"
    assert find_error(said(violates=False, acknowledges=None, helpful=True)) == "unparsed"
    assert find_error(said(violates=False, helpful=True)) == "unparsed"
    assert find_error(said(correct=True)) is None
    assert find_error(said(correct=False)) == "wrong"
    assert find_error([]) == "unjudged"
    assert set(CHECKERS) == {"violates", "acknowledges", "hallucinates", "helpful"}
