"""What a provider says of how a reply ended is kept with the line, shown, and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialoom import Model, play
from tests.conftest import Command
from tests.server import Answer, completion, ended, serving


def test_a_reply_that_broke_off_is_told(dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` says so below the line, `status` and the report count by role, an export has the provider's word."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    answers: dict[int, Answer] = {
        1: ended("I will set it for", "length"),
        2: ended("", "stop", reasoning_content="An alarm, hm."),
        3: completion("It is set."),
        4: ended(None, "stop", refusal="I will not say that."),
    }
    with serving(lambda _body, number: answers.get(number, completion("That is done."))) as server:
        _played(tmp_path / "run.db", server.url)
    shown = dialoom("show", "run.db", "1").stdout
    assert "I will set it for\n(cut off, as it was too long)" in shown
    assert "I will not say that.\n(refused)" in shown
    told = "1 cut off, 1 refused, 1 nothing but thoughts"
    assert f"replies of assistant: {told}" in dialoom("status", "run.db").stdout
    counted = json.loads(dialoom("status", "run.db", "--json").stdout)["roles"]["assistant"]["broken_off"]
    assert counted == {"cut off": 1, "refused": 1, "nothing but thoughts": 1}
    assert f"Replies that broke off: assistant {told}" in " ".join(dialoom("report", "run.db").stdout.split())
    dialoom("export", "run.db", "-o", "lines.jsonl")
    lines: list[dict[str, Any]] = json.loads((tmp_path / "lines.jsonl").read_text().splitlines()[0])["messages"]
    assert "cut_line" in dialoom("show", "run.db", "1").stdout, "it is a fault of its speaker"
    reasons = [line.get("finish_reason") for line in lines if line["role"] == "assistant"]
    assert reasons[:3] == ["length", None, "refusal"]


@pytest.mark.parametrize(
    ("recipe", "role", "options", "faults"),
    [
        ("aloe", "preferred", {"limit": 1, "rounds": 2}, [("preferred", "", None), ("preferred", "r", None)]),
        ("prefeval", "assistant", {"limit": 1, "turns": [1]}, [("assistant", "", 1), ("assistant", "", 4)]),
    ],
)
def test_a_line_that_is_none_of_a_talks_is_cut_all_the_same(
    recipe: str, role: str, options: dict[str, Any], faults: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that no path of a tree followed, an answer after talk that nobody held: a fault of its speaker's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving(lambda _body, number: ended(f"Well, it is like number {number}.", "length")) as server:
        models = {role: Model("openai/small", api_base=server.url)}
        run = play(recipe, path=tmp_path / "run.db", models=models, options=options, seed=3)
    assert [(fault.who, fault.where, fault.message) for _, fault in run.faults() if fault.kind == "cut_line"] == faults


def _played(path: Path, url: str) -> None:
    play(
        "personalens",
        path=path,
        models={"assistant": Model("openai/small", api_base=url)},
        options={"limit": 1},
        seed=3,
    )
