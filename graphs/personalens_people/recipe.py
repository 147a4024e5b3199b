"""The `personalens-people` recipe: a scenario is a person; its graph makes what belongs to them, and checks it."""

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
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, Embeddings, embedder_here, embedding_model
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import Graph, Recipe, RecipeError
from dialoom.graphs.reporting.outline import Outline, Span
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.shared import Shared
from dialoom.graphs.stage import Stage, node
from dialoom.personas import Demographics
from dialoom.personas.demographics import read_demographics
from dialoom.personas.schema import DomainSchema, read_domains, shipped_schema
from dialoom.personas.similarity import LEXICAL

from . import liking, report, similar, tasking, telling
from .exports import EXPORTERS, tasks_in, written_texts
from .making import PersonState, lines
from .options import PeopleOptions
from .replies import REPLY_TYPES
from .scenario import PersonScenario


class PersonaLensPeople(Recipe, WithRoles, WithPrompts, WithGate, WithOutline, WithProgress, WithExports):
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

    def roles_used(self, options: PeopleOptions) -> Mapping[str, float]:
        """An embedder only where a model is one."""
        wanted = bool(embedding_model(options.embedder))
        return {role: value for role, value in self.roles.items() if wanted or role != "embedder"}

    def models_named(self, options: PeopleOptions) -> Mapping[str, str]:
        """The embedder's, where the option `embedder` is `litellm:MODEL`."""
        model = embedding_model(options.embedder)
        return {"embedder": model} if model else {}

    def scenarios(
        self,
        options: PeopleOptions,
        draw: random.Random,
        note: Callable[[str], None],  # noqa: ARG002
    ) -> Iterator[PersonScenario]:
        """A person each: `user1`, `user2`, ... More people begin with the same ones."""
        embedder_here(options.embedder)
        domains = Shared(_usable(options))
        chosen = options.model_dump(include=_AS_CHOSEN)
        drawn = read_demographics(options.demographics).people(draw)
        for number, demographics in zip(range(1, options.people + 1), drawn, strict=False):
            person = Demographics(user_id=f"user{number}", **demographics)
            yield PersonScenario(demographics=person, domains=domains, **chosen)

    def graph(self, options: PeopleOptions) -> Graph:
        """Interests, preferences, summaries, tasks, situations; most are checked, and gone through again."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(PersonState, context_schema=Stage)
        for work in (liking.choose, liking.prefer, liking.check, telling.summarise, telling.verify, tasking.plan):
            builder.add_node(work.__name__, node(work))
        builder.add_node("situate", node(tasking.situate))

        def again(name: str, following: str, needed: Callable[[PersonState], Any]) -> Callable[..., Any]:
            async def after(state: PersonState) -> str:
                return name if state["wrong"] else following if needed(state) else END

            return after

        for after, name, following, needed in (
            ("choose", "choose", "prefer", lambda state: state["interests"]),
            ("check", "prefer", "summarise", lambda state: state["preferences"]),
            ("verify", "summarise", "plan", telling.domains_of),
            ("plan", "plan", "situate", lambda state: any(tasking.tasks_of(state))),
        ):
            builder.add_conditional_edges(after, again(name, following, needed), [name, following, END])
        builder.add_edge(START, "choose")
        builder.add_edge("prefer", "check")
        builder.add_edge("summarise", "verify")
        last = "situate"
        if options.embedder != LEXICAL:
            builder.add_node("embed", node(similar.embed))
            builder.add_edge("situate", last := "embed")
        builder.add_edge(last, END)
        return builder

    def initial(self, scenario: PersonScenario) -> dict[str, Any]:  # noqa: ARG002
        """Nothing but the demographics, which are the scenario's."""
        texts: dict[str, Any] = {name: {} for name in ("preferences", "summaries", "tasks", "situations", "written")}
        lists: dict[str, Any] = {"interests": [], "notes": [], "task_notes": [], "wrong": {}, "looked": {}}
        return {**texts, **lists, "vector": "", "round": 0}

    def outcome(self, scenario: PersonScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """The person as they are, without what is not whole; and what the checks found."""
        made: Any = {**self.initial(scenario), **state}
        names = telling.domains_of(made)
        situations = made["situations"]
        tasks = [
            {"id": id_, **task, "situation": situations[id_]}
            for id_, task in tasking.tasks_of(made)
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
                **{key: made[key] for key in ("vector", "notes", "task_notes", "looked", "written")},
            },
        )

    def talks(self, scenario: PersonScenario, outcome: Outcome) -> Iterator[Talk]:
        """What was written about the person, text by text."""
        if texts := written_texts(outcome.details):
            yield Talk.of_texts("writer", texts, self.facts(scenario))

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Domains with preferences, and tasks with a situation."""
        return {"domain": len(state.get("preferences", ())), "task": len(state.get("situations", ()))}

    def outline(self, episode: Episode) -> Outline:
        """Who it is, what they like, what went before, and their tasks with the situations."""
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
            for task in tasks_in(details)
        ]
        found = [
            Outline([Span(f"{each['result']} ({each['check']}) {each['where']}: {each['why']}", "note")])
            for each in details["notes"]
        ]
        return Outline([Span(title, "heading")], [*domains, *tasks, *found])

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """How much was made, and what each check found."""
        return report.tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """The folder that PersonaLens reads."""
        return EXPORTERS

    def folder_format(self, options: PeopleOptions) -> str:  # noqa: ARG002
        """The people."""
        return "profiles"


_AS_CHOSEN = {"single_tasks", "multi_tasks", "repairs", "open_values", "threshold", "embedder"}


def _usable(options: PeopleOptions) -> tuple[DomainSchema, ...]:
    """The domains of the schema.

    Raises:
        RecipeError: If nothing can be made after it.
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
