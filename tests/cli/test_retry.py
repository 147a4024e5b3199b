"""`dialoom retry` and `dialoom judge`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import dialoom as door
from dialoom.cli.setting_flags import RunCommand, read_settings
from dialoom.graphs import Estimate
from dialoom.graphs.tables.statistics import rank_correlation
from dialoom.runs.report.rater_agreement import krippendorff_alpha
from tests.conftest import Command, MadeOnce, read_jsonl
from tests.invented import ALARM, write_release


def exported(dialoom: Command, folder: Path) -> list[dict[str, Any]]:
    """Return the dialogues of `run.db`."""
    dialoom("export", "run.db", "-o", "run.jsonl")
    return read_jsonl(folder / "run.jsonl")


def status_of(dialoom: Command) -> dict[str, Any]:
    """Return the status of `run.db`."""
    return dict(json.loads(dialoom("status", "run.db", "--json").stdout))


def test_failed_scenarios_resume_from_the_failed_step(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "moody.py").write_text(
        "from pathlib import Path\n"
        "async def assistant(messages):\n"
        "    if len(messages) > 4 and not Path('calm').exists():\n"
        "        raise ValueError('not in the mood')\n"
        "    return 'fine'\n"
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:moody:assistant"]
    dialoom("run", "personalens", "--profiles", "release", *cast, "-o", "run.db", code=1)
    answered = status_of(dialoom)["calls"] - status_of(dialoom)["failed_calls"]
    exported = dialoom("export", "run.db", "--format", "personalens", "-o", "files")
    assert "0 files written" in exported.stdout and "2 of 2 scenarios left out: failed" in exported.stderr
    (tmp_path / "calm").touch()
    assert "2 failed scenarios are retried" in dialoom("retry", "run.db").stdout
    status = status_of(dialoom)
    assert status["scenarios"]["done"] == 2
    assert status["calls"] - status["failed_calls"] == 24, "as many as without a failure"
    assert answered < 24


def test_reply_that_failed_a_scenario_is_requested_again(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "mute.py").write_text(
        "from pathlib import Path\n"
        "async def assistant(messages):\n"
        "    return 'fine' if len(messages) < 4 or Path('calm').exists() else ''\n"
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:mute:assistant"]
    dialoom("run", "personalens", "--profiles", "release", *cast, "-o", "run.db", code=1)
    before = status_of(dialoom)
    (tmp_path / "calm").touch()
    dialoom("retry", "run.db", "--failed")
    after = status_of(dialoom)
    assert after["scenarios"]["done"] == 2
    assert after["roles"]["user"]["calls"] - before["roles"]["user"]["calls"] == 2, "only the last line of each is new"


def test_only_unparsed_judgements_are_repeated(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "vague.py").write_text(
        """
from pathlib import Path
from players import judge as clear

async def judge(messages):
    if Path('mended').exists():
        return (await clear(messages)).replace('3', '1')
    return 'it depends' if 'this goal' in messages[-1]['content'] or len(messages) > 2 else await clear(messages)
"""
    )
    cast = [*players[:4], "--model", "judge=python:vague:judge"]
    dialoom("run", "personalens", "--profiles", "release", *cast, "-o", "run.db")
    before = [line["judgements"] for line in exported(dialoom, tmp_path)]
    unparsed = [[each for each in judgements if each["status"] == "unparsed"] for judgements in before]
    assert all(unparsed)
    assert f"judgements 'run': {sum(map(len, unparsed))} are unparsed" in dialoom("status", "run.db").stdout
    output = dialoom("retry", "run.db", "--unparsed").stdout
    assert "scenarios with unparsed judgements in 'run': 2;" in output
    assert "unparsed judgements, which have no score: " in output, "the judge has not changed"
    (tmp_path / "mended").touch()
    dialoom("retry", "run.db", "--unparsed")
    after = [line["judgements"] for line in exported(dialoom, tmp_path)]
    for old, new in zip(before, after, strict=True):
        for one, other in zip(old, new, strict=True):
            if one["status"] == "unparsed":
                assert (other["metric"], other["target"], other["status"]) == (one["metric"], one["target"], "ok")
            else:
                assert other == one
    assert "unparsed judgements in 'run': 0;" in dialoom("retry", "run.db", "--unparsed").stdout


VAGUE = """
from pathlib import Path
from players import judge as clear

async def judge(messages):
    vague = 'this goal' in messages[-1]['content'] or len(messages) > 2
    return 'it depends' if vague and not Path('mended').exists() else await clear(messages)
"""
"""A judge with unparsed verdicts until the file `mended` exists."""


@pytest.mark.parametrize("judging", ["run", "second"])
def test_one_call_for_each_unparsed_judgement(
    dialoom: Command, players: list[str], tmp_path: Path, judging: str
) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "vague.py").write_text(VAGUE)
    vague = ["--model", "judge=python:vague:judge"]
    judge = vague if judging == "run" else players[4:]
    dialoom("run", "personalens", "--profiles", "release", *players[:4], *judge, "-o", "run.db")
    if judging == "second":
        dialoom("judge", "run.db", *vague, "--name", judging)
    calls = status_of(dialoom)["calls"]
    (tmp_path / "mended").touch()
    retry = ["retry", "run.db", "--unparsed", "--judging", judging]
    assert "2 scenarios" in dialoom(*retry, "--max-calls", calls + 1, code=3).stdout
    assert status_of(dialoom)["calls"] == calls + 1
    dialoom(*retry, "--max-calls", "none")
    assert status_of(dialoom)["calls"] == calls + 2, "two dialogues with six judgements each, of which one was unparsed"
    dialoom("export", "run.db", "--judging", judging, "-o", "run.jsonl")
    judgements = [each for line in read_jsonl(tmp_path / "run.jsonl") for each in line["judgements"]]
    assert [each["status"] for each in judgements] == ["ok"] * 12


def test_judgements_made_while_playing_are_not_repeated(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "vague.py").write_text(
        """
from players import judge as clear

async def judge(messages):
    return await clear(messages) if "Line 2" in str(messages) else "it depends"
"""
    )
    cast = [*players[:4], "--model", "judge=python:vague:judge"]
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", "--turn-scores", *cast]
    dialoom(*plan, "-o", "run.db")
    calls = status_of(dialoom)["calls"]
    statuses = {each["turn"] is None: each["status"] for each in exported(dialoom, tmp_path)[0]["judgements"][:-1]}
    assert statuses == {True: "ok", False: "unparsed"}
    output = dialoom("retry", "run.db", "--unparsed").stdout
    assert "--scenario ID" in output
    assert status_of(dialoom)["calls"] == calls


def test_scenario_is_replayed_with_new_replies(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "counting.py").write_text(
        "from pathlib import Path\n"
        "async def assistant(messages):\n"
        "    return 'second time' if Path('again').exists() else 'first time'\n"
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:counting:assistant"]
    dialoom("run", "personalens", "--profiles", "release", *cast, "-o", "run.db")
    before, calls = exported(dialoom, tmp_path), status_of(dialoom)["calls"]
    (tmp_path / "again").touch()
    done = dialoom("retry", "run.db", "--scenario", 1, "--max-calls", calls + 4, code=3)
    assert "scenarios to be played again: 1;" in done.stdout
    dialoom("resume", "run.db", "--max-calls", "none")
    after = exported(dialoom, tmp_path)
    assert {message["content"] for message in after[0]["messages"][1::2]} == {"second time"}
    assert after[1] == before[1]
    assert status_of(dialoom)["calls"] == calls + len(after[0]["messages"]) + len(after[0]["judgements"])
    assert "has no scenario" in dialoom("retry", "run.db", "--scenario", "nobody", code=2).stderr


_OWN = """
from dialoom.graphs import WithJudging
from dialoom.runs.configuration.recipes import load_recipe

class Own(type(load_recipe("aloe")), WithJudging):
    name = "own"

    def judging(self):
        return None

RECIPE = Own()
"""


def test_retry_of_a_recipe_without_judging_is_refused(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(_OWN)
    dialoom("run", "own.py:RECIPE", "--limit", 1, "--rounds", 1, "--verify-pairs", "-o", "run.db")
    refused = dialoom("retry", "run.db", "--unparsed", code=2)
    assert "recipe 'own' judges only while it plays, so its judgements cannot be repeated alone" in refused.stderr
    assert "--scenario ID" in refused.stderr


CAST = """
import json

async def user(messages):
    return "Message %d. TERMINATE" % len(messages) if len(messages) > 2 else "An alarm, please."

async def assistant(messages):
    person = next((part for part in str(messages).split() if part.isdigit()), "1")
    return "Set. " + "So it is. " * (len(str(messages)) % 7)

def says(verdict, score):
    async def judge(messages):
        if "Was this goal reached" in str(messages):
            return json.dumps({"verdict": verdict})
        if "How coherent are" in str(messages):
            return "none to speak of"
        return json.dumps({"score": score})
    return judge

strict, mild, fond = says(True, 2), says(False, 3), says(True, 4)
times = []

async def fickle(messages):
    times.append(messages)
    return await (strict if len(times) <= 3 * 8 else fond)(messages)

async def anyone(messages):
    return '{"score": 3, "verdict": true}'
"""


def _judged(dialoom: Command, folder: Path) -> None:
    """Play the dialogues of three people, judged by `strict` and then by `mild`."""
    write_release(folder / "release", users=3, tasks=[ALARM])
    (folder / "jury.py").write_text(CAST)
    cast = [f"--model={role}=python:jury:{role}" for role in ("user", "assistant")]
    dialoom("run", "personalens", "--profiles", "release", *cast, "--model", "judge=python:jury:strict", "-o", "r.db")
    dialoom("judge", "r.db", "--model", "judge=python:jury:mild")


def _panel(dialoom: Command) -> dict[str, Any]:
    """Return the panel's judgements of the first dialogue, by metric and target."""
    shown = json.loads(dialoom("show", "r.db", 1, "--judging", "panel", "--json").stdout)
    return {f"{each['metric']}.{each['target']}": each for each in shown["judgements"]}


def test_two_judges_form_a_panel_with_medians_and_ties(dialoom: Command, made_once: MadeOnce) -> None:
    folder = made_once(_judged)
    judgements = _panel(dialoom)
    assert judgements["personalization.assistant"]["score"] == 2.5
    assert judgements["personalization.assistant"]["explanation"] == "run: 2; python:jury:mild: 3"
    assert (judgements["task_completion.assistant"]["score"], judgements["task_completion.assistant"]["status"]) == (
        None,
        "tied",
    )
    assert judgements["coherence.user"]["status"] == "unparsed"
    assert "2.5" in dialoom("show", "r.db", "--judging", "panel").stdout
    text = " ".join(dialoom("report", "r.db", "--table", "scores", "--table", "judgements").stdout.split())
    assert text.count("(judgements 'panel')") == 2 and "setting metric ok unparsed error tied" in text
    for command, message in (
        (
            ("judge", "r.db", "--model", "offline/generic", "--name", "panel"),
            "--name 'panel' is reserved for the panel",
        ),
        (("retry", "r.db", "--unparsed", "--judging", "panel"), "'panel': a panel only combines its judges' sets"),
        (
            ("agree", "r.db", "--sample", 2, "-o", "s.csv", "--judging", "panel"),
            "agreement is computed with a single judge",
        ),
    ):
        assert message in dialoom(*command, code=2).stderr
    assert [each.name for each in door.open_run(folder / "r.db").judgement_sets] == ["run", "python:jury:mild"]


def test_run_with_several_judges_from_the_start(dialoom: Command, made_once: MadeOnce) -> None:
    folder = made_once(_judged)
    cast = [f"--model={role}=python:jury:{role}" for role in ("user", "assistant")]
    judges = ["--model", "judge=python:jury:strict", "--model", "judge=python:jury:mild"]
    calls = json.loads(dialoom("status", "r.db", "--json").stdout)["calls"]
    run = ["run", "personalens", "--profiles", "release", *cast, *judges]
    stopped = dialoom(*run, "--max-calls", calls - 9, "-o", "two.db", code=3)
    assert "dialoom resume two.db" in stopped.stdout + stopped.stderr
    dialoom("resume", "two.db", "--max-calls", "none")
    one, two = (door.open_run(folder / name) for name in ("r.db", "two.db"))
    assert [each.name for each in two.judgement_sets] == [each.name for each in one.judgement_sets]
    for judging in ("run", "python:jury:mild", "panel"):
        judgements = [[each.outcome.judgements for each in run.episodes(judging)] for run in (one, two)]
        assert judgements[0] == judgements[1]
    (folder / "two.yaml").write_text(dialoom("status", "two.db", "--config").stdout)
    given: dict[str, Any] = {"config": folder / "two.yaml", "out": folder / "x.db"}
    for flags, found in (([], ["strict", "mild"]), (["judge=python:jury:fond"], "fond")):
        with read_settings(RunCommand, {**given, "model": flags}, two.recipe) as settings:
            pass
        named = [f"python:jury:{name}" for name in found] if isinstance(found, list) else f"python:jury:{found}"
        assert (settings["models"] or {})["judge"] == named, "the printed settings name both judges; flags replace them"
    unknown = ["--model", "judge=python:jury:mild", "--model", "judge=python:jury:nobody"]
    assert "nobody" in dialoom("run", "personalens", *unknown, "-o", "x.db", code=2).stderr
    doubled = ["--model", "assistant=offline/generic", "--model", "assistant=offline/attentive", "-o", "x.db"]
    assert "only one model can play 'assistant'" in dialoom("run", "personalens", *doubled, code=2).stderr
    every = ["--model", "offline/generic", "--model", "offline/attentive", "-o", "x.db"]
    message = "--model must name one model for all roles, got offline/generic, offline/attentive"
    assert message in dialoom("run", "personalens", *every, code=2).stderr
    for recipe, role, message in (
        ("personalens", "assistant", "only one model can play 'assistant'"),
        ("persona-pool", "writer", "does not judge"),
    ):
        with pytest.raises(door.DialoomError, match=message):
            door.plan(recipe, path=folder / "x.db", models={role: ["offline/generic", "offline/attentive"]})


def test_judges_are_called_in_turn_and_repeatedly(dialoom: Command, made_once: MadeOnce) -> None:
    folder = made_once(_judged)
    judging = ["judge", "r.db", "--model", "judge=python:jury:fickle", "--model", "judge=python:jury:fond"]
    done = dialoom(*judging, "--repeat", 2)
    assert done.stdout.count("3 done, 0 failed") == 4
    run = door.open_run(folder / "r.db")
    names = ["fickle", "fond", "fickle #2", "fond #2"]
    assert [each.name for each in run.judgement_sets][2:] == [f"python:jury:{name}" for name in names]
    judgements = _panel(dialoom)
    assert judgements["personalization.assistant"]["score"] == 2.5, (
        "the median of 2, 3, 2 and 4, without the repetitions"
    )
    assert judgements["task_completion.assistant"]["score"] is True
    report = run.report()
    judges = {row[0]: row for row in report["judges"].rows}
    assert judges["personalization (assistant)"][1:3] == [4, 3]
    assert judges["personalization (assistant)"][3] == krippendorff_alpha([[2, 3, 2, 4]] * 3)
    own = {(row[0], row[2]): row for row in report["repeats"].rows}
    fickle, fond = (own[f"python:jury:{name}", "personalization (assistant)"] for name in ("fickle", "fond"))
    assert (fickle[1], fickle[-1].mean, fond[-1].mean) == (2, 0.0, 1.0)  # type: ignore[union-attr]
    assert fond[-2] is None, "constant scores have no chance-corrected agreement"
    pair = report["compared-run-python-jury-mild"].rows[0]
    assert pair[-1] is None, "two constant judges have no kappa"
    refused = dialoom(*judging, "--name", "both", code=2).stderr
    assert "--name 'both': the sets of several judges are named after their models" in refused
    with pytest.raises(door.DialoomError, match="repeat must be a whole number of at least 1, got 0"):
        run.judge("offline/generic", repeat=0)


TREE_JUDGES = """
import json, random

def named(seed):
    async def judge(messages):
        better = random.Random(f"{seed} {messages}").choice(["first", "second"])
        return json.dumps({"explanation": "so", "better": better})
    return judge

one, other = named(1), named(2)
"""


def test_panel_judges_each_branch_of_a_tree(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "pairs.py").write_text(TREE_JUDGES)
    judges = [f"--model=judge=python:pairs:{name}" for name in ("one", "other")]
    dialoom("run", "aloe", "--limit", 3, "--rounds", 3, "--branching", 2, "--verify-pairs", *judges, "-o", "tree.db")
    run = door.open_run(tmp_path / "tree.db")
    sets = [[each.outcome.judgements for each in run.episodes(name)] for name in ("run", "python:pairs:other", "panel")]
    equal = 0
    for one, other, panel in zip(*sets, strict=True):
        assert len(one) == len(other) == len(panel) == 7
        for first, second, found in zip(one, other, panel, strict=True):
            equal += first.score is second.score
            assert found.score is (first.score if first.score is second.score else None)
    report = run.report()
    (agreement,), (compared,) = report["judges"].rows, report["compared-run-python-pairs-other"].rows
    for share in (agreement[-2], compared[5]):
        assert isinstance(share, Estimate) and share.n == 21 and share.mean == pytest.approx(equal / 21)
    both = sum(each.score is True for judgements in sets[2] for each in judgements)
    (row,) = run.export("dpo", tmp_path / "dpo.jsonl", judging="panel", options={"verified_only": True}).values()
    assert row == both > 0


def test_panel_says_which_scores_are_by_fewer_judges_and_which_judge_is_unhealthy(
    dialoom: Command, tmp_path: Path
) -> None:
    async def sure(messages: list[dict[str, str]]) -> str:
        assert messages
        return '{"explanation": "it is done", "verdict": true}'

    async def unsure(messages: list[dict[str, str]]) -> str:
        return '{"explanation": "it is not", "verdict": false}' if "person 1" in str(messages) else "Well."

    run = door.simulate(
        people=[f"person {number}" for number in range(1, 7)],
        assistant="offline/placeholder",
        judges=[door.Judge("done", rubric="It is done for {{ person.description }}.")],
        judge=sure,
        path=tmp_path / "run.db",
    ).judge(unsure, name="second")
    report = run.report(judging="panel")
    table = report["scores"]
    failed = report["judge-health"].columns.index("failed")
    assert [row[failed] for row in report["judge-health"].rows] == ["the same score every time", "83.3 % unparsed"]
    shown = dialoom("show", "run.db", 2, "--judging", "panel").stdout
    assert "The judge of done (assistant), second fails a check: 83.3 % unparsed" in shown.replace("\n", " ")
    assert "Scored by fewer than all 2 judges of the panel: done (assistant) 5 of 6." in table.notes
    assert any("The judge of done (assistant), second fails a check: 83.3 % unparsed" in note for note in table.notes)
    (checked,) = run.require("done >= 10%", judging="panel", allow=["offline", "missing"])
    assert checked.reasons == ("unhealthy: 83.3 % unparsed",)


def test_every_table_warns_of_a_model_that_judges_its_own_text(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "jury.py").write_text(CAST)
    roles = [f"--model={role}=python:jury:anyone" for role in ("assistant", "judge")]
    dialoom("run", "personalens", "--limit", 1, "--turn-limit", 1, *roles, "-o", "own.db")
    tables = door.open_run(tmp_path / "own.db").report().tables
    warning = "python:jury:anyone judges text that it wrote itself, and models are known to favour their own text."
    assert tables and all(any(note.startswith(warning) for note in table.notes) for table in tables)


def test_krippendorffs_alpha_of_a_published_example() -> None:
    """Krippendorff's example of three observers with missing values gives 0.811 with the interval metric."""
    things = [[2, 2], [1, 1], [3, 3], [3, 3, 4], [4, 4, 4], [1, 3], [2, 2], [1, 1], [1, 1], [3, 3], [3, 3], [3, 4]]
    found = krippendorff_alpha([[*map(float, scores)] for scores in things])
    assert found is not None and found.mean == pytest.approx(0.811, abs=0.0005)
    assert krippendorff_alpha([[1.0, 1.0]] * 4) is None and krippendorff_alpha([]) is None


def test_alpha_interval_is_that_of_resampled_items() -> None:
    things = [[2.0, 2.0], [1.0, 1.0], [3.0, 4.0], [4.0, 4.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
    few, many = krippendorff_alpha(things), krippendorff_alpha(things * 20)
    assert few is not None and few.low is not None and few.high is not None and few.n == 6
    assert many is not None and many.low is not None and many.high is not None
    assert few.low < many.low < many.mean < many.high < few.high <= 1
    chance = random.Random(7)
    again = [krippendorff_alpha([chance.choice(things) for _ in things]) for _ in range(150)]
    means = sorted(each.mean for each in again if each is not None)
    assert few.low == pytest.approx(means[len(means) // 40], abs=0.2)
    assert few.high == pytest.approx(means[-1 - len(means) // 40], abs=0.2)
    assert (cut := krippendorff_alpha(things[:4])) is not None and cut.low is None


def test_alpha_of_people_with_the_same_scores_in_all_scenarios_has_the_interval_of_people() -> None:
    """Repeated scenarios of a person say nothing new, so that they must not narrow the interval."""
    things = [[2.0, 2.0], [1.0, 1.0], [3.0, 4.0], [4.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
    once, repeated, apart = (
        krippendorff_alpha(things),
        krippendorff_alpha(things * 20, [*range(6)] * 20),
        krippendorff_alpha(things * 20),
    )
    assert once and repeated and apart and repeated.low is not None and apart.low is not None
    assert repeated.n == 120
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high), abs=0.2)
    assert repeated.low < apart.low - 0.5
    assert (few := krippendorff_alpha(things * 20, [*range(4)] * 30)) is not None and few.low is None


def test_panel_counts_only_scores_of_its_judges(tmp_path: Path) -> None:
    async def sure(messages: list[dict[str, str]]) -> str:
        return f'{{"explanation": "it is done after {len(messages)}", "verdict": true}}'

    run = door.simulate(
        people=[f"person {number}" for number in range(1, 7)],
        assistant="offline/placeholder",
        judges=[door.Judge("done", rubric="It is done for {{ person.description }}.")],
        checks=[door.Check("spoken", lambda talk: bool(talk.messages))],
        judge=sure,
        path=tmp_path / "run.db",
    ).judge(sure, name="second", sample=3)
    notes = [note for note in run.report(judging="panel")["scores"].notes if note.startswith("Scored by fewer")]
    assert notes == ["Scored by fewer than all 2 judges of the panel: done (assistant) 3 of 6."]


def test_rank_correlation_by_hand() -> None:
    """The ranks are 1, 2.5, 2.5, 4 and 1, 3, 2, 4; an interval needs ten pairs, and constant values have no tau."""
    found = rank_correlation([(1, 10), (2, 30), (2, 20), (3, 40)])
    assert found is not None and found.mean == pytest.approx(4.5 / 22.5**0.5) and found.low is None
    many = rank_correlation([(place, place % 7) for place in range(40)])
    assert many is not None and many.low is not None and many.high is not None
    assert -1 < many.low < many.mean < many.high < 1
    assert rank_correlation([(1, 1), (2, 1), (3, 1)]) is None
