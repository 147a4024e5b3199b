"""Replies: what counts as an answer of the type that was asked for, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.roles import Verdict, score_type
from dialoom.roles.replies import parse_reply


@pytest.mark.parametrize(
    "text",
    ['{"score": 3}', 'Here you are:\n```json\n{"score": 3, "explanation": "so"}\n```', '{x} then {"score": "3"} done'],
)
def test_a_score_is_found_whatever_stands_around_it(text: str) -> None:
    """Bare, fenced, introduced."""
    assert parse_reply(text, score_type(1, 4)) == score_type(1, 4)(score=3, explanation="so" if "so" in text else "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("three", "no JSON object"),
        ("", "no JSON object"),
        ("[3]", "no JSON object"),
        ('{"score": "five"}', "score"),
        ('{"score": 5}', "less than or equal to 4"),
        ('{"score": 0}', "greater than or equal to 1"),
        ('{"score": 2.5}', "score"),
        ('{"score": null}', "score"),
        ('{"explanation": "good"}', "score"),
        ("{'score': 'five'}", "score"),
        ("{five}", "no JSON object"),
        ("{well} I would say that its score: 4", "no JSON object"),
        ('{"score": 3/4}', "score"),
        ("{'note': 'none', 'points': 3}", "no JSON object"),
        ('{"score": 1', "no JSON object"),
        ('{"explanation": "x", "score": 1', "no JSON object"),
        ('{"score": }', "score"),
    ],
)
def test_what_is_off_the_scale_or_no_number_is_told(text: str, said: str) -> None:
    """The message is what the model is shown when it is asked again."""
    with pytest.raises(ValueError) as caught:
        parse_reply(text, score_type(1, 4))
    assert said in str(caught.value)


def test_each_type_has_its_own_scale() -> None:
    """5 is off one scale and on the other; a verdict is yes or no."""
    assert parse_reply('{"score": 5}', score_type(1, 5)) == score_type(1, 5)(score=5)
    assert parse_reply('{"verdict": false}', Verdict) == Verdict(verdict=False)


@pytest.mark.parametrize(
    "text",
    [
        "{'score': 3, 'explanation': 'fair'}",
        "{'score': 3, 'explanation': 'fair'} So it {really} is.",
        '{"score": 3, "explanation": "fair",}',
        '{"score": 3, "explanation": "fair"',
        '{"score": 3, "explanation": "fair',
        '{score: 3, explanation: "fair"}',
        'Well:\n```json\n{"score": 3 "explanation": "fair"}\n```',
        "{{'score': 3, 'explanation': 'fair'}}",
        "{“score”: 3, “explanation”: “fair”}",
        '{"score": 3, // of four\n"explanation": "fair"}',
        '{x} then {"score": 3, "explanation": \'fair\'}',
    ],
)
def test_slightly_broken_json_is_mended(text: str) -> None:
    """Quotes, commas, comments, braces: what was meant is plain."""
    assert parse_reply(text, score_type(1, 4)) == score_type(1, 4)(score=3, explanation="fair")


def test_line_breaks_and_quotes_within_a_text_are_mended() -> None:
    """They belong to it."""
    assert parse_reply('{"score": 3, "explanation": "one\ntwo"}', score_type(1, 4)) == score_type(1, 4)(
        score=3, explanation="one\ntwo"
    )
    said = parse_reply('{"explanation": "they said "no" to it", "score": 3}', score_type(1, 4))
    assert said == score_type(1, 4)(score=3, explanation='they said "no" to it')


@pytest.mark.parametrize(
    "text",
    [
        "{'score': 3, 'explanation': 'not {\"score\": 1}'}",
        '{"explanation": {"score": 1}, "score": 3',
        '{"score": 3, "details": {"score": 1}, "more": "and so',
    ],
)
def test_an_object_within_a_broken_one_is_not_taken_for_the_answer(text: str) -> None:
    """The outer one is mended, or nothing is had."""
    try:
        assert parse_reply(text, score_type(1, 4)).score == 3  # type: ignore[attr-defined]
    except ValueError as error:
        assert "no JSON object" in str(error)


@given(st.text(alphabet=st.sampled_from("{}[]\"':,score 123\n\\/")) | st.text())
def test_parsing_gives_the_type_or_says_why_not(text: str) -> None:
    """Whatever is mended, never another exception."""
    try:
        assert 1 <= parse_reply(text, score_type(1, 4)).score <= 4  # type: ignore[attr-defined]
    except ValueError as error:
        assert str(error)
