"""Whatever stands where a user names a file: one message with the file, exit code 2, and no end of memory or time."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoom.inputs import DataError, parse_json, parse_yaml, read_json, read_lines, read_text, read_toml, read_yaml
from tests.conftest import Command

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
"""What reads a file, and how it is called."""


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, Callable[[Path], None]] = {"device": _zeros, "pipe": os.mkfifo, "folder": Path.mkdir}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", COMMANDS)
def test_only_regular_files_are_read(dialoom: Command, kept: Path, tmp_path: Path, what: str, kind: str) -> None:
    """A device does not end and a pipe has no writer."""
    name, command = COMMANDS[what]
    if (what, kind) == ("card", "folder"):
        pytest.skip("a folder without a card says so")
    shutil.copy(kept, tmp_path / "run.db")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    KINDS[kind](tmp_path / name)
    said = dialoom(*command, code=2).stderr
    assert Path(name).name in said or "README.md" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "new.db").exists()


def test_a_stream_that_was_given_is_read_where_the_docs_say_so(dialoom: Command) -> None:
    """Keys from `<(command)`, and commands for the debugger; not without end."""
    reading, writing = os.pipe()
    os.write(writing, b"DIALOOM_TEST_NAME=1\nDIALOOM_TEST_NAME=2\n")
    os.close(writing)
    assert "given twice" in dialoom(*PLAN, "--env-file", f"/dev/fd/{reading}", code=2).stderr
    os.close(reading)
    assert "/dev/zero: is larger than 1,048,576 bytes" in dialoom(*PLAN, "--env-file", "/dev/zero", code=2).stderr
    assert "/dev/zero: is a device" in dialoom(*PLAN, "--config", "/dev/zero", code=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max-calls: 1\nmax-calls: 100000\n", "c.yaml:2: the key 'max-calls' is given twice"),
        ("max-calls: 1\nmax_calls: 100000\n", "'max_calls' is given twice, once in another spelling"),
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
def test_hostile_yaml_is_one_message(dialoom: Command, tmp_path: Path, text: str, said: str) -> None:
    """With its line; nothing is run."""
    (tmp_path / "c.yaml").write_text(text, errors="surrogateescape")
    told = dialoom(*PLAN, "--config", "c.yaml", code=2).stderr
    assert said in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n "b": {"a": 2},\n "a": 3}', "3: the key 'a' is given twice"),
        ('[1,\n {"x": "1:2,{", "y": 1, "\\"": {}, "y": 2}]', "2: the key 'y' is given twice"),
        ("[\n\n" + "9" * 10_000 + "]", "3: an integer has more than 300 digits"),
        ("\n" + "[" * 101 + "]" * 101, "2: nested more than 100 deep"),
        ('{"a":' * 100_000, "1: nested more than 100 deep"),
        ("[1,\n2,,]", "2: not JSON: Expecting value at column 3 (',]')"),
        ("1\n2", "1: not JSON: '2' follows the value; one value is needed"),
    ],
)
def test_hostile_json_is_one_message(text: str, said: str) -> None:
    """With the line of what is wrong."""
    with pytest.raises(DataError) as caught:
        parse_json(text, "x.json")
    assert str(caught.value) == f"x.json:{said}"


def test_ordinary_values_are_read(tmp_path: Path) -> None:
    """As any other reader has them; a date stays text."""
    value = {"a": [1, -2.5, True, None, "x"], "b": {"a": {}}}
    (tmp_path / "x.json").write_text("\ufeff" + json.dumps(value))
    assert read_json(tmp_path / "x.json") == value
    (tmp_path / "x.yaml").write_text("a: [1, -2.5, true, null, x]\nb: {a: {}}\n")
    assert read_yaml(tmp_path / "x.yaml") == value
    assert parse_yaml("when: 2024-02-30", "x") == {"when": "2024-02-30"}
    (tmp_path / "x.toml").write_text("a = [1, -2.5]\n[b]\na = 0x10\n")
    assert read_toml(tmp_path / "x.toml") == {"a": [1, -2.5], "b": {"a": 16}}
    (tmp_path / "x.txt").write_bytes(b"one\r\ntwo\n\nfour")
    assert list(read_lines(tmp_path / "x.txt")) == [(1, b"one"), (2, b"two"), (3, b""), (4, b"four")]
    assert read_text(tmp_path / "x.txt").startswith("one")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = " + "9" * 10_000, "x.toml:2: an integer has more than 300 digits"),
        ("a = 1\nb = 0x" + "f" * 10_000, "x.toml: an integer has more than 300 digits"),
        ("a = " + "[" * 100_000, "x.toml: nested more than 100 deep"),
        ("a = 1\na = 2", "x.toml: not TOML: Cannot overwrite a value"),
        ("a = 2024-13-45", "x.toml: not TOML: "),
    ],
)
def test_hostile_toml_is_one_message(tmp_path: Path, text: str, said: str) -> None:
    """Keys that stand twice are no TOML."""
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(DataError) as caught:
        read_toml(tmp_path / "x.toml")
    assert said in str(caught.value)


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    """A file may have any number of lines, a line not any number of bytes."""
    (tmp_path / "x.jsonl").write_bytes(b"{}\n" + b" " * 1_000)
    with pytest.raises(DataError, match=r"x\.jsonl:2: the line is longer than 999 bytes"):
        list(read_lines(tmp_path / "x.jsonl", most=999))
    assert len(list(read_lines(tmp_path / "x.jsonl", most=1_000))) == 2
