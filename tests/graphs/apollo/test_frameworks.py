"""APOLLO's frameworks: what each adds to the agent's request, and when a further attempt is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dialoom.graphs.tables import share_of
from dialoom.personas.apollo.scores import format_call
from dialoom.personas.apollo.source import build_history
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import FINISH, Agent, Messages, gold_lines, played, scores

PAIR = source(["flight"]).pairs["flight-1"]
GOLD = gold_lines(PAIR)


def first_of(agent: Agent) -> tuple[str, str]:
    """Return the system message and the first user message."""
    system, user = agent.sent[0][:2]
    return system["content"], user["content"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the first messages of the baseline."""
    agent = Agent({PAIR.query: GOLD})
    played(tmp_path_factory.mktemp("plain"), agent, source(["flight"]), limit=1)
    return first_of(agent)


def test_reminder_adds_a_rule_to_the_system_message(tmp_path: Path, plain: tuple[str, str]) -> None:
    agent = Agent({PAIR.query: GOLD})
    played(tmp_path, agent, source(["flight"]), framework=("reminder",), limit=1)
    system, user = first_of(agent)
    assert user == plain[1]
    known = plain[0].splitlines()
    first, *others = [line for line in system.splitlines() if line not in known]
    assert first.startswith("- ") and "prefers" in first and all(line.startswith("  ") for line in others)


def test_memory_notes_each_session_once_for_all_samples(tmp_path: Path, plain: tuple[str, str]) -> None:
    requests: list[str] = []

    async def memory(messages: Messages) -> str:
        session = messages[1]["content"]
        requests.append(session)
        if "number 1:" in session:
            return "I cannot do that."
        return json.dumps({"notes": ["Flies direct.", "Pays by card."] if "I want this" in session else []})

    agent = Agent({PAIR.query: GOLD})
    options = {"framework": ("memory",), "length": ("2k", "4k")}
    run = played(tmp_path, agent, source(["flight"]), models={"memory": memory}, **options)
    short, long = run.episodes()
    place = short.facets["place"]
    system, user = first_of(agent)
    assert f"<notes>\nsession {place}: Flies direct.\nsession {place}: Pays by card.\n</notes>" in system
    assert user == plain[1]
    again = sum("number 1:" in session for session in requests) > 0
    assert len(requests) == long.facets["sessions"] + again, "a shorter history's sessions are among the longer one's"
    assert long.outcome.details["notes"] == [
        {"session": long.facets["place"], "text": text} for text in ("Flies direct.", "Pays by card.")
    ]


def test_unreadable_notes_are_counted_and_shown(tmp_path: Path) -> None:
    async def memory(messages: Messages) -> str:  # noqa: ARG001
        return "I cannot do that."

    models = {"memory": memory}
    run = played(tmp_path, Agent({PAIR.query: GOLD}), source(["flight"]), models=models, framework=("memory",))
    (episode,) = run.episodes()
    assert episode.outcome.details["notes"] == []
    assert episode.outcome.details["unread"] == [*range(1, int(episode.facets["sessions"]) + 1)]
    assert episode.outcome.details["flags"] == ["unread_notes"]
    assert any("session 1: (the reply could not be read)" in line.content for line in episode.outcome.messages)
    (table,) = [table for table in run.report().tables if table.name == "dialogues"]
    assert dict(zip(table.columns, table.rows[0], strict=True))["unread notes"] == 1


def test_rag_shows_three_sessions_with_their_numbers(tmp_path: Path) -> None:
    made = source(["flight"])
    agent = Agent({PAIR.query: GOLD})
    (episode,) = played(tmp_path, agent, made, framework=("rag",), limit=1).episodes()
    found = episode.outcome.details["retrieved"]
    sessions = build_history(made, PAIR, length=2000).sessions
    shown = first_of(agent)[1].split("<conversation_history>\n")[1].split("\n</conversation_history>")[0]
    wanted = [f'<session n="{n}">\n' + "\n".join(sessions[n - 1].lines) + "\n</session>" for n in found]
    assert found == sorted(found) and len(found) == 3
    assert shown.split("\n", 1)[1] == "\n".join(wanted)
    assert episode.outcome.details["hit"] == (episode.facets["place"] in found)


def test_reflexion_shows_a_failed_attempt_and_scores_the_last(tmp_path: Path) -> None:
    made = source(["flight"])
    sent: list[Messages] = []

    async def agent(messages: Messages) -> str:
        sent.append([dict(each) for each in messages])
        turn = len(messages) // 2 - 1
        if "<failed_attempt>" not in messages[1]["content"]:
            return [GOLD[0], "I leave it at that.", FINISH][turn]
        return GOLD[turn]

    (episode,) = played(tmp_path, agent, made, framework=("reflexion",), reflections=3).episodes()
    assert scores(episode) == (True, 1.0)
    assert episode.outcome.counts["attempts"] == 2
    assert [call["name"] for call in episode.outcome.details["attempts"][0]] == ["search_flight"]
    shown = sent[-1][1]["content"].split("<failed_attempt>\n")[1]
    rows = len(episode.outcome.details["outputs"][0])
    assert shown.startswith("assistant: search_flight(") and f"\ntool: {rows} rows\nflight_id FL" in shown
    assert "\nassistant: I leave it at that.\n" in shown and "book_flight" not in shown
    assert len(next(each for each in sent if "<failed_attempt>" in each[1]["content"])) == 2


def test_reflexion_ends_when_its_attempts_are_used(tmp_path: Path) -> None:
    agent: Any = Agent({PAIR.query: ["No.", "No."]})
    (episode,) = played(tmp_path, agent, source(["flight"]), framework=("reflexion",)).episodes()
    assert scores(episode) == (False, 0.0)
    assert (episode.outcome.counts["attempts"], episode.outcome.ended_by) == (2, "silent")


def test_latest_preference_counts_when_preferences_changed(tmp_path: Path) -> None:
    made = source(["flight"], sets=2)
    old, new = made.pairs["flight-1"], made.pairs["flight-2"]
    stale = new.request(made.world, made.users["u1"], old.preference).gold().plain()
    agent = Agent({new.query: [*map(format_call, stale), FINISH], old.query: gold_lines(old)})
    run = played(tmp_path, agent, made, evolving="yes")
    found = {episode.facets["pair"]: episode for episode in run.episodes()}
    assert scores(found["flight-1"]) == (True, 1.0)
    assert found["flight-1"].outcome.details["scores"]["stale"] is False
    assert found["flight-2"].outcome.details["scores"]["stale"] is True
    assert scores(found["flight-2"])[0] is False
    telling = [line for line in found["flight-2"].outcome.messages if re.match(r"session \d+\n", line.content)]
    assert len(telling) == 2
    (table,) = [table for table in run.report().tables if table.name == "evolving"]
    assert [row[-1] for row in table.rows] == [share_of(1, 2)]
