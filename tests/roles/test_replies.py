"""Replies: what counts as an answer of the type that was asked for, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.roles import Score4, Score5, Verdict
from dialoom.roles.binding import bindings
from dialoom.roles.errors import BindingError
from dialoom.roles.replies import parse_reply


@pytest.mark.parametrize(
    "text",
    ['{"score": 3}', 'Here you are:\n```json\n{"score": 3, "explanation": "so"}\n```', '{x} then {"score": "3"} done'],
)
def test_a_score_is_found_whatever_stands_around_it(text: str) -> None:
    """Bare, fenced, introduced."""
    assert parse_reply(text, Score4) == Score4(score=3, explanation="so" if "so" in text else "")


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
        parse_reply(text, Score4)
    assert said in str(caught.value)


def test_each_type_has_its_own_scale() -> None:
    """5 is off one scale and on the other; a verdict is yes or no."""
    assert parse_reply('{"score": 5}', Score5) == Score5(score=5)
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
    assert parse_reply(text, Score4) == Score4(score=3, explanation="fair")


def test_line_breaks_and_quotes_within_a_text_are_mended() -> None:
    """They belong to it."""
    assert parse_reply('{"score": 3, "explanation": "one\ntwo"}', Score4) == Score4(score=3, explanation="one\ntwo")
    said = parse_reply('{"explanation": "they said "no" to it", "score": 3}', Score4)
    assert said == Score4(score=3, explanation='they said "no" to it')


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
        assert parse_reply(text, Score4).score == 3  # type: ignore[attr-defined]
    except ValueError as error:
        assert "no JSON object" in str(error)


@given(st.text(alphabet=st.sampled_from("{}[]\"':,score 123\n\\/")) | st.text())
def test_parsing_gives_the_type_or_says_why_not(text: str) -> None:
    """Whatever is mended, never another exception."""
    try:
        assert 1 <= parse_reply(text, Score4).score <= 4  # type: ignore[attr-defined]
    except ValueError as error:
        assert str(error)


def test_roles_are_bound_one_by_one_or_all_at_once() -> None:
    """A named role wins over `MODEL`; a later option over an earlier one."""
    bound = bindings({"user": 0.5, "judge": 0.0}, ["a", "judge=b", "judge=c"], ["user=0.9"])
    assert {role: binding.model for role, binding in bound.items()} == {"user": "a", "judge": "c"}
    assert bound["user"].temperature == 0.9
    assert bound["judge"].temperature == 0.0


@pytest.mark.parametrize(
    ("models", "temperatures", "said"),
    [
        (["user=a"], [], "role 'judge' has no model"),
        (["clerk=a"], [], "unknown role 'clerk'"),
        (["a"], ["judge=3"], "'3' is no number from 0 to 2"),
        (["judge="], [], "names no model"),
    ],
)
def test_a_wrong_binding_is_told(models: list[str], temperatures: list[str], said: str) -> None:
    """With the value and what would be right."""
    with pytest.raises(BindingError) as caught:
        bindings({"user": 0.5, "judge": 0.0}, models, temperatures)
    assert said in str(caught.value)


def test_an_address_is_bound_to_a_role_or_to_all_that_have_one() -> None:
    """A named role wins; models that are called at no address are left alone."""
    roles = {"user": 0.5, "judge": 0.0, "clerk": 0.0}
    models = ["openai/a", "clerk=offline/generic"]
    given = ["http://127.0.0.1:8000/v1", "judge=https://judge.test/v1"]
    bound = bindings(roles, models, [], api_bases=given)
    assert {role: binding.api_base for role, binding in bound.items()} == {
        "user": "http://127.0.0.1:8000/v1",
        "judge": "https://judge.test/v1",
        "clerk": None,
    }


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("clerk=http://a.test/v1", "unknown role 'clerk'"),
        ("user=a.test/v1", "is no address"),
        ("user=ftp://a.test/v1", "is no address"),
        ("user=http://", "is no address"),
        ("user=", "names no api-base"),
        ("user=http://me:hidden@a.test/v1", "a.test holds a login"),
        ("https://hidden@a.test/v1", "a.test holds a login"),
        ("user=http://a.test/v1?key=hidden", "a.test holds a login or a query"),
        ("user=//me:hidden@a.test", "holds a login"),
        ("user=http://me:hidden@[a/v1", "holds a login"),
        ("judge=http://a.test/v1", "judge is played by offline/generic"),
    ],
)
def test_a_wrong_address_is_told_and_no_secret_of_it_repeated(address: str, said: str) -> None:
    """Keys come by the environment: an address is kept in the run's file."""
    with pytest.raises(BindingError) as caught:
        bindings({"user": 0.5, "judge": 0.0}, ["openai/a", "judge=offline/generic"], [], api_bases=[address])
    assert said in str(caught.value)
    assert "hidden" not in str(caught.value)
