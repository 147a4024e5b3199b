"""Fixtures of the tests of the Python API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.invented import write_release


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Return a release of three people with two tasks each: six scenarios."""
    return write_release(tmp_path / "release", users=3)
