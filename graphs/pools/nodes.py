"""The state and the nodes of a pool: the writer proposes texts, and those unlike everything kept before are kept.

The self-generation of ALOE (section 2.1): few-shot examples from the pool itself, a filter by cosine similarity, and a
stop when rounds keep next to nothing, the joint bottleneck of writer and embedder.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from dialoom.graphs.conversation import joined
from dialoom.graphs.embedding import embedded
from dialoom.graphs.stage import Scene, Update
from dialoom.personas import PoolEntry
from dialoom.personas.similarity import LEXICAL, VectorIndex, packed, unpacked
from dialoom.roles import UnparsedReplyError

from .scenario import PoolScenario


class PoolTexts(BaseModel):
    """What the writer answers."""

    model_config = ConfigDict(frozen=True)
    items: Annotated[list[str], Field(min_length=1)]


class PoolState(TypedDict, total=False):
    """The state that is checkpointed. Both lists only grow at their end, so that a checkpoint stores only new items.

    Attributes:
        entries: The pool, as plain values.
        vectors: The packed embeddings, so that no text is embedded twice; empty where embedding is cheap.
        proposed: The writer's texts of the current round.
        rounds: The figures of each finished round; the first is that of the seeds.
        dry: The number of consecutive rounds that kept too few texts.
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


async def plant(state: PoolState, scene: Scene) -> Update:
    """Start the pool with the seeds; all are kept, however similar, because the user chose them."""
    scenario: PoolScenario = scene.scenario
    update = await _filtered(state, scene, list(scenario.seeds), round_=0)
    count = len(update["entries"])
    scene.tell(f"the pool begins with {count:,} seeds")
    return {**update, "ended_by": "target" if count >= scenario.target else ""}


async def propose(state: PoolState, scene: Scene) -> Update:
    """Have the writer write new texts, with a few of the pool as examples.

    A reply that cannot be parsed counts as a round that keeps nothing; if it exhausts the patience, the scenario fails.
    """
    scenario: PoolScenario = scene.scenario
    round_ = len(state["rounds"])
    draw = scene.draw(f"round {round_}")
    shown = draw.sample(state["entries"], min(scenario.examples, len(state["entries"])))
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


async def select(state: PoolState, scene: Scene) -> Update:
    """Add texts that are unlike everything kept so far to the pool, until it is full."""
    scenario: PoolScenario = scene.scenario
    round_, proposed = len(state["rounds"]), state["proposed"]
    update = await _filtered(state, scene, proposed, round_)
    kept, unseen = len(update["entries"]), update["rounds"][0]["unseen"]
    size = len(state["entries"]) + kept
    dry = 0 if kept >= scenario.least else state["dry"] + 1
    full = f", which is full: {unseen} were not needed" if unseen else ""
    scene.tell(f"round {round_}: {kept} of {len(proposed)} kept, {size:,} in the pool{full}")
    return {
        **update,
        "proposed": [],
        "dry": dry,
        "ended_by": "target" if size >= scenario.target else "bottleneck" if dry >= scenario.patience else "",
    }


PROMPTS = {"profile": "pools/profiles", "personality": "pools/personalities"}


async def _filtered(state: PoolState, scene: Scene, texts: list[str], round_: int) -> Update:
    """Filter texts one after another; duplicates and empty texts count as too near. Seeds (round 0) all pass.

    Returns:
        The new entries, their vectors, and the figures of the round; `unseen` counts texts that were not checked
        because the pool was full.
    """
    scenario: PoolScenario = scene.scenario
    entries = [PoolEntry.model_validate(entry) for entry in state["entries"]]
    before, unseen = len(entries), 0
    known = {entry.text for entry in entries}
    fresh = [text for text in dict.fromkeys(" ".join(text.split()) for text in texts) if text and text not in known]
    vectors = await embedded(fresh, scene, scenario.embedder)
    if any(state["vectors"]):
        old = [unpacked(text) for text in state["vectors"]]
    else:  # embedding them again is cheaper than storing the vectors
        old = await embedded([entry.text for entry in entries], scene, scenario.embedder)
    pool, kept = VectorIndex(old), list[str]()
    for place, (text, vector) in enumerate(zip(fresh, vectors, strict=True)):
        # Seeds are the user's: the target limits written texts only.
        if round_ and len(entries) >= scenario.target:
            unseen = len(fresh) - place
            break
        nearest = pool.nearest(vector)
        if round_ and nearest is not None and nearest[1] > scenario.threshold:
            continue
        neighbour, similarity = (entries[nearest[0]].id, nearest[1]) if nearest else (None, None)
        entries.append(PoolEntry.of(text, round_, neighbour, similarity))
        pool.add(vector)
        kept.append("" if scenario.embedder == LEXICAL else packed(vector))
    figures = {"round": round_, "kept": len(kept), "too_near": len(texts) - len(kept) - unseen, "unseen": unseen}
    return {"entries": [entry.plain() for entry in entries[before:]], "vectors": kept, "rounds": [figures]}
