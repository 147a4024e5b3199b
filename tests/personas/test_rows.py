"""Rows of people and tasks: read from every format, and refused with file, line and remedy where they are wrong."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dialoom.inputs import DataError, Record, validate_model
from dialoom.personas.rows import read_rows

ROWS = [{"name": "Ada", "style": "in a hurry; brief"}, {"name": "Bö", "style": ""}]


def read(path: Path) -> list[dict[str, object]]:
    """Return the rows of a file."""
    return [row for _, row in read_rows(path, "description")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("comma.csv", 'name,style\nAda,in a hurry; brief\nBö,""\n'),
        ("excel.csv", '\ufeffname;style\r\nAda;"in a hurry; brief"\r\nBö;\r\n;\r\n'),
        ("declared.csv", 'sep=;\nname;style\nAda;"in a hurry; brief"\n\nBö;\n'),
        ("tab.tsv", "name\tstyle\nAda\tin a hurry; brief\nBö\t\n"),
        ("rows.jsonl", "\ufeff" + "\n".join(json.dumps(row) for row in ROWS)),
        ("rows.json", json.dumps(ROWS)),
        ("rows.yaml", "- name: Ada\n  style: in a hurry; brief\n- {name: Bö, style: null}\n"),
        ("pool/people.jsonl", "\n".join(json.dumps(row) for row in ROWS)),
    ],
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, content: str) -> None:
    """This includes byte-order marks, semicolons and tabs; a missing value is an empty string."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode())
    assert read(path.parent if "/" in name else path) == ROWS


def test_parquet_gives_the_same_rows(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist([ROWS[0], {"name": "Bö", "style": None}]), tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet") == ROWS


def test_cell_may_have_several_lines_and_row_may_be_a_string(tmp_path: Path) -> None:
    """The number of a row is its line, or the last of several lines."""
    (tmp_path / "a.csv").write_text('name,bio\nAda,"one\ntwo, three"\nBo,four\n')
    assert list(read_rows(tmp_path / "a.csv", "goal")) == [
        (3, {"name": "Ada", "bio": "one\ntwo, three"}),
        (4, {"name": "Bo", "bio": "four"}),
    ]
    (tmp_path / "a.yaml").write_text("- return a kettle\n")
    assert list(read_rows(tmp_path / "a.yaml", "goal")) == [(1, {"goal": "return a kettle"})]


def test_yaml_values_that_are_no_plain_numbers_or_truth_values_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("- {zip: 01234, wakes: 7:30, country: NO, on: 1_000, n: [-5, 0, +1.5, 2.0e-3, true]}\n")
    values = {"zip": "01234", "wakes": "7:30", "country": "NO", "on": "1_000", "n": [-5, 0, 1.5, 0.002, True]}
    assert list(read_rows(path, "goal")) == [(1, values)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"name,style\nAda,brief,wordy\n",
            "a.csv:2: 3 cells, but the header names 2; put cells that contain ','",
        ),
        ("a.csv", b"name,name\nAda,Bo\n", "a.csv:1: two columns are named 'name'; rename one"),
        ("a.csv", b"name,\nAda,Bo\n", "a.csv:1: column 2 has no name; name it, or remove it"),
        ("a.csv", b"", "a.csv:1: the first line must name the columns, got an empty line"),
        ("a.csv", b"name\nAd\xe4\n", "a.csv:2: not UTF-8: byte 0xe4; save it as UTF-8"),
        ("a.csv", b'name\n"Ada\n', "a.csv:2: a quote is opened in this row and never closed"),
        ("a.jsonl", b'{"name": "Ada"}\n[1]\n', "a.jsonl:2: a row must be a mapping or a string, got list"),
        ("a.jsonl", b'{"name": "Ada"}\n{name}\n', "a.jsonl:2: not JSON"),
        ("a.json", b'{"name": "Ada"}', "a.json: the file must contain a list of rows, got dict"),
        ("a.parquet", b"PAR1", "a.parquet: not a readable Parquet file"),
        ("a.xlsx", b"PK", "a.xlsx: the format '.xlsx' is not known; give .csv, .tsv, .jsonl"),
        ("a/b.txt", b"", "the folder must hold one .jsonl file, got none; name the file instead"),
    ],
)
def test_unreadable_file_is_reported_in_one_message(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """The message has the file, the line and what to change."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path.parent if "/" in name else path)
    assert message in str(caught.value)


def test_rows_are_read_one_at_a_time(tmp_path: Path) -> None:
    """20,000 rows take less than 1 MiB of memory."""
    path = tmp_path / "many.csv"
    path.write_text("name,style\n" + "".join(f"person {number},brief\n" for number in range(20_000)))
    tracemalloc.start()
    assert sum(1 for _ in read_rows(path, "goal")) == 20_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


class _Spoken(Record):
    speaker: str
    content: str


class _Called(Record):
    name: str
    output: str


class _Session(Record):
    turns: tuple[_Called | _Spoken, ...]


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ({"name": "search"}, "a.json: 'turns.0.output' is missing"),
        ({"speaker": "user"}, "a.json: 'turns.0.content' is missing"),
        ({"speaker": "user", "content": 3}, "a.json: 'turns.0.content' is 3: "),
        ("hello", "a.json: 'turns.0' is 'hello': "),
    ],
)
def test_places_in_nested_rows_are_those_of_the_file(turn: Any, message: str) -> None:
    """Places contain no names of types, and the problem is that of the best matching type."""
    with pytest.raises(DataError) as caught:
        validate_model(_Session, {"turns": [turn]}, "a.json")
    assert str(caught.value).startswith(message)
