"""Unusable input files, runs that cannot be created, and media that cannot be written to."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dialoom
from dialoom import DialoomError
from dialoom.inputs import parse_json, parse_yaml, read_json, read_lines, read_text, read_toml, read_yaml
from dialoom.personas import DataError
from dialoom.runs.store import connections
from tests.conftest import Command
from tests.hostile.replies import play, saying
from tests.processes import CommandProcess

PLAN = ["run", "personalens", "--limit", "1", "-o", "new.db"]
COMMANDS = {
    "config": ("x.yaml", [*PLAN, "--config", "x.yaml"]),
    "prompt": ("p/x.md", [*PLAN, "--prompts", "p"]),
    "keys": ("x.env", [*PLAN, "--env-file", "x.env"]),
    "cache": ("x.cache", [*PLAN, "--cache", "x.cache"]),
    "profile": ("p/data/profile/u/profile.json", [*PLAN, "--profiles", "p"]),
    "schema": ("x.json", ["run", "personalens-people", "--affinity-schema", "x.json", "-o", "new.db"]),
    "tables": ("x.toml", ["run", "personalens-people", "--demographics", "x.toml", "-o", "new.db"]),
    "people": ("x.csv", ["run", "personalens-people", "--demographics", "x.csv", "-o", "new.db"]),
    "personas": ("x.jsonl", ["run", "aloe-eval", "--personas", "x.jsonl", "-o", "new.db"]),
    "pool": ("x.jsonl", ["personas", "check", "x.jsonl"]),
    "pairs": ("x.json", ["run", "prefeval", "--pairs", "x.json", "-o", "new.db"]),
    "source": ("p/meta.jsonl", ["run", "apollo", "--source", "p", "-o", "new.db"]),
    "recipe": ("x.py", ["run", "x.py:RECIPE", "-o", "new.db"]),
    "suite": ("x.yaml", ["scorecard", "--suite", "x.yaml", "-o", "new"]),
    "record": ("p/record.json", ["scorecard", "p"]),
    "case": ("x.json", ["replay", "x.json"]),
    "lines": ("x.jsonl", ["describe", "x.jsonl"]),
    "list": ("x.json", ["describe", "x.json"]),
    "table": ("x.parquet", ["describe", "x.parquet"]),
    "card": ("p/README.md", ["push", "p", "a/b"]),
    "run": ("x.db", ["status", "x.db"]),
    "labels": ("x.csv", ["agree", "run.db", "--labels", "x.csv"]),
    "script": ("x.txt", ["step", "run.db", "1", "--script", "x.txt"]),
}
"""For each kind of file, its name and the command that reads it."""


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path], None]] = {"device": _zeros, "pipe": os.mkfifo, "folder": Path.mkdir}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", COMMANDS)
def test_only_regular_files_are_read(dialoom: Command, finished: Path, tmp_path: Path, what: str, kind: str) -> None:
    name, command = COMMANDS[what]
    if (what, kind) == ("card", "folder"):
        pytest.skip("a folder without a card has its own message")
    shutil.copy(finished, tmp_path / "run.db")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](tmp_path / name)
    errors = dialoom(*command, code=2).stderr
    assert Path(name).name in errors or "README.md" in errors
    assert len(errors.strip().splitlines()) == 1
    assert not (tmp_path / "new.db").exists()


def test_documented_streams_are_read(dialoom: Command) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"DIALOOM_TEST_NAME=1\nDIALOOM_TEST_NAME=2\n")
    os.close(writing)
    assert "given twice" in dialoom(*PLAN, "--env-file", f"/dev/fd/{reading}", code=2).stderr
    os.close(reading)
    assert "/dev/zero: is larger than 1,048,576 bytes" in dialoom(*PLAN, "--env-file", "/dev/zero", code=2).stderr
    assert "/dev/zero: is a device" in dialoom(*PLAN, "--config", "/dev/zero", code=2).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-calls: 1\nmax-calls: 100000\n", "c.yaml:2: the key 'max-calls' is given twice"),
        ("max-calls: 1\nmax_calls: 100000\n", "max_calls is given twice, in different spellings"),
        ("limit: " + "9" * 10_000, "c.yaml:1: an integer has more than 300 digits"),
        ("limit: 0x" + "f" * 10_000, "c.yaml:1: an integer has more than 300 digits"),
        ("seed: 1\nlimit: " + "[" * 10_000, "c.yaml:2: nested more than 100 deep"),
        ("seed: 2024-13-45", "2024-13-45"),
        ("limit: !!timestamp 2024-13-45", "c.yaml:1: aliases (*name) and tags (!name) are not accepted"),
        ("a: &a [1]\nb: *a", "c.yaml:2: aliases"),
        ("limit: 1\nlimit", "c.yaml:2: not YAML: while scanning a simple key could not find expected ':'"),
        ("limit: \udcff", "c.yaml:1: not UTF-8: byte 0xff; save it as UTF-8"),
        ("#" * (2**20 + 1), "c.yaml: is larger than 1,048,576 bytes"),
    ],
)
def test_hostile_yaml_gives_one_message(dialoom: Command, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(text, errors="surrogateescape")
    error_output = dialoom(*PLAN, "--config", "c.yaml", code=2).stderr
    assert message in error_output
    assert len(error_output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b": {"a": 2},\n "a": 3}', "3: the key 'a' is given twice"),
        ('[1,\n {"x": "1:2,{", "y": 1, "\\"": {}, "y": 2}]', "2: the key 'y' is given twice"),
        ("[\n\n" + "9" * 10_000 + "]", "3: an integer has more than 300 digits"),
        ("\n" + "[" * 101 + "]" * 101, "2: nested more than 100 deep"),
        ('{"a":' * 100_000, "1: nested more than 100 deep"),
        ("[1,\n2,,]", "2: not JSON: Expecting value at column 3 (',]')"),
        ("1\n2", "1: not JSON: '2' follows the value; there must be a single value"),
    ],
)
def test_hostile_json_gives_one_message(text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "x.json")
    assert str(caught.value) == f"x.json:{message}"


def test_ordinary_yaml_values_are_read(tmp_path: Path) -> None:
    value = {"a": [1, -2.5, True, None, "x"], "b": {"a": {}}}
    (tmp_path / "x.json").write_text("\ufeff" + json.dumps(value))
    assert read_json(tmp_path / "x.json") == value
    (tmp_path / "x.yaml").write_text("a: [1, -2.5, true, null, x]\nb: {a: {}}\n")
    assert read_yaml(tmp_path / "x.yaml") == value
    assert parse_yaml("when: 2024-02-30\ncall: +49170123\nby: -3", "x") == {
        "when": "2024-02-30",
        "call": "+49170123",
        "by": -3,
    }
    (tmp_path / "x.toml").write_text("a = [1, -2.5]\n[b]\na = 0x10\n")
    assert read_toml(tmp_path / "x.toml") == {"a": [1, -2.5], "b": {"a": 16}}
    (tmp_path / "x.txt").write_bytes(b"one\r\ntwo\n\nfour")
    assert list(read_lines(tmp_path / "x.txt")) == [(1, b"one"), (2, b"two"), (3, b""), (4, b"four")]
    assert read_text(tmp_path / "x.txt").startswith("one")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = " + "9" * 10_000, "x.toml:2: an integer has more than 300 digits"),
        ("a = 1\nb = 0x" + "f" * 10_000, "x.toml: an integer has more than 300 digits"),
        ("a = " + "[" * 100_000, "x.toml: nested more than 100 deep"),
        ("a = 1\na = 2", "x.toml: not TOML: Cannot overwrite a value"),
        ("a = 2024-13-45", "x.toml: not TOML: "),
    ],
)
def test_hostile_toml_gives_one_message(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(DataError) as caught:
        read_toml(tmp_path / "x.toml")
    assert message in str(caught.value)


def test_line_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n" + b" " * 1_000)
    with pytest.raises(DataError, match=r"x\.jsonl:2: the line is longer than 999 bytes"):
        list(read_lines(tmp_path / "x.jsonl", max_bytes=999))
    assert len(list(read_lines(tmp_path / "x.jsonl", max_bytes=1_000))) == 2


def test_name_of_the_runs_own_judgements_is_refused(tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1})
    before = run.status().usage.calls
    with pytest.raises(DialoomError, match="name 'run' is reserved") as caught:
        run.judge("offline/attentive", name="run")
    assert caught.value.setting == "name"
    assert run.status().usage.calls == before


@pytest.mark.parametrize("number", [-5, 0, 10**20])
def test_concurrency_has_bounds(dialoom: Command, tmp_path: Path, number: int) -> None:
    (tmp_path / "c.yaml").write_text(f"concurrency: {number}\nlimit: 1\n")
    for given in (["--config", "c.yaml"], ["--concurrency", number, "--limit", 1]):
        assert "concurrency" in dialoom("run", "personalens", *given, "-o", "run.db", code=2).stderr
    assert not list(tmp_path.glob("*run.db*"))


@pytest.mark.parametrize("path", [":memory:", "file:x.db", "file::memory:?cache=shared"])
def test_special_sqlite_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DialoomError, match="give the path of a file"):
        dialoom.plan("personalens", path=path, options={"limit": 1})
    with pytest.raises(DialoomError, match="give the path of a file"):
        dialoom.plan("personalens", path="run.db", options={"limit": 1}, cache=path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "why"), [("no/run.db", "No such file or directory"), ("file/run.db", "Not a directory")]
)
def test_run_in_a_missing_folder_is_refused(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DialoomError, match=f"{path} cannot be created: {why}"):
        dialoom.plan("personalens", path=tmp_path / path, options={"limit": 1})


_KILLED = """
import os, signal, sys
import dialoom
folder, at = sys.argv[1], int(sys.argv[2])
if sys.argv[3] == "False":
    del os.O_TMPFILE
def hook(event, arguments):
    global at
    if event in ("open", "os.link", "os.remove", "sqlite3.connect") and folder in str(arguments):
        at -= 1
        if at == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
dialoom.plan("personalens", path=folder + "/run.db", options={"limit": 1})
"""


@pytest.mark.parametrize("is_nameless", [True, False], ids=["O_TMPFILE", "temporary file"])
def test_run_file_appears_complete_or_not_at_all(tmp_path: Path, is_nameless: bool) -> None:
    for at in (1, 2, 3, 4, 6):
        (folder := tmp_path / f"run{at}").mkdir()
        with CommandProcess(tmp_path, folder, at, is_nameless, script=_KILLED) as process:
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        if (path := folder / "run.db").exists():
            assert dialoom.resume(path).status().done == 1
        else:
            assert not is_nameless or not list(folder.iterdir())
            assert len(dialoom.plan("personalens", path=path, options={"limit": 1})) == 1


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the size of files written by this process; SQLite reports a full disk beyond it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("size", [20_000, 500_000], ids=["while it is created", "while it is planned"])
def test_full_disk_leaves_nothing_to_resume(tmp_path: Path, size: int) -> None:
    hens = (f"She keeps the hens {Random(number).getrandbits(8_000):x}." for number in range(1000))
    people = ({"profile": each, "personality": "Calm."} for each in hens)
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    options: dict[str, Any] = {"personas": str(tmp_path / "people.jsonl")}
    with file_size_limit(size), pytest.raises(DialoomError, match="no file was left") as caught:
        dialoom.plan("aloe-eval", path=tmp_path / "run.db", options=options)
    assert "resume" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["people.jsonl"]


def test_new_run_is_in_wal_mode(tmp_path: Path) -> None:
    run = play(tmp_path, people=1, assistant=saying("Hi."))
    with sqlite3.connect(run.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail writes as a read-only mount does: the tests may run as root, for whom permissions have no effect."""
    opened, connect = os.open, connections._connect

    def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY) and str(path).endswith(".db"):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *rest, **more)

    def no_writing(uri: str) -> sqlite3.Connection:
        if "mode=rw" in uri:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(uri)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(connections, "_connect", no_writing)


def test_unreadable_wal_file_is_an_error(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = play(tmp_path, people=1)
    with sqlite3.connect(run.path) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE scenarios SET state = 'pending'")
        writer.commit()
        for suffix in ("", "-wal"):
            shutil.copy(f"{run.path}{suffix}", tmp_path / f"media.db{suffix}")
    request.getfixturevalue("read_only")
    with pytest.raises(DialoomError, match=r"media\.db-wal cannot be read; copy both files"):
        dialoom.open_run(tmp_path / "media.db").status()


def test_writing_to_a_read_only_run_gives_one_message(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    run = play(tmp_path, people=1)
    request.getfixturevalue("read_only")
    assert run.status().done == 1
    for operation in (dialoom.resume, dialoom.retry, dialoom.judge):
        with pytest.raises(DialoomError, match="cannot be written \\(Read-only file system\\); copy it"):
            operation(run.path)


def test_run_in_a_folder_that_cannot_be_written_is_not_continued_there(tmp_path: Path) -> None:
    run = play(tmp_path, people=1)
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("permissions have no effect for this user")
        assert run.status().done == 1
        with pytest.raises(DialoomError, match=r"cannot be written \(.*readonly.*\); copy it to a writable folder"):
            dialoom.resume(run.path)
    finally:
        tmp_path.chmod(0o755)


def test_log_of_an_earlier_file_is_not_copied_into_a_new_run(tmp_path: Path) -> None:
    """SQLite applies the log of a killed process to any file of that name, and the new run would hold the old one."""
    path = play(tmp_path, people=2, assistant=saying("Old.")).path
    with sqlite3.connect(path) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE scenarios SET state = 'pending'")
        writer.commit()
        log = Path(f"{path}-wal")
        kept = log.read_bytes()
    writer.close()
    path.unlink()
    log.write_bytes(kept)
    with pytest.raises(DialoomError, match=r"run\.db-wal contains the last changes of another file") as caught:
        play(tmp_path, people=1, assistant=saying("New."))
    assert "remove it" in str(caught.value)
    log.unlink()
    assert play(tmp_path, people=1, assistant=saying("New.")).status().done == 1


def test_attempt_that_cannot_be_recorded_stops_the_run(tmp_path: Path) -> None:
    """The failure of its scenario could be stored, but every other scenario would fail in the same way."""
    asked: list[int] = []

    async def assistant(_messages: list[dict[str, str]]) -> str:
        asked.append(1)
        with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
            connection.execute("DROP TABLE IF EXISTS attempts")
        raise ValueError("no reply")

    with pytest.raises(DialoomError, match=r"run\.db: no such table: \S*attempts"):
        play(tmp_path, people=20, assistant=assistant)
    assert len(asked) < 10


@pytest.mark.parametrize("is_replaced", [False, True], ids=["moved", "replaced"])
def test_work_stops_when_its_file_is_moved_or_replaced(tmp_path: Path, is_replaced: bool) -> None:
    other = tmp_path / "other"
    other.mkdir()
    content = play(other, people=1, assistant=saying("Other.")).path.read_bytes()
    path, moved = tmp_path / "run.db", tmp_path / "moved.db"
    asked: list[int] = []

    async def assistant(_messages: list[dict[str, str]]) -> str:
        asked.append(1)
        if len(asked) == 4:
            path.rename(moved)
            if is_replaced:
                path.write_bytes(content)
        return "Hello."

    with pytest.raises(DialoomError, match=r"run\.db was removed or replaced while it was being written"):
        play(tmp_path, people=20, assistant=assistant)
    assert len(asked) < 10
    if is_replaced:
        assert dialoom.open_run(path).status().total == 1
        assert path.read_bytes() == content
    judge = saying('{"score": 3, "explanation": "fair"}')
    players = {"user": saying("Hello."), "assistant": assistant, "judge": judge}
    assert dialoom.resume(moved, models=players).status().done == 20
    assert len(asked) <= 20 + 2, "only calls in flight are repeated"
