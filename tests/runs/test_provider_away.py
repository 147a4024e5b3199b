"""A provider that goes away in the middle of a run: nothing fails, nothing is paid twice, and the run goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.roles.gateway.limits import Pauses
from tests.conftest import Command
from tests.invented import write_release
from tests.server import Answer, ChatServer, completion, serving
from tests.virtual_time import SkippedPauses

Skip = Callable[[Callable[[float], None]], None]
USERS = 3  # of two dialogues each


async def user(messages: list[Any]) -> str:
    """Three lines."""
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")


async def judge(messages: list[Any]) -> str:
    """What each question wants."""
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return '{"score": 3, "explanation": "fair"}'


def answer(body: dict[str, Any], _number: int) -> Answer:
    """What follows from the request alone."""
    return completion(f"Reply to: {body['messages'][-1]['content']}")


class Provider:
    """A server that can go, and come back at the same address."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.sittings: list[ChatServer] = []
        self.come()

    @property
    def url(self) -> str:
        """Its address, whether it is there or not."""
        return self.sittings[0].url

    def come(self) -> None:
        """Be there."""
        port = int(self.url.split(":")[2].split("/")[0]) if self.sittings else 0
        self.sittings.append(self._stack.enter_context(serving(answer, port)))

    def go(self) -> None:
        """Refuse every connection."""
        self._stack.close()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """One that is there, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    made = Provider()
    yield made
    made.go()


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Skip:
    """Has pauses take no time, and something be told of each."""

    def skip(told: Callable[[float], None]) -> None:
        def made() -> Pauses:
            return SkippedPauses(told)

        monkeypatch.setattr("dialoom.roles.gateway.gateway.Pauses", made)

    return skip


def settings(provider: Provider, folder: Path) -> dict[str, Any]:
    """Dialogues whose assistant is the provider."""
    if not (folder / "release").exists():
        write_release(folder / "release", users=USERS)
    models = {"user": user, "judge": judge, "assistant": dialoom.Model("openai/m", api_base=provider.url)}
    return {"models": models, "options": {"profiles": folder / "release"}, "concurrency": 3}


def away(provider: Provider, pause: Skip, players: list[str], folder: Path) -> list[object]:
    """The command of such a run, whose provider has gone, and in which pauses take no time."""
    pause(lambda _passed: None)
    write_release(folder / "release", users=USERS)
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/m", "--api-base", f"assistant={provider.url}"]
    provider.go()
    return ["run", "personalens", "--profiles", "release", *cast]


def leaving(provider: Provider, events: list[dialoom.Event], after: int) -> Callable[[dialoom.Event], None]:
    """Keeps events; the provider goes when so many scenarios are done."""

    def on_event(event: dialoom.Event) -> None:
        events.append(event)
        is_due = sum(isinstance(each, dialoom.ScenarioDone) for each in events) == after
        if is_due and isinstance(event, dialoom.ScenarioDone):
            provider.go()

    return on_event


def replies(path: Path) -> int:
    """How many the assistant has given that are recorded."""
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM calls WHERE role = 'assistant' AND reply IS NOT NULL"
        ).fetchone()
    return int(count)


def test_run_continues_when_its_provider_is_back(provider: Provider, pause: Skip, tmp_path: Path) -> None:
    told = settings(provider, tmp_path)
    calm = dialoom.play("personalens", path=tmp_path / "calm.db", **told)
    wanted, completed = len(provider.sittings[0].requests), provider.sittings[0].completed
    events: list[dialoom.Event] = []
    is_back: list[float] = []

    def come_back(passed: float) -> None:
        if passed > 60 and not is_back:
            is_back.append(passed)
            provider.come()

    pause(come_back)
    run = dialoom.play("personalens", path=tmp_path / "run.db", on_event=leaving(provider, events, 2), **told)
    status = run.status()
    assert (status.done, status.failed) == (2 * USERS, 0)
    away, back = [each for each in events if isinstance(each, dialoom.ProviderUnreachable | dialoom.ProviderReachable)]
    assert isinstance(away, dialoom.ProviderUnreachable)
    assert away.provider == f"openai at {provider.url}"
    assert (away.reason, away.patience) == ("connection refused", 600.0)
    assert isinstance(back, dialoom.ProviderReachable)
    assert back.seconds > 50
    for each in (calm, run):
        each.export("dialogues", tmp_path / f"{each.path.stem}.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "calm.jsonl").read_bytes()
    assert replies(run.path) == wanted, "each call was answered once"
    again = sum(sitting.completed for sitting in provider.sittings) - 2 * completed
    assert again <= 3, "sent again was only what was cut off"


def test_run_stops_when_patience_ends_and_can_be_resumed(
    dialoom: Command, provider: Provider, pause: Skip, players: list[str], tmp_path: Path
) -> None:
    """Exit code 3, why in one line, how to go on in another; nothing failed."""
    plan = away(provider, pause, players, tmp_path)
    stopped = dialoom(*plan, "-o", "run.db", "--patience", "5m", code=3)
    (line,) = [line for line in stopped.stdout.splitlines() if line.startswith("stopped: ")]
    assert f"openai at {provider.url}" in line
    assert "5m" in line
    assert "connection refused" in line
    assert "Continue with: dialoom resume run.db\n" in stopped.stdout
    assert stopped.stderr.count("cannot be reached") == 1, "however many calls met it"
    scenarios = json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]
    assert (scenarios["failed"], scenarios["pending"]) == (0, 2 * USERS)
    provider.come()
    dialoom("resume", "run.db")
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]["done"] == 2 * USERS


def test_draining_ends_the_pause_at_once(provider: Provider, pause: Skip, tmp_path: Path) -> None:
    control = dialoom.Control()
    pauses: list[float] = []

    def interrupt(passed: float) -> None:
        pauses.append(passed)
        if passed > 20:
            control.drain()

    pause(interrupt)
    provider.go()
    run = dialoom.play("personalens", path=tmp_path / "run.db", control=control, **settings(provider, tmp_path))
    assert run.ended is not None
    assert (run.ended.is_complete, run.ended.stopped) == (False, None)
    assert (run.status().failed, run.status().pending) == (0, 2 * USERS)
    assert pauses[-1] < 60, "no other pause was begun"


def test_without_patience_scenarios_fail_with_one_message(
    dialoom: Command, provider: Provider, pause: Skip, players: list[str], tmp_path: Path
) -> None:
    plan = [*away(provider, pause, players, tmp_path), "--patience", 0]
    failed = dialoom(*plan, "-o", "run.db", code=1)
    cause = f"openai/m: cannot connect to {provider.url}: connection refused"
    assert failed.stderr.count(cause) == 1
    assert f"the same error {2 * USERS - 1} more times: {cause}" in failed.stdout
    with sqlite3.connect(tmp_path / "run.db") as connection:
        ((raw,),) = connection.execute("SELECT DISTINCT error FROM attempts WHERE number = 1").fetchall()
    assert "(500)" in raw, "which is LiteLLM's"
    logged = dialoom(*plan, "-o", "json.db", "--log-format", "json", code=1).stderr
    assert sum(json.loads(line)["event"] == "scenario failed" for line in logged.splitlines()) == 2 * USERS
