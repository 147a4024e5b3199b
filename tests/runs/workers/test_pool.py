"""A run leased to workers exports the same bytes, even if workers die and messages are repeated."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from benchmarks.long_requests import assistant
from dialoom import DialoomError, Event, Run, ScenarioDone, ScenarioFailed
from dialoom.prompts import ChatMessage
from dialoom.runs.report.cost import cost_table
from dialoom.runs.store import RunStore
from dialoom.runs.store.transfer import Transfer
from dialoom.runs.workers import messages
from dialoom.runs.workers.cluster import WorkerDiedError, WorkerLostError
from dialoom.runs.workers.messages import WorkerLocation, WorkerReport, workers_folder
from dialoom.runs.workers.shared_state import SharedState
from tests.conftest import Command
from tests.runs.test_common_calls import RECIPE, SMALL
from tests.runs.workers.local_cluster import LocalHandle, local_cluster
from tests.server import completion, serving

SHARED: dict[str, Any] = {"options": SMALL, "models": {"assistant": "offline/attentive"}}
TALKS: dict[str, Any] = {"options": {"users": "1", "setting": ("base", "I")}, "sample": 2, "seed": 3}


def contents(run: Run) -> tuple[Any, ...]:
    """Return a run's export, call ledger, checkpoints of each scenario and usage, without ids."""
    run.export("dialogues", run.path.with_suffix(".jsonl"))
    exported = run.path.with_suffix(".jsonl").read_bytes()
    calls = run.frame("calls").drop(columns=["call", "latency"], errors="ignore")
    ordered = calls.sort_values([name for name in ("number", "step", "node", "ordinal", "ask") if name in calls])
    with closing(sqlite3.connect(run.path)) as connection:
        threads = "SELECT name, namespace, count(*) FROM checkpoints JOIN threads ON threads.id = thread GROUP BY 1, 2"
        return exported, ordered.to_csv(index=False), sorted(connection.execute(threads)), run.status().usage


def stored_characters(path: Path) -> int:
    """Return the number of characters of stored texts; lines repeated from other texts are not stored."""
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("SELECT sum(length(coalesce(content, parts))) FROM kept_texts").fetchone()
    return int(found)


def is_cleaned_up(path: Path) -> bool:
    """Return whether no lease is open and no worker's file is left."""
    with RunStore(path) as store:
        return not store.leases.read_open() and not workers_folder(path).exists()


def test_workers_give_the_bytes_and_ledger_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = api.play("personalens", path=tmp_path / "alone.db", **TALKS)
    leased: list[int] = []

    def count(_delivery: WorkerReport | None, _has: set[int]) -> bool:
        leased.append(api.open_run(tmp_path / "run.db").progress().status.leased)
        return False

    local = local_cluster(monkeypatch, count)
    seen: list[Event] = []
    run = api.play("personalens", path=tmp_path / "run.db", workers=2, concurrency=3, on_event=seen.append, **TALKS)
    assert max(leased) in (1, 2)
    assert run.progress().status.leased == 0
    assert contents(run) == contents(alone)
    assert sorted(position for leased in local.leased for position in leased) == [0, 1]
    assert sorted(each.number for each in seen if isinstance(each, ScenarioDone)) == [1, 2]
    api.judge(alone.path, "offline/generic", name="again")
    judged = api.judge(run.path, "offline/generic", name="again", workers=2)
    assert contents(judged) == contents(alone)
    for each in (alone, judged):
        each.export("dialogues", each.path.with_suffix(".jsonl"), judging="again")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    assert is_cleaned_up(run.path)


def test_merging_in_parts_takes_no_more_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = api.play("personalens", path=tmp_path / "alone.db", **TALKS)
    local_cluster(monkeypatch)
    run = api.play("personalens", path=tmp_path / "run.db", workers=1, concurrency=1, **TALKS)
    assert stored_characters(run.path) < 1.1 * stored_characters(alone.path)


def test_file_of_a_dead_worker_is_merged_and_the_rest_reassigned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = api.play(RECIPE, path=tmp_path / "alone.db", **SHARED)
    local = local_cluster(
        monkeypatch, lambda delivery, _has: bool(delivery and delivery.transfers) and local.deaths < 2
    )
    run = api.play(RECIPE, path=tmp_path / "run.db", workers=2, concurrency=4, **SHARED)
    assert local.deaths == 2
    assert contents(run)[0] == contents(alone)[0]
    assert run.status().usage.calls == alone.status().usage.calls
    assert run.ended is not None
    assert (run.ended.done, run.ended.failed) == (12, 0)


def test_unreported_common_reply_is_found_in_a_dead_workers_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_cluster(monkeypatch)
    counting = Counting()
    made = SharedState.add_common_call
    doomed: list[str] = []

    async def die_unreported(line: SharedState, worker: str, key: str, transfer: Transfer | None) -> None:
        if doomed:
            await made(line, worker, key, transfer)
            return
        doomed.append(worker)
        positions = local.wake(worker)
        local.is_deadly = lambda delivery, has: delivery is not None and has is positions
        await asyncio.Event().wait()

    monkeypatch.setattr(SharedState, "add_common_call", die_unreported)
    settings: Any = {
        "options": {**SMALL, "pairs": 1},
        "models": {"assistant": counting},
        "workers": 2,
        "concurrency": 2,
    }
    run = api.play(RECIPE, path=tmp_path / "run.db", **settings)
    assert (local.deaths, run.status().done) == (1, 4)
    assert counting.asked == run.status().usage.calls == 1 + 4


def test_scenario_that_kills_three_workers_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_deadly(_delivery: WorkerReport | None, has: set[int]) -> bool:
        return 2 in has

    local = local_cluster(monkeypatch, is_deadly)
    seen: list[Event] = []
    run = api.play(RECIPE, path=tmp_path / "run.db", workers=1, concurrency=4, on_event=seen.append, **SHARED)
    (failed,) = [each for each in seen if isinstance(each, ScenarioFailed)]
    assert (failed.number, local.deaths) == (3, 3)
    assert "3 workers died" in failed.error
    assert (run.status().done, run.status().failed) == (11, 1)


@pytest.mark.parametrize("lost", [1, 2])
def test_run_continues_without_workers_that_cannot_start(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_cluster(monkeypatch)
    begin = LocalHandle.begin

    async def lose_or_begin(handle: LocalHandle) -> WorkerLocation:
        if local.handles.index(handle) < lost:
            raise WorkerLostError("no free slot")
        return await begin(handle)

    monkeypatch.setattr(LocalHandle, "begin", lose_or_begin)
    settings: dict[str, Any] = {"path": tmp_path / "run.db", "workers": 2, "concurrency": 4, **SHARED}
    if lost == 1:
        assert api.play(RECIPE, **settings).status().done == 12
    else:
        with pytest.raises(DialoomError, match=r"no worker is left .*no free slot"):
            api.play(RECIPE, **settings)
        assert is_cleaned_up(tmp_path / "run.db")


def test_common_calls_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = api.play(RECIPE, path=tmp_path / "alone.db", **SHARED)
    local_cluster(monkeypatch)
    run = api.play(RECIPE, path=tmp_path / "run.db", workers=2, concurrency=4, **SHARED)
    assert contents(run) == contents(alone)


class Counting:
    """A player that counts its calls."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return a reply after other tasks had their turn."""
        self.asked += 1
        await asyncio.sleep(0)
        return await assistant(list(messages))


def test_concurrency_holds_for_more_workers_than_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = local_cluster(monkeypatch)
    in_flight = most = 0

    async def slow(messages: list[ChatMessage]) -> str:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.05)
        in_flight -= 1
        return await assistant(messages)

    settings: dict[str, Any] = {"options": SMALL, "models": {"assistant": slow}, "workers": 4, "concurrency": 2}
    assert api.play(RECIPE, path=tmp_path / "run.db", **settings).status().done == 12
    assert (most, len(local.handles)) == (2, 2)


def test_ledger_counts_the_calls_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    counting = Counting()
    settings: Any = {"options": SMALL, "models": {"assistant": counting}, "workers": 3, "concurrency": 6}
    run = api.play(RECIPE, path=tmp_path / "run.db", **settings)
    assert counting.asked == run.status().usage.calls == 3 + 12


@pytest.mark.parametrize("most", [1, 4, 11])
def test_one_budget_holds_for_all_workers(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    counting = Counting()
    settings: Any = {"models": {"assistant": counting}, "workers": 3, "concurrency": 6}
    run = api.play(RECIPE, path=tmp_path / "run.db", options=SMALL, budget=api.Budget(max_calls=most), **settings)
    assert counting.asked == run.status().usage.calls == most
    assert run.ended is not None
    assert run.ended.stopped is not None
    assert run.ended.stopped.setting == "max_calls"
    assert f"max_calls {most} is used up" in run.ended.stopped.reason
    run = api.resume(run.path, budget=api.Budget(max_calls=most + 3), **settings)
    assert counting.asked == most + 3
    whole = api.resume(run.path, budget=api.Budget(max_calls=None), **settings)
    assert whole.status().done == 12
    assert counting.asked == whole.status().usage.calls == 3 + 12


@pytest.mark.parametrize("budget", [api.Budget(max_tokens=800), api.Budget(max_cost=0.8)])
def test_budget_stops_a_worker_where_it_stops_one_process(
    budget: api.Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes far less than is reserved for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    local_cluster(monkeypatch)
    with serving(lambda _body, _number: completion("Certainly.")) as server:
        settings: Any = {
            "options": SMALL,
            "models": {"assistant": "openai/m"},
            "api_base": server.url,
            "prices": {"openai/m": api.Price(1000, 1000)},
            "budget": budget,
            "concurrency": 1,
        }
        alone = api.play(RECIPE, path=tmp_path / "alone.db", **settings)
        run = api.play(RECIPE, path=tmp_path / "run.db", workers=1, **settings)
    assert alone.ended is not None and alone.ended.stopped is not None
    assert run.ended is not None and run.ended.stopped == alone.ended.stopped
    assert run.status().usage == alone.status().usage
    assert run.status().usage.calls > 2


def test_cached_replies_are_used_by_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    settings: Any = {**SHARED, "cache": tmp_path / "cache.db", "workers": 2}
    api.play(RECIPE, path=tmp_path / "one.db", **settings)
    again = api.play(RECIPE, path=tmp_path / "two.db", **settings)
    assert set(again.frame("calls")["attempts"]) == {0}


class Killed(BaseException):
    """The death of a run's process."""


def kill_run(delivery: WorkerReport | None, _has: set[int]) -> bool:
    """Kill the run's process at the first result of a worker."""
    if delivery is not None:
        raise Killed
    return False


def test_files_of_a_killed_run_are_merged_first(
    dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = local_cluster(monkeypatch)
    counting = Counting()
    settings: Any = {"options": SMALL, "models": {"assistant": counting}, "workers": 2, "concurrency": 4}
    whole = api.play(RECIPE, path=tmp_path / "whole.db", **settings)
    local.is_deadly = kill_run
    monkeypatch.setattr(messages, "LOCK_TIMEOUT_SECONDS", 0.0)  # the dead worker's process is this one
    counting.asked = 0
    with pytest.raises(Killed):
        api.play(RECIPE, path=tmp_path / "run.db", **settings)
    local.close_files()
    assert list(workers_folder(tmp_path / "run.db").glob("*.db"))
    leased = api.open_run(tmp_path / "run.db").status().leased
    assert 0 < leased <= 6
    assert f"scenarios that workers hold: {leased} (their latest calls are not" in dialoom("status", "run.db").stdout
    assert f"Scenarios that workers hold: {leased}." in " ".join(cost_table(tmp_path / "run.db").notes)
    run = api.resume(tmp_path / "run.db", models={"assistant": counting})
    assert counting.asked == run.status().usage.calls == 3 + 12
    assert contents(run)[0] == contents(whole)[0]
    assert run.status().leased == 0
    assert is_cleaned_up(run.path)


def test_files_of_a_killed_run_are_found_through_every_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, counting = local_cluster(monkeypatch), Counting()
    models: dict[str, Any] = {"assistant": counting}
    run = api.plan(RECIPE, path=tmp_path / "run.db", options=SMALL, models=models)
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.db"
    link.symlink_to(run.path)
    local.is_deadly = kill_run
    with pytest.raises(Killed):
        api.resume(link, models=models, workers=2, concurrency=4)
    local.close_files()
    assert counting.asked
    assert api.resume(run.path, models=models).status().usage.calls == counting.asked == 3 + 12
    assert is_cleaned_up(run.path) and [*link.parent.iterdir()] == [link]


def test_stopping_reaches_all_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    local = local_cluster(monkeypatch)
    control = api.Control()
    stop, stopped = LocalHandle.stop, list[LocalHandle]()

    def maybe_stop(handle: LocalHandle) -> None:
        if handle is local.handles[0]:
            raise WorkerDiedError("Ray does not know it any more")
        stopped.append(handle)
        stop(handle)

    def stop_once_both_have_leases(event: Event) -> None:
        if isinstance(event, ScenarioDone) and len(local.leased) > 1:
            control.stop()

    monkeypatch.setattr(LocalHandle, "stop", maybe_stop)
    local.is_deadly = lambda _delivery, has: control.is_draining and has is local.handles[0]._has
    settings: dict[str, Any] = {"workers": 2, "concurrency": 2, "control": control, **SHARED}
    run = api.play(RECIPE, path=tmp_path / "run.db", on_event=stop_once_both_have_leases, **settings)
    assert local.handles[1] in stopped
    assert not caplog.records
    assert run.status().done < 12
    local.close_files()  # the first one may be stopped before it has died
    assert api.resume(run.path).status().done == 12


def test_workers_are_not_called_once_their_cluster_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, control = local_cluster(monkeypatch), api.Control()
    stopped = list[LocalHandle]()
    local.at_end = control.stop
    monkeypatch.setattr(LocalHandle, "stop", lambda handle: stopped.append(handle))
    run = api.play(RECIPE, path=tmp_path / "run.db", workers=2, concurrency=2, control=control, **SHARED)
    assert run.status().done == 12
    assert len(local.handles) == 2 and not stopped


def test_file_that_is_still_written_is_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = api.plan(RECIPE, path=tmp_path / "run.db", **SHARED)
    workers_folder(run.path).mkdir()
    unfinished = workers_folder(run.path) / "worker-1.db"
    unfinished.write_bytes(run.path.read_bytes())
    monkeypatch.setattr(messages, "LOCK_TIMEOUT_SECONDS", 0.0)
    with RunStore(unfinished), pytest.raises(DialoomError, match=r"worker-1\.db is still being written by a") as raised:
        api.resume(run.path)
    assert raised.value.advice is not None
    assert raised.value.advice.values == {"path": run.path}
    assert api.resume(run.path).status().done == 12
    assert is_cleaned_up(run.path)


def test_message_about_an_unreadable_file_says_how_to_continue(tmp_path: Path, dialoom: Command) -> None:
    run = api.plan(RECIPE, path=tmp_path / "run.db", **SHARED)
    workers_folder(run.path).mkdir()
    damaged = workers_folder(run.path) / "worker-1.db"
    damaged.write_bytes(run.path.read_bytes()[:20_000])
    refused = " ".join(dialoom("resume", "run.db", code=2).stderr.split())
    assert "worker-1.db is damaged" in refused and "or remove it to have its calls made again" in refused
    assert "dialoom resume run.db" in refused
    damaged.unlink()
    assert api.resume(run.path).status().done == 12


@pytest.mark.parametrize(("size", "done"), [(100_000, "created"), (300_000, "written")])
def test_full_disk_of_a_worker_is_one_sentence(
    size: int, done: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = api.plan(RECIPE, path=tmp_path / "run.db", **SHARED)
    local = local_cluster(monkeypatch)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        with pytest.raises(
            DialoomError, match=rf"worker-1-\w+\.db cannot be {done} \([\w /]+\); .*Free disk"
        ) as raised:
            api.resume(run.path, workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    advice = raised.value.advice
    assert advice is None if done == "created" else advice is not None and advice.values == {"path": run.path}
    local.close_files()
    assert api.resume(run.path, workers=1).status().done == 12


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a process with its parent")
def test_process_ends_with_its_parent(tmp_path: Path) -> None:
    inner = "import os, signal; from dialoom.runs.workers.messages import end_with_parent; end_with_parent(); "
    inner += "print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    outer = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    parent = subprocess.Popen([sys.executable, "-c", outer, inner], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip().isdecimal()
        parent.kill()
        assert parent.stdout.read() == ""  # returns only when the last process that could write has ended
