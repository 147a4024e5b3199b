"""Runs on Ray's workers: the same bytes and a correct ledger, whatever is killed."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom as door
from benchmarks.long_requests import assistant
from dialoom import DialoomError, Event, Run, ScenarioDone, ScenarioFailed
from dialoom.prompts import ChatMessage
from dialoom.runs.workers import cluster as cluster_module
from dialoom.runs.workers.messages import workers_folder
from tests.conftest import ROOT
from tests.server import Answer, ChatServer, Response, completion, serving

RECIPE = f"{ROOT}/benchmarks/long_requests.py:Recalling"
OPTIONS = {"pairs": 6, "methods": 4, "turns": 2}
SCENARIOS = 24
CALLS = 6 + 24
PATIENCE = 600.0
"""Seconds after which a process counts as hung."""


def answer(body: dict[str, Any]) -> Answer:
    """Return equal answers to equal requests."""
    hash_ = hashlib.sha256(str([each["content"] for each in body["messages"]]).encode()).hexdigest()
    return completion(f"{hash_[:20]} it is.")


def delayed(body: dict[str, Any], _number: int) -> Response:
    """Return the answer after 0.3 s."""
    return Response(*answer(body), delay=0.3)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Run a server with a model."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with serving(delayed) as found:
        yield found


def exported(run: Run) -> bytes:
    """Return a run's dialogues as exported."""
    run.export("dialogues", run.path.with_suffix(".jsonl"))
    return run.path.with_suffix(".jsonl").read_bytes()


def export_of_one_process(path: Path) -> bytes:
    """Return the export of the same run played by one process."""
    with serving(lambda body, _number: answer(body)) as quick:
        settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": quick.url}
        return exported(door.play(RECIPE, path=path, options=OPTIONS, **settings))


def assert_ledger_is_right(path: Path, server: ChatServer, answered: int = CALLS) -> None:
    """Check that the ledger has every call sent and one reply to each; a killed call may not have been sent."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT count(*), count(reply), count(DISTINCT key) FILTER (WHERE reply IS NOT NULL) FROM calls"
        every, replies, keys = connection.execute(query).fetchone()
    assert replies == keys == answered
    assert answered <= len(server.requests) <= every


def workers_of(pid: int) -> list[int]:
    """Return the ids of Ray's worker processes that descend from a process."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat, line = (entry / "stat").read_text(), (entry / "cmdline").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            names[int(entry.name)] = line

    def descends(each: int) -> bool:
        while each > 1:
            if (each := parents.get(each, 0)) == pid:
                return True
        return False

    return [each for each, name in names.items() if name.startswith("ray::Worker") and descends(each)]


def on_first_done(act: Callable[[], None]) -> Callable[[Event], None]:
    """Return a listener that calls a function when the first scenario is done."""
    left = [act]

    def hear(event: Event) -> None:
        if isinstance(event, ScenarioDone) and left:
            left.pop()()

    return hear


@pytest.mark.usefixtures("cluster")
def test_killed_worker_loses_no_answered_call(tmp_path: Path, server: ChatServer) -> None:
    settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": server.url, "concurrency": 8}
    kill = on_first_done(lambda: os.kill(workers_of(os.getpid())[0], signal.SIGKILL))
    run = door.play(RECIPE, path=tmp_path / "run.db", options=OPTIONS, workers=2, on_event=kill, **settings)
    assert run.ended is not None
    assert (run.ended.done, run.ended.failed) == (SCENARIOS, 0)
    assert_ledger_is_right(run.path, server)
    assert exported(run) == export_of_one_process(tmp_path / "alone.db")
    assert not workers_folder(run.path).exists()


def test_lost_machine_is_replaced_by_others(tmp_path: Path, cluster: Any, server: ChatServer) -> None:
    settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": server.url, "concurrency": 8}
    machine = cluster.add_node(num_cpus=2)
    lose = on_first_done(lambda: cluster.remove_node(machine, allow_graceful=False))
    run = door.play(RECIPE, path=tmp_path / "run.db", options=OPTIONS, workers=4, on_event=lose, **settings)
    assert run.ended is not None
    assert (run.ended.done, run.ended.failed) == (SCENARIOS, 0)
    assert_ledger_is_right(run.path, server)
    assert exported(run) == export_of_one_process(tmp_path / "alone.db")


@pytest.mark.usefixtures("cluster")
def test_scenario_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    async def deadly(messages: list[ChatMessage]) -> str:
        if messages[-1]["content"].startswith("q1 m2"):
            os._exit(9)
        return await assistant(messages)

    seen: list[Event] = []
    settings: dict[str, Any] = {"models": {"assistant": deadly}, "on_event": seen.append, "workers": 2}
    run = door.play(RECIPE, path=tmp_path / "run.db", options=OPTIONS, **settings)
    (failed,) = [each for each in seen if isinstance(each, ScenarioFailed)]
    assert failed.number == 1 * 4 + 2 + 1
    assert (run.status().done, run.status().failed) == (SCENARIOS - 1, 1)


@pytest.mark.usefixtures("cluster")
def test_worker_without_free_resources_is_not_waited_for(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": server.url, "concurrency": 8}
    run = door.play(RECIPE, path=tmp_path / "run.db", options=OPTIONS, workers=3, **settings)
    assert run.status().done == SCENARIOS
    assert_ledger_is_right(run.path, server)
    import ray

    class Occupant:
        def is_there(self) -> bool:
            return True

    maker: Any = ray.remote(num_cpus=2)(Occupant)
    occupant = maker.remote()
    assert ray.get(occupant.is_there.remote())
    monkeypatch.setattr(cluster_module, "_WORKER_START_TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(cluster_module, "_START_TIME_FACTOR", 1.0)
    with pytest.raises(DialoomError, match=r"no worker is left .*no machine had room"):
        door.play(RECIPE, path=tmp_path / "other.db", options=OPTIONS, workers=2, **settings)
    ray.kill(occupant)
    monkeypatch.undo()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert door.resume(tmp_path / "other.db", workers=2).status().done == SCENARIOS


@pytest.mark.usefixtures("cluster")
def test_unresponsive_worker_is_killed(tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "_ANSWER_TIMEOUT_SECONDS", 45.0)  # an idle worker reports every 30 s
    settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": server.url, "concurrency": 8}
    hang = on_first_done(lambda: os.kill(workers_of(os.getpid())[0], signal.SIGSTOP))
    run = door.play(RECIPE, path=tmp_path / "run.db", options=OPTIONS, workers=2, on_event=hang, **settings)
    assert run.status().done == SCENARIOS
    assert_ledger_is_right(run.path, server)
    assert exported(run) == export_of_one_process(tmp_path / "alone.db")
    assert not workers_folder(run.path).exists()


@pytest.mark.usefixtures("cluster")
def test_rates_hold_for_all_workers(tmp_path: Path, server: ChatServer) -> None:
    settings: dict[str, Any] = {"models": {"assistant": "openai/m"}, "api_base": server.url, "rpm": 240}
    started = time.monotonic()
    options = {**OPTIONS, "pairs": 3}
    run = door.play(RECIPE, path=tmp_path / "run.db", options=options, workers=2, **settings)
    assert run.status().usage.calls == len(server.requests) == 15
    assert time.monotonic() - started > (15 - 4) / 4


def test_command_is_interrupted_killed_and_resumed(tmp_path: Path, server: ChatServer) -> None:
    given = ["--api-base", server.url, "--concurrency", 6]
    options = [text for name, value in OPTIONS.items() for text in (f"--{name}", value)]
    first = started(tmp_path, "run", RECIPE, "--model", "openai/m", *given, *options, "-o", "run.db", "--workers", 2)
    until(lambda: len(server.requests) > 5, first)
    first.send_signal(signal.SIGINT)
    while workers_folder(tmp_path / "run.db").exists() and first.poll() is None:
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)  # after its workers have ended
    output, errors = first.communicate(timeout=PATIENCE)
    assert first.returncode == 3, errors
    assert "Traceback" not in errors
    assert "dialoom resume run.db" in output
    assert "Ray" not in output + errors
    assert not workers_folder(tmp_path / "run.db").exists()
    assert_ledger_is_right(tmp_path / "run.db", server, len(server.requests))
    before = len(server.requests)
    second = started(tmp_path, "resume", "run.db", "--concurrency", 6, "--workers", 2)
    until(lambda: len(server.requests) > before + 5, second)
    for pid in workers_of(second.pid):
        os.kill(pid, signal.SIGSTOP)  # so that it cannot end itself; it must end with the command
    second.kill()
    second.communicate()
    run = door.resume(tmp_path / "run.db")
    assert run.status().done == SCENARIOS
    assert_ledger_is_right(run.path, server)
    assert exported(run) == export_of_one_process(tmp_path / "alone.db")
    assert not workers_folder(run.path).exists()


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start the command in its own process group, as a terminal does."""
    command = [sys.executable, "-m", "dialoom", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a condition while a process runs."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
