"""The vectors of a pool's texts: from an embedder that runs here, or from the role that asks a model for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.stage import Scene
from dialoom.personas.similarity import EmbedderError, Vector, local_embedder, packed, unit, unpacked
from dialoom.roles import PermanentProviderError

from .scenario import PoolScenario

_AT_ONCE = 100
"""Texts in one call; providers take from some hundred to some thousand."""


class Embeddings(BaseModel):
    """What the embedder answers: vectors, packed as `roles.gateway.embedding` says."""

    model_config = ConfigDict(frozen=True)
    vectors: list[str]


async def embedded(texts: Sequence[str], scene: Scene) -> list[Vector]:
    """A unit vector for each text.

    Raises:
        RecipeError: If the embedder cannot be had here.
        PermanentProviderError: If a model's answer is not one vector for each text.
        RoleError: If the model cannot be had.
    """
    scenario: PoolScenario = scene.scenario
    if not texts:
        return []
    if scenario.embedder.startswith("litellm:"):
        parts = [await _asked(texts[start:][:_AT_ONCE], scene) for start in range(0, len(texts), _AT_ONCE)]
        return [vector for part in parts for vector in part]
    try:
        return await asyncio.to_thread(local_embedder(scenario.embedder).embed, texts)
    except EmbedderError as error:
        raise RecipeError(f"embedder: {error}", setting="embedder") from error


def pack_kept(vector: Vector, scenario: PoolScenario) -> str:
    """What the state keeps of a kept text's vector: nothing where making it again is cheaper than keeping it."""
    return "" if scenario.embedder == "lexical" else packed(vector)


async def unpack_kept(entries: Sequence[dict[str, Any]], vectors: Sequence[str], scene: Scene) -> list[Vector]:
    """The vectors of the kept texts."""
    if any(vectors):
        return [unpacked(text) for text in vectors]
    return await embedded([entry["text"] for entry in entries], scene)


async def _asked(texts: Sequence[str], scene: Scene) -> list[Vector]:
    history = [{"speaker": "text", "content": text} for text in texts]
    reply: Embeddings = await scene.ask("pools/embedder", history=history)
    try:
        vectors = [unit(unpacked(text)) for text in reply.vectors]
    except ValueError as error:
        raise PermanentProviderError(f"the embedder's answer cannot be used: {error}") from error
    if len(vectors) != len(texts):
        raise PermanentProviderError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors
