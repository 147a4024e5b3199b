"""A judge tried on labelled conversations: its health, its agreement with annotators, and no files left."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import open_run
from dialoom.inputs import DataError
from tests.conftest import Command

JUDGES = """
[people]
rows = [{ name = "anybody" }]
[[judge]]
metric = "resolved"
rubric = "The goal was reached: {{ task.goal }}"
[[check]]
metric = "polite"
pattern = "(?i)please"
target = "user"
"""
CAST = """
import json, re

async def sound(messages):
    return json.dumps({"explanation": "So it was told.", "verdict": "in your mail" in str(messages)})

async def copying(messages):
    goal = re.search("return kettle .* again", str(messages))[0]
    return json.dumps({"explanation": goal, "verdict": "in your mail" in str(messages)})

async def failing(messages):
    raise ValueError("out of order")

async def one(messages):
    return json.dumps({"explanation": "As usual.", "verdict": True, "score": 3})
"""


def _rows(labels: str = "label:anna", count: int = 10) -> list[dict[str, Any]]:
    replies = ("It is in your mail.", "That is not possible.")
    return [
        {
            "id": f"c{number}",
            "goal": f"return kettle number {number} and never buy one again",
            labels: {"resolved": number % 2 == 0 if number else "no"},
            "messages": [
                {"role": "user", "content": "It is broken."},
                {"role": "assistant", "content": replies[number % 2]},
            ],
        }
        for number in range(count)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with labelled conversations, a study and judges."""
    (tmp_path / "judges.toml").write_text(JUDGES)
    (tmp_path / "cast.py").write_text(CAST)
    (tmp_path / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in _rows()))
    return tmp_path


def test_trial_prints_health_and_agreement_and_leaves_nothing(folder: Path, dialoom: Command) -> None:
    before = {each.name for each in folder.iterdir()}
    tried = ["judge", "--try", "talks.jsonl", "--judges", "judges.toml", "--repeat", 2]
    printed = dialoom(*tried, "--model", "judge=python:cast:sound").stdout
    assert "none" in printed and "judge, anna" in printed
    assert "90.0" in printed and "0.80" in printed  # the judge agrees with nine of ten labels: (0.9 - 0.5) / 0.5
    assert "polite" not in printed
    copied = dialoom(*tried, "--model", "judge=python:cast:copying").stdout
    assert "100 % explanations copied" in " ".join(copied.split())
    assert {each.name for each in folder.iterdir()} - {"__pycache__"} == before


def test_judge_is_not_shown_the_labels(folder: Path) -> None:
    seen: list[str] = []

    async def judge(messages: list[Any]) -> str:
        seen.append(str(messages))
        return '{"explanation": "So it was told.", "verdict": true}'

    study = folder / "all.toml"
    study.write_text(JUDGES.replace("{{ task.goal }}", "{{ task }}"))
    trial = dialoom.try_judge(folder / "talks.jsonl", judge, judges=study, path=folder / "kept.db")
    assert len(seen) == 10 and not any("anna" in each or "label" in each for each in seen)
    assert trial.is_complete and trial.tables[0].rows[0][-1] == "the same score every time"
    assert open_run(folder / "kept.db").status().done == 10


def test_labels_file_of_an_import_can_be_used_in_a_trial(folder: Path, dialoom: Command) -> None:
    """The items of a sample drawn from imported conversations name the same conversations in a trial."""
    dialoom("import", "talks.jsonl", "-o", "talks.db")
    dialoom("judge", "talks.db", "--judges", "judges.toml", "--model", "judge=python:cast:sound", "--name", "first")
    dialoom("agree", "talks.db", "--judging", "first", "--sample", 6, "--annotators", "ben", "-o", "labels.csv")
    text = (folder / "labels.csv").read_text("utf-8-sig").splitlines()
    (folder / "labels.csv").write_text("\n".join([text[0], *_labelled(text[1:])]))
    run = dialoom("judge", "--try", "talks.db", "--labels", "labels.csv", "--model", "judge=python:cast:one")
    rows = dialoom(
        "judge", "--try", "talks.jsonl", "--judges", "judges.toml", "--labels", "labels.csv", "--model",
        "judge=python:cast:one",
    )  # fmt: skip
    for printed, n in ((run.stdout, 6), (rows.stdout, 10)):
        assert "judge, ben" in printed and f"n={n}" in printed
    assert [each.name for each in open_run(folder / "talks.db").judgement_sets] == ["first"]


def _labelled(lines: list[str]) -> list[str]:
    """Return the rows of a sample with the empty last column filled in."""
    found, number = [], 0
    for line in lines:
        is_end = line.endswith('",') or line.endswith(",")
        found.append(f"{line}{('yes', 'no')[number % 2]}" if is_end else line)
        number += is_end
    return found


def test_judges_of_a_recipe_are_tried_on_a_run(tmp_path: Path, dialoom: Command) -> None:
    (tmp_path / "cast.py").write_text(CAST)
    dialoom("run", "personalens", "--limit", 6, "-o", "run.db")
    ids = [episode.id for episode in open_run(tmp_path / "run.db").episodes()]
    lines = [f"{id_}/naturalness/user,{3 + number % 2}" for number, id_ in enumerate(ids[:5])]
    (tmp_path / "run.labels.csv").write_text("\n".join(["item,label:anna", *lines]))
    before = (tmp_path / "run.db").read_bytes()
    printed = dialoom("judge", "--try", "run.db", "--model", "judge=python:cast:one", "-o", "tried.db").stdout
    assert "naturalness (user)" in printed and "the same score every time" in " ".join(printed.split())
    assert "judge, anna" in printed and "60.0" in printed
    assert (tmp_path / "run.db").read_bytes() == before
    tried = open_run(tmp_path / "tried.db")
    assert sum(bool(each.outcome.judgements) for each in tried.episodes(tried.judgement_sets[-1].name)) == 5
    refused = dialoom("judge", "--try", "run.db", "--model", "judge=python:cast:one", "-o", "no/tried.db", code=2)
    assert refused.stderr.startswith("dialoom: no/tried.db cannot be created (No such file or directory)")


def test_failed_trial_names_what_is_stored_and_is_retried(folder: Path, dialoom: Command) -> None:
    tried = ["judge", "--try", "talks.jsonl", "--judges", "judges.toml", "--model", "judge=python:cast:mended"]
    cast = folder / "cast.py"
    cast.write_text(CAST.replace("def failing", "def mended"))
    lost = dialoom(*tried, code=2)
    assert "without -o RUN nothing is saved" in lost.stdout and "Continue with" not in lost.stdout
    assert "judged no labelled conversation, so there is nothing to compare" in lost.stderr
    kept = dialoom(*tried, "-o", "tried.db", code=2)
    assert "--retry-failed" in kept.stdout and "nothing is kept" not in kept.stdout
    cast.write_text(CAST.replace("def one", "def mended"))
    sys.modules.pop("cast")
    assert "judge, anna" in dialoom(*tried, "-o", "tried.db", "--retry-failed").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--try", "talks.jsonl", "--model", "judge=python:cast:one"), "give the study whose judges are to be tried"),
        (("--try", "talks.jsonl", "--judges", "judges.toml"), "--model is missing"),
        (("--try", "none.jsonl", "--judges", "judges.toml", "--model", "offline/placeholder"), "none.jsonl"),
        (("--try", "talks.jsonl", "--name", "x", "--model", "offline/placeholder"), "cannot be combined with --name"),
        (("--model", "offline/placeholder"), "give RUN, or --try FILE"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_trial_gives_one_message(given: tuple[str, ...], message: str, dialoom: Command) -> None:
    assert message in " ".join(dialoom("judge", *given, code=2).stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({}, "no row has a label"),
        ({"label:anna": {"polished": "yes"}}, "resolved"),
        ({"label:anna": {"resolved": 7}}, "anna"),
        ({"label:anna": "maybe"}, "label of anna: 'maybe' is not yes or no"),
        ({"label: ": {"resolved": "yes"}}, "no annotator's name"),
    ],
)
def test_wrong_labels_give_one_message_before_the_first_call(
    labels: dict[str, Any], message: str, folder: Path
) -> None:
    async def judge(messages: list[Any]) -> str:
        raise AssertionError(f"called before the labels were checked: {messages}")

    row = {name: value for name, value in _rows()[0].items() if name != "label:anna"} | labels
    (folder / "one.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match=message):
        dialoom.try_judge(folder / "one.jsonl", judge, judges=folder / "judges.toml")


@pytest.mark.parametrize(
    ("item", "label", "message"),
    [
        ("{id}/resolved/assistant", "maybe", r"labels\.csv:3: label of anna: 'maybe' is not yes or no"),
        ("{id}/polished/assistant", "yes", r"labels\.csv:3: item .*polished.* it must name one of"),
        ("c9/resolved/assistant", "yes", r"labels\.csv:3: item 'c9/resolved/assistant' is not a judgement of"),
    ],
)
def test_wrong_labels_file_gives_one_message_before_the_first_call(
    item: str, label: str, message: str, folder: Path
) -> None:
    async def judge(messages: list[Any]) -> str:
        raise AssertionError(f"called before the labels were checked: {messages}")

    dialoom.import_transcripts(folder / "talks.jsonl", path=folder / "talks.db", study=folder / "judges.toml")
    first, second, *_ = (each.id for each in open_run(folder / "talks.db").episodes())
    rows = ["item,label:anna", f"{first}/resolved/assistant,yes", f"{item.format(id=second)},{label}"]
    (folder / "labels.csv").write_text("\n".join(rows))
    for source, judges in ((folder / "talks.jsonl", folder / "judges.toml"), (folder / "talks.db", None)):
        with pytest.raises(DataError, match=message):
            dialoom.try_judge(source, judge, judges=judges, labels=folder / "labels.csv")


def test_labels_of_conversations_that_are_not_judged_are_counted(folder: Path, dialoom: Command) -> None:
    """The judges of a study do not judge a conversation in which the judged role says nothing."""
    rows = _rows()
    for row in rows[:3]:
        del row["messages"][1:]
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    dialoom("import", "talks.jsonl", "-o", "talks.db", "--judges", "judges.toml")
    items = [f"{each.id}/resolved/assistant" for each in open_run(folder / "talks.db").episodes()]
    (folder / "labels.csv").write_text("\n".join(["item,label:anna", *(f"{item},yes" for item in items)]))
    tried = ["judge", "--try", "talks.jsonl", "--judges", "judges.toml", "--model", "judge=python:cast:sound"]
    for given in ([], ["--labels", "labels.csv"]):
        printed = " ".join(dialoom(*tried, *given).stdout.split())
        assert "judge, anna 7" in printed
        left_out = "Labels of conversations that the judge has not judged, left out: 3, of 3 scenarios (c0-"
        assert left_out in printed and "an earlier conversation" not in printed


def test_labels_of_one_metric_of_two_roles_are_told_apart(folder: Path) -> None:
    study = folder / "both.toml"
    study.write_text(JUDGES + '[[judge]]\nmetric = "resolved"\ntarget = "user"\nrubric = "The user is content."\n')
    rows = [row | {"label:anna": {"resolved/assistant": "yes", "resolved/user": "no"}} for row in _rows()]
    del rows[0]["messages"][1:]
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _, agreement = dialoom.try_judge(folder / "talks.jsonl", "offline/placeholder", judges=study).tables
    assert [row[:3] for row in agreement.rows] == [
        ["resolved (assistant)", "judge, anna", 9],
        ["resolved (user)", "judge, anna", 10],
    ]
    assert any("has not judged, left out: 1, of 1 scenario (c0-" in note for note in agreement.notes)
    rows[3]["label:anna"] = {"resolved": "yes"}
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    message = r"talks\.jsonl:4: .* keys from: resolved/assistant, resolved/user$"
    with pytest.raises(DataError, match=message):
        dialoom.try_judge(folder / "talks.jsonl", "offline/placeholder", judges=study)


def test_single_label_is_refused_before_the_first_call_if_there_are_several_metrics(folder: Path) -> None:
    async def judge(messages: list[Any]) -> str:
        raise AssertionError(f"called before the labels were checked: {messages}")

    study = folder / "both.toml"
    study.write_text(JUDGES + '[[judge]]\nmetric = "kind"\nrubric = "The assistant is kind."\n')
    rows = [row | {"label:ben": None} for row in _rows()]  # ben has labelled nothing
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _, agreement = dialoom.try_judge(folder / "talks.jsonl", "offline/placeholder", judges=study).tables
    assert ["resolved (assistant)", "judge, anna", 10] in [row[:3] for row in agreement.rows]
    rows[3]["label:ben"] = "yes"
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(
        DataError, match=r"talks\.jsonl:4: label:ben: 'yes' does not state .* keys from: resolved, kind"
    ):
        dialoom.try_judge(folder / "talks.jsonl", judge, judges=study)


def test_labels_that_are_left_out_are_those_of_the_metrics(folder: Path) -> None:
    rows = _rows()
    del rows[0]["messages"][1:]
    (folder / "talks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    dialoom.import_transcripts(folder / "talks.jsonl", path=folder / "talks.db", study=folder / "judges.toml")
    run = dialoom.judge(folder / "talks.db", "offline/placeholder", name="first")
    silent, spoken, *_ = (each.id for each in run.episodes())
    (folder / "labels.csv").write_text(f"item,label:anna\n{silent}/resolved/assistant,yes\n{spoken}/polite/user,no\n")

    def left_out(*metrics: str) -> int:
        found = run.agreement(path=folder / "labels.csv", judging="first", metrics=metrics)
        return found.unjudged.count

    assert left_out() == left_out("resolved") == 1 and left_out("polite") == 0
    with pytest.raises(dialoom.DialoomError, match=r"metrics 'tone': the items of .* belong to polite, resolved$"):
        left_out("tone")


def test_rows_of_one_conversation_are_merged_unless_their_labels_differ(folder: Path) -> None:
    """Each annotator may have written a file of their own, and the files were joined."""
    both = folder / "both.jsonl"
    rows = [*_rows(), *_rows("Label: ben")]
    both.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    trial = dialoom.try_judge(both, "offline/placeholder", judges=folder / "judges.toml")
    assert [row[2] for row in trial.tables[1].rows] == [10, 10, 10, 10]
    rows[10]["label:anna"] = {"resolved": "yes"}
    both.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"both\.jsonl:11: label:anna: 'yes' for 'resolved', but line 1 has 'no'"):
        dialoom.try_judge(both, "offline/placeholder", judges=folder / "judges.toml")
