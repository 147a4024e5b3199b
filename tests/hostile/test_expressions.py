"""Expressions and prompts compute nothing larger than what they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom as door
from dialoom.prompts import Prompt, PromptError
from dialoom.runs import RunError

HOSTILE = [
    ('"a" * 10**8 == user', "'*' is for numbers, not for str"),
    ("[user] * 10**8", "'*' is for numbers, not for list"),
    ("'%100000000d' % number == user", "'%' is for numbers"),
    ("'%100000000d' is odd and user", "for numbers, not for str"),
    ("user and 10**(10**8)", "more than 4,096 bits"),
    ("number * 10**1000 * 10**1000 * number", "at most 4,096 bits"),
    ("user.ljust(10**8)", "'ljust' cannot be called"),
    ("'{:>100000000}'.format(user)", "'format' cannot be called"),
    ("user|center(10**8)", "No filter named 'center'"),
    ("[user]|map('indent', 10**8)|list", "No filter named 'indent'"),
    ("user and 7|round(-10**8)", "at most 30 decimals"),
    ("range(10**8) and user", "'range'"),
    ("(" * 400 + "user" + ")" * 400, "nested too deeply"),
    ("not " * 240 + "user", "nested too deeply"),
    ("user == '" + "a" * 1_000 + "'", "an expression has at most 1,000"),
]


@pytest.mark.parametrize(("text", "told"), HOSTILE, ids=[text[:30] for text, _ in HOSTILE])
def test_an_expression_that_would_grow_is_refused(kept: Path, text: str, told: str) -> None:
    """With one sentence, whatever way it multiplies."""
    with pytest.raises(RunError) as caught:
        list(door.open_run(kept).episodes(where=text))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_expressions_need_stays(kept: Path) -> None:
    """Arithmetic, texts, lists, filters, tests and methods."""
    run = door.open_run(kept)
    for text in (
        "turns * 2 ** 2 - turns // 1 % 7 > -100",
        "user + '!' == user ~ '!' and number is number",
        "messages|map(attribute='role')|unique|sort|join(',') == 'assistant,user'",
        "messages|selectattr('role', 'equalto', 'user')|list|length >= 1",
        "(turns / 3)|round(1) >= 0 and user.lower().startswith('user')",
        "[1, 2] + [3] == [1, 2, 3] and number is not divisibleby(100)",
    ):
        assert len(list(run.episodes(where=text))) == 2, text


PROMPT = "---\nid: x/y\nversion: 1\nrole: user\ninputs: [words]\n---\n=== user ===\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{{ "a" * 10**8 }}', "'*' is for numbers"),
        ("{% for a in range(100000) %}{{ words }}{% endfor %}", "'range'"),
        ("{% set a = words %}{% set a = a ~ a %}{{ a }}", "'if' and 'for'"),
        ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "'if' and 'for'"),
        ("{% for a in words %}" * 4 + "{% endfor %}" * 4, "at most 3 'for'"),
        ("{% for a in words %}{% for b in words %}{{ words }}{% endfor %}{% endfor %}", "more than 20,000,000"),
        ("{{ " + "(" * 500 + "words" + ")" * 500 + " }}", "nested too deeply"),
        ("{{ " + "9" * 5_000 + " }}", "4300 digits"),
    ],
)
def test_a_prompt_that_would_grow_is_refused(body: str, told: str) -> None:
    """While it is read or while it is rendered, by its place."""
    with pytest.raises(PromptError) as caught:
        Prompt.parse(PROMPT + body, "y.md").render({"words": "word " * 100})
    assert told in str(caught.value)
    assert str(caught.value).startswith("y.md")
