"""APOLLO's understudies follow their documented rule, so their accuracy is exactly predictable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.apollo import RECIPE
from dialoom.personas.apollo import TOOLS, World, compare, execute
from dialoom.personas.apollo.scores import format_responses, parse_turn
from dialoom.personas.apollo.source import ApolloMeta, ApolloPair, ApolloSession, ApolloSource, build_history
from dialoom.personas.apollo.source.scripted import ERRANDS_PER_TOOL, build_user_part, draw_users
from dialoom.prompts import Utterance
from dialoom.roles.offline.apollo import parse_query
from tests.graphs.apollo.invented import write_source

from .asking import answer

PROMPTS = RECIPE.library()
HARD = ("facts", "tone")
SESSIONS_READ = 24


@lru_cache(maxsize=1)
def source() -> ApolloSource:
    """Return a source of one user, with a pair for each of three preferences for each flow."""
    world = World()
    people = draw_users(world, 1, 0)
    part = build_user_part(world, people[0], 2, ERRANDS_PER_TOOL, 0)
    return ApolloSource.of(people, part.sessions, part.pairs, ApolloMeta(seed=0, world=world.hash))


def play_agent(
    model: str, pair: ApolloPair, sessions: Sequence[ApolloSession], tools: Sequence[str], **helped: Any
) -> list[Any]:
    """Return the calls that an understudy makes until it has finished; each is answered by the tool."""
    made, turns = source(), list[Utterance]()
    definitions = [json.dumps(TOOLS[name].definition()) for name in tools]
    inputs = {
        "calling": PROMPTS["apollo/calling"].render({"tools": definitions})[0]["content"],
        "reminder": False,
        "notes": [],
        "user": made.users[pair.user].information(pair.today),
        "sessions": [{"number": n, "lines": session.lines} for n, session in enumerate(sessions, start=1)],
        "request": pair.query,
        "failed": [],
        **helped,
    }
    calls: list[Any] = []
    while True:
        messages = PROMPTS["apollo/agent"].render({**inputs, "history": turns})
        text = answer(model, messages, "apollo/agent", "assistant")
        if text == "[Finish]":
            return calls
        _, (call,) = parse_turn(text)
        calls.append(call)
        output = json.dumps(execute(made.world, call, tools))
        turns += [
            {"speaker": "assistant", "content": text},
            {"speaker": "tool", "content": format_responses([output])},
        ]


def is_right(calls: Sequence[Any], pair: ApolloPair) -> bool:
    """Return whether the calls are the gold ones."""
    return compare(calls, pair.calls()).accuracy


def test_every_query_is_understood() -> None:
    assert {pair.query_kind for pair in source().pairs.values()} == {"reactive", "proactive"}
    for pair in source().pairs.values():
        asked = parse_query(pair.query, pair.today)
        assert asked is not None and asked == (pair.flow, pair.slots), pair.query


def test_understanding_depends_on_form_and_place() -> None:
    """Facts and tones need a reminder or a failure to be understood; nothing after the 24th session is read."""
    seen = set()
    for number, pair in enumerate(list(source().pairs.values())[::2]):
        length = (2000, 12000)[number % 2]
        made = build_history(source(), pair, length=length)
        within = made.place <= SESSIONS_READ
        seen.add((pair.form in HARD, within))
        for helped, understood in (
            ({}, pair.form not in HARD),
            ({"reminder": True}, True),
            ({"failed": ["assistant: search_music()"]}, True),
        ):
            calls = play_agent("attentive", pair, made.sessions, made.tools, **helped)
            assert is_right(calls, pair) is (understood and within), (pair.id, helped)
    assert seen == {(True, True), (True, False), (False, True), (False, False)}


def test_three_sessions_are_understood_in_any_form() -> None:
    for pair in list(source().pairs.values())[::3]:
        made = build_history(source(), pair, length=2000)
        telling = made.sessions[made.place - 1]
        others = [session for session in made.sessions if session is not telling]
        assert is_right(play_agent("attentive", pair, [*others[:2], telling], made.tools), pair)
        assert not is_right(play_agent("attentive", pair, others[:3], made.tools), pair)


def test_notes_hold_every_form_and_nothing_unrelated() -> None:
    for pair in list(source().pairs.values())[::3]:
        made = build_history(source(), pair, length=4000, evolving=True)
        notes = [
            {"session": number, "text": text}
            for number, session in enumerate(made.sessions, start=1)
            for text in notes_on("attentive", session)
        ]
        assert {note["session"] for note in notes} == {*made.earlier, made.place}
        others = [session for session in made.sessions if session.kind == "unrelated"]
        assert is_right(play_agent("attentive", pair, others, made.tools, notes=notes), pair)


def notes_on(model: str, session: ApolloSession) -> list[str]:
    """Return the memory's notes on a session."""
    messages = PROMPTS["apollo/notes"].render({"session": session.lines})
    found: list[str] = json.loads(answer(model, messages, "apollo/notes", "memory"))["notes"]
    return found


def test_generic_agent_is_never_right_and_makes_the_same_calls() -> None:
    scores = []
    for pair in source().pairs.values():
        made = build_history(source(), pair, length=2000)
        calls = play_agent("generic", pair, made.sessions, made.tools)
        assert calls == play_agent("generic", pair, made.sessions[:1], made.tools, reminder=True)
        scores.append(compare(calls, pair.calls()))
        telling = source().sessions[pair.session]
        assert bool(notes_on("generic", telling)) is (pair.form not in HARD)
    assert not any(score.accuracy for score in scores)
    assert 0 < sum(score.f1 for score in scores) / len(scores) < 0.5


def test_other_sessions_and_queries_are_left_alone() -> None:
    pair = next(pair for pair in source().pairs.values() if pair.flow == "flight" and pair.form == "explicit")
    made = build_history(source(), pair, length=2000)
    telling = source().sessions[pair.session]
    data = telling.model_dump()
    half = ApolloSession.model_validate({**data, "turns": data["turns"][:5]})
    assert play_agent("attentive", pair.model_copy(update={"query": "Do something."}), made.sessions, made.tools) == []
    assert [call["name"] for call in play_agent("attentive", pair, [half], made.tools)] == ["search_flight"]
    assert answer("attentive", [{"role": "user", "content": "Hello."}], "apollo/agent", "assistant")


@pytest.mark.parametrize("protocol", ["text", "native"])
def test_results_of_a_run_follow_the_stated_rule(tmp_path: Path, protocol: str) -> None:
    pairs = list(source().pairs.values())[::9]
    whole = source()
    write_source(tmp_path / "source", ApolloSource.of(whole.users.values(), whole.sessions.values(), pairs, whole.meta))
    frameworks = ("function-calling", "rag", "memory") if protocol == "text" else ("function-calling",)
    options = {"source": tmp_path / "source", "length": ("2k",), "framework": frameworks, "protocol": protocol}
    run = dialoom.play(RECIPE, path=tmp_path / "run.db", options=options)
    found = list(run.episodes())
    assert len(found) == len(pairs) * len(frameworks)
    for episode in found:
        facets, outcome = episode.facets, episode.outcome
        wanted = {"function-calling": facets["form"] not in HARD, "rag": outcome.details.get("hit"), "memory": True}[
            facets["framework"]
        ]
        assert outcome.judgements[0].score is wanted, episode.id
        assert (outcome.details["protocol"], outcome.ended_by) == (protocol, "finished")
