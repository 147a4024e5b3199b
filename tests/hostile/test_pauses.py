"""Whatever a run waits for between calls, asking it to stop ends the wait; what was given up is made later."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import dialoom
from tests.hostile.replies import saying
from tests.server import Answer, Response, busy, completion, serving


def watched(control: dialoom.Control, is_waiting: Any) -> threading.Thread:
    """Drains as soon as a model has to wait."""

    def watch() -> None:
        while not is_waiting(control.limits.values()):
            threading.Event().wait(0.01)
        control.drain()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", ["retry-after", "backoff", "rate"])
def test_draining_cuts_every_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A provider's, our own, and that of a stated rate; nothing fails, and the run goes on later."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    is_well = threading.Event()
    control = dialoom.Control()

    def answer(_body: dict[str, Any], _number: int) -> Answer | Response:
        if is_well.is_set() or kind == "rate":
            return completion("Hello.")
        if kind == "backoff":
            control.drain()
            return busy(503)
        return busy(429, retry_after="1e9")

    people = [{"profile": f"She keeps {number} hens.", "personality": "Calm."} for number in range(3)]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    others = {"user": saying("Hi."), "judge": saying('{"score": 3}')}
    with serving(answer) as server:
        if kind == "retry-after":
            watched(control, lambda states: any(state.paused > 100 for state in states))
        if kind == "rate":
            watched(control, lambda _states: len(server.requests) == 1)  # and so it stays for a minute
        run = dialoom.play(
            "aloe-eval",
            path=tmp_path / "run.db",
            models={**others, "assistant": dialoom.Model("openai/m", api_base=server.url)},
            options={"personas": str(tmp_path / "people.jsonl"), "rounds": 1},
            rpm=1 if kind == "rate" else None,
            concurrency=3,
            control=control,
        )
        status = run.status()
        assert status.failed == 0
        assert status.pending in ((2, 3) if kind == "rate" else (3,)), "one call was let through"
        assert status.usage.unanswered == 0, "the books say what became of each call"
        is_well.set()
        again = dialoom.resume(run.path, models=others, rpm={"": None})
    assert (again.status().done, again.status().failed) == (3, 0)
