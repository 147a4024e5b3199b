"""Several user models: each scenario is played with each, their share of the variance, and the order of assistants."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialoom
from dialoom import play, report
from dialoom.graphs import Estimate
from dialoom.graphs.check import Conversation
from dialoom.graphs.tables.statistics import TRIALS_NOTE
from dialoom.runs.report.users import rank_agreement, user_variance_shares
from tests.conftest import ROOT, Command
from tests.invented import ALARM, write_release
from tests.runs.workers.local_cluster import local_cluster

SUPPORT = f"{ROOT}/docs/examples/studies/support.toml"
RECIPES: dict[str, dict[str, Any]] = {
    "personalens": {"users": "1", "setting": ("I",), "limit": 2},
    "aloe": {"limit": 2, "rounds": 2},
    "aloe-eval": {"limit": 2, "rounds": 2},
    SUPPORT: {},
}


def rows_of(run: dialoom.Run, path: Path) -> list[dict[str, Any]]:
    """Return the rows of a run's export."""
    run.export("dialogues", path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def replayable(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the name of its user model."""
    return {**row, "models": {**row["models"], "user": ""}, "user_model": ""}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: Path(recipe).stem)
def test_each_scenario_is_played_with_each_user_model(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(name: str, users: Any, **settings: Any) -> dialoom.Run:
        given: dict[str, Any] = {"options": RECIPES[recipe], "sample": 2, "seed": 3, "models": {"user": users}}
        return dialoom.play(recipe, path=tmp_path / f"{name}.db", **given, **settings)

    users = ["offline/attentive", "offline/generic"]
    if recipe == SUPPORT:
        users = ["offline/placeholder", f"python:{__name__}:clumsy"]
    alone = rows_of(play("alone", users[0]), tmp_path / "alone.jsonl")
    assert not any("user_model" in row for row in alone)
    run = play("both", users, trials=2, concurrency=5)
    both = rows_of(run, tmp_path / "both.jsonl")
    assert [run.dialogue(number + 1) for number in range(len(both))] == [{**row, "state": "done"} for row in both]
    size = len(alone)
    factors = [(row["user_model"], row["trial"]) for row in both]
    assert factors == [(user, trial) for trial in (1, 2) for user in users for _ in range(size)]
    assert [row["models"]["user"] for row in both] == [user for user, _ in factors]
    assert [row["id"] for row in both] == [row["id"] for row in alone] * 4
    assert [replayable(row) | {"trial": ""} for row in both[:size]] == [
        replayable(row) | {"trial": ""} for row in alone
    ], "the first model has the seeds and keys of a run with it alone"

    local_cluster(monkeypatch)
    stopped = play("stopped", users, budget=dialoom.Budget(max_calls=3))
    grown = dialoom.resume(stopped.path, trials=2, workers=2, budget=dialoom.Budget(max_calls=10_000))
    rows_of(grown, tmp_path / "grown.jsonl")
    assert (tmp_path / "grown.jsonl").read_bytes() == (tmp_path / "both.jsonl").read_bytes()


async def skilled(messages: list[dict[str, str]]) -> str:
    """Play a user who states all that the assistant needs: 4 of 4 points."""
    return f"user 4 {digest(messages)}"


async def clumsy(messages: list[dict[str, str]]) -> str:
    """Play a user who leaves half of it out: 2 of 4 points."""
    return f"user 2 {digest(messages)}"


def digest(messages: list[dict[str, str]]) -> str:
    """Return a hash of a request, which tells the scenario."""
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:8]


def assistant_of(quality: int) -> dialoom.Model:
    """Return an assistant that adds a number of points of its own."""

    async def answer(messages: list[dict[str, str]]) -> str:
        assert messages
        return f"assistant {quality}"

    return dialoom.Model(answer, name=f"quality-{quality}")


METRIC = "points (assistant)"
NOISE, SCENARIOS = 1.5, 60


def points(talk: Conversation) -> int:
    """Return a score in hundredths: the scenario's level, the user's and the assistant's points, and chance."""
    said = [line.content.split() for line in talk.messages]
    chance = random.Random(" ".join(word for words in said for word in words))
    level = random.Random(said[0][2]).uniform(0, 4)
    return round(100 * (level + int(said[0][1]) + int(said[1][1]) + chance.uniform(-NOISE, NOISE)))


def reversed_points(talk: Conversation) -> int:
    """Return a score that reverses the order of assistants with the clumsy user."""
    said = [line.content.split() for line in talk.messages]
    return 50 + int(said[1][1]) * (1 if said[0][1] == "4" else -1)


def played(folder: Path, quality: int) -> dialoom.Run:
    """Return a run of an assistant with both user models."""
    checks = [
        dialoom.Check("points", points, scale=(-1000, 2000)),
        dialoom.Check("reversed_points", reversed_points, scale=(0, 100)),
    ]
    return dialoom.simulate(
        people=[f"person {number}" for number in range(SCENARIOS // 3)],
        tasks=["return a kettle", "order a lamp", "find a lost parcel"],
        assistant=assistant_of(quality),
        user=[skilled, clumsy],
        checks=checks,
        max_turns=1,
        path=folder / f"{quality}.db",
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dialoom.Run]:
    """Return the runs of three assistants of known quality with two user models of known skill."""
    folder = tmp_path_factory.mktemp("users")
    return [played(folder, quality) for quality in (1, 2, 4)]


def cell(table: Any, what: str, column: str, label: str | None = None) -> Any:
    """Return a cell of a table by the metric of its row, and the run's label if there are several."""
    (row,) = [row for row in table.rows if what in row and (label is None or row[0] == label)]
    return row[list(table.columns).index(column)]


def test_the_share_of_the_variance_is_recovered(runs: list[dialoom.Run]) -> None:
    of_users, of_levels, of_chance = 2.0, 16 / 12, (2 * NOISE) ** 2 / 12  # two values 2 apart; uniform draws
    truth = of_users / (of_users + of_levels + of_chance)
    tables = runs[0].report()
    spread = tables["user-variance"]
    share = cell(spread, METRIC, "user models %")
    assert share.n == SCENARIOS
    assert f"here there are {SCENARIOS // 3})" in spread.notes[0]
    assert share.low < truth < share.high
    assert abs(share.mean - truth) < 0.15
    shares = [share.mean, *(cell(spread, METRIC, name) for name in ("scenarios %", "rest %"))]
    assert sum(shares) == pytest.approx(1)
    means = tables["user-models"]
    assert [row[1] for row in means.rows[:2]] == [f"python:{__name__}:skilled", f"python:{__name__}:clumsy"]
    assert means.columns[-1] == "mean"
    by_user = [row[-1].mean for row in means.rows if isinstance(row[-1], Estimate) and row[0] == METRIC]
    assert by_user[0] - by_user[1] == pytest.approx(200, abs=60)


def test_the_order_of_assistants_is_compared_between_user_models(runs: list[dialoom.Run]) -> None:
    order = dialoom.report(*runs)["user-ranking"]
    tau = cell(order, METRIC, "tau")
    assert tau.mean == 1 and tau.low <= 1 <= tau.high
    assert cell(order, METRIC, "same order") == "yes"
    tau = cell(order, "reversed_points (assistant)", "tau")
    assert (tau.low, tau.mean, tau.high) == (-1, -1, -1)
    assert cell(order, "reversed_points (assistant)", "same order") == "no"


def test_pass_counts_a_scenario_once_for_all_user_models(tmp_path: Path) -> None:
    run = dialoom.simulate(
        people=[f"person {number}" for number in range(6)],
        assistant=assistant_of(1),
        user=[skilled, clumsy],
        checks=[dialoom.Check("always", lambda _talk: True)],
        max_turns=1,
        trials=2,
        path=tmp_path / "always.db",
    )
    report = run.report()
    (row,) = report["scores"].rows
    of_all = [each.low for each in row if isinstance(each, Estimate)]
    of_pass = [each for row in report["pass"].rows for each in row if isinstance(each, Estimate)]
    assert [(each.n, each.low) for each in of_pass] == [(12, low) for low in of_all * 4]


def test_a_check_that_returns_verdicts_and_numbers_has_means(tmp_path: Path) -> None:
    """As by `text and number`: rows that contain only verdicts have means like all others."""
    run = dialoom.simulate(
        people=[{"name": f"person {number}", "half": str(number % 2)} for number in range(12)],
        assistant=assistant_of(1),
        user=[skilled, clumsy],
        checks=[dialoom.Check("points", lambda talk: talk.scenario.person["half"] == "1" and 3.5)],
        max_turns=1,
        trials=2,
        path=tmp_path / "mixed.db",
    )
    report = run.report()
    assert TRIALS_NOTE in report["user-models"].notes
    for row in report["user-models"].rows:
        assert [text for _, text in report["user-models"].shown(row)][-1] == "mean", "not a percentage"
    by_half = {row[0]: row[2] for row in report["scores-by-half"].rows}
    ends = {half: (each.low, each.high) for half, each in by_half.items() if isinstance(each, Estimate)}
    assert ends == {"0": (0.0, 0.0), "1": (3.5, 3.5)}


def test_intervals_cover_the_truth() -> None:
    draw = random.Random(1)
    truth, covered, right = 0.5 / (0.5 + 1 + 1), 0, 0
    for _ in range(60):
        levels = [draw.gauss(0, 1) for _ in range(40)]
        scores = [[level + effect + draw.gauss(0, 1) for effect in (0.0, 1.0)] for level in levels]
        found = user_variance_shares(scores, range(40))
        assert found is not None and found[0].low is not None and found[0].high is not None
        covered += found[0].low <= truth <= found[0].high
        equal = user_variance_shares([[level + draw.gauss(0, 1) for _ in "ab"] for level in levels], range(40))
        assert equal is not None
        covered += equal[0].low == 0
        three = [[[level + a + u + draw.gauss(0, 1) for u in (0, 1)] for a in (0.0, 1.0, 2.0)] for level in levels]
        tau = rank_agreement(three, range(40))
        assert tau is not None and tau.high is not None
        right += tau.high == 1
    assert covered >= 110
    assert right == 60


@pytest.mark.parametrize(("effect", "scenarios"), [(0.3, 1), (1.0, 3), (3.0, 1), (3.0, 3)])
def test_shares_of_few_people_have_an_interval_that_covers_the_truth_or_none(effect: float, scenarios: int) -> None:
    draw, truth, covered = np.random.default_rng(3), effect**2 / (effect**2 + 1.5), 0
    people = np.repeat(np.arange(20), scenarios)
    for _ in range(200):
        levels = draw.normal(0, 0.5**0.5, 20)[people] + draw.normal(0, 0.5**0.5, len(people))
        chance = draw.normal(0, 0.5**0.5, (len(people), 3))
        scores = levels[:, None] + effect * np.array([-1.0, 0.0, 1.0]) + chance
        found = user_variance_shares(scores.tolist(), people.tolist())
        assert found is not None and found[0].low is not None and found[0].high is not None
        covered += found[0].low <= truth <= found[0].high
    assert covered >= 0.93 * 200
    few = user_variance_shares(scores[people < 19].tolist(), people[people < 19].tolist())
    assert few is not None and few[0].low is None and few[0].high is None


@pytest.mark.parametrize("people", [5, 10])
@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_ranks_of_few_people_have_an_interval_that_covers_the_truth(people: int, effect: float) -> None:
    """It contains 1 if user models do not affect the order, although chance orders nearly equal assistants."""
    draw, covered = np.random.default_rng(3), 0
    for _ in range(60):
        truth = 0.3 * np.arange(4)[:, None] + draw.normal(0, effect, (4, 3))
        scores = draw.normal(0, 1, (people, 1, 1)) + truth + draw.normal(0, 1, (people, 4, 3))
        (exact, found) = (rank_agreement(each.tolist(), range(len(each))) for each in (truth[None], scores))
        assert exact is not None and found is not None and found.low is not None and found.high is not None
        assert found.low <= found.mean <= found.high
        covered += found.low - 1e-9 <= exact.mean <= found.high + 1e-9
    assert covered >= 0.93 * 60


def test_undefined_shares_and_ranks_are_none() -> None:
    assert user_variance_shares([[1, 1], [1, 1]], [1, 2]) is None, "all scores are equal"
    assert user_variance_shares([[1, 2], [3, 4]], [1, 1]) is None, "one person"
    apart = user_variance_shares([[0, 1]] * 30, range(30))
    assert apart is not None and (apart[0].mean, apart[0].low) == (1, None), "all resamples are equal"
    nearly = [user_variance_shares([[0, int(odd >= of)] for odd in range(100)], range(100)) for of in (1, 3, 5)]
    lows = [each[0].low or 0.0 for each in nearly if each is not None]
    assert 0.99 > lows[0] > lows[1] > 0.8, "few scores differ, and in some resamples none"
    assert 0.7 < lows[2] < 0.95
    few = user_variance_shares([[1, 2], [3, 4.5], [2, 2.5]], [1, 2, 3])
    assert few is not None and few[0].low is None
    assert rank_agreement([[[1, 1], [1, 2]]] * 6, range(6)) is None, "with one user model both are equal"


def test_invalid_user_models_are_refused(tmp_path: Path) -> None:
    path, plain = tmp_path / "x.db", "offline/attentive"
    refused: list[tuple[list[Any], str]] = [
        ([plain, plain], "is given twice for 'user'"),
        ([], "is empty"),
        ([plain, assistant_of(1)], "'quality-1' cannot be imported by a name"),
    ]
    for users, message in refused:
        with pytest.raises(dialoom.DialoomError, match=message):
            dialoom.plan("personalens", models={"user": users}, path=path)
    with pytest.raises(dialoom.DialoomError, match="only one model can play 'user'"):
        dialoom.plan("prefeval", models={"user": [plain, "offline/generic"]}, path=path)


def test_user_models_on_the_command_line(dialoom: Command) -> None:
    users = ["--model", "user=offline/attentive", "--model", "user=offline/generic"]
    run = ["run", "personalens", "--users", "1", "--setting", "I", "--limit", "2", *users]
    assert "2 user models" in dialoom(*run, "-o", "r.db").stdout
    assert "offline/attentive, offline/generic" in dialoom("status", "r.db").stdout
    shown = dialoom("show", "r.db", "--where", "user_model == 'offline/generic'").stdout
    assert shown.count("~u2") == 2 and len(shown.splitlines()) == 3
    assert "user models %" in dialoom("report", "r.db").stdout
    refused = dialoom("export", "r.db", "--format", "personalens", "-o", "release", code=2).stderr
    assert "this run has 2 user models; choose one, such as 'user_model == \"offline/attentive\"'" in refused
    chosen = ["--where", "user_model == 'offline/generic'"]
    dialoom("export", "r.db", "--format", "personalens", *chosen, "-o", "release")
    dry = dialoom(*run, "-o", "other.db", "--dry-run").stdout
    assert "4 conversations" in dry and dry.count("  user ") == 2


def run_with(folder: Path, name: str, user: str, assistant: str, **options: Any) -> dialoom.Run:
    """Return a run of PersonaLens."""
    models = {"user": user, "assistant": assistant}
    chosen = {"users": "5", "setting": ("I",), "limit": 5, **options}
    return dialoom.play("personalens", path=folder / f"{name}.db", options=chosen, models=models)


def test_runs_with_different_users_are_not_compared(tmp_path: Path, dialoom: Command) -> None:
    first = run_with(tmp_path, "first", "offline/attentive", "offline/attentive")
    same = run_with(tmp_path, "same", "offline/attentive", "offline/generic")
    other = run_with(tmp_path, "other", "offline/generic", "offline/attentive")
    assert report(first, same)["differences"].rows, "only the assistant differs"

    refused = report(first, other)["differences"]
    assert not refused.rows
    assert "whose simulated users differ from those of user offline/attentive (user model)" in refused.warnings[0]
    allowed = report(first, other, allow_different_users=True)["differences"]
    assert allowed.rows and allowed.title.endswith("(with different users: user model)")
    three = report(first, same, other)
    assert {row[0] for row in three["differences"].rows} == {three.labels[1]}, "the comparable run is compared"

    worse = ["require", str(tmp_path / "other.db"), "--not-worse-than", str(tmp_path / "first.db")]
    output = dialoom(*worse, code=2).stderr
    assert "their simulated users differ (user model)" in output and "add --allow-different-users" in output
    passed = dialoom(*worse, "--allow-different-users", code=1).stdout
    assert "no significant loss of " in passed and "(with different users: user model): " in passed


def test_label_of_a_run_names_the_role_whose_model_differs(tmp_path: Path) -> None:
    """The tables of aloe-eval show the label in the column `model`, which is otherwise the assistant's model."""
    judges = ["offline/attentive", "offline/generic"]
    paths, options = [tmp_path / f"{number}.db" for number in (1, 2)], {"limit": 1, "rounds": 1}
    one, other = (
        play("aloe-eval", path=path, options=options, models={"judge": judge})
        for path, judge in zip(paths, judges, strict=True)
    )
    assert [row[0] for row in report(one, other)["alignment"].rows] == [f"judge {judge}" for judge in judges]


def test_other_user_prompts_and_personas_are_different_users(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts" / "personalens"
    prompts.mkdir(parents=True)
    shipped = (ROOT / "prompts" / "personalens" / "user.md").read_text()
    (prompts / "user.md").write_text(shipped + "\nBe brief.\n")
    first = run_with(tmp_path, "first", "offline/attentive", "offline/attentive")
    options = {"users": "5", "setting": ("I",), "limit": 5}
    path = tmp_path / "brief.db"
    brief = play(
        "personalens", path=path, options=options, models={"assistant": "offline/generic"}, prompts=prompts.parent
    )
    write_release(tmp_path / "release", users=5, tasks=[ALARM])
    people = run_with(
        tmp_path, "people", "offline/attentive", "offline/generic", users="all", profiles=tmp_path / "release"
    )
    for run, what in ((brief, "user prompt"), (people, "persona source")):
        (warning,) = report(first, run)["differences"].warnings
        assert f"({what})" in warning


async def repeating(_messages: list[dict[str, str]]) -> str:
    """Play a user who always says the same."""
    return "The parcel that I ordered last week has not arrived at my house yet, please look into it."


def test_faults_are_counted_by_user_model(tmp_path: Path) -> None:
    users = [f"python:{__name__}:{name}" for name in ("skilled", "repeating")]
    run = play(SUPPORT, path=tmp_path / "run.db", models={"user": [*users]}, sample=2)
    rows = rows_of(run, tmp_path / "run.jsonl")
    found = {tuple(row[:3]): row[3:] for row in run.report()["faults"].rows if row[0] == "user"}
    for user in users:
        faults = [
            [each["role"] == "user" and each["kind"] == "repetition" for each in row["faults"]]
            for row in rows
            if row["user_model"] == user
        ]
        if count := sum(map(sum, faults)):
            assert found.pop(("user", "repetition", user)) == [count, sum(map(any, faults)), sum(map(any, faults)) / 2]
    assert not any(kind == "repetition" for _, kind, _ in found)
