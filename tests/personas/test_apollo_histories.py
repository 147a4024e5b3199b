"""Histories of past sessions of any length, and source folders with errors."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dialoom import personas
from dialoom.outputs import OutputError
from dialoom.personas import DataError
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import (
    ApolloHistory,
    ApolloPair,
    HistoryError,
    build_first_message,
    build_history,
    estimate_tokens,
    read_source,
)
from dialoom.personas.apollo.source.phrases import preference_words
from tests.graphs.apollo.invented import write_source

FOLDER = Path(personas.__file__).parent / "samples" / "apollo"
SOURCE = read_source(FOLDER)
LENGTHS = (2_000, 4_000, 8_000, 12_000)
PAIRS = list(SOURCE.pairs.values())[::4]


def unrelated(made: ApolloHistory) -> list[str]:
    """Return the ids of the sessions that tell no preference, in order."""
    return [session.id for session in made.sessions if session.kind == "unrelated"]


@pytest.mark.parametrize("pair", PAIRS[:6], ids=lambda pair: pair.id)
def test_longer_history_contains_the_shorter_one(pair: ApolloPair) -> None:
    user, made = SOURCE.users[pair.user], [build_history(SOURCE, pair, length=length) for length in LENGTHS]
    share = random.Random(f"history {pair.id} place").random()
    for one, length in zip(made, LENGTHS, strict=True):
        assert one.tokens == estimate_tokens(build_first_message(user, pair, one.sessions))
        assert 0.9 * length <= one.tokens <= length
        assert one.place == 1 + int(share * len(one.sessions))
        assert one.sessions[one.place - 1].id == pair.session
        assert (one.earlier, one.stale) == ((), ())
        assert len(set(unrelated(one))) == len(one.sessions) - 1
    for short, long in pairwise(made):
        assert [id_ for id_ in unrelated(long) if id_ in unrelated(short)] == unrelated(short)
    assert len({one.tools for one in made}) == 1


def test_eight_tools_are_offered_with_those_of_the_flow() -> None:
    for pair in PAIRS:
        made = build_history(SOURCE, pair, length=2_000)
        seen = {tool for session in made.sessions for tool in session.tools}
        assert len(set(made.tools)) == 8
        assert {call.name for call in pair.gold} <= set(pair.tools) <= set(made.tools)
        assert made.borrowed == len(set(made.tools) - seen - set(pair.tools))
    last = FLOWS["commute-bus"].last
    rule = next(pair for pair in PAIRS if pair.flow == "commute-bus")
    assert {last.then.tool, last.otherwise.tool} <= set(rule.tools)  # type: ignore[union-attr]


def test_no_unrelated_session_contains_a_word_of_the_preference() -> None:
    for pair in PAIRS:
        words = preference_words(pair.flow, pair.values)
        made = build_history(SOURCE, pair, length=8_000)
        assert not [session.id for session in made.sessions if session.kind == "unrelated" and words & session.stems]


def test_nothing_is_requested_twice_in_a_history() -> None:
    pair = PAIRS[0]
    again = [
        session.model_copy(update={"id": f"{session.id}-again", "turns": (*session.turns[:-1], session.turns[0])})
        for session in SOURCE.unrelated[pair.user]
    ]
    source = replace(SOURCE, sessions={**SOURCE.sessions, **{session.id: session for session in again}})
    for length in (2_000, 12_000):
        made = build_history(source, pair, length=length)
        assert any(id_.endswith("-again") for id_ in unrelated(made))
        asked = [call for session in made.sessions for call in session.asked]
        assert len(asked) == len(set(asked)) > 8


def test_number_of_sessions_and_place_can_be_requested() -> None:
    pair = PAIRS[0]
    made = [build_history(SOURCE, pair, sessions=10, place=place) for place in range(1, 11)]
    assert [one.place for one in made] == list(range(1, 11))
    assert {len(one.sessions) for one in made} == {10}
    assert len({tuple(unrelated(one)) for one in made}) == 1
    assert len(build_history(SOURCE, pair, sessions=3).sessions) == 3


def test_last_of_evolving_preferences_counts() -> None:
    for pair in PAIRS[:8]:
        made = build_history(SOURCE, pair, length=8_000, evolving=True)
        places = [*made.earlier, made.place]
        told = {each.session: each for each in SOURCE.pairs_for[pair.user, pair.flow]}
        sets = [told[made.sessions[place - 1].id].preference_set for place in places]
        assert places == sorted(set(places))
        assert sorted(sets) == [1, 2, 3]
        assert sets[-1] == pair.preference_set
        assert len({json.dumps(calls) for calls in (*made.stale, pair.calls())}) == 3
        assert [session.kind for session in made.sessions].count("preference") == 3


def test_any_token_counter_can_be_used() -> None:
    made = build_history(SOURCE, PAIRS[0], length=1_000, counter=lambda text: len(text.split()))
    message = build_first_message(SOURCE.users[PAIRS[0].user], PAIRS[0], made.sessions)
    assert 900 <= made.tokens == len(message.split()) <= 1_000


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"length": 90_000}, r"length 90,000: the history of pair u01-.* comes to 1\d,\d{3} tokens with \d\d of \d\d "),
        ({"length": 300}, r"length 300: the history of pair u01-.* comes to \d{3,} tokens with 0 of "),
        ({"sessions": 500}, r"sessions 500: give from 1 to \d\d sessions for pair u01-"),
        ({"sessions": 10, "place": 11}, r"place 11: give a place from 1 to 10"),
        ({"sessions": 10, "place": 2, "evolving": True}, r"place 2: .* leave it out if preferences evolve"),
        ({}, r"either a length or a number of sessions"),
    ],
)
def test_history_that_cannot_be_filled_is_refused(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        build_history(SOURCE, PAIRS[0], **wanted)


def test_written_source_is_read_again(tmp_path: Path) -> None:
    write_source(tmp_path / "copy", SOURCE)
    assert read_source(tmp_path / "copy") == SOURCE
    for name in ("users", "sessions", "pairs", "meta"):
        assert (tmp_path / "copy" / f"{name}.jsonl").read_bytes() == (FOLDER / f"{name}.jsonl").read_bytes()
    write_source(tmp_path / "copy", replace(SOURCE))
    (tmp_path / "copy" / "users.jsonl").write_text("{}")
    with pytest.raises(OutputError, match=r"users\.jsonl exists with other content"):
        write_source(tmp_path / "copy", replace(SOURCE))


def with_changed_row(folder: Path, file: str, line: int, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copy the sample and change a row; return the copy."""
    shutil.copytree(FOLDER, folder)
    rows = (folder / file).read_text().splitlines()
    row = json.loads(rows[line - 1])
    change(row)
    rows[line - 1] = json.dumps(row)
    (folder / file).write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        ("sessions.jsonl:3", lambda row: row.update(turns=[]), "session s-u01-commute-rule-3-1: it has no turns"),
        ("sessions.jsonl:2", lambda row: row.update(user="u77"), "there is no user 'u77' in users.jsonl"),
        ("sessions.jsonl:2", lambda row: row.pop("topic"), "'topic' is missing"),
        ("sessions.jsonl:4", lambda row: row["turns"][-4].update(name="fly"), 'there is no tool "fly"'),
        ("sessions.jsonl:2", lambda row: row.update(id="s-u01-commute-rule-1-1"), "is already used on line 1"),
        ("pairs.jsonl:2", lambda row: row["gold"][0].update(name="guess"), 'there is no tool "guess"'),
        ("pairs.jsonl:2", lambda row: row["gold"][0]["arguments"].pop("city"), "needs city: a text"),
        ("pairs.jsonl:4", lambda row: row["values"].update(colour="red"), "commute-bus has no facet 'colour'; it has"),
        ("pairs.jsonl:4", lambda row: row["values"].update(ride_type="sleigh"), 'ride_type "sleigh": it is one of eco'),
        ("pairs.jsonl:4", lambda row: row.update(flow="bus"), "there is no flow 'bus'; there are commute-rule, "),
        ("pairs.jsonl:4", lambda row: row.update(user="u9"), "there is no user 'u9' in users.jsonl"),
        ("pairs.jsonl:4", lambda row: row.update(session="x"), "user u01 has no session 'x' in sessions.jsonl"),
        ("pairs.jsonl:4", lambda row: row.update(form="shouted"), "'form' is 'shouted': Input should be 'explicit'"),
        (
            "meta.jsonl:1",
            lambda row: row.update(world="0" * 64),
            "made in the world 000000000000..., but this world is",
        ),
        ("meta.jsonl:1", lambda row: row.update(version=7), "'version' is 7: Input should be less than or equal to 1"),
    ],
)
def test_malformed_source_is_reported_with_file_and_line(
    tmp_path: Path, place: str, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    file, _, line = place.partition(":")
    with pytest.raises(DataError) as caught:
        read_source(with_changed_row(tmp_path / "source", file, int(line), change))
    assert str(caught.value).startswith(f"{tmp_path / 'source' / place}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        ("pairs.jsonl:25", lambda row: row.update(query="I am hungry."), "missing: start 'work' "),
        (
            "pairs.jsonl:19",
            lambda row: row.update(query="Calm music, please."),
            "leak: 'Calm' says something about mood",
        ),
        ("sessions.jsonl:28", lambda row: row["turns"][-1].update(text="Bye."), ""),
        ("sessions.jsonl:30", lambda row: _falsify(row), "wrong past call: "),
    ],
)
def test_edited_source_is_checked_again(
    tmp_path: Path, place: str, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    file, _, line = place.partition(":")
    folder = with_changed_row(tmp_path / "source", file, int(line), change)
    assert read_source(folder) != SOURCE
    if not message:
        assert read_source(folder, thorough=True) != SOURCE
        return
    with pytest.raises(DataError) as caught:
        read_source(folder, thorough=True)
    assert str(caught.value).startswith(f"{folder / place}: ")
    assert message in str(caught.value)


def _falsify(row: dict[str, Any]) -> None:
    next(turn for turn in row["turns"] if "output" in turn)["output"] = {"status": "perfect"}


def test_source_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"meta\.jsonl: there is no such file"):
        read_source(tmp_path)
    shutil.copytree(FOLDER, tmp_path / "source")
    (tmp_path / "source" / "users.jsonl").write_text("")
    with pytest.raises(DataError, match=r"users\.jsonl: the file is empty"):
        read_source(tmp_path / "source")
