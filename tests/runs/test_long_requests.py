"""Conversations of hundreds of fixed turns: they cost the file what is new in them, and read as any others."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.long_requests import Recalling, assistant, fixed, preference
from dialoom import Budget, Run, play, resume
from dialoom.runs.store.documents import text_of
from tests.conftest import ROOT
from tests.processes import Started
from tests.runs.test_kill_anywhere import KILLER

TURNS = 100
RECIPE = f"{ROOT}/benchmarks/long_requests.py:Recalling"
PLAYED = ("run", RECIPE, "--model", "python:benchmarks.long_requests:assistant")


def played(path: Path, **options: Any) -> Run:
    """Every pair by two methods."""
    told = {"pairs": 4, "methods": 2, "turns": TURNS, **options}
    return play(Recalling, path=path, options=told, models={"assistant": assistant})


def letters(path: Path, column: str, table: str) -> int:
    """Letters in a column."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT total(length({column})) FROM {table}").fetchone()[0])


def letters_of_documents(path: Path) -> int:
    """Letters in all documents, however they are kept."""
    with closing(sqlite3.connect(path)) as connection:
        return sum(len(text_of(content)) for (content,) in connection.execute("SELECT content FROM documents"))


def test_a_long_conversation_costs_its_file_once(tmp_path: Path) -> None:
    """In requests, checkpoints, outcomes and the plan, for however many scenarios; all of them read as they were."""
    few, many = played(tmp_path / "few.db", in_state=True), played(tmp_path / "many.db", in_state=True, pairs=24)
    for run in (few, many):
        for episode in run.episodes():
            said = [line.content for line in episode.outcome.messages]
            pair = episode.facets["pair"]
            assert said[:-2] == [preference(pair), *(line.content for line in fixed(TURNS))]
            assert said[-2].startswith(f"q{pair} m{episode.facets['method']}")
    for column, table in (
        ("messages", "calls"),
        ("messages", "passages"),
        ("messages", "outcomes"),
        ("elements", "checkpoint_lists"),
    ):
        more = letters(many.path, column, table) - letters(few.path, column, table)
        assert more < 40 * 500, f"{table}: as whole lists it would be 40 times some 2,500"
    more = letters_of_documents(many.path) - letters_of_documents(few.path)
    assert more < 20 * 700, "the openings of twenty pairs"
    assert letters(many.path, "content", "scenarios") < 48 * 800


async def test_the_request_of_a_long_call_is_shown_whole(tmp_path: Path) -> None:
    """To whoever steps through the conversation."""
    run = await asyncio.to_thread(played, tmp_path / "run.db", pairs=1)
    async with run.step(1) as session:
        (call,) = (await session.stops())[-1].calls
    said = [message["content"] for message in call.messages]
    assert [said[0], *said[2:-1]] == [preference(0), *(line.content for line in fixed(TURNS))]


def test_what_is_not_counted_by_a_provider_is_estimated_by_whole_requests(tmp_path: Path) -> None:
    """The budget of a run that is gone on with takes into account all that long requests held."""
    run = played(tmp_path / "run.db", pairs=1)
    with closing(sqlite3.connect(run.path)) as connection:
        connection.execute("UPDATE kept_calls SET input_tokens = NULL, output_tokens = NULL")
        connection.commit()
        spoken = letters(run.path, "content", "texts")
        assert spoken > 4 * 20_000
        connection.execute("UPDATE scenarios SET state = 'pending', sample = 1, take = 1")
        connection.execute("DELETE FROM outcomes")
        connection.commit()
    again = resume(run.path, models={"assistant": assistant}, budget=Budget(max_tokens=2 * 20_000))
    assert "max_tokens" in str(again.ended)


@pytest.mark.parametrize(("part", "count"), [("INSERT INTO passages", 3), ("INTO checkpoint_lists", 2)])
def test_killed_while_a_passage_is_written(part: str, count: int, tmp_path: Path) -> None:
    """Resumed, it comes to the same bytes."""
    whole = played(tmp_path / "whole.db", in_state=True)
    plan = (*PLAYED, "--pairs", 4, "--methods", 2, "--turns", TURNS, "--in-state", "--concurrency", 2)
    with Started(tmp_path, part, count, *plan, "-o", "run.db", script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    run = resume(tmp_path / "run.db")
    for each in (whole, run):
        each.export("dialogues", each.path.with_suffix(".jsonl"))
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
