"""Nothing is lost: a run is killed, interrupted or locked, and what comes out is the same to the byte."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.conftest import REAL, ROOT, Command, lines_of, needs_real_data
from tests.invented import write_release


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """The command, under way."""
    command = [sys.executable, "-m", "dialoom", *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_work(folder: Path, process: subprocess.Popen[str], calls: int) -> None:
    """Wait until the run in `run.db` has booked that many calls."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        status = subprocess.run(
            [sys.executable, "-m", "dialoom", "status", "run.db", "--json"], cwd=folder, capture_output=True, text=True
        )
        if status.returncode == 0 and json.loads(status.stdout)["calls"] >= calls:
            return
        time.sleep(0.05)
    raise AssertionError(f"the run did not get that far: {process.communicate()}")


def exported(dialoom: Command, folder: Path, run: str) -> bytes:
    """A run's dialogues."""
    dialoom("export", run, "-o", f"{run}.jsonl")
    return (folder / f"{run}.jsonl").read_bytes()


def hurried_players(folder: Path) -> list[str]:
    """A cast whose every word depends on all that was said before, at 4 ms a call."""
    (folder / "hurried.py").write_text(
        """
import asyncio, hashlib

async def said(messages):
    await asyncio.sleep(0.004)
    return hashlib.sha256(repr(messages).encode()).hexdigest()

async def user(messages):
    words = await said(messages)
    return words + (" TERMINATE" if len(messages) > 4 and words < "6" else "")

async def judge(messages):
    words = await said(messages)
    if "task_completion" in messages[-1]["content"]:
        return '{"verdict": %s, "explanation": "%s"}' % ("true" if words < "8" else "false", words)
    return '{"score": %d, "explanation": "%s"}' % (1 + int(words[0], 16) % 4, words)
"""
    )
    cast = {"user": "user", "assistant": "said", "judge": "judge"}
    return [part for role, name in cast.items() for part in ("--model", f"{role}=python:hurried:{name}")]


def answered(path: Path) -> int:
    """How many calls of a run were answered so far."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return int(connection.execute("SELECT count(reply) FROM calls").fetchone()[0])


def test_killed_twenty_times_a_run_gives_the_same_bytes(dialoom: Command, tmp_path: Path) -> None:
    """SIGKILL at random moments, from planning to judging, and `resume` each time."""
    plan = ["run", "personalens", "--limit", 60, *hurried_players(tmp_path), "--setting", "base", "--setting", "I"]
    dialoom(*plan, "-o", "whole.db", "--concurrency", 16)
    whole = exported(dialoom, tmp_path, "whole.db")
    moments = random.Random(20)
    process = started(tmp_path, *plan, "-o", "run.db", "--concurrency", 3)
    assert process.stdout is not None
    process.stdout.readline()  # planning has something to say, so the file is there
    for _ in range(20):
        enough = answered(tmp_path / "run.db") + moments.randrange(30)
        while answered(tmp_path / "run.db") < enough and process.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0.0, 0.02))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "it was at work"
        process = started(tmp_path, "resume", "run.db", "--concurrency", 3)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert exported(dialoom, tmp_path, "run.db") == whole


def test_finished_dialogues_are_not_touched_by_resume(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Resuming a finished run makes no call and changes no byte of what is exported."""
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "run.db")
    before, calls = exported(dialoom, tmp_path, "run.db"), json.loads(dialoom("status", "run.db", "--json").stdout)
    assert "0 done, 0 failed" in dialoom("resume", "run.db").stdout
    assert exported(dialoom, tmp_path, "run.db") == before
    assert json.loads(dialoom("status", "run.db", "--json").stdout) == calls


def slow_players(folder: Path) -> list[str]:
    """A cast that takes its time: 50 ms a call."""
    (folder / "slow.py").write_text(
        """
import asyncio

async def user(messages):
    await asyncio.sleep(0.05)
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said}." + (" TERMINATE" if said >= 9 else "")

async def assistant(messages):
    await asyncio.sleep(0.05)
    return f"Reply {len(messages)}."
"""
    )
    return ["--model", "user=python:slow:user", "--model", "assistant=python:slow:assistant", "--no-judge"]


def test_an_interrupt_drains_and_says_how_to_go_on(dialoom: Command, tmp_path: Path) -> None:
    """Ctrl-C: exit 3 within a step, nothing lost, every call made once."""
    write_release(tmp_path / "release", users=4)
    plan = ["run", "personalens", "--profiles", "release", *slow_players(tmp_path), "--concurrency", "4"]
    process = started(tmp_path, *plan, "-o", "run.db")
    wait_for_work(tmp_path, process, 8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 3, err
    assert "dialoom resume run.db" in out
    assert "Traceback" not in err
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]["pending"] > 0
    dialoom("resume", "run.db")
    dialoom(*plan, "-o", "whole.db")
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")
    calls = [json.loads(dialoom("status", name, "--json").stdout)["calls"] for name in ("run.db", "whole.db")]
    assert calls[0] == calls[1], "a drained run pays for nothing twice"


def test_a_second_interrupt_stops_at_once(dialoom: Command, tmp_path: Path) -> None:
    """Even when a call never comes back; what was committed is kept."""
    write_release(tmp_path / "release")
    (tmp_path / "stuck.py").write_text(
        "import asyncio\n"
        "async def assistant(messages):\n"
        "    await asyncio.sleep(0 if len(messages) < 3 else 3600)\n"
        "    return 'there'\n"
        "async def user(messages):\n"
        "    return 'again'\n"
    )
    cast = ["--model", "user=python:stuck:user", "--model", "assistant=python:stuck:assistant", "--no-judge"]
    process = started(tmp_path, "run", "personalens", "--profiles", "release", *cast, "-o", "run.db")
    wait_for_work(tmp_path, process, 6)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first interrupt waits for the calls in flight"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "dialoom resume run.db" in out
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["calls"] == 6


def test_a_second_process_is_refused_while_reading_goes_on(dialoom: Command, tmp_path: Path) -> None:
    """One writer; status, show and export work beside it."""
    write_release(tmp_path / "release", users=12)
    plan = ["run", "personalens", "--profiles", "release", *slow_players(tmp_path), "--concurrency", "1"]
    process = started(tmp_path, *plan, "-o", "run.db")
    try:
        wait_for_work(tmp_path, process, 2)
        refused = dialoom("resume", "run.db", code=2)
        assert "being written by another dialoom process" in refused.stderr
        said = dialoom("status", "run.db").stdout
        assert "another dialoom process is writing it now" in said
        assert "go on with" not in said
        assert json.loads(dialoom("status", "run.db", "--json").stdout)["is_being_written"] is True
        dialoom("show", "run.db")
        dialoom("export", "run.db", "-o", "beside.jsonl")
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL, "the writer was at work all the while"
    assert "go on with: dialoom resume run.db\n" in dialoom("status", "run.db").stdout


_PLANS = """
import shutil, sys, time
from pathlib import Path

sys.path.insert(0, {example!r})
import recipe

class Slow(type(recipe.RECIPE)):
    def scenarios(self, options, draw, note):
        for number in range(1000):
            Path("begun").write_text(str(number))
            time.sleep(0.1)
            yield recipe.Secret(word=f"w{{number}}", questions=2)

class Leaving(type(recipe.RECIPE)):
    def scenarios(self, options, draw, note):
        yield recipe.Secret(word="w", questions=2)
        sys.exit("the data file is broken")

SLOW, LEAVING = Slow(), Leaving()
"""


def test_planning_can_be_interrupted_and_may_even_exit(dialoom: Command, tmp_path: Path) -> None:
    """At the next scenario, not after the last; a recipe that exits does so, and leaves nothing behind."""
    example = ROOT / "docs" / "examples" / "twenty_questions"
    shutil.copytree(example / "prompts", tmp_path / "prompts")
    (tmp_path / "plans.py").write_text(_PLANS.format(example=str(example)))
    left = dialoom("run", "plans.py:LEAVING", "--words", "a", "-o", "run.db", code=1, input="")
    assert left.stderr == "the data file is broken\n"
    process = started(tmp_path, "run", "plans.py:SLOW", "--words", "a", "-o", "run.db")
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert int((tmp_path / "begun").read_text()) < 999, "it was planned to the end"
    assert not list(tmp_path.glob("run.db*"))


def test_a_run_killed_while_planning_is_planned_by_resume(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Planning is one transaction: whole or not there."""
    write_release(tmp_path / "release", users=3)
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "whole.db")
    # A pipe in a profile's place holds the planner up until it is killed.
    path = tmp_path / "release" / "data" / "profile" / "user9" / "profile.json"
    content = path.read_text()
    path.unlink()
    subprocess.run(["mkfifo", path], check=True)
    process = started(tmp_path, "run", "personalens", "--profiles", "release", *players, "-o", "run.db")
    deadline = time.monotonic() + 30
    while not (tmp_path / "run.db-wal").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.kill()
    process.communicate()
    path.unlink()
    path.write_text(content)
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]["total"] == 0
    dialoom("resume", "run.db")
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")


@needs_real_data
def test_the_real_release_is_played_and_judged(dialoom: Command, tmp_path: Path) -> None:
    """A cut through the real data: every dialogue ended by the user, judged, and of its own."""
    source = ["--profiles", REAL, "--users", "user874,user1041", "--limit", 60, "--setting", "base", "--setting", "I"]
    dialoom("run", "personalens", *source, "--model", "offline/attentive", "--seed", 7, "-o", "real.db")
    dialoom("export", "real.db", "-o", "real.jsonl")
    lines = lines_of(tmp_path / "real.jsonl")
    assert len(lines) == 60
    assert {line["ended_by"] for line in lines} == {"user_terminated"}
    assert {judgement["status"] for line in lines for judgement in line["judgements"]} == {"ok"}
    texts = {"\n".join(message["content"] for message in line["messages"]) for line in lines}
    assert len(texts) == 60, "no dialogue is the same as another"
