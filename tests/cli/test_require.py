"""`dialoom require`: requirements on a run's scores, alone and against another run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import open_run
from dialoom.graphs import Estimate
from tests.conftest import Command, MadeOnce
from tests.invented import TWO_ASSISTANTS, write_release

CAST = (
    TWO_ASSISTANTS
    + """
async def stern(messages):
    return '{"verdict": %s}' % str("TV" not in str(messages)).lower() if "goal" in str(messages) else '{"score": 1}'

async def mute(messages):
    return "I cannot say."
"""
)


def _runs(dialoom: Command, folder: Path) -> None:
    """Play two assistants, an offline one, one with a judge whose replies are unparsed, and one with trials."""
    (folder / "cast.py").write_text(CAST)
    write_release(folder / "release", users=6)
    runs = {
        "plain": ("python:cast:plain", "python:cast:judge"),
        "kind": ("python:cast:kind", "python:cast:judge"),
        "offline": ("offline/attentive", "python:cast:judge"),
        "mute": ("python:cast:kind", "python:cast:mute"),
        "stern": ("python:cast:kind", "python:cast:stern"),
    }
    for name, (assistant, judge) in runs.items():
        cast = {"user": "python:cast:user", "assistant": assistant, "judge": judge}
        models = [word for role, who in cast.items() for word in ("--model", f"{role}={who}")]
        trials = ["--trials", 2] if name == "stern" else []
        dialoom("run", "personalens", "--profiles", "release", *models, *trials, "-o", f"{name}.db")


@pytest.fixture
def folder(made_once: MadeOnce) -> Path:
    """Return a folder with the runs."""
    return made_once(_runs)


@pytest.fixture
def command(folder: Path, dialoom: Command) -> Command:  # noqa: ARG001
    """Return the command in the folder of the runs."""
    return dialoom


def test_each_requirement_has_a_line_and_the_exit_code_tells_whether_all_are_met(command: Command) -> None:
    asked = ["task_completion >= 80%", "personalization >= 2.5"]
    done = command("require", "kind.db", *asked, "--allow", "constant").stdout
    assert done == (
        "met: task_completion >= 80.0 %: 100.0 % [64.5 %, 100.0 %] n=12\n"
        "met: personalization >= 2.50: 3.00 [3.00, 3.00] n=12\n"
    )
    failed = command("require", "kind.db", *asked, "--allow", "constant", "--confident", code=1).stdout
    assert "n=12: the interval's lower end does not meet the requirement\nmet: " in failed


def test_pass_hat_counts_scenarios_whose_trials_all_succeed(command: Command) -> None:
    lines = command("require", "stern.db", "pass^2(task_completion) >= 40%", code=None).stdout
    assert lines.startswith("met: pass^2(task_completion) >= 40.0 %: "), lines


FAILED = {
    "low": ("kind", "personalization > 3", "3.00 [3.00, 3.00] n=12: the value is too low; constant: all scores are eq"),
    "high": ("kind", "task_completion < 100%", "the value is too high"),
    "offline": ("offline", "task_completion >= 1%", "n=12: offline: assistant played by a scripted model"),
    "missing": ("mute", "personalization > 1", "no score: there are no scores; missing: 12 without a score"),
    "trials": ("kind", "pass^2(task_completion) >= 1%", "no scenario has 2 trials with a verdict"),
}


@pytest.mark.parametrize(("run", "requirement", "reason"), FAILED.values(), ids=FAILED.keys())
def test_line_of_an_unmet_requirement_has_the_reason(command: Command, run: str, requirement: str, reason: str) -> None:
    line = command("require", f"{run}.db", requirement, code=1).stdout
    assert line.startswith("NOT MET: ") and reason in line


def test_exact_value_is_shown_if_rounding_hides_the_difference_and_unjudged_scenarios_are_missing(
    command: Command,
) -> None:
    line = command("require", "stern.db", "naturalness (user) >= 1.001", "--allow", "constant", code=1).stdout
    assert line.startswith("NOT MET: naturalness (user) >= 1.00: 1.00") and line.endswith(": 1 is too low\n"), line
    command("judge", "kind.db", "--name", "some", "--sample", 5, "--model", "judge=python:cast:judge")
    some = ("kind.db", "task_completion >= 80%", "--judging", "some")
    assert "missing: not judged by 'some': 7 of 12 finished scenarios" in command("require", *some, code=1).stdout
    command("require", *some, "--allow", "missing")
    assert (
        "Not judged by 'some': 7 of 12 finished scenarios." in command("report", "kind.db", "--judging", "some").stdout
    )
    assert "judgements 'some': 7 of 12 finished scenarios are not judged" in command("status", "kind.db").stdout


REFUSED = {
    "unknown": (["resolvd > 3"], "unknown metric 'resolvd'; the run has task_completion, personalization"),
    "share": (["personalization > 3%"], "gives scores: give a number"),
    "number": (["task_completion > 3"], "gives verdicts: give a percentage"),
    "form": (["a = 3"], "'a = 3' is not of the form"),
    "two targets": (["naturalness > 3"], "give one of naturalness (assistant), naturalness (user)"),
    "nothing": ([], "give at least one requirement"),
    "allowed": (
        ["a > 3", "--allow", "it"],
        "--allow must be one of constant, missing, offline, unfinished, unhealthy, got 'it'",
    ),
    "other judge": (["--not-worse-than", "mute.db"], "they also differ in model of judge"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_requirement_that_cannot_be_checked_is_refused(command: Command, words: list[str], message: str) -> None:
    assert message in command("require", "kind.db", *words, code=2).stderr


def test_run_that_is_worse_than_another_fails(command: Command, folder: Path) -> None:
    worse = command("require", "plain.db", "--not-worse-than", "kind.db", code=1).stdout.splitlines()
    pairs = "n=12 pairs (without a pair: 0 of the baseline, 0 of this run)"
    equal = "+0.0 percentage points [+0.0, +0.0]"
    assert worse[0] == f"met: no significant loss of task_completion (assistant): {equal} {pairs}"
    assert worse[1].startswith(
        f"NOT MET: no significant loss of personalization (assistant): -1.00 [-1.00, -1.00] {pairs}: low"
    )
    command("require", "kind.db", "--not-worse-than", "plain.db")
    better, other = open_run(folder / "kind.db"), open_run(folder / "offline.db")
    checked = better.require(not_worse_than=other)
    assert all(each.reasons[0].startswith("offline: ") for each in checked)
    assert all(each.is_met for each in better.require(not_worse_than=other, allow=["offline"]))


def test_conversations_without_a_pair_are_counted_on_both_sides(dialoom: Command, tmp_path: Path) -> None:
    study = (
        '[people]\nrows = [{}]\n[user]\nbrief = "{{{{ person.name }}}}"\n[[check]]\nmetric = "long"\npattern = "."\n'
    )
    for file, names in {"before": "ABC", "now": "BCDEF", "others": "XY", "one": "AZ"}.items():
        rows = ", ".join(f'{{ name = "{name}" }}' for name in names)
        (tmp_path / "study.toml").write_text(study.format(rows))
        dialoom("run", "study.toml", "--model", "offline/placeholder", "-o", f"{file}.db")
    files = ("--junit", "junit.xml", "--summary", "summary.md")
    done = dialoom("require", "now.db", "--not-worse-than", "before.db", "--allow", "offline", *files)
    counted = "n=2 pairs (without a pair: 1 of the baseline, 3 of this run)"
    for text in (done.stdout, *((tmp_path / file).read_text() for file in ("junit.xml", "summary.md"))):
        assert counted in text
    one = dialoom("require", "one.db", "--not-worse-than", "before.db", "--allow", "offline", code=None).stdout
    assert "n=1 pair (without a pair: 2 of the baseline, 1 of this run)" in one
    differences = dialoom("report", "before.db", "now.db", "--table", "differences").stdout
    assert "left out: before.db 1, now.db 3" in " ".join(differences.split())
    apart = ("require", "now.db", "--not-worse-than", "others.db", "--allow", "offline")
    assert "their simulated users differ (persona source)" in dialoom(*apart, code=2).stderr
    assert "have no scores of" in dialoom(*apart, "--allow-different-users", code=2).stderr


STUDY = """
[people]
rows = [{rows}]

[dialogue]
max_turns = 1
ends = []

[[judge]]
metric = "rude"
rubric = "The assistant is rude."
lower_is_better = true

[[check]]
metric = "insults"
python = "insults.py:count"
lower_is_better = true
"""
PEOPLE = """
async def user(messages):
    return "Hello."

async def polite(messages):
    return "Good day."

async def rude(messages, session):
    return "Fool!" if session.person[-1] in "02468ace" or session.trial == 2 else "Good day."

async def judge(messages):
    return '{"explanation": "Heard it.", "verdict": %s}' % str("Fool!" in str(messages)).lower()
"""


def test_settings_without_effect_are_reported(command: Command) -> None:
    cast = [f"--model={role}=python:cast:{name}" for role, name in (("user", "user"), ("assistant", "kind"))]
    cast += ["--model=judge=python:cast:judge", "--temperature=0.4", "--temperature=user=0.5", "--price=openai/x=1,2"]
    done = command("run", "personalens", "--profiles", "release", *cast, "--max-calls", 1, "-o", "x.db", code=3)
    assert "temperature: user is played by python:cast:user, which is called with messages only" in done.stdout
    assert "temperature: assistant" not in done.stdout, "the value for all roles may be meant for the other roles"
    assert "prices: no role is played by openai/x, so the setting has no effect" in done.stdout
    judged = command("judge", "x.db", "--model", "judge=python:cast:stern", "--max-reply", "judge=9").stdout
    assert "x.db has no finished scenarios to judge" in judged
    assert "max_reply: judge is played by python:cast:stern" in judged


def test_notes_have_the_scope_and_the_scenarios_of_the_figures(command: Command) -> None:
    cast = [f"--model={role}=python:cast:{name}" for role, name in (("user", "user"), ("assistant", "plain"))]
    cast += ["--model=judge=python:cast:judge", "--trials", "2", "-o", "twice.db"]
    command("run", "personalens", "--profiles", "release", *cast)
    text = " ".join(command("report", "stern.db", "twice.db", "--table", "differences").stdout.split())
    assert "about four times as many scenarios: about 36 more" in text, "12 scenarios, not 24 conversations"
    health = command("report", "kind.db", "--table", "judge-health", "--where", "kind == 'single'").stdout
    assert "Covers the judged conversations that match the filter." in health


def test_lower_is_better_metrics_are_compared_and_counted_in_their_direction(tmp_path: Path, dialoom: Command) -> None:
    rows = ", ".join(f'{{ name = "Person {number}" }}' for number in range(12))
    (tmp_path / "study.toml").write_text(STUDY.replace("{rows}", rows))
    (tmp_path / "people.py").write_text(PEOPLE)
    (tmp_path / "insults.py").write_text('def count(talk):\n    return talk.text("assistant").count("Fool")\n')
    cast = ("--model", "user=python:people:user", "--model", "judge=python:people:judge")
    for name in ("polite", "rude"):
        assistant = ("--model", f"assistant=python:people:{name}")
        dialoom("run", "study.toml", *cast, *assistant, "--trials", 2, "-o", f"{name}.db")
    allowed = ("--allow", "constant,unhealthy")
    worse = dialoom("require", "rude.db", "--not-worse-than", "polite.db", *allowed, code=1).stdout.splitlines()
    assert [line.partition(":")[0] for line in worse] == ["NOT MET", "NOT MET"]
    assert worse[0].startswith("NOT MET: no significant rise of rude (assistant): +") and "higher, p 0.0" in worse[0]
    better = dialoom("require", "polite.db", "--not-worse-than", "rude.db", *allowed).stdout
    assert better.startswith("met: no significant rise of rude (assistant): -")
    assert "met: pass^2(rude) >= 100.0 %: 100.0 %" in dialoom("require", "polite.db", "pass^2(rude) >= 100%").stdout
    dialoom("require", "rude.db", "pass^2(rude) >= 1%", code=1)
    table = open_run(tmp_path / "rude.db", trust=True).report(tables=["pass"])["pass"]
    once, twice = (cell.mean for row in table.rows if isinstance(cell := row[2], Estimate))
    assert 0 < once <= 0.5 and twice == 0, "every second trial is rude"


TURNS = """
[people]
rows = [{rows}]

[dialogue]
max_turns = 4
ends = []

[user]
brief = "You are {{{{ person.name }}}}."

[[judge]]
metric = "kind"
rubric = "The assistant is kind."

[[judge]]
metric = "kind"
rubric = "The reply is kind."
per_turn = true

[[judge]]
metric = "tone"
scale = [1, 5]
rubric = "The tone."
per_turn = true
"""


def test_requirements_and_reports_have_the_same_intervals(tmp_path: Path) -> None:
    """The turns and the trials of a scenario are not independent."""

    async def user(messages: object) -> str:
        return "I am odd." if any(f"Person {number}." in str(messages) for number in range(1, 12, 2)) else "I am even."

    async def assistant(messages: object, session: Any) -> str:
        return "Go away." if "odd" in str(messages) and session.trial == 1 else "Good day."

    async def judge(messages: object) -> str:
        is_kind = "Go away." not in str(messages)
        return json.dumps({"explanation": "Heard it.", "verdict": is_kind, "score": 4 if is_kind else 2})

    (tmp_path / "study.toml").write_text(
        TURNS.format(rows=", ".join(f'{{ name = "Person {number}" }}' for number in range(12)))
    )
    models: dict[str, Any] = {"user": user, "assistant": assistant, "judge": judge}
    run = dialoom.play(str(tmp_path / "study.toml"), path=tmp_path / "r.db", models=models, trials=2)
    report, allowed = run.report(), ["missing", "unhealthy"]

    def required(text: str) -> Estimate | None:
        (found,) = run.require(text, allow=allowed)
        return found.estimate

    whole = required("kind (assistant) >= 0%")
    assert whole is not None and whole.n == 24
    assert figures(whole) == figures(report["scores"].rows[0][report["scores"].columns.index("kind %")])
    passed = next(row for row in report["pass"].rows if row[1] == 2)
    assert figures(required("pass^2(kind (assistant)) >= 0%")) == figures(passed[2])
    by_turn = required("kind (assistant) by turn >= 0%")
    assert by_turn is not None and by_turn.n == 96
    (of_judge,) = (each for each in run.judge_health() if each.subject == "kind (assistant) by turn")
    assert figures(by_turn) == figures(of_judge.most_frequent[1])
    assert (by_turn.low, by_turn.high) == (whole.low, whole.high), "all turns of a conversation have the same verdict"
    tone = required("tone (assistant) >= 1")
    assert tone is not None and tone.n == 96 and None not in (tone.low, tone.high, whole.low, whole.high)
    widths = [(each.high or 0) - (each.low or 0) for each in (tone, whole)]
    assert widths[0] / 2 == pytest.approx(widths[1], rel=0.25), "scores of 2 and 4, instead of verdicts"
    dialoom.expect(run, allow=allowed).metric("tone").at_least(tone.mean - 0.01)
    compared = run.require("kind (assistant) >= 0%", not_worse_than=run, allow=allowed)
    assert [each.metric for each in compared] == ["kind (assistant)"] * 2, "scores by turn have another name"
    with pytest.raises(dialoom.DialoomError, match=r"names several scores; give one of kind \(assistant\), kind"):
        run.require("kind >= 0%", allow=allowed)


def figures(found: object) -> tuple[object, ...]:
    """Return the n, mean and ends of an estimate."""
    assert isinstance(found, Estimate)
    return found.n, found.mean, found.low, found.high


def test_mean_meets_a_bound_of_the_same_value_despite_rounding(tmp_path: Path) -> None:
    """The sums of 0.7 three times and of 0.6, 0.7 and 0.8, divided by 3, are not 0.7 but 0.6999999999999998."""
    run = dialoom.simulate(
        [f"Person {number}" for number in range(6)],
        assistant="offline/placeholder",
        user="offline/placeholder",
        checks=[dialoom.Check("quality", lambda _: 0.7), dialoom.Check("fine", lambda _: True)],
        max_turns=1,
        trials=3,
        path=tmp_path / "run.db",
    )
    for bound, expected in ((">= 0.7", True), ("<= 0.7", True), ("> 0.7", False), ("< 0.7", False), (">= 0.71", False)):
        (found,) = run.require(f"quality {bound}", is_confident=True, allow=["offline"])
        assert found.is_met == expected, str(found)
        assert found.estimate == Estimate(18, 0.7, 0.7, 0.7)
    (found,) = run.require("fine >= 100%", allow=["offline"])
    assert found.estimate is not None and repr(found.estimate.mean) == "1.0", "a number also if all verdicts are true"
    row = run.report()["trials"].rows[0]
    assert row[:6] == ["quality (assistant)", 6, 18, 0, None, None]
    for scores, mean in (((0.6, 0.7, 0.8), 0.7), ((10000.2, 10000.3, 10000.4), 10000.3)):
        varied = _with_scores(tmp_path / f"{mean}.db", *scores)
        both = varied.require(f"quality >= {mean}", f"quality <= {mean}", allow=["offline"])
        assert [str(found) for found in both if not found.is_met] == []


def test_run_with_the_same_mean_is_not_worse_despite_rounding(tmp_path: Path) -> None:
    """The differences 0.1, 0.09999999999999998 and -0.2 have a sum below 0."""
    first = _with_scores(tmp_path / "first.db", 0.1, 0.2, 0.5)
    allow = ["offline"]
    (found,) = _with_scores(tmp_path / "same.db", 0.2, 0.3, 0.3).require(not_worse_than=first, allow=allow)
    assert found.is_met, str(found)
    (found,) = _with_scores(tmp_path / "less.db", 0.2, 0.3, 0.2).require(not_worse_than=first, allow=allow)
    assert not found.is_met


def _with_scores(path: Path, *scores: float) -> dialoom.Run:
    values = iter(scores)
    return dialoom.simulate(
        [f"Person {number}" for number in range(len(scores))],
        assistant="offline/placeholder",
        user="offline/placeholder",
        checks=[dialoom.Check("quality", lambda _: next(values))],
        max_turns=1,
        concurrency=1,
        path=path,
    )
