"""The suite's fuzz over run files, with a budget that finds more."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.conftest import Command
from tests.hostile.test_damaged import ANY_COMMAND, EDITS, FLIPS, check_crafted, check_flipped

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@given(EDITS, ANY_COMMAND)
@MANY
def test_many_crafted_rows(
    dialoom: Command, tmp_path: Path, damaged: Path, edits: list[tuple[int, int]], command: int
) -> None:
    """Whatever stands in them."""
    check_crafted(dialoom, tmp_path, damaged, edits, command)


@given(FLIPS, ANY_COMMAND)
@MANY
def test_many_flipped_bytes(
    dialoom: Command, tmp_path: Path, damaged: Path, flips: list[tuple[int, int]], command: int
) -> None:
    """Wherever they are."""
    check_flipped(dialoom, tmp_path, damaged, flips, command)
