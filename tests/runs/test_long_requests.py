"""Long conversations, and the share of each request that a prompt cache can provide."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_requests import Recalling, assistant, make_fixed_turns, make_preference
from dialoom import Budget, Run, play, resume
from dialoom.runs.store.connections import open_for_reading
from tests.conftest import REAL, ROOT, Command, needs_real_data
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER

TURNS = 100
RECIPE = f"{ROOT}/benchmarks/long_requests.py:Recalling"
PLAYED = ("run", RECIPE, "--model", "python:benchmarks.long_requests:assistant")


def played(path: Path, **options: Any) -> Run:
    """Play each pair with two methods."""
    chosen = {"pairs": 4, "methods": 2, "turns": TURNS, **options}
    return play(Recalling, path=path, options=chosen, models={"assistant": assistant})


def count_characters(path: Path, column: str, table: str) -> int:
    """Return the number of characters in a column."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT total(length({column})) FROM {table}").fetchone()[0])


def characters_of_documents(path: Path) -> int:
    """Return the number of characters in all documents, however they are stored."""
    with closing(sqlite3.connect(path)) as connection:
        return sum(len(content) for (content,) in connection.execute("SELECT content FROM documents"))


def test_long_conversation_is_stored_once(tmp_path: Path) -> None:
    few, many = (played(tmp_path / f"{pairs}.db", in_state=True, pairs=pairs) for pairs in (2, 8))
    for run in (few, many):
        for episode in run.episodes():
            said = [line.content for line in episode.outcome.messages]
            pair = episode.facets["pair"]
            assert said[:-2] == [make_preference(pair), *(line.content for line in make_fixed_turns(TURNS))]
            assert said[-2].startswith(f"q{pair} m{episode.facets['method']}")
    for column, table in (
        ("messages", "calls"),
        ("messages", "passages"),
        ("messages", "outcomes"),
        ("elements", "checkpoint_lists"),
    ):
        more = count_characters(many.path, column, table) - count_characters(few.path, column, table)
        assert more < 12 * 500, f"{table}: whole lists would be 12 times about 2,500"
    more = characters_of_documents(many.path) - characters_of_documents(few.path)
    assert more < 6 * 700, "the openings of six pairs"
    assert count_characters(many.path, "content", "scenarios") < 16 * 800


async def test_request_of_a_long_call_is_shown_whole(tmp_path: Path) -> None:
    run = await asyncio.to_thread(played, tmp_path / "run.db", pairs=1)
    async with run.step(1) as stepper:
        (call,) = (await stepper.stops())[-1].calls
    said = [message["content"] for message in call.messages]
    assert [said[0], *said[2:-1]] == [make_preference(0), *(line.content for line in make_fixed_turns(TURNS))]


def test_uncounted_tokens_are_estimated_by_whole_requests(tmp_path: Path) -> None:
    run = played(tmp_path / "run.db", pairs=1)
    with closing(sqlite3.connect(run.path)) as connection:
        connection.execute("UPDATE kept_calls SET input_tokens = NULL, output_tokens = NULL")
        connection.commit()
        spoken = count_characters(run.path, "content", "texts")
        assert spoken > 4 * 20_000
        connection.execute("UPDATE scenarios SET state = 'pending', sample = 1, take = 1")
        connection.execute("DELETE FROM outcomes")
        connection.commit()
    again = resume(run.path, models={"assistant": assistant}, budget=Budget(max_tokens=2 * 20_000))
    assert "max_tokens" in str(again.ended)


@pytest.mark.parametrize(("part", "count"), [("INSERT INTO passages", 3), ("INTO checkpoint_lists", 2)])
def test_run_killed_while_writing_a_passage_resumes_to_the_same_bytes(part: str, count: int, tmp_path: Path) -> None:
    whole = played(tmp_path / "whole.db", in_state=True, pairs=2)
    plan = (*PLAYED, "--pairs", 2, "--methods", 2, "--turns", TURNS, "--in-state", "--concurrency", 2)
    with CommandProcess(tmp_path, part, count, *plan, "-o", "run.db", script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    run = resume(tmp_path / "run.db")
    for each in (whole, run):
        each.export("dialogues", each.path.with_suffix(".jsonl"))
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


# Computed from the rendered requests of whole runs, in the order of sending. A prompt cache can provide the longest
# prefix that a request shares with an earlier one to the same model. Four characters count as a token.


@dataclass
class Sent:
    """The requests sent to one model.

    Attributes:
        tokens: Tokens of all requests.
        read_before: Tokens in prefixes shared with an earlier request.
        texts: The requests, sorted.
    """

    tokens: float = 0
    read_before: float = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add the next request."""
        place = bisect_left(self.texts, text)
        # In sorted order, the longest common prefix is with a neighbour.
        neighbours = self.texts[max(place - 1, 0) : place + 1]
        common = max((len(os.path.commonprefix([text, near])) for near in neighbours), default=0)  # noqa: RUF071
        self.texts.insert(place, text)
        self.tokens += len(text) / 4
        self.read_before += common / 4

    @property
    def share(self) -> float:
        """Return the share of tokens in prefixes that were read before."""
        return self.read_before / self.tokens


def sent_by_role(run: Path) -> dict[str, Sent]:
    """Return the requests by role, as if each role had a model of its own."""
    sent: dict[str, Sent] = defaultdict(Sent)
    for role, text in _requests(run):
        sent[role].add(text)
    return sent


def share_of(run: Path) -> float:
    """Return the share over all roles, each with a model of its own, which is the worst case."""
    sent = sent_by_role(run).values()
    return sum(each.read_before for each in sent) / sum(each.tokens for each in sent)


def _requests(run: Path) -> Iterator[tuple[str, str]]:
    """Yield the role and text of every request."""
    connection = open_for_reading(run)
    try:
        texts = dict(connection.execute("SELECT id, content FROM texts").fetchall())
        for role, messages in connection.execute("SELECT role, messages FROM calls ORDER BY id"):
            yield role, "".join(f"<{who}>{texts[id_]}" for who, id_ in json.loads(messages))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("recipe", "options", "least"),
    [
        ("personalens", ["--limit", 8], 0.6),
        ("personalens", ["--limit", 40, "--setting", "all"], 0.6),
        ("aloe", ["--limit", 2], 0.6),
        # The judge of personalization gets the person after the conversation; with a score for each turn the
        # conversation grows, so the person is never part of a shared prefix.
        ("personalens", ["--limit", 8, "--turn-scores"], 0.5),
    ],
)
def test_most_of_each_request_was_sent_before(
    dialoom: Command, tmp_path: Path, recipe: str, options: list[object], least: float
) -> None:
    dialoom("run", recipe, *options, "--concurrency", 4, "-o", "r.db")
    assert share_of(tmp_path / "r.db") >= least


@needs_real_data
def test_most_of_each_request_was_sent_before_with_real_people(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--profiles", REAL, "--limit", 10, "--concurrency", 4, "-o", "r.db")
    assert share_of(tmp_path / "r.db") >= 0.6


def test_growing_conversation_reuses_its_prefix(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--limit", 8, "--concurrency", 4, "-o", "r.db")
    sent = sent_by_role(tmp_path / "r.db")
    assert sent["user"].share >= 0.75
    assert sent["assistant"].share >= 0.75
