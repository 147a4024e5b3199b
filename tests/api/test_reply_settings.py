"""Limits, sampling parameters and timeouts of replies, from the Python API to the provider."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.cli.progress import format_slow_calls
from tests.server import Answer, ChatServer, completion, serving

from .players import CAST, Messages, assistant, outcome_texts, run_settings

HOUSE = "openai/house"


def answer(body: dict[str, Any], _number: int) -> Answer:
    """Answer as a user who ends after two lines, as an assistant, and as a judge."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "assess one aspect" in text:
        verdict = "Was this goal reached" in text
        return completion(f'{{"{"verdict" if verdict else "score"}": {"true" if verdict else 3}, "explanation": "so"}}')
    lines = sum(message["role"] == "assistant" for message in body["messages"])
    return completion("Good. TERMINATE" if lines >= 2 else "Go on.")


def limits_of(server: ChatServer) -> dict[str, set[tuple[int | None, float | None]]]:
    """Return the reply limits and `top_p` that the server received, by role."""
    found: dict[str, set[tuple[int | None, float | None]]] = {}
    for body in server.requests:
        text = "\n".join(message["content"] for message in body["messages"])
        begun = {"You are the person": "user", "You assess one aspect": "judge"}
        role = next((role for words, role in begun.items() if text.startswith(words)), "assistant")
        found.setdefault(role, set()).add((body.get("max_tokens"), body.get("top_p")))
    return found


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-test")


def test_reply_limits_of_the_paper_are_defaults(release: Path, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"profiles": release, "limit": 1}
    with serving(answer) as server:
        run = dialoom.play("personalens", path=tmp_path / "a.db", model=HOUSE, api_base=server.url, options=plan)
        assert limits_of(server) == {"user": {(800, None)}, "assistant": {(800, None)}, "judge": {(4_000, None)}}
        assert {role: each.max_reply for role, each in run.config.models.items()} == {
            "user": 800,
            "assistant": 800,
            "judge": 4_000,
        }
        server.requests.clear()
        other = dialoom.play(
            "personalens",
            path=tmp_path / "b.db",
            model=HOUSE,
            api_base=server.url,
            max_reply={"assistant": 0, "judge": 300},
            params={"": {"top_p": 0.9}, "judge": {"top_p": 0.1}},
            options=plan,
        )
        assert limits_of(server) == {"user": {(800, 0.9)}, "assistant": {(None, 0.9)}, "judge": {(300, 0.1)}}
        other.export("sft", tmp_path / "b.jsonl")
        card = (tmp_path / "b.jsonl.card.md").read_text()
        assert "| assistant | `openai/house` | 0.0 | none | `top_p=0.9` |" in card
        assert "| judge | `openai/house` | 0.0 | 300 | `top_p=0.1` |" in card
        server.requests.clear()
        judged = dialoom.judge(
            run.path, HOUSE, api_base=server.url, max_reply=70, params={"judge": {"top_p": 0.2}}, name="second"
        )
        assert limits_of(server) == {"judge": {(70, 0.2)}}
        assert judged.judgement_sets[1].models["judge"].params == {"top_p": 0.2}
    with pytest.raises(dialoom.DialoomError, match=r"judge.seed would not be sent"):
        dialoom.judge(run.path, "anthropic/claude-sonnet-4-5", params={"judge": {"seed": 1}}, name="third")
    assert len(run.judgement_sets) == 2, "the refused judging is not stored"


async def test_reply_settings_of_a_role_hold_in_the_step_debugger(release: Path, tmp_path: Path) -> None:
    with serving(answer) as server:
        run = await dialoom.aplay(
            "personalens",
            path=tmp_path / "run.db",
            model=HOUSE,
            api_base=server.url,
            max_reply={"assistant": 90},
            params={"assistant": {"frequency_penalty": 0.5}},
            options={"profiles": release, "limit": 1, "judge": False},
        )
        async with run.step(1) as stepper:
            await stepper.goto(2)
            with pytest.raises(dialoom.DialoomError, match=r"assistant.frequency_penalty would not be sent"):
                await stepper.replace_model("assistant", "anthropic/claude-sonnet-4-5")
            await stepper.replace_model("assistant", "openai/other")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OPENAI_API_BASE", server.url)
                await stepper.step()
    last = server.requests[-1]
    assert (last["model"], last["max_tokens"], last["frequency_penalty"]) == ("other", 90, 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model": "anthropic/claude-sonnet-4-5", "params": {"user": {"seed": 3}}},
            "params: user.seed would not be sent",
        ),
        ({"params": {"user": {"top_q": 3}}}, "params: user.top_q is unknown"),
        ({"max_reply": {"clerk": 3}}, "max_reply: unknown role 'clerk'"),
        ({"timeout": {"clerk": 3}}, "timeout: unknown role 'clerk'"),
        ({"timeout": -1}, "timeout must be at least 0, got -1"),
        ({"options": {"turn_limit": 0}}, "turn_limit"),
    ],
)
def test_wrong_reply_setting_is_refused_before_anything_is_written(
    settings: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with pytest.raises(dialoom.DialoomError, match=message):
        dialoom.play("personalens", path=tmp_path / "run.db", **settings)
    assert not list(tmp_path.iterdir())


def test_attempt_that_times_out_is_repeated_and_timeout_can_change(release: Path, tmp_path: Path) -> None:
    tries = list[str]()

    async def dreaming(messages: Messages) -> str:
        tries.append(messages[-1]["content"])
        if len(tries) == 1:
            await asyncio.Event().wait()
        return await assistant(messages)

    once: dict[str, Any] = {"models": {"assistant": dreaming}, "options": {"limit": 1}}
    path, few = tmp_path / "run.db", dialoom.Budget(max_calls=3)
    run = dialoom.play(
        "personalens", path=path, **run_settings(release, timeout={"assistant": 0.05}, budget=few, **once)
    )
    assert tries[0] == tries[1]
    calls = run.frame("calls")
    assert calls[calls.role == "assistant"].attempts.tolist()[0] == 2
    dialoom.resume(
        path, models={"assistant": dreaming}, timeout={"assistant": 0, "": 30}, budget=dialoom.Budget(max_calls=None)
    )
    whole = dialoom.play(
        "personalens",
        path=tmp_path / "whole.db",
        **run_settings(release, models={"assistant": CAST["assistant"]}, options={"limit": 1}),
    )
    assert outcome_texts(dialoom.open_run(path)) == outcome_texts(whole)


async def test_long_running_call_is_listed_with_role_and_age(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, is_asked, may_answer = dialoom.Control(), asyncio.Event(), asyncio.Event()

    async def slow(messages: Messages) -> str:
        is_asked.set()
        await may_answer.wait()
        return await assistant(messages)

    settings = run_settings(release, models={"assistant": slow}, options={"limit": 1}, control=control)
    work = asyncio.create_task(dialoom.aplay("personalens", path=tmp_path / "run.db", **settings))
    await is_asked.wait()
    (call,) = control.in_flight
    assert call.role == "assistant" and call.model == "object:slow" and call.age >= 0
    assert format_slow_calls(control.in_flight) == ""
    now = time.monotonic()
    monkeypatch.setattr("dialoom.roles.gateway.availability.time.monotonic", lambda: now + 250.5)
    assert format_slow_calls(control.in_flight) == "1 call in flight for 4m10s (assistant)"
    monkeypatch.undo()
    may_answer.set()
    await work
    assert control.in_flight == ()


def test_turn_limit_is_an_option_and_part_of_the_scenario(release: Path, tmp_path: Path) -> None:
    run = dialoom.play(
        "personalens", path=tmp_path / "run.db", **run_settings(release, options={"turn_limit": 1, "limit": 1})
    )
    (episode,) = run.episodes()
    assert episode.outcome.ended_by == "turn_limit" and len(episode.outcome.messages) == 3
    with pytest.raises(dialoom.DialoomError, match="turn_limit"):
        dialoom.play("aloe", path=tmp_path / "other.db", options={"turn_limit": 1})
