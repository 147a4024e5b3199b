"""Releases of people and tasks in which anything may stand: planned, or refused with a message, and nothing outside."""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dialoom
from tests.hostile.test_fuzzed_replies import VALUES
from tests.invented import ALARM, BOTH, PROFILE, write_release

EXAMPLES = 15
FEW = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
BYTES = st.binary(max_size=30)
PLACES = st.lists(st.integers(0, 30), min_size=1, max_size=4)
ENTRIES = VALUES | st.fixed_dictionaries({"profile": VALUES, "personality": VALUES})


def put(whole: Any, way: list[int], value: Any) -> None:
    """A value in place of the one that some steps lead to."""
    for number, step in enumerate(way):
        keys = list(whole) if isinstance(whole, dict) else range(len(whole))
        if not keys:
            return
        key = keys[step % len(keys)]
        if number == len(way) - 1 or not isinstance(whole[key], dict | list):
            whole[key] = value
            return
        whole = whole[key]


def check_planned(folder: Path, recipe: str, options: dict[str, Any]) -> None:
    """A plan, or a message of our own; and nothing but the run's file is new."""
    before = {path.name for path in folder.iterdir()}
    with suppress(dialoom.DialoomError):
        dialoom.plan(recipe, path=folder / "run.db", options=options)
    assert {path.name for path in folder.iterdir()} - before <= {"run.db", "run.db-wal", "run.db-shm"}


def emptied(folder: Path) -> Path:
    """A folder in which nothing is left of the example before."""
    shutil.rmtree(folder / "made", ignore_errors=True)
    (folder / "made").mkdir()
    return folder / "made"


def check_release(tmp_path: Path, way: list[int], value: Any) -> None:
    """PersonaLens' people and tasks, with a value in the place of another."""
    folder = emptied(tmp_path)
    content: dict[str, Any] = copy.deepcopy({"profile": PROFILE, "tasks": [ALARM, BOTH]})
    put(content, way, value)
    with suppress(AttributeError, TypeError):  # what the writer of the release does not take
        write_release(folder / "release", content["profile"], content["tasks"])
    if (folder / "release").exists():
        check_planned(folder, "personalens", {"profiles": folder / "release"})


def check_lines(tmp_path: Path, entry: Any, tail: bytes) -> None:
    """ALOE's personas and pools, with any entry and any bytes behind it."""
    folder = emptied(tmp_path)
    (folder / "people.jsonl").write_bytes(json.dumps(entry).encode() + b"\n" + tail)
    check_planned(folder, "aloe-eval", {"personas": folder / "people.jsonl"})
    with suppress(FileNotFoundError):
        (folder / "run.db").unlink()
    check_planned(folder, "persona-pool", {"seeds": folder / "people.jsonl"})


@given(PLACES, VALUES)
@FEW
def test_any_release_is_planned_or_refused(tmp_path: Path, way: list[int], value: Any) -> None:
    """Whatever stands in it."""
    check_release(tmp_path, way, value)


@given(ENTRIES, BYTES)
@FEW
def test_any_lines_are_planned_or_refused(tmp_path: Path, entry: Any, tail: bytes) -> None:
    """Whatever stands in them."""
    check_lines(tmp_path, entry, tail)
