"""`dialoom report` over several runs: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.invented import ALARM, write_release
from tests.processes import CommandProcess

CAST = """
async def user(messages):
    return f"This is message {sum(message['role'] == 'assistant' for message in messages) + 1}."

def _round(messages):
    return sum(message["role"] == "user" for message in messages)

async def rising(messages):
    return f"worth {min(5, 1 + _round(messages))}"

async def steady(messages):
    return "worth 3"

async def mumbling(messages):
    return "worth nothing" if _round(messages) == 2 else "worth 4"

async def judge(messages):
    return '{"score": %s}' % messages[-1]["content"].split("worth ")[-1].split()[0].strip('"<.')[:1]
"""

PAIRED = """
async def user(messages):
    return f"Message {len(messages)}. TERMINATE" if len(messages) > 2 else "An alarm, please."

async def plain(messages):
    return "Set. worth 2"

async def kind(messages):
    return "Set, as you like it. worth 3"

told = plain

async def judge(messages):
    if "Was this goal reached" in str(messages):
        return '{"verdict": true}'
    return '{"score": %d}' % (3 if "adapt its help to" in str(messages) and "worth 3" in str(messages) else 2)
"""

FAILING = """
calls = 0

async def failing(messages):
    global calls
    calls += len(messages) < 3
    if calls > 4:
        raise ValueError("out of order")
    return "Set. worth 2"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with three runs of four rounds with different assistants, and one run of three rounds."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "cast.py").write_text(CAST)
    people = [
        {"id": name, "profile": f"{name} keeps bees. {name} bakes bread.", "personality": "Patient. Blunt."}
        for name in ("Ada", "Ben", "Cleo")
    ]
    (folder / "people.jsonl").write_text("".join(json.dumps(person) + "\n" for person in people))
    for name, assistant, rounds in (
        ("rising", "rising", 4),
        ("steady", "steady", 4),
        ("mumbling", "mumbling", 4),
        ("short", "steady", 3),
    ):
        cast = [f"--model={role}=python:cast:{role}" for role in ("user", "judge")]
        cast += [f"--model=assistant=python:cast:{assistant}", f"--rounds={rounds}", "-o", f"{name}.db"]
        with CommandProcess(folder, "run", "aloe-eval", "--personas", "people.jsonl", *cast) as process:
            _, errors = process.communicate()
            assert process.returncode == 0, errors
    return folder


@pytest.fixture
def runs(folder: Path, tmp_path: Path) -> Path:
    """Copy the runs into the test's folder."""
    for path in folder.glob("*.db"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.mark.usefixtures("runs")
def test_models_are_rows_and_rounds_are_columns(dialoom: Command) -> None:
    """The columns are those of the paper's table 1: levels, average, IR, N-IR and R², each with its interval and n."""
    text = dialoom("report", "rising.db", "steady.db", "mumbling.db").stdout
    assert "rising.db: 3 of 3 scenarios done; steady.db: 3 of 3" in text
    for column in ("k=1", "k=4", "average AL", "IR", "N-IR", "R²"):
        assert column in text
    for name in ("rising", "steady", "mumbling"):
        assert f"python:cast:{name}" in text
    assert "1.000" in text and "n=3" in text
    assert "also differ" not in text


def test_report_is_written_with_charts_reproducibly(dialoom: Command, runs: Path) -> None:
    three = ["rising.db", "steady.db", "mumbling.db"]
    for out in ("one", "two"):
        dialoom("report", *three, "-o", runs / out)
    names = sorted(path.name for path in (runs / "one").iterdir())
    tables = ["alignment", "dialogues", "differences", "faults", "improvement", "judge-health", "judgements"]
    assert names == sorted(
        [
            "report.md",
            "report.html",
            "report.tex",
            *(f"alignment.{kind}" for kind in ("png", "svg", "pdf")),
            *(f"{name}.csv" for name in tables),
        ]
    )
    for name in names:
        assert (runs / "one" / name).read_bytes() == (runs / "two" / name).read_bytes()
    assert "![Alignment level by round](alignment.png)" in (runs / "one" / "report.md").read_text()
    rising, steady, mumbling = _rows(runs / "one" / "improvement.csv")
    assert (rising["model"], float(rising["IR"]), float(rising["R²"])) == ("python:cast:rising", 1.0, 1.0)
    assert (float(steady["IR"]), steady["N-IR"]) == (0.0, ""), "a flat AL has no N-IR"
    assert (float(mumbling["average AL"]), mumbling["average AL n"]) == (4.0, "3")
    judged = _rows(runs / "one" / "judgements.csv")[2]
    assert (judged["ok"], judged["unparsed"]) == ("9", "3")
    assert _rows(runs / "one" / "alignment.csv")[2]["k=2"] == "", "an unparsed score is no value"


def test_one_table_is_written_with_its_chart_only(dialoom: Command, runs: Path) -> None:
    dialoom("report", "rising.db", "--table", "alignment", "-o", runs / "with")
    dialoom("report", "rising.db", "--table", "improvement", "-o", runs / "without")
    assert {path.suffix for path in (runs / "with").iterdir()} == {
        ".md",
        ".html",
        ".tex",
        ".csv",
        ".png",
        ".svg",
        ".pdf",
    }
    assert {path.suffix for path in (runs / "without").iterdir()} == {".md", ".html", ".tex", ".csv"}


def test_report_replaces_only_an_earlier_report(dialoom: Command, runs: Path) -> None:
    one = ("report", "rising.db", "--table", "improvement", "-o", runs / "kept")
    assert "replaced" not in dialoom(*one).stdout
    assert f"the earlier report in {runs / 'kept'} is replaced" in dialoom(*one).stdout
    (runs / "kept" / "notes.txt").write_text("mine")
    before = (runs / "kept" / "report.md").stat().st_mtime_ns
    errors = dialoom(*one, code=2).stderr
    assert "kept contains notes.txt, which is not a file of this report; give another folder" in errors
    assert (runs / "kept" / "report.md").stat().st_mtime_ns == before


@pytest.mark.usefixtures("runs")
def test_wide_table_is_split_on_a_narrow_terminal(dialoom: Command) -> None:
    report = ["report", "rising.db", "steady.db", "--table", "alignment"]
    terminal = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "40"}
    narrow, whole = dialoom(*report, env=terminal).stdout, dialoom(*report).stdout
    for text, pieces in ((narrow, 2), (whole, 1)):
        assert text.count("python:cast:rising") == text.count("python:cast:steady") == pieces
        assert text.count("Alignment level by round") == 1
        assert [text.count(f"k={k} ") for k in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert max(map(len, whole.splitlines()[2:8])) > 40


@pytest.mark.usefixtures("runs")
def test_other_differences_between_runs_are_reported(dialoom: Command) -> None:
    text = dialoom("report", "steady.db", "short.db", "--table", "improvement").stdout
    assert "The runs also differ in the options rounds; the scenarios." in " ".join(text.split())
    assert "  steady.db " in text and "  short.db " in text


def test_report_without_matplotlib_names_the_install_command(runs: Path) -> None:
    (runs / "lacking" / "matplotlib").mkdir(parents=True)
    (runs / "lacking" / "matplotlib" / "__init__.py").write_text("raise ModuleNotFoundError('matplotlib')\n")
    shadowed = f"import sys; sys.path.insert(0, {str(runs / 'lacking')!r}); from dialoom.cli import main; main()"
    with CommandProcess(runs, "report", "rising.db", "steady.db", "-o", "out", script=shadowed) as process:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
    assert "no charts" in output and "pip install" in output
    assert {path.suffix for path in (runs / "out").iterdir()} == {".md", ".html", ".tex", ".csv"}
    assert ".png" not in (runs / "out" / "report.md").read_text()


def test_second_judgement_set_is_in_the_same_chart(dialoom: Command, runs: Path) -> None:
    (runs / "strict.py").write_text("async def judge(messages):\n    return '{\"score\": 1}'\n")
    dialoom("judge", "rising.db", "--model", "judge=python:strict:judge", "--name", "strict")
    dialoom("report", "rising.db", "-o", "out")
    svg = (runs / "out" / "alignment.svg").read_text()
    assert "python:cast:rising, judgements 'run'" in svg.replace("&#x27;", "'")
    assert "python:cast:rising, judgements 'strict'" in svg.replace("&#x27;", "'")
    assert {"improvement-run.csv", "improvement-strict.csv"} <= {path.name for path in (runs / "out").iterdir()}
    refused = dialoom("report", "rising.db", "steady.db", "--judging", "strict", code=2)
    assert "steady.db has no judgements named 'strict'" in refused.stderr
    dialoom("judge", "steady.db", "--model", "judge=python:strict:judge", "--name", "strict")
    assert "1.00" in dialoom("report", "rising.db", "steady.db", "--judging", "strict").stdout


def test_only_different_runs_of_one_recipe_are_compared(dialoom: Command, runs: Path, players: list[str]) -> None:
    write_release(runs / "release")
    for name, temperature in (("one", 0.1), ("two", 0.2)):
        cast = [*players, "--temperature", f"user={temperature}", "-o", f"{name}.db"]
        dialoom("run", "personalens", "--profiles", "release", *cast)
    refused = dialoom("report", "one.db", "steady.db", code=2).stderr
    assert "one.db of 'personalens'" in refused and "of 'aloe-eval'" in refused
    assert "one.db is given twice" in dialoom("report", "one.db", "two.db", runs / "one.db", code=2).stderr
    assert "no run file" in dialoom("report", "one.db", "three.db", code=2).stderr
    dialoom("report", "one.db", "two.db", "--table", "scores", "-o", "out")
    rows = _rows(runs / "out" / "scores.csv")
    assert [(row["run"], row["tasks"]) for row in rows] == [
        ("one.db", "single-domain"),
        ("two.db", "single-domain"),
        ("one.db", "multi-domain"),
        ("two.db", "multi-domain"),
    ]
    assert "The runs also differ in the models of user" in (runs / "out" / "report.md").read_text()


def test_differences_between_runs_are_paired_and_tested(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=6, tasks=[ALARM])
    (tmp_path / "cast.py").write_text(PAIRED)
    for name, setting in (("plain", "base"), ("kind", "base"), ("told", "I")):
        cast = [f"--model={role}=python:cast:{role}" for role in ("user", "judge")]
        cast += [f"--model=assistant=python:cast:{name}", "--setting", setting, "-o", f"{name}.db"]
        dialoom("run", "personalens", "--profiles", "release", *cast)
    text = " ".join(dialoom("report", "plain.db", "kind.db", "--table", "differences").stdout.split())
    higher = "personalization (assistant) is higher in python:cast:kind than in python:cast:plain: by 1.00 (95 %"
    assert higher in text
    assert "No significant difference in task_completion (assistant), naturalness (assistant)," in text
    assert "An interval half as wide would take about four times as many scenarios: about 18 more" in text
    dialoom("report", "plain.db", "kind.db", "told.db", "--table", "differences", "-o", "out")
    rows = {(row["run"], row["metric"]): row for row in _rows(tmp_path / "out" / "differences.csv")}
    kind, told = (rows[f"python:cast:{name}", "personalization (assistant)"] for name in ("kind", "told"))
    assert (kind["difference n"], told["difference n"]) == ("6", "6"), (
        "the setting differs, the people and tasks do not"
    )
    assert float(kind["p"]) == pytest.approx(12 * 2 / 2001), "p is corrected for twelve rows"
    assert (float(told["difference"]), float(told["p"])) == (0.0, 1.0)


def test_constant_judge_scores_are_marked(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=6, tasks=[ALARM])
    (tmp_path / "cast.py").write_text(PAIRED)
    for name in ("plain", "kind"):
        cast = [f"--model={role}=python:cast:{role}" for role in ("user", "judge")]
        cast += [f"--model=assistant=python:cast:{name}", "--setting", "base", "-o", f"{name}.db"]
        dialoom("run", "personalens", "--profiles", "release", *cast)
    text = dialoom("report", "plain.db", "--table", "scores").stdout
    assert text.count("2.00†") == 5 and text.count("100.0†") == 1
    assert text.count("† Constant: ") == 1
    dialoom("report", "plain.db", "--table", "scores", "-o", "out")
    row = _rows(tmp_path / "out" / "scores.csv")[0]
    assert (row["Nat. user"], row["Nat. user n"], row["Nat. user constant"]) == ("2.0", "6", "True")
    markdown, page = (tmp_path / "out" / "report.md").read_text(), (tmp_path / "out" / "report.html").read_text()
    assert "2.00† [2.00, 2.00] n=6" in markdown and "2.00† <small>[2.00, 2.00]</small>" in page
    both = dialoom("report", "plain.db", "kind.db", "--table", "differences").stdout
    assert "1.00†" in both and "† Constant: " in both
    assert "[1.00, 1.00]" in both and both.count("An interval without width, such as [1.00, 1.00]: all scores or") == 1


def test_failed_scenarios_are_counted_below_the_first_table_of_scores(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=6, tasks=[ALARM])
    (tmp_path / "cast.py").write_text(PAIRED + FAILING)
    cast = [f"--model={role}=python:cast:{role}" for role in ("user", "judge")]
    cast += ["--model=assistant=python:cast:failing", "--setting", "base", "--concurrency=1", "-o", "failing.db"]
    dialoom("run", "personalens", "--profiles", "release", *cast, code=1)
    text = dialoom("report", "failing.db").stdout
    assert text.count("Failed: 2 of 6 scenarios, which are excluded from all means and shares.") == 1
    assert "drawing all scores of a unit together, because they are not independent" in " ".join(text.split())
    assert "Failed:" not in dialoom("report", "failing.db", "--where", "state == 'done'").stdout


def test_offline_players_are_named_with_scores_tables_and_charts(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "cast.py").write_text(CAST)
    for name, model in (("one", "python:cast:rising"), ("two", "offline/attentive")):
        cast = ["--model", "judge=python:cast:judge", "--model", f"assistant={model}", "--rounds", 2, "--limit", 2]
        dialoom("run", "aloe-eval", *cast, "-o", f"{name}.db")
    warning = "Made with an offline model (python:cast:rising: user; offline/attentive: user, assistant)"
    text = dialoom("report", "one.db", "two.db").stdout
    dialoom("report", "one.db", "two.db", "-o", "out")
    assert text.count(warning) == 3
    assert (tmp_path / "out" / "report.md").read_text().count(warning) == 4
    alignment = {row["model"]: row["offline"] for row in _rows(tmp_path / "out" / "alignment.csv")}
    assert alignment == {"python:cast:rising": "user", "offline/attentive": "user, assistant"}
    by_hand = ["--model", "python:cast:rising", "--model", "judge=python:cast:judge", "--rounds", 2, "--limit", 2]
    dialoom("run", "aloe-eval", *by_hand, "-o", "three.db")
    assert "offline" not in dialoom("report", "three.db").stdout
    assert warning in (tmp_path / "out" / "alignment.svg").read_text().replace("&#x27;", "'")


def test_report_as_latex_is_escaped(dialoom: Command, tmp_path: Path) -> None:
    recipe = SUPPORT.replace("GOAL", r"50% off & more_\\x{} [#1] ~^$")
    (tmp_path / "support.py").write_text(recipe)
    dialoom("run", "support.py:RECIPE", "-o", "run.db")
    shown = dialoom("report", "run.db", "--latex", "--table", "scores").stdout
    assert r"\begin{tabular}{lrrl}" in shown and r"\toprule" in shown and r"\bottomrule" in shown
    assert r"goal & scenarios & done \% & offline \\" in shown
    odd = r"50\% off \& more\_\textbackslash{}x\{\} {[}\#1{]} \textasciitilde{}\textasciicircum{}\$"
    assert rf"{odd} & 1 & 100.0 {{[}}20.7, 100.0{{]}} n=1 & user, assistant \\" in shown
    assert "leave out -o" in dialoom("report", "run.db", "--latex", "-o", "out", code=2).stderr


def test_metrics_in_no_table_of_a_recipe_are_named(dialoom: Command, tmp_path: Path) -> None:
    """A metric counts as shown if a column's title has its name."""
    two = 'checks = [Check("kind", lambda talk: True), Check("sorry", lambda talk: False), '
    recipe = SUPPORT.replace("checks = [", two)
    (tmp_path / "support.py").write_text(recipe)
    dialoom("run", "support.py:RECIPE", "-o", "run.db")
    prefix = "Scored, but without a column in the recipe's tables: "
    assert f"{prefix}kind, sorry. Each conversation and run.frame() have them." in dialoom("report", "run.db").stdout
    recipe = recipe.replace("[count(), ", '[count("not sorry", of=lambda one: True), ')
    (tmp_path / "support.py").write_text(recipe)
    assert f"{prefix}kind. " in dialoom("report", "run.db").stdout
    (tmp_path / "support.py").write_text(recipe.replace("not sorry", "kind, sorry"))
    assert prefix not in dialoom("report", "run.db").stdout


SUPPORT = """
from dialoom.graphs import Check, DialogueRecipe, Scenario, Turns
from dialoom.graphs.tables import Pivot, count, score


class Errand(Scenario):
    goal: str


class Support(DialogueRecipe):
    name = "support"
    scenario_type = Errand
    prompts = {"user": "You call. <task>{{ goal }}</task>", "assistant": "You answer."}
    turns = Turns(max_turns=1)
    checks = [Check("done", lambda talk: True)]
    pivots = [Pivot("scores", "Scores", ["goal"], [count(), score("done", title="done %", judged=False)])]

    def scenarios(self, options, draw, note):
        yield Errand(goal="GOAL")


RECIPE = Support()
"""


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
