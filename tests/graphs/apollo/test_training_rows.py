"""Rows for trainers: what is in them, that the reward finds gold right in them, and that a split keeps users apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import dialoom
from dialoom.apollo_reward import compute_score, reward
from tests.conftest import Command, lines_of
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import Agent, gold_lines, played

MADE = source()
LINES = {pair.query: gold_lines(pair) for pair in MADE.pairs.values()}
Rows = list[dict[str, Any]]


def exported(folder: Path, run: dialoom.Run, format_: str, rows: str) -> Rows:
    """The rows of a format, which are the same as Parquet."""
    run.export(format_, folder / "rows.jsonl", options={"rows": rows})
    run.export(format_, folder / "rows.parquet", encoding="parquet", options={"rows": rows})
    made = lines_of(folder / "rows.jsonl")
    assert pyarrow.parquet.read_table(folder / "rows.parquet").to_pylist() == made
    return made


def test_an_episode_is_the_prompt_that_the_agent_got_and_all_gold_calls(tmp_path: Path) -> None:
    """Whatever the agent made of it; TRL's columns and verl's say the same."""
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


def test_a_step_is_the_right_dialogue_so_far_and_the_next_call(tmp_path: Path) -> None:
    """As the agent that plays gold was asked turn by turn; at the end there is nothing left but [Finish]."""
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


def test_what_is_learnt_is_what_gold_says(tmp_path: Path) -> None:
    """Step by step, each after the right turns before it, and whole."""
    run = played(tmp_path, Agent(LINES), MADE)
    steps = exported(tmp_path, run, "sft", "step")
    assert [row["completion"][0]["content"] for row in steps] == [line for lines in LINES.values() for line in lines]
    assert all(row["prompt"][-1]["role"] == "user" for row in steps)
    wholes = [row["messages"] for row in exported(tmp_path, run, "sft", "episode")]
    assert wholes == [
        row["prompt"] + row["completion"] for row in steps if row["completion"][0]["content"] == "[Finish]"
    ]


@pytest.mark.parametrize("framework", ["reminder", "memory", "rag", "reflexion"])
def test_rows_help_the_agent_as_its_first_attempt_was(tmp_path: Path, framework: str) -> None:
    """With the notes and the sessions that it had; never with a failed attempt."""
    agent = Agent({query: ["Well.", "Well."] for query in LINES})

    async def notes(messages: Sequence[Any]) -> str:
        return json.dumps({"notes": [messages[-1]["content"].split()[3]]})

    models = {"memory": notes} if framework == "memory" else None
    run = played(tmp_path, agent, MADE, framework=(framework,), models=models, limit=1)
    (row,) = exported(tmp_path, run, "grpo", "episode")
    assert row["prompt"] == agent.sent[0]
    assert row["framework"] == framework


def test_a_split_keeps_users_on_one_side(dialoom: Command, tmp_path: Path) -> None:
    """Two files and a card, of a run with an offline model: rows need its prompts, and nothing of what it said."""
    dialoom("run", "apollo", "--model", "assistant=offline/generic", "--length", "2k", "--sample", 4, "-o", "r.db")
    dialoom("export", "r.db", "--format", "grpo", "--rows", "step", "--test-share", "0.5", "-o", "rl")
    users = [{row["user"] for row in lines_of(tmp_path / "rl" / f"{part}.jsonl")} for part in ("train", "test")]
    assert all(users) and not users[0] & users[1]
    assert "reinforcement-learning" in (tmp_path / "rl" / "README.md").read_text()
