"""Rows of any dialogue for trainers, `sft` and `sharegpt`, with system messages and tool calls; and charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import DialoomError
from tests.api.test_simulate import simulated
from tests.conftest import Command, read_jsonl
from tests.graphs.support import scripted
from tests.runs.test_environments import HONEST, played

METRICS = ["resolved.assistant", "gave_number.assistant"]


def exported(run: dialoom.Run, format_: str, **options: Any) -> dict[str, Any]:
    """Return the first row of an export."""
    target = run.path.with_name(f"{format_}.jsonl")
    run.export(format_, target, options=options)
    row: dict[str, Any] = read_jsonl(target)[0]
    return row


def test_training_rows_have_the_studys_system_message_another_or_none(tmp_path: Path, dialoom: Command) -> None:
    run = simulated(tmp_path, system="You run a shop.", user=scripted(["A kettle is broken.", "Thanks. DONE"]))
    lines = [("user", "A kettle is broken."), ("assistant", "Sure, case AB-1.")]
    row = exported(run, "sft")
    assert list(row) == ["id", "messages"]
    messages = [{"role": role, "content": content} for role, content in lines]
    assert row["messages"] == [{"role": "system", "content": "You run a shop."}, *messages]
    assert exported(run, "sft", system="none")["messages"] == messages
    assert exported(run, "sharegpt", system="Be kind.")["conversations"] == [
        {"from": "system", "value": "Be kind."},
        {"from": "human", "value": "A kettle is broken."},
        {"from": "gpt", "value": "Sure, case AB-1."},
    ]
    dialoom("export", run.path, "--format", "sft", "--system", "none", "-o", "none.jsonl")
    assert [each["messages"] for each in read_jsonl(tmp_path / "none.jsonl")] == [messages] * 4


def test_tool_calls_are_exported_in_the_trainers_form(tmp_path: Path) -> None:
    run = played(tmp_path / "run.db", HONEST)
    row = exported(run, "sft")
    *_, called, result, answered = row["messages"]
    assert [row["messages"][0]["role"], row["messages"][1]["role"], answered["role"]] == ["system", "user", "assistant"]
    (call,) = called["tool_calls"]
    assert call == {"type": "function", "function": {"name": "refund", "arguments": call["function"]["arguments"]}}
    assert call["function"]["arguments"]["order_id"] == "A1"
    assert result == {"role": "tool", "content": "refunded 29.5", "name": "refund"}
    assert "refund" in [each["function"]["name"] for each in json.loads(row["tools"])]
    turns = exported(run, "sharegpt")["conversations"]
    assert [turn["from"] for turn in turns][-4:] == ["observation", "function_call", "observation", "gpt"]
    assert json.loads(turns[-3]["value"]) == called["tool_calls"][0]["function"]
    assert turns[-2]["value"] == "refunded 29.5"


def test_training_rows_of_a_recipe_are_available_as_sharegpt(tmp_path: Path) -> None:
    run = dialoom.play("aloe", path=tmp_path / "run.db", options={"rounds": 2, "limit": 1})
    for number, options in enumerate(({"round_range": "2"}, {"round_range": "2", "system": "Get to know the user."})):
        sft, given = exported(run, "sft", **options), exported(run, "sharegpt", **options)["conversations"]
        roles = ["system"] * number + ["human", "gpt", "human", "gpt"]
        assert [turn["from"] for turn in given] == roles
        messages = [*sft["prompt"], *sft["completion"]]
        assert [turn["value"] for turn in given] == [message["content"] for message in messages]


def test_charts_of_frames(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    bars = dialoom.chart(run.frame(), METRICS, tmp_path / "bars.svg", by="style", title="Styles")
    text = bars.read_text()
    assert [word in text for word in ("<!-- Styles -->", "<!-- brief -->", "<!-- mean -->")] == [True] * 3
    lines = dialoom.chart(run.frame("lines"), "line", tmp_path / "lines.png", by="role", over="number")
    assert lines.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DialoomError, match="the frame has no column 'mood'; it has number, id"):
        dialoom.chart(run.frame(), "mood", tmp_path / "mood.pdf")
    with pytest.raises(DialoomError, match="column 'ended_by' must hold numbers or verdicts, got 'user_satisfied'"):
        dialoom.chart(run.frame(), "ended_by", tmp_path / "ends.pdf")
    with pytest.raises(DialoomError, match=r"path must end in .png, .svg or .pdf, got 'bars.gif'"):
        dialoom.chart(run.frame(), "lines", "bars.gif")
    assert not list(tmp_path.glob("*.pdf"))
