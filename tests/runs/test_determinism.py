"""The determinism contract: equal inputs, seed and offline model give equal bytes, however the run went."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialoom
from dialoom import Event, ScenarioDone, ScenarioFailed
from tests.invented import write_release


def played(folder: Path, seed: int, concurrency: int, interruptions: list[int]) -> bytes:
    """The export of a run that was interrupted after so many results, and so many again, ..."""
    path = folder / "run.db"
    options = {"profiles": folder / "release", "setting": ["base", "all"]}
    for count, results in enumerate([*interruptions, 0]):
        control = dialoom.Control()
        watched: dict[str, Any] = {
            "concurrency": concurrency,
            "control": control,
            "on_event": interrupting(control, results),
        }
        if count:
            run = dialoom.resume(path, **watched)
        else:
            run = dialoom.play("personalens", path=path, options=options, seed=seed, **watched)
    assert run.status().pending == 0
    run.export("dialogues", folder / "out.jsonl")
    return (folder / "out.jsonl").read_bytes()


def interrupting(control: dialoom.Control, results: int) -> Callable[[Event], None]:
    """Stops the work after so many results; 0 for never. Nothing may fail."""
    left = itertools.count(results - 1, -1)

    def on_event(event: Event) -> None:
        assert not isinstance(event, ScenarioFailed), event
        if isinstance(event, ScenarioDone) and next(left) == 0:
            control.drain()

    return on_event


@settings(max_examples=6)
@given(
    seed=st.integers(min_value=0, max_value=3),
    concurrency=st.integers(min_value=1, max_value=9),
    interruptions=st.lists(st.integers(min_value=1, max_value=4), max_size=3),
)
def test_equal_runs_export_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, concurrency: int, interruptions: list[int]
) -> None:
    """Whatever the concurrency, the order of completion and the interruptions."""
    if seed not in _ALONE:
        plain = tmp_path_factory.mktemp("plain")
        write_release(plain / "release", users=2)
        _ALONE[seed] = played(plain, seed, 1, [])
    other = tmp_path_factory.mktemp("other")
    write_release(other / "release", users=2)
    assert played(other, seed, concurrency, interruptions) == _ALONE[seed]


_ALONE: dict[int, bytes] = {}
"""What comes out with one dialogue after the other and no interruption, by the seed."""


def test_another_seed_gives_other_dialogues(tmp_path: Path) -> None:
    """The seed is not decoration."""
    exports = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_release(folder / "release", users=2)
        exports.append(played(folder, seed, 4, []))
    assert exports[0] != exports[1]
