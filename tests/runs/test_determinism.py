"""The determinism contract: equal inputs, seed and offline model give equal bytes, however the run went."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialoom.roles import Gateway
from dialoom.roles.binding import bindings
from dialoom.runs import RunConfig, RunFile, load_recipe
from dialoom.runs.engine import Fault
from dialoom.runs.export import export
from dialoom.runs.session import play, reopen, start
from dialoom.runs.store import Work
from tests.invented import write_release


class InterruptAfter:
    """Presses Ctrl-C after so many results."""

    def __init__(self, results: int) -> None:
        self.left = results

    def calling(self, gateway: Gateway) -> None:
        """Not of interest."""

    def finished(self, work: Work) -> None:
        """Count down."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def failed(self, work: Work, fault: Fault, error: str) -> None:
        """Nothing fails here."""
        raise AssertionError(error)


def played(folder: Path, seed: int, concurrency: int, interruptions: list[int]) -> bytes:
    """The export of a run that was interrupted after so many results, and so many again, ..."""
    recipe = load_recipe("personalens")
    options = recipe.options_type.model_validate({"profiles": folder / "release", "setting": ["base", "all"]})
    models = bindings(recipe.roles, ["offline/attentive"], [])
    config = RunConfig(recipe="personalens", options=options.model_dump(mode="json"), models=models, seed=seed)
    path = folder / "run.db"
    store = start(path, config, None, lambda _line: None)
    for count, results in enumerate([*interruptions, 0]):
        if count:
            store = reopen(path, lambda _line: None)
        asyncio.run(play(store, concurrency, InterruptAfter(results), resuming=count > 0))
        store.close()
    with RunFile(path) as run:
        assert run.status().pending == 0
        export(run, "dialogues", folder / "out.jsonl")
    return (folder / "out.jsonl").read_bytes()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(min_value=0, max_value=3),
    concurrency=st.integers(min_value=1, max_value=9),
    interruptions=st.lists(st.integers(min_value=1, max_value=4), max_size=3),
)
def test_equal_runs_export_equal_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, concurrency: int, interruptions: list[int]
) -> None:
    """Whatever the concurrency, the order of completion and the interruptions."""
    plain, other = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("other")
    write_release(plain / "release", users=2)
    (other / "release").symlink_to(plain / "release")
    assert played(other, seed, concurrency, interruptions) == played(plain, seed, 1, [])


def test_another_seed_gives_other_dialogues(tmp_path: Path) -> None:
    """The seed is not decoration."""
    exports = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_release(folder / "release", users=2)
        exports.append(played(folder, seed, 4, []))
    assert exports[0] != exports[1]
