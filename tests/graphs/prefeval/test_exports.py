"""PrefEval's files as the release's scripts read them, and the training set."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import dialoom
from dialoom import DialoomError, Line
from dialoom.graphs import Estimate, Shared
from dialoom.graphs.prefeval import RECIPE
from dialoom.graphs.prefeval.exports import LEFT_OUT_FILE, release_rows
from dialoom.graphs.prefeval.results import find_error
from dialoom.graphs.prefeval.scenario import PrefEvalScenario
from dialoom.personas.preferences import DEFAULT_POOL, FORMS, Form, read_chats, sample_pairs
from dialoom.prompts import PromptLibrary
from tests.graphs.prefeval.finished import item

TOPIC = "travel_hotel"
Row = dict[str, Any]


def official_errors(row: Row) -> list[str]:
    """Return the errors that the release's accuracy script counts in a judged row, implemented from the protocol."""
    words = row["evaluation_error_analysis"]
    acknowledges, violates, hallucinates = (
        "yes" in words[key]["answer"].lower() for key in ("acknow", "violate", "hallucinate")
    )
    helps = "no" not in words["helpful"]["answer"].lower()
    counted = {
        "unaware": not acknowledges and violates and helps,
        "hallucination": acknowledges and hallucinates and violates and helps,
        "inconsistency": acknowledges and not hallucinates and violates and helps,
        "unhelpful": not helps,
    }
    return [error for error, holds in counted.items() if holds]


def official_accuracy(rows: list[Row]) -> float:
    """Return the share of rows without such an error."""
    return 1 - sum(len(official_errors(row)) for row in rows) / len(rows)


def scenario(form: Form = "explicit", **given: Any) -> PrefEvalScenario:
    """Return the first pair of a topic as an item whose question follows immediately."""
    pair = next(sample_pairs().pairs(TOPIC, form, with_options=True))
    about = {"task": "generation", "method": "zero-shot", "turns": 0, "tokens": 20, "counter": "cl100k_base"}
    turns: Shared[tuple[Line, ...]] = Shared(())
    return PrefEvalScenario.model_validate({**about, "pair": pair, "distractors": turns, **given})


REPLIED = {"replies": {scenario().pair.preference: "Noted."}}


@pytest.mark.parametrize("words", list(product((True, False), repeat=4)))
def test_official_arithmetic_agrees_on_every_combination_of_verdicts(words: tuple[bool, ...]) -> None:
    episode = item(words, details=REPLIED)
    rows = dict(release_rows(episode, scenario(), PromptLibrary([]), {"assistant": "vendor/model"}))
    (judged,) = [row for names, row in rows.items() if names[-1].startswith("error_")]
    found = find_error(episode.outcome.judgements)
    assert official_errors(judged) == ([found] if found else [])


def test_missing_verdict_is_left_out_and_named() -> None:
    episode = item((True, True, None, True), details=REPLIED)
    rows = dict(release_rows(episode, scenario(), PromptLibrary([]), {"assistant": "vendor/model"}))
    name = f"vendor_model_{TOPIC}_0interturn.json"
    folder = ("benchmark_results", "explicit", "generation_results", "zero-shot", TOPIC)
    assert set(rows) == {(*folder, name), LEFT_OUT_FILE}
    assert rows[LEFT_OUT_FILE] == {"id": "id", "file": "/".join((*folder[1:], f"error_{name}")), "why": "unparsed"}


@pytest.mark.parametrize("form", FORMS)
def test_row_begins_as_the_pairs_own_row(form: Form) -> None:
    folders = {"explicit": "explicit_preference", "choice": "implicit_preference/choice-based"}
    folder = folders.get(form, "implicit_preference/persona-driven")
    source = json.loads((DEFAULT_POOL.parent / folder / f"{TOPIC}.json").read_text())[0]
    source.pop("conflicting_preference", None)
    episode = item(details=REPLIED)
    names, row = next(release_rows(episode, scenario(form), PromptLibrary([]), {"assistant": "m"}))
    assert source.items() <= row.items()
    assert row["response_to_q"] == "Go there."
    assert ("response_to_pref" in row) == (form == "explicit")
    assert names[1:-4] == {"explicit": ("explicit",), "choice": ("implicit", "choice")}.get(
        form, ("implicit", "persona")
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Play some pairs with a reminder, without one, and with a critique, as answers and as choices."""
    options = {
        "topics": TOPIC,
        "task": ["generation", "classification"],
        "method": ["zero-shot", "reminder", "self-critic"],
        "turns": [0],
        "limit": 18,
    }
    return dialoom.play(RECIPE, path=tmp_path_factory.mktemp("played") / "run.db", options=options, seed=1)


def test_official_scripts_would_print_the_reported_figures(played: dialoom.Run, tmp_path: Path) -> None:
    played.export("prefeval", tmp_path / "out")
    root = tmp_path / "out" / "benchmark_results" / "explicit"
    (accuracy,) = [table for table in played.report().tables if table.name == "accuracy"]
    shown = {(row[1], row[2]): row[3] for row in accuracy.rows}
    assert len(shown) == 6
    for method, task_id in (("zero-shot", "zero-shot"), ("reminder", "remind"), ("self-critic", "selfcritic")):
        name = f"offline_attentive_{TOPIC}_0interturn.json"
        judged = json.loads((root / "generation_results" / task_id / TOPIC / f"error_{name}").read_text())
        chosen = json.loads((root / "mcq_results" / task_id / TOPIC / name).read_text())
        right = [row["choice"] == row["correct_idx"] for row in chosen]
        for task, official in (("generation", official_accuracy(judged)), ("classification", sum(right) / len(right))):
            cell = shown[task, method]
            assert isinstance(cell, Estimate)
            assert cell.n == 3 and cell.mean == pytest.approx(official), (task, method)
        for row in chosen:
            at = "ABCD".index(row["correct_idx"])
            assert row["shuffled_options"][at] == row["classification_task_options"][0]
            assert row["response_to_pref"]
        assert all("first_choice" in row for row in chosen) == (method == "self-critic")
        assert all(row.get("self_critic") for row in judged) == (method == "self-critic")


def test_lengths_in_tokens_with_equal_turns_are_in_separate_files(tmp_path: Path) -> None:
    options = {"topics": TOPIC, "tokens": [900, 905], "limit": 2, "judge": False}
    run = dialoom.play(RECIPE, path=tmp_path / "run.db", options=options)
    one, other = run.episodes()
    assert one.facets["turns"] == other.facets["turns"] and one.facets["index"] == other.facets["index"]
    run.export("prefeval", tmp_path / "out")
    root = tmp_path / "out" / "benchmark_results" / "explicit" / "generation_results"
    files = {path.parts[-3]: json.loads(path.read_text()) for path in root.rglob("*interturn.json")}
    assert {name: len(rows) for name, rows in files.items()} == {"zero-shot_900tokens": 1, "zero-shot_905tokens": 1}


def test_rows_agree_with_the_report(played: dialoom.Run, tmp_path: Path) -> None:
    played.export("rows", tmp_path / "rows.jsonl")
    played.export("rows", tmp_path / "rows.parquet", encoding="parquet")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows
    (accuracy,) = [table for table in played.report().tables if table.name == "accuracy"]
    for shown in accuracy.rows:
        cells = dict(zip(accuracy.columns, shown, strict=True))
        counted = [row["is_right"] for row in rows if (row["task"], row["method"]) == (cells["task"], cells["method"])]
        (cell,) = [each for each in shown if isinstance(each, Estimate)]
        assert sum(counted) / len(counted) == pytest.approx(cell.mean)
    free = [row for row in rows if row["task"] == "generation"]
    assert all(row["is_right"] == (row["error"] is None) for row in rows)
    assert all(bool(row["quote"]) == row["acknowledges"] for row in free)


def test_training_rows_are_answers_without_the_reminder(played: dialoom.Run, tmp_path: Path) -> None:
    (notice,) = played.export("sft", tmp_path / "sft.jsonl", options={"between": [0, 5]}).notices
    assert notice.endswith(
        "left out: no answer selected by these options with form explicit, method reminder and turns 0"
    )
    rows = [json.loads(line) for line in (tmp_path / "sft.jsonl").read_text().splitlines()]
    pairs = list(sample_pairs().pairs(TOPIC, "explicit"))[:3]
    assert [(row["prompt"][1]["content"], row["unrelated_turns"]) for row in rows] == [
        (pair.preference, turns) for pair in pairs for turns in (0, 5)
    ]
    last = [said.content for chat in read_chats(DEFAULT_POOL)[-4:] for said in chat]
    for row, pair in zip(rows, [pair for pair in pairs for _ in range(2)], strict=True):
        speakers = [message["role"] for message in row["prompt"]]
        assert speakers == ["system", "user", "assistant", *["user", "assistant"] * row["unrelated_turns"], "user"]
        assert row["prompt"][-1]["content"] == pair.question
        assert [message["content"] for message in row["prompt"][3:-1]] == last[: 2 * row["unrelated_turns"]]
        (answer,) = row["completion"]
        assert answer["role"] == "assistant" and answer["content"]


def test_training_set_can_be_limited_to_right_answers(played: dialoom.Run, tmp_path: Path) -> None:
    options = {"between": [0], "right_only": True}
    played.export("sft", tmp_path / "sft.jsonl", options=options)
    (errors,) = [table for table in played.report().tables if table.name == "errors"]
    (right,) = [row[list(errors.columns).index("right")] for row in errors.rows if "reminder" in row]
    assert len((tmp_path / "sft.jsonl").read_text().splitlines()) == right


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"between": [500]}, "between 500: the last 4 chats"),
        ({"between": [-1]}, "between"),
        ({"last_chats": 0}, "last"),
    ],
)
def test_too_many_turns_are_refused(played: dialoom.Run, tmp_path: Path, options: Row, message: str) -> None:
    with pytest.raises(DialoomError, match=message):
        played.export("sft", tmp_path / "sft.jsonl", options=options)
    assert not list(tmp_path.iterdir())
