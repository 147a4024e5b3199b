"""Agent turns: parsing, rendering, end of the loop, unusual behaviour, and error labels of failed samples.

A turn is one reply of the agent: calls, or text. Only calls are scored (the protocol, section 5). A rule that uses only
the calls, and whether the agent asked something, gives a failed sample one of four error labels (section 8). A judge
can also label samples.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from dialoom.graphs.conversation import calls_of as message_calls
from dialoom.graphs.outcome import Line
from dialoom.personas.apollo import World, canonicalize, compare, execute
from dialoom.personas.apollo.calls import CallError, format_value, parse_arguments
from dialoom.personas.apollo.flows import FLOWS, GoldCall, If
from dialoom.personas.apollo.scores import FINISH, AgentTurn, are_equal, canonicalize_or_none, format_call, parse_turn
from dialoom.personas.apollo.source import ApolloPair

TURN_LIMIT = 12
FINISHED, SILENT, OUT_OF_TURNS = "finished", "silent", "turn_limit"
ENDINGS = (FINISHED, SILENT, OUT_OF_TURNS)

UNREAD_NOTES = "unread_notes"
FLAGS: Mapping[str, str] = {
    "parallel": "several calls in one turn",
    "mixed": "text besides a call",
    "asked": "a question to the user",
    "late_finish": "[Finish] within other text",
    "empty": "a turn with neither text nor a call",
    "failed_call": "a call that returned an error",
    UNREAD_NOTES: "a session without notes, because the memory's reply could not be parsed",
}
"""Kinds of unusual behaviour in a sample. They do not change a score."""

_QUESTION = re.compile(r"\?(?=\W*(?:\s|$))")


def message_turn(message: BaseMessage, is_native: bool) -> AgentTurn:
    """Return a message of the agent as a turn.

    Args:
        message: The message.
        is_native: Whether calls are separate from the text, as providers return them, rather than part of the text.
    """
    text = str(message.content)
    return AgentTurn(text.strip(), message_calls(message)) if is_native else parse_turn(text)


def message_turns(messages: Sequence[BaseMessage], is_native: bool) -> list[AgentTurn]:
    """Return the agent's turns in a list of messages."""
    return [message_turn(message, is_native) for message in messages if isinstance(message, AIMessage)]


def find_ending(turns: Sequence[AgentTurn], limit: int) -> str | None:
    """Return the reason why the loop ends after these turns, of which `limit` are allowed; `None` if it goes on."""
    if turns and turns[-1].finishes:
        return FINISHED
    if len(turns) > 1 and not any(turn.calls for turn in turns[-2:]):
        return SILENT
    return OUT_OF_TURNS if len(turns) >= limit else None


def collect_calls(turns: Sequence[AgentTurn]) -> list[dict[str, Any]]:
    """Return all calls of all turns, in order."""
    return [{"name": call["name"], "arguments": call["arguments"]} for turn in turns for call in turn.calls]


def find_flags(turns: Sequence[AgentTurn], outputs: Sequence[Any], unread: Sequence[int] = ()) -> list[str]:
    """Return the names in `FLAGS` of a sample's unusual behaviour.

    Args:
        turns: The agent's turns.
        outputs: The results of its calls.
        unread: The numbers of the sessions whose notes could not be parsed.
    """
    found = {
        "parallel": any(len(turn.calls) > 1 for turn in turns),
        "mixed": any(turn.calls and turn.words for turn in turns),
        "asked": any(_QUESTION.search(turn.words) for turn in turns),
        "late_finish": any(turn.finishes and turn.words.lower() != FINISH.lower() for turn in turns),
        "empty": any(not turn.calls and not turn.words for turn in turns),
        "failed_call": any(isinstance(output, dict) and "error" in output for output in outputs),
        UNREAD_NOTES: bool(unread),
    }
    return [flag for flag in FLAGS if found[flag]]


def parse_outputs(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return the tools' results, in order."""
    return [_parse_output(message) for message in messages if isinstance(message, ToolMessage)]


def describe_messages(messages: Sequence[BaseMessage], is_native: bool) -> list[Line]:
    """Return an agent's turns and its tools' results as lines of readable text."""
    return [_describe_message(message, is_native) for message in messages]


def _describe_message(message: BaseMessage, is_native: bool) -> Line:
    if isinstance(message, ToolMessage):
        return Line(role="tool", content=describe_output(_parse_output(message)))
    if not isinstance(message, AIMessage):
        return Line(role="user", content=str(message.content))
    turn, why = message_turn(message, is_native), message.additional_kwargs.get("finish_reason")
    words = [turn.words] if turn.words or not turn.calls else []
    return Line(role="assistant", content="\n".join([*words, *map(describe_call, turn.calls)]), finish_reason=why)


def describe_call(call: Mapping[str, Any]) -> str:
    """Return a call as one line: `book_flight(flight_id="FL381", cabin="economy")`."""
    try:
        given = ", ".join(f"{name}={format_value(value)}" for name, value in parse_arguments(call).items())
    except CallError:
        given = str(call["arguments"])
    return f"{call['name'] or '?'}({given})"


def describe_output(output: Any) -> str:
    """Return a tool's result as text: an object on one line, rows on one line each."""
    if isinstance(output, list):
        return "\n".join([f"{len(output)} row{'' if len(output) == 1 else 's'}", *map(describe_output, output)])
    pairs = (
        [f"{name} {to_plain_text(value)}" for name, value in output.items()]
        if isinstance(output, dict)
        else [str(output)]
    )
    return ", ".join(pairs)


def to_plain_text(value: Any) -> str:
    """Return a value as `describe_call` shows it, but without quotes."""
    return value if isinstance(value, str) else format_value(value)


def find_gold_problem(world: World, pair: ApolloPair) -> str | None:
    """Return the reason why a pair's gold calls, made one by one by an agent, do not score 1; `None` if they do.

    A pair is kept only if its gold calls score 1 (section 3 of the protocol, check (f)).

    Args:
        world: The world of the calls.
        pair: The pair; only its own tools can be called.
    """
    turns: list[AgentTurn] = []
    outputs: list[Any] = []
    for line in (*map(format_call, pair.calls()), FINISH):
        if ended := find_ending(turns, TURN_LIMIT):
            return f"not played: the loop ends ({ended}) after {len(turns)} of {len(pair.gold)} calls"
        turns.append(parse_turn(line))
        outputs += [execute(world, call, pair.tools) for call in turns[-1].calls]
    scores, ended, flags = (
        compare(collect_calls(turns), pair.calls()),
        find_ending(turns, TURN_LIMIT),
        find_flags(turns, outputs),
    )
    if ended == FINISHED and scores.accuracy and scores.f1 == 1 and not flags:
        return None
    odd = next((output for output in outputs if isinstance(output, dict) and "error" in output), outputs[-1])
    return f"not played: the loop ends ({ended}) with F1 {scores.f1:.2f} and {', '.join(flags) or 'no flags'}: {odd}"


def _parse_output(message: ToolMessage) -> Any:
    """Return a tool's result parsed from JSON, or as text if an agent's own loop returned something other than JSON."""
    try:
        return json.loads(str(message.content))
    except ValueError:
        return str(message.content)


UNHELPFUL, UNAWARE, HALLUCINATED, TOOL_RELATED = "unhelpful", "unawareness", "hallucination", "tool_related"
LABELS: Mapping[str, str] = {
    UNHELPFUL: "the request is misunderstood, or answered without substance",
    UNAWARE: "the history is not used: the calls lack the user's preference, or the agent asks for it",
    HALLUCINATED: "a call follows a preference that the user does not have",
    TOOL_RELATED: "a call is wrong in a part that no preference decides, such as the day, or calls a wrong tool",
}
"""The labels with their meanings. The first label that applies is used."""

_PREFERENCE_PROVENANCES = ("preference", "output")
"""The kinds of arguments that depend on a preference, directly or through a row of a tool's result."""


def label_error(flow: str, gold: Sequence[GoldCall], made: Sequence[Mapping[str, Any]], asked: bool) -> str | None:
    """Return the error label of a sample from its calls; `None` if they are the gold calls.

    Args:
        flow: The flow of the sample's request.
        gold: The expected calls.
        made: The agent's calls.
        asked: Whether the agent asked the user something.
    """
    pairs = list(zip(gold, made, strict=False))
    place = next((at for at, (right, call) in enumerate(pairs) if not _is_equal(right, call)), len(pairs))
    if place == len(gold) == len(made):
        return None
    if asked or not made:
        return UNAWARE if asked else UNHELPFUL
    return _label_call(flow, place, *pairs[place]) if place < len(pairs) else TOOL_RELATED


def kappa(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    """Return Cohen's kappa of two raters' labels (J. Cohen, 1960); `None` if chance agreement is 1."""
    if not pairs:
        return None
    ones, others = (Counter(labels) for labels in zip(*pairs, strict=True))
    observed = sum(one == other for one, other in pairs) / len(pairs)
    chance = sum(ones[label] * others[label] for label in ones) / len(pairs) ** 2
    return (observed - chance) / (1 - chance) if chance < 1 else None


def _label_call(flow: str, place: int, right: GoldCall, call: Mapping[str, Any]) -> str:
    """Return the error label for the first wrong call."""
    if call["name"] != right.name:
        # After a lookup, the agent has applied a wrong rule: it took the other branch or decided too early.
        last = FLOWS[flow].last
        ends = {last.then.tool, last.otherwise.tool} if isinstance(last, If) else set()
        return HALLUCINATED if place and call["name"] in ends else TOOL_RELATED
    try:
        given = parse_arguments(call)
    except CallError:
        return TOOL_RELATED
    for name in right.arguments:
        is_preferred = right.provenance[name] in _PREFERENCE_PROVENANCES
        if name not in given and is_preferred and not _is_equal(right, _replace_argument(right, name, None)):
            return UNAWARE
        if not _is_equal(right, _replace_argument(right, name, given.get(name))):
            return HALLUCINATED if is_preferred else TOOL_RELATED
    return TOOL_RELATED


def _replace_argument(right: GoldCall, name: str, value: Any) -> dict[str, Any]:
    """Return the gold call with one argument replaced by the value that the agent gave."""
    return {"name": right.name, "arguments": {**right.arguments, name: value}}


def _is_equal(right: GoldCall, call: Mapping[str, Any]) -> bool:
    return are_equal(canonicalize_or_none(call), canonicalize(right.call()))
