"""Persona pools: texts written by a model, each kept only if it differs from earlier ones (see `docs/personas.md`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import Field

from dialoom.inputs import Frozen
from dialoom.personas import (
    DEFAULT_THRESHOLD,
    EMBEDDER_FORMS,
    POOL_KIND_PLURALS,
    PoolEntry,
    PoolKind,
    Repairs,
    load_seeds,
    read_pool,
)
from dialoom.personas.similarity import LEXICAL, VectorIndex, decode_vector, encode_vector
from dialoom.roles import UnparsedReplyError

from . import AbsolutePath, EmbedderName, Episode, Graph, Outcome, RecipeOptions, Scene, Table, Talk, Update, joined
from .embedding import EmbeddingRecipe, EmbeddingScenario, embed_texts, find_local_embedder
from .generation import GenerationRecipe, Loop, generation_graph

PAPER_SIZES = {"profile": 330, "personality": 71}
"""The final sizes of the paper's pools (ALOE, section 2.1)."""


class PoolOptions(RecipeOptions):
    """The options of the recipe `persona-pool`."""

    kind: PoolKind = Field("profile", description="Kind of texts: profile or personality.")
    target: int | None = Field(
        None, ge=1, description="Size of the pool, including the seeds. [default: 330 profiles, 71 personalities]"
    )
    threshold: float = Field(
        DEFAULT_THRESHOLD,
        ge=0.0,
        le=1.0,
        description="Maximum similarity of a new text to any text of the pool, 0 to 1.",
    )
    embedder: EmbedderName = Field("lexical", description=f"Embedder for comparing texts: {EMBEDDER_FORMS}.")
    seeds: AbsolutePath | None = Field(None, description="Pool to start from; by default the shipped seeds.")
    batch: int = Field(20, ge=1, description="Number of texts requested per round.")
    examples: int = Field(5, ge=1, description="Number of the pool's texts shown to the writer per round.")
    stop_after: int = Field(
        5, ge=1, description="Number of consecutive rounds with too few accepted texts after which the run stops."
    )
    least: int = Field(
        1, ge=1, description="Minimum number of accepted texts in a round; a round with fewer has too few."
    )

    @property
    def size(self) -> int:
        """The target size of the pool."""
        return self.target or PAPER_SIZES[self.kind]


class PoolScenario(EmbeddingScenario):
    """A pool, with everything needed to fill it.

    It includes the seeds, so that a run does not read their file again.
    """

    kind: PoolKind
    target: int
    threshold: float
    embedder: str
    batch: int
    examples: int
    patience: int
    least: int
    seeds: tuple[str, ...]

    @classmethod
    def of(cls, options: PoolOptions, seeds: list[str]) -> PoolScenario:
        """Return the scenario of these options and seeds."""
        chosen = options.model_dump(include={"kind", "threshold", "embedder", "batch", "examples", "least"})
        return cls(target=options.size, seeds=tuple(seeds), patience=options.stop_after, **chosen)

    @property
    def label(self) -> str:
        """The kind of texts and the target size."""
        return f"{self.target} {POOL_KIND_PLURALS[self.kind]}"

    def facets(self) -> dict[str, Any]:
        """Return all fields, with the number of seeds instead of their texts."""
        return {**self.model_dump(mode="json", exclude={"seeds"}), "seeds": len(self.seeds)}


class PoolTexts(Frozen):
    """What the writer answers."""

    items: Annotated[list[str], Field(min_length=1)]


class PoolState(TypedDict, total=False):
    """The state that is checkpointed. Its lists only grow at the end, so that a checkpoint stores only new items.

    Attributes:
        entries: The pool, as plain values.
        vectors: The packed embeddings, so that no text is embedded twice; empty if embedding is cheap.
        proposed: The writer's texts of the current round.
        rounds: The figures of each finished round. Round 0 adds the seeds.
        dry: The number of the latest consecutive rounds that kept too few texts.
        ended_by: `target` or `bottleneck`; empty while another round follows.
        unread: Rounds in which the writer's reply could not be parsed.
    """

    entries: Annotated[list[dict[str, Any]], joined]
    vectors: Annotated[list[str], joined]
    proposed: list[str]
    rounds: Annotated[list[dict[str, int]], joined]
    dry: int
    ended_by: str
    unread: Annotated[list[int], joined]


async def plant(state: PoolState, scene: Scene[PoolScenario]) -> Update:
    """Start the pool with the seeds. All seeds are accepted, even similar ones, because the user chose them."""
    update = await _filter_texts(state, scene, list(scene.scenario.seeds), round_=0)
    count = len(update["entries"])
    scene.tell(f"the pool starts with {count:,} seeds")
    return {**update, "ended_by": "target" if count >= scene.scenario.target else ""}


async def propose(state: PoolState, scene: Scene[PoolScenario]) -> Update:
    """Have the writer write new texts, with a few texts of the pool as examples.

    If the reply cannot be parsed, the round adds no texts. If it is the last round that `patience` allows, the scenario
    fails.
    """
    scenario = scene.scenario
    round_ = len(state["rounds"])
    shown = scene.draw(f"round {round_}").sample(state["entries"], min(scenario.examples, len(state["entries"])))
    try:
        reply: PoolTexts = await scene.ask(
            PROMPTS[scenario.kind], count=scenario.batch, examples=[entry["text"] for entry in shown]
        )
    except UnparsedReplyError:
        if state["dry"] + 1 >= scenario.patience:
            raise
        scene.tell(f"round {round_}: the writer's reply could not be parsed")
        return {"proposed": [], "unread": [round_]}
    return {"proposed": reply.items}


async def select(state: PoolState, scene: Scene[PoolScenario]) -> Update:
    """Add the texts that differ from all texts of the pool, until the pool is full."""
    round_, proposed = len(state["rounds"]), state["proposed"]
    update = await _filter_texts(state, scene, proposed, round_)
    added, unseen = len(update["entries"]), update["rounds"][0]["unseen"]
    size = len(state["entries"]) + added
    dry = 0 if added >= scene.scenario.least else state["dry"] + 1
    full = f", which is full: {unseen} were not needed" if unseen else ""
    scene.tell(f"round {round_}: {added} of {len(proposed)} kept, {size:,} in the pool{full}")
    return {
        **update,
        "proposed": [],
        "dry": dry,
        "ended_by": "target"
        if size >= scene.scenario.target
        else "bottleneck"
        if dry >= scene.scenario.patience
        else "",
    }


PROMPTS = {"profile": "pools/profiles", "personality": "pools/personalities"}


async def _filter_texts(state: PoolState, scene: Scene[PoolScenario], texts: list[str], round_: int) -> Update:
    """Filter texts one after another. Duplicates and empty texts count as too similar. All seeds (round 0) pass.

    Returns:
        The new entries, their vectors, and the figures of the round; `unseen` counts texts that were not checked
        because the pool was full.
    """
    scenario = scene.scenario
    entries = [PoolEntry.model_validate(entry) for entry in state["entries"]]
    before, unseen = len(entries), 0
    known = {entry.text for entry in entries}
    fresh = [text for text in dict.fromkeys(" ".join(text.split()) for text in texts) if text and text not in known]
    vectors = await embed_texts(fresh, scene, scenario.embedder)
    if any(state["vectors"]):
        old = [decode_vector(text) for text in state["vectors"]]
    else:  # embedding the texts again is cheaper than storing the vectors
        old = await embed_texts([entry.text for entry in entries], scene, scenario.embedder)
    pool, stored = VectorIndex(old), list[str]()
    for place, (text, vector) in enumerate(zip(fresh, vectors, strict=True)):
        # The target does not limit the number of seeds, because the user chose them.
        if round_ and len(entries) >= scenario.target:
            unseen = len(fresh) - place
            break
        nearest = pool.nearest(vector)
        if round_ and nearest is not None and nearest[1] > scenario.threshold:
            continue
        neighbour, similarity = (entries[nearest[0]].id, nearest[1]) if nearest else (None, None)
        entries.append(PoolEntry.of(text, round_, neighbour, similarity))
        pool.add(vector)
        stored.append("" if scenario.embedder == LEXICAL else encode_vector(vector))
    figures = {"round": round_, "kept": len(stored), "too_near": len(texts) - len(stored) - unseen, "unseen": unseen}
    return {"entries": [entry.plain() for entry in entries[before:]], "vectors": stored, "rounds": [figures]}


class PersonaPool(GenerationRecipe, EmbeddingRecipe):
    """Profiles or personalities written by a model, each different from all others (ALOE's persona pool)."""

    name = "persona-pool"
    roles = {"writer": 0.8, "embedder": 0.0}
    prompts = ("pools/profiles", "pools/personalities")
    reply_types = {"pool-texts": PoolTexts}
    options_type = PoolOptions
    scenario_type = PoolScenario

    def scenarios(
        self, options: PoolOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PoolScenario]:
        """Yield one pool."""
        if embedder := find_local_embedder(options.embedder):
            note(f"threshold {options.threshold:g}: {embedder.meaning}")
        repairs = Repairs()
        seeds = load_seeds(options.kind) if options.seeds is None else read_pool(options.seeds, repairs)
        if summary := repairs.summary():
            note(f"seeds: {summary}")
        yield PoolScenario.of(options, [entry.text for entry in seeds])

    def graph(self, options: PoolOptions) -> Graph:
        """Return the graph: it adds the seeds, then proposes and selects texts in turn."""

        def is_open(state: PoolState) -> bool:
            return not state["ended_by"]

        return generation_graph(PoolState, Loop(plant, needed=is_open), Loop(propose, select, again=is_open))

    def initial(self, scenario: PoolScenario) -> dict[str, Any]:
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
        """Yield the pool's texts. The seeds, which the user chose, are not checked, but copies of them are detected."""
        entries = outcome.details["entries"]
        texts = {f"text {number}": entry["text"] for number, entry in enumerate(entries, start=1)}
        seeds = sum(not entry["round"] for entry in entries)
        if len(texts) > seeds:
            yield Talk.of_texts("writer", texts, self.facts(scenario), since=seeds)

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of writing rounds. Round 0, which adds the seeds, does not count."""
        return {"round": max(0, len(state.get("rounds", [])) - 1)}

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return a table of the figures of each round."""
        rows: list[Sequence[Any]] = []
        unread = 0
        for episode in episodes:
            size = 0
            unread += episode.outcome.counts.get("unread_rounds", 0)
            for each in episode.outcome.details["rounds"]:
                size += each["kept"]
                rows.append([episode.facets["kind"], each["round"], each["kept"], each["too_near"], size])
        columns = ["pool", "round", "kept", "too similar", "in the pool"]
        lost = f"Rounds in which the writer's reply could not be parsed: {unread:,}. They added no texts."
        title = "Texts kept by round; round 0 adds the seeds, which are not filtered"
        return [Table("rounds", title, columns, rows, notes=[lost] if unread else [])]


RECIPE = PersonaPool()
