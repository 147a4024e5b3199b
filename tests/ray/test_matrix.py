"""The matrix on Ray: every recipe and operation on two worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workers.matrix import CASES, Case, check


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_give_the_results_of_one_process(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
