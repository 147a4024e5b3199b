"""Budgets and cost."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from dialoom import open_run
from dialoom.runs.gateway_setup import RunLimits
from dialoom.runs.report.cost import cost_table
from dialoom.settings import Budget, LimitSettings, Price, build_settings_model, validate_settings
from tests.conftest import Command, read_jsonl
from tests.invented import write_release
from tests.processes import TIMEOUT_SECONDS, CommandProcess
from tests.server import Answer, ChatServer, completion, ended, serving

KEY = {"OPENAI_API_KEY": "sk-test"}
"""The environment variables of runs that use the server."""


def hashed_reply(body: dict[str, Any], number: int) -> Answer:  # noqa: ARG001
    """Return a reply with a hash of the messages; the user's fourth reply ends the dialogue."""
    words = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    replies = sum(message["role"] == "assistant" for message in body["messages"])
    return completion(words + (" TERMINATE" if body["model"] == "user" and replies >= 3 else ""))


def server_cast(server: ChatServer) -> list[str]:
    """Return the arguments for a user and an assistant that the server plays."""
    cast = ["--model", "user=openai/user", "--model", "assistant=openai/assistant", "--no-judge"]
    return [*cast, "--api-base", server.url]


def status_of(dialoom: Command, run: str) -> dict[str, Any]:
    """Return the output of `status --json`."""
    return dict(json.loads(dialoom("status", run, "--json").stdout))


def exported(dialoom: Command, folder: Path, run: str) -> list[dict[str, Any]]:
    """Return a run's exported dialogues."""
    dialoom("export", run, "-o", f"{run}.jsonl")
    return read_jsonl(folder / f"{run}.jsonl")


def test_calls_never_exceed_the_budget_and_a_higher_one_continues(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=4)
    with serving(hashed_reply) as server:
        plan = ["run", "personalens", "--profiles", "release", *server_cast(server), "--concurrency", 8]
        dialoom(*plan, "-o", "whole.db", variables=KEY)
        needed = len(server.requests)
        server.requests.clear()
        stopped = dialoom(*plan, "-o", "run.db", "--max-calls", 11, code=3, variables=KEY)
        assert len(server.requests) == 11
        assert "--max-calls 11 is used up" in stopped.stdout
        assert "dialoom resume run.db --concurrency 8 --max-calls MORE" in stopped.stdout
        status = status_of(dialoom, "run.db")
        assert (status["calls"], status["unanswered_calls"], status["scenarios"]["failed"]) == (11, 0, 0)
        assert status["limits"]["max_calls"] == 11
        assert "continue with: dialoom resume run.db --max-calls MORE\n" in dialoom("status", "run.db").stdout
        dialoom("resume", "run.db", code=3, variables=KEY)
        assert len(server.requests) == 11, "resume keeps the budget that was given last"
        dialoom("resume", "run.db", "--max-calls", "none", variables=KEY)
        assert len(server.requests) == needed, "no call was repeated"
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")


def test_ledger_is_right_after_sigkill(dialoom: Command, tmp_path: Path) -> None:
    asked_enough, is_killed = threading.Event(), threading.Event()

    def answer(body: dict[str, Any], number: int) -> Answer:
        if number >= 20:
            asked_enough.set()
            is_killed.wait(TIMEOUT_SECONDS)
        return hashed_reply(body, number)

    write_release(tmp_path / "release", users=6)
    with serving(answer) as server:
        plan = ["run", "personalens", "--profiles", "release", *server_cast(server), "--concurrency", 6]
        with CommandProcess(
            tmp_path, *plan, "-o", "run.db", "--max-calls", 45, environment={**os.environ, **KEY}
        ) as process:
            asked_enough.wait(TIMEOUT_SECONDS)
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL, "it had not ended by itself"
        is_killed.set()
        dialoom("resume", "run.db", code=3, variables=KEY)
        status = status_of(dialoom, "run.db")
        assert len(server.requests) <= 45
        assert status["calls"] + status["unanswered_calls"] == 45
        assert status["counted"]["calls"] == 45


def test_budget_used_up_amid_judgements_changes_no_dialogue(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    write_release(tmp_path / "release", users=2)
    plan = ["run", "personalens", "--profiles", "release", *players]
    dialoom(*plan, "-o", "whole.db")
    dialoom(*plan, "-o", "run.db", "--max-calls", 8, code=3)
    for bound in (22, 31, 43):
        dialoom("resume", "run.db", "--max-calls", bound, code=3)
    dialoom("resume", "run.db", "--max-calls", 48)
    status = status_of(dialoom, "run.db")
    assert (status["calls"], status["unanswered_calls"]) == (48, 0)
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")


def test_tokens_and_cost_are_limited(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=4)
    with serving(hashed_reply) as server:
        plan = ["run", "personalens", "--profiles", "release", *server_cast(server)]
        stopped = dialoom(*plan, "-o", "tokens.db", "--max-tokens", 1500, code=3, variables=KEY)
        assert "--max-tokens 1500 is used up" in stopped.stdout
        status = status_of(dialoom, "tokens.db")
        assert 0 < status["counted"]["tokens"] == 15 * status["calls"] <= 1500
        prices = ["--price", "openai/user=1000,2000", "--price", "openai/assistant=1000,2000"]
        stopped = dialoom(*plan, "-o", "cost.db", *prices, "--max-cost", 2, code=3, variables=KEY)
        assert "--max-cost 2 is used up" in stopped.stdout
        status = status_of(dialoom, "cost.db")
        assert 0 < status["cost"] <= 2
        assert abs(status["cost"] - status["calls"] * 0.02) < 1e-9, "ten tokens in, five out, at the stated price"
        dialoom("resume", "cost.db", "--max-cost", "none", variables=KEY)
        assert status_of(dialoom, "cost.db")["limits"]["prices"] == {
            model: {"input": 1000, "output": 2000, "cached_input": None}
            for model in ("openai/user", "openai/assistant")
        }


def test_calls_made_before_a_price_was_stated_count_for_the_cost_limit(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    with serving(hashed_reply) as server:
        plan = ["run", "personalens", "--profiles", "release", *server_cast(server)]
        dialoom(*plan, "-o", "run.db", "--max-calls", 4, code=3, variables=KEY)
        prices = ["--price", "openai/user=1000,2000", "--price", "openai/assistant=1000,2000"]
        more = ["--max-calls", "none", "--max-cost", 0.09]  # a call costs 0.02
        stopped = dialoom("resume", "run.db", *prices, *more, code=3, variables=KEY)
    assert "--max-cost 0.09 is used up: 0.08 spent" in stopped.stdout
    assert status_of(dialoom, "run.db")["calls"] == len(server.requests) == 4


def test_cost_limit_without_a_price_is_refused(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    plan = ["run", "personalens", "--profiles", "release", *players, "-o", "run.db", "--max-cost", 1]
    refused = dialoom(*plan, code=2)
    assert "the price of python:players:user and of python:players:assistant" in refused.stderr
    assert "--price python:players:user=IN,OUT" in refused.stderr
    assert not list(tmp_path.glob("run.db*"))
    free = [part for role in ("user", "assistant", "judge") for part in ("--price", f"python:players:{role}=0,0")]
    dialoom(*plan, *free)


@pytest.mark.parametrize(
    ("flag", "value", "right"),
    [
        ("--max-calls", "many", "must be a whole number"),
        ("--max-cost", "-1", "must be at least 0"),
        ("--price", "m=1", "IN,OUT or IN,OUT,CACHED"),
        ("--rpm", "m=0", "--rpm of m must be at least 1, got 0"),
        ("--fail-on-error", "110%", "5%"),
    ],
)
def test_malformed_limits_are_refused(
    dialoom: Command, players: list[str], tmp_path: Path, flag: str, value: str, right: str
) -> None:
    write_release(tmp_path / "release")
    plan = ["run", "personalens", "--profiles", "release", *players, "-o", "run.db"]
    refused = dialoom(*plan, flag, value, code=2)
    assert flag in refused.stderr
    assert right in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("run.db*"))


def test_limits_may_be_given_in_the_configuration_file(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "c.yaml").write_text("max-calls: 3\nrpm: 6000\ntpm: {m: 9}\nprice: {m: [1, 2.5]}\nfail-on-error: 5%\n")
    plan = ["run", "personalens", "--profiles", "release", *players, "--config", "c.yaml"]
    dialoom(*plan, "-o", "file.db", code=3)
    limits = status_of(dialoom, "file.db")["limits"]
    price = {"input": 1, "output": 2.5, "cached_input": None}
    assert limits == {
        "max_calls": 3,
        "prices": {"m": price},
        "rpm": {"": 6000},
        "tpm": {"m": 9},
        "timeouts": {},
        "context": {},
    }
    dialoom(*plan, "-o", "flag.db", "--max-calls", 4, code=3)
    assert status_of(dialoom, "flag.db")["calls"] == 4
    assert "4 of 4 calls used" in dialoom("status", "flag.db").stdout


def test_replay_only_makes_no_call(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    plan = ["run", "personalens", "--profiles", "release", *players]
    dialoom(*plan, "-o", "run.db", "--max-calls", 9, code=3)
    stopped = dialoom("resume", "run.db", "--max-calls", "none", "--replay-only", code=2)
    assert "is not recorded" in stopped.stderr
    status = status_of(dialoom, "run.db")
    assert status["calls"] == 9
    assert status["scenarios"]["failed"] == 0
    dialoom("resume", "run.db")
    dialoom("resume", "run.db", "--replay-only")


def test_log_lines_can_be_json(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    plan = ["run", "personalens", "--profiles", "release", *players, "--log-format", "json", "--max-calls", 5]
    stopped = dialoom(*plan, "-o", "run.db", code=3)
    events = [json.loads(line) for line in stopped.stderr.splitlines()]
    assert "--max-calls 5 is used up" in next(event["reason"] for event in events if event["event"] == "stopping")


RUN = ["run", "personalens", "--profiles", "release", "--tasks", "single", "-o", "r.db"]


def rows_of(run: Path) -> dict[str, dict[str, Any]]:
    """Return the cost table's rows by role."""
    table = cost_table(run)
    return {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}


def partly_cached(text: str) -> Answer:
    """Return an answer to a request of 100 tokens, 80 of which the provider read from its cache."""
    status, body = completion(text, 100, 20)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 80}
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": 12}
    return status, body


def play(dialoom: Command, players: list[str], folder: Path, *more: object) -> None:
    """Play one dialogue whose assistant is served over HTTP."""
    if not (folder / "release").exists():
        write_release(folder / "release")
    with serving(lambda _body, _number: partly_cached("Certainly.")) as server:
        variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
        cast = [*players[:2], *players[4:], "--model", "assistant=openai/house"]
        dialoom(*RUN, *cast, *more, variables=variables)


def test_cached_and_reasoning_tokens_are_reported_separately(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Three replies are charged at the stated prices: 20 fresh, 80 cached and 20 output tokens each."""
    play(dialoom, players, tmp_path, "--price", "openai/house=10,100,1")
    assistant = rows_of(tmp_path / "r.db")["assistant"]
    assert assistant["model"] == "openai/house"
    assert (assistant["calls"], assistant["replayed"], assistant["from cache"]) == (3, 0, 0)
    assert (assistant["input tokens"], assistant["read from prompt cache"], assistant["output tokens"]) == (
        300,
        240,
        60,
    )
    assert round(assistant["read %"], 6) == 0.8
    assert assistant["of which reasoning"] == 36
    assert round(assistant["US dollars"] * 1_000_000, 3) == 3 * (20 * 10 + 80 * 1 + 20 * 100)


def test_unknown_tokens_and_cost_stay_unknown(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    play(dialoom, players, tmp_path, "--price", "openai/house=10,100,1")
    rows = rows_of(tmp_path / "r.db")
    for role in ("user", "judge", "all"):
        assert rows[role]["US dollars"] is None
        assert rows[role]["input tokens"] is None
    assert rows["user"]["read from prompt cache"] is None
    assert rows["all"]["read from prompt cache"] == 240
    assert (rows["user"]["of which reasoning"], rows["all"]["of which reasoning"]) == (None, 36)
    assert rows["all"]["calls"] == sum(rows[role]["calls"] for role in ("user", "assistant", "judge"))
    note = cost_table(tmp_path / "r.db").notes[0]
    assert "python:players:user" in note
    assert "$0.0068" in note


def test_cost_is_printed_and_written_as_csv(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--limit", 2, "-o", "r.db")
    output = dialoom("report", "r.db", "--cost").stdout
    assert "Usage and cost of calls" in output
    assert "scripted stand-ins" in output
    dialoom("report", "r.db", "--cost", "-o", "out")
    with (tmp_path / "out" / "cost.csv").open() as file:
        roles = [row["role"] for row in csv.DictReader(file)]
    assert roles == ["user", "assistant", "judge", "all"]


def test_replays_and_unanswered_calls_are_reported(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--limit", 1, "-o", "r.db")
    with sqlite3.connect(tmp_path / "r.db") as connection:
        connection.execute("UPDATE kept_calls SET replays = 2 WHERE id = 1")
        connection.execute("UPDATE kept_calls SET reply = NULL, attempts = NULL WHERE id = 2")
    rows = rows_of(tmp_path / "r.db")
    assert rows["all"]["replayed"] == 2
    assert "Calls without an answer: 1." in " ".join(cost_table(tmp_path / "r.db").notes)


def test_replies_that_a_filter_removed_count_as_billed(dialoom: Command, tmp_path: Path) -> None:
    """Each takes 10 + 5 tokens, like the other replies, also if the call has another attempt."""
    empty: Answer = (200, {**completion("")[1], "choices": []})
    null: Answer = (200, {**completion("")[1], "choices": None})

    def answer(_body: dict[str, Any], number: int) -> Answer:
        usage = completion("")[1]["usage"]
        return {1: empty, 2: ended("", "content_filter", usage), 3: empty, 4: null}.get(number, completion("Hm."))

    with serving(answer) as server:
        cast = ["--model", "user=openai/user", "--api-base", f"user={server.url}", "--price", "openai/user=1000,2000"]
        plan = ["run", "personalens", "--limit", 3, "--concurrency", 1, "--no-judge", *cast]
        dialoom(*plan, "-o", "run.db", "--max-cost", 99, code=1, variables=KEY)
        sent = len(server.requests)
    user = status_of(dialoom, "run.db")["roles"]["user"]
    assert user["tokens"] == {"input": 10 * sent, "output": 5 * sent}
    assert user["cost"] == pytest.approx(0.02 * sent)
    assert user["failed_calls"] == 1
    assert status_of(dialoom, "run.db")["counted"]["cost"] == pytest.approx(0.02 * sent)
    assert rows_of(tmp_path / "run.db")["user"]["US dollars"] == pytest.approx(0.02 * sent)
    assert sum(row.cost or 0 for row in open_run(tmp_path / "run.db").scenarios().rows) == pytest.approx(0.02 * sent)


def test_usage_of_failed_attempts_is_not_claimed(dialoom: Command, tmp_path: Path) -> None:
    """Some are billed without being reported, so the sums may be too low."""
    (tmp_path / "broken.py").write_text("async def reply(messages):\n    raise ValueError('no')\n")
    dialoom("run", "aloe-eval", "--limit", 1, "--model", "assistant=python:broken:reply", "-o", "r.db", code=1)
    assert "Failed attempts at calls: 1. " in " ".join(cost_table(tmp_path / "r.db").notes)


def test_limits_take_every_setting_that_declares_one() -> None:
    given = LimitSettings(
        budget=Budget(max_calls=1), prices={"m": Price(1, 2)}, rpm={"m": 3}, tpm=4, context={"m": 5}, timeout=6
    )
    assert given.keys() == build_settings_model(LimitSettings).model_fields.keys()
    changed = RunLimits().with_settings(validate_settings(LimitSettings, given))
    assert [name for name, value in RunLimits() if getattr(changed, name) == value] == []
    assert RunLimits.model_validate_json(changed.model_dump_json()) == changed
    assert RunLimits().with_settings(validate_settings(LimitSettings, LimitSettings())) == RunLimits()
    removed = changed.with_settings(validate_settings(LimitSettings, LimitSettings(rpm={"m": None}, timeout=0)))
    assert removed == changed.model_copy(update={"rpm": {}, "timeouts": {}})
