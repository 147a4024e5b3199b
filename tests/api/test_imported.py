"""An imported run supports what a finished run does: review, labels, calibration, description, search, requirements."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

import dialoom as api
from dialoom.graphs import Estimate
from dialoom.graphs.tables.statistics import wilson
from tests.conftest import Command, MadeOnce

STUDY = """
[people]
rows = [{ name = "anybody" }]

[[judge]]
metric = "resolved"
rubric = "The goal was reached: {{ task.goal }}"
"""
CAST = """
async def judge(messages):
    return '{"explanation": "as told", "verdict": %s}' % str("label is" in str(messages)).lower()

async def reviewer(messages):
    return '{"faults": []}'
"""


def _imported(dialoom: Command, folder: Path) -> None:
    (folder / "cast.py").write_text(CAST)
    (folder / "support.toml").write_text(STUDY)
    with (folder / "talks.jsonl").open("w") as file:
        for number in range(12):
            texts = [f"I want to return item {number}.", ["The label is in your mail.", "No."][number % 2], "Thanks."]
            roles = ["user", "assistant", "user"]
            messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
            file.write(json.dumps({"id": f"c{number}", "goal": f"return {number}", "messages": messages}) + "\n")
    dialoom("import", "talks.jsonl", "-o", "talks.db")
    dialoom("judge", "talks.db", "--judges", "support.toml", "--model", "python:cast:judge")


@pytest.fixture
def folder(made_once: MadeOnce) -> Path:
    """Return a folder with twelve imported and judged conversations, half of them resolved."""
    return made_once(_imported)


def test_imported_run_is_labelled_and_calibrated(folder: Path, dialoom: Command) -> None:
    dialoom("agree", "talks.db", "--sample", 8, "-o", "labels.csv")
    with (folder / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    with (folder / "labels.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        for row in rows:
            label = "yes" if "label is" in row["conversation"] else "no"
            writer.writerow({**row, "label:annotator_1": label, "label:annotator_2": label})
    agreed = json.loads(dialoom("agree", "talks.db", "--labels", "labels.csv", "--json").stdout)
    assert "resolved" in json.dumps(agreed)
    calibrated = dialoom("report", "talks.db", "--calibrated", "--labels", "labels.csv").stdout
    assert "calibrated" in calibrated.lower()


def test_sample_of_several_metrics_has_few_conversations_and_is_random_among_equal_scores(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    rows = (json.dumps({"id": str(number), "goal": f"return {number}", "messages": talk}) for number in range(120))
    (tmp_path / "talks.jsonl").write_text("\n".join(rows))
    (tmp_path / "support.toml").write_text(
        STUDY + '[[judge]]\nmetric = "tone"\nscale = [1, 3]\nrubric = "The tone fits: {{ task.goal }}"\n'
    )
    run = api.import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / "talks.db").run
    api.judge(run.path, "offline/placeholder", judges=tmp_path / "support.toml")
    scores = {each.id: {one.metric: one.score for one in each.outcome.judgements} for each in run.episodes()}
    sizes, drawn = list[int](), dict[str, Counter[str]]()
    for seed in range(20):
        sample = run.sample_to_label(tmp_path / f"{seed}.csv", 60, ["anna"], seed=seed)
        sizes.append(sample.conversations)
        with (tmp_path / f"{seed}.csv").open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                drawn.setdefault(row["metric"], Counter())[row["scenario"]] += 1
    assert 30 <= sum(sizes) / len(sizes) < 36, "two independent draws would have 52"
    for metric, other in (("resolved", "tone"), ("tone", "resolved")):
        for score in {each[metric] for each in scores.values()}:
            equal = [id_ for id_, each in scores.items() if each[metric] == score]
            overall = sum(drawn[metric][id_] for id_ in equal) / len(equal) / 20
            for value in {scores[id_][other] for id_ in equal}:
                of_both = [id_ for id_ in equal if scores[id_][other] == value]
                share = sum(drawn[metric][id_] for id_ in of_both) / len(of_both) / 20
                assert share == pytest.approx(overall, abs=0.1), (metric, score, value)


def test_imported_run_is_reviewed_searched_and_described(folder: Path, dialoom: Command) -> None:
    assert "12 done" in dialoom("review", "talks.db", "--model", "python:cast:reviewer").stdout
    run = api.open_run(folder / "talks.db", trust=True)
    assert run.scenarios(search="label").total == 6
    assert "of each dialogue" in dialoom("describe", "talks.db").stdout
    dialoom("import", "talks.jsonl", "-o", "unjudged.db")
    shown = dialoom("show", "unjudged.db", 1).stdout
    assert "models:" not in shown
    assert "The label is in your mail." in shown


def test_metric_with_the_name_of_a_column_is_refused(folder: Path, dialoom: Command) -> None:
    row = {"id": "x", "resolved": "yes", "messages": [{"role": "user", "content": "Hello."}]}
    (folder / "more.jsonl").write_text(json.dumps(row))
    refused = "'resolved' is both a column of the rows and a metric of a judge or check; rename one"
    assert refused in dialoom("import", "more.jsonl", "-o", "talks.db", code=2).stderr
    dialoom("import", "more.jsonl", "-o", "more.db")
    judge = ("judge", "more.db", "--judges", "support.toml", "--model", "offline/placeholder")
    assert f"support.toml: {refused}" in dialoom(*judge, code=2).stderr
    assert sum(1 for _ in api.open_run(folder / "talks.db", trust=True).episodes()) == 12


def test_imported_run_is_checked_against_requirements(folder: Path) -> None:
    expected = api.expect(api.open_run(folder / "talks.db", trust=True)).metric("resolved")
    expected.at_least(0.5)
    with pytest.raises(AssertionError, match="the worst conversation, c1-") as raised:
        expected.at_least(0.9)
    assert "assistant: No." in str(raised.value)


def test_trials_and_people_of_an_exported_run_are_units_of_the_imported_one(dialoom: Command, tmp_path: Path) -> None:
    """People are recognized in several forms; conversations without a person count separately."""
    dialoom("new", "study", "shop")
    dialoom("run", "shop/study.toml", "--trials", 2, "-o", "played.db")
    dialoom("export", "played.db", "--format", "dialogues", "-o", "played.jsonl")
    dialoom("import", "played.jsonl", "-o", "imported.db", "--judges", "shop/study.toml")
    dialoom("judge", "imported.db", "--judges", "shop/study.toml", "--model", "offline/placeholder", "--name", "again")
    for path, judging in (("played.db", "run"), ("imported.db", "again")):
        dialoom("report", path, "--judging", judging, "--table", "scores", "-o", f"of-{path}")
    played, imported = (
        {
            row["conversations"]: row
            for row in csv.DictReader((tmp_path / f"of-{name}.db" / "scores.csv").open(encoding="utf-8-sig"))
        }
        for name in ("played", "imported")
    )
    bounds = ("gave_number % low", "gave_number % high")
    assert [played["16"][each] for each in bounds] == [imported["16"][each] for each in bounds]
    assert imported["16"]["tone low"] == "", "four people are too few for an interval"

    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    people: list[dict[str, object]] = [
        {"user_id": 7},
        {"person": {"name": "Ann", "age": 3}},
        {"person": "a nurse"},
        {"person": {"id": None, "name": "Bo"}},
        {"person": {"description": "long " * 30}, "user_id": 9},
        {"user_id": "5e" * 32},
        {"user_id": ""},
        {"goal": "nothing"},
        {"person": "", "user_id": ""},
        {"person": float("nan")},
        {"person": "long " * 30},
    ]
    rows = [{**each, "id": f"{place} {again}", "messages": talk} for place, each in enumerate(people) for again in "ab"]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = api.import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / "talks.db").run
    units = Counter(each.cluster("person") for each in run.episodes())
    assert [units.pop(each) for each in (7, "Ann", "a nurse", "Bo", 9, "5e" * 32)] == [2] * 6
    assert [*units.values()] == [1] * 10


def test_imported_trials_without_a_person_are_one_unit(tmp_path: Path) -> None:
    """The scores of each scenario's trials are equal, so the interval is as wide as that of a single trial."""
    (tmp_path / "words.py").write_text("def words(talk):\n    return len(talk.text('assistant'))\n")
    (tmp_path / "judges.toml").write_text(
        '[[judge]]\nmetric = "polite"\nrubric = "Polite."\n\n[[check]]\nmetric = "words"\npython = "words.py:words"\n'
    )
    found = []
    for trials in (1, 4):
        rows = [
            {
                "id": f"talk {number}",
                "trial": trial,
                "messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "x" * number}],
            }
            for number in range(1, 11)
            for trial in range(1, trials + 1)
        ]
        (tmp_path / f"{trials}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        run = api.import_transcripts(tmp_path / f"{trials}.jsonl", path=tmp_path / f"{trials}.db").run
        api.judge(run.path, "offline/placeholder", judges=tmp_path / "judges.toml")
        table = run.report(tables=["scores"])["scores"]
        cell = table.rows[0][[*table.columns].index("words")]
        assert isinstance(cell, Estimate)
        found.append(cell)
    once, repeated = found
    assert (once.n, repeated.n) == (10, 40)
    assert (repeated.mean, repeated.low, repeated.high) == (once.mean, once.low, once.high)


@pytest.mark.parametrize(("recipe", "facet"), [("personalens", "user"), ("aloe-eval", "persona")])
def test_people_of_an_exported_benchmark_are_the_units_of_the_imported_run(
    tmp_path: Path, recipe: str, facet: str
) -> None:
    played = api.play(recipe, path=tmp_path / "played.db", model="offline/attentive", options={"limit": 3})
    played.export("dialogues", tmp_path / "played.jsonl")
    imported = api.import_transcripts(tmp_path / "played.jsonl", path=tmp_path / "imported.db").run
    people = [each.cluster(facet) for each in played.episodes()]
    assert [each.cluster("person") for each in imported.episodes()] == people
    imported.export("dialogues", tmp_path / "again.jsonl")
    assert api.import_transcripts(tmp_path / "again.jsonl", path=imported.path).added == 0


def test_trials_beside_single_conversations_count_once_and_those_once_each(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    rows: list[dict[str, object]] = [{"id": "played", "trial": trial} for trial in (1, 2, 3)]
    rows += [{"id": f"real {number}"} for number in range(9)]
    (tmp_path / "talks.jsonl").write_text("\n".join(json.dumps({**row, "messages": talk}) for row in rows))
    (tmp_path / "checks.toml").write_text('[[check]]\nmetric = "polite"\npattern = "Good"\n')
    run = api.import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / "t.db", study=tmp_path / "checks.toml").run
    (found,) = run.require("polite >= 1%")
    assert found.estimate == Estimate(12, 1.0, *wilson(1.0, 10))


def test_import_reports_checks_that_fail(dialoom: Command, folder: Path) -> None:
    (folder / "checks.py").write_text("def odd(conversation):\n    return conversation.nothing\n")
    (folder / "checked.toml").write_text(STUDY + '[[check]]\nmetric = "odd"\npython = "checks.py:odd"\n')
    output = dialoom("import", "talks.jsonl", "-o", "checked.db", "--judges", "checked.toml", code=1).stdout
    assert "failed check: odd in 12 conversations" in output


def test_card_states_the_recognized_languages(dialoom: Command, folder: Path) -> None:
    dialoom("export", "talks.db", "--format", "sft", "-o", "set.jsonl")
    assert "\nlanguage:\n- en\n" in (folder / "set.jsonl.card.md").read_text()
