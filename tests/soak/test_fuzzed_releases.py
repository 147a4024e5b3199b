"""The suite's fuzz over releases, with a budget that finds more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.hostile.test_fuzzed_releases import BYTES, ENTRIES, PLACES, check_lines, check_release
from tests.hostile.test_fuzzed_replies import VALUES

MANY = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


@given(PLACES, VALUES)
@MANY
def test_any_of_many_releases_is_planned_or_refused(tmp_path: Path, way: list[int], value: Any) -> None:
    """Whatever stands in it."""
    check_release(tmp_path, way, value)


@given(ENTRIES, BYTES)
@MANY
def test_any_of_many_lines_is_planned_or_refused(tmp_path: Path, entry: Any, tail: bytes) -> None:
    """Whatever stands in them."""
    check_lines(tmp_path, entry, tail)
