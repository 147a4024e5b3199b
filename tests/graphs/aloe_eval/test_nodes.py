"""The benchmark's conversations: who is shown what, and what is judged."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conftest import Command, lines_of
from tests.graphs.aloe.players import cast
from tests.processes import Started
from tests.runs.test_kill_anywhere import KILLER

ROLES = ("user", "assistant", "judge")


def test_each_round_is_judged_and_the_assistant_sees_nothing_but_the_conversation(
    dialoom: Command, people: Path
) -> None:
    """No system message, no persona; ten rounds, ten scores."""
    dialoom("run", "aloe-eval", "--personas", people, *cast(*ROLES), "-o", "eval.db")
    dialoom("export", "eval.db", "-o", "eval.jsonl")
    for line in lines_of(people.parent / "eval.jsonl"):
        assert [message["role"] for message in line["messages"]] == ["user", "assistant"] * 10
        assert [judgement["turn"] for judgement in line["judgements"]] == list(range(1, 11))
        assert all(judgement["score"] in range(1, 6) for judgement in line["judgements"])
    with closing(sqlite3.connect(people.parent / "eval.db")) as connection:
        texts = dict(connection.execute("SELECT id, content FROM texts"))
        requests = [
            json.loads(row[0]) for row in connection.execute("SELECT messages FROM calls WHERE role = 'assistant'")
        ]
        steps = connection.execute("SELECT node, step FROM calls WHERE scenario = 0 ORDER BY step, node").fetchall()
    assert len(requests) == 30
    for request in requests:
        assert [role for role, _ in request] == (["user", "assistant"] * 10)[: len(request)]
        assert not any("hens" in texts[id_] or "<" in texts[id_] for _, id_ in request)
    assert steps[:6] == [("user", 1), ("assistant", 2), ("judge", 3), ("user", 3), ("assistant", 4), ("judge", 5)]


def test_a_score_that_is_no_number_is_unparsed(dialoom: Command, people: Path) -> None:
    """A judge that answers "five" is asked once more and then counted, not guessed."""
    players = cast("user", "assistant", judge="five")
    dialoom("run", "aloe-eval", "--personas", people, "--rounds", "2", *players, "-o", "eval.db")
    dialoom("export", "eval.db", "-o", "eval.jsonl")
    judgements = [judgement for line in lines_of(people.parent / "eval.jsonl") for judgement in line["judgements"]]
    assert {(judgement["status"], judgement["score"]) for judgement in judgements} == {("unparsed", None)}
    assert json.loads(dialoom("status", "eval.db", "--json").stdout)["roles"]["judge"]["calls"] == 12
    dialoom("report", "eval.db", "-o", "report")
    rows = (people.parent / "report" / "judgements.csv").read_text().splitlines()
    assert rows[0].split(",")[1:3] == ["ok", "unparsed"] and rows[1].split(",")[1:3] == ["0", "6"]


def test_people_are_drawn_with_the_seed_and_not_from_what_was_trained_on(dialoom: Command, people: Path) -> None:
    """Equal seeds draw alike; who shares a profile with the training set is left out, and counted."""
    trained = people.parent / "trained.jsonl"
    trained.write_text(people.read_text().splitlines()[0] + "\n")
    options = ["--personas", people, "--rounds", "1", *cast(*ROLES)]
    drawn = []
    for name in ("one", "two"):
        dialoom("run", "aloe-eval", *options, "--sample", "2", "--seed", "4", "-o", f"{name}.db")
        drawn.append(dialoom("show", f"{name}.db").stdout)
    assert drawn[0] == drawn[1]
    told = dialoom("run", "aloe-eval", *options, "--unlike", trained, "-o", "other.db").stdout
    assert "1 personas left out" in told and "planned 2 scenarios" in told
    dialoom("run", "aloe-eval", *options, "--unlike", trained, "--limit", "1", "-o", "first.db")
    assert dialoom("show", "first.db").stdout.splitlines()[1:] == dialoom("show", "other.db").stdout.splitlines()[1:2]


def test_killed_and_resumed_the_benchmark_is_the_same(dialoom: Command, people: Path) -> None:
    """Also where a judge and the next message were under way side by side."""
    plan = ["run", "aloe-eval", "--personas", str(people), *cast(*ROLES)]
    dialoom(*plan, "-o", "whole.db")
    dialoom("export", "whole.db", "-o", "whole.jsonl")
    for number, (part, count) in enumerate(
        (("INTO kept_calls", 9), ("INTO checkpoints", 14), ("INTO pending_writes", 3))
    ):
        command = ["resume", "run.db"] if number else [*plan, "-o", "run.db"]
        with Started(people.parent, part, count, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode in (-9, 0), errors
            assert number or process.returncode == -9
    dialoom("resume", "run.db")
    dialoom("export", "run.db", "-o", "run.jsonl")
    assert (people.parent / "run.jsonl").read_bytes() == (people.parent / "whole.jsonl").read_bytes()


def test_judged_again_by_another_judge(dialoom: Command, people: Path) -> None:
    """The finished conversations, round by round, as a second set."""
    dialoom("run", "aloe-eval", "--personas", people, "--rounds", "3", *cast(*ROLES), "-o", "eval.db")
    dialoom("judge", "eval.db", "--model", "judge=python:players:five", "--name", "second")
    shown = dialoom("show", "eval.db", "1", "--judging", "second").stdout
    assert shown.count("unparsed") == 3


def exported(dialoom: Command, folder: Path) -> list[dict[str, Any]]:
    """The dialogues of `run.db`."""
    dialoom("export", "run.db", "-o", "run.jsonl")
    return lines_of(folder / "run.jsonl")


def calls_of(dialoom: Command) -> int:
    """How many calls `run.db` holds."""
    return int(json.loads(dialoom("status", "run.db", "--json").stdout)["calls"])


def test_rounds_that_were_judged_are_not_judged_again(dialoom: Command, people: Path) -> None:
    """The benchmark's judge hears of the second round of each conversation only."""
    folder = people.parent
    (folder / "vague.py").write_text(
        """
from pathlib import Path
from players import judge as clear, mark

async def assistant(messages):
    return f"Answer {len(messages)}."

async def judge(messages):
    vague = "Answer 3." in str(messages) and not Path('mended').exists()
    return 'it depends' if vague else await clear(messages)
"""
    )
    players = [*cast("user"), "--model", "assistant=python:vague:assistant", "--model", "judge=python:vague:judge"]
    dialoom("run", "aloe-eval", "--personas", people, "--rounds", 3, *players, "-o", "run.db")
    before, calls = exported(dialoom, folder), calls_of(dialoom)
    assert [[each["status"] for each in line["judgements"]] for line in before] == [["ok", "unparsed", "ok"]] * 3
    (folder / "mended").touch()
    dialoom("retry", "run.db", "--unparsed")
    assert calls_of(dialoom) == calls + 3
    for old, new in zip(before, exported(dialoom, folder), strict=True):
        assert [each["status"] for each in new["judgements"]] == ["ok"] * 3
        assert [new["judgements"][turn] for turn in (0, 2)] == [old["judgements"][turn] for turn in (0, 2)]
