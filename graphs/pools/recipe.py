"""The `persona-pool` recipe: one scenario, which is a pool; its outcome's details are the pool's entries."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import WithGate, WithProgress
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, EmbeddingRecipe, Embeddings, embedder_here
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.generation import Loop, generation_graph
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import Graph
from dialoom.graphs.reporting.table import Table
from dialoom.personas import Mendings, read_pool, shipped_seeds

from . import nodes
from .nodes import PoolState, PoolTexts
from .scenario import PoolOptions, PoolScenario


class PersonaPool(EmbeddingRecipe, WithGate, WithProgress):
    """Self-generation of profiles or personalities with a similarity filter (ALOE, section 2.1)."""

    name = "persona-pool"
    summary = "Profiles or personalities written by a model, each unlike all others (ALOE's persona pool)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"writer": 0.8, "embedder": 0.0}
    prompts = ("pools/profiles", "pools/personalities", EMBEDDER_PROMPT)
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {"pool-texts": PoolTexts, REPLY_TYPE: Embeddings}
    options_type = PoolOptions
    scenario_type = PoolScenario

    def scenarios(
        self,
        options: PoolOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],
    ) -> Iterator[PoolScenario]:
        """Yield one pool."""
        if embedder := embedder_here(options.embedder):
            note(f"threshold {options.threshold:g}: {embedder.meaning}")
        mendings = Mendings()
        seeds = shipped_seeds(options.kind) if options.seeds is None else read_pool(options.seeds, mendings)
        if summary := mendings.summary():
            note(f"seeds: {summary}")
        yield PoolScenario.of(options, [entry.text for entry in seeds])

    def graph(self, options: PoolOptions) -> Graph:  # noqa: ARG002
        """Return the graph: the seeds, then proposing and selecting in turn."""

        def is_open(state: PoolState) -> bool:
            return not state["ended_by"]

        seeds = Loop(nodes.plant, needed=is_open)
        return generation_graph(PoolState, seeds, Loop(nodes.propose, nodes.select, again=is_open))

    def initial(self, scenario: PoolScenario) -> dict[str, Any]:  # noqa: ARG002
        """Return an empty pool."""
        return {"entries": [], "vectors": [], "proposed": [], "rounds": [], "dry": 0, "ended_by": ""}

    def outcome(self, scenario: PoolScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the pool, and the figures of each round."""
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
        """Yield the pool's texts; the seeds are the user's own and only serve to detect copies of them."""
        entries = outcome.details["entries"]
        texts = {f"text {number}": entry["text"] for number, entry in enumerate(entries, start=1)}
        seeds = sum(not entry["round"] for entry in entries)
        if len(texts) > seeds:
            yield Talk.of_texts("writer", texts, self.facts(scenario), since=seeds)

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of rounds of writing, without that of the seeds."""
        return {"round": max(0, len(state.get("rounds", [])) - 1)}

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the figures of each round."""
        rows: list[Sequence[Any]] = []
        unread = 0
        for episode in episodes:
            size = 0
            unread += episode.outcome.counts.get("unread_rounds", 0)
            for each in episode.outcome.details["rounds"]:
                size += each["kept"]
                rows.append([episode.facets["kind"], each["round"], each["kept"], each["too_near"], size])
        columns = ["pool", "round", "kept", "too near", "in the pool"]
        lost = f"Rounds in which the writer's reply could not be parsed: {unread:,}. They kept nothing."
        title = "What each round kept; round 0 is that of the seeds, which are not filtered"
        return [Table("rounds", title, columns, rows, notes=[lost] if unread else [])]
