"""Generation of people and tasks, exported as a folder that PersonaLens reads (see `docs/personalens-people.md`).

The recipe's graph writes and checks a person's data; its exports and tables present that data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dialoom.graphs import Episode, Exporter, FileItem, Graph, Outcome, Outline, RecipeError, Shared, Span, Table, Talk
from dialoom.graphs.embedding import EmbeddingRecipe, find_local_embedder
from dialoom.graphs.generation import GenerationRecipe, Loop, Note, NoteTally, generation_graph, unwritten
from dialoom.graphs.tables.pivot import Column, Pivot, count, mean, share, tabulate
from dialoom.personas import Demographics, Situation, Task
from dialoom.personas.profile import DomainSchema, load_sample_schema, read_domains
from dialoom.personas.rows import read_demographics
from dialoom.personas.similarity import LEXICAL, VectorIndex, decode_vector, load_local_embedder

from . import writing
from .scenario import REPLY_TYPES, PeopleOptions, PersonScenario
from .writing import PersonState, join_preferences, join_values

_COPIED_OPTIONS = {"single_tasks", "multi_tasks", "repairs", "open_values", "threshold", "embedder"}


def _load_domains(options: PeopleOptions) -> tuple[DomainSchema, ...]:
    """Return the schema's domains, after checking that the recipe can use them.

    Raises:
        RecipeError: If the schema cannot be used.
    """
    path = options.affinity_schema
    domains = tuple(read_domains(path) if path else load_sample_schema())
    problem = "" if domains else "it contains no domains"
    names: set[str] = set()
    for domain in domains:
        own = [each.name.casefold() for each in domain.affinities]
        empty = [each.name for each in domain.affinities if each.is_categorical and not each.possible_values]
        if domain.domain.casefold() in names:
            problem = f"the domain {domain.domain!r} is listed twice"
        elif not own or len(set(own)) < len(own):
            problem = f"the domain {domain.domain!r} has no preferences, or lists one twice"
        elif empty and not options.open_values:
            problem = f"{empty[0]!r} of {domain.domain!r} is categorical and has no possible values"
        names.add(domain.domain.casefold())
    if problem:
        raise RecipeError(f"affinity_schema: {path}: {problem}", setting="affinity_schema")
    return domains


_Person = tuple[PersonScenario, Mapping[str, Any]]


class TwinFilter:
    """A filter for people who are too similar to an earlier person.

    Args:
        threshold: A person whose similarity to an earlier person is higher than this is a twin.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._index = VectorIndex()

    def has(self, details: Mapping[str, Any]) -> bool:
        """Return whether a person is a twin of an earlier person.

        A person who is not a twin is added to the earlier people.

        Args:
            details: The details of the person's outcome.
        """
        stored = details["vector"]
        vector = (
            decode_vector(stored)
            if stored
            else load_local_embedder(LEXICAL).embed([join_values(details["preferences"])])[0]
        )
        if (nearest := self._index.nearest(vector)) is not None and nearest[1] > self._threshold:
            return True
        self._index.add(vector)
        return False


def complete_people(episode: Episode, scenario: PersonScenario, *_: Any) -> Iterator[_Person]:
    """Yield the person if their data is complete; otherwise nothing."""
    if is_complete(episode):
        yield scenario, episode.outcome.details


def release_files(people: Iterator[_Person]) -> Iterator[FileItem]:
    """Yield the schema, and then the files of all people except twins."""
    twins: TwinFilter | None = None
    for scenario, details in people:
        if twins is None:
            twins = TwinFilter(scenario.threshold)
            yield ("res", "schema.json"), [domain.model_dump(mode="json") for domain in scenario.domains.value]
        if not twins.has(details):
            folder = ("data", "profile", scenario.user)
            yield (*folder, "profile.json"), _build_profile(scenario, details)
            for name, kind in (("tasks.json", "single"), ("tasks_md.json", "multi")):
                tasks = [
                    task.model_dump(mode="json", by_alias=True) for task in parse_tasks(details) if task.kind == kind
                ]
                yield (*folder, name), {f"Task {number}": task for number, task in enumerate(tasks, start=1)}


def is_complete(episode: Episode) -> bool:
    """Return whether a person's data is complete."""
    return episode.state == "done" and episode.outcome.ended_by == "complete"


def collect_texts(details: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that models wrote for a person (preferences, summaries, and tasks), by location."""
    found: dict[str, str] = {}
    for domain, preferences in details["preferences"].items():
        texts = {name: value if isinstance(value, str) else ", ".join(value) for name, value in preferences.items()}
        texts["summary"] = details["summaries"][domain]
        found |= {f"{domain}, {name}": text for name, text in texts.items()}
    for task in details["tasks"]:
        found |= {f"task {task['id']}, {part}": task[part] for part in ("description", "intent", "goal")}
    return found


def parse_tasks(details: Mapping[str, Any]) -> list[Task]:
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


def _build_profile(scenario: PersonScenario, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile with every domain of the schema. Masked domains are empty."""
    names = [domain.domain for domain in scenario.domains.value]
    return {
        "affinities": {name: details["preferences"].get(name, {}) for name in names},
        "demographics": scenario.demographics.model_dump(),
        "interests": {name: int(name in details["preferences"]) for name in names},
        "interactions": {name: details["summaries"].get(name, "") for name in names},
    }


def _is_included(episode: Episode) -> bool:
    return bool(episode.facets["kept"] == "kept")


def _build_task_column(title: str, is_single: bool) -> Column:
    def found(episode: Episode) -> list[Any]:
        tasks = episode.outcome.details["tasks"] if _is_included(episode) else ()
        return [True for task in tasks if (len(task["domains"]) == 1) == is_single]

    return Column(title, found, "count")


def _is_contradicted(episode: Episode) -> bool | None:
    """Return whether a person's first preferences contradicted the demographics or each other.

    `None`: there is no verdict.
    """
    first = [note for note in episode.outcome.details["notes"] if note["round"] == 1 and note["kind"] == "preferences"]
    found = {note["result"] for note in first if note["check"] in ("consistency", "")}
    return None if not found or "unparsed" in found else bool(found & {"rejected", "dropped"})


_PEOPLE = Pivot(
    "people",
    "People and their tasks",
    columns=[
        count("people"),
        count("incomplete", lambda episode: episode.facets["kept"] == "incomplete"),
        count("twins", lambda episode: episode.facets["kept"] == "twin"),
        count("left", _is_included),
        mean(
            "domains per person",
            lambda each: each.outcome.counts["domains"] if _is_included(each) else None,
            interval=False,
        ),
        _build_task_column("single-domain", is_single=True),
        _build_task_column("multi-domain", is_single=False),
        share("contradicted %", _is_contradicted),
    ],
    only_scored=False,
    notes=[
        "Incomplete: people without a complete domain or without a task. Twins: people too similar to an earlier "
        "person. Single-domain, multi-domain: the number of people's tasks; each task of a person gives a dialogue. "
        "Contradicted: the share of people whose first preferences contradicted their demographics or each other."
    ],
)


class PersonaLensPeople(GenerationRecipe, EmbeddingRecipe):
    """New people and tasks for personalens, with demographics, preferences, summaries, tasks and situations."""

    name = "personalens-people"
    roles = {"writer": 0.8, "judge": 0.0, "embedder": 0.0}
    prompts = ("personalens_people/*",)
    reply_types = REPLY_TYPES
    options_type = PeopleOptions
    scenario_type = PersonScenario
    formats = {
        "profiles": Exporter(
            "people and their tasks as personalens reads them, in the layout of its release (a folder)",
            "files",
            complete_people,
            arrange=release_files,
        ),
    }
    folder = "profiles"

    def scenarios(
        self, options: PeopleOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonScenario]:
        """Yield one scenario per person: `user1`, `user2`, ...

        If the number of people is increased, the first people stay the same.
        """
        find_local_embedder(options.embedder)
        domains = Shared(_load_domains(options))
        chosen = options.model_dump(include=_COPIED_OPTIONS)
        drawn = read_demographics(options.demographics).people(draw)
        for number, demographics in zip(range(1, options.people + 1), drawn, strict=False):
            person = Demographics(user_id=f"user{number}", **demographics)
            yield PersonScenario(demographics=person, domains=domains, **chosen)

    def graph(self, options: PeopleOptions) -> Graph:
        """Return a graph of the loops for interests, preferences, summaries and tasks, followed by the situations."""
        return generation_graph(
            PersonState,
            Loop(writing.choose, needed=lambda state: state["interests"]),
            Loop(writing.prefer, writing.check, needed=lambda state: state["preferences"]),
            Loop(writing.summarise, writing.verify, needed=writing.find_complete_domains),
            Loop(writing.plan, needed=lambda state: any(writing.find_possible_tasks(state))),
            Loop(writing.situate),
            *([Loop(writing.embed)] if options.embedder != LEXICAL else []),
        )

    def initial(self, scenario: PersonScenario) -> dict[str, Any]:
        """Return the empty state. The demographics are part of the scenario."""
        empty: dict[str, Any] = {name: {} for name in ("preferences", "summaries", "tasks", "situations")}
        return {**empty, "interests": [], "task_notes": [], "vector": "", **unwritten()}

    def outcome(self, scenario: PersonScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome, with the person's complete domains and their tasks, and the results of the checks."""
        made = {**self.initial(scenario), **state}
        names, situations = writing.find_complete_domains(made), made["situations"]
        tasks = [
            {"id": id_, **task, "situation": situations[id_]}
            for id_, task in writing.find_possible_tasks(made)
            if id_ in situations
        ]
        return Outcome(
            messages=(),
            ended_by="error" if failed else "complete" if tasks else "incomplete",
            counts={"domains": len(names), "tasks": len(tasks)},
            details={
                "preferences": {name: made["preferences"][name] for name in names},
                "summaries": {name: made["summaries"][name] for name in names},
                "tasks": tasks,
                "threshold": scenario.threshold,
                **{key: made[key] for key in ("vector", "notes", "task_notes")},
            },
        )

    def talks(self, scenario: PersonScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield the texts written about the person."""
        if texts := collect_texts(outcome.details):
            yield Talk.of_texts("writer", texts, self.facts(scenario))

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of domains with preferences, and of tasks with a situation."""
        return {"domain": len(state.get("preferences", ())), "task": len(state.get("situations", ()))}

    def outline(self, episode: Episode) -> Outline:
        """Return the person's preferences, summaries, tasks and situations as an outline."""
        details = episode.outcome.details
        title = f"{episode.facets['user']}, domains: {len(details['preferences'])}, tasks: {len(details['tasks'])}"
        domains = [
            Outline(
                [Span(name, "heading")],
                [
                    *(Outline([Span(line, "user")]) for line in join_preferences(values).splitlines()),
                    Outline([Span(details["summaries"][name])]),
                ],
            )
            for name, values in details["preferences"].items()
        ]
        tasks = [
            Outline(
                [Span(f"{task.id}  ", "note"), Span(task.intent, "user")],
                [Outline([Span("; ".join(task.situation.for_prompt().values()), "note")])],
            )
            for task in parse_tasks(details)
        ]
        found = [
            Outline([Span(f"{each['result']} ({each['check']}) {each['id']}: {each['reason']}", "note")])
            for each in details["notes"]
            if each["result"] != "passed"
        ]
        return Outline([Span(title, "heading")], [*domains, *tasks, *found])

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the table of people, and the results of each check."""
        tally = NoteTally()
        task_notes: dict[tuple[Any, ...], Note] = {}

        def counted() -> Iterator[Episode]:
            twins: TwinFilter | None = None
            for episode in (each for each in episodes if each.state == "done"):
                details = episode.outcome.details
                tally.add(details["notes"])
                task_notes.update((tuple(note.values()), note) for note in details["task_notes"])
                twins = twins or TwinFilter(details["threshold"])
                result = "incomplete" if not is_complete(episode) else "twin" if twins.has(details) else "kept"
                yield replace(episode, facets={"kept": result})

        made = tabulate([_PEOPLE], counted())
        tally.add(task_notes.values())
        return [*made, *tally.tables()]


RECIPE = PersonaLensPeople()
