"""The matrix with Ray: every recipe and operation on two worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workers.matrix import CASES, Case, check


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_come_to_what_one_process_comes_to(case: Case, tmp_path: Path) -> None:
    """Table by table, after every operation."""
    check(case, tmp_path)
