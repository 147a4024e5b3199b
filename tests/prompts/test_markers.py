"""What real models are sent: nothing that only the offline models need, which get it beside the messages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.prompts import Prompt
from tests.server import Answer, completion, ended, serving

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = [*sorted(ROOT.glob("prompts/**/*.md")), *sorted(ROOT.glob("docs/examples/*/prompts/**/*.md"))]

MARKER = re.compile(r"<(?:role|metric|target|fault|count|turns|person)>")
CONSTANT = re.compile(r"^<(\w+)>[^<{\n]*</\1>$", re.MULTILINE)
"""A line that is one part, and the same in every request."""

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "personalens": ("personalens", {"users": "1", "setting": ("I",), "limit": 2}),
    "aloe": ("aloe", {"rounds": 2, "limit": 1}),
    "aloe-eval": ("aloe-eval", {"rounds": 2, "limit": 1}),
    "prefeval": ("prefeval", {"turns": (2,), "method": ("zero-shot", "cot"), "limit": 2}),
    "apollo": ("apollo", {"limit": 1}),
    "apollo-native": ("apollo", {"protocol": "native", "limit": 1}),
}
REPLY: dict[str, Any] = {
    **{"profile": None, "personality": None, "score": 3, "verdict": True, "better": "first", "explanation": "so"},
    **{"quote": "You like tea.", "answer": "yes", "label": "unhelpful"},
}
BODY = {"model", "messages", "temperature", "seed", "max_tokens", "response_format"}
TOOLS = {"tools", "tool_choice", "parallel_tool_calls"}
HEADERS = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"}


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_prompt_holds_a_marker(path: Path) -> None:
    """Neither one of the known ones nor another part whose text is always the same."""
    for section in Prompt.parse(path.read_text(encoding="utf-8"), str(path)).sections:
        assert not MARKER.search(section.text)
        assert not CONSTANT.search(section.text)


def answer(body: dict[str, Any], _number: int) -> Answer:
    """A reply in the form that is asked for; with tools, one call and then the end."""
    if "response_format" in body:
        wanted = body["response_format"]["json_schema"]["schema"]["properties"]
        return completion(json.dumps({name: REPLY[name] for name in wanted}))
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        function = {"name": body["tools"][0]["function"]["name"], "arguments": "{}"}
        return ended(None, "tool_calls", tool_calls=[{"id": "1", "type": "function", "function": function}])
    return completion("Fine. [Finish]")


@pytest.mark.parametrize("name", RUNS)
def test_nothing_meant_for_the_offline_models_is_sent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No marker, no id of a prompt, no unknown key in the body, no header but those of the client library."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    recipe, options = RUNS[name]
    with serving(answer) as server:
        run = dialoom.play(recipe, path=tmp_path / "run.db", model="openai/fake", api_base=server.url, options=options)
    assert server.requests and all(episode.state == "done" for episode in run.episodes())
    for body in server.requests:
        assert set(body) <= BODY | TOOLS
        text = json.dumps(body, ensure_ascii=False)
        assert not MARKER.search(text)
        assert not re.search(r"\b(?:personalens|aloe|prefeval|apollo)/\w", text)
        assert all(set(message) <= {"role", "content", "tool_calls", "tool_call_id"} for message in body["messages"])
    for names in server.headers:
        assert {each for each in names if not each.startswith("x-stainless-")} <= {*HEADERS, "authorization"}
