"""A provider that becomes unreachable during a run: no scenario fails, no call is repeated, the run continues."""

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
USERS = 3  # with two dialogues each


async def user(messages: list[Any]) -> str:
    """Return the next of three lines; the third ends the dialogue."""
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")


async def judge(messages: list[Any]) -> str:
    """Return a verdict or a score, as the question requires."""
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return '{"score": 3, "explanation": "fair"}'


def answer(body: dict[str, Any], _number: int) -> Answer:
    """Return an answer that depends on the request alone."""
    return completion(f"Reply to: {body['messages'][-1]['content']}")


class Provider:
    """A server that can be stopped and started again at the same address."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.servers: list[ChatServer] = []
        self.start()

    @property
    def url(self) -> str:
        """Return the address, which does not change."""
        return self.servers[0].url

    def start(self) -> None:
        """Start a server, at the same address as the one before."""
        port = int(self.url.split(":")[2].split("/")[0]) if self.servers else 0
        self.servers.append(self._stack.enter_context(serving(answer, port)))

    def stop(self) -> None:
        """Stop the server; connections are refused."""
        self._stack.close()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Yield a running provider, with its key set."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    made = Provider()
    yield made
    made.stop()


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Skip:
    """Return a function that makes pauses take no time and passes the time of each to a callback."""

    def skip(callback: Callable[[float], None]) -> None:
        def made() -> Pauses:
            return SkippedPauses(callback)

        monkeypatch.setattr("dialoom.roles.gateway.gateway.Pauses", made)

    return skip


def settings(provider: Provider, folder: Path) -> dict[str, Any]:
    """Return the settings of dialogues whose assistant is the provider."""
    if not (folder / "release").exists():
        write_release(folder / "release", users=USERS)
    models = {"user": user, "judge": judge, "assistant": dialoom.Model("openai/m", api_base=provider.url)}
    return {"models": models, "options": {"profiles": folder / "release"}, "concurrency": 3}


def stopped_provider(provider: Provider, pause: Skip, players: list[str], folder: Path) -> list[object]:
    """Stop the provider and return the command of such a run, in which pauses take no time."""
    pause(lambda _passed: None)
    write_release(folder / "release", users=USERS)
    cast = [*players[:2], *players[4:], "--model", "assistant=openai/m", "--api-base", f"assistant={provider.url}"]
    provider.stop()
    return ["run", "personalens", "--profiles", "release", *cast]


def stopping(provider: Provider, events: list[dialoom.Event], after: int) -> Callable[[dialoom.Event], None]:
    """Return a handler that records events and stops the provider when `after` scenarios are done."""

    def on_event(event: dialoom.Event) -> None:
        events.append(event)
        is_due = sum(isinstance(each, dialoom.ScenarioDone) for each in events) == after
        if is_due and isinstance(event, dialoom.ScenarioDone):
            provider.stop()

    return on_event


def replies(path: Path) -> int:
    """Return the number of the assistant's recorded replies."""
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM calls WHERE role = 'assistant' AND reply IS NOT NULL"
        ).fetchone()
    return int(count)


def test_run_continues_when_its_provider_is_back(provider: Provider, pause: Skip, tmp_path: Path) -> None:
    common = settings(provider, tmp_path)
    undisturbed = dialoom.play("personalens", path=tmp_path / "undisturbed.db", **common)
    wanted, completed = len(provider.servers[0].requests), provider.servers[0].completed
    events: list[dialoom.Event] = []
    is_back: list[float] = []

    def come_back(passed: float) -> None:
        if passed > 60 and not is_back:
            is_back.append(passed)
            provider.start()

    pause(come_back)
    run = dialoom.play("personalens", path=tmp_path / "run.db", on_event=stopping(provider, events, 2), **common)
    status = run.status()
    assert (status.done, status.failed) == (2 * USERS, 0)
    away, back = [each for each in events if isinstance(each, dialoom.ProviderUnreachable | dialoom.ProviderReachable)]
    assert isinstance(away, dialoom.ProviderUnreachable)
    assert away.provider == f"openai at {provider.url}"
    assert (away.reason, away.patience) == ("connection refused", 600.0)
    assert isinstance(back, dialoom.ProviderReachable)
    assert back.seconds > 50
    for each in (undisturbed, run):
        each.export("dialogues", tmp_path / f"{each.path.stem}.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "undisturbed.jsonl").read_bytes()
    assert replies(run.path) == wanted, "each call was answered once"
    again = sum(each.completed for each in provider.servers) - 2 * completed
    assert again <= 3, "only interrupted requests were sent again"


def test_run_stops_when_patience_ends_and_can_be_resumed(
    dialoom: Command, provider: Provider, pause: Skip, players: list[str], tmp_path: Path
) -> None:
    """The exit code is 3, the output gives the reason and the command to continue, and no scenario has failed."""
    plan = stopped_provider(provider, pause, players, tmp_path)
    stopped = dialoom(*plan, "-o", "run.db", "--patience", "5m", code=3)
    (line,) = [line for line in stopped.stdout.splitlines() if line.startswith("stopped: ")]
    assert f"openai at {provider.url}" in line
    assert "5m" in line
    assert "connection refused" in line
    assert "Continue with: dialoom resume run.db\n" in stopped.stdout
    assert stopped.stderr.count("cannot be reached") == 1, "reported once for all calls"
    scenarios = json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]
    assert (scenarios["failed"], scenarios["pending"]) == (0, 2 * USERS)
    provider.start()
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
    provider.stop()
    run = dialoom.play("personalens", path=tmp_path / "run.db", control=control, **settings(provider, tmp_path))
    assert run.ended is not None
    assert (run.ended.is_complete, run.ended.stopped) == (False, None)
    assert (run.status().failed, run.status().pending) == (0, 2 * USERS)
    assert pauses[-1] < 60, "no other pause was started"


def test_without_patience_scenarios_fail_with_one_message(
    dialoom: Command, provider: Provider, pause: Skip, players: list[str], tmp_path: Path
) -> None:
    plan = [*stopped_provider(provider, pause, players, tmp_path), "--patience", 0]
    failed = dialoom(*plan, "-o", "run.db", code=1)
    cause = f"openai/m: cannot connect to {provider.url}: connection refused"
    assert failed.stderr.count(cause) == 1
    assert f"the same error {2 * USERS - 1} more times: {cause}" in failed.stdout
    with sqlite3.connect(tmp_path / "run.db") as connection:
        ((raw,),) = connection.execute("SELECT DISTINCT error FROM attempts WHERE number = 1").fetchall()
    assert "(500)" in raw, "LiteLLM's own message"
    logged = dialoom(*plan, "-o", "json.db", "--log-format", "json", code=1).stderr
    assert sum(json.loads(line)["event"] == "scenario failed" for line in logged.splitlines()) == 2 * USERS
