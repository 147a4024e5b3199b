"""Calls and outputs as text, for models without a place for calls of their own: what open models and trainers write.

A call is a JSON object in `<tool_call>`, an output is JSON in `<tool_response>`. Like `calls` and `scores`, this needs
nothing but the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .written import value_of

FINISH = "[Finish]"
"""What an agent says, by itself, when all is done."""

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_TAG = "(?:think|thinking|thought|reasoning)"
_BLOCK = rf"<({_TAG})>.*?(?:</\1\s*>|\Z)"
_THOUGHT = re.compile(_BLOCK, re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)
_NOT_SAID = re.compile(rf"{_BLOCK}|(?P<output><tool_response>.*?(?:</tool_response>|\Z))", re.DOTALL | re.IGNORECASE)
_TURN_ENDS = "\0"


def says_finish(words: str) -> bool:
    """Whether words say that all is done; others may stand beside."""
    return FINISH.lower() in words.lower()


def without_thoughts(text: str) -> str:
    """A turn without its reasoning: `<think>` blocks (and the like), and all that follows one that was never closed.

    Where a template has opened the first block in the prompt, the turn has but its end: what is before it goes, too. In
    an evaluation the gateway has done the same before a turn is read.
    """
    return _THOUGHT_ENDS.split(_THOUGHT.sub("", text))[-1]


def own_words(rollout: str) -> str:
    """What a model said itself in a text that holds a whole rollout: no reasoning, and nothing that tools said.

    A block that is cut off by the end of the text goes with all that follows.
    """
    turns = _NOT_SAID.sub(lambda block: _TURN_ENDS if block["output"] else "", rollout).split(_TURN_ENDS)
    return "\n".join(map(without_thoughts, turns))


def read_turn(text: str) -> tuple[str, list[dict[str, str]]]:
    """What a model wrote: its words, and its calls with `name` and the text of their `arguments`.

    A block that was never closed is read all the same. What is in a block and is no call, because it is no JSON object
    with a name, is a call without a name, whose arguments are what was written: it equals nothing.
    """
    calls = [_read_call(block.strip()) for block in _CALL.findall(text)]
    return _CALL.sub("\n", text).strip(), calls


def call_text(call: Mapping[str, Any]) -> str:
    """A call as a model writes it.

    Args:
        call: `name` and `arguments`, an object or its JSON text.
    """
    arguments = call["arguments"]
    plain = _loaded(arguments) if isinstance(arguments, str) else arguments
    return f"<tool_call>{_json({'name': call['name'], 'arguments': plain})}</tool_call>"


def responses_text(outputs: Sequence[str]) -> str:
    """Outputs as a model reads them, in the order of its calls.

    Args:
        outputs: Each as JSON. A `<` in one, which may have come from the model itself, cannot end its block.
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
    """The value of a JSON text; the text itself if it is none."""
    try:
        return value_of(text)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
