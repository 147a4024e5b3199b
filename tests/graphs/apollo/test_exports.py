"""APOLLO's exports, training rows and error labels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import dialoom
from dialoom.apollo_reward import compute_score, reward
from dialoom.graphs.apollo import RECIPE
from dialoom.graphs.apollo.loop import kappa, label_error
from dialoom.personas.apollo.scores import format_call
from dialoom.personas.apollo.source import ApolloPair
from tests.conftest import Command, read_jsonl
from tests.graphs.apollo.invented import source, write
from tests.graphs.apollo.players import FINISH, Agent, Messages, gold_lines, played

MADE = source()
LINES = {pair.query: gold_lines(pair) for pair in MADE.pairs.values()}


def test_row_has_the_gold_calls_and_those_made(tmp_path: Path) -> None:
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


def test_history_shows_the_relevant_session_and_calls(tmp_path: Path) -> None:
    run = played(tmp_path, Agent(LINES), MADE)
    episode = next(each for each in run.episodes() if each.facets["pair"] == "music-1")
    said = [(line.role, line.content) for line in episode.outcome.messages]
    place, n = episode.facets["place"], episode.facets["sessions"]
    folded = [f"sessions 1 to {place - 1} are about other things"] if place > 2 else []
    after = [f"sessions {place + 1} to {n} are about other things"] if place < n - 1 else []
    history = [text for role, text in said if role == "history"]
    (relevant,) = [text for text in history if text.startswith(f"session {place}\n")]
    assert history == [*folded, relevant, *after]
    assert "\nuser: I want this: genre " in relevant and "\nassistant: search_music(" in relevant
    assert [role for role, _ in said][-4:] == ["user", "assistant", "tool", "assistant"]
    assert said[-3][1].startswith('search_music(genre="') and said[-1][1] == "[Finish]"
    assert said[-2][1].splitlines()[0] == "6 rows" and said[-2][1].splitlines()[1].startswith("track_id TR")


def test_interrupted_run_gives_the_same_bytes(tmp_path: Path) -> None:
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


async def test_person_can_replace_the_agents_reply_with_a_call(tmp_path: Path) -> None:
    whole = await asyncio.to_thread(played, tmp_path, Agent(LINES), MADE, limit=1)
    async with whole.step(1) as session:
        await session.goto_where(session.condition("agent"))
        stop = await session.say("assistant", format_call({"name": "get_distance", "arguments": {"city": "Nowhere"}}))
        assert stop.counts == {"turn": 1, "call": 1}
        await session.run()
        outcome = await session.outcome()
    assert "error" in outcome.details["outputs"][0]
    assert outcome.details["flags"] == ["failed_call"]
    assert len(outcome.details["calls"]) == len(outcome.details["gold"])


Rows = list[dict[str, Any]]


def exported(folder: Path, run: dialoom.Run, format_: str, rows: str) -> Rows:
    """Return the rows of a format, which are the same in Parquet."""
    run.export(format_, folder / "rows.jsonl", options={"rows": rows})
    run.export(format_, folder / "rows.parquet", encoding="parquet", options={"rows": rows})
    made = read_jsonl(folder / "rows.jsonl")
    assert pyarrow.parquet.read_table(folder / "rows.parquet").to_pylist() == made
    return made


def test_episode_row_is_the_prompt_and_all_gold_calls(tmp_path: Path) -> None:
    agent = Agent({**LINES, next(iter(LINES)): ["Well.", "Well."]})
    rows = exported(tmp_path, played(tmp_path, agent, MADE), "grpo", "episode")
    first = [sent for sent in agent.sent if len(sent) == 2]
    assert [row["prompt"] for row in rows] == first and len(rows) == 3
    for row, pair in zip(rows, MADE.pairs.values(), strict=True):
        assert json.loads(row["gold_calls"]) == pair.calls()
        assert row["reward_model"] == {"style": "rule", "ground_truth": row["gold_calls"]}
        assert (row["pair"], row["user"], row["data_source"]) == (pair.id, "u1", "dialoom/apollo")
        tools = [json.dumps(tool, ensure_ascii=False) for tool in json.loads(row["tools"])]
        assert len(tools) == 8 and all(tool in row["prompt"][0]["content"] for tool in tools)
        assert (row["agent_name"], row["extra_info"]["world_seed"]) == ("tool_agent", 0)
    right = ["\n".join(LINES[pair.query]) for pair in MADE.pairs.values()]
    assert reward(right, [row["gold_calls"] for row in rows]) == [1.0] * 3


def test_step_row_is_the_dialogue_so_far_and_the_next_call(tmp_path: Path) -> None:
    agent = Agent(LINES)
    run = played(tmp_path, agent, MADE)
    rows = exported(tmp_path, run, "grpo", "step")
    asked = sorted(agent.sent, key=json.dumps)
    assert sorted((row["prompt"] for row in rows), key=json.dumps) == asked
    assert [row["step"] for row in rows] == [n for lines in LINES.values() for n in range(1, len(lines) + 1)]
    said = [line for lines in LINES.values() for line in lines]
    assert [compute_score("", line, row["gold_calls"])["acc"] for line, row in zip(said, rows, strict=True)] == [
        1.0
    ] * len(rows)
    wrong = [compute_score("", line, row["gold_calls"])["acc"] for line, row in zip(said[1:], rows, strict=False)]
    assert sum(wrong) == 0
    assert {row["agent_name"] for row in rows} == {"single_turn_agent"}
    assert len({row["extra_info"]["index"] for row in rows}) == len(rows)


def test_targets_are_the_gold_calls(tmp_path: Path) -> None:
    run = played(tmp_path, Agent(LINES), MADE)
    steps = exported(tmp_path, run, "sft", "step")
    assert [row["completion"][0]["content"] for row in steps] == [line for lines in LINES.values() for line in lines]
    assert all(row["prompt"][-1]["role"] == "user" for row in steps)
    wholes = [row["messages"] for row in exported(tmp_path, run, "sft", "episode")]
    assert wholes == [
        row["prompt"] + row["completion"] for row in steps if row["completion"][0]["content"] == "[Finish]"
    ]


@pytest.mark.parametrize("framework", ["reminder", "memory", "rag", "reflexion"])
def test_rows_have_the_prompt_of_the_first_attempt(tmp_path: Path, framework: str) -> None:
    agent = Agent({query: ["Well.", "Well."] for query in LINES})

    async def notes(messages: Sequence[Any]) -> str:
        return json.dumps({"notes": [messages[-1]["content"].split()[3]]})

    models = {"memory": notes} if framework == "memory" else None
    run = played(tmp_path, agent, MADE, framework=(framework,), models=models, limit=1)
    (row,) = exported(tmp_path, run, "grpo", "episode")
    assert row["prompt"] == agent.sent[0]
    assert row["framework"] == framework


def test_split_keeps_users_on_one_side(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "apollo", "--model", "assistant=offline/generic", "--length", "2k", "--sample", 4, "-o", "r.db")
    dialoom("export", "r.db", "--format", "grpo", "--rows", "step", "--test-share", "0.5", "-o", "rl")
    users = [{row["user"] for row in read_jsonl(tmp_path / "rl" / f"{part}.jsonl")} for part in ("train", "test")]
    assert all(users) and not users[0] & users[1]
    assert "reinforcement-learning" in (tmp_path / "rl" / "README.md").read_text()


ERROR_SOURCE = source(["flight", "commute-bus", "commute-rule"])
FLIGHT, BUS, RULE = ERROR_SOURCE.pairs.values()


def altered(pair: ApolloPair, at: int, name: str, value: Any) -> list[dict[str, Any]]:
    """Return the gold calls with one argument changed; `None` leaves it out."""
    calls = pair.calls()
    arguments = {key: given for key, given in calls[at]["arguments"].items() if key != name or value is not None}
    calls[at] = {**calls[at], "arguments": {**arguments, **({} if value is None else {name: value})}}
    return calls


def other(pair: ApolloPair) -> list[dict[str, Any]]:
    """Return the gold calls with a last call that follows from the flow's other rule."""
    *looked_up, last = pair.calls()
    ends = {"request_ride": ("ride_type", "comfort"), "transport_recommendation": ("mode", "bike")}
    (name, (decided, value)) = next((name, end) for name, end in ends.items() if name != last["name"])
    way = {key: given for key, given in last["arguments"].items() if key.startswith(("city", "location"))}
    return [*looked_up, {"name": name, "arguments": {**way, decided: value}}]


@pytest.mark.parametrize(
    ("pair", "made", "asked", "label"),
    [
        (FLIGHT, FLIGHT.calls(), False, None),
        (FLIGHT, [], False, "unhelpful"),
        (FLIGHT, [], True, "unawareness"),
        (FLIGHT, FLIGHT.calls()[:1], True, "unawareness"),
        (FLIGHT, altered(FLIGHT, 1, "payment_method", None), False, "unawareness"),
        (FLIGHT, altered(FLIGHT, 1, "payment_method", "cash"), False, "hallucination"),
        (FLIGHT, altered(FLIGHT, 1, "flight_id", "FL100"), False, "hallucination"),
        (FLIGHT, altered(FLIGHT, 0, "date", "2027-03-01"), False, "tool_related"),
        (FLIGHT, altered(FLIGHT, 0, "from_city", "Nowhere"), False, "tool_related"),
        (FLIGHT, altered(FLIGHT, 0, "seat", "12A"), False, "tool_related"),
        (FLIGHT, [{"name": "search_flight", "arguments": "no JSON"}], False, "tool_related"),
        (FLIGHT, FLIGHT.calls()[:1], False, "tool_related"),
        (FLIGHT, [*FLIGHT.calls(), *FLIGHT.calls()], False, "tool_related"),
        (FLIGHT, FLIGHT.calls()[1:], False, "tool_related"),
        (BUS, other(BUS), False, "hallucination"),
        (BUS, other(BUS)[-1:], False, "tool_related"),
        (RULE, [*RULE.calls()[:1], RULE.calls()[-1]], False, "hallucination"),
        (RULE, RULE.calls()[-1:], False, "tool_related"),
    ],
)
def test_first_wrong_call_gives_the_label(pair: ApolloPair, made: Any, asked: bool, label: str | None) -> None:
    assert label_error(pair.flow, pair.gold, made, asked) == label


def test_omitted_default_is_no_error() -> None:
    for pair in ERROR_SOURCE.pairs.values():
        for at, call in enumerate(pair.gold):
            for name, value in call.arguments.items():
                if value is False:
                    assert label_error(pair.flow, pair.gold, altered(pair, at, name, None), False) is None


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [([], None), (["aa", "aa"], None), (["aa", "bb"], 1.0), (["ab", "ba"], -1.0), (["aa", "ab", "bb", "bb"], 0.5)],
)
def test_kappa_by_hand(pairs: list[str], wanted: float | None) -> None:
    assert kappa([(both[0], both[1]) for both in pairs]) == wanted


def test_judge_labels_failed_samples_only(tmp_path: Path) -> None:
    lines = {
        FLIGHT.query: [*map(format_call, FLIGHT.calls()), FINISH],
        BUS.query: [*map(format_call, other(BUS)), FINISH],
        RULE.query: ["Well.", "Well."],
    }
    run = played(tmp_path, Agent(lines), ERROR_SOURCE)
    seen: list[str] = []

    async def judge(messages: Messages) -> str:
        seen.append(messages[1]["content"])
        wrong = "Well." in messages[1]["content"]
        return "It is hard to say." if wrong else json.dumps({"label": "unawareness", "explanation": "so"})

    run.judge(judge, name="why")
    found = {episode.facets["pair"]: episode.outcome for episode in run.episodes("why")}
    words = {
        pair: [(each.metric, each.score, each.status) for each in outcome.judgements] for pair, outcome in found.items()
    }
    assert words["flight-1"] == [("accuracy", True, "ok"), ("f1", 1.0, "ok")]
    labels = ("unhelpful", "unawareness", "hallucination", "tool_related")
    assert words["commute-bus-1"][2:] == [(label, label == "unawareness", "ok") for label in labels]
    assert words["commute-rule-1"][2:] == [(label, None, "unparsed") for label in labels]
    bus = next(text for text in seen if BUS.query in text)
    assert bus.count("assistant: ") == 3 and "I want this" not in bus and BUS.calls()[-1]["name"] in bus
    (table,) = [table for table in run.report("why").tables if table.name == "errors"]
    shown = [[getattr(cell, "mean", cell) for cell in row[2:]] for row in table.rows]
    assert shown == [["rule", 2, 0.5, 0.0, 0.5, 0.0, None], ["judge", 1, 0.0, 1.0, 0.0, 0.0, 0.0]]


def test_larger_sample_of_failures_extends_a_smaller_one(tmp_path: Path) -> None:
    lines = {pair.query: ["Well.", "Well."] for pair in (FLIGHT, BUS)}
    lines[RULE.query] = [*map(format_call, RULE.calls()), FINISH]
    run = played(tmp_path, Agent(lines), ERROR_SOURCE)
    seen: list[str] = []

    async def judge(messages: Messages) -> str:
        seen.append(next(pair.id for pair in (FLIGHT, BUS, RULE) if pair.query in messages[1]["content"]))
        return json.dumps({"label": "unhelpful", "explanation": "so"})

    for sample, count in ((1, 1), (1, 1), (5, 2)):
        run.judge(judge, name="why", sample=sample)
        assert len(seen) == count
    assert sorted(seen) == sorted([FLIGHT.id, BUS.id])
    run.judge(judge, name="flights", where="flow == 'flight'")
    assert seen[2:] == [FLIGHT.id]
    for wrong, message in (
        ({"where": "flow == 'music'"}, "no scenarios to judge where"),
        ({"sample": 0}, "sample must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(dialoom.DialoomError, match=message):
            run.judge(judge, name="none", **wrong)
