"""Near-duplicates and semantic similarity of texts."""

from __future__ import annotations

import hashlib
import importlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Table
from dialoom.personas import EmbedderError, load_local_embedder
from dialoom.personas.similarity import Vector, VectorIndex
from dialoom.runs.errors import RunError
from dialoom.text import TOKEN

from .dataset import COMPARED_TEXTS, Dataset

HOW_TO_INSTALL = 'pip install "dialoom[describe]"'

NEAR_DUPLICATE_THRESHOLD = 0.8
"""Texts are near-duplicates if they share at least this fraction of their shingles (Jaccard)."""

SHINGLE_WORDS = 4
"""Number of words in a shingle."""

_PERMUTATIONS = 128
_MAX_EXAMPLES = 5


@dataclass(slots=True)
class Duplicates:
    """The copies of one set of texts found in another, or within itself.

    Attributes:
        texts: Number of texts searched for.
        exact: Number of exact copies in the other set (or earlier in the same set).
        near: Number of texts with a near-duplicate, but no exact copy.
        pairs: The first few pairs, by their ids.
    """

    texts: int = 0
    exact: int = 0
    near: int = 0
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def found(self, text: str, other: str, *, is_exact: bool) -> None:
        """Count one copy that was found."""
        self.exact += is_exact
        self.near += not is_exact
        if len(self.pairs) < _MAX_EXAMPLES:
            self.pairs.append((text, other))


class TextIndex:
    """An index of texts for finding copies: MinHash with locality-sensitive hashing (datasketch).

    The similarity of two texts is estimated from 128 hashes each, with a standard error of at most 0.045.

    Attributes:
        within: The copies among the texts of the set itself.

    Raises:
        RunError: If datasketch is not installed.
    """

    def __init__(self) -> None:
        try:
            self._library: Any = importlib.import_module("datasketch")
        except ModuleNotFoundError as error:
            raise RunError(f"finding near-duplicates needs datasketch, which is not installed: {HOW_TO_INSTALL}") from (
                error
            )
        self._lsh = self._library.MinHashLSH(threshold=NEAR_DUPLICATE_THRESHOLD, num_perm=_PERMUTATIONS)
        self._hashes: dict[str, Any] = {}
        self._exact: dict[bytes, str] = {}
        self.within = Duplicates()

    def add(self, id_: str, text: str) -> None:
        """Search for copies of a text among the earlier texts of the set, and add it unless it is an exact copy."""
        digest, minhash = self.search(id_, text, self.within)
        if minhash is not None:
            key = f"{len(self._hashes)} {id_}"
            self._exact[digest], self._hashes[key] = id_, minhash
            self._lsh.insert(key, minhash)

    def search(self, id_: str, text: str, found: Duplicates) -> tuple[bytes, Any]:
        """Search for copies of a text in this set, and count it.

        Returns:
            The text's digest and its MinHash, which is `None` if the text is empty or an exact copy.
        """
        found.texts += 1
        words: list[str] = TOKEN.findall(text.casefold())
        digest = hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()
        if not words:
            return digest, None
        if (same := self._exact.get(digest)) is not None:  # it represents all texts equal to it
            found.found(id_, same, is_exact=True)
            return digest, None
        # The sequences of `SHINGLE_WORDS` words; a shorter text is a single sequence.
        shingles = (words[start : start + SHINGLE_WORDS] for start in range(max(1, len(words) - SHINGLE_WORDS + 1)))
        minhash = self._library.MinHash(num_perm=_PERMUTATIONS)
        minhash.update_batch([" ".join(each).encode() for each in shingles])
        near = max(((minhash.jaccard(self._hashes[key]), key) for key in self._lsh.query(minhash)), default=(0.0, ""))
        if near[0] >= NEAR_DUPLICATE_THRESHOLD:
            found.found(id_, near[1].partition(" ")[2], is_exact=False)
        return digest, minhash


DEFAULT_MIN_COSINE = 0.9
"""Default minimum cosine of embeddings of texts that count as alike."""

MAX_TEXTS = 10_000
"""Maximum number of texts of a set that are compared: the first ones, each with all earlier texts."""

_BATCH_SIZE = 64


class SimilarTexts:
    """Detection of texts with similar meaning.

    Args:
        embedder: `lexical`, or `st:MODEL` of sentence-transformers.
        least: The minimum cosine of texts that count as alike, 0 to 1.

    Raises:
        RunError: If the embedder is unknown, its library is missing, or the cosine is invalid.
    """

    def __init__(self, embedder: str, least: float = DEFAULT_MIN_COSINE) -> None:
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise RunError(f"alike must be a number from 0 to 1, got {least!r}", setting="alike")
        try:
            self._embedder = load_local_embedder(embedder)
        except EmbedderError as error:
            raise RunError(f"embedder: {error}", setting="embedder") from error
        self._name, self._least = embedder, least

    @classmethod
    def from_options(cls, embedder: str | None, least: float | None) -> SimilarTexts | None:
        """Return the detector for a command's options; `None` if no embedder is given.

        Raises:
            RunError: In the same cases as for the class, or if a cosine is given without an embedder.
        """
        if embedder is None and least is not None:
            raise RunError("alike is a cosine of embeddings, so it needs an embedder", setting="alike")
        return None if embedder is None else cls(embedder, DEFAULT_MIN_COSINE if least is None else least)

    def table(self, dataset: Dataset, against: Sequence[Dataset]) -> Table:
        """Return a table that counts the dialogues and first lines that resemble an earlier one, or one in another set.

        Raises:
            RunError: If the model cannot be loaded.
        """
        table = Table("alike", "Texts with similar meaning", ["of", "searched in", "texts", "alike", "%"])
        pairs: list[str] = []
        for what, text in COMPARED_TEXTS.items():
            index, ids = VectorIndex(), list[str]()
            for other in (dataset, *against):
                found = Duplicates()
                for id_, vector in self._embedded((each.id, text(each)) for each in other.dialogues()):
                    found.texts += 1
                    nearest = index.nearest(vector)
                    if nearest is not None and nearest[1] >= self._least:
                        found.found(id_, ids[nearest[0]], is_exact=False)
                    if other is dataset:
                        index.add(vector)
                        ids.append(id_)
                whose, looked_in = ("", "itself") if other is dataset else (f" of {other.name}", dataset.name)
                share = found.near / found.texts if found.texts else None
                table.rows.append([f"{what}{whose}", looked_in, found.texts, found.near, share])
                pairs += [f"{what}: {one}{whose} resembles {match}" for one, match in found.pairs]
        table.notes += [
            f"Alike: a cosine of at least {self._least:g} by {self._name}, including exact copies. "
            f"{self._embedder.meaning[0].upper()}{self._embedder.meaning[1:]}. A model reads only the part of a text "
            f"that fits into its window. At most {MAX_TEXTS:,} texts of a set are compared.",
            *pairs,
        ]
        return table

    def _embedded(self, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Vector]]:
        some = itertools.islice(((id_, text) for id_, text in texts if text.strip()), MAX_TEXTS)
        while batch := list(itertools.islice(some, _BATCH_SIZE)):
            try:
                vectors = self._embedder.embed([text for _, text in batch])
            except EmbedderError as error:
                raise RunError(f"embedder: {error}", setting="embedder") from error
            yield from zip((id_ for id_, _ in batch), vectors, strict=True)
