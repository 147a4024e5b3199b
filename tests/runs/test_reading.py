"""Reading a run while it is written: nobody waits for anybody, and nobody sees half a transaction."""

from __future__ import annotations

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.conftest import Command, lines_of
from tests.processes import Started

TORN = """
SELECT count(*) FROM scenarios WHERE (state = 'done') != EXISTS (SELECT 1 FROM outcomes WHERE scenario = position)
UNION ALL
SELECT count(*) FROM scenarios WHERE state = 'done' AND 6 != (SELECT count(*) FROM judgements WHERE scenario = position)
UNION ALL
SELECT count(*) FROM calls, json_each(messages) WHERE json_extract(value, '$[1]') NOT IN (SELECT id FROM texts)
UNION ALL
SELECT count(*) FROM calls WHERE reply NOT IN (SELECT id FROM texts)
UNION ALL
SELECT count(*) FROM checkpoints, json_each(held) AS part WHERE part.type = 'object'
AND json_extract(part.value, '$.list') NOT IN (SELECT id FROM checkpoint_lists)
"""
"""What a whole transaction never shows: five counts that must be 0."""


_USER = """
import asyncio
from pathlib import Path
from players import user as talker

asked = 0

async def user(messages):
    global asked
    asked += 1
    needed = ["is-kept-open"] if asked > 30 else []
    needed += ["is-looked-at", "is-read"] if asked > 75 else []
    while not all(Path(name).exists() for name in needed):
        await asyncio.sleep(0.01)
    return await talker(messages)
"""
"""A user who goes on only once there are readers, and does not come to an end before they have read."""


def test_readers_neither_hold_up_a_run_nor_see_it_torn(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """A tool that keeps a transaction open all the time, one that looks again and again, and our own commands."""
    path = tmp_path / "run.db"
    (tmp_path / "patient.py").write_text(_USER)
    cast = ["--model", "user=python:patient:user", *players[2:]]
    with Started(tmp_path, "run", "personalens", "--limit", 30, *cast, "--concurrency", 4, "-o", path) as run:
        while not (path.exists() and _done(path) > 0):
            assert run.poll() is None
            time.sleep(0.01)
        with closing(sqlite3.connect(path, isolation_level=None)) as keeping:
            keeping.execute("BEGIN")
            then = _done(path, keeping)
            (tmp_path / "is-kept-open").touch()
            with ThreadPoolExecutor() as pool:
                torn = pool.submit(_looked_at, path, run)
                while run.poll() is None:
                    # Each in a process of its own: whoever closes the file drops the locks that SQLite holds on it
                    # for the other connections of the process, and the run would be free to lock it when it ends.
                    dialoom("status", path, env=os.environ)
                    dialoom("show", path, "1", env=os.environ)
                    dialoom("export", path, "-o", tmp_path / f"{time.monotonic_ns()}.jsonl", env=os.environ)
                    (tmp_path / "is-read").touch()
                found = torn.result()
            _, errors = run.communicate()
            assert run.returncode == 0, errors
            # All the while nothing has changed for the one that kept its transaction open.
            assert _done(path, keeping) == then < _done(path)
    assert not found
    for file in tmp_path.glob("*.jsonl"):
        assert then <= len(lines_of(file)) <= _done(path)


def _looked_at(path: Path, run: Started) -> list[object]:
    """What a foreign connection that waits for nobody found torn; it looked again and again while the run went on."""
    looks, found = 0, []
    while run.poll() is None:
        with closing(sqlite3.connect(path, timeout=0)) as foreign:
            found += [row for row in foreign.execute(TORN) if row != (0,)]
        looks += 1
        if looks == 10:
            (path.parent / "is-looked-at").touch()
    return found


def _done(path: Path, connection: sqlite3.Connection | None = None) -> int:
    query = "SELECT count(*) FROM scenarios WHERE state = 'done'"
    if connection is not None:
        return int(connection.execute(query).fetchone()[0])
    with closing(sqlite3.connect(path)) as own:
        try:
            return int(own.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # its tables are not made yet
            return 0
