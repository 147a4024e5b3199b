"""The calls behind the faults that the gate finds, and what was wrong with rejected lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dialoom.graphs import DialogueFault, Line, Outcome
from dialoom.graphs.capabilities import WithGate
from dialoom.graphs.fault import USER
from dialoom.graphs.gate import Said, Talk
from dialoom.roles import ASKS

from .store import RunFile

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallsAtFault:
    """The calls of a scenario as the gate sees them, by their rows in the ledger.

    Attributes:
        faults: What is wrong with what a call said; a call without a fault is not there.
        rejected: The calls whose lines were asked for again, and heard by nobody.
    """

    faults: dict[int, list[DialogueFault]] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A line that was said, and all that was said before it."""

    line: Said
    before: Sequence[Said]


def calls_at_fault(run: RunFile, position: int, calls: Iterable[Call], outcome: Outcome) -> CallsAtFault:
    """Join the faults of a scenario to the calls of the run itself that it made.

    A fault says in which line it stands, and a line is what a call of its speaker's replied; of two that said the
    same, the first call said the first line. Rejected lines are in the ledger alone: they are looked at again, by the
    rules as they are now.

    Args:
        run: The run.
        position: The scenario's.
        calls: Its rows of the ledger, as `RunFile.calls` has them.
        outcome: What came of it; nothing is joined if its faults are unknown.
    """
    found = CallsAtFault()
    if outcome.faults is None:
        return found
    recipe = WithGate.of(run.recipe)
    scenario = run.scenario(run.recipe, position)
    answered = sorted(_own(calls), key=lambda call: (call["step"], call["node"], call["ordinal"], call["ask"]))
    tries = [list(group) for _, group in groupby(answered, lambda call: (call["step"], call["node"], call["ordinal"]))]
    said = _said_by([each[-1] for each in tries], list(_heard(recipe, scenario, outcome)), recipe)
    for fault in outcome.faults:
        for row, heard in said.items():
            if (fault.who, fault.message, fault.where) == (heard.line.role, heard.line.message, heard.line.where):
                found.faults.setdefault(row, []).append(fault)
    for row, place in _written([each[-1] for each in tries], recipe.talks(scenario, outcome)):
        found.faults.setdefault(row, []).extend(fault for fault in outcome.faults if fault.where == place)
    for each in tries:
        taken = said.get(each[-1]["call"])
        before = [Line(role=line.role, content=line.text) for line in taken.before] if taken else outcome.messages
        for call in _rejected(each):
            line = Line(role=USER, content=recipe.spoken(call["reply"]), finish_reason=call["finish_reason"])
            found.rejected.add(call["call"])
            found.faults[call["call"]] = run.gate.faults_of_line(scenario, before, line)
    return found


def _own(calls: Iterable[Call]) -> Iterator[Call]:
    """The answered calls whose replies the outcome is made of, not those of later judges and of other branches."""
    return (call for call in calls if call["judging"] is None and call["branch"] is None and call["reply"] is not None)


def _rejected(tries: Sequence[Call]) -> Iterator[Call]:
    """The last ask of every try but the last one, which was taken."""
    blocks = {(call["ask"] - 1) // ASKS: call for call in tries}
    yield from [blocks[number] for number in sorted(blocks)][:-1]


def _heard(recipe: WithGate, scenario: Any, outcome: Outcome) -> Iterator[_Heard]:
    for talk in recipe.talks(scenario, outcome):
        for place in range(talk.since, len(talk.lines)) if not talk.author else ():
            yield _Heard(talk.lines[place], talk.lines[:place])


def _written(calls: Sequence[Call], talks: Iterable[Talk]) -> Iterator[tuple[int, str]]:
    """Which call wrote what stands in a place of texts that nobody says; one reply may hold many, as JSON."""
    for talk in talks:
        for line in talk.looked_at() if talk.author else ():
            ways = (line.text, json.dumps(line.text)[1:-1], json.dumps(line.text, ensure_ascii=False)[1:-1])
            rows = (
                call["call"]
                for call in calls
                if call["role"] == talk.author and any(way in call["reply"] for way in ways)
            )
            if (row := next(rows, None)) is not None:
                yield row, line.where


def _said_by(calls: Sequence[Call], heard: Sequence[_Heard], recipe: WithGate) -> dict[int, _Heard]:
    """What each call said, by its row."""
    said: dict[int, _Heard] = {}
    for each in heard:
        for call in calls:
            if call["call"] not in said and call["role"] == each.line.role and _says(call["reply"], each.line, recipe):
                said[call["call"]] = each
                break
    return said


def _says(reply: str, line: Said, recipe: WithGate) -> bool:
    """Whether a line is what is said of a reply, which may have had an end marker or a label with it."""
    return line.text in reply or (line.role == USER and line.text == recipe.spoken(reply))
