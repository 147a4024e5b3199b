"""Looking: what a session shows is to be seen without the file's lock, and nothing of it is written."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

import dialoom
from dialoom import Session
from dialoom.graphs import Outline
from dialoom.runs.stepping import ConditionError, Looking, NotBegunError, PathError, SteppingError, diff
from dialoom.runs.stepping.values import look
from tests.conftest import MadeOnce
from tests.runs.stepping.played import dialogue, shown, stepping, stood


def test_who_looks_sees_what_a_session_shows_while_another_holds_the_file(made_once: MadeOnce) -> None:
    """Stops, history, outcome and differences are those of a session, which has the lock meanwhile."""
    path = dialogue(made_once)
    run = dialoom.open_run(path)

    async def both(session: Session) -> None:
        branch = await session.fork("mine")
        await branch.edit("messages[0].content", "Good morning.")
        async with run.look(1) as looking:
            assert stood(await looking.stops()) == stood(await (await session.switch("main")).stops())
            assert [(each.number, each.parent) for each in await looking.history()] == [
                (each.number, each.parent) for each in await session.history()
            ]
            there = await looking.at("mine")
            assert shown(await there.here()) == shown(await branch.here())
            assert (await looking.outcome()) == (await session.outcome())
            difference = await diff(looking, there)
            assert difference.names == ("main", "mine")

    stepping(path, both)


def test_what_comes_next_is_shown_without_being_asked_and_the_file_stays_as_it_is(made_once: MadeOnce) -> None:
    """Not a byte is written; a place that is not there is named with those that are."""
    path = dialogue(made_once)
    before = sha256(path.read_bytes()).digest()

    async def look() -> None:
        async with dialoom.open_run(path).look(1, checkpoint=3) as looking:
            stop = await looking.here()
            assert stop.number == 3
            assert [asked.role for asked in await looking.next_requests()] == list(stop.next)
            with pytest.raises(SteppingError, match="no checkpoint '99'"):
                await looking.at("main", "99")
            with pytest.raises(SteppingError, match="no branch 'other'"):
                await looking.at("other")

    asyncio.run(look())
    assert sha256(path.read_bytes()).digest() == before


def test_one_looks_where_a_message_was_asked_for_and_where_a_condition_is_met(made_once: MadeOnce) -> None:
    """From there the next step asks for that message again; nothing is held or written."""
    run = dialoom.open_run(dialogue(made_once))
    messages = run.conversation(1).messages

    async def look() -> None:
        async with run.look(1) as looking:
            for message in messages:
                assert message.call is not None
                there = await looking.at("main", looking.number_before(message.call["step"]))
                transcript = (await there.here()).transcript
                assert not isinstance(transcript, Outline)
                assert len(transcript) == message.place
                assert [asked.role for asked in await there.next_requests()] == [message.line.role]
            with pytest.raises(SteppingError, match="main has no step 99"):
                looking.number_before(99)
            first = await looking.first_where(looking.condition("turn 2"))
            assert first.counts["turn"] == 2
            before = looking.numbers()[looking.numbers().index(first.number) - 1]
            assert (await (await looking.at("main", before)).here()).counts["turn"] < 2
            with pytest.raises(SteppingError, match="nowhere on main is turn 99 met"):
                await looking.first_where(looking.condition("turn 99"))

    asyncio.run(look())


def test_of_a_scenario_that_has_not_begun_there_is_nothing_to_see(tmp_path: Path) -> None:
    """It is not begun by looking."""
    run = dialoom.plan("personalens", path=tmp_path / "run.db", options={"limit": 1})

    async def look() -> Looking:
        async with run.look(1) as looking:
            return looking

    with pytest.raises(NotBegunError, match="has not begun"):
        asyncio.run(look())


def test_a_condition_that_is_none_is_no_damage_of_the_file(made_once: MadeOnce) -> None:
    """What was typed is named, and the run is not blamed."""

    async def act(path: Path) -> None:
        async with dialoom.open_run(path).look(1) as looking:
            await looking.first_where(looking.condition("turn three please"))

    with pytest.raises(ConditionError, match="'turn three please' is no condition"):
        asyncio.run(act(dialogue(made_once)))


def test_what_a_caller_raises_while_looking_is_no_damage_of_the_file(made_once: MadeOnce) -> None:
    """It comes as it is; neither is a place that the state has not."""

    async def act(path: Path, place: str) -> None:
        async with dialoom.open_run(path).look(1) as looking:
            look(looking.state, place)
            int("four")

    with pytest.raises(ValueError, match="invalid literal for int"):
        asyncio.run(act(dialogue(made_once), "messages"))
    with pytest.raises(PathError, match="the state has no 'nowhere'"):
        asyncio.run(act(dialogue(made_once), "nowhere"))
