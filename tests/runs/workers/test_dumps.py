"""The dump with which the worker matrix compares run files, and the recipes of the matrix."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import dialoom
from dialoom.runs.configuration.recipes import recipe_names
from dialoom.runs.store.schema import TABLES
from tests.conftest import ROOT
from tests.logical_dump import Dump, differences, logical_dump
from tests.runs.workers.matrix import CASES, Judge


def test_every_recipe_is_in_the_matrix() -> None:
    examples = {f"{path}:RECIPE" for path in ROOT.glob("docs/examples/**/*.py") if "\nRECIPE = " in path.read_text()}
    assert len(examples) == 2
    studies = {f"{ROOT}/docs/examples/studies/support.toml"}
    assert {case.recipe for case in CASES} == examples | studies | set(recipe_names())


@pytest.fixture(scope="module")
def full_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a run with rows in all tables of a dump."""
    path = tmp_path_factory.mktemp("full_run") / "run.db"
    options = {"turns": (40,), "method": ("rag",), "limit": 2}
    dialoom.play("prefeval", path=path, options=options, models={"judge": Judge(unparseable=3)}, seed=5)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO rejudgings VALUES (0, 'run', 1, 'pending')")
        connection.execute("INSERT INTO attempts VALUES (1, 1, 0.5, 'busy', NULL)")
        connection.execute("INSERT INTO common_uses SELECT 0, 0, NULL, NULL, 'n', 1, 0, 1, key FROM calls LIMIT 1")
        connection.execute("INSERT OR IGNORE INTO notes VALUES (1, 'mended')")
        connection.execute("INSERT INTO branches VALUES (0, 'b', 't', NULL, 0, '{}', 'main')")
        connection.execute("INSERT INTO step_calls VALUES (0, 'c', 0, 'n', x'00', 0)")
        connection.execute("INSERT INTO judged VALUES ('run', 0, 'done', NULL, NULL)")
        connection.execute("INSERT INTO player_states VALUES (1, 0, 0, x'00', x'00', x'00', x'00')")
        connection.execute(
            "INSERT INTO pending_writes SELECT thread, id, 't', 0, '', 'c', '[\"is\",1]' FROM checkpoints"
        )
    return path


@pytest.mark.parametrize("table", sorted(TABLES))
def test_missing_row_of_any_table_is_a_difference(table: str, full_run: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(full_run, tmp_path / "run.db"))
    assert not differences(logical_dump(full_run), logical_dump(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(f"DELETE FROM {table}").rowcount > 0
    try:
        found: Dump = logical_dump(path)
    except Exception:  # reading damaged data may raise anything
        return
    assert differences(logical_dump(full_run), found)


def test_dump_refuses_an_unknown_table(full_run: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(full_run, tmp_path / "run.db"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE news (id INTEGER)")
    with pytest.raises(AssertionError, match=r"no dump of \['news'\]"):
        logical_dump(path)
