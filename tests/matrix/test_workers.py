"""Each recipe played by two workers in this process, with the same transfer of their files as with Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workers.matrix import CASES, Case, check
from tests.runs.workers.near import near_cluster


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_give_the_results_of_one_process(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near_cluster(monkeypatch)
    check(case, tmp_path)
