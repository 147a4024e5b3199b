"""The choice of pairs: the highest violation rates first, without those that are too near to one that is chosen."""

from __future__ import annotations

from dialoom.graphs.embedding import embedded
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.preferences import Draft
from dialoom.personas.similarity import VectorIndex

from .filters import LEVELS
from .scenario import PairsScenario
from .stages import Found, PairsState, still_in


async def select(state: PairsState, scene: Scene) -> Update:
    """What was chosen by hand stays and counts; the others fill up, in the order of `_rank`."""
    scenario: PairsScenario = scene.scenario
    by_hand = still_in(state, lambda draft: draft.chosen)
    others = dict(sorted(still_in(state, lambda draft: not draft.chosen).items(), key=lambda item: _rank(*item)))
    texts = [f"{draft.preference} {draft.question}" for draft in (*by_hand.values(), *others.values())]
    vectors = await embedded(texts, scene, scenario.embedder)
    kept = VectorIndex(vectors[: len(by_hand)])
    count, found = len(by_hand), Found()
    for at, vector in zip(others, vectors[len(by_hand) :], strict=True):
        nearest = kept.nearest(vector)
        if nearest is not None and nearest[1] > scenario.threshold:
            found[at] = {"dropped": "near-duplicate"}
        elif count >= scenario.keep:
            found[at] = {"dropped": "surplus"}
        else:
            found[at] = {"chosen": True}
            kept.add(vector)
            count += 1
    scene.tell(f"{scenario.topic.topic}: {count} pairs are chosen, of {len(texts)}")
    return {"selection": found}


def _rank(place: str, draft: Draft) -> tuple[float, ...]:
    """Often violated, likely to be violated and hard to see first; of equals, the one that was written first."""
    rated = draft.rating
    levels = (rated.violation_probability, rated.reasoning_difficulty) if rated else ("low", "low")
    return (-(draft.violation_rate or 0.0), *(-LEVELS.index(level) for level in levels), int(place))
