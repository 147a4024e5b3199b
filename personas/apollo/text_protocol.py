"""Calls and outputs as text, for models without native tool calls, in the format that open models and trainers use.

A call is a JSON object in `<tool_call>`, an output is JSON in `<tool_response>`. Like `calls` and `scores`, this module
needs only the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .written import value_of

FINISH = "[Finish]"
"""The agent's message when everything is done."""

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_TAG = "(?:think|thinking|thought|reasoning)"
_BLOCK = rf"<({_TAG})>.*?(?:</\1\s*>|\Z)"
_THOUGHT = re.compile(_BLOCK, re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)
_NOT_SAID = re.compile(rf"{_BLOCK}|(?P<output><tool_response>.*?(?:</tool_response>|\Z))", re.DOTALL | re.IGNORECASE)
_TURN_ENDS = "\0"


def says_finish(words: str) -> bool:
    """Return whether a text says that everything is done, possibly among other words."""
    return FINISH.lower() in words.lower()


def without_thoughts(text: str) -> str:
    """Return a turn without its reasoning: `<think>` blocks (and the like), and everything after an unclosed one.

    If a template has opened the first block in the prompt, the turn only has its end: the text before it is removed,
    too. In an evaluation, the gateway does the same before a turn is parsed.
    """
    return _THOUGHT_ENDS.split(_THOUGHT.sub("", text))[-1]


def own_words(rollout: str) -> str:
    """Return the model's own text in a whole rollout, without reasoning and without tools' outputs.

    A block that the end of the text cuts off is removed to the end.
    """
    turns = _NOT_SAID.sub(lambda block: _TURN_ENDS if block["output"] else "", rollout).split(_TURN_ENDS)
    return "\n".join(map(without_thoughts, turns))


def read_turn(text: str) -> tuple[str, list[dict[str, str]]]:
    """Return a model's text, and its calls with `name` and the text of their `arguments`.

    An unclosed block is parsed, too. A block that is no JSON object with a name becomes a call with an empty name,
    whose arguments are the block's text: it equals no other call.
    """
    calls = [_read_call(block.strip()) for block in _CALL.findall(text)]
    return _CALL.sub("\n", text).strip(), calls


def call_text(call: Mapping[str, Any]) -> str:
    """Return a call in the form in which a model writes it.

    Args:
        call: `name` and `arguments`, an object or its JSON text.
    """
    arguments = call["arguments"]
    plain = _loaded(arguments) if isinstance(arguments, str) else arguments
    return f"<tool_call>{_json({'name': call['name'], 'arguments': plain})}</tool_call>"


def responses_text(outputs: Sequence[str]) -> str:
    """Return outputs in the form in which a model reads them, in the order of its calls.

    Args:
        outputs: The outputs as JSON. A `<` in one, which may come from the model itself, cannot close its block.
    """
    return "\n".join(
        f"<tool_response>\n{output.replace('<', chr(92) + 'u003c')}\n</tool_response>" for output in outputs
    )


def _read_call(block: str) -> dict[str, str]:
    call = _loaded(block)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        return {"name": "", "arguments": block}
    arguments = call.get("arguments")
    return {"name": call["name"], "arguments": arguments if isinstance(arguments, str) else _json(arguments)}


def _loaded(text: str) -> Any:
    """Parse a JSON text, or return the text itself if it is invalid."""
    try:
        return value_of(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
