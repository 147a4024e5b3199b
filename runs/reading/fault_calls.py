"""The calls behind the faults that the gate finds, and the faults of rejected lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from dialoom.graphs import DialogueFault, Line, Outcome
from dialoom.graphs.capabilities import WithGate
from dialoom.graphs.gate import Said, Talk
from dialoom.graphs.outcome import USER
from dialoom.roles import ASKS
from dialoom.runs.store import RunFile

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallsAtFault:
    """The faulty calls of a scenario according to the gate, by their rows in the ledger.

    Attributes:
        faults: The faults of each call's reply; calls without a fault are left out.
        rejected: The calls whose lines were requested again, and not seen by the other side.
    """

    faults: dict[int, list[DialogueFault]] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A line, and all lines before it."""

    line: Said
    before: Sequence[Said]


def calls_at_fault(run: RunFile, position: int, calls: Iterable[Call], outcome: Outcome) -> CallsAtFault:
    """Match the faults of a scenario to the run's own calls that it made.

    A fault names its line, and a line is the reply of a call of its speaker; of two equal lines, the first call said
    the first. Rejected lines are in the ledger only: they are checked again, by the current rules.

    Args:
        run: The run.
        position: The scenario's position.
        calls: Its rows of the ledger, as from `RunFile.calls`.
        outcome: Its outcome; nothing is matched if its faults are unknown.
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
    """Yield the answered calls that the outcome is made of, without those of later judges and other branches."""
    return (call for call in calls if call["judging"] is None and call["branch"] is None and call["reply"] is not None)


def _rejected(tries: Sequence[Call]) -> Iterator[Call]:
    """Yield the last ask of every try except the final one, which was accepted."""
    blocks = {(call["ask"] - 1) // ASKS: call for call in tries}
    yield from [blocks[number] for number in sorted(blocks)][:-1]


def _heard(recipe: WithGate, scenario: Any, outcome: Outcome) -> Iterator[_Heard]:
    for talk in recipe.talks(scenario, outcome):
        for place in range(talk.since, len(talk.lines)) if not talk.author else ():
            yield _Heard(talk.lines[place], talk.lines[:place])


def _written(calls: Sequence[Call], talks: Iterable[Talk]) -> Iterator[tuple[int, str]]:
    """Yield the call that wrote each text that nobody says, with its place; one reply may hold many texts, as JSON."""
    for talk in talks:
        for line in talk.checked_lines() if talk.author else ():
            ways = (line.text, json.dumps(line.text)[1:-1], json.dumps(line.text, ensure_ascii=False)[1:-1])
            rows = (
                call["call"]
                for call in calls
                if call["role"] == talk.author and any(way in call["reply"] for way in ways)
            )
            if (row := next(rows, None)) is not None:
                yield row, line.where


def _said_by(calls: Sequence[Call], heard: Sequence[_Heard], recipe: WithGate) -> dict[int, _Heard]:
    """Return the line that each call said, by the call's row."""
    said: dict[int, _Heard] = {}
    for each in heard:
        for call in calls:
            if call["call"] not in said and call["role"] == each.line.role and _says(call["reply"], each.line, recipe):
                said[call["call"]] = each
                break
    return said


def _says(reply: str, line: Said, recipe: WithGate) -> bool:
    """Return whether a line stems from a reply, which may have had an end marker or a label as well."""
    return line.text in reply or (line.role == USER and line.text == recipe.spoken(reply))
