"""Replies: what counts as an answer of the type that was asked for, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.roles import Score4, Score5, Verdict
from dialoom.roles.binding import bindings
from dialoom.roles.errors import BindingError
from dialoom.roles.replies import first_json_object, parse_reply


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


@given(st.text())
def test_any_text_gives_an_object_or_none(text: str) -> None:
    """Never an exception."""
    found = first_json_object(text)
    assert found is None or isinstance(found, dict)


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
