"""Health of judges: constant, copying and contradictory judges are marked at their figures; a sound one is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import dialoom
from dialoom import Judgement, Run, open_run, report
from dialoom.graphs import Estimate
from dialoom.graphs.tables.statistics import wilson
from dialoom.runs.report.building import RunFaults
from dialoom.runs.report.health import contradicts
from dialoom.runs.report.labelled_runs import label_runs
from dialoom.runs.store import RunFile
from tests.conftest import Command

GOAL = "return the kettle that was bought last week"
SAID = {
    "constant": "The agent said that the money is on its way.",
    "copying": GOAL.capitalize() + ".",
    "contradictory": "",
    "sound": "The agent said that the money is on its way.",
}


def _judged(folder: Path, kind: str, is_own: bool = False, trials: int = 1) -> Run:
    numbers = count()

    async def user(messages: list[Any]) -> str:
        return "DONE" if any(each["role"] == "assistant" for each in messages) else "I want to return a kettle."

    async def assistant(_messages: list[Any]) -> str:
        return "It is done, your money is on its way."

    async def judge(messages: list[Any]) -> str:
        if is_own and "goal was reached" not in str(messages):
            return await assistant(messages)
        verdict = kind == "constant" or next(numbers) % 2 == 0
        explanation = SAID[kind] or f"The goal was {'never' if verdict else 'fully'} reached."
        return f'{{"explanation": "{explanation}", "verdict": {str(verdict).lower()}}}'

    return dialoom.simulate(
        people=[{"name": f"Person {number}"} for number in range(8)],
        tasks=[GOAL],
        assistant=judge if is_own else assistant,
        user=user,
        judge=judge,
        judges=[dialoom.Judge("resolved", rubric="This goal was reached: {{ task.goal }}")],
        trials=trials,
        path=folder / "run.db",
    )


FAILED = {
    "constant": ("†", "the same score every time"),
    "copying": ("‡", "100 % explanations copied from the prompt or the scenario"),
    "contradictory": ("‡", "100 % explanations that contradict the score"),
}


@pytest.mark.parametrize("kind", FAILED)
def test_failed_check_is_marked_at_the_figure(kind: str, tmp_path: Path, dialoom: Command) -> None:
    mark, reason = FAILED[kind]
    run = _judged(tmp_path, kind)
    figure = f"{'100.0' if kind == 'constant' else '50.0'}{mark}"
    report = run.report()
    for text in (str(report), report.page(), dialoom("report", "run.db", "--trust").stdout):
        assert figure in text
    sign = {"†": "\\textdagger{}", "‡": "\\textdaggerdbl{}"}[mark]
    assert figure.replace(mark, sign) in report.latex()
    assert reason in str(report) and reason in dialoom("report", "run.db", "--trust").stdout
    run.export("sft", path=tmp_path / "rows.jsonl", card=True)
    card = next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
    assert "Health of the judges" in card and reason in card
    (health,) = run.judge_health()
    assert health.marks == mark and reason in health.failures()
    shown = " ".join(dialoom("show", "run.db", 1, "--trust").stdout.split())
    assert f"resolved (assistant): True{mark} " in shown.replace("False", "True")
    assert f"{mark} The judge of resolved (assistant) fails a check: {reason}." in shown


@pytest.mark.parametrize("kind", [*FAILED, "sound"])
def test_requirement_on_an_unhealthy_judge_fails_unless_allowed(kind: str, tmp_path: Path, dialoom: Command) -> None:
    """Equal verdicts (†) do not fail the requirement, as all may be right; other failed checks (‡) do."""
    _judged(tmp_path, kind)
    asked = ["require", "run.db", "resolved >= 10%", "--trust"]
    is_doubtful = FAILED.get(kind, ("",))[0] == "‡"
    line = dialoom(*asked, code=1 if is_doubtful else 0).stdout
    assert line.startswith("NOT MET: " if is_doubtful else "met: ")
    assert (f" %‡ [21.5 %, 78.5 %] n=8: unhealthy: {FAILED[kind][1]}\n" in line) if is_doubtful else "‡" not in line
    allowed = dialoom(*asked, "--allow", "unhealthy").stdout
    assert allowed.startswith("met: ") and ("‡" in allowed) == is_doubtful
    compared = dialoom(*asked[:2], "--not-worse-than", "run.db", "--trust", code=1 if is_doubtful else 0).stdout
    assert ("unhealthy: " in compared) == is_doubtful


def test_sound_judge_is_not_marked(tmp_path: Path) -> None:
    text = str(_judged(tmp_path, "sound").report())
    assert "‡" not in text.replace("marked ‡", "") and "†" not in text and "| none |" in text


def test_trials_of_a_scenario_count_once_in_intervals(tmp_path: Path) -> None:
    (once,) = _judged(tmp_path, "sound").report()["judge-health"].rows
    (tmp_path / "run.db").unlink()
    (thrice,) = _judged(tmp_path, "sound", trials=3).report()["judge-health"].rows
    single, repeated = (next(cell for cell in row if isinstance(cell, Estimate)) for row in (once, thrice))
    assert (single.n, repeated.n) == (8, 24) and single.mean == repeated.mean
    assert (single.low, single.high) == (repeated.low, repeated.high)


@pytest.mark.parametrize("recipe", ["tree", "turns"])
def test_repeated_judgements_have_one_share_in_all_tables(recipe: str, tmp_path: Path) -> None:
    """Rounds of one depth of a tree are different items, and turns of a conversation count once in intervals."""

    async def judge(messages: list[Any]) -> str:
        number = hashlib.sha256(json.dumps(messages).encode()).digest()[0]
        answer = {"verdict": number % 3 > 0, "better": "first" if number % 2 else "second"}
        return json.dumps({"explanation": "It says so in the text.", **answer})

    if recipe == "tree":
        options = {"limit": 6, "rounds": 3, "branching": 2, "verify_pairs": True}
        run = dialoom.play("aloe", path=tmp_path / "run.db", options=options, models={"judge": judge})
    else:
        run = dialoom.simulate(
            people=[f"Person {number}" for number in range(6)],
            assistant=_reply,
            user=_reply,
            judge=judge,
            judges=[dialoom.Judge("pushy", rubric="The reply is pushy.", per_turn=True)],
            max_turns=3,
            path=tmp_path / "run.db",
        )
    run.judge(judge, name="again", repeat=2)
    report = run.report()
    items = len([each for episode in run.episodes() for each in episode.outcome.judgements])
    figures = [("repeats", "all equal %"), ("judge-health-again", "repeated %"), ("compared-run-again", "equal %")]
    for name, column in figures:
        (row,) = report[name].rows
        assert row[list(report[name].columns).index(column)] == Estimate(items, 1.0, *wilson(1.0, 6))
    assert "repeated judgements agree" not in str(report)


async def _reply(messages: list[Any]) -> str:
    return f"I would like to return the kettle, {len(messages)}."


def test_intervals_count_people_if_judgements_and_faults_depend_on_them(tmp_path: Path) -> None:
    """Four equal conversations of a person carry no more information than one."""

    async def user(messages: list[Any]) -> str:
        if any(each["role"] == "assistant" for each in messages):
            return "Thank you, that is all I need. Goodbye! DONE"
        is_odd = "Person 1" in str(messages)
        return "How can I help you today?" if is_odd else "I want to return a kettle."

    async def judge(messages: list[Any]) -> str:
        is_odd = "How can I help you" in str(messages)
        return f'{{"explanation": "The agent said so.", "verdict": {str(is_odd).lower()}}}'

    async def assistant(_messages: list[Any]) -> str:
        return "It is done, your money is on its way."

    found = []
    for tasks in ([GOAL], [f"{GOAL} {place}" for place in ("in Rome", "in Oslo", "in Bonn", "in York")]):
        with TemporaryDirectory(dir=tmp_path) as folder:
            run = dialoom.simulate(
                people=[{"name": f"Person {1 + number % 2}", "id": f"p{number}"} for number in range(12)],
                tasks=tasks,
                assistant=assistant,
                user=user,
                judge=judge,
                judges=[dialoom.Judge("resolved", rubric="This goal was reached: {{ task }}")],
                path=Path(folder) / "run.db",
            )
            (health,) = run.report()["judge-health"].rows
            with RunFile(run.path) as file:
                (reported,) = label_runs([file], file.recipe)
                faults = RunFaults.read(reported, None).faulty_share("user")
            found.append([next(cell for cell in health if isinstance(cell, Estimate)), faults])
    for once, fourfold in zip(*found, strict=True):
        assert once is not None and fourfold is not None
        assert (once.n, fourfold.n) == (12, 48) and once.mean == fourfold.mean == 0.5
        assert fourfold.high - fourfold.low > 0.95 * (once.high - once.low)


def test_card_states_that_health_covers_conversations_that_are_not_exported(tmp_path: Path) -> None:
    """A selection by verdict does not make the judge a constant one."""
    run = _judged(tmp_path, "sound")
    run.export("sft", path=tmp_path / "rows.jsonl", where="resolved == 1", card=True)
    card = next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
    assert "| resolved (assistant) | 8 |" in card and "the same score every time" not in card
    assert "Covers all judged conversations of the run, also those that are not exported." in card


def test_marks_follow_the_declared_metric_of_a_column(tmp_path: Path, dialoom: Command) -> None:
    """PersonaLens' columns are not named like their metrics."""
    done = '{"explanation": "It is done.", "verdict": true}'
    dull = '{"explanation": "A score of 1, as it is dull.", "score": 3}'
    (tmp_path / "cast.py").write_text(
        f"async def judge(messages):\n    return {done!r} if 'Was this goal reached' in str(messages) else {dull!r}\n"
    )
    dialoom("run", "personalens", "--users", 2, "--limit", 6, "--model", "judge=python:cast:judge", "-o", "run.db")
    printed = dialoom("report", "run.db", "--table", "scores").stdout
    assert "‡" in printed and "naturalness (user)" in printed
    by_domain = dialoom("report", "run.db", "--table", "domains").stdout
    assert "100.0†" in by_domain and "100.0 " not in by_domain  # also where a row has fewer than five verdicts


JUDGES = """
import json
from itertools import count

numbers = count()

async def copying(messages):
    asked = messages[-1]["content"].partition("<question>")[2].partition("</question>")[0].strip()
    answer = "no" if next(numbers) % 2 else "yes"
    return json.dumps({"explanation": asked, "answer": answer, "quote": asked})

async def contradictory(messages):
    number = next(numbers)
    return json.dumps({"explanation": f"A score of {1 + number % 2}, as it is so.", "score": 3 + number % 3})

async def first(messages):
    return json.dumps({"explanation": "It is warmer.", "better": "first"})
"""


@pytest.mark.parametrize(
    ("run", "table", "column", "reason"),
    [
        (("prefeval", "--limit", 8, "--turns", 2), "accuracy", "4 turns %", "copied from the prompt or the scenario"),
        (("aloe-eval", "--limit", 5, "--rounds", 2), "improvement", "IR", "contradict the score"),
        (("aloe", "--limit", 5, "--rounds", 2, "--verify-pairs"), "rounds", "verified %", "depend on the order"),
    ],
)
def test_tables_that_recipes_add_are_marked(
    run: Sequence[Any], table: str, column: str, reason: str, tmp_path: Path, dialoom: Command
) -> None:
    kinds = {"prefeval": "copying", "aloe-eval": "contradictory", "aloe": "first"}
    (tmp_path / "cast.py").write_text(JUDGES)
    dialoom("run", *run, "--model", f"judge=python:cast:{kinds[run[0]]}", "-o", "run.db")
    found = open_run(tmp_path / "run.db", trust=True).report()[table]
    cells = [row[list(found.columns).index(column)] for row in found.rows]
    assert all(isinstance(cell, Estimate) and cell.is_doubtful for cell in cells)
    assert any(note.startswith("‡") and reason in note for note in found.notes)
    if run[0] == "prefeval":  # counts carry no mark; the table has a note
        counts = open_run(tmp_path / "run.db", trust=True).report()["errors"]
        assert any(note.startswith("‡") and reason in note for note in counts.notes)


def _doubtful(row: Sequence[object]) -> list[bool]:
    return [cell.is_doubtful for cell in row if isinstance(cell, Estimate)]


def test_differences_and_comparisons_are_marked_if_either_judge_fails(tmp_path: Path) -> None:
    sound, failing = (tmp_path / kind for kind in ("sound", "contradictory"))
    for folder in (sound, failing):
        folder.mkdir()
    runs = _judged(sound, "sound"), _judged(failing, "contradictory")
    for first, second in (runs, runs[::-1]):
        (row,) = report(first, second)["differences"].rows
        assert _doubtful(row) == [True]

    async def other(_messages: list[Any]) -> str:
        return '{"explanation": "The goal was never reached.", "verdict": true}'

    run = runs[0].judge(models={"judge": other}, name="second")
    (row,) = next(table for table in run.report().tables if table.name.startswith("compared")).rows
    assert _doubtful(row)[:2] == [False, True]


def test_judge_of_text_it_wrote_itself_is_marked(tmp_path: Path) -> None:
    text = str(_judged(tmp_path, "sound", is_own=True).report())
    assert "50.0‡" in text and "fails a check: judges text that it wrote itself" in text


@pytest.mark.parametrize(
    ("explanation", "score", "is_contradiction"),
    [
        ("The statement is true.", False, True),
        ("The statement is not true.", False, False),
        ("The statement is not quite correct.", True, True),
        ("The user asked whether the task is completed; the agent said nothing.", True, False),
        ("The goal was reached, then the goal was not reached any more.", False, False),
        ("A score of 2, as the tone is rude.", 4, True),
        ("4 out of 5: friendly.", 4, False),
        ("Das Ziel wurde nicht erreicht.", True, True),
    ],
)
def test_contradictions_are_found_by_statements_about_the_verdict(
    explanation: str, score: bool | int, is_contradiction: bool
) -> None:
    judgement = Judgement(metric="m", target="assistant", score=score, explanation=explanation)
    assert contradicts(judgement) == is_contradiction


def test_bias_by_length_is_that_of_judges_not_of_checks(tmp_path: Path) -> None:
    async def assistant(messages: list[Any]) -> str:
        return "word " * (1 + hashlib.sha256(str(messages).encode()).digest()[0] % 9)

    async def judge(messages: list[Any]) -> str:
        score = 1 + hashlib.sha256(str(messages).encode()).digest()[0] % 5
        return f'{{"explanation": "It was so.", "score": {score}}}'

    run = dialoom.simulate(
        people=[{"name": f"Person {number}"} for number in range(12)],
        assistant=assistant,
        judge=judge,
        judges=[dialoom.Judge("tone", rubric="Polite.", scale=(1, 5))],
        checks=[dialoom.Check("words", lambda talk: len(talk.text("assistant").split()), scale=(0, 1000))],
        path=tmp_path / "run.db",
    )
    assert [row[0] for row in run.report()["length"].rows] == ["tone (assistant)"]


def test_another_runs_judge_marks_no_figure_in_tables_with_different_columns(tmp_path: Path) -> None:
    """Only the second run has a column of unparsed judgements, so the runs' tables are separate."""

    def played(name: str, assistant: Any, is_clear: bool) -> Run:
        async def judge(messages: list[Any]) -> str:
            is_even = hashlib.sha256(str(messages).encode()).digest()[0] % 2 == 0
            verdict = str(is_even).lower()
            return f'{{"explanation": "It was so.", "verdict": {verdict}}}' if is_clear or is_even else "Well."

        return dialoom.simulate(
            people=[{"name": f"Person {number}"} for number in range(12)],
            assistant=assistant,
            judge=judge,
            judges=[dialoom.Judge("resolved", rubric="Resolved for {{ person.name }}.")],
            path=tmp_path / f"{name}.db",
        )

    async def own(_messages: list[Any]) -> str:
        return "Done."

    both = report(played("clear", own, True), played("unclear", "offline/placeholder", False))
    found = {table.name: table for table in both.tables if table.name.startswith("scores")}
    assert [*found] == ["scores-1", "scores-2"]
    cells = [dict(zip(table.columns, table.rows[0], strict=True)) for table in found.values()]
    marks = [each["resolved %"].is_doubtful for each in cells if isinstance(each["resolved %"], Estimate)]
    assert marks == [False, True]
    assert [each["offline"] for each in cells] == ["user", "user, assistant"]
    assert not any("fails a check" in note for note in found["scores-1"].notes)
