"""The folder that PersonaLens reads: a person's files in the layout of its release, and the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.personas import Situation, Task
from dialoom.prompts import PromptLibrary

from .scenario import PersonScenario
from .similar import Twins


@dataclass(frozen=True, slots=True)
class _Person:
    scenario: PersonScenario
    details: Mapping[str, Any]


def made_people(
    episode: Episode,
    scenario: PersonScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[_Person]:
    """The person, if they are complete."""
    if is_complete(episode):
        yield _Person(scenario, episode.outcome.details)


def release_files(people: Iterator[_Person]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The files of all people but twins; before them the schema."""
    twins: Twins | None = None
    for person in people:
        scenario, user = person.scenario, person.scenario.user
        if twins is None:
            twins = Twins(scenario.threshold)
            yield ("res", "schema.json"), [domain.model_dump(mode="json") for domain in scenario.domains.value]
        if twins.twin_of(user, person.details) is None:
            folder = ("data", "profile", user)
            yield (*folder, "profile.json"), _profile(scenario, person.details)
            for name, kind in (("tasks.json", "single"), ("tasks_md.json", "multi")):
                tasks = [task for task in tasks_in(person.details) if task.kind == kind]
                yield (*folder, name), {f"Task {number}": _plain(task) for number, task in enumerate(tasks, start=1)}


def is_complete(episode: Episode) -> bool:
    """Whether everything that belongs to a person is there."""
    return episode.state == "done" and episode.outcome.ended_by == "complete"


def written_texts(details: Mapping[str, Any]) -> dict[str, str]:
    """What models wrote of a person, by where it stands: preferences, summaries, and what tasks say."""
    found: dict[str, str] = {}
    for domain, preferences in details["preferences"].items():
        for name, value in preferences.items():
            found[f"{domain}, {name}"] = value if isinstance(value, str) else ", ".join(value)
        found[f"{domain}, summary"] = details["summaries"][domain]
    for task in details["tasks"]:
        found |= {f"task {task['id']}, {part}": task[part] for part in ("description", "intent", "goal")}
    return found


def tasks_in(details: Mapping[str, Any]) -> list[Task]:
    """The tasks of a person's outcome."""
    return [
        Task(
            id=each["id"],
            description=each["description"],
            intent=each["intent"],
            goal=each["goal"],
            relevant_affinities=tuple(each["preferences"]),
            domains=tuple(each["domains"]),
            situation=Situation.model_validate(each["situation"]),
        )
        for each in details["tasks"]
    ]


def _profile(scenario: PersonScenario, details: Mapping[str, Any]) -> dict[str, Any]:
    """Every domain of the schema stands there; a masked one is empty."""
    names = [domain.domain for domain in scenario.domains.value]
    preferences, summaries = details["preferences"], details["summaries"]
    return {
        "affinities": {name: preferences.get(name, {}) for name in names},
        "demographics": scenario.demographics.model_dump(),
        "interests": {name: int(name in preferences) for name in names},
        "interactions": {name: summaries.get(name, "") for name in names},
    }


def _plain(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json", by_alias=True)


EXPORTERS: Mapping[str, Exporter] = {
    "profiles": Exporter(
        "people and their tasks as personalens reads them, in the layout of its release (a folder)",
        "files",
        made_people,
        arranged=release_files,
    ),
}
