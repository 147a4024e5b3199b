"""Runs of older and newer versions."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom as door
from dialoom.runs.stepping import Session
from dialoom.runs.store import RunFile, StoreError, migrations, views
from dialoom.runs.store.checkpoints import RunSaver
from dialoom.runs.store.checkpoints.items import time_text
from dialoom.runs.store.checkpoints.reading import CheckpointReader
from dialoom.runs.store.lock import WriteLock
from dialoom.runs.store.migrations import Step, migrate, version_of
from dialoom.runs.store.schema import SCHEMA_VERSION
from tests.conftest import ROOT, Command, MadeOnce, lines_of, quick_players
from tests.invented import write_release
from tests.runs.stepping.played import asked, counted, dialogue, shown, stepping, stood
from tests.runs.store.older import back_to_five, back_to_six

OLDER = 0


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """To a file of version 0 with one table, in autocommit mode."""
    with closing(sqlite3.connect(tmp_path / "file.db", isolation_level=None)) as opened:
        opened.execute("CREATE TABLE words (word TEXT)")
        yield opened


@pytest.fixture
def run(made_once: MadeOnce) -> Path:
    """A run of two dialogues that its budget stopped, and `whole.db`, which plays the same without one."""
    return made_once(_run) / "run.db"


def _run(dialoom: Command, folder: Path) -> None:
    write_release(folder / "release")
    plan = ("personalens", "--profiles", "release", *quick_players(folder), "--concurrency", 1)
    dialoom("run", *plan, "-o", "whole.db")
    dialoom("run", *plan, "--max-calls", 7, "-o", "run.db", code=3)


def make_older(path: Path) -> None:
    """Take a run back to an imagined version in which outcomes had no details."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE outcomes DROP COLUMN details")
        drop_later(file)
        file.execute(f"PRAGMA user_version = {OLDER}")


def drop_later(file: sqlite3.Connection) -> None:
    """Drop what came after version 1."""
    back_to_five(file)
    file.execute("ALTER TABLE outcomes DROP COLUMN faults")
    unframe(file)
    for table in ("passages", "common_uses"):
        file.execute(f"DROP TABLE {table}")


def unframe(file: sqlite3.Connection) -> None:
    """Put what checkpoints have in common into each of them again, as before version 5."""
    rows = file.execute(
        "SELECT number, thread, checkpoints.id, parent, time, format, channels, seen, updated, metadata, held "
        "FROM checkpoints JOIN checkpoint_frames AS frames ON frames.id = frame"
    ).fetchall()
    for table in ("checkpoints", "checkpoint_frames"):
        file.execute(f"DROP TABLE {table}")
    file.execute(
        "CREATE TABLE checkpoints (number INTEGER PRIMARY KEY, thread INTEGER, id BLOB, parent BLOB, time TEXT, "
        "format INTEGER, channels TEXT, seen TEXT, updated TEXT, metadata TEXT)"
    )
    file.execute("CREATE UNIQUE INDEX idx_checkpoints_thread_id ON checkpoints (thread, id)")
    for *before, time, format_, channels, seen, updated, metadata, held in rows:
        described = {name: [version] for name, version in json.loads(channels).items()}
        for name, part in zip(described, json.loads(held), strict=False):
            described[name] += older_part(part)
        row = (*before, time_text(time), format_, json.dumps(described), seen, updated, metadata)
        file.execute(f"INSERT INTO checkpoints VALUES ({', '.join('?' * len(row))})", row)
    file.commit()


def older_part(part: Any) -> list[Any]:
    """What a channel holds, as its kind and the reference."""
    if isinstance(part, int):
        return ["value", part]
    if isinstance(part, list):
        return ["is", *part]
    if "list" in part:
        return ["list", part["list"]]
    return ["fields", {name: [None, *older_part(field)] for name, field in part["fields"].items()}]


def history_of(path: Path) -> list[tuple[Any, ...]]:
    """Every checkpoint of a run, without the writes that wait for the next one: errors among them equal no other."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        return [found[:-1] for found in CheckpointReader(file).matching(None, None, None, None)]


def add_details(connection: sqlite3.Connection) -> None:
    """The step from that version to the first one."""
    connection.execute("ALTER TABLE outcomes ADD COLUMN details TEXT")


def adding(word: str) -> Step:
    """A step that adds a word."""

    def add(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO words VALUES (?)", (word,))

    return add


def words_in(connection: sqlite3.Connection) -> list[str]:
    """The words, in the order in which they came."""
    return [word for (word,) in connection.execute("SELECT word FROM words ORDER BY rowid")]


def test_steps_are_taken_from_the_file_s_version_on(connection: sqlite3.Connection) -> None:
    """In their order, as far as they lead, and none of them twice."""
    steps = {0: adding("zero"), 1: adding("one"), 2: adding("two"), 7: adding("seven")}
    connection.execute("PRAGMA user_version = 1")
    assert migrate(connection, steps) == version_of(connection) == 3
    assert migrate(connection, steps) == 3
    assert words_in(connection) == ["one", "two"]


def test_a_step_that_fails_is_undone(connection: sqlite3.Connection) -> None:
    """And can be taken again; those before it stay."""

    def failing(connection: sqlite3.Connection) -> None:
        adding("half")(connection)
        raise RuntimeError("no further")

    with pytest.raises(RuntimeError, match="no further"):
        migrate(connection, {0: adding("zero"), 1: failing})
    assert version_of(connection) == 1
    assert words_in(connection) == ["zero"]
    migrate(connection, {1: adding("one")})
    assert words_in(connection) == ["zero", "one"]


def test_a_half_finished_run_of_an_older_version_goes_on(
    dialoom: Command, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is brought up to date when it is opened, and what comes of it is what comes of any other run."""
    make_older(run)
    monkeypatch.setitem(migrations.STEPS, OLDER, add_details)
    dialoom("resume", "run.db", "--max-calls", "none")
    for name in ("run", "whole"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert lines_of(tmp_path / "run.jsonl") == lines_of(tmp_path / "whole.jsonl")
    with closing(sqlite3.connect(run)) as file:
        assert version_of(file) == SCHEMA_VERSION


def test_a_run_that_no_step_leads_on_from_is_refused(run: Path) -> None:
    """Instead of being read as something that it is not; and it is left as it is."""
    make_older(run)
    before = run.read_bytes()
    with pytest.raises(StoreError, match=rf"run\.db has run-file version {OLDER}"):
        RunFile(run)
    assert run.read_bytes() == before


def test_a_run_of_a_later_version_is_refused_and_left_alone(dialoom: Command, run: Path) -> None:
    """With what to do."""
    with closing(sqlite3.connect(run)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = run.read_bytes()
    for command in ("status", "resume"):
        assert "newer dialoom" in dialoom(command, "run.db", code=2).stderr
    assert run.read_bytes() == before


def test_files_of_the_first_version_get_what_is_missing(dialoom: Command, run: Path, tmp_path: Path) -> None:
    """The tables that a new file has, while their own rows stay as they are."""
    with closing(sqlite3.connect(run)) as file:
        drop_later(file)
        file.execute("PRAGMA user_version = 1")
    dialoom("resume", "run.db", "--max-calls", "none")
    for name in ("run", "whole"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert lines_of(tmp_path / "run.jsonl") == lines_of(tmp_path / "whole.jsonl")
    assert layout_of(run) == layout_of(tmp_path / "whole.db")


def test_a_run_that_an_older_version_writes_is_left_to_it(dialoom: Command, run: Path) -> None:
    """Nothing of it can be read until it is up to date, and nobody says that it can."""
    with closing(sqlite3.connect(run)) as file:
        back_to_six(file)
    with closing(WriteLock(run)):
        with pytest.raises(StoreError, match=r"run\.db is being written .*an older dialoom has made it") as refused:
            RunFile(run)
        assert "can be read" not in str(refused.value)
    assert "2 scenarios" in dialoom("status", "run.db").stdout


def test_judgements_that_workers_left_without_their_set_are_found_again(tmp_path: Path) -> None:
    """Before version 8 a worker's file alone had the set of a recipe without judging roles."""
    run = door.play(f"{ROOT}/docs/examples/larder/larder.py:RECIPE", path=tmp_path / "run.db")
    before = run.frame("judgements").to_csv()
    with closing(sqlite3.connect(run.path)) as file, file:
        file.execute("DELETE FROM judgement_sets")
        file.execute("PRAGMA user_version = 7")
    assert run.frame("judgements").to_csv() == before
    assert before.count("stocked") == 2


def test_checkpoints_of_an_older_version_are_what_they_were(dialoom: Command, run: Path) -> None:
    """Of a run, whose conversations go on from them, and of a file of one's own."""
    before = history_of(run)
    with closing(sqlite3.connect(run)) as file:
        drop_later(file)
        file.execute("PRAGMA user_version = 1")
    with closing(sqlite3.connect(run.with_name("own.db"))) as own, closing(sqlite3.connect(run)) as file:
        file.backup(own)
    dialoom("status", "run.db")
    asyncio.run(opened(run.with_name("own.db")))
    assert len(before) == 8
    for name in ("run", "own"):
        assert history_of(run.with_name(f"{name}.db")) == before


async def opened(path: Path) -> None:
    """Open a file for a graph's checkpoints."""
    async with RunSaver.open(path):
        pass


def layout_of(path: Path) -> dict[str, object]:
    """The columns and indexes of all tables, and the views over them."""
    with closing(sqlite3.connect(path)) as file:
        shown = dict(file.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall())
        names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return shown | {
            name: [file.execute(f"PRAGMA {what}({name})").fetchall() for what in ("table_info", "index_list")]
            for (name,) in names
        }


def test_a_file_of_the_first_version_can_be_stepped_through(made_once: MadeOnce) -> None:
    """Its branches look as they did, cost nothing to walk along, and go on."""
    path = dialogue(made_once)

    async def branch_off(session: Session) -> list[list[dict[str, Any]]]:
        branch = await session.fork("mine")
        await branch.goto(3)
        await branch.say("user", "A quiet place, please.")
        return [stood(await each.stops()) for each in (session, branch)]

    async def go_on(session: Session) -> None:
        branch = await session.switch("mine")
        assert [stood(await each.stops()) for each in (session, branch)] == before
        await session.goto(2)
        assert shown(await session.step()) == before[0][3]
        assert counted(path) == calls
        assert (await branch.run()).next == ()
        await branch.promote()

    before, calls = stepping(path, branch_off), counted(path)
    with closing(sqlite3.connect(path)) as file:
        drop_later(file)
        file.execute("PRAGMA user_version = 1")
    stepping(path, go_on)
    assert asked(path, calls.rows)[0] == "assistant"
    with RunFile(path) as played:
        taken = played.episode(0)
    assert taken is not None
    assert "A quiet place, please." in [line.content for line in taken.outcome.messages]


def test_faults_of_an_older_run_are_unknown_until_it_is_reviewed(dialoom: Command, run: Path) -> None:
    """They are neither none nor some; the rules find them without a model."""
    with closing(sqlite3.connect(run.with_name("whole.db"))) as file:
        drop_later(file)
        file.execute("PRAGMA user_version = 1")
    where = ("show", "whole.db", "--json", "--where", "faults >= 0")
    assert dialoom(*where).stdout == ""
    dialoom("review", "whole.db")
    assert len(dialoom(*where).stdout.splitlines()) == 2


def test_a_file_of_the_version_before_reads_as_it_did(dialoom: Command, run: Path) -> None:
    """Row by row, in less room."""
    before = rows_of(run)
    with closing(sqlite3.connect(run)) as file:
        back_to_five(file)
    dialoom("status", "run.db")
    assert rows_of(run) == before


def rows_of(path: Path) -> dict[str, list[Any]]:
    """What readers see."""
    with closing(sqlite3.connect(path)) as file:
        return {view: file.execute(f"SELECT * FROM {view} ORDER BY 1").fetchall() for view in views.VIEWS}


def test_documents_of_an_older_version_stay_as_they_are(dialoom: Command, run: Path, tmp_path: Path) -> None:
    """As text beside new ones that are deflated; the run goes on, and comes to the same."""
    assert kinds_of_documents(run) == {"blob"}
    with closing(sqlite3.connect(run)) as file:
        back_to_six(file)
    dialoom("resume", "run.db", "--max-calls", "none")
    assert kinds_of_documents(run) == {"text"}
    for name in ("run", "whole"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert lines_of(tmp_path / "run.jsonl") == lines_of(tmp_path / "whole.jsonl")


def kinds_of_documents(path: Path) -> set[str]:
    """What SQLite says that their contents are."""
    with closing(sqlite3.connect(path)) as file:
        return {kind for (kind,) in file.execute("SELECT DISTINCT typeof(content) FROM documents")}
