"""The state of a person in the making, and what all stages do alike: make, check, make again what is wrong.

Each stage is one or two nodes that are gone through until nothing is wrong, at most `repairs` times again. What is made
again is shown as it was, with what is wrong. What is wrong in the end is left out, so that nothing half-made stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypedDict

from dialoom.graphs.conversation import joined
from dialoom.graphs.stage import Update

from .scenario import PersonScenario

Check = Literal["interests", "form", "consistency", "summary", "tasks", "situation"]
Result = Literal["wrong", "unread", "left out"]
Note = dict[str, Any]
"""Something that a check has found: `check`, `where`, `result`, `why`, and in which `round`, from 1."""


class Defect(TypedDict):
    """What is wrong with a piece: the check that says so, why, and what was written."""

    check: Check
    why: str
    written: str


Wrong = dict[str, Defect]
"""What is wrong of the stage under way, by its place."""


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {**left, **right}


class PersonState(TypedDict, total=False):
    """What is checkpointed.

    Attributes:
        interests: The domains that are the person's.
        preferences: By domain and name.
        summaries: By domain.
        tasks: Drafts by domain, those over several domains under `ACROSS`; the same for all people.
        situations: By task id.
        vector: What tells how similar the person is to others, packed; empty where it costs nothing.
        round: How often the stage under way has been gone through.
        wrong: What is wrong of it, and will be made again.
        notes: What checks have found of this person.
        task_notes: What they have found of the tasks, which are everybody's.
        looked: How many things a check has looked at.
        written: How many tasks were written at first, by domain.
    """

    interests: list[str]
    preferences: dict[str, dict[str, Any]]
    summaries: dict[str, str]
    tasks: dict[str, list[dict[str, Any]]]
    situations: dict[str, dict[str, str]]
    vector: str
    round: int
    wrong: Wrong
    notes: Annotated[list[Note], joined]
    task_notes: Annotated[list[Note], joined]
    looked: Annotated[dict[str, int], _merged]
    written: dict[str, int]


def noted(check: Check, where: str, round_: int, result: Result, why: str = "") -> Note:
    """A note."""
    return {"check": check, "where": where, "round": round_, "result": result, "why": why}


def lost(check: Check, where: str, round_: int) -> list[Note]:
    """The notes of a piece whose writer's reply could not be read."""
    return [noted(check, where, round_, "unread"), noted(check, where, round_, "left out", "unread")]


def settled(scenario: PersonScenario, round_: int, wrong: Wrong, notes: Iterable[Note] = ()) -> Update:
    """What a stage's round comes to: another one, or what is wrong is left out.

    Args:
        scenario: Says how often something is made again.
        round_: Which round it was, from 1.
        wrong: What is wrong.
        notes: What else is to be said.
    """
    said = [noted(each["check"], where, round_, "wrong", each["why"]) for where, each in wrong.items()]
    if round_ <= scenario.repairs and wrong:
        return {"round": round_, "wrong": wrong, "notes": [*notes, *said]}
    out = [noted(each["check"], where, round_, "left out", each["why"]) for where, each in wrong.items()]
    return {"round": 0, "wrong": {}, "notes": [*notes, *said, *out]}


def shown_again(wrong: Wrong, where: str) -> dict[str, str]:
    """What a prompt is told of an earlier try: as it was, and what is wrong; empty at the first."""
    before = wrong.get(where)
    return {"written": before["written"] if before else "", "wrong": before["why"] if before else ""}


def listed(values: Mapping[str, Any]) -> dict[str, str]:
    """Preferences as prompts show them; several values are joined by semicolons."""
    return {name: value if isinstance(value, str) else "; ".join(value) for name, value in values.items()}


def lines(values: Mapping[str, Any]) -> str:
    """The same, a line each."""
    return "\n".join(f"{name}: {text}" for name, text in listed(values).items())
