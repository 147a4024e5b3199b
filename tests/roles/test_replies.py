"""Replies of each type, their limits, and counted tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.personas.preferences import DEFAULT_POOL, read_chats
from dialoom.prompts import ChatMessage, Prompt, PromptError
from dialoom.roles import CallPlace, Completion, ModelBinding, Role, Verdict, score_type
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from dialoom.roles.parameters import TOKENIZER, count_tokens
from dialoom.roles.replies import parse_reply


@pytest.mark.parametrize(
    "text",
    ['{"score": 3}', 'Here you are:\n```json\n{"score": 3, "explanation": "so"}\n```', '{x} then {"score": "3"} done'],
)
def test_score_is_parsed_from_surrounding_text(text: str) -> None:
    assert parse_reply(text, score_type(1, 4)) == score_type(1, 4)(score=3, explanation="so" if "so" in text else "")


@pytest.mark.parametrize(
    ("text", "message"),
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
        ('{"score": 1, "explanation": "a"}\n{"score": 4, "explanation": "b"}', "score has two values, 1 and 4"),
        ('{"score": 1} {"points": 9} {"score": 2}', "score has two values, 1 and 2"),
        ('{"score": 4, "explanation": "a", "score": 2}', "score has two values, 4 and 2"),
    ],
)
def test_score_off_the_scale_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_reply(text, score_type(1, 4))
    assert message in str(caught.value)


def test_repeated_answer_does_not_contradict_itself() -> None:
    text = '{"score": 3, "explanation": "so", "score": 3} or {"explanation": "thus", "score": "3"} and {"points": 9}'
    assert parse_reply(text, score_type(1, 4)) == score_type(1, 4)(score=3, explanation="so")


def test_each_type_has_its_own_scale() -> None:
    """A score of 5 is outside one scale and within the other; a verdict is true or false."""
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
def test_slightly_broken_json_is_repaired(text: str) -> None:
    assert parse_reply(text, score_type(1, 4)) == score_type(1, 4)(score=3, explanation="fair")


def test_line_breaks_and_quotes_within_a_text_are_repaired() -> None:
    assert parse_reply('{"score": 3, "explanation": "one\ntwo"}', score_type(1, 4)) == score_type(1, 4)(
        score=3, explanation="one\ntwo"
    )
    reply = parse_reply('{"explanation": "they said "no" to it", "score": 3}', score_type(1, 4))
    assert reply == score_type(1, 4)(score=3, explanation='they said "no" to it')


@pytest.mark.parametrize(
    "text",
    [
        "{'score': 3, 'explanation': 'not {\"score\": 1}'}",
        '{"explanation": {"score": 1}, "score": 3',
        '{"score": 3, "details": {"score": 1}, "more": "and so',
    ],
)
def test_object_within_a_broken_one_is_not_the_answer(text: str) -> None:
    try:
        assert parse_reply(text, score_type(1, 4)).score == 3  # type: ignore[attr-defined]
    except ValueError as error:
        assert "no JSON object" in str(error)


@given(st.text(alphabet=st.sampled_from("{}[]\"':,score 123\n\\/")) | st.text())
def test_parsing_gives_the_type_or_an_explanation(text: str) -> None:
    try:
        assert 1 <= parse_reply(text, score_type(1, 4)).score <= 4  # type: ignore[attr-defined]
    except ValueError as error:
        assert str(error)


SOURCE = "---\nid: a/b\nversion: 1\nrole: assistant\ninputs: []\n{more}---\n=== user ===\nHello."


class Gateway:
    """A gateway that records requests."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        self.asked.append(request)
        return Completion("Hi.")


class Site:
    """A site that gives every call the same place."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        return CallPlace("s", "n", 0, 0, 1)

    def on_completion(self, completion: Completion) -> None:
        pass


@pytest.mark.parametrize(
    ("more", "limit", "sent"), [("", 300, 300), ("more: 200\n", 300, 500), ("more: 200\n", None, None)]
)
async def test_reply_margin_is_added_to_a_limit(more: str, limit: int | None, sent: int | None) -> None:
    gateway: Any = Gateway()
    prompt = Prompt.parse(SOURCE.format(more=more), "here")
    await Role(prompt, ModelBinding(model="x/y", temperature=0, max_reply=limit), None, gateway)({}, Site())
    assert [request.max_reply for request in gateway.asked] == [sent]


def test_negative_reply_margin_is_refused() -> None:
    with pytest.raises(PromptError, match="front matter 'more'"):
        Prompt.parse(SOURCE.format(more="more: -1\n"), "here")


def test_token_counts_are_litellms_of_the_same_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    before = dict(os.environ)
    LiteLLMBackend()
    from litellm.litellm_core_utils.default_encoding import encoding
    from litellm.main import _get_encoding

    assert _get_encoding().encode("So it is.") == encoding.encode("So it is."), "LiteLLM's code gets the same encoding"
    chats = read_chats(DEFAULT_POOL)
    texts = [line.content for chat in chats[:4] for line in chat]
    for text in (*texts, "", "  \n\n x = 12345.678\t# <|endoftext|> isn't", "Straße, 東京, шесть 🙂"):
        assert count_tokens(text) == len(encoding.encode(text, disallowed_special=()))
    assert encoding.name == TOKENIZER
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", before["TIKTOKEN_CACHE_DIR"])  # LiteLLM's import sets it
    assert dict(os.environ) == before
