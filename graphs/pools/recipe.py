"""The `persona-pool` recipe: one scenario, which is a pool; its outcome's details are the pool's entries."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import WithGate, WithProgress, WithPrompts, WithRoles
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, Embeddings, embedder_here, embedding_model
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node
from dialoom.personas import Mendings, read_pool, shipped_seeds

from . import nodes
from .nodes import PoolState, PoolTexts
from .options import PoolOptions
from .scenario import PoolScenario


class PersonaPool(Recipe, WithRoles, WithPrompts, WithGate, WithProgress):
    """Self-generation of profiles or personalities with a similarity filter (ALOE, section 2.1)."""

    name = "persona-pool"
    summary = "Profiles or personalities written by a model, each unlike all others (ALOE's persona pool)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"writer": 0.8, "embedder": 0.0}
    prompts = ("pools/profiles", "pools/personalities", EMBEDDER_PROMPT)
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {"pool-texts": PoolTexts, REPLY_TYPE: Embeddings}
    options_type = PoolOptions
    scenario_type = PoolScenario

    def roles_used(self, options: PoolOptions) -> Mapping[str, float]:
        """The writer; an embedder only where a model is one."""
        by_model = embedding_model(options.embedder)
        return {role: value for role, value in self.roles.items() if role == "writer" or by_model}

    def models_named(self, options: PoolOptions) -> Mapping[str, str]:
        """The embedder's, where the option `embedder` is `litellm:MODEL`."""
        model = embedding_model(options.embedder)
        return {"embedder": model} if model else {}

    def scenarios(
        self,
        options: PoolOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],
    ) -> Iterator[PoolScenario]:
        """One pool."""
        if embedder := embedder_here(options.embedder):
            note(f"threshold {options.threshold:g}: {embedder.meaning}")
        mendings = Mendings()
        seeds = shipped_seeds(options.kind) if options.seeds is None else read_pool(options.seeds, mendings)
        if summary := mendings.summary():
            note(f"seeds: {summary}")
        yield PoolScenario.of(options, [entry.text for entry in seeds])

    def graph(self, options: PoolOptions) -> Graph:  # noqa: ARG002
        """Seeds, then proposing and selecting in turn."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(PoolState, context_schema=Stage)
        builder.add_node("plant", node(nodes.plant))
        builder.add_node("propose", node(nodes.propose))
        builder.add_node("select", node(nodes.select))

        async def another(state: PoolState) -> str:
            return END if state["ended_by"] else "propose"

        builder.add_edge(START, "plant")
        builder.add_conditional_edges("plant", another, ["propose", END])
        builder.add_edge("propose", "select")
        builder.add_conditional_edges("select", another, ["propose", END])
        return builder

    def initial(self, scenario: PoolScenario) -> dict[str, Any]:  # noqa: ARG002
        """An empty pool."""
        return {"entries": [], "vectors": [], "proposed": [], "rounds": [], "dry": 0, "ended_by": ""}

    def outcome(self, scenario: PoolScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """The pool, and what each round kept."""
        figures = state["rounds"]
        return Outcome(
            messages=(),
            ended_by="error" if failed else state["ended_by"],
            counts={
                "entries": len(state["entries"]),
                "rounds": max(0, len(figures) - 1),
                "too_near": sum(each["too_near"] for each in figures),
                **({"unread_rounds": len(unread)} if (unread := state.get("unread")) else {}),
            },
            details={"kind": scenario.kind, "entries": state["entries"], "rounds": figures},
        )

    def talks(self, scenario: PoolScenario, outcome: Outcome) -> Iterator[Talk]:
        """The texts of the pool; the seeds are somebody's own, and are only what nothing should be a copy of."""
        entries = outcome.details["entries"]
        texts = {f"text {number}": entry["text"] for number, entry in enumerate(entries, start=1)}
        seeds = sum(not entry["round"] for entry in entries)
        if len(texts) > seeds:
            yield Talk.of_texts("writer", texts, self.facts(scenario), since=seeds)

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Rounds of writing; the seeds are none."""
        return {"round": max(0, len(state.get("rounds", [])) - 1)}

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """What each round kept."""
        rows: list[Sequence[Any]] = []
        unread = 0
        for episode in episodes:
            size = 0
            unread += episode.outcome.counts.get("unread_rounds", 0)
            for each in episode.outcome.details["rounds"]:
                size += each["kept"]
                rows.append([episode.facets["kind"], each["round"], each["kept"], each["too_near"], size])
        columns = ["pool", "round", "kept", "too near", "in the pool"]
        notes = (
            [f"Rounds in which the writer's reply could not be read: {unread:,}. They kept nothing."] if unread else []
        )
        title = "What each round kept; round 0 is that of the seeds, which are not filtered"
        return [Table("rounds", title, columns, rows, notes=notes)]
