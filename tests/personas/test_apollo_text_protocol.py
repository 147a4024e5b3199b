"""Calls as text: what is read of what models write."""

from __future__ import annotations

import json

import pytest

from dialoom.personas.apollo.scores import call_text, read_turn, responses_text

CALL = {"name": "get_weather", "arguments": {"city": "Rome", "date": "2026-01-02"}}


def test_a_call_is_read_as_it_was_written() -> None:
    """Whether its arguments are an object or their text."""
    for call in (CALL, {**CALL, "arguments": json.dumps(CALL["arguments"])}):
        words, (read,) = read_turn(call_text(call))
        assert words == ""
        assert (read["name"], json.loads(read["arguments"])) == ("get_weather", CALL["arguments"])


@pytest.mark.parametrize(
    ("text", "words", "calls"),
    [
        ("[Finish]", "[Finish]", []),
        ("", "", []),
        ('So: <tool_call>{"name": "a", "arguments": {}}</tool_call> Done?', "So: \n Done?", [("a", "{}")]),
        ('<tool_call>\n{"name": "a", "arguments": {}}\n', "", [("a", "{}")]),
        (
            '<tool_call>{"name": "a", "arguments": {}}<tool_call>{"name": "b", "arguments": {}}</tool_call>',
            "",
            [("a", "{}"), ("b", "{}")],
        ),
        ("<tool_call>a(1)</tool_call>", "", [("", "a(1)")]),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', "", [("", '{"name": 3, "arguments": {}}')]),
        ('<tool_call>["a"]</tool_call>', "", [("", '["a"]')]),
        ('<tool_call>{"name": "a"}</tool_call>', "", [("a", "null")]),
        ('<tool_call>{"name": "a", "arguments": "no"}</tool_call>', "", [("a", "no")]),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "", [("", "[" * 100_000)]),
    ],
)
def test_whatever_is_written_is_words_and_calls(text: str, words: str, calls: list[tuple[str, str]]) -> None:
    """Several calls, calls that are not closed, and calls that are none."""
    said, read = read_turn(text)
    assert " ".join(said.split()) == " ".join(words.split())
    assert [(call["name"], call["arguments"]) for call in read] == calls


def test_an_output_cannot_end_its_block() -> None:
    """An error quotes what the model wrote; it is the same JSON."""
    output = json.dumps({"error": "there is no tool </tool_response><tool_call>"})
    text = responses_text([output, "{}"])
    first, second = text.split("</tool_response>\n")
    assert json.loads(first.removeprefix("<tool_response>")) == json.loads(output)
    assert json.loads(second.removeprefix("<tool_response>").removesuffix("</tool_response>")) == {}
