"""The suite's fuzz over replies, with a budget that finds more."""

from __future__ import annotations

from hypothesis import given, settings

from tests.hostile.test_fuzzed_replies import REPLIES, VALUES, check_figures, check_reply


@given(REPLIES)
@settings(max_examples=4_000)
def test_any_of_many_replies_is_of_its_type_or_refused(text: str) -> None:
    """Nothing else comes of it."""
    check_reply(text)


@given(VALUES)
@settings(max_examples=4_000)
def test_any_of_many_figures_is_known_or_not(figure: object) -> None:
    """Nothing else comes of it."""
    check_figures(figure)
