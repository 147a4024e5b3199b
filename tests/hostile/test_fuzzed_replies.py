"""Whatever a model says is parsed to its type or refused with a text; `make test-soak` tries many more."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.roles import Completion, Verdict, score_type
from dialoom.roles.gateway.completions import without_thinking
from dialoom.roles.replies import parse_reply

EXAMPLES = 80

BRACKETS = ["{", "}", "[", "]", '"', "'", ":", ",", "\\", "\n", "\x00", "```json", "<think>", "</think>"]
VALUED = ["score", "verdict", "explanation", "true", "3", "1e999", "NaN", "\\ud83d", "\ud83d"]
LONG = ["{" * 500, '{"a":' * 300, "9" * 5000]
PIECES = st.sampled_from([*BRACKETS, *VALUED, *LONG])
TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates, too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda each: st.lists(each) | st.dictionaries(TEXTS, each),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries({}, optional={"score": VALUES, "verdict": VALUES, "explanation": VALUES}).map(
    json.dumps
)
REPLIES = st.lists(PIECES | TEXTS | OBJECTS, max_size=12).map("".join)


def check_reply(text: str) -> None:
    """One reply, all the way: kept as text, without its thoughts, and as each type."""
    said, _thoughts = without_thinking(Completion(text).text)
    said.encode()
    for type_ in (score_type(1, 5), Verdict):
        try:
            reply = parse_reply(text, type_)
        except ValueError as error:
            assert str(error)
        else:
            reply.model_dump_json()
            if isinstance(reply, score_type(1, 5)):
                assert 1 <= reply.score <= 5


def check_figures(figure: object) -> None:
    """Usage that a provider may send."""
    kept = Completion("x", figure, figure, figure, figure)  # type: ignore[arg-type]
    for value in (kept.input_tokens, kept.output_tokens, kept.cached_tokens, kept.cost):
        assert value is None or 0 <= value < 2**53


@given(REPLIES)
@settings(max_examples=EXAMPLES)
def test_any_reply_is_of_its_type_or_refused(text: str) -> None:
    """Nothing else comes of it."""
    check_reply(text)


@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_any_figure_is_known_or_not(figure: object) -> None:
    """Nothing else comes of it."""
    check_figures(figure)
