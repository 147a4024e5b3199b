"""Each recipe played by two workers in this process, with the same transfer of their files as with Ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workers.local_cluster import local_cluster
from tests.runs.workers.matrix import CASES, Case, check


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_give_the_results_of_one_process(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_cluster(monkeypatch)
    check(case, tmp_path)
