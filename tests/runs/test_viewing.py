"""Conversations as pages show them, and reading while a run is being written."""

from __future__ import annotations

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import dialoom
from dialoom import DialoomError
from dialoom.graphs import Estimate, Series
from dialoom.runs.reading.conversations import TextPiece, diff_messages, diff_words
from dialoom.studio.charts import build_options
from tests.conftest import Command, MadeOnce, read_jsonl
from tests.processes import CommandProcess
from tests.runs.stepping.played import dialogue, play


@pytest.mark.parametrize("recipe", ["personalens", "aloe"])
def test_each_message_has_its_call(made_once: MadeOnce, recipe: str) -> None:
    shown = dialoom.open_run(play(made_once, recipe)).conversation(1)
    assert shown.messages
    assert all(each.call is not None and each.line.content in each.call["reply"] for each in shown.messages)
    rows = [each.call["call"] for each in shown.messages if each.call is not None]
    assert len(set(rows)) == len(rows)


def test_judgements_of_turns_are_shown_at_the_end_of_the_turn(made_once: MadeOnce) -> None:
    run = dialoom.open_run(play(made_once, "aloe-eval"))
    shown = run.conversation(1)
    by_turn = [item for each in shown.messages for item in each.judged]
    assert [item.judgement.turn for item in by_turn] == [1, 2, 3]
    assert [each.line.role for each in shown.messages if each.judged] == ["assistant"] * 3
    assert len(by_turn) + len(shown.judged) == len(shown.episode.outcome.judgements)


def test_request_is_shown_with_its_new_messages_marked(made_once: MadeOnce) -> None:
    run = dialoom.open_run(dialogue(made_once))
    shown = run.conversation(1)
    first, second = [each.call for each in shown.messages if each.line.role == "assistant"][:2]
    assert first is not None and second is not None
    assert shown.call_before(first) is None
    assert (before := shown.call_before(second)) is not None and before["call"] == first["call"]
    assert not run.request(first["call"]).has_previous
    request = run.request(second["call"], first["call"])
    assert request.has_previous
    said = [each.line.content for each in shown.messages]
    assert [each.message["content"] for each in request.messages if each.mark == "new"][-1] == said[2]
    table = run.frame("calls")
    assert run.request(table["call"].iloc[0]).messages == run.request(int(table["call"].iloc[0])).messages
    with pytest.raises(DialoomError, match="no call 999"):
        run.request(999)


def test_removed_message_is_shown_in_its_former_place() -> None:
    one, two, three = ({"role": "user", "content": each} for each in ("one", "two", "three"))
    found = diff_messages([one, two], [one, three])  # type: ignore[list-item]
    assert [(each.mark, each.message["content"]) for each in found] == [
        ("same", "one"),
        ("gone", "two"),
        ("new", "three"),
    ]


def test_pending_scenario_shows_its_progress(tmp_path: Path) -> None:
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 1})
    shown = run.conversation(1)
    assert (shown.episode.state, list(shown.messages), shown.judging) == ("pending", [], "run")
    usage = run.status().usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost) == (0, 0, 0, 0, 0)


def test_marked_texts_are_complete_and_show_their_differences() -> None:
    left, right = "It is  set for 3:30 PM.", "It is  set for noon."
    left_pieces, right_pieces = diff_words(left, right)
    assert ("".join(each.text for each in left_pieces), "".join(each.text for each in right_pieces)) == (left, right)
    assert [each.text for each in left_pieces if not each.is_shared] == ["3:30 PM."]
    assert [each.text for each in right_pieces if not each.is_shared] == ["noon."]
    long = "word " * 3000
    assert diff_words(long, long + "more")[0] == [TextPiece(long, False)]


def test_tree_marks_the_shown_conversation(made_once: MadeOnce) -> None:
    shown = dialoom.open_run(play(made_once, "aloe")).conversation(1)
    assert shown.outline is not None and shown.outline.is_tree
    first, *rest = shown.outline.parts
    assert (first.kind, first.is_taken, first.where) == ("step", True, "")
    options = [part for part in first.parts if part.kind == "option"]
    assert [part.is_taken for part in options] == [True, True]
    branches = [part for part in rest if part.kind == "branch"]
    assert [part.is_taken for part in branches] == [True, False]
    assert [step.where for step in branches[1].parts] == ["r", *["r" + "p" * n for n in (1,)]][: len(branches[1].parts)]
    taken = [step for branch in branches if branch.is_taken for step in branch.parts if step.is_taken]
    assert len(taken) + 1 == shown.episode.outcome.counts["rounds"]


INCONSISTENCIES = """
SELECT count(*) FROM scenarios WHERE (state = 'done') != EXISTS (SELECT 1 FROM outcomes WHERE scenario = position)
UNION ALL
SELECT count(*) FROM scenarios WHERE state = 'done' AND '[0,1,2,3,4,5]' IS NOT (
    SELECT json_group_array(ordinal) FROM judgements WHERE scenario = position)
UNION ALL
SELECT count(*) FROM calls, json_each(messages) WHERE json_extract(value, '$[1]') NOT IN (SELECT id FROM texts)
UNION ALL
SELECT count(*) FROM calls WHERE reply NOT IN (SELECT id FROM texts)
UNION ALL
SELECT count(*) FROM checkpoints, json_each(held) AS part WHERE part.type = 'object'
AND json_extract(part.value, '$.list') NOT IN (SELECT id FROM checkpoint_lists)
"""
"""Five counts that are 0 in every consistent snapshot."""


_USER = """
import asyncio
from pathlib import Path
from players import user as talker

asked = 0

async def user(messages):
    global asked
    asked += 1
    needed = ["is-kept-open"] if asked > 30 else []
    needed += ["is-looked-at", "is-read"] if asked > 75 else []
    while not all(Path(name).exists() for name in needed):
        await asyncio.sleep(0.01)
    return await talker(messages)
"""
"""A user who waits for the open transaction after 30 calls, and for the other readers after 75."""


def test_readers_do_not_block_a_run_and_see_consistent_snapshots(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "run.db"
    (tmp_path / "patient.py").write_text(_USER)
    cast = ["--model", "user=python:patient:user", *players[2:]]
    with CommandProcess(tmp_path, "run", "personalens", "--limit", 30, *cast, "--concurrency", 4, "-o", path) as run:
        while not (path.exists() and _done(path) > 0):
            assert run.poll() is None
            time.sleep(0.01)
        with closing(sqlite3.connect(path, isolation_level=None)) as keeping:
            keeping.execute("BEGIN")
            then = _done(path, keeping)
            (tmp_path / "is-kept-open").touch()
            with ThreadPoolExecutor() as pool:
                watching = pool.submit(_inconsistencies, path, run)
                while run.poll() is None:
                    # Each in a separate process: closing the file drops the locks that SQLite holds on it for other
                    # connections of this process, and the run could then lock the file when it ends.
                    dialoom("status", path, env=os.environ)
                    dialoom("show", path, "1", env=os.environ)
                    dialoom("export", path, "-o", tmp_path / f"{time.monotonic_ns()}.jsonl", env=os.environ)
                    (tmp_path / "is-read").touch()
                found = watching.result()
            _, errors = run.communicate()
            assert run.returncode == 0, errors
            # The open transaction still reads its first snapshot.
            assert _done(path, keeping) == then < _done(path)
    assert not found
    for file in tmp_path.glob("*.jsonl"):
        assert then <= len(read_jsonl(file)) <= _done(path)


def _inconsistencies(path: Path, run: CommandProcess) -> list[object]:
    """Return the inconsistencies seen by a connection without a busy timeout while the run goes on."""
    looks, found = 0, []
    while run.poll() is None:
        with closing(sqlite3.connect(path, timeout=0)) as reader:
            found += [row for row in reader.execute(INCONSISTENCIES) if row != (0,)]
        looks += 1
        if looks == 10:
            (path.parent / "is-looked-at").touch()
    return found


def _done(path: Path, connection: sqlite3.Connection | None = None) -> int:
    query = "SELECT count(*) FROM scenarios WHERE state = 'done'"
    if connection is not None:
        return int(connection.execute(query).fetchone()[0])
    with closing(sqlite3.connect(path)) as own:
        try:
            return int(own.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # the tables do not exist yet
            return 0


def test_tooltip_has_the_number_of_values_of_its_own_point(made_once: MadeOnce) -> None:
    run = dialoom.open_run(play(made_once, "aloe-eval"))
    [chart] = dialoom.report(run).charts
    assert {*chart.series[0].n} == {1}
    found = [Estimate(4, 3.0, None, None), Estimate(9, 3.0, None, None)]
    chart.series = [Series.of("mean", [1, 2], found), Series("share", [1, 2], [3.0, 0.5])]
    mean, share = (part for part in build_options(chart)["series"] if "name" in part)
    tooltips = [[point["tooltip"]["formatter"] for point in part["data"]] for part in (mean, share)]
    assert [text.splitlines()[-1] for text in tooltips[0]] == ["n = 4", "n = 9"]
    assert not any("n = " in text for text in tooltips[1])
