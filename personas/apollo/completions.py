"""Completions of a trainer's model: their calls and rewards.

Like `scores` and `text_protocol`, this needs nothing but the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .scores import compare
from .text_protocol import own_words, read_turn, says_finish, without_thoughts


class WrittenTurns(NamedTuple):
    """The content of one or several turns.

    Attributes:
        words: The text outside calls.
        calls: The calls in order, each with `name` and `arguments`. An invalid call has an empty name.
    """

    words: str
    calls: Sequence[Mapping[str, Any]]


def read_rollout(text: str) -> WrittenTurns:
    """Parse a decoded rollout; reasoning and tools' results are left out."""
    return WrittenTurns(*read_turn(own_words(text)))


def read_completion(completion: Any) -> WrittenTurns:
    """Parse a completion in the form that trainers pass.

    Args:
        completion: A text (see `read_rollout`), or a list of messages. The assistant's are parsed: their
            `tool_calls`, as OpenAI has them, with arguments as an object or its JSON text; of a message that has
            none, the calls in its text.
    """
    if isinstance(completion, str):
        return read_rollout(completion)
    turns = [_read_message(message) for message in _assistants(completion)]
    return WrittenTurns("\n".join(turn.words for turn in turns), [call for turn in turns for call in turn.calls])


def read_gold(gold: str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the gold calls of a row.

    Raises:
        ValueError: If they are no JSON list of calls.
    """
    calls = json.loads(gold) if isinstance(gold, str) else gold
    if not isinstance(calls, Sequence) or not all(isinstance(call, Mapping) for call in calls):
        raise ValueError(f"the gold calls {str(gold)[:100]} are no JSON list of calls")
    return calls


def worth(written: WrittenTurns, gold: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return accuracy and F1 of a completion. Without gold calls, it must say that the task is finished.

    Raises:
        CallError: If a gold call cannot run.
    """
    if not gold:
        is_right = float(not written.calls and says_finish(written.words))
        return is_right, is_right
    scores = compare(written.calls, gold)
    return float(scores.accuracy), scores.f1


def _assistants(completion: Any) -> Iterable[Mapping[str, Any]]:
    messages = completion if isinstance(completion, Sequence) else []
    return [each for each in messages if isinstance(each, Mapping) and each.get("role", "assistant") == "assistant"]


def _read_message(message: Mapping[str, Any]) -> WrittenTurns:
    words, written = read_turn(without_thoughts(_text(message.get("content"))))
    given = message.get("tool_calls")
    return WrittenTurns(words, list(map(_call, given)) if given and isinstance(given, Sequence) else written)


def _text(content: Any) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _call(given: Any) -> Mapping[str, Any]:
    call = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(call, Mapping):
        return {"name": "", "arguments": ""}
    return {"name": call.get("name"), "arguments": call.get("arguments")}
