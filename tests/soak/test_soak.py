"""Two thousand dialogues with a provider that fails a tenth of its requests, and three kills: the ledger is right."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conftest import Command
from tests.server import ChatServer, serving
from tests.soak.provider import FAILING, KINDS, PRICE, Call, FaultyProvider, usage_of
from tests.soak.watched_process import WatchedProcess

ROLES = ("user", "assistant", "judge")
CONCURRENCY = 32
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "sk-none-of-yours"}
DIALOGUES, FEWER = 2000, 500
KILLS = [range(150, 550), range(600, 1000), range(1050, 1450)]
"""Ranges of the server's requests, some 6,700 in all, with one kill at random in each. They are early, so that three
quarters of the dialogues are left for the last process, whose memory is compared with that of a short run."""

ANSWERED, UNANSWERED = "reply IS NOT NULL", "reply IS NULL AND error IS NULL"
"""Conditions on rows of the ledger."""


def plan(folder: Path, server: ChatServer, dialogues: int, run: str) -> list[object]:
    """Return the command of a run of one-round dialogues: three calls each, with models at the server."""
    people = ({"profile": f"She keeps {number} hens.", "personality": "She is calm."} for number in range(dialogues))
    (folder / f"{run}.jsonl").write_text("".join(f"{json.dumps(person)}\n" for person in people))
    cast = [part for role in ROLES for part in ("--model", f"{role}=openai/{role}")]
    prices = [part for role in ROLES for part in ("--price", f"openai/{role}={PRICE[0]},{PRICE[1]}")]
    source = ["run", "aloe-eval", "--personas", f"{run}.jsonl", "--rounds", 1, "-o", run]
    return [*source, *cast, *prices, "--api-base", server.url, "--concurrency", CONCURRENCY]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query of a run's file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def counted(path: Path, which: str) -> Counter[Call]:
    """Return the calls of some rows of the ledger, as the provider identifies them."""
    found = rows(path, f"SELECT seed, ask, count(*) FROM calls WHERE {which} GROUP BY seed, ask")
    return Counter({Call(seed, ask): count for seed, ask, count in found})


def attempts(path: Path) -> Counter[Call]:
    """Return the number of failed attempts of each call in the ledger."""
    joined = "attempts JOIN calls ON calls.id = attempts.call"
    found = rows(path, f"SELECT seed, ask, count(*) FROM {joined} GROUP BY seed, ask")
    return Counter({Call(seed, ask): count for seed, ask, count in found})


def kill_at(watched: WatchedProcess, server: ChatServer, number: int) -> None:
    """Kill a process once the server has received a number of requests."""
    while len(server.requests) < number and watched.process.poll() is None:
        threading.Event().wait(0.005)
    assert watched.kill() == -signal.SIGKILL, watched.errors


def test_nothing_is_lost_or_doubled_and_memory_does_not_grow(dialoom: Command, tmp_path: Path) -> None:
    draw, provider, run = random.Random(5), FaultyProvider(), tmp_path / "run.db"
    with serving(provider) as server:
        command = plan(tmp_path, server, DIALOGUES, "run.db")
        for requests_before in KILLS:
            kill_at(WatchedProcess(tmp_path, ENVIRONMENT, *command), server, draw.choice(requests_before))
            provider.closed |= counted(run, ANSWERED).keys()
            command = ["resume", "run.db", "--concurrency", CONCURRENCY]
        done = rows(run, "SELECT count(*) FROM scenarios WHERE state = 'done'")[0][0]
        assert 0 < done <= DIALOGUES - 3 * FEWER, "the last process has most of the work"
        last = WatchedProcess(tmp_path, ENVIRONMENT, *command)
        assert last.end() == 0, last.errors
    assert not provider.reopened, "recorded replies are not requested again"
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    check_replies(run, status)
    check_ledger(run, status, provider)
    with serving(FaultyProvider()) as server:
        short = WatchedProcess(tmp_path, ENVIRONMENT, *plan(tmp_path, server, FEWER, "short.db"))
        assert short.end() == 0, short.errors
    assert short.peak > 0 or not Path("/proc").is_dir(), "its memory was recorded"
    assert last.peak <= 1.25 * short.peak, f"{last.peak:,} kB after many dialogues, {short.peak:,} kB after few"


def check_replies(run: Path, status: dict[str, Any]) -> None:
    """Check that every scenario is done and has each call's reply once."""
    assert status["scenarios"] == {"total": DIALOGUES, "done": DIALOGUES, "failed": 0, "pending": 0}
    replies = counted(run, ANSWERED)
    assert set(replies.values()) == {1}
    assert sum(call.ask == 1 for call in replies) == len(ROLES) * DIALOGUES
    empty = rows(run, "SELECT seed FROM calls JOIN texts ON texts.id = reply WHERE content = ''")
    assert {seed for (seed,) in empty} == {call.seed for call in replies if call.ask == 2}, (
        "exactly these were requested again"
    )
    assert not counted(run, "error IS NOT NULL")


def check_ledger(run: Path, status: dict[str, Any], provider: FaultyProvider) -> None:
    """Compare the ledger's replies, failures, tokens and cost with the provider's."""
    replies, failures, open_ = counted(run, ANSWERED), attempts(run), counted(run, UNANSWERED)
    assert status["calls"] == replies.total()
    assert status["unanswered_calls"] == open_.total() <= CONCURRENCY * len(KILLS), "calls in progress at the kills"
    assert set(provider.given) == {"none", *KINDS}, "every kind of fault occurred"
    assert 0.08 < 1 - provider.given["none"] / provider.sent.total() < 0.12
    assert provider.sent.keys() == replies.keys()
    for call, sent in provider.sent.items():
        lost_replies = provider.replied[call] - replies[call]
        lost_failures = provider.failed(call) - failures[call]
        assert min(lost_replies, lost_failures) >= 0, f"{call}: the ledger has more than was given"
        assert lost_replies + lost_failures <= open_[call], f"{call}: sent {sent} times, which no kill explains"
    assert sum(provider.given[kind] for kind in FAILING) - failures.total() <= open_.total()
    usages = [usage_of(call) for call in replies]
    asked, said = sum(usage.asked for usage in usages), sum(usage.said for usage in usages)
    assert status["tokens"] == {"input": asked, "output": said}
    assert abs(status["cost"] - (asked * PRICE[0] + said * PRICE[1]) / 1e6) < 1e-6
