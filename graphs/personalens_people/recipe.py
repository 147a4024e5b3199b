"""The `personalens-people` recipe: a scenario is a person; its graph writes and checks the person's data."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    Exporter,
    WithExports,
    WithGate,
    WithOutline,
    WithProgress,
)
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, EmbeddingRecipe, Embeddings, embedder_here
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.generation import Loop, generation_graph, unwritten
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import Graph, RecipeError
from dialoom.graphs.reporting.table import Outline, Span, Table
from dialoom.graphs.shared import Shared
from dialoom.personas import Demographics
from dialoom.personas.demographics import read_demographics
from dialoom.personas.profile import DomainSchema, read_domains, shipped_schema
from dialoom.personas.similarity import LEXICAL

from . import exports, writing
from .replies import REPLY_TYPES
from .scenario import PeopleOptions, PersonScenario
from .writing import PersonState, lines


class PersonaLensPeople(EmbeddingRecipe, WithGate, WithOutline, WithProgress, WithExports):
    """People with preferences, past interactions and tasks, written and checked by models."""

    name = "personalens-people"
    summary = "New people and tasks for personalens: demographics, preferences, summaries, tasks, situations."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"writer": 0.8, "judge": 0.0, "embedder": 0.0}
    prompts = (
        "personalens_people/interests",
        "personalens_people/preferences",
        "personalens_people/consistency",
        "personalens_people/summary",
        "personalens_people/summary-check",
        "personalens_people/tasks",
        "personalens_people/tasks-across",
        "personalens_people/situation",
        EMBEDDER_PROMPT,
    )
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {**REPLY_TYPES, REPLY_TYPE: Embeddings}
    options_type = PeopleOptions
    scenario_type = PersonScenario

    def scenarios(
        self,
        options: PeopleOptions,
        draw: random.Random,
        note: Callable[[str], None],  # noqa: ARG002
    ) -> Iterator[PersonScenario]:
        """Yield a person each: `user1`, `user2`, ... A larger number of people begins with the same ones."""
        embedder_here(options.embedder)
        domains = Shared(_usable(options))
        chosen = options.model_dump(include=_AS_CHOSEN)
        drawn = read_demographics(options.demographics).people(draw)
        for number, demographics in zip(range(1, options.people + 1), drawn, strict=False):
            person = Demographics(user_id=f"user{number}", **demographics)
            yield PersonScenario(demographics=person, domains=domains, **chosen)

    def graph(self, options: PeopleOptions) -> Graph:
        """Return the loops for interests, preferences, summaries and tasks, and then the situations."""
        return generation_graph(
            PersonState,
            Loop(writing.choose, needed=lambda state: state["interests"]),
            Loop(writing.prefer, writing.check, needed=lambda state: state["preferences"]),
            Loop(writing.summarise, writing.verify, needed=writing.domains_of),
            Loop(writing.plan, needed=lambda state: any(writing.tasks_of(state))),
            Loop(writing.situate),
            *([Loop(writing.embed)] if options.embedder != LEXICAL else []),
        )

    def initial(self, scenario: PersonScenario) -> dict[str, Any]:  # noqa: ARG002
        """Return the empty state; the demographics belong to the scenario."""
        empty: dict[str, Any] = {name: {} for name in ("preferences", "summaries", "tasks", "situations")}
        return {**empty, "interests": [], "task_notes": [], "vector": "", **unwritten()}

    def outcome(self, scenario: PersonScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the person's complete domains and tasks, and the results of the checks."""
        made = {**self.initial(scenario), **state}
        names, situations = writing.domains_of(made), made["situations"]
        tasks = [
            {"id": id_, **task, "situation": situations[id_]}
            for id_, task in writing.tasks_of(made)
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
        if texts := exports.written_texts(outcome.details):
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
                    *(Outline([Span(line, "user")]) for line in lines(values).splitlines()),
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
            for task in exports.tasks_in(details)
        ]
        found = [
            Outline([Span(f"{each['result']} ({each['check']}) {each['id']}: {each['reason']}", "note")])
            for each in details["notes"]
            if each["result"] != "passed"
        ]
        return Outline([Span(title, "heading")], [*domains, *tasks, *found])

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the table of people, and the results of each check."""
        return exports.tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """Return the format of the folder that PersonaLens reads."""
        return exports.EXPORTERS

    def folder_format(self, options: PeopleOptions) -> str:  # noqa: ARG002
        """Return the format of the people."""
        return "profiles"


_AS_CHOSEN = {"single_tasks", "multi_tasks", "repairs", "open_values", "threshold", "embedder"}


def _usable(options: PeopleOptions) -> tuple[DomainSchema, ...]:
    """Return the domains of the schema.

    Raises:
        RecipeError: If the schema cannot be used.
    """
    path = options.affinity_schema
    domains = tuple(read_domains(path) if path else shipped_schema())
    problem = "" if domains else "there is no domain"
    names: set[str] = set()
    for domain in domains:
        own = [each.name.casefold() for each in domain.affinities]
        empty = [each.name for each in domain.affinities if each.is_categorical and not each.possible_values]
        if domain.domain.casefold() in names:
            problem = f"the domain {domain.domain!r} stands there twice"
        elif not own or len(set(own)) < len(own):
            problem = f"{domain.domain!r} has no preference, or one twice"
        elif empty and not options.open_values:
            problem = f"{empty[0]!r} of {domain.domain!r} is categorical and has no possible values"
        names.add(domain.domain.casefold())
    if problem:
        raise RecipeError(f"affinity_schema: {path}: {problem}", setting="affinity_schema")
    return domains
