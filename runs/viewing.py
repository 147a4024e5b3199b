"""Finished conversations with the faults, judgements and calls of each message, and word differences of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

from dialoom.graphs import DialogueFault, Line, Outline, Recipe, Scenario
from dialoom.graphs.capabilities import WithGate, WithOutline
from dialoom.graphs.check import conversation_to
from dialoom.graphs.fault import USER
from dialoom.prompts import ChatMessage, FunctionCall
from dialoom.prompts.messages import identity, tool_name
from dialoom.runs.agreement import Item, items_of
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile

from .store.episodes import RecordedEpisode

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A message and what belongs to it.

    Attributes:
        place: Its place among the messages, from 0.
        faults: Those that stand in it.
        judged: The judgements of the turn that ends with it.
        call: The call whose reply it is, as `RunFile.calls` has it; `None` if it was no model's of this scenario.
    """

    place: int
    line: Line
    faults: Sequence[DialogueFault]
    judged: Sequence[Item]
    call: Call | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What has come of a scenario, or of one that is pending, up to now.

    Attributes:
        number: The scenario's place in the plan, from 1.
        of: How many scenarios are planned.
        scenario: As it was planned.
        judging: The set of judgements that it is shown with; `None` if there is none.
        messages: What was said.
        faults: Those that stand in no message.
        judged: The judgements of the whole, and of turns that end with no message.
        calls: All calls of the scenario, in the order in which they were begun.
        outline: The recipe's own, where the outcome is more than one conversation.
    """

    number: int
    of: int
    scenario: Scenario
    episode: RecordedEpisode
    judging: str | None
    messages: Sequence[SpokenMessage]
    faults: Sequence[DialogueFault]
    judged: Sequence[Item]
    calls: Sequence[Call]
    outline: Outline | None

    def first_calls(self) -> dict[str, Call]:
        """The first answered call of each role in the run itself: what that side was shown at the beginning."""
        found: dict[str, Call] = {}
        for call in own_calls(self.calls):
            found.setdefault(call["role"], call)
        return found

    def call_before(self, call: Call) -> Call | None:
        """The call of the same role and prompt before another, in the same set of judgements and branch."""
        known: Call | None = None
        for each in self.calls:
            if each["call"] == call["call"]:
                return known
            if all(each[key] == call[key] for key in ("role", "prompt", "judging", "branch")):
                known = each
        return None


def conversation(run: RunFile, scenario: str | int, judging: str | None = None) -> Conversation:
    """A scenario's conversation.

    Args:
        run: The run.
        scenario: Its id, the beginning of its id, or its place in the plan (from 1).
        judging: The set of judgements; by default the oldest.

    Raises:
        StoreError: If there is no such scenario or set.
        RunError: If the run's recipe is not to be had.
    """
    position, chosen = run.resolve(str(scenario)), run.judgement_set(judging)
    episode = run.episode(position, judging) or run.so_far(position)
    outcome, calls = episode.outcome, run.calls_of(position)
    faults = outcome.faults or ()
    said_by = said_by_calls(outcome.messages, calls, run.recipe)
    judged: dict[int | None, list[Item]] = {}
    for item in items_of(episode):
        judged.setdefault(_end(episode, item), []).append(item)
    return Conversation(
        number=position + 1,
        of=run.planned,
        scenario=run.scenario(run.recipe, position),
        episode=episode,
        judging=None if chosen is None else chosen.name,
        messages=[
            SpokenMessage(
                place,
                line,
                [fault for fault in faults if fault.message == place],
                judged.get(place, ()),
                said_by.get(place),
            )
            for place, line in enumerate(outcome.messages)
        ],
        faults=[fault for fault in faults if fault.message is None or fault.message >= len(outcome.messages)],
        judged=judged.get(None, ()),
        calls=calls,
        outline=WithOutline.of(run.recipe).outline(episode),
    )


def own_calls(calls: Iterable[Call]) -> list[Call]:
    """The answered calls that the outcome is made of, not those of later judges and of other branches."""
    own = (call for call in calls if call["judging"] is None and call["branch"] is None and call["reply"] is not None)
    return sorted(own, key=lambda call: (call["step"], call["node"], call["ordinal"], call["ask"]))


def said_by_calls(messages: Sequence[Line], calls: Iterable[Call], recipe: Recipe) -> dict[int, Call]:
    """The call that said each message, by the message's place; what no model of the scenario said is not there."""
    left, found = own_calls(calls), dict[int, Call]()
    lines = {place: line for place, line in enumerate(messages) if line.tool_call_id is None}
    for says in (_says, _is_all_of):
        for place, line in lines.items():
            said = next((number for number, call in enumerate(left) if says(call, line, recipe)), None)
            if place not in found and said is not None:
                found[place] = left.pop(said)
    for role in {call["role"] for call in left}:  # a recipe may show what was said in other words, such as calls
        calls_left = [call for call in left if call["role"] == role]
        places = [place for place, line in lines.items() if line.role == role and place not in found]
        if len(places) == len(calls_left):
            found.update(zip(places, calls_left, strict=True))
    return found


def _says(call: Call, line: Line, recipe: Recipe) -> bool:
    """Whether a call's reply is what a line is made of; the reply may have had an end marker or a label with it."""
    if call["role"] != line.role:
        return False
    if line.tool_calls:
        names = [each["name"] for each in line.tool_calls]
        return [each["name"] for each in call["tool_calls"]] == names or all(name in call["reply"] for name in names)
    if not line.content:
        return not call["reply"].strip()
    return line.content in call["reply"] or (
        line.role == USER and line.content == WithGate.of(recipe).spoken(call["reply"])
    )


def _is_all_of(call: Call, line: Line, recipe: Recipe) -> bool:  # noqa: ARG001
    """Whether a line is a reply as it came, though it was said in another role than it is shown in."""
    return bool(line.content.strip()) and call["reply"].strip() == line.content.strip()


def _end(episode: RecordedEpisode, item: Item) -> int | None:
    """The place of the message that ends the turn which was judged; `None` for the whole."""
    if item.judgement.turn is None or not episode.outcome.messages:
        return None
    return len(conversation_to(episode.outcome, item.judgement)) - 1


Mark = Literal["same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class MarkedMessage:
    """A message of a request: also in the one before, new, or in the one before alone."""

    mark: Mark
    message: ChatMessage

    @property
    def calls(self) -> Sequence[FunctionCall]:
        """What it calls."""
        return self.message.get("tool_calls", ())


@dataclass(frozen=True, slots=True)
class RequestShown:
    """A request against the one before.

    Attributes:
        messages: In their order, those that are gone where they stood.
        tools: The names of the tools that it offers.
        has_before: Whether there is one before; else no message is marked.
    """

    messages: Sequence[MarkedMessage]
    tools: Sequence[str]
    has_before: bool


def request_shown(run: RunFile, call: int, before: int | None = None) -> RequestShown:
    """A call's exact request.

    Args:
        run: The run.
        call: The call's row in the ledger.
        before: The row of the call that it is compared with.

    Raises:
        RunError: If there is no such call.
    """
    asked = run.request(call)
    if asked is None:
        raise RunError(f"there is no call {call} in {run.path}")
    earlier = None if before is None else run.request(before)
    tools = [tool_name(each) for each in asked.tools]
    if earlier is None:
        return RequestShown([MarkedMessage("same", each) for each in asked.messages], tools, False)
    return RequestShown(marked(earlier.messages, asked.messages), tools, True)


def marked(before: Sequence[ChatMessage], now: Sequence[ChatMessage]) -> list[MarkedMessage]:
    """The messages of a request, each marked by whether the one before had it."""
    old, new = ([json.dumps(identity(each)) for each in messages] for messages in (before, now))
    found: list[MarkedMessage] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [MarkedMessage("same", each) for each in now[c:d]]
        else:
            found += [MarkedMessage("gone", each) for each in before[a:b]]
            found += [MarkedMessage("new", each) for each in now[c:d]]
    return found


_WORDS = re.compile(r"\s+|[^\s]+")
_MOST = 4_000
"""Words of two texts that are compared; of longer ones all is said to differ."""


class Piece(NamedTuple):
    """A stretch of a text, and whether the other one has it."""

    text: str
    is_shared: bool


def snippet(text: str, words: str, length: int = 160) -> str:
    """The part of a text in which the first of some words stands.

    Args:
        text: The text.
        words: What was looked for, as `dialoom.Run.scenarios` takes it.
        length: Letters of it at the most.
    """
    lowered = text.casefold()
    found = [lowered.find(word.casefold()) for word in words.replace('"', " ").replace("*", " ").split()]
    start = max(min([at for at in found if at >= 0], default=0) - length // 4, 0)
    part = " ".join(text[start : start + length].split())
    return f"{'…' if start else ''}{part}{'…' if start + length < len(text) else ''}"


def beside(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Two texts in pieces, each with whether the other has it, too."""
    ours, theirs = _WORDS.findall(left), _WORDS.findall(right)
    if len(ours) + len(theirs) > _MOST:
        return [Piece(left, left == right)], [Piece(right, left == right)]
    found: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for pieces, words in ((found[0], ours[a:b]), (found[1], theirs[c:d])):
            if words:
                pieces.append(Piece("".join(words), kind == "equal"))
    return found


__all__ = [
    "Conversation",
    "MarkedMessage",
    "Piece",
    "RequestShown",
    "SpokenMessage",
    "beside",
    "conversation",
    "request_shown",
    "snippet",
]
