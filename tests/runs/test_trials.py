"""Trials: every recipe plays each scenario several times, with the same results however the run is carried out."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs import Estimate, Table
from dialoom.graphs.prefeval import PrefEval
from dialoom.graphs.tables import Runs, share_of
from dialoom.graphs.tables.statistics import TRIALS_NOTE, wilson
from dialoom.runs.report.trials import estimate_pass_rate, pass_at, pass_hat, variance_shares
from tests.conftest import ROOT, Command
from tests.runs.workers.local_cluster import local_cluster

RECIPES: dict[str, dict[str, Any]] = {
    "personalens": {"users": "1", "setting": ("I",), "limit": 2},
    "personalens-people": {"people": 1, "single_tasks": 1, "multi_tasks": 1},
    "aloe": {"limit": 2, "rounds": 2},
    "aloe-eval": {"limit": 2, "rounds": 2},
    "persona-pool": {"kind": "profile", "target": 3},
    "prefeval": {"limit": 2, "turns": (2,)},
    "prefeval-pairs": {"topics": "travel_hotel", "calls": 1, "per_call": 2, "keep": 1},
    "apollo": {"limit": 2},
    "apollo-build": {"users": 1, "pairs": 1, "errands": 1},
    "apollo-write": {"users": 1, "pairs": 1, "errands": 0, "flows": "flight"},
    f"{ROOT}/docs/examples/studies/support.toml": {},
    f"{ROOT}/docs/examples/studies/mediation.toml": {},
}
SAMPLES = dict.fromkeys(RECIPES) | {f"{ROOT}/docs/examples/studies/support.toml": 3}


def rows_of(run: dialoom.Run, path: Path) -> list[dict[str, Any]]:
    """Return the rows of a run's export."""
    run.export("dialogues", path)
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: Path(recipe).stem)
def test_trials_are_independent_of_how_a_run_is_carried_out(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(name: str, **settings: Any) -> dialoom.Run:
        given: dict[str, Any] = {"options": RECIPES[recipe], "sample": SAMPLES[recipe], "seed": 3}
        return dialoom.play(recipe, path=tmp_path / f"{name}.db", **given, **settings)

    once = play("once")
    single = rows_of(once, tmp_path / "once.jsonl")
    assert not any("trial" in row for row in single)
    twice = rows_of(play("twice", trials=2, concurrency=5), tmp_path / "twice.jsonl")
    assert [row.pop("trial") for row in twice] == [1] * len(single) + [2] * len(single)
    assert twice[: len(single)] == single
    assert [row["id"] for row in twice[len(single) :]] == [row["id"] for row in single]

    local_cluster(monkeypatch)
    stopped = play("stopped", budget=dialoom.Budget(max_calls=3))
    grown = dialoom.resume(stopped.path, trials=2, workers=2, budget=dialoom.Budget(max_calls=10_000))
    rows_of(grown, tmp_path / "grown.jsonl")
    assert (tmp_path / "grown.jsonl").read_bytes() == (tmp_path / "twice.jsonl").read_bytes()
    with pytest.raises(dialoom.DialoomError, match="trials must be at least 2, which the run has, got 1"):
        dialoom.resume(grown.path, trials=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Return a judged run of three trials; the verdicts depend on the conversation."""

    async def judge(messages: list[dict[str, str]]) -> str:
        number = hashlib.sha256(json.dumps(messages).encode()).digest()[0]
        return json.dumps({"verdict": number % 2 == 0, "score": 1 + number % 4, "explanation": "It was so."})

    path = tmp_path_factory.mktemp("trials") / "run.db"
    options = {"users": "1", "setting": ("I",), "limit": 6}
    models = {"judge": judge}
    return dialoom.play("personalens", path=path, options=options, models=models, trials=3, seed=1)


def test_trials_differ(run: dialoom.Run) -> None:
    first, second = run.episode(1), run.episode(7)
    assert first is not None and second is not None
    assert (second.id, second.scenario, second.trial) == (f"{first.id}~2", first.id, 2)
    assert first.outcome.messages != second.outcome.messages


def test_trials_are_named_selected_and_shown_in_frames(run: dialoom.Run) -> None:
    scenario = next(run.episodes()).scenario
    named = run.episode(f"{scenario[:-4]}~3")
    assert named is not None and named.trial == 3
    for unknown in (f"{scenario}~4", f"{scenario}~x", f"{scenario[:-4]}~", f"{scenario}~{'9' * 30}"):
        with pytest.raises(dialoom.DialoomError, match="has no scenario"):
            run.episode(unknown)
    assert [each.trial for each in run.episodes(where="trial == 2")] == [2] * 6
    frame = run.frame()
    assert frame["trial"].tolist() == [1] * 6 + [2] * 6 + [3] * 6
    assert frame["id"].nunique() == 6


def test_report_has_success_in_trials_and_variance(run: dialoom.Run) -> None:
    tables = {table.name: table for table in run.report().tables}
    verdicts: dict[str, list[bool]] = {}
    for episode in run.episodes():
        found = [each for each in episode.outcome.judgements if each.metric == "task_completion"]
        verdicts.setdefault(episode.scenario, []).append(bool(found[0].score))
    for metric, k, every, at_least_one, *_ in tables["pass"].rows:
        assert metric == "task_completion (assistant)"
        hats = [pass_hat(len(each), sum(each), int(str(k))) for each in verdicts.values()]
        assert every.mean == pytest.approx(sum(hats) / len(hats))  # type: ignore[union-attr]
        assert at_least_one.n == 6  # type: ignore[union-attr]
    rows = {row[0]: row for row in tables["trials"].rows}
    assert rows["task_completion (assistant)"][1:4] == [6, 18, 0]
    scores = {table.name: table for table in run.report().tables}["scores"]
    tcr = scores.rows[0][list(scores.columns).index("TCR %")]
    assert tcr.n == 18  # type: ignore[union-attr]


def test_missing_scores_are_counted_but_are_no_failures(tmp_path: Path) -> None:
    async def judge(messages: list[dict[str, str]]) -> str:
        return f"I cannot say anything about these {len(messages)} messages."

    options = {"users": "1", "setting": ("I",), "limit": 2}
    run = dialoom.play("personalens", path=tmp_path / "run.db", options=options, models={"judge": judge}, trials=2)
    tables = {table.name: table for table in run.report().tables}
    assert "pass" not in tables
    rows = {row[0]: row[1:6] for row in tables["trials"].rows}
    assert rows["task_completion (assistant)"] == [0, 0, 4, None, None]


def test_notes_name_the_metrics_of_their_table_and_those_that_it_leaves_out(tmp_path: Path) -> None:
    async def judge(messages: list[dict[str, str]]) -> str:
        return json.dumps({"verdict": len(messages) % 2 == 0, "explanation": "It was so."})

    pushy = dialoom.Judge("pushy", rubric="The reply is pushy.", per_turn=True, lower_is_better=True)
    rude = dialoom.Judge("rude", rubric="The assistant is rude.", lower_is_better=True)
    people = [{"name": "Ada"}, {"name": "Bo"}]
    users: list[Any] = ["offline/placeholder", brief]
    run = dialoom.simulate(
        people,
        assistant=brief,
        judges=[pushy, rude],
        judge=judge,
        user=users,
        trials=2,
        max_turns=2,
        path=tmp_path / "run.db",
    )
    tables = {table.name: table for table in run.report().tables}
    assert {row[0] for row in tables["pass"].rows} == {"rude (assistant)"}
    assert "Where false is the good verdict (rude), it is the success" in tables["pass"].notes[0]
    left_out = "Not in this table, which is about whole conversations: pushy (assistant) by turn."
    assert all(left_out in tables[name].notes for name in ("pass", "trials", "user-models", "user-variance"))
    of_whole = dialoom.simulate(
        people, assistant=brief, judges=[rude], judge=judge, trials=2, max_turns=2, path=tmp_path / "other.db"
    )
    assert all("Not in this table" not in note for table in of_whole.report().tables for note in table.notes)


def test_differences_state_that_turns_are_averaged_by_conversation(tmp_path: Path) -> None:
    async def user(messages: list[dict[str, str]]) -> str:
        turns = sum(each["role"] == "assistant" for each in messages)
        return "DONE" if turns >= (1 if "Ada" in str(messages) else 3) else f"Please help me, {turns}."

    async def judge(messages: list[dict[str, str]]) -> str:
        return json.dumps({"score": 5 if "Ada" in str(messages) else 1, "explanation": "It was so."})

    tone = dialoom.Judge("tone", rubric="The tone towards {{ person.name }}.", scale=(1, 5), per_turn=True)
    people = [{"name": "Ada"}, {"name": "Bo"}]
    runs = [
        dialoom.simulate(people, assistant=brief, judges=[tone], judge=judge, user=user, max_turns=3, path=path)
        for path in (tmp_path / "one.db", tmp_path / "two.db")
    ]
    table = dialoom.report(*runs)["differences"]
    (found,) = runs[0].require("tone >= 1")
    assert found.estimate is not None and found.estimate.mean == (5 + 1 + 1 + 1) / 4
    assert [row[2] for row in table.rows] == [(5 + 1) / 2]
    assert "Scores by turn: each conversation counts once, with the mean of its turns." in table.notes


async def brief(messages: list[dict[str, str]]) -> str:
    """Play a speaker of few words."""
    return f"Please help me, {len(messages)}."


def test_intervals_count_scenarios_or_are_marked(run: dialoom.Run, tmp_path: Path) -> None:
    scores = next(table for table in run.report().tables if table.name == "scores")
    assert not scores.warnings
    assert any(
        "Conversations of one scenario (trials, user models) are not independent" in note for note in scores.notes
    )
    options = {"limit": 6, "turns": (2,)}
    others = dialoom.play(PrefEval(), path=tmp_path / "run.db", options=options, trials=3, seed=1).report().tables
    assert any(TRIALS_NOTE in table.notes for table in others)
    assert not any(table.warnings for table in others)

    class Naive(PrefEval):
        def report_tables(self, runs: Runs) -> list[Table]:
            shares = [share_of(len(list(episodes)), 40) for _, episodes in runs]
            return [Table("done", "Finished items", ["share %"], [shares])]

    (table,) = dialoom.open_run(tmp_path / "run.db", Naive()).report(tables=["done"]).tables
    assert "treat every trial as a separate scenario" in table.warnings[0]


def test_scenarios_of_one_person_are_not_independent() -> None:
    """The interval is wider if five of ten people always succeed than if successes are spread, or with forty people."""
    alike = {number: (number // 4, number < 20) for number in range(40)}
    spread = {number: (number // 4, number % 4 < 2) for number in range(40)}
    alone = {number: (number, number < 20) for number in range(40)}
    widths = []
    for scenarios in (alike, spread, alone):
        trials: dict[tuple[Hashable, str], list[bool]] = {
            (person, str(number)): [succeeds] * 2 for number, (person, succeeds) in scenarios.items()
        }
        found = estimate_pass_rate(pass_hat, 2, trials)
        assert found is not None and found.low is not None and found.high is not None
        assert (found.n, found.mean) == (40, 0.5)
        assert estimate_pass_rate(pass_hat, 3, trials) is None
        widths.append(found.high - found.low)
    assert widths[0] > 1.5 * widths[1] == pytest.approx(1.5 * widths[2])


def test_agreement_of_judges_counts_a_scenario_once_however_often_it_is_played(tmp_path: Path) -> None:
    options = {"users": "1", "setting": ("I",), "limit": 2}
    for trials in (1, 3):
        run = dialoom.play("personalens", path=tmp_path / f"{trials}.db", options=options, trials=trials)
        run.judge("offline/placeholder", name="again", repeat=2)
        table = run.report()["repeats"]
        assert not table.warnings
        for row in table.rows:
            share = row[list(table.columns).index("all equal %")]
            assert isinstance(share, Estimate) and share.n == 2 * trials
            assert (share.low, share.high) == wilson(share.mean, 2)


def test_runs_of_different_settings_are_compared_trial_by_trial(tmp_path: Path) -> None:
    """Their scenarios differ, so they are paired by facets, which all trials of a scenario share."""
    runs = [
        dialoom.play(
            "personalens",
            path=tmp_path / f"{setting}.db",
            options={"users": "1", "setting": (setting,), "limit": 4},
            trials=2,
        )
        for setting in ("base", "DI")
    ]
    rows = dialoom.report(*runs)["differences"].rows
    assert rows and {row[4].n for row in rows} == {8}  # type: ignore[union-attr]


def test_estimators_are_those_of_the_literature() -> None:
    assert [pass_hat(4, 2, k) for k in (1, 2, 3)] == [0.5, pytest.approx(1 / 6), 0.0]
    assert [pass_at(4, 2, k) for k in (1, 2, 3)] == [0.5, pytest.approx(5 / 6), 1.0]
    trials: dict[tuple[Hashable, str], list[bool]] = {
        (number % 7, str(number)): [number % place > 0 for place in (2, 3, 5)] for number in range(21)
    }
    one, other = (estimate_pass_rate(each, 1, trials) for each in (pass_hat, pass_at))
    assert one == other, "with one trial both are the same share, so their intervals are equal, too"
    assert variance_shares([[1.0, 1.0], [3.0, 3.0]]) == (1.0, 0.0)
    assert variance_shares([[1.0, 3.0], [1.0, 3.0]]) == (0.0, 1.0)
    assert variance_shares([[2.0, 2.0], [2.0, 2.0]]) is None
    assert variance_shares([[2.0], [3.0]]) is None
    # Groups of unequal size, by hand: MSB 13.5, MSW 0.5, n0 = (5 - 13 / 5) / 1 = 2.4, component 13 / 2.4.
    shares = variance_shares([[0.0, 1.0, 0.5], [3.25, 4.25]])
    within = (0.5 + 0.5) / 3
    between = (3 * 1.3**2 + 2 * 1.95**2 - within) / 2.4
    assert shares is not None
    assert shares[0] == pytest.approx(between / (between + within))
    assert math.fsum(shares) == pytest.approx(1.0)


def test_trials_cannot_be_removed_or_exceed_the_maximum(dialoom: Command) -> None:
    dialoom("run", "aloe", "--limit", 1, "--rounds", 1, "--trials", 2, "-o", "run.db")
    refused = dialoom("resume", "run.db", "--trials", 1, code=2)
    assert "--trials must be at least 2, which the run has, got 1" in refused.stderr
    refused = dialoom("resume", "run.db", "--trials", 10_001, code=2)
    assert "--trials must be at most 10,000, got 10001" in refused.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"trials": 1}, "trials must be at least 2"),
        ({"trials": 3, "workers": 2}, "whose state no other process can restore"),
    ],
    ids=["trials", "workers"],
)
def test_resume_that_is_refused_leaves_the_plan_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], message: str
) -> None:
    class Broken:
        async def __call__(self, messages: list[dict[str, str]]) -> str:
            raise RuntimeError(f"no reply to {len(messages)} messages")

    local_cluster(monkeypatch)
    given: dict[str, Any] = {"options": {"limit": 2, "rounds": 1}, "trials": 2}
    models = {"assistant": dialoom.Model(Broken, stateful=True)}
    run = dialoom.play("aloe-eval", path=tmp_path / "run.db", models=models, **given)
    before = run.status()
    assert before.failed == before.total == 4
    with pytest.raises(dialoom.DialoomError, match=message):
        dialoom.resume(run.path, models={"assistant": Broken}, retry_failed=True, **more)
    assert run.status() == before


def test_resume_without_a_key_adds_no_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    given: dict[str, Any] = {"options": {"limit": 2}, "model": "openai/gpt-4o-mini"}
    run = dialoom.plan("aloe-eval", path=tmp_path / "run.db", **given)
    with pytest.raises(dialoom.DialoomError, match="no key in OPENAI_API_KEY"):
        dialoom.resume(run.path, trials=3)
    assert run.status().total == 2


def test_resume_of_a_finished_run_does_not_import_litellm(tmp_path: Path) -> None:
    dialoom.play("aloe-eval", path=tmp_path / "run.db", options={"limit": 1, "rounds": 1})
    code = "import sys, dialoom; dialoom.resume('run.db'); print('litellm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_folder_of_a_release_contains_one_trial(run: dialoom.Run, tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError, match="this run has 3 trials of each; choose one, such as 'trial == 1'"):
        run.export("personalens", tmp_path / "all")
    run.export("personalens", tmp_path / "first", where="trial == 1")
    with pytest.raises(dialoom.DialoomError, match="where trial == 9 selects no row of 18 finished scenarios"):
        run.export("personalens", tmp_path / "none", where="trial == 9")
    assert not (tmp_path / "none").exists()
    assert len([*(tmp_path / "first").rglob("*.json")]) == 6


def test_number_of_trials_is_checked(tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError, match="trials must be at least 1, got 0"):
        dialoom.play("aloe", path=tmp_path / "run.db", trials=0)
    assert not (tmp_path / "run.db").exists()
