"""Embeddings of texts: from a local embedder, or from the role `embedder`, which a model plays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Recipe, RecipeError, Scenario, Scene, WithPrompts, WithRoles
from dialoom.inputs import Frozen
from dialoom.personas.similarity import (
    Embedder,
    EmbedderError,
    Vector,
    decode_vector,
    load_local_embedder,
    normalize_vector,
)
from dialoom.roles import PermanentProviderError

EMBEDDER_PROMPT = "pools/embedder"

_BATCH_SIZE = 100
"""Maximum number of texts in one call. Providers accept from a few hundred to a few thousand."""
_EMBEDDING_LOCK = threading.Lock()
_SIMILARITY_DECIMALS = 6
"""The number of decimals to which similarities are rounded, so that the floating-point differences between machines do
not matter.
"""


class Embeddings(Frozen):
    """What the embedder answers: vectors, packed as `EmbeddingBackend` says."""

    vectors: list[str]


def embedding_model(embedder: str) -> str | None:
    """Return the model that plays the role `embedder`, or `None` for a local embedder."""
    kind, _, model = embedder.partition(":")
    return f"embed:{model}" if kind == "litellm" else None


def find_local_embedder(embedder: str) -> Embedder | None:
    """Return the local embedder, or `None` if a model plays the role `embedder`.

    Raises:
        RecipeError: If the embedder is not available here.
    """
    if embedding_model(embedder):
        return None
    try:
        return load_local_embedder(embedder)
    except EmbedderError as error:
        raise RecipeError(f"embedder: {error}", setting="embedder") from error


class EmbeddingRecipe(Recipe, WithRoles, WithPrompts):
    """A recipe that compares texts by their embeddings. Its option `embedder` selects a local embedder or a model."""

    def __init_subclass__(cls) -> None:
        """Add the embedder's prompt and reply type."""
        super().__init_subclass__()
        cls.prompts = (*cls.prompts, EMBEDDER_PROMPT)
        cls.reply_types = {**cls.reply_types, "embeddings": Embeddings}

    def embeds(self, options: Any) -> bool:
        """Return whether a run with these options compares any texts; true by default."""
        return True

    def models_named(self, options: Any) -> Mapping[str, str]:
        """Return the embedder's model, by role; none for a local embedder, or if no texts are compared."""
        model = embedding_model(options.embedder)
        return {"embedder": model} if model and self.embeds(options) else {}

    def roles_used(self, options: Any) -> Mapping[str, float]:
        """Return the roles that a run needs. The embedder is included only if a model plays it."""
        is_played, used = "embedder" in self.models_named(options), super().roles_used(options)
        return {role: value for role, value in used.items() if role != "embedder" or is_played}


class EmbeddingScenario(Scenario):
    """A scenario with a field `embedder`."""

    @property
    def loads(self) -> tuple[str, ...]:
        """The model that the local embedder loads; none if the embedder only counts words."""
        embedder: str = getattr(self, "embedder", "")
        return (embedder,) if embedder.startswith("st:") else ()


def find_highest(scores: NDArray[Any], count: int) -> list[int]:
    """Return the indices of the `count` highest similarities, highest first; ties keep their order."""
    return [int(place) for place in np.argsort(-np.round(scores, _SIMILARITY_DECIMALS), kind="stable")[:count]]


async def embed_texts(texts: Sequence[str], scene: Scene, embedder: str, *, common: bool = False) -> list[Vector]:
    """Return a unit vector for each text.

    Args:
        texts: The texts.
        scene: The node's scene, for calls to a model.
        embedder: `lexical`, `st:MODEL` or `litellm:PROVIDER/MODEL`.
        common: Whether the calls are shared between scenarios, so that equal lists of texts are embedded once.

    Raises:
        RecipeError: If the embedder is not available here.
        PermanentProviderError: If a model's reply does not hold one vector per text.
        RoleError: If the model's reply cannot be obtained.
    """
    if not texts:
        return []
    if (local := find_local_embedder(embedder)) is None:
        batches = [
            await _request_vectors(texts[start:][:_BATCH_SIZE], scene, common)
            for start in range(0, len(texts), _BATCH_SIZE)
        ]
        return [vector for part in batches for vector in part]
    try:
        return await asyncio.to_thread(local.embed, texts)
    except EmbedderError as error:
        raise RecipeError(f"embedder: {error}", setting="embedder") from error


async def embed_as_rows(texts: Sequence[str], scene: Scene, embedder: str) -> NDArray[np.float32]:
    """Return the texts' embeddings as the rows of an array. Texts that several scenarios share are embedded once.

    A model's vectors come from calls shared between scenarios. The vectors of a local embedder are cached.

    Args:
        texts: The texts.
        scene: The node's scene, for calls to a model.
        embedder: The embedder; see `embed_texts`, which also lists the errors.
    """
    if embedding_model(embedder):
        return np.array(await embed_texts(texts, scene, embedder, common=True), dtype=np.float32)
    return await asyncio.to_thread(_embed_locally, embedder, tuple(texts))


def _embed_locally(embedder: str, texts: tuple[str, ...]) -> NDArray[np.float32]:
    with _EMBEDDING_LOCK:  # without the lock, concurrent scenarios would all embed the same hundreds of texts
        return _embed_cached(embedder, texts)


@lru_cache(maxsize=4)
def _embed_cached(embedder: str, texts: tuple[str, ...]) -> NDArray[np.float32]:
    try:
        return np.array(load_local_embedder(embedder).embed(texts), dtype=np.float32)
    except EmbedderError as error:
        raise RecipeError(f"embedder: {error}", setting="embedder") from error


async def _request_vectors(texts: Sequence[str], scene: Scene, common: bool) -> list[Vector]:
    history = [{"speaker": "text", "content": text} for text in texts]
    reply: Embeddings = await (scene.ask_common if common else scene.ask)(EMBEDDER_PROMPT, history=history)
    try:
        vectors = [normalize_vector(decode_vector(text)) for text in reply.vectors]
    except ValueError as error:
        raise PermanentProviderError(f"the embedder's answer cannot be used: {error}") from error
    if len(vectors) != len(texts):
        raise PermanentProviderError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors
