"""Demographics are drawn as a file says, or the file is refused with what is wrong in it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pytest

from dialoom.personas import DataError
from dialoom.personas.demographics import KEYS, read_demographics


def drawn(path: Path | None, count: int, seed: int = 1) -> list[dict[str, str]]:
    """So many people."""
    return list(islice(read_demographics(path).people(random.Random(seed)), count))


def tables(folder: Path, *more: str, leave_out: Sequence[str] = ()) -> Path:
    """A file with one value for each key, after some tables of one's own."""
    path = folder / "people.toml"
    plain = [f'[[draw]]\nkey = "{key}"\nweights = {{ "x" = 1 }}' for key in KEYS if key not in leave_out]
    path.write_text("\n".join([*more, *plain]))
    return path


def rows(folder: Path, *people: str, header: str = ",".join(KEYS)) -> Path:
    """A file of people."""
    path = folder / "people.csv"
    path.write_text("\n".join([header, *people]) + "\n")
    return path


def test_the_shipped_tables_give_every_key_and_nothing_that_cannot_be() -> None:
    """No student of 70 with a degree to come; more people begin with the same ones."""
    people = drawn(None, 2_000)
    assert all(set(person) == set(KEYS) and all(person.values()) for person in people)
    assert {p["employment_status"] for p in people if p["age"] == "65+ years old"} == {
        "Retired",
        "Working part-time",
        "Working full-time",
    }
    assert not any(p["employment_status"] == "Retired" for p in people if p["age"] != "65+ years old")
    assert drawn(None, 20) == people[:20] != drawn(None, 20, seed=2)


def test_weights_are_those_of_the_first_table_that_fits(tmp_path: Path) -> None:
    """Who is young is a student; of all others a quarter works."""
    age = '[[draw]]\nkey = "age"\nweights = { "young" = 1, "old" = 1 }'
    young = '[[draw]]\nkey = "employment_status"\ngiven = { age = ["young"] }\nweights = { "student" = 1 }'
    others = '[[draw]]\nkey = "employment_status"\nweights = { "works" = 1, "rests" = 3 }'
    path = tables(tmp_path, age, young, others, leave_out=("age", "employment_status"))
    counts = Counter((person["age"], person["employment_status"]) for person in drawn(path, 4_000))
    assert set(counts) == {("young", "student"), ("old", "works"), ("old", "rests")}
    assert counts["old", "rests"] / counts["old", "works"] == pytest.approx(3, rel=0.15)


def test_people_of_a_survey_come_once_each_before_any_comes_again(tmp_path: Path) -> None:
    """Unless they have weights."""
    people = [",".join([name] * len(KEYS)) for name in "abc"]
    path = rows(tmp_path, *people)
    found = [person["age"] for person in drawn(path, 6)]
    assert sorted(found[:3]) == sorted(found[3:]) == ["a", "b", "c"]
    weighted = [f"{person},{weight}" for person, weight in zip(people, (0, 1, 0), strict=True)]
    path = rows(tmp_path, *weighted, header=",".join([*KEYS, "weight"]))
    assert {person["religion"] for person in drawn(path, 9)} == {"b"}


def test_a_file_that_cannot_be_drawn_from_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    """Before anything is made."""
    given = '[[draw]]\nkey = "gender"\ngiven = { age = ["x"] }\nweights = { "y" = 1 }'
    person = ",".join("abcdefghij")
    refused: list[tuple[Callable[[], Path], str]] = [
        (lambda: tables(tmp_path, leave_out=("age", "religion")), "has no table of 'age', 'religion'"),
        (lambda: tables(tmp_path, given), "'age' is given before it is drawn"),
        (
            lambda: tables(tmp_path, '[[draw]]\nkey = "job"\nweights = { "y" = 1 }'),
            "there is no key 'job'; there are age",
        ),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { "y" = 0 }'), r"\(age\): all weights are 0"),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { "y" = -1 }'), "'draw.0.weights.y' is -1"),
        (lambda: tables(tmp_path, "draw = 1 2"), "not TOML"),
        (lambda: rows(tmp_path, person, header="age,gender"), "has no column of 'employment_status'"),
        (lambda: rows(tmp_path, "a,,c,d,e,f,g,h,i,j"), "people.csv:2: 'gender' is empty; write 'N/A'"),
        (lambda: rows(tmp_path), "holds nobody"),
        (lambda: rows(tmp_path, f"{person},much", header=f"{','.join(KEYS)},weight"), "the weight is 'much'"),
        (lambda: rows(tmp_path, f"{person},Rome"), "people.csv:2: 'Rome' is beyond the last column"),
        (lambda: rows(tmp_path, f"{person},k", header=",".join([*KEYS, "age"])), "has two columns of 'age'"),
        (
            lambda: rows(tmp_path, person.replace("a", "a" * 1_001)),
            "'age' is 1,001 characters long; a value has at most",
        ),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { " " = 1 }'), r"\(age\): a value is empty"),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { x = 1e308, y = 1e308 }'), "add up to no number"),
    ]
    for write, message in refused:
        with pytest.raises(DataError, match=message):
            read_demographics(write())
    ends = '[[draw]]\nkey = "age"\nweights = { "x" = 1 }'
    path = tables(tmp_path, ends, given, leave_out=("age", "gender"))
    with pytest.raises(DataError, match="each table of 'gender' is for some people alone"):
        read_demographics(path)
