"""Simulated users made from rows: a dialogue recipe whose people, tasks, judges and checks are given as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from random import Random
from typing import Any, ClassVar

from pydantic import Field

from .check import Check
from .dialogue import DialogueRecipe, Turns
from .gate.talk import Facts
from .judge import Judge
from .recipe import RecipeError, RecipeOptions
from .reporting.table import Facet
from .scenario import Scenario

END_MARKER = "DONE"
"""The word by which the user of the shipped prompt ends a conversation."""


class SimulatedTalk(Scenario):
    """One person with one task.

    Attributes:
        person: The fields of the person's row.
        task: The fields of the task's row; empty if people have no tasks.
    """

    person: dict[str, Any]
    task: dict[str, Any]

    def facets(self) -> dict[str, Any]:
        """Return the person's name, and the fields of both rows that are text or numbers.

        A person is named by the field `id` or `name`, or else by a hash of the row. A field of the task that the person
        also has is renamed to `task_FIELD`.
        """
        task = {f"task_{name}" if name in self.person else name: value for name, value in self.task.items()}
        both = {**self.person, **task}
        row = json.dumps(self.person, sort_keys=True, ensure_ascii=False)
        key = next((name for name in ("id", "name") if self.person.get(name)), None)
        person = str(both.pop(key)) if key else hashlib.sha256(row.encode()).hexdigest()[:8]
        return {"person": person} | {
            name: value for name, value in both.items() if isinstance(value, str | int | float)
        }


class SimulationOptions(RecipeOptions):
    """A simulation's identity: resuming one with other rows, prompts or judges is refused.

    Attributes:
        content: A hash of everything that the recipe was made from.
    """

    content: str = Field("", description="Hash of the rows, prompts, judges and checks.")


class Simulation(DialogueRecipe):
    """Conversations of simulated users with an assistant."""

    name = "simulation"
    prompts: ClassVar[Mapping[str, str]] = {}
    options_type = SimulationOptions
    scenario_type = SimulatedTalk
    facets = (Facet("person", splits=True),)
    talks_planned: ClassVar[tuple[SimulatedTalk, ...]] = ()

    def scenarios(
        self,
        options: SimulationOptions,  # noqa: ARG002
        draw: Random,  # noqa: ARG002
        note: Callable[[str], None],  # noqa: ARG002
    ) -> Iterator[SimulatedTalk]:
        """Yield the conversations in the order of the rows: all tasks of the first person, then those of the next."""
        yield from self.talks_planned

    def facts(self, scenario: SimulatedTalk) -> Facts:
        """Return the facts for the gate's rules: the task and the end marker."""
        task = " ".join(str(value) for value in scenario.task.values())
        return Facts(
            languages=self.languages, task=task, end_marker=self.turns.end_marker or None, user_ends="end_marker"
        )

    @property
    def content(self) -> str:
        """A hash of everything that the recipe was made from: the first 16 hex digits of SHA-256."""
        plain = [
            [talk.id for talk in self.talks_planned],
            dict(self.prompts),
            [self.turns.order, self.turns.max_turns, self.turns.end_marker],
            [[judge.metric, judge.target, str(judge.rubric), judge.prompt, judge.scale] for judge in self.judges],
            [[check.metric, check.target] for check in self.checks],
        ]
        return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()[:16]


def simulation(
    people: Any,
    tasks: Any = None,
    *,
    judges: Sequence[Judge] = (),
    checks: Sequence[Check | Callable[..., Any]] = (),
    brief: str | None = None,
    system: str = "",
    max_turns: int = 10,
    end_marker: str = END_MARKER,
) -> Simulation:
    """Return a recipe of simulated users.

    Args:
        people: Rows: mappings, texts (taken as `description`), or a data frame. Every field reaches the user's prompt.
        tasks: Rows in the same forms (a text is taken as `goal`); each person gets each task. Without tasks, each
            person has one conversation.
        judges: The judges; their rubrics may name `person` and `task`, e.g. `{{ task.goal }}`.
        checks: Checks, or functions of a `Conversation`, whose metric is the function's name.
        brief: The system prompt of the simulated user, a template over `person` and `task`; by default a shipped one.
        system: The system prompt of the assistant; by default none.
        max_turns: The most turns; a turn is one message of each side.
        end_marker: The word by which the user ends the conversation; a brief of your own must mention it.

    Raises:
        RecipeError: If there are no rows, or a row is neither a mapping nor a text.
    """
    persons = _rows(people, "people", "description")
    if not persons:
        raise RecipeError("people must hold at least one row, got none", setting="people")
    errands = _rows(tasks, "tasks", "goal") if tasks is not None else [{}]
    attributes: dict[str, Any] = {
        "__doc__": Simulation.__doc__,
        "__module__": __name__,
        "prompts": {"user": _brief() if brief is None else brief, "assistant": system},
        "turns": Turns(("user", "assistant"), max_turns, end_marker),
        "judges": tuple(judges),
        "checks": tuple(_check(each, number) for number, each in enumerate(checks, start=1)),
        "talks_planned": tuple(SimulatedTalk(person=person, task=task) for person in persons for task in errands),
    }
    made: Simulation = type("Simulation", (Simulation,), attributes)()
    return made


def _rows(given: Any, setting: str, key: str) -> list[dict[str, Any]]:
    """Return rows as dicts of plain values."""
    if hasattr(given, "to_dict") and not isinstance(given, Mapping):
        given = given.to_dict("records")
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise RecipeError(f"{setting} must be a list of rows, got {type(given).__name__}", setting=setting)
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(given, start=1):
        if isinstance(row, str):
            rows.append({key: row})
        elif isinstance(row, Mapping):
            rows.append({str(name): value for name, value in row.items()})
        else:
            raise RecipeError(
                f"{setting}: row {number} must be a mapping or a text, got {type(row).__name__}", setting=setting
            )
    places: dict[str, int] = {}
    for number, each in enumerate(rows, start=1):
        text = json.dumps(each, sort_keys=True, default=str)
        if (first := places.setdefault(text, number)) != number:
            raise RecipeError(f"{setting}: rows {first} and {number} are the same", setting=setting)
    return rows


def _check(given: Check | Callable[..., Any], number: int) -> Check:
    if isinstance(given, Check):
        return given
    name = getattr(given, "__name__", "")
    return Check(name if name.isidentifier() else f"check-{number}", given)


@cache
def _brief() -> str:
    return (resources.files("dialoom.prompts") / "dialogue" / "user.txt").read_text(encoding="utf-8")
