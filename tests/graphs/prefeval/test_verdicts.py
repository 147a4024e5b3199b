"""What four verdicts come to, by PrefEval's table of error types."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from dialoom import Judgement
from dialoom.graphs.prefeval.checkers import CHECKERS, error_of, error_type


def test_the_sixteen_combinations() -> None:
    """Eight do not help, two ignore the preference, one invents another, one acts against it, four are right."""
    found = Counter(error_type(*words) for words in product([True, False], repeat=4))
    assert found == {"unhelpful": 8, "unaware": 2, "hallucination": 1, "inconsistency": 1, None: 4}


@pytest.mark.parametrize(
    ("violates", "acknowledges", "hallucinates", "helpful", "error"),
    [
        (True, False, None, True, "unaware"),
        (True, True, True, True, "hallucination"),
        (True, True, False, True, "inconsistency"),
        (False, True, True, True, None),
        (False, False, None, True, None),
        (True, True, True, False, "unhelpful"),
        (False, False, None, False, "unhelpful"),
        (None, False, None, True, "unparsed"),
        (False, None, None, True, "unparsed"),
        (False, True, None, True, "unparsed"),
        (True, False, None, None, "unparsed"),
        (None, False, None, False, "unparsed"),
    ],
)
def test_each_error_and_what_could_not_be_had(
    violates: bool | None, acknowledges: bool | None, hallucinates: bool | None, helpful: bool | None, error: str | None
) -> None:
    """Hallucinates is needed only where a preference was named; a missing word is never a success."""
    assert error_type(violates, acknowledges, hallucinates, helpful) == error


def test_judgements_as_a_set_holds_them() -> None:
    """An unparsed one is no word; a choice is right or wrong; without any, nobody was asked."""

    def said(**scores: bool | None) -> list[Judgement]:
        return [
            Judgement(metric=metric, target="assistant", score=score, status="unparsed" if score is None else "ok")
            for metric, score in scores.items()
        ]

    assert error_of(said(violates=False, acknowledges=False, helpful=True)) is None
    assert error_of(said(violates=True, acknowledges=True, hallucinates=False, helpful=True)) == "inconsistency"
    assert error_of(said(violates=False, acknowledges=None, helpful=True)) == "unparsed"
    assert error_of(said(violates=False, helpful=True)) == "unparsed"
    assert error_of(said(correct=True)) is None
    assert error_of(said(correct=False)) == "wrong"
    assert error_of([]) == "unjudged"
    assert set(CHECKERS) == {"violates", "acknowledges", "hallucinates", "helpful"}
