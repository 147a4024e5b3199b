"""The marker with which a simulated user ends a dialogue, in whatever a model makes of it."""

from __future__ import annotations

import pytest

from dialoom.graphs.dialogue import without_marker

MANY = 1_000_000


@pytest.mark.parametrize(
    ("line", "bare", "is_ended"),
    [
        ("Thanks! TERMINATE", "Thanks!", True),
        ("Thanks! **TERMINATE**", "Thanks!", True),
        ('Bye. "TERMINATE". And one more thing.', "Bye. And one more thing.", True),
        ("TERMINATE TERMINATE", "", True),
        ("They TERMINATED it.", "They TERMINATED it.", False),
        (" " * MANY + "x" + "*" * MANY, "x" + "*" * MANY, False),
        ("x" + " *" * MANY + "TERMINATE" + " " * MANY, "x", True),
    ],
    ids=["at the end", "set off", "in the middle", "twice", "another word", "none in a million spaces", "behind them"],
)
def test_the_marker_is_taken_out_of_a_line_however_long(line: str, bare: str, is_ended: bool) -> None:
    """With what sets it off, and nothing else; a million spaces take no time that anybody would notice."""
    assert without_marker(line, "TERMINATE") == (bare, is_ended)
