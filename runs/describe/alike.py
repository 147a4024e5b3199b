"""Texts that say nearly the same in other words, by embeddings: within a set, and between it and others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from dialoom.graphs import Table
from dialoom.personas import EmbedderError, local_embedder
from dialoom.personas.similarity import Vector, VectorIndex
from dialoom.runs.errors import RunError

from .dataset import Dataset, first_texts, whole_texts
from .duplicates import Duplicates

LEAST = 0.9
"""Texts are alike from this cosine of their embeddings on, where nothing else is said."""

MOST_TEXTS = 10_000
"""Of more texts of a set the first ones are compared: each is compared with all before it."""

_AT_ONCE = 64


class Alike:
    """How texts that mean the same are told.

    Args:
        embedder: `lexical`, or `st:MODEL` of sentence-transformers.
        least: The cosine from which texts are alike, 0 to 1.

    Raises:
        RunError: If there is no such embedder, its library is missing, or the number is none.
    """

    def __init__(self, embedder: str, least: float = LEAST) -> None:
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise RunError(f"alike {least!r} is no number from 0 to 1", setting="alike")
        try:
            self._embedder = local_embedder(embedder)
        except EmbedderError as error:
            raise RunError(f"embedder: {error}", setting="embedder") from error
        self._name, self._least = embedder, least

    @classmethod
    def wanted(cls, embedder: str | None, least: float | None) -> Alike | None:
        """What is asked for; `None` without an embedder.

        Raises:
            RunError: As for the class, and if a cosine is given without an embedder.
        """
        if embedder is None and least is not None:
            raise RunError("alike: it is a cosine of embeddings; give an embedder", setting="alike")
        return None if embedder is None else cls(embedder, LEAST if least is None else least)

    def table(self, dataset: Dataset, against: Sequence[Dataset]) -> Table:
        """Dialogues and first lines that are like one before them, or like one of another set.

        Raises:
            RunError: If the model cannot be loaded.
        """
        table = Table("alike", "Texts that are alike", ["of", "looked for in", "texts", "alike", "%"])
        pairs: list[str] = []
        for what, texts in (("dialogues", whole_texts), ("first lines", first_texts)):
            index, ids = VectorIndex(), list[str]()
            found = self._compared(texts(dataset), index, ids, joins=True)
            table.rows.append([what, "itself", *_counts(found)])
            pairs += [f"{what}: {one} is like {other}" for one, other in found.pairs]
            for other in against:
                found = self._compared(texts(other), index, ids, joins=False)
                table.rows.append([f"{what} of {other.name}", dataset.name, *_counts(found)])
                pairs += [f"{what}: {one} of {other.name} is like {mine}" for one, mine in found.pairs]
        table.notes += [
            f"Alike: a cosine of at least {self._least:g} by {self._name}, copies word for word among them. "
            f"{self._embedder.meaning[0].upper()}{self._embedder.meaning[1:]}. A model reads no more of a text than "
            f"fits. Of more than {MOST_TEXTS:,} texts of a set, so many are compared.",
            *pairs,
        ]
        return table

    def _compared(
        self, texts: Iterable[tuple[str, str]], index: VectorIndex, ids: list[str], *, joins: bool
    ) -> Duplicates:
        """Each text against those in the index, which it then joins if it is to."""
        found = Duplicates()
        for id_, vector in self._embedded(texts):
            found.texts += 1
            nearest = index.nearest(vector)
            if nearest is not None and nearest[1] >= self._least:
                found.found(id_, ids[nearest[0]], is_exact=False)
            if joins:
                index.add(vector)
                ids.append(id_)
        return found

    def _embedded(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Vector]]:
        some = itertools.islice(((id_, text) for id_, text in texts if text.strip()), MOST_TEXTS)
        while batch := list(itertools.islice(some, _AT_ONCE)):
            try:
                vectors = self._embedder.embed([text for _, text in batch])
            except EmbedderError as error:
                raise RunError(f"embedder: {error}", setting="embedder") from error
            yield from zip((id_ for id_, _ in batch), vectors, strict=True)


def _counts(found: Duplicates) -> tuple[int, int, float | None]:
    return found.texts, found.near, found.near / found.texts if found.texts else None
