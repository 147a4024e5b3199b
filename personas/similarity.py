"""Similarity of texts: embedders, nearest neighbours, and samples of texts."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.util
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:  # functions import it, as it takes 25 MB and most runs need no vectors
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"

DEFAULT_THRESHOLD = 0.6
"""ALOE's default threshold. A text is kept if its similarity to every text that was kept before it is at most this
value.
"""

LEXICAL = "lexical"
EMBEDDER_FORMS = "lexical, st:MODEL (sentence-transformers: a name or a folder) or litellm:PROVIDER/MODEL"


class EmbedderError(ValueError):
    """An embedder that is unknown or not available here. The message lists valid embedders."""


class Embedder(Protocol):
    """An embedder of texts as unit vectors, so that the dot product of two vectors is their cosine similarity.

    Attributes:
        meaning: An explanation of the embedder's similarities, for users who choose a threshold.
    """

    meaning: str

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a unit vector (float32) for each text; equal texts get equal vectors."""


class LexicalEmbedder:
    """An embedder that counts words. It needs no model or download, and gives the same vectors on every machine.

    A text becomes the bag of its content words: stems, without function words and without words that nearly every
    description of a person contains (lives, likes, weekend). A word that occurs n times has the weight 1 + ln n. The
    similarity of two texts of equal length is then about the share of content words that they have in common: 0.6 means
    three words in five, which only a reworded copy or a text of the same stock phrases reaches; descriptions that
    merely share a town, a job and a hobby reach 0.1 to 0.3. Synonyms count as different words. For a filter as strict
    about meaning as the paper's, use a sentence embedder, or a lower threshold here.
    """

    meaning = (
        "lexical similarity is about the share of content words that two texts have in common: 0.6 is three words in "
        "five, a reworded copy; texts of unrelated people are below 0.3; synonyms count as different words"
    )

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Hash words into 4,096 signed dimensions. A text without any word is similar only to itself."""
        return [_embed_words(text) for text in texts]


class SentenceTransformerEmbedder:
    """A local model of the sentence-transformers library, which is loaded for the first text.

    Raises:
        EmbedderError: If the library is not installed or the model cannot be loaded.
    """

    meaning = "a threshold suits only one model: ALOE's authors chose 0.6 for paraphrase-MiniLM-L6-v2"

    def __init__(self, model: str) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderError(
                f"embedder 'st:{model}' needs sentence-transformers, which is not installed: pip install 'dialoom[st]'"
            )
        self._name = model
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the model's embeddings as unit vectors."""
        if self._model is None:
            try:
                self._model = importlib.import_module("sentence_transformers").SentenceTransformer(self._name)
            except Exception as error:
                raise EmbedderError(f"embedder 'st:{self._name}' cannot be loaded: {error}") from error
        found = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return [normalize_vector(vector) for vector in found]


def check_embedder(spec: str) -> None:
    """Check that a text specifies an embedder.

    Raises:
        EmbedderError: If it specifies none. The message states the valid forms.
    """
    kind, _, model = spec.partition(":")
    if spec != LEXICAL and not (kind in ("st", "litellm") and model.strip()):
        raise EmbedderError(f"{spec!r} is not an embedder; give {EMBEDDER_FORMS}")


def resolve_embedder(spec: str) -> str:
    """Return an embedder's specification with an absolute path, so that a run finds the model from any working folder.

    Raises:
        EmbedderError: If the text does not specify an embedder.
    """
    check_embedder(spec)
    kind, _, model = spec.partition(":")
    folder = Path(model).expanduser()
    return f"st:{folder.absolute()}" if kind == "st" and folder.is_dir() else spec


@lru_cache(maxsize=4)
def load_local_embedder(spec: str) -> Embedder:
    """Return the embedder for `lexical` or `st:MODEL`, which do not need the gateway.

    Raises:
        EmbedderError: If the embedder is unknown or of another kind, or its library is missing.
    """
    check_embedder(spec)
    kind, _, model = spec.partition(":")
    if kind == "litellm":
        raise EmbedderError(
            f"embedder {spec!r} makes paid calls, which are only possible in a run; here, give lexical or st:"
        )
    return LexicalEmbedder() if spec == LEXICAL else SentenceTransformerEmbedder(model)


def normalize_vector(values: Sequence[float] | NDArray[Any]) -> Vector:
    """Return the values as a vector of length 1.

    Raises:
        ValueError: If the values are not a one-dimensional list of finite numbers, or all are 0.
    """
    import numpy as np

    vector = np.asarray(values, dtype=np.float64)
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
    if not math.isfinite(length) or length == 0.0:
        raise ValueError("an embedding must be a list of numbers that are not all 0")
    return (vector / length).astype(np.float32)


def encode_vector(vector: Vector | Sequence[float]) -> str:
    """Encode a vector as text: base64 of its little-endian float32 values."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def decode_vector(text: str) -> Vector:
    """Decode a vector from text.

    Raises:
        ValueError: If the text does not encode a vector.
    """
    import numpy as np

    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


class VectorIndex:
    """The vectors of the texts kept so far, in order, with nearest-neighbour search.

    Args:
        vectors: The initial vectors.
    """

    def __init__(self, vectors: Sequence[Vector] = ()) -> None:
        import numpy as np

        self._count = len(vectors)
        self._rows = np.array(vectors, dtype=np.float32) if vectors else np.zeros((0, 0), dtype=np.float32)

    def nearest(self, vector: Vector) -> tuple[int, float] | None:
        """Return the index and the similarity of the (first) most similar vector; `None` if there is none.

        Similarities are rounded to six digits, so that floating-point differences between machines do not matter.

        Raises:
            ValueError: If the vector's length differs from that of the other vectors.
        """
        if not self._count:
            return None
        if vector.shape[0] != self._rows.shape[1]:
            raise ValueError(
                f"an embedding of {vector.shape[0]} numbers cannot be compared with one of {self._rows.shape[1]}"
            )
        return _find_nearest(self._rows[: self._count], vector)

    @property
    def size(self) -> int:
        """The number of vectors."""
        return self._count

    def add(self, vector: Vector) -> None:
        """Append a vector."""
        import numpy as np

        if self._count == len(self._rows):
            grown = np.zeros((max(64, 2 * self._count), vector.shape[0]), dtype=np.float32)
            grown[: self._count] = self._rows.reshape(self._count, vector.shape[0])
            self._rows = grown
        self._rows[self._count] = vector
        self._count += 1


def find_nearest_neighbours(vectors: Sequence[Vector]) -> list[tuple[int, float] | None]:
    """Return, for each vector, the index of the most similar other vector and the similarity.

    The result is `None` if there is no other vector.
    """
    import numpy as np

    if len(vectors) < 2:
        return [None] * len(vectors)
    rows = np.array(vectors, dtype=np.float32)
    return [_find_nearest(rows, row, left_out=[place]) for place, row in enumerate(rows)]


def _find_nearest(rows: NDArray[np.float32], vector: Vector, left_out: Sequence[int] = ()) -> tuple[int, float]:
    import numpy as np

    similarities = np.round(np.clip(rows @ vector, -1.0, 1.0), 6)
    similarities[list(left_out)] = -2.0
    place = int(np.argmax(similarities))
    return place, round(float(similarities[place]), 6)


def suggest_threshold(vectors: Sequence[Vector]) -> float | None:
    """Return the lowest threshold, in steps of 0.01, at which 95 % of a pool's texts would pass one after another.

    The threshold is computed from each text's similarity to its nearest predecessor. With this threshold, the pool
    stays about as diverse as it is. For fewer than 20 texts the result is `None`, because there are too few
    similarities for an estimate.
    """
    import numpy as np

    if len(vectors) < _MIN_TEXTS:
        return None
    rows = np.array(vectors, dtype=np.float32)
    nearest = sorted(float(np.max(rows[:place] @ row)) for place, row in enumerate(rows) if place)
    passing = math.ceil(_PASSING_SHARE * len(vectors)) - 1  # the first text always passes
    return min(1.0, math.ceil(round(100 * nearest[passing - 1], 4)) / 100)


def count_passing(vectors: Sequence[Vector], threshold: float) -> int:
    """Return how many texts of a pool pass a filter that processes them in the order of the vectors."""
    index = VectorIndex()
    for vector in vectors:
        if (nearest := index.nearest(vector)) is None or nearest[1] <= threshold:
            index.add(vector)
    return index.size


_PASSING_SHARE, _MIN_TEXTS = 0.95, 20
_DIMENSIONS = 4096
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]")

_FUNCTION_WORDS = frozenset(
    "a about above across after again against all almost alone along already also although always am among an and "
    "another any anyone anything are around as at away back be because been before behind being below between "
    "both but by can cannot come comes could did do does doing done down during each either else enough even ever "
    "every everyone everything few first for from gave get gets give gives go goes going gone got had has have "
    "having he her here hers herself him himself his how however i if in inside instead into is it its itself "
    "just keep keeps kept knew know knows last least less let lets like likely long made make makes making many "
    "may me might mine more most much must my near nearly neither never next no nobody none nor not nothing now "
    "of off often on once one only onto or other others our ours out outside over own part people per perhaps "
    "person put puts quite rather really said same saw say says see seen sees seldom several she should since so "
    "some somebody someone something sometimes soon still such take taken takes taking than that the their theirs "
    "them themselves then there these they thing things this those though three through till to together too took "
    "toward towards twice two under until up upon us used using usually very was way ways we well went were what "
    "whatever when whenever where which while who whole whom whose why will with within without would yet you "
    "your yours".split()
)
_COMMON_WORDS = frozenset(
    "age aged day days does enjoy enjoyed enjoys evening evenings family favorite favourite free friend friends "
    "grew hobby home interest interested interests life like likes live lived lives living love loved loves "
    "morning mornings name old prefer prefers regularly spare spend spends spent start started time times tries "
    "try want wants week weekend weekends weekly weeks work worked working works year years young".split()
)


@lru_cache(maxsize=20_000)
def _embed_words(text: str) -> Vector:
    import numpy as np

    vector = np.zeros(_DIMENSIONS, dtype=np.float64)
    for word, count in Counter(content_words(text) or _WORD.findall(text.casefold()) or [text]).items():
        hash_ = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        vector[(hash_ >> 1) % _DIMENSIONS] += (1.0 if hash_ & 1 else -1.0) * (1.0 + math.log(count))
    if not vector.any():  # the signs of two words cancel each other, which cannot happen for a single word
        vector[0] = 1.0
    found = normalize_vector(vector)
    found.setflags(write=False)
    return found


def content_words(text: str) -> list[str]:
    """Return the stems of a text's content words, in order. Scripts without spaces yield pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        bare = word.replace("’", "'").removesuffix("'s")
        if _UNSPACED.search(word):
            found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
        elif bare not in _FUNCTION_WORDS and bare not in _COMMON_WORDS and "'" not in bare:
            found.append(stem(bare))
    return found


def stem(word: str) -> str:
    """Return an approximate stem of an English word. `bakes`, `baked` and `baking` give the same stem."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for suffix, ending in (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        bare = word.removesuffix(suffix)
        if bare != word and len(bare) >= 3 and not (suffix == "s" and bare[-1] in "sui"):
            word = bare + ending
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


_SAMPLE_SEED = 42


class TextSample:
    """A uniform random sample of a stream of texts (Vitter 1985, algorithm R), drawn with a fixed seed.

    Args:
        size: The size of the sample. If there are fewer texts, all of them are kept, in order.

    Attributes:
        count: The number of texts added.
        texts: The sample.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._drawing = random.Random(_SAMPLE_SEED)
        self.count = 0
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Add a text to the stream."""
        self.count += 1
        if len(self.texts) < self._size:
            self.texts.append(text)
        elif (place := self._drawing.randrange(self.count)) < self._size:
            self.texts[place] = text
