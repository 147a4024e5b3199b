"""How varied texts are in their words: Dist-n, Ent-4 and Self-BLEU.

In two ways. `published` follows Joko et al. 2024 (LAPS), whose figures PersonaLens' table 10 continues, with their
quirks: samples of 7,012 words, a last letter cut from some texts, and a Self-BLEU of letters. `varied` measures words,
over the texts as they are.
"""

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
"""Words of a sample, split at white space: as many as the smallest corpus of LAPS' comparison has."""

SAMPLES, SEED = 100, 42
"""How many samples are drawn for each metric, and with which seed."""

MOST_COMPARED = 2_000
"""Texts of which Self-BLEU compares each with all others; of more, so many are drawn."""

_ORDERS = (1, 2, 3, 4)
_ROOM = 2**62
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LexicalDiversity:
    """How varied some texts are.

    Attributes:
        texts: How many there are.
        words: Of how many words, split at white space (`published`) or letters and digits (`varied`).
        dist_1: Different words of all words, 0 to 1; `None`, as for all others, where there is nothing to measure.
        dist_2: Different pairs of words of all pairs.
        ent_4: Entropy of the sequences of four words, in nats.
        self_bleu: How like each text is to the others, 0 to 1.
        compared: Texts that Self-BLEU was made of.
    """

    texts: int
    words: int
    dist_1: float | None
    dist_2: float | None
    ent_4: float | None
    self_bleu: float | None
    compared: int


def published(texts: Sequence[str]) -> LexicalDiversity:
    """Table 10 of PersonaLens, as published figures are made: means over samples of 7,012 words.

    Dist-n: lower case, without full stops and line breaks, split at single blanks. Ent-4: `lower().rstrip("2").split()`
    (theirs). Self-BLEU: BLEU-4 of each text's letters against those of all others of the sample.
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
    """The same of words in lower case, over all texts; Self-BLEU over at most 2,000 of them, drawn with a seed."""
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
    """Different n-grams of all n-grams (Li et al. 2016); none goes from one text to the next."""
    grams = _counted(texts, n)
    return len(grams) / grams.total() if grams else None


def entropy(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Entropy of the n-grams' counts, in nats (Zhang et al. 2018)."""
    grams = _counted(texts, n)
    total = grams.total()
    return math.fsum(count / total * math.log(total / count) for count in grams.values()) if total else None


def self_bleu(texts: Sequence[Sequence[str]]) -> float | None:
    """The mean BLEU-4 of each text against all others (Zhu et al. 2018); `None` of fewer than two.

    Weights 1/4, the reference of the closest length, and 0.1 in place of no match (Chen and Cherry 2014, method 1).
    What a text's n-gram may count for at most is the highest count of any other text: of each n-gram the two highest
    counts are enough to know that, so that it takes time in proportion to the texts.

    Args:
        texts: Each a sequence of words, or a string for its letters.
    """
    if len(texts) < 2:
        return None
    ids: dict[str, int] = {}
    letters = [np.fromiter((ids.setdefault(each, len(ids)) for each in text), np.int64) for text in texts]
    lengths = np.array([len(text) for text in letters])
    logs = np.zeros(len(texts))
    has_words = np.ones(len(texts), dtype=bool)
    for n in _ORDERS:
        matches, all_ = _matches(letters, lengths, n, len(ids))
        has_words &= (matches > 0) if n == 1 else True
        logs += np.log(np.where(matches > 0, matches, 0.1) / np.maximum(all_, 1)) / len(_ORDERS)
    scores = np.where(has_words, np.exp(logs) * _brevity(lengths), 0.0)
    return float(scores.mean())


def _matches(
    texts: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64], n: int, size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Of each text: how many of its n-grams others have as well, counted no oftener than they do; and how many it has.

    Args:
        texts: Sequences of numbers below `size`.
        lengths: Of each.
        n: The order.
        size: Of the alphabet.
    """
    all_ = np.maximum(lengths - n + 1, 0)
    grams = [_windows(text, n) for text in texts if len(text) >= n]
    if not grams:
        return np.zeros(len(texts)), all_
    owners = np.repeat(np.arange(len(texts)), all_)
    codes = _coded(np.concatenate(grams), size, len(texts))
    pairs, counts = np.unique(codes * len(texts) + owners, return_counts=True)
    code, owner = pairs // len(texts), pairs % len(texts)
    order = np.lexsort((-counts, code))
    code, owner, counts = code[order], owner[order], counts[order]
    first = np.r_[True, code[1:] != code[:-1]]
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    sizes = np.diff(np.r_[starts, len(code)])
    highest = counts[starts][group]
    second = np.where(sizes > 1, counts[np.minimum(starts + 1, len(code) - 1)], 0)[group]
    clipped = np.minimum(counts, np.where(first, second, highest))
    return np.bincount(owner, weights=clipped, minlength=len(texts)).astype(np.float64), all_.astype(np.int64)


def _windows(text: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return np.lib.stride_tricks.sliding_window_view(text, n)


def _coded(grams: NDArray[np.int64], size: int, owners: int) -> NDArray[np.int64]:
    """A number for each n-gram, equal for equal ones, that leaves room for the number of its owner beside it."""
    codes, span = grams[:, 0], size
    for place in range(1, grams.shape[1]):
        if span * size * owners >= _ROOM:
            known, codes = np.unique(codes, return_inverse=True)
            span = len(known)
        codes, span = codes * size + grams[:, place], span * size
    return codes


def _brevity(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """BLEU's penalty: the other text whose length is nearest (the shorter of two) is longer."""
    counted = Counter(lengths.tolist())
    known = np.array(sorted(counted))
    found = {}
    for length, count in counted.items():
        others = known if count > 1 else known[known != length]
        nearest = min(others.tolist(), key=lambda other: (abs(other - length), other))
        found[length] = 1.0 if length > nearest else math.exp(1 - nearest / length) if length else 0.0
    return np.array([found[length] for length in lengths.tolist()])


def _sample(texts: Sequence[str], drawing: random.Random) -> list[str]:
    """Texts in a random order until there are 7,012 words; the last one is cut."""
    taken: list[str] = []
    left = SAMPLE_WORDS
    for text in drawing.sample(texts, len(texts)):
        words = text.split(None, left)  # no more of a long text than is taken
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
