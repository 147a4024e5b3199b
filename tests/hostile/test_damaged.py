"""Damaged and crafted run files: one message that names the error, no traceback, no hang, no other damage."""

from __future__ import annotations

import gc
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dialoom
from dialoom import DialoomError
from dialoom.runs.store import schema
from tests.conftest import Command

COMMANDS = [
    ("status", "d.db"),
    ("status", "d.db", "--json"),
    ("status", "d.db", "--config"),
    ("show", "d.db"),
    ("show", "d.db", 1),
    ("show", "d.db", 2, "--json"),
    ("report", "d.db"),
    ("report", "d.db", "--cost"),
    ("export", "d.db", "-o", "d.jsonl"),
    ("export", "d.db", "--format", "personalens", "-o", "folder"),
    ("agree", "d.db", "--sample", 2, "-o", "d.csv"),
    ("resume", "d.db"),
    ("retry", "d.db", "--scenario", 1, "--replay-only"),
    ("step", "d.db", 1, "--script", "script.txt"),
    ("compact", "d.db"),
]
VALUES = ["", "x", "{", "[]", "{}", "null", "3", '"a"', "[[1]]", '[["user", 99]]', '{"a": {"$doc": "zz"}}', "[" * 5000]
WRONG = [*VALUES, None, b"\xff\xfe", -1, 2**62, 1.5, float("inf"), "9" * 5000]
COLUMNS = [
    *(("run", "value"), ("run", "key"), ("prompts", "source"), ("prompts", "id"), ("judgement_sets", "models")),
    *(("scenarios", each) for each in ("position", "id", "facets", "content", "state", "sample", "take", "branch")),
    *(("outcomes", each) for each in ("scenario", "ended_by", "counts", "messages", "details")),
    *(("judgements", each) for each in ("metric", "target", "turn", "score", "is_verdict", "status", "explanation")),
    *(("kept_calls", each) for each in ("reply", "messages", "input_tokens", "cost", "latency", "kind")),
    *(("kinds", each) for each in ("role", "model", "sample", "node")),
    *(
        ("kept_texts", "content"),
        ("kept_texts", "parts"),
        ("documents", "content"),
        ("documents", "hash"),
        ("threads", "name"),
    ),
    *(("checkpoints", each) for each in ("id", "parent", "time", "frame", "held")),
    *(("checkpoint_frames", each) for each in ("channels", "seen", "metadata")),
    *(("checkpoint_values", "content"), ("checkpoint_lists", "prefix"), ("checkpoint_lists", "elements")),
]

READ = frozenset(
    "common_uses documents judged judgement_sets judgements kept_calls kept_texts kinds outcomes prompts run "
    "scenarios".split()
)
"""The tables that `show` reads."""


def all_commands(dialoom: Command, folder: Path, damaged: Path, commands: list[tuple[object, ...]]) -> list[str]:
    """Run commands, each on a copy of the file; return the messages of those that refused it."""
    (folder / "script.txt").write_text("state\nnext\n")
    messages = []
    for command in commands:
        for old in (*folder.glob("d.*"), *folder.glob("folder*")):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copy(damaged, folder / "d.db")
        before = {path.name for path in folder.iterdir()}
        gc.collect()  # closes connections that an error has left open, as the end of a process would
        done = dialoom(*command, code=None)  # fails the test if there is a traceback
        assert done.returncode in (0, 1, 2, 3), command
        new = {path.name for path in folder.iterdir()} - before
        assert new <= {"d.jsonl", "d.csv", "folder", "d.db-wal", "d.db-shm"}, (command, new)
        if done.returncode == 2:
            assert done.stderr.startswith(("dialoom: ", "script.txt")), (command, done.stderr)
            messages.append(done.stderr)
    return messages


@pytest.mark.parametrize("table", sorted(schema.TABLES))
def test_dropped_table_is_named(dialoom: Command, tmp_path: Path, damaged: Path, table: str) -> None:
    with sqlite3.connect(damaged) as connection:
        connection.execute(f"DROP TABLE {table}")
    connection.close()
    messages = all_commands(dialoom, tmp_path, damaged, [COMMANDS[4]])
    for text in messages:
        assert "d.db is damaged" in text and "no such table" in text, text
    assert bool(messages) is (table in READ)


def test_locked_file_is_not_reported_as_damaged(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoom.runs.store.connections.BUSY_SECONDS", 0.0)
    with closing(sqlite3.connect(damaged)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DialoomError, match="source: database is locked"):
            dialoom.resume(damaged)


def test_truncated_file_is_reported(dialoom: Command, tmp_path: Path, damaged: Path) -> None:
    whole = damaged.read_bytes()
    for size in (50, 5000, len(whole) // 2):
        damaged.write_bytes(whole[:size])
        messages = all_commands(dialoom, tmp_path, damaged, [COMMANDS[0], COMMANDS[4], COMMANDS[11]])
        assert len(messages) == 3
        assert all("damaged" in text or "not a run" in text for text in messages), messages
    assert ".recover" in messages[0]


def test_damaged_row_is_named(damaged: Path) -> None:
    with sqlite3.connect(damaged) as connection:
        connection.execute("UPDATE outcomes SET counts = '{' WHERE scenario = 1")
    run = dialoom.open_run(damaged)
    assert run.status().done == 2
    with pytest.raises(DialoomError, match="counts of the table outcomes has invalid JSON in the row of 2"):
        list(run.episodes())
    assert run.episode(1) is not None


def test_the_cause_of_damage_contains_no_key(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "abcdefgh12345678")
    with sqlite3.connect(damaged) as connection:
        connection.execute("""UPDATE outcomes SET counts = '{"abcdefgh12345678": "x"}'""")
    with pytest.raises(DialoomError, match=r"counts\.\[SHOP_KEY\]: "):
        dialoom.open_run(damaged).report()


def test_row_that_only_the_recipe_rejects_names_the_recipe(damaged: Path) -> None:
    with sqlite3.connect(damaged) as connection:
        connection.execute("UPDATE scenarios SET facets = '{}'")
    with pytest.raises(DialoomError, match="the recipe 'personalens' cannot read its content: KeyError"):
        dialoom.open_run(damaged).report()


@pytest.mark.parametrize("name", ["run", "again"])
def test_judgements_without_their_set_are_reported_as_damage(
    dialoom: Command, tmp_path: Path, damaged: Path, name: str
) -> None:
    damaged = damaged.rename(tmp_path / "d.db")
    if name != "run":
        dialoom("judge", "d.db", "--model", "offline/generic", "--name", name)
    with sqlite3.connect(damaged) as connection:
        connection.execute("DELETE FROM judgement_sets WHERE name = ?", (name,))
    for command in (("status", "d.db"), ("export", "d.db", "-o", "d.jsonl"), ("resume", "d.db")):
        errors = dialoom(*command, code=2).stderr
        assert f"d.db is damaged: it contains judgements of the set {name!r}" in errors
        assert "which is missing in the table judgement_sets; add its row" in errors


@pytest.mark.parametrize(
    "craft",
    [
        "CREATE TRIGGER t AFTER UPDATE ON scenarios BEGIN DELETE FROM outcomes; END",
        "DROP VIEW texts; CREATE VIEW texts AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL "
        "SELECT id + 1 FROM c) SELECT id, zeroblob(16) AS hash, '' AS content FROM c",
        "DROP TABLE attempts; CREATE VIRTUAL TABLE attempts USING fts5(content)",
    ],
    ids=["trigger", "view", "virtual table"],
)
def test_file_with_triggers_foreign_views_or_virtual_tables_is_refused(damaged: Path, craft: str) -> None:
    with sqlite3.connect(damaged) as connection:
        connection.execute("CREATE VIEW mine AS SELECT * FROM scenarios")
    assert dialoom.open_run(damaged).status().done == 2
    with sqlite3.connect(damaged) as connection:
        connection.executescript(craft)
    with pytest.raises(DialoomError, match="was not created by dialoom alone"):
        dialoom.open_run(damaged)


def test_circular_references_are_refused(damaged: Path) -> None:
    with sqlite3.connect(damaged) as connection:
        parts = "[" + ", ".join(f'{{"$doc": "{"ab" * 16}"}}' for _ in range(10)) + "]"
        connection.execute("INSERT INTO documents VALUES (?, ?)", (b"\xab" * 16, parts))
        connection.execute("UPDATE scenarios SET content = ?", (parts,))
        connection.execute("UPDATE checkpoint_lists SET prefix = id")
        connection.execute("UPDATE scenarios SET state = 'pending'")
    with pytest.raises(DialoomError, match="damaged"):
        dialoom.open_run(damaged).scenario(1)


def test_tables_are_those_of_the_schema() -> None:
    with sqlite3.connect(":memory:") as connection:
        schema.create(connection)
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert names == schema.TABLES


@pytest.mark.parametrize(
    "column",
    [
        ("checkpoints", "held"),
        ("checkpoint_frames", "seen"),
        ("checkpoint_frames", "metadata"),
        ("checkpoint_values", "content"),
        ("checkpoint_lists", "elements"),
    ],
)
@pytest.mark.parametrize("value", ["[[1]]"])
def test_stepping_refuses_malformed_state(
    dialoom: Command, tmp_path: Path, damaged: Path, column: tuple[str, str], value: str
) -> None:
    check_crafted(
        dialoom,
        tmp_path,
        damaged,
        [(COLUMNS.index(column), WRONG.index(value))],
        [each[0] for each in COMMANDS].index("step"),
    )


def check_crafted(dialoom: Command, folder: Path, source: Path, edits: list[tuple[int, int]], command: int) -> None:
    """Run a command on a file in which some values are replaced by wrong ones."""
    target = folder / "crafted"
    shutil.copy(source, target)
    with sqlite3.connect(target) as connection:
        for column, value in edits:
            table, name = COLUMNS[column]
            with suppress(sqlite3.IntegrityError):  # for a value that the column cannot have
                connection.execute(f"UPDATE OR IGNORE {table} SET {name} = ?", (WRONG[value],))
    connection.close()
    all_commands(dialoom, folder, target, [COMMANDS[command]])


def check_flipped(dialoom: Command, folder: Path, source: Path, flips: list[tuple[int, int]], command: int) -> None:
    """Run a command on a file in which some bytes are changed."""
    content = bytearray(source.read_bytes())
    for place, bits in flips:
        content[place % len(content)] ^= bits
    (folder / "flipped").write_bytes(content)
    all_commands(dialoom, folder, folder / "flipped", [COMMANDS[command]])


ANY_COMMAND = st.integers(0, len(COMMANDS) - 1)
EDITS = st.lists(st.tuples(st.integers(0, len(COLUMNS) - 1), st.integers(0, len(WRONG) - 1)), min_size=1, max_size=2)
FLIPS = st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 255)), min_size=1, max_size=40)
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@given(EDITS, ANY_COMMAND)
@FEW
def test_crafted_rows_give_a_result_or_a_message(
    dialoom: Command, tmp_path: Path, damaged: Path, edits: list[tuple[int, int]], command: int
) -> None:
    check_crafted(dialoom, tmp_path, damaged, edits, command)


@given(FLIPS, ANY_COMMAND)
@FEW
def test_flipped_bytes_give_a_result_or_a_message(
    dialoom: Command, tmp_path: Path, damaged: Path, flips: list[tuple[int, int]], command: int
) -> None:
    check_flipped(dialoom, tmp_path, damaged, flips, command)
