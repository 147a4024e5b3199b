"""`dialoom retry`: what did not come out well is tried again, and nothing else is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, lines_of
from tests.invented import write_release


def exported(dialoom: Command, folder: Path) -> list[dict[str, Any]]:
    """The dialogues of `run.db`."""
    dialoom("export", "run.db", "-o", "run.jsonl")
    return lines_of(folder / "run.jsonl")


def status_of(dialoom: Command) -> dict[str, Any]:
    """What `status` says of `run.db`, for programs."""
    return dict(json.loads(dialoom("status", "run.db", "--json").stdout))


def test_failed_scenarios_go_on_from_where_they_failed(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """No call that was answered is made again."""
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
    (tmp_path / "calm").touch()
    assert "2 failed scenarios are tried again" in dialoom("retry", "run.db").stdout
    status = status_of(dialoom)
    assert status["scenarios"]["done"] == 2
    assert status["calls"] - status["failed_calls"] == 24, "as many as if nothing had failed"
    assert answered < 24


def test_a_reply_that_a_scenario_failed_by_is_asked_for_anew(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """The ledger holds it, and would give the same again; what came before it is kept."""
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
    assert after["roles"]["user"]["calls"] - before["roles"]["user"]["calls"] == 2, "only the last line of each"


def test_unparsed_judgements_are_made_again_and_no_others(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Other replies are asked for; what had a score keeps it, and its place."""
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
    said = dialoom("retry", "run.db", "--unparsed").stdout
    assert "scenarios with unparsed judgements in 'run': 2;" in said
    assert "are unparsed still" in said, "the judge is as vague as before"
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
"""A judge who cannot say whether a task is done, until the file is there."""


@pytest.mark.parametrize("judging", ["run", "second"])
def test_only_what_is_unparsed_is_asked_for_again(
    dialoom: Command, players: list[str], tmp_path: Path, judging: str
) -> None:
    """One call for each such judgement, in the run's own set and in a later one; a resume asks for no more of them."""
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
    assert status_of(dialoom)["calls"] == calls + 2, (
        "each of the two dialogues had six judgements, one of them unparsed"
    )
    dialoom("export", "run.db", "--judging", judging, "-o", "run.jsonl")
    judgements = [each for line in lines_of(tmp_path / "run.jsonl") for each in line["judgements"]]
    assert [each["status"] for each in judgements] == ["ok"] * 12


def test_what_is_judged_only_while_it_plays_is_not_asked_for_in_vain(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Scores by turn are unparsed, those of the whole dialogue are not: no call is made, and the way out is named."""
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
    said = dialoom("retry", "run.db", "--unparsed").stdout
    assert "--scenario ID" in said
    assert status_of(dialoom)["calls"] == calls


def test_a_scenario_can_be_played_anew(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """With replies of its own, from its beginning; the others stay, and its earlier calls stay in the books."""
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
    said = dialoom("retry", "run.db", "--scenario", 1, "--max-calls", calls + 4, code=3)
    assert "scenarios played anew: 1;" in said.stdout
    dialoom("resume", "run.db", "--max-calls", "none")
    after = exported(dialoom, tmp_path)
    assert {message["content"] for message in after[0]["messages"][1::2]} == {"second time"}
    assert after[1] == before[1]
    assert status_of(dialoom)["calls"] == calls + len(after[0]["messages"]) + len(after[0]["judgements"])
    assert "has no scenario" in dialoom("retry", "run.db", "--scenario", "nobody", code=2).stderr


_OWN = """
from dialoom.graphs.aloe import Aloe
from dialoom.graphs.capabilities import WithJudging

class Own(Aloe, WithJudging):
    name = "own"

    def judging(self):
        return None

RECIPE = Own()
"""


def test_a_recipe_without_judging_says_so(dialoom: Command, tmp_path: Path) -> None:
    """And what can be done instead."""
    (tmp_path / "own.py").write_text(_OWN)
    dialoom("run", "own.py:RECIPE", "--limit", 1, "--rounds", 1, "--verify-pairs", "-o", "run.db")
    refused = dialoom("retry", "run.db", "--unparsed", code=2)
    assert "recipe 'own' has no judging of its own" in refused.stderr
    assert "--scenario ID" in refused.stderr
