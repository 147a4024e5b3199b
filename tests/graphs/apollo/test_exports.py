"""APOLLO's rows, as JSONL and as Parquet, and what a person is shown of a sample; also of a run that was killed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pyarrow.parquet

import dialoom
from dialoom.graphs.apollo import RECIPE
from dialoom.personas.apollo.scores import call_text
from tests.graphs.apollo.invented import source, write
from tests.graphs.apollo.players import Agent, gold_lines, played

MADE = source()
LINES = {pair.query: gold_lines(pair) for pair in MADE.pairs.values()}


def test_a_row_has_the_gold_calls_and_those_that_were_made(tmp_path: Path) -> None:
    """What differs in shape from row to row is JSON text, so that both formats hold the same."""
    lines = {**LINES, next(iter(LINES)): ["Well.", "Well."]}
    run = played(tmp_path, Agent(lines), MADE)
    run.export("apollo", tmp_path / "rows.jsonl")
    run.export("apollo", tmp_path / "rows.parquet", encoding="parquet")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows
    assert [row["accuracy"] for row in rows] == [False, True, True]
    for row, pair in zip(rows, MADE.pairs.values(), strict=True):
        assert json.loads(row["gold_calls"]) == pair.calls()
        assert (row["pair"], row["model"], row["length"]) == (pair.id, "object:Agent", 2000)
        made = [(call["name"], json.loads(call["arguments"])) for call in json.loads(row["calls"])]
        wanted = [(call["name"], call["arguments"]) for call in pair.calls()] if row["accuracy"] else []
        assert made == wanted
        assert len(json.loads(row["outputs"])) == len(wanted)
    assert (rows[0]["ended_by"], rows[0]["f1"], rows[0]["turns"]) == ("silent", 0.0, 2)


def test_of_a_history_one_is_shown_what_matters(tmp_path: Path) -> None:
    """The session that tells the preference, between folded ones; then calls as one reads them."""
    run = played(tmp_path, Agent(LINES), MADE)
    episode = next(each for each in run.episodes() if each.facets["pair"] == "music-1")
    said = [(line.role, line.content) for line in episode.outcome.messages]
    place, n = episode.facets["place"], episode.facets["sessions"]
    folded = [f"sessions 1 to {place - 1} are about other things"] if place > 2 else []
    after = [f"sessions {place + 1} to {n} are about other things"] if place < n - 1 else []
    history = [text for role, text in said if role == "history"]
    (told,) = [text for text in history if text.startswith(f"session {place}\n")]
    assert history == [*folded, told, *after]
    assert "\nuser: I want this: genre " in told and "\nassistant: search_music(" in told
    assert [role for role, _ in said][-4:] == ["user", "assistant", "tool", "assistant"]
    assert said[-3][1].startswith('search_music(genre="') and said[-1][1] == "[Finish]"
    assert said[-2][1].splitlines()[0] == "6 rows" and said[-2][1].splitlines()[1].startswith("track_id TR")


def test_a_run_that_stopped_anywhere_gives_the_same_bytes(tmp_path: Path) -> None:
    """After some calls, again and again; nothing is asked twice."""
    whole = played(tmp_path / "whole", Agent(LINES), MADE)
    whole.export("apollo", tmp_path / "whole.jsonl")
    agent = Agent(LINES)
    (tmp_path / "broken").mkdir()
    options = {"source": write(tmp_path / "broken" / "source", MADE), "length": ("2k",)}
    path = tmp_path / "broken" / "run.db"
    budget = dialoom.Budget(max_calls=2)
    run = dialoom.play(RECIPE, path=path, options=options, models={"assistant": agent}, budget=budget)
    assert run.status().pending
    for calls in (5, None):
        run = dialoom.resume(path, recipe=RECIPE, models={"assistant": agent}, budget=dialoom.Budget(max_calls=calls))
    run.export("apollo", tmp_path / "broken.jsonl")
    assert (tmp_path / "broken.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(agent.sent) == sum(len(lines) for lines in LINES.values())


async def test_a_person_puts_a_call_into_the_agents_mouth(tmp_path: Path) -> None:
    """The tools answer it, and the agent goes on from there; the run's own outcome stays what it was."""
    whole = await asyncio.to_thread(played, tmp_path, Agent(LINES), MADE, limit=1)
    async with whole.step(1) as session:
        await session.goto_where(session.condition("agent"))
        stop = await session.say("assistant", call_text({"name": "get_distance", "arguments": {"city": "Nowhere"}}))
        assert stop.counts == {"turn": 1, "call": 1}
        await session.run()
        outcome = await session.outcome()
    assert "error" in outcome.details["outputs"][0]
    assert outcome.details["flags"] == ["failed_call"]
    assert len(outcome.details["calls"]) == len(outcome.details["gold"])
