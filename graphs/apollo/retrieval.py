"""Retrieval for the framework rag: the past sessions that are most like the request, by the cosine of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from dialoom.graphs.embedding import embedded
from dialoom.graphs.stage import Scene

RETRIEVED = 3
_DIGITS = 6
"""Of a similarity: another machine's last bit decides nothing."""


async def nearest(scene: Scene) -> list[int]:
    """The numbers of the sessions nearest to the request, in their order; of equals the earlier.

    Raises:
        RecipeError: If the embedder cannot be had here.
        RoleError: If the model that embeds cannot be had.
    """
    scenario: Any = scene.scenario
    texts = ["\n".join(each.session.lines) for each in scenario.history]
    request = await embedded([scenario.pair.query], scene, scenario.played.embedder, common=True)
    vectors = np.array(await embedded(texts, scene, scenario.played.embedder, common=True), dtype=np.float32)
    scores = np.round(vectors @ np.array(request[0], dtype=np.float32), _DIGITS)
    ranked = np.argsort(-scores, kind="stable")[:RETRIEVED]
    return sorted(int(place) + 1 for place in ranked)
