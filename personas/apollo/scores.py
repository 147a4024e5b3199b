"""Scores of an agent's calls, the text form of calls and outputs, and rewards for a trainer's completions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .calls import TOOLS, CallError, ToolCall, Value, canonicalize, json_text, parse_arguments, parse_json_value

Calls = Sequence[Mapping[str, Any]]
_WRITING_TOOLS = [tool.name for tool in TOOLS.values() if tool.writes]


class CallScores(NamedTuple):
    """The scores of an agent's calls: two measures of the paper (section 3.3), and additional measures.

    Attributes:
        accuracy: Whether the calls equal the gold calls in number, order, names and arguments.
        f1: Harmonic mean of two shares: the share of the calls made that are gold calls, and the share of the gold
            calls that were made. Order and repeats do not matter.
        strict: Whether the calls equal the gold calls as JSON, without a canonical form.
        any_order: Whether the calls are the gold calls in any order.
        f1_multiset: F1 in which each call can be matched only once.
        actions: Whether the calls that order, book or send something are the gold ones, in any order.
        stale: Whether the calls follow an earlier preference; None if there was none.
    """

    accuracy: bool
    f1: float
    strict: bool
    any_order: bool
    f1_multiset: float
    actions: bool
    stale: bool | None


def compare(made: Calls, gold: Calls, earlier: Sequence[Calls] = ()) -> CallScores:
    """Return the scores of an agent's calls.

    A call without a canonical form equals no other call. This is a call of an unknown tool, one that is not JSON, or
    one with a missing, unknown or invalid argument.

    Args:
        made: The agent's calls, in order: `name` and `arguments`, an object or its JSON text.
        gold: The expected calls.
        earlier: The expected calls of outdated preferences.

    Raises:
        CallError: If a gold call cannot run.
    """
    right = [canonicalize(call) for call in gold]
    done = [canonicalize_or_none(call) for call in made]
    common = _count_common(done, right)
    writing = [call for call, raw in zip(done, made, strict=True) if raw.get("name") in _WRITING_TOOLS]
    right_writing = [call for call in right if call.name in _WRITING_TOOLS]
    return CallScores(
        accuracy=_are_same(done, right),
        f1=_f1(
            sum(any(are_equal(call, other) for other in right) for call in done) / len(done) if done else 0.0,
            sum(any(are_equal(call, other) for other in done) for call in right) / len(right) if right else 0.0,
        ),
        strict=[_serialize_call(call) for call in made] == [_serialize_call(call) for call in gold],
        any_order=common == len(done) == len(right),
        f1_multiset=_f1(common / len(done) if done else 0.0, common / len(right) if right else 0.0),
        actions=_count_common(writing, right_writing) == len(writing) == len(right_writing),
        stale=any(_are_same(done, [canonicalize(call) for call in calls]) for calls in earlier) if earlier else None,
    )


def are_equal(one: ToolCall | None, other: ToolCall | None) -> bool:
    """Return whether two calls in canonical form are equal.

    A call without a canonical form is None and equals nothing.
    """
    if one is None or other is None or one.name != other.name:
        return False
    return all(_are_equal_values(value, other.arguments[name]) for name, value in one.arguments.items())


def _are_equal_values(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def canonicalize_or_none(call: Mapping[str, Any]) -> ToolCall | None:
    """Return the canonical form of a call; None if it has none."""
    try:
        return canonicalize(call)
    except CallError:
        return None


def _are_same(made: Sequence[ToolCall | None], gold: Sequence[ToolCall]) -> bool:
    return len(made) == len(gold) and all(map(are_equal, made, gold))


def _count_common(made: Sequence[ToolCall | None], gold: Sequence[ToolCall]) -> int:
    """Return how many calls can be paired with an equal gold call. Each gold call is used once."""
    left = list(gold)
    for call in made:
        for place, other in enumerate(left):
            if are_equal(call, other):
                del left[place]
                break
    return len(gold) - len(left)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _serialize_call(call: Mapping[str, Any]) -> str | None:
    try:
        return json.dumps([call.get("name"), parse_arguments(call)], sort_keys=True)
    except (CallError, TypeError):
        return None  # never equal to a gold call


FINISH = "[Finish]"
"""The agent's message when everything is done."""

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_TAG = "(?:think|thinking|thought|reasoning)"
_BLOCK = rf"<({_TAG})>.*?(?:</\1\s*>|\Z)"
_THOUGHT = re.compile(_BLOCK, re.DOTALL | re.IGNORECASE)
_THOUGHT_ENDS = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)
_NOT_OWN_TEXT = re.compile(
    rf"{_BLOCK}|(?P<output><tool_response>.*?(?:</tool_response>|\Z))", re.DOTALL | re.IGNORECASE
)
_TURN_ENDS = "\0"


def contains_finish(words: str) -> bool:
    """Return whether a text says that everything is done, possibly among other words."""
    return FINISH.lower() in words.lower()


def strip_reasoning(text: str) -> str:
    """Return a turn without its reasoning: `<think>` and similar blocks, and everything after an unclosed block.

    If the prompt's template has opened the first block, the turn contains only the end of the block. In this case, the
    text before this end is removed, too. In an evaluation, the gateway does the same before a turn is parsed.
    """
    return _THOUGHT_ENDS.split(_THOUGHT.sub("", text))[-1]


def extract_own_text(rollout: str) -> str:
    """Return the model's own text in a whole rollout, without reasoning and without tools' outputs.

    A block that is cut off at the end of the text is removed, too.
    """
    turns = _NOT_OWN_TEXT.sub(lambda block: _TURN_ENDS if block["output"] else "", rollout).split(_TURN_ENDS)
    return "\n".join(map(strip_reasoning, turns))


class AgentTurn(NamedTuple):
    """The content of one or several turns of an agent.

    Attributes:
        words: The text outside calls, without spaces around it.
        calls: The calls in order, each with `name` and `arguments` as the agent wrote them. An invalid call has an
            empty name.
    """

    words: str
    calls: Sequence[Mapping[str, Any]]

    @property
    def finishes(self) -> bool:
        """Return whether the agent says that it has finished. Text in a turn with calls does not count."""
        return not self.calls and contains_finish(self.words)


def parse_turn(text: str) -> AgentTurn:
    """Return a model's text, and its calls with `name` and the text of their `arguments`.

    An unclosed block is parsed, too. A block that is not a JSON object with a name becomes a call with an empty name
    and the block's text as arguments. It equals no other call.
    """
    return AgentTurn(_CALL.sub("\n", text).strip(), [_parse_call(block.strip()) for block in _CALL.findall(text)])


def format_call(call: Mapping[str, Any]) -> str:
    """Return a call in the form in which a model writes it.

    Args:
        call: `name` and `arguments`, an object or its JSON text.
    """
    arguments = call["arguments"]
    plain = _parse_json_or_text(arguments) if isinstance(arguments, str) else arguments
    return f"<tool_call>{json_text({'name': call['name'], 'arguments': plain})}</tool_call>"


def format_responses(outputs: Sequence[str]) -> str:
    """Return outputs in the form that a model reads, in the order of its calls.

    Args:
        outputs: The outputs as JSON. A `<` in an output, which may come from the model itself, cannot close the
            output's block.
    """
    return "\n".join(
        f"<tool_response>\n{output.replace('<', chr(92) + 'u003c')}\n</tool_response>" for output in outputs
    )


def _parse_call(block: str) -> dict[str, str]:
    call = _parse_json_or_text(block)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        return {"name": "", "arguments": block}
    arguments = call.get("arguments")
    return {"name": call["name"], "arguments": arguments if isinstance(arguments, str) else json_text(arguments)}


def _parse_json_or_text(text: str) -> Any:
    """Parse a JSON text, or return the text itself if it is invalid."""
    try:
        return parse_json_value(text)
    except (ValueError, RecursionError):
        return text


def parse_rollout(text: str) -> AgentTurn:
    """Parse a decoded rollout. Reasoning and tools' results are left out."""
    return parse_turn(extract_own_text(text))


def parse_completion(completion: Any) -> AgentTurn:
    """Parse a completion in the form that trainers pass.

    Args:
        completion: A text (see `read_rollout`), or a list of messages. From the assistant's messages, `tool_calls` in
            OpenAI's form are read, with arguments as an object or its JSON text. If a message has no `tool_calls`,
            calls are read from its text.
    """
    if isinstance(completion, str):
        return parse_rollout(completion)
    messages = [each for each in completion if isinstance(each, Mapping)] if isinstance(completion, Sequence) else []
    turns = [_parse_message(each) for each in messages if each.get("role", "assistant") == "assistant"]
    return AgentTurn("\n".join(turn.words for turn in turns), [call for turn in turns for call in turn.calls])


def parse_gold(gold: str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the gold calls of a row.

    Raises:
        ValueError: If the gold calls are not a JSON list of calls.
    """
    calls = json.loads(gold) if isinstance(gold, str) else gold
    if not isinstance(calls, Sequence) or not all(isinstance(call, Mapping) for call in calls):
        raise ValueError(f"the gold calls {str(gold)[:100]} are not a JSON list of calls")
    return calls


def score_completion(written: AgentTurn, gold: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return accuracy and F1 of a completion.

    If there are no gold calls, the completion must say that the task is finished.

    Raises:
        CallError: If a gold call cannot run.
    """
    if not gold:
        return float(written.finishes), float(written.finishes)
    scores = compare(written.calls, gold)
    return float(scores.accuracy), scores.f1


def _parse_message(message: Mapping[str, Any]) -> AgentTurn:
    words, written = parse_turn(strip_reasoning(_extract_text(message.get("content"))))
    given = message.get("tool_calls")
    return AgentTurn(words, list(map(_normalize_call, given)) if given and isinstance(given, Sequence) else written)


def _extract_text(content: Any) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _normalize_call(given: Any) -> Mapping[str, Any]:
    call = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(call, Mapping):
        return {"name": "", "arguments": ""}
    return {"name": call.get("name"), "arguments": call.get("arguments")}
