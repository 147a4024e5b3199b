"""Repeated permanent errors: the run stops early with a remedy, and can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom
from tests.conftest import Command
from tests.hostile.replies import saying
from tests.server import Answer, completion, error, serving

PEOPLE = 20
SAME_IN_A_ROW = 5
"""Scenarios that fail with the same permanent error before a run is stopped."""

AT_ONCE = 2
REFUSAL = "Unsupported value: 'temperature' does not support 0.7 with this model. (request id: req_{:06x}9)"


@pytest.fixture(autouse=True)
def api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key, which the server does not check."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def people(folder: Path) -> Path:
    """Write a persona for each scenario and return the file's path."""
    path = folder / "people.jsonl"
    lines = (json.dumps({"profile": f"She keeps {n} hens.", "personality": "Calm."}) for n in range(PEOPLE))
    path.write_text("\n".join(lines))
    return path


def played(folder: Path, url: str, **settings: Any) -> dialoom.Run:
    """Play one round with each person; the server plays the assistant."""
    others = {"user": saying("Hello."), "judge": saying('{"score": 3, "explanation": "fair"}')}
    return dialoom.play(
        "aloe-eval",
        path=folder / "run.db",
        models={**others, "assistant": dialoom.Model("openai/m", api_base=url)},
        options={"personas": str(people(folder)), "rounds": 1},
        **{"concurrency": AT_ONCE, **settings},
    )


def refused(_body: dict[str, Any], number: int) -> Answer:
    """Return the refusal of a parameter; each answer has a different request id."""
    return error(400, REFUSAL.format(number))


def test_repeated_permanent_error_stops_the_run_with_a_remedy(dialoom: Command, tmp_path: Path) -> None:
    """The exit code is 3 and unsent scenarios stay pending. Without a temperature the model answers."""

    def answer(body: dict[str, Any], number: int) -> Answer:
        return refused(body, number) if "temperature" in body else completion("Hello.")

    people(tmp_path)
    run = ["run", "aloe-eval", "--personas", "people.jsonl", "--rounds", 1, "--concurrency", AT_ONCE]
    with serving(answer) as server:
        run += ["--model", "assistant=openai/m", "--api-base", f"assistant={server.url}"]
        stopped = dialoom(*run, "-o", "run.db", code=3)
        sent = len(server.requests)
        done = dialoom(*run, "-o", "other.db", "--temperature", "assistant=none")
        assert not any("temperature" in body for body in server.requests[sent:])
    assert SAME_IN_A_ROW <= sent < SAME_IN_A_ROW + AT_ONCE
    scenarios = json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]
    assert (scenarios["failed"], scenarios["pending"]) == (sent, PEOPLE - sent)
    (line,) = [line for line in stopped.stdout.splitlines() if line.startswith("stopped: ")]
    assert "5 scenarios in a row failed with the same permanent error: openai/m: " in line
    assert "'temperature' does not support 0.7 with this model" in line
    assert line.endswith("give the role assistant another temperature, or 'none' to send none")
    assert (
        "Continue with: dialoom resume run.db --concurrency 2 (to retry what failed: dialoom retry run.db)"
        in stopped.stdout
    )
    assert f"{PEOPLE} done" in done.stdout
    assert "temperature:\n  user: 0.8\n  assistant: none\n" in dialoom("status", "other.db", "--config").stdout


def test_stopped_run_completes_when_the_cause_is_gone(tmp_path: Path) -> None:
    is_fixed = False
    with serving(lambda body, number: completion("Hello.") if is_fixed else refused(body, number)) as server:
        run = played(tmp_path, server.url)
        assert run.ended is not None and run.ended.stopped is not None
        assert (run.ended.stopped.fault, run.ended.is_complete) == ("provider, permanent", False)
        is_fixed = True
        others = {"user": saying("Hello."), "judge": saying('{"score": 3, "explanation": "fair"}')}
        again = dialoom.resume(tmp_path / "run.db", models=others, retry_failed=True)
    assert again.status().done == PEOPLE


@pytest.mark.parametrize(
    ("answers", "most"),
    [
        (lambda n: completion("Hello.") if n % 5 == 0 else refused({}, n), PEOPLE),
        (lambda n: error(400, "this" if n % 5 == 0 else "that"), PEOPLE),
        (lambda _: error(400, "as a result of our safety system", "content_policy_violation"), PEOPLE),
        (lambda _: error(400, "maximum context length is 8 tokens", "context_length_exceeded"), PEOPLE),
        (lambda _: error(422, "no such field"), SAME_IN_A_ROW),
    ],
    ids=["one answered", "other message", "content policy", "too long", "same message"],
)
def test_only_equal_errors_in_a_row_stop_a_run(answers: Callable[[int], Answer], most: int, tmp_path: Path) -> None:
    with serving(lambda _body, number: answers(number)) as server:
        run = played(tmp_path, server.url, concurrency=1)
        assert len(server.requests) == most
    assert run.status().pending == PEOPLE - most


def test_given_failure_limit_takes_precedence(tmp_path: Path) -> None:
    with serving(refused) as server:
        run = played(tmp_path, server.url, concurrency=1, fail_on_error=5)
    assert run.ended is not None and run.ended.stopped is not None
    assert (run.ended.failed, run.ended.stopped.setting) == (5, "fail_on_error")


@pytest.mark.parametrize(
    ("temperature", "sent"),
    [
        (None, {0.8, 0.0}),
        ("none", {None}),
        ({"": "none", "judge": 0.25}, {None, 0.25}),
        ({"judge": None}, {0.8, 0.0, None}),
        ({"user": "none", "assistant": "none"}, {None, 0.0}),
    ],
)
def test_temperature_is_left_out_where_unwanted(temperature: Any, sent: set[Any], tmp_path: Path) -> None:
    with serving(lambda _body, _number: completion('{"score": 3, "explanation": "fair"}')) as server:
        (tmp_path / "people.jsonl").write_text(json.dumps({"profile": "She keeps hens.", "personality": "Calm."}))
        dialoom.play(
            "aloe-eval",
            path=tmp_path / "run.db",
            model=dialoom.Model("openai/m", api_base=server.url),
            options={"personas": str(tmp_path / "people.jsonl"), "rounds": 1},
            temperature=temperature,
        )
    assert {body.get("temperature") for body in server.requests} == sent
