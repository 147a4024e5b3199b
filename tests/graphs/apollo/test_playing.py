"""APOLLO's agent: requests, answers to its turns, and the rules of its loop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dialoom import Episode
from dialoom.graphs.apollo.loop import collect_calls, find_ending, find_flags
from dialoom.personas.apollo.scores import AgentTurn, format_call
from dialoom.personas.apollo.source import ApolloSource, build_first_message, build_history
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import FINISH, Agent, Messages, episodes, gold_lines, played, scores

MADE = source()
PAIR = MADE.pairs["commute-rule-1"]
A, B, C, _ = GOLD = gold_lines(PAIR)
BROKEN = A.replace("{", "{,", 1)
UNKNOWN = format_call({"name": "teleport", "arguments": {}})
UNSAID = format_call({"name": "get_weather", "arguments": {}})
LAST = PAIR.calls()[-1]
ALTERED = format_call({**LAST, "arguments": {**LAST["arguments"], "location_2": "Nowhere"}})
WORDS = "Well, which one?"


def test_gold_calls_score_one_on_every_sample(tmp_path: Path) -> None:
    agent = Agent({pair.query: gold_lines(pair) for pair in MADE.pairs.values()})
    found = list(played(tmp_path, agent, MADE, length=("2k", "4k")).episodes())
    assert len(found) == 6
    for episode in found:
        outcome, facets = episode.outcome, episode.facets
        assert scores(episode) == (True, 1.0), episode.id
        assert outcome.ended_by == "finished" and outcome.details["flags"] == []
        assert outcome.counts["turns"] == len(outcome.details["gold"]) + 1
        made = build_history(MADE, MADE.pairs[facets["pair"]], length=facets["length"])
        first = build_first_message(MADE.users["u1"], MADE.pairs[facets["pair"]], made.sessions)
        system, _ = next(sent for sent in agent.sent if len(sent) == 2 and sent[1]["content"] == first)
        assert (facets["tokens"], facets["place"]) == (made.tokens, made.place) == (-(-len(first) // 4), made.place)
        shown = system["content"].split("<tools>\n")[1].split("\n</tools>")[0].splitlines()
        assert tuple(json.loads(line)["function"]["name"] for line in shown) == made.tools


TURNS: Mapping[str, tuple[list[str], tuple[bool, float], str, list[str]]] = {
    "swapped": ([B, A, C], (False, 1.0), "finished", []),
    "dropped": ([A], (False, 0.5), "finished", []),
    "repeated": ([A, A, B, C], (False, 1.0), "finished", []),
    "altered": ([A, B, ALTERED], (False, 0.666667), "finished", ["failed_call"]),
    "broken": ([BROKEN, A, B, C], (False, 0.857143), "finished", ["failed_call"]),
    "unknown": ([UNKNOWN, A, B, C], (False, 0.857143), "finished", ["failed_call"]),
    "unsaid": ([UNSAID, A, B, C], (False, 0.857143), "finished", ["failed_call"]),
    "at once": ([A + B + C], (True, 1.0), "finished", ["parallel"]),
    "mixed": ([f"First this. {A}", B, C], (True, 1.0), "finished", ["mixed"]),
    "words between": ([A, WORDS, B, C], (True, 1.0), "finished", ["asked"]),
    "empty": (["", A, B, C], (True, 1.0), "finished", ["empty"]),
    "late": ([A, B, C, f"All is done. {FINISH}"], (True, 1.0), "finished", ["late_finish"]),
    "no end": ([A, B, C, "All is done.", "Really."], (True, 1.0), "silent", []),
    "silent": (["Well.", "Well."], (False, 0.0), "silent", []),
    "endless": ([A] * 20, (False, 0.5), "turn_limit", []),
}


def in_turns() -> ApolloSource:
    """Return a source with a copy of the pair for each case of `TURNS`, with different requests."""
    pairs = [PAIR.model_copy(update={"id": name, "query": f"{PAIR.query} ({name})"}) for name in TURNS]
    return ApolloSource.of(MADE.users.values(), MADE.sessions.values(), pairs, MADE.meta)


@pytest.fixture(scope="module")
def played_turns(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Episode], dict[str, Messages]]:
    """Return the episodes and the longest requests of `TURNS`, by name."""
    made = in_turns()
    agent = Agent({pair.query: TURNS[name][0] for name, pair in made.pairs.items()})
    found = episodes(played(tmp_path_factory.mktemp("turns"), agent, made))
    sent = {name: [each for each in agent.sent if f"({name})" in each[1]["content"]] for name in TURNS}
    return found, {name: max(several, key=len) for name, several in sent.items()}


@pytest.mark.parametrize("name", TURNS)
def test_turns_score_as_computed_by_hand(name: str, played_turns: Any) -> None:
    _, wanted, ending, flags = TURNS[name]
    episode = played_turns[0][name]
    assert scores(episode) == wanted
    assert (episode.outcome.ended_by, episode.outcome.details["flags"]) == (ending, flags)


def test_other_readings_are_kept_beside_the_scores(played_turns: Any) -> None:
    found = {name: episode.outcome.details["scores"] for name, episode in played_turns[0].items()}
    assert found["swapped"]["any_order"] and not found["swapped"]["strict"]
    assert round(found["repeated"]["f1_multiset"], 6) == 0.857143
    assert found["broken"]["actions"] and not found["altered"]["actions"]
    assert found["swapped"]["stale"] is None


def test_text_gets_a_fixed_answer_and_an_error_a_correction(played_turns: Any) -> None:
    sent = played_turns[1]
    between, broken, together = sent["words between"], sent["broken"], sent["at once"]
    assert [each["role"] for each in between] == ["system", *["user", "assistant"] * 4, "user"]
    assert between[4:6] == [{"role": "assistant", "content": WORDS}, between[5]]
    assert "nothing more" in between[5]["content"] and FINISH in between[5]["content"]
    assert "give one JSON object" in broken[3]["content"] and broken[2]["content"] == BROKEN
    assert together[3]["content"].count("<tool_response>") == 3 and len(together) == 4
    assert "there is no tool" in sent["unknown"][3]["content"]


def test_turn_limit_can_be_set(tmp_path: Path) -> None:
    agent = Agent({PAIR.query: GOLD})
    (episode,) = played(tmp_path, agent, MADE, turn_limit=3, limit=1).episodes()
    assert scores(episode) == (True, 1.0)
    assert episode.outcome.ended_by == "turn_limit"
    assert len(episode.outcome.details["outputs"]) == 3


CALL = {"name": "a", "arguments": "{}"}
TALK, EMPTY, DONE = AgentTurn("Well.", ()), AgentTurn("", ()), AgentTurn("[Finish]", ())
ONE, TWO = AgentTurn("", (CALL,)), AgentTurn("", (CALL, CALL))


@pytest.mark.parametrize(
    ("turns", "wanted"),
    [
        ([], None),
        ([ONE], None),
        ([ONE, DONE], "finished"),
        ([AgentTurn("All is booked. [finish]", ())], "finished"),
        ([AgentTurn("[Finish]", (CALL,))], None),
        ([TALK], None),
        ([TALK, TALK], "silent"),
        ([TALK, ONE, TALK], None),
        ([TALK, ONE, EMPTY, EMPTY], "silent"),
        ([ONE] * 11, None),
        ([ONE] * 12, "turn_limit"),
        ([*[ONE] * 11, DONE], "finished"),
        ([*[ONE] * 10, TALK, TALK], "silent"),
        ([*[ONE] * 11, TALK], "turn_limit"),
    ],
)
def test_loop_ends_by_finish_silence_or_limit(turns: list[AgentTurn], wanted: str | None) -> None:
    assert find_ending(turns, 12) == wanted


@pytest.mark.parametrize(
    ("turns", "outputs", "wanted"),
    [
        ([ONE, DONE], [{}], []),
        ([TWO], [[], {}], ["parallel"]),
        ([AgentTurn("I call it.", (CALL,))], [{}], ["mixed"]),
        ([AgentTurn("Which one? I need to know.", ())], [], ["asked"]),
        ([AgentTurn("See http://a.b/?q=1.", ())], [], []),
        ([AgentTurn("Done. [Finish]", ())], [], ["late_finish"]),
        ([EMPTY], [], ["empty"]),
        ([ONE], [{"error": "no"}], ["failed_call"]),
        (
            [AgentTurn("Shall I?", (CALL, CALL)), EMPTY],
            [{"error": "no"}, {}],
            ["parallel", "mixed", "asked", "empty", "failed_call"],
        ),
    ],
)
def test_odd_turns_are_flagged(turns: list[AgentTurn], outputs: list[object], wanted: list[str]) -> None:
    assert find_flags(turns, outputs) == wanted


def test_all_calls_of_all_turns_count_in_order() -> None:
    other = {"name": "b", "arguments": "no", "id": "x"}
    assert collect_calls([ONE, TALK, AgentTurn("", (other, CALL)), DONE]) == [
        CALL,
        {"name": "b", "arguments": "no"},
        CALL,
    ]
