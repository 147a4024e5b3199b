"""Exports of finished people: the folder that PersonaLens reads, without twins, and the tables of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.generation import Note, NoteTally
from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.pivot import Column, Pivot, count, mean, share, tabulate
from dialoom.graphs.reporting.table import Table
from dialoom.personas import Situation, Task
from dialoom.personas.similarity import LEXICAL, VectorIndex, local_embedder, unpacked

from .scenario import PersonScenario
from .writing import liked

_Person = tuple[PersonScenario, Mapping[str, Any]]


class Twins:
    """A filter of people who are too similar to an earlier one.

    Args:
        threshold: A person with a higher similarity than this to an earlier one is a twin.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._index = VectorIndex()

    def has(self, details: Mapping[str, Any]) -> bool:
        """Return whether a person, given the details of their outcome, is a twin; if not, add them."""
        kept = details["vector"]
        vector = unpacked(kept) if kept else local_embedder(LEXICAL).embed([liked(details["preferences"])])[0]
        nearest = self._index.nearest(vector)
        if nearest is not None and nearest[1] > self._threshold:
            return True
        self._index.add(vector)
        return False


def made_people(episode: Episode, scenario: PersonScenario, *_: Any) -> Iterator[_Person]:
    """Yield the person, if complete."""
    if is_complete(episode):
        yield scenario, episode.outcome.details


def release_files(people: Iterator[_Person]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the schema, and then the files of all people except twins."""
    twins: Twins | None = None
    for scenario, details in people:
        if twins is None:
            twins = Twins(scenario.threshold)
            yield ("res", "schema.json"), [domain.model_dump(mode="json") for domain in scenario.domains.value]
        if not twins.has(details):
            folder = ("data", "profile", scenario.user)
            yield (*folder, "profile.json"), _profile(scenario, details)
            for name, kind in (("tasks.json", "single"), ("tasks_md.json", "multi")):
                tasks = [task.model_dump(mode="json", by_alias=True) for task in tasks_in(details) if task.kind == kind]
                yield (*folder, name), {f"Task {number}": task for number, task in enumerate(tasks, start=1)}


def is_complete(episode: Episode) -> bool:
    """Return whether a person's data is complete."""
    return episode.state == "done" and episode.outcome.ended_by == "complete"


def written_texts(details: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that models wrote about a person, by location: preferences, summaries, and tasks."""
    found: dict[str, str] = {}
    for domain, preferences in details["preferences"].items():
        for name, value in preferences.items():
            found[f"{domain}, {name}"] = value if isinstance(value, str) else ", ".join(value)
        found[f"{domain}, summary"] = details["summaries"][domain]
    for task in details["tasks"]:
        found |= {f"task {task['id']}, {part}": task[part] for part in ("description", "intent", "goal")}
    return found


def tasks_in(details: Mapping[str, Any]) -> list[Task]:
    """Return the tasks of a person's outcome."""
    return [
        Task(
            **{key: each[key] for key in ("id", "description", "intent", "goal")},
            relevant_affinities=tuple(each["preferences"]),
            domains=tuple(each["domains"]),
            situation=Situation.model_validate(each["situation"]),
        )
        for each in details["tasks"]
    ]


def _profile(scenario: PersonScenario, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile with every domain of the schema; a masked one is empty."""
    names = [domain.domain for domain in scenario.domains.value]
    preferences, summaries = details["preferences"], details["summaries"]
    return {
        "affinities": {name: preferences.get(name, {}) for name in names},
        "demographics": scenario.demographics.model_dump(),
        "interests": {name: int(name in preferences) for name in names},
        "interactions": {name: summaries.get(name, "") for name in names},
    }


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return the table of people, and the results of each check."""
    tally = NoteTally()
    task_notes: dict[tuple[Any, ...], Note] = {}

    def counted() -> Iterator[Episode]:
        twins: Twins | None = None
        for episode in episodes:
            if episode.state != "done":
                continue
            details = episode.outcome.details
            tally.add(details["notes"])
            task_notes.update((tuple(note.values()), note) for note in details["task_notes"])
            twins = twins or Twins(details["threshold"])
            kept = "incomplete" if not is_complete(episode) else "twin" if twins.has(details) else "kept"
            yield replace(episode, facets={"kept": kept})

    made = tabulate([_PEOPLE], counted())
    tally.add(task_notes.values())
    return [*made, *tally.tables()]


def _kept(episode: Episode) -> bool:
    return bool(episode.facets["kept"] == "kept")


def _tasks(title: str, is_single: bool) -> Column:
    def found(episode: Episode) -> list[Any]:
        tasks = episode.outcome.details["tasks"] if _kept(episode) else ()
        return [True for task in tasks if (len(task["domains"]) == 1) == is_single]

    return Column(title, found, "count")


def _is_contradicted(episode: Episode) -> bool | None:
    """Return whether a person's first preferences contradict each other; `None` without a judge's verdict."""
    first = [note for note in episode.outcome.details["notes"] if note["round"] == 1 and note["kind"] == "preferences"]
    found = {note["result"] for note in first if note["check"] in ("consistency", "")}
    return None if not found or "unparsed" in found else bool(found & {"rejected", "dropped"})


_PEOPLE = Pivot(
    "people",
    "People, and what belongs to them",
    columns=[
        count("people"),
        count("incomplete", lambda episode: episode.facets["kept"] == "incomplete"),
        count("twins", lambda episode: episode.facets["kept"] == "twin"),
        count("left", _kept),
        mean("domains each", lambda each: each.outcome.counts["domains"] if _kept(each) else None, interval=False),
        _tasks("single-domain", is_single=True),
        _tasks("multi-domain", is_single=False),
        share("contradicted %", _is_contradicted),
    ],
    only_scored=False,
    notes=[
        "Incomplete: nothing of theirs is whole, or no task is theirs. Twins: too similar to somebody before. "
        "Single-domain, multi-domain: tasks of people, each of which makes a dialogue. Contradicted: the share of "
        "people whose preferences, as first written, are ruled out by their demographics or each other."
    ],
)

EXPORTERS: Mapping[str, Exporter] = {
    "profiles": Exporter(
        "people and their tasks as personalens reads them, in the layout of its release (a folder)",
        "files",
        made_people,
        arranged=release_files,
    ),
}
