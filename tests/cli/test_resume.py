"""Runs that were killed, interrupted or locked: after a resume, the export has the same bytes."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import REAL, ROOT, Command, needs_real_data, read_jsonl
from tests.invented import write_release
from tests.processes import CommandProcess


def wait_for(line: str, process: CommandProcess, times: int = 1) -> None:
    """Wait until a process has printed a line with this text `times` times."""
    for _ in range(times):
        while line not in (printed := process.stdout.readline()):
            assert printed, f"the process ended early: {process.communicate()[1]}"


def exported(dialoom: Command, folder: Path, run: str) -> bytes:
    """Return the export of a run's dialogues."""
    dialoom("export", run, "-o", f"{run}.jsonl")
    return (folder / f"{run}.jsonl").read_bytes()


def hashing_players(folder: Path) -> list[str]:
    """Return a cast with replies hashed from all messages; without the file `the-end` a process stops after 25."""
    (folder / "hashing.py").write_text(
        """
import asyncio, hashlib
from pathlib import Path

spoken = 0

async def said(messages):
    global spoken
    spoken += 1
    await asyncio.sleep(0.004)
    while spoken > 25 and not Path("the-end").exists():
        await asyncio.sleep(0.01)
    return hashlib.sha256(repr(messages).encode()).hexdigest()

async def user(messages):
    words = await said(messages)
    return words + (" TERMINATE" if len(messages) > 4 and words < "6" else "")

async def judge(messages):
    words = await said(messages)
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": %s, "explanation": "%s"}' % ("true" if words < "8" else "false", words)
    return '{"score": %d, "explanation": "%s"}' % (1 + int(words[0], 16) % 4, words)
"""
    )
    cast = {"user": "user", "assistant": "said", "judge": "judge"}
    return [part for role, name in cast.items() for part in ("--model", f"{role}=python:hashing:{name}")]


def answered_calls(path: Path) -> int:
    """Return the number of answered calls of a run."""
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        return int(connection.execute("SELECT count(reply) FROM calls").fetchone()[0])


def test_run_killed_ten_times_gives_the_same_bytes(dialoom: Command, tmp_path: Path) -> None:
    plan = ["run", "personalens", "--limit", 24, *hashing_players(tmp_path), "--setting", "base", "--setting", "I"]
    (tmp_path / "the-end").touch()
    dialoom(*plan, "-o", "whole.db", "--concurrency", 16)
    (tmp_path / "the-end").unlink()
    whole = exported(dialoom, tmp_path, "whole.db")
    moments = random.Random(20)
    command: list[object] = [*plan, "-o", "run.db"]
    for _ in range(10):
        with CommandProcess(tmp_path, *command, "--concurrency", 3) as process:
            if command[0] == "run":
                process.stdout.readline()  # planning prints a line once the file exists
            enough = answered_calls(tmp_path / "run.db") + moments.randrange(20)
            while answered_calls(tmp_path / "run.db") < enough and process.poll() is None:
                time.sleep(0.005)
            time.sleep(moments.uniform(0.0, 0.02))
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL, "the process was still running"
        command = ["resume", "run.db"]
    (tmp_path / "the-end").touch()
    dialoom("resume", "run.db")
    assert exported(dialoom, tmp_path, "run.db") == whole


def test_resume_of_a_finished_run_changes_nothing(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "run.db")
    before, calls = exported(dialoom, tmp_path, "run.db"), json.loads(dialoom("status", "run.db", "--json").stdout)
    assert "0 done, 0 failed" in dialoom("resume", "run.db").stdout
    assert exported(dialoom, tmp_path, "run.db") == before
    assert json.loads(dialoom("status", "run.db", "--json").stdout) == calls


def waiting_players(folder: Path) -> list[str]:
    """Return a cast that prints a line at the third reply and waits for the file `go-on`.

    It then waits for some more rounds of the event loop, so that signals sent before the file are handled.
    """
    (folder / "waiting.py").write_text(
        """
import asyncio
from pathlib import Path

async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said}." + (" TERMINATE" if said >= 9 else "")

async def assistant(messages):
    if len(messages) > 5 and not Path("go-on").exists():
        print("waiting", flush=True)
        while not Path("go-on").exists():
            await asyncio.sleep(0.01)
        for _ in range(5):
            await asyncio.sleep(0.01)
    return f"Reply {len(messages)}."
"""
    )
    return ["--model", "user=python:waiting:user", "--model", "assistant=python:waiting:assistant", "--no-judge"]


def test_interrupt_drains_and_names_the_resume_command(dialoom: Command, tmp_path: Path) -> None:
    """After SIGINT the command exits with 3 after the current step; no call is lost or repeated."""
    write_release(tmp_path / "release", users=4)
    plan = ["run", "personalens", "--profiles", "release", *waiting_players(tmp_path), "--concurrency", "4"]
    with CommandProcess(tmp_path, *plan, "-o", "run.db") as process:
        wait_for("waiting", process, 4)
        process.send_signal(signal.SIGINT)
        (tmp_path / "go-on").touch()
        out, err = process.communicate()
        assert process.returncode == 3, err
    assert "dialoom resume run.db" in out
    assert "Traceback" not in err
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    assert status["scenarios"]["pending"] == 8
    assert status["calls"] == 4 * 6, "calls in flight were answered, and no further step was begun"
    dialoom("resume", "run.db")
    dialoom(*plan, "-o", "whole.db")
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")
    calls = [json.loads(dialoom("status", name, "--json").stdout)["calls"] for name in ("run.db", "whole.db")]
    assert calls[0] == calls[1], "a drained run repeats no call"


_SLOW_JUDGE = """
import asyncio
from pathlib import Path

async def judge(messages):
    if not Path("go-on").exists():
        print("waiting", flush=True)
        while not Path("go-on").exists():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
    return "no score"
"""


def test_first_interrupt_is_acknowledged_by_every_command(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=1)
    plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *waiting_players(tmp_path)]
    (tmp_path / "slow.py").write_text(_SLOW_JUDGE)
    (tmp_path / "go-on").touch()
    dialoom(*plan, "-o", "whole.db")
    judge = ["judge", "whole.db", "--model", "python:slow:judge"]
    dialoom(*judge, "--name", "unparsed")
    for command in (
        [*plan, "-o", "run.db"],
        ["resume", "run.db"],
        [*judge, "--log-format", "json"],
        ["retry", "whole.db", "--unparsed", "--judging", "unparsed"],
    ):
        (tmp_path / "go-on").unlink()
        with CommandProcess(tmp_path, *command) as process:
            wait_for("waiting", process)
            process.send_signal(signal.SIGINT)
            (tmp_path / "go-on").touch()
            _, err = process.communicate()
            assert process.returncode == 3, err
        assert err.count("interrupted: the current steps are being finished; a second Ctrl-C cancels") == 1, err


def test_second_interrupt_stops_at_once(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    (tmp_path / "stuck.py").write_text(
        "import asyncio\n"
        "from pathlib import Path\n"
        "async def assistant(messages):\n"
        "    if len(messages) >= 3:\n"
        "        print('stuck', flush=True)\n"
        "        while not Path('interrupted').exists():\n"
        "            await asyncio.sleep(0.01)\n"
        "        for _ in range(20):\n"
        "            await asyncio.sleep(0.01)\n"
        "        print('stuck still', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "    return 'there'\n"
        "async def user(messages):\n"
        "    return 'again'\n"
    )
    cast = ["--model", "user=python:stuck:user", "--model", "assistant=python:stuck:assistant", "--no-judge"]
    with CommandProcess(tmp_path, "run", "personalens", "--profiles", "release", *cast, "-o", "run.db") as process:
        wait_for("stuck", process, 2)
        process.send_signal(signal.SIGINT)
        (tmp_path / "interrupted").touch()
        wait_for("stuck still", process, 2)
        assert process.poll() is None, "the first interrupt waits for the calls in flight"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert process.returncode == 3
    assert "dialoom resume run.db" in out
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["calls"] == 6


def test_second_writer_is_refused_while_readers_work(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=12)
    plan = ["run", "personalens", "--profiles", "release", *waiting_players(tmp_path), "--concurrency", "1"]
    with CommandProcess(tmp_path, *plan, "-o", "run.db") as process:
        wait_for("waiting", process)
        refused = dialoom("resume", "run.db", code=2)
        assert "being written by another dialoom process" in refused.stderr
        output = dialoom("status", "run.db").stdout
        assert "another dialoom process is writing it now" in output
        assert "go on with" not in output
        assert json.loads(dialoom("status", "run.db", "--json").stdout)["is_being_written"] is True
        dialoom("show", "run.db")
        dialoom("export", "run.db", "-o", "beside.jsonl")
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the writer was running all the time"
    assert "continue with: dialoom resume run.db\n" in dialoom("status", "run.db").stdout


_PLANS = """
import itertools, sys, time

sys.path.insert(0, {example!r})
import recipe

class Endless(type(recipe.RECIPE)):
    def scenarios(self, options, draw, note):
        print("begun", flush=True)
        for number in itertools.count():
            time.sleep(0.01)
            yield recipe.Secret(word=f"w{{number}}", questions=2)

class Leaving(type(recipe.RECIPE)):
    def scenarios(self, options, draw, note):
        yield recipe.Secret(word="w", questions=2)
        sys.exit("the data file is broken")

ENDLESS, LEAVING = Endless(), Leaving()
"""


def test_planning_can_be_interrupted_and_recipes_may_exit(dialoom: Command, tmp_path: Path) -> None:
    example = ROOT / "docs" / "examples" / "twenty_questions"
    shutil.copytree(example / "prompts", tmp_path / "prompts")
    (tmp_path / "plans.py").write_text(_PLANS.format(example=str(example)))
    options = ["--words", "a", "--model", "python:nobody:asked", "-o", "run.db"]
    (tmp_path / "nobody.py").write_text("async def asked(messages):\n    raise AssertionError('nothing is played')\n")
    left = dialoom("run", "plans.py:LEAVING", *options, code=1, input="")
    assert left.stderr == "the data file is broken\n"
    with CommandProcess(tmp_path, "run", "plans.py:ENDLESS", *options) as process:
        wait_for("begun", process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 130
        assert "interrupted: stopping before the work begins" in errors
        assert errors.endswith("dialoom: stopped during planning; nothing was written\n")
    assert not list(tmp_path.glob("run.db*"))


_HOLDING = """
import time
from pathlib import Path
from dialoom.runs.configuration.recipes import load_recipe

class Holding(type(load_recipe("personalens"))):
    name = "holding"

    def scenarios(self, options, draw, note):
        for number, scenario in enumerate(super().scenarios(options, draw, note)):
            while number == 3 and Path("hold").exists():
                Path("held").touch()
                time.sleep(0.01)
            yield scenario

RECIPE = Holding()
"""


def test_run_killed_while_planning_is_planned_by_resume(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=3)
    # While a file 'hold' exists, planning waits after its third scenario and creates a file 'held'.
    (tmp_path / "holding.py").write_text(_HOLDING)
    dialoom("run", "holding.py:RECIPE", "--profiles", "release", *players, "-o", "whole.db")
    (tmp_path / "hold").touch()
    with CommandProcess(
        tmp_path, "run", "holding.py:RECIPE", "--profiles", "release", *players, "-o", "run.db"
    ) as process:
        while not (tmp_path / "held").exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.kill()
        process.communicate()
    (tmp_path / "hold").unlink()
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["scenarios"]["total"] == 0
    dialoom("resume", "run.db")
    assert exported(dialoom, tmp_path, "run.db") == exported(dialoom, tmp_path, "whole.db")


@needs_real_data
def test_real_release_is_played_and_judged(dialoom: Command, tmp_path: Path) -> None:
    source = ["--profiles", REAL, "--users", "user874,user1041", "--limit", 20, "--setting", "base", "--setting", "I"]
    dialoom("run", "personalens", *source, "--model", "offline/attentive", "--seed", 7, "-o", "real.db")
    dialoom("export", "real.db", "-o", "real.jsonl")
    lines = read_jsonl(tmp_path / "real.jsonl")
    assert len(lines) == 20
    assert {line["ended_by"] for line in lines} == {"user_terminated"}
    assert {judgement["status"] for line in lines for judgement in line["judgements"]} == {"ok"}
    texts = {"\n".join(message["content"] for message in line["messages"]) for line in lines}
    assert len(texts) == 20, "all dialogues are different"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "run.db exists and is empty; remove it, or give another file with -o"),
        ("A text.", "run.db exists and is not a run; give another file with -o"),
    ],
)
def test_file_that_is_not_a_run_is_refused_without_advice_to_resume(
    dialoom: Command, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "run.db").write_text(content)
    assert message in dialoom("run", "aloe", "--limit", 1, "-o", "run.db", code=2).stderr
    assert (tmp_path / "run.db").read_text() == content
