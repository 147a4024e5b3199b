"""`dialoom agree`: drawing a sample from a run, kappas from a labelled sample, and refused input."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from dialoom import DialoomError, open_run
from dialoom.personas import DataError
from tests.conftest import Command, MadeOnce, write_quick_players
from tests.invented import write_release

CAST = """
import itertools, re

numbers = itertools.count()

async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine" + ("." if said else f", no. {next(numbers)}.") + (" TERMINATE" if said >= 2 else "")

async def judge(messages):
    text = str(messages)
    number = int(re.search(r"no\\. (\\d+)", text)[1])
    if "Was this goal reached" in text:
        return '{"verdict": %s}' % ("true" if number % 2 else "false")
    if "How coherent are" in text and number % 3 == 0:
        return "I would rather not say."
    return '{"score": %d, "explanation": "secret"}' % (1 + (number + text.count("Reply to")) % 4)
"""
Row = dict[str, str]


@pytest.fixture
def run(made_once: MadeOnce) -> Path:
    """Return a run of twelve dialogues with varied scores; a third of the coherence judgements are unparsed."""
    return made_once(_run) / "run.db"


def _run(dialoom: Command, folder: Path) -> None:
    write_release(folder / "release", users=6)
    (folder / "varied.py").write_text(CAST)
    assistant = write_quick_players(folder)[2:4]
    cast = [*assistant, "--model", "user=python:varied:user", "--model", "judge=python:varied:judge"]
    options = ["--turn-scores", "--seed", 3, "--concurrency", 1]
    dialoom("run", "personalens", "--profiles", "release", *cast, *options, "-o", "run.db")


@pytest.fixture(autouse=True)
def few_bootstrap_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the number of bootstrap samples: these tests do not check the intervals' bounds."""
    monkeypatch.setattr("dialoom.runs.report.rater_agreement.RESAMPLES", 100)


def _judged(run: Path) -> dict[str, Any]:
    """Return each item's score."""
    with open_run(run) as file:
        return {
            "/".join(map(str, filter(None, (episode.id, each.metric, each.target, each.turn)))): each.score
            for episode in file.episodes()
            for each in episode.outcome.judgements
        }


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _fill(source: Path, target: Path, fill: Callable[[Row, int], dict[str, str]]) -> None:
    """Write a sample's labels as annotators would in a spreadsheet."""
    rows = _rows(source)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for number, row in enumerate(rows):
            labels = {f"label:{name}": label for name, label in fill(row, number).items()}
            assert labels.keys() <= row.keys()
            writer.writerow(row | labels)


def _as_label(score: Any) -> str:
    return ("no", "yes")[score] if isinstance(score, bool) else str(score)


def test_sample_is_blind_balanced_and_reproducible(dialoom: Command, run: Path, tmp_path: Path) -> None:
    output = dialoom("agree", run, "--sample", 35, "-o", "s.csv", "--annotators", "anna, ben").stdout
    assert "35 judgements to label written to s.csv" in output
    assert "judgements have no score and were excluded from the draw" in output
    rows = _rows(tmp_path / "s.csv")
    columns = ["item", "scenario", "metric", "target", "turn", "scale", "digest", "about", "conversation"]
    assert list(rows[0]) == [*columns, "label:anna", "label:ben"]
    assert len({row["item"] for row in rows}) == 35
    kinds = Counter((row["metric"], row["target"], row["turn"] != "") for row in rows)
    assert list(kinds.values()) == [5] * 7
    judged = _judged(run)
    assert all(judged[row["item"]] is not None for row in rows)
    assert all(row["label:anna"] == row["label:ben"] == "" for row in rows)
    assert "secret" not in (tmp_path / "s.csv").read_text(encoding="utf-8")
    assert {(row["metric"], row["scale"]) for row in rows} == {
        ("task_completion", "yes or no"),
        ("personalization", "1 to 4"),
        ("naturalness", "1 to 5"),
        ("coherence", "1 to 5"),
    }
    for row in rows:
        assert "church bells" in row["about"], "the profile is needed to judge personalization"
        assert row["conversation"].startswith("user: Line 0 of mine, no. ")
        assert row["conversation"].count("assistant: ") == int(row["turn"] or 3)
    read = Counter(row["scenario"] for row in rows)
    assert f"{len(read):>7}  conversations to read" in output
    assert list(read) == [scenario for scenario, _ in groupby(row["scenario"] for row in rows)], "rows are grouped"
    dialoom("agree", run, "--sample", 35, "-o", "again.csv", "--annotators", "anna,ben")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "s.csv").read_bytes()
    dialoom("agree", run, "--sample", 35, "-o", "other.csv", "--annotators", "anna,ben", "--seed", 4)
    assert {row["item"] for row in _rows(tmp_path / "other.csv")} != {row["item"] for row in rows}


def test_sample_can_contain_everything_and_never_overwrites_a_file(dialoom: Command, run: Path, tmp_path: Path) -> None:
    judged = _judged(run)
    scored = [item for item, score in judged.items() if "/coherence/" in item and score is not None]
    output = dialoom("agree", run, "--sample", 500, "-o", "s.csv", "--metric", "coherence").stdout
    assert f"{len(scored)} judgements to label written to s.csv (there are no more than {len(scored)})" in output
    assert f"{24 - len(scored)} judgements have no score" in output
    assert sorted(row["item"] for row in _rows(tmp_path / "s.csv")) == sorted(scored)
    before = (tmp_path / "s.csv").read_bytes()
    assert "may contain people's labels" in dialoom("agree", run, "--sample", 5, "-o", "s.csv", code=2).stderr
    assert (tmp_path / "s.csv").read_bytes() == before
    assert "there is no folder no" in dialoom("agree", run, "--sample", 5, "-o", "no/s.csv", code=2).stderr
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]


def test_kappas_are_computed_from_labels(dialoom: Command, run: Path, tmp_path: Path) -> None:
    judged = _judged(run)
    metrics = ["--metric", "task_completion", "--metric", "personalization"]
    dialoom("agree", run, "--sample", 30, "-o", "s.csv", "--annotators", "anna,ben,cleo", *metrics)

    numbers = Counter[tuple[str, bool]]()

    def fill(row: Row, _number: int) -> dict[str, str]:
        score, group = judged[row["item"]], (row["metric"], row["turn"] != "")
        numbers[group] += 1
        other = not score if isinstance(score, bool) else 1 + score % 4
        ben = _as_label(other if numbers[group] % 3 == 0 else score)
        return {"anna": _as_label(score), "ben": ben, "cleo": ben if numbers[group] % 10 else ""}

    _fill(tmp_path / "s.csv", tmp_path / "filled.csv", fill)
    found = json.loads(dialoom("agree", run, "--labels", "filled.csv", "--json").stdout)
    assert found["judging"] == "run"
    assert found["annotators"] == ["anna", "ben", "cleo"]
    assert [(each["metric"], each["target"], each["by_turn"]) for each in found["agreement"]] == [
        ("task_completion", "assistant", False),
        ("personalization", "assistant", False),
        ("personalization", "assistant", True),
    ]
    rows = _rows(tmp_path / "filled.csv")
    for each in found["agreement"]:
        own = [
            row
            for row in rows
            if (row["metric"], row["target"]) == (each["metric"], each["target"])
            and (row["turn"] != "") == each["by_turn"]
        ]
        cohen = each["cohen"]
        assert cohen["anna"] | {"weighted": None} == {
            "n": len(own),
            "kappa": pytest.approx(1.0),
            "low": None,
            "high": None,
            "weighted": None,
            "agreement": 1.0,
        }
        assert cohen["ben"]["low"] <= cohen["ben"]["kappa"] < 1
        assert each["missing"] == {"anna": 0, "ben": 0, "cleo": sum(row["label:cleo"] == "" for row in own)}
        assert cohen["cleo"]["n"] == each["fleiss"]["n"] == len(own) - each["missing"]["cleo"]
        mean = sum(cohen[name]["kappa"] for name in cohen) / 3
        assert each["average"]["kappa"] == pytest.approx(mean)
        assert each["average"]["low"] <= mean <= each["average"]["high"]
        assert each["fleiss"]["low"] <= each["fleiss"]["kappa"] <= each["fleiss"]["high"] <= 1
        assert (cohen["ben"]["weighted"] is None) == (each["scale"] == "verdict")
    wrong = [row for row in rows if row["label:ben"] != row["label:anna"]]
    differing = [
        (each["conversation"], each["metric"], each["turn"], each["judge"], each["labels"]["ben"])
        for each in found["disagreements"]
    ]
    assert differing == [
        (row["scenario"], row["metric"], int(row["turn"] or 0) or None, row["label:anna"], row["label:ben"])
        for row in wrong
    ]
    listed = dialoom("agree", run, "--labels", "filled.csv", "--disagreements").stdout
    assert listed.count("task_completion (assistant)") == sum(row["metric"] == "task_completion" for row in wrong)
    first = [row for row in rows if row["metric"] == "personalization" and not row["turn"]]
    table = [[0] * 4 for _ in range(4)]
    for row in first:
        table[judged[row["item"]] - 1][int(row["label:ben"]) - 1] += 1
    theirs = cohens_kappa(table)
    ben = found["agreement"][1]["cohen"]["ben"]
    assert (ben["kappa"], ben["low"]) == pytest.approx((theirs.kappa, theirs.kappa_low))
    text = dialoom("agree", run, "--labels", "filled.csv", "--metric", "personalization").stdout
    assert "Intervals count items as independent, even turns and trials of one scenario" in " ".join(text.split())
    assert "judge, annotators (mean)" in text
    assert "annotators (Fleiss)" in text
    assert "personalization (assistant): items without a label, left out: cleo 1." in text
    assert "task_completion" not in text
    assert "offline" not in text
    one = dialoom("agree", run, "--labels", "filled.csv", "--annotators", "ben").stdout
    assert "anna" not in one
    assert "Fleiss)" not in one, "Fleiss' kappa needs two annotators"


def test_undefined_kappa_is_a_dash_with_its_reason(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "run.db")
    dialoom("agree", "run.db", "--sample", 6, "-o", "s.csv", "--metric", "task_completion", "--metric", "naturalness")

    def fill(row: Row, number: int) -> dict[str, str]:
        if row["metric"] == "task_completion":
            return {"annotator_1": "TRUE", "annotator_2": ""}
        return {"annotator_1": str(3 + number % 2), "annotator_2": "3"}

    _fill(tmp_path / "s.csv", tmp_path / "f.csv", fill)
    text = dialoom("agree", "run.db", "--labels", "f.csv").stdout
    assert "a rater used only one value" in " ".join(text.split())
    assert "0.00" not in text
    assert "nan" not in text
    verdicts = json.loads(dialoom("agree", "run.db", "--labels", "f.csv", "--json").stdout)["agreement"][0]
    assert verdicts["cohen"]["annotator_1"]["kappa"] is None
    assert verdicts["cohen"]["annotator_1"]["agreement"] == 1.0
    assert verdicts["cohen"]["annotator_2"] == {
        "n": 0,
        "kappa": None,
        "low": None,
        "high": None,
        "weighted": None,
        "agreement": None,
    }
    assert verdicts["average"]["kappa"] is verdicts["fleiss"]["kappa"] is None


def test_same_labels_are_compared_with_another_judgement_set(dialoom: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "shy.py").write_text(
        "async def judge(messages):\n"
        "    text = messages[-1]['content']\n"
        "    return '{\"verdict\": true}' if 'this goal' in text else 'no idea'\n"
    )
    dialoom("judge", run, "--model", "judge=python:shy:judge", "--name", "shy")
    dialoom("agree", run, "--sample", 24, "-o", "s.csv", "--metric", "naturalness", "--metric", "task_completion")
    judged = _judged(run)
    _fill(
        tmp_path / "s.csv",
        tmp_path / "f.csv",
        lambda row, _: dict.fromkeys(("annotator_1", "annotator_2"), _as_label(judged[row["item"]])),
    )
    found = json.loads(dialoom("agree", run, "--labels", "f.csv", "--judging", "shy", "--json").stdout)
    assert found["judging"] == "shy"
    natural = found["agreement"][1]
    assert natural["metric"] == "naturalness"
    assert natural["unscored"] == 8
    assert natural["cohen"]["annotator_1"]["n"] == natural["average"]["n"] == 0
    assert natural["fleiss"]["kappa"] == pytest.approx(1.0), "the annotators agree regardless of the judge"
    assert "no score, left out of its rows: 8" in dialoom("agree", run, "--labels", "f.csv", "--judging", "shy").stdout
    calibrated = dialoom("report", run, "--calibrated", "--labels", "f.csv", "--judging", "shy").stdout
    assert "naturalness (assistant): labelled items without a judge's score, left out: 8." in calibrated
    assert "no judgements named 'coy'" in dialoom("agree", run, "--labels", "f.csv", "--judging", "coy", code=2).stderr


def test_tables_made_with_an_offline_model_have_a_notice(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--limit", 2, "-o", "run.db")
    dialoom("agree", "run.db", "--sample", 2, "-o", "s.csv", "--metric", "task_completion")
    _fill(tmp_path / "s.csv", tmp_path / "f.csv", lambda _, number: {"annotator_1": str(number)})
    assert "not evidence about any model" in dialoom("agree", "run.db", "--labels", "f.csv").stdout


def test_labels_that_do_not_fit_the_run_are_refused_by_line(dialoom: Command, run: Path, tmp_path: Path) -> None:
    dialoom("agree", run, "--sample", 7, "-o", "s.csv", "--annotators", "anna")
    items = {row["metric"]: row["item"] for row in _rows(tmp_path / "s.csv")}
    path = tmp_path / "f.csv"
    with open_run(run) as file:
        for item, label, message in (
            ("nobody/naturalness/user", "3", "item 'nobody/naturalness/user' is not a judgement of"),
            (items["personalization"], "5", "label of anna: '5' is not a whole number from 1 to 4"),
            (items["naturalness"], "good", "label of anna: 'good' is not a whole number from 1 to 5"),
            (items["task_completion"], "3", "label of anna: '3' is not yes or no (or true, false, 1, 0)"),
        ):
            path.write_text(f"item,label:anna\n{items['coherence']},3\n{item},{label}\n")
            with pytest.raises(DataError) as caught:
                file.agreement(path=path)
            assert f"{path}:3: {message}" in str(caught.value)
        digest = _rows(tmp_path / "s.csv")[0]["digest"]
        for given in (f"{items['coherence']},{digest},3\n", f"{items['coherence']},,3\n"):
            path.write_text("item,digest,label:anna\n" + given.replace("/coherence/", "/coherense/"))
            with pytest.raises(DataError, match=r"f.csv:2: item .*coherense.* must name one of coherence/assistant, "):
                file.agreement(path=path)
        path.write_text(f"item,label:anna\n{items['coherence']},3\n")
        with pytest.raises(DialoomError, match=r"metrics .naturalness.: the items of .* belong to coherence"):
            file.agreement(path=path, metrics=["naturalness"])
        with pytest.raises(DialoomError, match="not a whole number from 9 to 10"):
            file.agreement(path=path, scales=["coherence=9-10"])
    path.write_text(f"item,label:anna\n{items['coherence']},8\n")
    refused = dialoom("agree", run, "--labels", "f.csv", code=2).stderr.splitlines()
    assert refused == ["dialoom: f.csv:2: label of anna: '8' is not a whole number from 1 to 5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --sample N -o FILE"),
        (["--sample", 5, "--labels", "f.csv"], "give --sample N -o FILE"),
        (["--sample", 5], "-o FILE is missing"),
        (["--sample", 5, "-o", "s.csv", "--json"], "--json needs --labels"),
        (["--labels", "f.csv", "-o", "s.csv"], "-o needs --sample"),
        (["--labels", "f.csv", "--seed", 2], "--seed needs --sample"),
        (["--sample", 5, "-o", "s.csv", "--annotators", "anna,anna"], "must be different names"),
        (["--sample", 5, "-o", "s.csv"], "there is no run file"),
    ],
)
def test_conflicting_options_are_refused(dialoom: Command, options: list[Any], message: str) -> None:
    refused = dialoom("agree", "run.db", *options, code=2).stderr.splitlines()
    assert len(refused) == 1
    assert message in refused[0]


def test_run_without_judgements_names_the_judge_command(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", *players[:4], "--no-judge", "-o", "run.db")
    refused = dialoom("agree", "run.db", "--sample", 5, "-o", "s.csv", code=2).stderr
    assert "run.db has no judgements to compare labels with; 'dialoom judge run.db" in refused
    dialoom("judge", "run.db", "--model", "python:players:judge")
    refused = dialoom("agree", "run.db", "--sample", 5, "-o", "s.csv", "--metric", "wit", code=2).stderr
    assert "--metric 'wit': run.db has judgements of coherence, naturalness, personalization" in refused


def test_kappas_need_statsmodels_and_samples_do_not(dialoom: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "statsmodels.py").write_text("raise ModuleNotFoundError(\"No module named 'statsmodels'\")\n")
    dialoom("agree", run, "--sample", 5, "-o", "s.csv")
    _fill(tmp_path / "s.csv", tmp_path / "f.csv", lambda *_: {"annotator_1": "1"})
    refused = dialoom("agree", run, "--labels", "f.csv", code=2, env={**os.environ}).stderr
    assert "pip install 'dialoom[agree]'" in refused
    assert len(refused.splitlines()) == 1
