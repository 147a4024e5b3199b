"""The state and the nodes of a pool: the writer proposes texts, and those unlike everything kept before are kept.

The self-generation of ALOE (section 2.1): few-shot examples from the pool itself, a filter by cosine similarity, and a
stop when rounds keep next to nothing, which is the bottleneck of writer and embedder together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from dialoom.graphs.conversation import joined
from dialoom.graphs.embedding import embedded
from dialoom.graphs.stage import Scene, Update
from dialoom.personas import PoolEntry
from dialoom.personas.similarity import Vector, VectorIndex, packed, unpacked
from dialoom.roles import UnparsedReplyError

from .scenario import PoolScenario


class PoolTexts(BaseModel):
    """What the writer answers."""

    model_config = ConfigDict(frozen=True)
    items: Annotated[list[str], Field(min_length=1)]


class PoolState(TypedDict, total=False):
    """What is checkpointed. Both lists only ever grow at their end, so that a checkpoint stores what is new.

    Attributes:
        entries: The pool, as plain values.
        vectors: Their embeddings, packed, so that nothing is embedded twice; empty texts where that costs nothing.
        proposed: What the writer wrote in the round under way.
        rounds: What each finished round kept and left out; the first one is that of the seeds.
        dry: How many rounds in a row kept too few.
        ended_by: `target` or `bottleneck`; empty while another round follows.
        unread: Rounds in which the writer's reply could not be read.
    """

    entries: Annotated[list[dict[str, Any]], joined]
    vectors: Annotated[list[str], joined]
    proposed: list[str]
    rounds: Annotated[list[dict[str, int]], joined]
    dry: int
    ended_by: str
    unread: Annotated[list[int], joined]


async def plant(state: PoolState, scene: Scene) -> Update:
    """The seeds are the base: all of them are kept, however near to each other, as somebody chose them."""
    scenario: PoolScenario = scene.scenario
    filtered = await _filtered(state, scene, list(scenario.seeds), round_=0)
    scene.tell(f"the pool begins with {len(filtered.entries):,} seeds")
    over = "target" if len(filtered.entries) >= scenario.target else ""
    return {**filtered.update(0, len(scenario.seeds)), "ended_by": over}


async def propose(state: PoolState, scene: Scene) -> Update:
    """The writer sees a few texts of the pool and writes new ones.

    A reply that cannot be read costs a round, which keeps nothing; the last one that the patience allows is a failure.
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
        scene.tell(f"round {round_}: the writer's reply could not be read")
        return {"proposed": [], "unread": [round_]}
    return {"proposed": reply.items}


async def select(state: PoolState, scene: Scene) -> Update:
    """What is unlike everything kept so far joins the pool, until it is full."""
    scenario: PoolScenario = scene.scenario
    round_, proposed = len(state["rounds"]), state["proposed"]
    filtered = await _filtered(state, scene, proposed, round_)
    kept = len(filtered.entries)
    size = len(state["entries"]) + kept
    dry = 0 if kept >= scenario.least else state["dry"] + 1
    full = f", which is full: {filtered.unseen} were not needed" if filtered.unseen else ""
    scene.tell(f"round {round_}: {kept} of {len(proposed)} kept, {size:,} in the pool{full}")
    return {
        **filtered.update(round_, len(proposed)),
        "proposed": [],
        "dry": dry,
        "ended_by": "target" if size >= scenario.target else "bottleneck" if dry >= scenario.patience else "",
    }


PROMPTS = {"profile": "pools/profiles", "personality": "pools/personalities"}


@dataclass(slots=True)
class _Filtered:
    """What came of some texts.

    Attributes:
        entries: The new ones of the pool.
        vectors: Theirs, packed.
        unseen: How many were not looked at because the pool was full.
    """

    entries: list[PoolEntry] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    unseen: int = 0

    def update(self, round_: int, proposed: int) -> Update:
        """The state's."""
        kept = len(self.entries)
        figures = {"round": round_, "kept": kept, "too_near": proposed - kept - self.unseen, "unseen": self.unseen}
        return {
            "entries": [entry.plain() for entry in self.entries],
            "vectors": self.vectors,
            "rounds": [figures],
        }


async def _filtered(state: PoolState, scene: Scene, texts: list[str], round_: int) -> _Filtered:
    """The texts through the filter, one after another; twins and empty ones count as too near. Seeds (round 0) pass."""
    scenario: PoolScenario = scene.scenario
    entries = [PoolEntry.model_validate(entry) for entry in state["entries"]]
    known = {entry.text for entry in entries}
    fresh = [text for text in dict.fromkeys(" ".join(text.split()) for text in texts) if text and text not in known]
    vectors = await embedded(fresh, scene, scenario.embedder)
    pool = VectorIndex(await _unpack_kept(state["entries"], state["vectors"], scene))
    filtered = _Filtered()
    for place, (text, vector) in enumerate(zip(fresh, vectors, strict=True)):
        # Seeds are the user's: the target cuts off what was written, not what was given.
        if round_ and len(entries) >= scenario.target:
            filtered.unseen = len(fresh) - place
            break
        nearest = pool.nearest(vector)
        if round_ and nearest is not None and nearest[1] > scenario.threshold:
            continue
        neighbour, similarity = (entries[nearest[0]].id, nearest[1]) if nearest else (None, None)
        entries.append(PoolEntry.of(text, round_, neighbour, similarity))
        pool.add(vector)
        filtered.entries.append(entries[-1])
        filtered.vectors.append(_pack_kept(vector, scenario))
    return filtered


def _pack_kept(vector: Vector, scenario: PoolScenario) -> str:
    """What the state keeps of a kept text's vector: nothing where making it again is cheaper than keeping it."""
    return "" if scenario.embedder == "lexical" else packed(vector)


async def _unpack_kept(entries: Sequence[dict[str, Any]], vectors: Sequence[str], scene: Scene) -> list[Vector]:
    """The vectors of the kept texts."""
    if any(vectors):
        return [unpacked(text) for text in vectors]
    scenario: PoolScenario = scene.scenario
    return await embedded([entry["text"] for entry in entries], scene, scenario.embedder)
