"""Runs with a self-hosted server: it is killed and restarted, has a limited context, and enforces reply shapes."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.cli.doctor import State, run_checks
from tests.llm.conftest import CONTEXT_TOKENS, MODEL_NAME, PEOPLE, Server

_TIMEOUT_SECONDS = 120.0


def test_server_killed_and_restarted_loses_nothing(killable: Server, tmp_path: Path, people: Path) -> None:
    def restart_amid_a_call() -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not (killable.count_started() > killable.count_answered() >= 2) and time.monotonic() < deadline:
            time.sleep(0.05)
        killable.kill()
        killable.start()

    restarting = threading.Thread(target=restart_amid_a_call)
    restarting.start()
    run = dialoom.play(
        "aloe-eval",
        path=tmp_path / "run.db",
        model=killable.model,
        options={"personas": people, "limit": 2, "rounds": 2},
        max_reply={"": 24, "judge": 64},
        concurrency=1,
    )
    restarting.join()
    assert (run.status().done, run.status().failed) == (2, 0)
    usage = run.status().usage
    lost = killable.count_answered() - (usage.calls - usage.failed)
    assert lost in (0, 1), "the server logs an answer before it is sent, so the kill may lose the last one"


def test_request_beyond_the_servers_context_is_refused_before_the_run_or_fails_at_once(
    served: Server, tmp_path: Path
) -> None:
    long = {**PEOPLE[0], "profile": "She keeps two hens. " * CONTEXT_TOKENS}
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (long, PEOPLE[1])))
    plan: dict[str, Any] = {
        "model": served.model,
        "options": {"personas": tmp_path / "people.jsonl", "limit": 2, "rounds": 1},
        "max_reply": {"": 24, "judge": 64},
    }
    with pytest.raises(dialoom.DialoomError, match=f"is {CONTEXT_TOKENS:,} tokens according to its server"):
        dialoom.play("aloe-eval", path=tmp_path / "refused.db", **plan)
    failed: list[dialoom.ScenarioFailed] = []

    def collect(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioFailed):
            failed.append(event)

    refused = served.count_refused()
    too_wide = {MODEL_NAME: 100 * CONTEXT_TOKENS}
    run = dialoom.play("aloe-eval", path=tmp_path / "run.db", **plan, context=too_wide, on_event=collect)
    assert [str(event.fault) for event in failed] == ["context"]
    assert f"its context window is {CONTEXT_TOKENS:,}" in failed[0].error
    assert served.count_refused() == refused + 1
    assert run.status().done == 1


def test_doctor_finds_that_reply_shapes_are_enforced(served: Server) -> None:
    checks = run_checks([MODEL_NAME], api_base=served.model.api_base, max_reply=64)
    (shape,) = [check for check in checks if check.about == "shape"]
    assert (shape.state, shape.detail) == (State.OK, "enforced, requested as JSON schema")
