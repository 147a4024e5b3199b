"""Retrieval for the method rag: the messages of a conversation that are most like its question.

The unit is a message, not an exchange as the paper has it: so the release does. The score is the cosine of embeddings.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs.embedding import embedded, embedding_model
from dialoom.graphs.outcome import Line
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.stage import Scene
from dialoom.personas.similarity import EmbedderError, local_embedder

from .scenario import PrefEvalScenario

Matrix = NDArray[np.float32]
_DIGITS = 6
"""Of a similarity: another machine's last bit decides nothing."""
_embedding = threading.Lock()


async def nearest(scene: Scene, lines: Sequence[Line], question: str) -> list[int]:
    """The places of the messages most like the question, the best first; of equals the first.

    Args:
        scene: The node's.
        lines: The messages.
        question: The bare question.

    Raises:
        RecipeError: If the embedder cannot be had here.
        RoleError: If the model that embeds cannot be had.
    """
    scenario: PrefEvalScenario = scene.scenario
    pool = {id(line): place for place, line in enumerate(scenario.distractors.value)}
    own = [line.content for line in lines if id(line) not in pool]
    shared = await _rows([line.content for line in scenario.distractors.value], scene)
    others = await _rows([question, *own], scene)
    asked, told = others[0], others[1:] @ others[0]
    scores = np.empty(len(lines))
    scores[[place for place, line in enumerate(lines) if id(line) not in pool]] = told
    if len(shared):
        known = [(place, pool[id(line)]) for place, line in enumerate(lines) if id(line) in pool]
        scores[[place for place, _ in known]] = (shared @ asked)[[at for _, at in known]]
    ranked = np.argsort(-np.round(scores, _DIGITS), kind="stable")
    return [int(place) for place in ranked[: scenario.retrieved]]


async def _rows(texts: Sequence[str], scene: Scene) -> Matrix:
    """A row for each text. A model's vectors are common calls: what many items share is embedded once."""
    embedder = scene.scenario.embedder
    if embedding_model(embedder):
        return np.array(await embedded(texts, scene, embedder, common=True), dtype=np.float32)
    return await asyncio.to_thread(_made_here, embedder, tuple(texts))


def _made_here(embedder: str, texts: tuple[str, ...]) -> Matrix:
    with _embedding:  # else several items would embed the same hundreds of turns beside each other
        return _held(embedder, texts)


@lru_cache(maxsize=4)
def _held(embedder: str, texts: tuple[str, ...]) -> Matrix:
    try:
        return np.array(local_embedder(embedder).embed(texts), dtype=np.float32)
    except EmbedderError as error:
        raise RecipeError(f"embedder: {error}", setting="embedder") from error
