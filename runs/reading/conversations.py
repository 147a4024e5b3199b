"""Conversations with the faults, judgements and calls of each message; faulty calls; and comparison of requests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal, NamedTuple

from dialoom.graphs import (
    DialogueFault,
    Episode,
    Judgement,
    Line,
    Outcome,
    Outline,
    Recipe,
    Scenario,
    WithGate,
    WithLabels,
    WithOutline,
)
from dialoom.graphs.check import select_judged_messages
from dialoom.graphs.gate import GateLine, Talk
from dialoom.graphs.outcome import USER
from dialoom.grouping import group_pairs
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import get_tool_name, message_identity
from dialoom.roles import MAX_ASKS
from dialoom.runs.errors import RunError
from dialoom.runs.store import RecordedEpisode, RunFile

Call = Mapping[str, Any]


class Group(NamedTuple):
    """A group of judgements that are compared: one metric of one target, either of whole conversations or of turns."""

    metric: str
    target: str
    by_turn: bool

    def __str__(self) -> str:
        return f"{self.metric} ({self.target})" + (" by turn" if self.by_turn else "")


@dataclass(frozen=True, slots=True)
class Item:
    """One judgement, as an item to label.

    Attributes:
        id: The scenario's id, metric, target and turn. It is the same in every set of judgements of the run.
        judgement: The judgement.
    """

    id: str
    judgement: Judgement

    @property
    def group(self) -> Group:
        """The group of items with which the item is compared."""
        return Group(self.judgement.metric, self.judgement.target, self.judgement.turn is not None)


def iter_items(episode: Episode, recipe: Recipe | None = None) -> Iterator[Item]:
    """Yield an episode's items in the order of its judgements; items that the recipe derives come last."""
    counts: Counter[str] = Counter()
    derived = () if recipe is None else WithLabels.of(recipe).derive_judgements(episode.outcome)
    for judgement in (*episode.outcome.judgements, *derived):
        turn = "" if judgement.turn is None else f"/{judgement.turn}"
        id_ = f"{episode.id}/{judgement.metric}/{judgement.target}{turn}"
        counts[id_] += 1
        # Rounds at the same depth of a tree have the same id, so a number in the order of the judgements is added.
        yield Item(id_ if counts[id_] == 1 else f"{id_}#{counts[id_]}", judgement)


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """A message with its faults, judgements and call.

    Attributes:
        index: Its index among the messages, from 0.
        faults: The faults in it.
        judged: The judgements of the turn that ends with it.
        call: The call whose reply the message is, as returned by `RunFile.calls`; `None` if no model of this scenario
            wrote it.
    """

    index: int
    line: Line
    faults: Sequence[DialogueFault]
    judged: Sequence[Item]
    call: Call | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A scenario's outcome, or its state so far if it is pending.

    Attributes:
        number: The scenario's number in the plan, from 1.
        total: The number of planned scenarios.
        scenario: The scenario as planned.
        judging: The set of judgements that is shown with it; `None` if there is none.
        messages: The messages.
        faults: The faults that belong to no message.
        judged: The judgements of the whole conversation, and of turns that do not end with a message.
        calls: All calls of the scenario, in the order in which they began.
        outline: The recipe's outline, if the outcome consists of more than one conversation.
    """

    number: int
    total: int
    scenario: Scenario
    episode: RecordedEpisode
    judging: str | None
    messages: Sequence[SpokenMessage]
    faults: Sequence[DialogueFault]
    judged: Sequence[Item]
    calls: Sequence[Call]
    outline: Outline | None

    def first_calls(self) -> dict[str, Call]:
        """Return each role's first answered call in the run itself, which shows what the role knows at first."""
        found: dict[str, Call] = {}
        for call in select_own_calls(self.calls):
            found.setdefault(call["role"], call)
        return found

    def call_before(self, call: Call) -> Call | None:
        """Return the previous call of the same role and prompt, in the same set of judgements and branch."""
        known: Call | None = None
        for each in self.calls:
            if each["call"] == call["call"]:
                return known
            if all(each[key] == call[key] for key in ("role", "prompt", "judging", "branch")):
                known = each
        return None


def load_conversation(run: RunFile, scenario: str | int, judging: str | None = None) -> Conversation:
    """Return a scenario's conversation, with one set of judgements.

    Args:
        run: The run.
        scenario: Its id, a prefix of its id, or its number in the plan (from 1).
        judging: The set of judgements; by default the oldest.

    Raises:
        StoreError: If there is no such scenario or set.
        RunError: If the run's recipe cannot be loaded.
    """
    position, judgement_set = run.resolve(str(scenario)), run.judgement_set(judging)
    episode = run.episode(position, judging) or run.so_far(position)
    outcome, calls = episode.outcome, run.calls_of(position)
    faults = outcome.faults or ()
    call_of = match_calls(outcome.messages, calls, run.recipe)
    items = group_pairs((_find_last_message(episode, item), item) for item in iter_items(episode))
    return Conversation(
        number=position + 1,
        total=run.planned,
        scenario=run.scenario(run.recipe, position),
        episode=episode,
        judging=None if judgement_set is None else judgement_set.name,
        messages=[
            SpokenMessage(
                index,
                line,
                [fault for fault in faults if fault.message == index],
                items.get(index, ()),
                call_of.get(index),
            )
            for index, line in enumerate(outcome.messages)
        ],
        faults=[fault for fault in faults if fault.message is None or fault.message >= len(outcome.messages)],
        judged=items.get(None, ()),
        calls=calls,
        outline=WithOutline.of(run.recipe).outline(episode),
    )


def select_own_calls(calls: Iterable[Call]) -> list[Call]:
    """Return the answered calls from which the outcome results, without calls of later judges and other branches."""
    selected = (
        call for call in calls if call["judging"] is None and call["branch"] is None and call["reply"] is not None
    )
    return sorted(selected, key=lambda call: (call["step"], call["node"], call["ordinal"], call["ask"]))


def match_calls(messages: Sequence[Line], calls: Iterable[Call], recipe: Recipe) -> dict[int, Call]:
    """Return the call that wrote each message, by the message's index; messages that no call wrote are left out."""
    remaining, found = select_own_calls(calls), dict[int, Call]()
    lines = {index: line for index, line in enumerate(messages) if line.tool_call_id is None}
    for wrote in (
        _is_written_by,
        # the line equals a whole reply, even if it is shown under another role
        lambda call, line, _recipe: bool(line.content.strip()) and call["reply"].strip() == line.content.strip(),
    ):
        for index, line in lines.items():
            writer = next((number for number, call in enumerate(remaining) if wrote(call, line, recipe)), None)
            if index not in found and writer is not None:
                found[index] = remaining.pop(writer)
    for role in {
        call["role"] for call in remaining
    }:  # a recipe may show a reply, such as a tool call, as different text
        role_calls = [call for call in remaining if call["role"] == role]
        indices = [index for index, line in lines.items() if line.role == role and index not in found]
        if len(indices) == len(role_calls):
            found.update(zip(indices, role_calls, strict=True))
    return found


def _is_written_by(call: Call, line: Line, recipe: Recipe) -> bool:
    """Return whether a line or its tool calls come from a call's reply."""
    if call["role"] != line.role:
        return False
    if line.tool_calls:
        names = [each["name"] for each in line.tool_calls]
        return [each["name"] for each in call["tool_calls"]] == names or all(name in call["reply"] for name in names)
    if not line.content:
        return not call["reply"].strip()
    return _is_in_reply(line.content, line.role, call["reply"], WithGate.of(recipe))


def _is_in_reply(text: str, role: str, reply: str, recipe: WithGate) -> bool:
    """Return whether a line comes from a reply, which may also have contained an end marker or a label."""
    return text in reply or (role == USER and text == recipe.spoken(reply))


def _find_last_message(episode: RecordedEpisode, item: Item) -> int | None:
    """Return the index of the message that ends the judged turn; `None` if the whole conversation was judged."""
    if item.judgement.turn is None or not episode.outcome.messages:
        return None
    return len(select_judged_messages(episode.outcome, item.judgement)) - 1


@dataclass(frozen=True, slots=True)
class FaultyCalls:
    """The calls of a scenario in whose replies the gate finds faults, by their rows in the ledger.

    Attributes:
        faults: The faults of each call's reply; calls without a fault are left out.
        rejected: The calls whose lines were rejected and requested again, so that the other participant never saw them.
    """

    faults: dict[int, list[DialogueFault]] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)


_SpokenLine = tuple[GateLine, Sequence[GateLine]]
"""A line, and all lines before it."""


def find_faulty_calls(run: RunFile, position: int, calls: Iterable[Call], outcome: Outcome) -> FaultyCalls:
    """Return the faults of each of the run's own calls in a scenario.

    A fault refers to a line, and the line is matched to a call by its speaker and text; equal lines are matched to
    calls in order. Rejected lines are found in the ledger only, and are checked again by the current rules.

    Args:
        run: The run.
        position: The scenario's position.
        calls: The scenario's rows of the ledger, as returned by `RunFile.calls`.
        outcome: The scenario's outcome. The result is empty if the faults of the outcome are unknown.
    """
    found = FaultyCalls()
    if outcome.faults is None:
        return found
    recipe = WithGate.of(run.recipe)
    scenario = run.scenario(run.recipe, position)
    places = groupby(select_own_calls(calls), lambda call: (call["step"], call["node"], call["ordinal"]))
    attempts = [list(group) for _, group in places]
    by_call = _match_lines([each[-1] for each in attempts], list(_iter_spoken_lines(recipe, scenario, outcome)), recipe)
    for fault in outcome.faults:
        for row, (spoken, _) in by_call.items():
            if (fault.role, fault.message, fault.where) == (spoken.role, spoken.message, spoken.where):
                found.faults.setdefault(row, []).append(fault)
    for row, place in _match_written_texts([each[-1] for each in attempts], recipe.talks(scenario, outcome)):
        found.faults.setdefault(row, []).extend(fault for fault in outcome.faults if fault.where == place)
    for each in attempts:
        match = by_call.get(each[-1]["call"])
        earlier = [Line(role=line.role, content=line.text) for line in match[1]] if match else outcome.messages
        # The last request of every attempt at a line was rejected, except that of the final attempt.
        blocks = {(call["ask"] - 1) // MAX_ASKS: call for call in each}
        for call in [blocks[number] for number in sorted(blocks)][:-1]:
            line = Line(role=USER, content=recipe.spoken(call["reply"]), finish_reason=call["finish_reason"])
            found.rejected.add(call["call"])
            found.faults[call["call"]] = run.gate.find_line_faults(scenario, earlier, line)
    return found


def _iter_spoken_lines(recipe: WithGate, scenario: Any, outcome: Outcome) -> Iterator[_SpokenLine]:
    for talk in recipe.talks(scenario, outcome):
        for index in range(talk.since, len(talk.lines)) if not talk.author else ():
            yield talk.lines[index], talk.lines[:index]


def _match_written_texts(calls: Sequence[Call], talks: Iterable[Talk]) -> Iterator[tuple[int, str]]:
    """Yield the call that wrote, and the position of, each text that no role spoke.

    One reply may contain several texts, as JSON.
    """
    for talk in talks:
        for line in talk.checked_lines() if talk.author else ():
            forms = (line.text, json.dumps(line.text)[1:-1], json.dumps(line.text, ensure_ascii=False)[1:-1])
            rows = (
                call["call"]
                for call in calls
                if call["role"] == talk.author and any(form in call["reply"] for form in forms)
            )
            if (row := next(rows, None)) is not None:
                yield row, line.where


def _match_lines(calls: Sequence[Call], lines: Sequence[_SpokenLine], recipe: WithGate) -> dict[int, _SpokenLine]:
    """Return the line that each call produced, by the call's row."""
    found: dict[int, _SpokenLine] = {}
    for line, earlier in lines:
        for call in calls:
            if (
                call["call"] not in found
                and call["role"] == line.role
                and _is_in_reply(line.text, line.role, call["reply"], recipe)
            ):
                found[call["call"]] = line, earlier
                break
    return found


Mark = Literal["same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class MarkedMessage:
    """A message with its mark: it is in both requests, only in this one, or only in the previous one."""

    mark: Mark
    message: ChatMessage


@dataclass(frozen=True, slots=True)
class RequestDiff:
    """A request compared with the previous one.

    Attributes:
        messages: The messages in order, with removed messages at their former places.
        tools: The names of the tools that the request offers.
        has_previous: Whether there is a previous request; otherwise no message is marked.
    """

    messages: Sequence[MarkedMessage]
    tools: Sequence[str]
    has_previous: bool


def diff_requests(run: RunFile, call: int, previous: int | None = None) -> RequestDiff:
    """Return a call's exact request, compared with that of another call if one is given.

    Args:
        run: The run.
        call: The call's row in the ledger.
        previous: The row of the call with which to compare; `None` to mark nothing.

    Raises:
        RunError: If there is no such call.
    """
    request = run.request(call)
    if request is None:
        raise RunError(f"there is no call {call} in {run.path}")
    earlier = None if previous is None else run.request(previous)
    messages = diff_messages((earlier or request).messages, request.messages)
    return RequestDiff(messages, [get_tool_name(each) for each in request.tools], earlier is not None)


def diff_messages(previous: Sequence[ChatMessage], current: Sequence[ChatMessage]) -> list[MarkedMessage]:
    """Return the messages of two requests, each marked as in both, only in the present or only in the previous one."""
    old, new = ([json.dumps(message_identity(each)) for each in messages] for messages in (previous, current))
    found: list[MarkedMessage] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [MarkedMessage("same", each) for each in current[c:d]]
        else:
            found += [MarkedMessage("gone", each) for each in previous[a:b]]
            found += [MarkedMessage("new", each) for each in current[c:d]]
    return found


_WORD_OR_SPACE = re.compile(r"\s+|[^\s]+")
_MAX_DIFF_WORDS = 4_000
"""The maximum number of words in two compared texts; longer ones are treated as entirely different."""


class TextPiece(NamedTuple):
    """A part of a text, and whether the compared text contains it too."""

    text: str
    is_shared: bool


def diff_words(left: str, right: str) -> tuple[list[TextPiece], list[TextPiece]]:
    """Return both texts split into pieces, each marked by whether the other text contains it too."""
    left_words, right_words = _WORD_OR_SPACE.findall(left), _WORD_OR_SPACE.findall(right)
    if len(left_words) + len(right_words) > _MAX_DIFF_WORDS:
        return [TextPiece(left, left == right)], [TextPiece(right, left == right)]
    pieces: tuple[list[TextPiece], list[TextPiece]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, left_words, right_words, autojunk=False).get_opcodes():
        for side, words in ((pieces[0], left_words[a:b]), (pieces[1], right_words[c:d])):
            if words:
                side.append(TextPiece("".join(words), kind == "equal"))
    return pieces
