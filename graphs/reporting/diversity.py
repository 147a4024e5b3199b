"""Lexical diversity of texts: distinct n-grams, entropy and Self-BLEU."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

SAMPLE_WORDS = 7_012
"""Words of a sample, split at white space: the size of the smallest corpus in LAPS' comparison."""

SAMPLES, SEED = 100, 42
"""Number of samples for each metric, and the seed."""

MOST_COMPARED = 2_000
"""Maximum number of texts that Self-BLEU compares; of more, a sample is drawn."""

_ORDERS = (1, 2, 3, 4)
_ROOM = 2**62
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LexicalDiversity:
    """The lexical diversity of texts.

    Attributes:
        texts: Number of texts.
        words: Number of words, split at white space (`published`) or as runs of letters and digits (`varied`).
        dist_1: Share of distinct words among all words, 0 to 1; this and the others are `None` if there is nothing to
            measure.
        dist_2: Share of distinct pairs of words among all pairs.
        ent_4: Entropy of the sequences of four words, in nats.
        self_bleu: Similarity of each text to the others, 0 to 1.
        compared: Number of texts that Self-BLEU compares.
    """

    texts: int
    words: int
    dist_1: float | None
    dist_2: float | None
    ent_4: float | None
    self_bleu: float | None
    compared: int


def published(texts: Sequence[str]) -> LexicalDiversity:
    """Return the figures as in table 10 of PersonaLens: means over samples of 7,012 words.

    Dist-n: lower case, without full stops and line breaks, split at single blanks. Ent-4: `lower().rstrip("2").split()`
    (their code). Self-BLEU: BLEU-4 of each text's characters against those of all others of the sample.
    """
    words = sum(len(text.split()) for text in texts)
    if not words:
        return LexicalDiversity(len(texts), 0, None, None, None, None, 0)

    def mean(metric: Callable[[Sequence[str]], float | None]) -> float | None:
        if words <= SAMPLE_WORDS:  # each sample is all of them
            return metric(texts)
        drawing = random.Random(SEED)
        found = [metric(_sample(texts, drawing)) for _ in range(SAMPLES)]
        return fmean(figure for figure in found if figure is not None) if any(f is not None for f in found) else None

    return LexicalDiversity(
        len(texts),
        words,
        mean(lambda sample: distinct(map(_dist_words, sample), 1)),
        mean(lambda sample: distinct(map(_dist_words, sample), 2)),
        mean(lambda sample: entropy(map(_ent_words, sample), 4)),
        mean(lambda sample: self_bleu([text.lower() for text in sample])),
        len(texts),
    )


def varied(texts: Sequence[str]) -> LexicalDiversity:
    """Return the figures of lower-case words over all texts; Self-BLEU over a seeded sample of at most 2,000 texts."""
    split = [tuple(_WORD.findall(text.lower())) for text in texts]
    split = [words for words in split if words]
    chosen = split if len(split) <= MOST_COMPARED else random.Random(SEED).sample(split, MOST_COMPARED)
    return LexicalDiversity(
        len(texts),
        sum(map(len, split)),
        distinct(split, 1),
        distinct(split, 2),
        entropy(split, 4),
        self_bleu(chosen),
        len(chosen),
    )


def distinct(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Return the share of distinct n-grams among all n-grams (Li et al. 2016); none spans two texts."""
    grams = _counted(texts, n)
    return len(grams) / grams.total() if grams else None


def entropy(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Return the entropy of the n-grams' counts, in nats (Zhang et al. 2018)."""
    grams = _counted(texts, n)
    total = grams.total()
    return math.fsum(count / total * math.log(total / count) for count in grams.values()) if total else None


def self_bleu(texts: Sequence[Sequence[str]]) -> float | None:
    """Return the mean BLEU-4 of each text against all others (Zhu et al. 2018); `None` for fewer than two.

    Weights 1/4, the reference of the closest length, and 0.1 in place of no match (Chen and Cherry 2014, method 1).
    An n-gram's count is clipped to its highest count in any other text: the two highest counts of each n-gram are
    enough
    to compute that, so it takes time linear in the texts' length.

    Args:
        texts: Each a sequence of words, or a string for its characters.
    """
    if len(texts) < 2:
        return None
    ids = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    words = np.fromiter(map(ids.__getitem__, chain.from_iterable(texts)), np.int64)
    lengths = np.array([len(text) for text in texts])
    logs = np.zeros(len(texts))
    has_words = np.ones(len(texts), dtype=bool)
    for n in _ORDERS:
        matches, all_ = _matches(words, lengths, n, len(ids))
        has_words &= (matches > 0) if n == 1 else True
        logs += np.log(np.where(matches > 0, matches, 0.1) / np.maximum(all_, 1)) / len(_ORDERS)
    scores = np.where(has_words, np.exp(logs) * _brevity(lengths), 0.0)
    return float(scores.mean())


def _matches(
    words: NDArray[np.int64], lengths: NDArray[np.int64], n: int, size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return, for each text, the clipped number of its n-grams found in others, and the number of all its n-grams.

    Args:
        words: All texts one after the other, as numbers below `size`.
        lengths: The length of each text.
        n: The order.
        size: The size of the alphabet.
    """
    all_ = np.maximum(lengths - n + 1, 0)
    starts = np.flatnonzero(np.arange(len(words)) + n <= np.repeat(np.cumsum(lengths), lengths))
    if not len(starts):
        return np.zeros(len(lengths)), all_
    owners = np.repeat(np.arange(len(lengths)), lengths)[starts]
    codes = _coded(np.lib.stride_tricks.sliding_window_view(words, n)[starts], size, len(lengths))
    pairs, counts = np.unique(codes * len(lengths) + owners, return_counts=True)
    code, owner = pairs // len(lengths), pairs % len(lengths)
    order = np.lexsort((-counts, code))
    code, owner, counts = code[order], owner[order], counts[order]
    first = np.r_[True, code[1:] != code[:-1]]
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    sizes = np.diff(np.r_[starts, len(code)])
    highest = counts[starts][group]
    second = np.where(sizes > 1, counts[np.minimum(starts + 1, len(code) - 1)], 0)[group]
    clipped = np.minimum(counts, np.where(first, second, highest))
    return np.bincount(owner, weights=clipped, minlength=len(lengths)).astype(np.float64), all_.astype(np.int64)


def _coded(grams: NDArray[np.int64], size: int, owners: int) -> NDArray[np.int64]:
    """Return a number for each n-gram, equal for equal ones, small enough to be combined with its owner's number."""
    codes, span = grams[:, 0], size
    for place in range(1, grams.shape[1]):
        if span * size * owners >= _ROOM:
            known, codes = np.unique(codes, return_inverse=True)
            span = len(known)
        codes, span = codes * size + grams[:, place], span * size
    return codes


def _brevity(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return BLEU's brevity penalty: below 1 if the other text of the nearest length (the shorter of two) is longer."""
    counted = Counter(lengths.tolist())
    known = np.array(sorted(counted))
    found = {}
    for length, count in counted.items():
        others = known if count > 1 else known[known != length]
        nearest = min(others.tolist(), key=lambda other: (abs(other - length), other))
        found[length] = 1.0 if length > nearest else math.exp(1 - nearest / length) if length else 0.0
    return np.array([found[length] for length in lengths.tolist()])


def _sample(texts: Sequence[str], drawing: random.Random) -> list[str]:
    """Return texts in random order up to 7,012 words; the last one is cut."""
    taken: list[str] = []
    left = SAMPLE_WORDS
    for text in drawing.sample(texts, len(texts)):
        words = text.split(None, left)  # no more words of a long text than are taken
        if len(words) >= left:
            return [*taken, " ".join(words[:left])]
        taken.append(text)
        left -= len(words)
    return taken


def _counted(texts: Iterable[Sequence[str]], n: int) -> Grams:
    return Counter(chain.from_iterable(zip(*(words[start:] for start in range(n)), strict=False) for words in texts))


def _dist_words(text: str) -> list[str]:
    return [word for word in text.lower().replace(".", "").replace("\n", "").split(" ") if word]


def _ent_words(text: str) -> list[str]:
    return text.lower().rstrip("2").split()
