"""Who is another person once more: by how similar what they like is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.graphs.embedding import embedded
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.similarity import LEXICAL, VectorIndex, local_embedder, packed, unpacked

from .making import PersonState, listed
from .scenario import PersonScenario


async def embed(state: PersonState, scene: Scene) -> Update:
    """The vector of what the person likes, where it takes a model."""
    scenario: PersonScenario = scene.scenario
    (vector,) = await embedded([_text(state["preferences"])], scene, scenario.embedder)
    return {"vector": packed(vector)}


class Twins:
    """People as they come, each compared with those before.

    Args:
        threshold: Who is more similar than this to somebody before is a twin.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._index = VectorIndex()
        self._users: list[str] = []

    def twin_of(self, user: str, details: Mapping[str, Any]) -> tuple[str, float] | None:
        """Whom a person is too similar to, and how similar; `None` if nobody: then the person counts from now on.

        Args:
            user: The person's id.
            details: Those of the person's outcome.
        """
        kept = details["vector"]
        text = _text(details["preferences"])
        vector = unpacked(kept) if kept else local_embedder(LEXICAL).embed([text])[0]
        nearest = self._index.nearest(vector)
        if nearest is not None and nearest[1] > self._threshold:
            return self._users[nearest[0]], nearest[1]
        self._index.add(vector)
        self._users.append(user)
        return None


def _text(preferences: Mapping[str, Mapping[str, Any]]) -> str:
    """The values alone: the names of preferences are everybody's."""
    return ". ".join(text for values in preferences.values() for text in listed(values).values())
