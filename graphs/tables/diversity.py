"""Lexical diversity of texts (distinct n-grams, entropy, Self-BLEU), and openings that nearly repeat earlier ones."""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from dialoom.graphs.outcome import USER, Outcome
from dialoom.graphs.tables.table import Table
from dialoom.text import CHARACTER, UNIT

if TYPE_CHECKING:  # functions import it, as few runs need it
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_WORDS = 7_012
"""Number of words in a sample, split on whitespace: the size of the smallest corpus in the LAPS paper's comparison.
"""

SAMPLES, SEED = 100, 42
"""Number of samples for each metric, and the seed with which they are drawn."""

MAX_COMPARED_TEXTS = 2_000
"""Maximum number of texts that Self-BLEU compares. If there are more texts, a sample is drawn."""

_NGRAM_ORDERS = (1, 2, 3, 4)
_MAX_CODE = 2**62


@dataclass(frozen=True, slots=True)
class LexicalDiversity:
    """The lexical diversity of texts.

    Attributes:
        texts: Number of texts.
        words: Number of words: split on whitespace (`compute_published_diversity`), or sequences of letters and digits
            (`compute_diversity`), where each character of Chinese or Japanese is a word.
        dist_1: Share of distinct words among all words, 0 to 1. This and the next three figures are `None` if there is
            nothing to measure.
        dist_2: Share of distinct pairs of words among all pairs.
        ent_4: Entropy of the sequences of four words, in nats.
        self_bleu: Mean similarity of each text to the other texts, 0 to 1.
        compared: Number of texts that Self-BLEU compares.
    """

    texts: int
    words: int
    dist_1: float | None
    dist_2: float | None
    ent_4: float | None
    self_bleu: float | None
    compared: int


def compute_published_diversity(texts: Sequence[str]) -> LexicalDiversity:
    """Return the figures as in table 10 of PersonaLens: means over samples of 7,012 words.

    Dist-n uses lower-case texts without full stops and line breaks, split at single spaces. Ent-4 uses
    `lower().rstrip("2").split()`, as in the paper's code. Self-BLEU is BLEU-4 of each text's characters against those
    of all other texts of the sample.
    """
    if not (words := sum(len(text.split()) for text in texts)):
        return LexicalDiversity(len(texts), 0, None, None, None, None, 0)

    def mean(metric: Callable[[Sequence[str]], float | None]) -> float | None:
        if words <= SAMPLE_WORDS:  # every sample would contain all texts
            return metric(texts)
        rng = random.Random(SEED)
        found = [metric(_draw_sample(texts, rng)) for _ in range(SAMPLES)]
        return fmean(figure for figure in found if figure is not None) if any(f is not None for f in found) else None

    return LexicalDiversity(
        len(texts),
        words,
        mean(lambda sample: distinct_share(map(_split_dist_words, sample), 1)),
        mean(lambda sample: distinct_share(map(_split_dist_words, sample), 2)),
        mean(lambda sample: entropy(map(_split_ent_words, sample), 4)),
        mean(lambda sample: self_bleu([text.lower() for text in sample])),
        len(texts),
    )


def compute_diversity(texts: Sequence[str]) -> LexicalDiversity:
    """Return the figures of lower-case words over all texts. Self-BLEU uses a seeded sample of at most 2,000 texts."""
    split = [tuple(UNIT.findall(text.lower())) for text in texts]
    split = [words for words in split if words]
    chosen = split if len(split) <= MAX_COMPARED_TEXTS else random.Random(SEED).sample(split, MAX_COMPARED_TEXTS)
    return LexicalDiversity(
        len(texts),
        sum(map(len, split)),
        distinct_share(split, 1),
        distinct_share(split, 2),
        entropy(split, 4),
        self_bleu(chosen),
        len(chosen),
    )


def distinct_share(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Return the share of distinct n-grams among all n-grams (Li et al. 2016). No n-gram spans two texts."""
    grams = _count_ngrams(texts, n)
    return len(grams) / grams.total() if grams else None


def entropy(texts: Iterable[Sequence[str]], n: int) -> float | None:
    """Return the entropy of the n-grams' counts, in nats (Zhang et al. 2018)."""
    grams = _count_ngrams(texts, n)
    total = grams.total()
    return math.fsum(count / total * math.log(total / count) for count in grams.values()) if total else None


def self_bleu(texts: Sequence[Sequence[str]]) -> float | None:
    """Return the mean BLEU-4 of each text against all others (Zhu et al. 2018); `None` for fewer than two texts.

    All weights are 1/4, the reference length is the closest one, and 0.1 replaces a count of 0 (Chen and Cherry 2014,
    method 1). An n-gram's count is clipped to its highest count in any other text. The two highest counts of each
    n-gram are enough to compute this, so the time is linear in the texts' length.

    Args:
        texts: The texts, each as a sequence of words, or as a string to compare characters.
    """
    import numpy as np

    if len(texts) < 2:
        return None
    ids = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    words = np.fromiter(map(ids.__getitem__, chain.from_iterable(texts)), np.int64)
    lengths = np.array([len(text) for text in texts])
    logs = np.zeros(len(texts))
    has_words = np.ones(len(texts), dtype=bool)
    for n in _NGRAM_ORDERS:
        matches, totals = _count_matches(words, lengths, n, len(ids))
        has_words &= (matches > 0) if n == 1 else True
        logs += np.log(np.where(matches > 0, matches, 0.1) / np.maximum(totals, 1)) / len(_NGRAM_ORDERS)
    return float(np.where(has_words, np.exp(logs) * _brevity_penalty(lengths), 0.0).mean())


def _count_matches(
    words: NDArray[np.int64], lengths: NDArray[np.int64], n: int, size: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return, for each text, the clipped number of its n-grams that occur in others, and the number of all its n-grams.

    Args:
        words: The words of all texts, one text after another, as numbers below `size`.
        lengths: The length of each text.
        n: The length of the n-grams.
        size: The number of different words.
    """
    import numpy as np

    totals = np.maximum(lengths - n + 1, 0)
    starts = np.flatnonzero(np.arange(len(words)) + n <= np.repeat(np.cumsum(lengths), lengths))
    if not len(starts):
        return np.zeros(len(lengths)), totals
    owners = np.repeat(np.arange(len(lengths)), lengths)[starts]
    codes = _encode_ngrams(np.lib.stride_tricks.sliding_window_view(words, n)[starts], size, len(lengths))
    pairs, counts = np.unique(codes * len(lengths) + owners, return_counts=True)
    code, owner = pairs // len(lengths), pairs % len(lengths)
    order = np.lexsort((-counts, code))
    code, owner, counts = code[order], owner[order], counts[order]
    first = np.r_[True, code[1:] != code[:-1]]
    starts = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    second = np.where(np.diff(np.r_[starts, len(code)]) > 1, counts[np.minimum(starts + 1, len(code) - 1)], 0)[group]
    clipped = np.minimum(counts, np.where(first, second, counts[starts][group]))
    return np.bincount(owner, weights=clipped, minlength=len(lengths)).astype(np.float64), totals.astype(np.int64)


def _encode_ngrams(ngrams: NDArray[np.int64], size: int, owners: int) -> NDArray[np.int64]:
    """Return a number for each n-gram.

    Equal n-grams get equal numbers, small enough to combine with a text's number.
    """
    import numpy as np

    codes, span = ngrams[:, 0], size
    for place in range(1, ngrams.shape[1]):
        if span * size * owners >= _MAX_CODE:
            distinct_codes, codes = np.unique(codes, return_inverse=True)
            span = len(distinct_codes)
        codes, span = codes * size + ngrams[:, place], span * size
    return codes


def _brevity_penalty(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return BLEU's brevity penalty.

    The penalty is below 1 if, of the other texts, the one whose length is nearest is longer. If two lengths are equally
    near, the shorter text counts.
    """
    import numpy as np

    counted = Counter(lengths.tolist())
    known = np.array(sorted(counted))
    penalties = {}
    for length, count in counted.items():
        others = known if count > 1 else known[known != length]
        nearest = min(others.tolist(), key=lambda other: (abs(other - length), other))
        penalties[length] = 1.0 if length > nearest else math.exp(1 - nearest / length) if length else 0.0
    return np.array([penalties[length] for length in lengths.tolist()])


def _draw_sample(texts: Sequence[str], rng: random.Random) -> list[str]:
    """Return texts in random order, up to 7,012 words in total. The last text is cut to fit."""
    sample: list[str] = []
    left = SAMPLE_WORDS
    for text in rng.sample(texts, len(texts)):
        words = text.split(None, left)  # a long text is split only as far as its words are used
        if len(words) >= left:
            return [*sample, " ".join(words[:left])]
        sample.append(text)
        left -= len(words)
    return sample


def _count_ngrams(texts: Iterable[Sequence[str]], n: int) -> Counter[tuple[str, ...]]:
    return Counter(chain.from_iterable(zip(*(words[start:] for start in range(n)), strict=False) for words in texts))


def _split_dist_words(text: str) -> list[str]:
    return [word for word in text.lower().replace(".", "").replace("\n", "").split(" ") if word]


def _split_ent_words(text: str) -> list[str]:
    return text.lower().rstrip("2").split()


MAX_EARLIER_OPENINGS = 500
"""Maximum number of earlier openings of the same task with which an opening is compared. The latest ones are used."""

_OPENING_WORD = re.compile(rf"{CHARACTER}|(?:(?!{CHARACTER})\w)+")
_OPENING_COUNTS = (10, 30, 100, 300, 1000, 3000)


@dataclass(frozen=True, slots=True)
class Opening:
    """The user's first message of a finished conversation.

    Attributes:
        position: The scenario's position in the plan.
        task: The task, as text.
        text: The message.
        redraw_count: The number of times that the conversation has been played again.
    """

    position: int
    task: str
    text: str
    redraw_count: int


def find_opening(outcome: Outcome) -> str:
    """Return the user's first message; empty if there is none."""
    return next((line.content for line in outcome.messages if line.role == USER), "")


def find_repeated_openings(openings: Iterable[Opening], redraws: int, similarity: float) -> list[int]:
    """Return the positions of the openings that nearly repeat an earlier opening of the same task.

    Two openings are nearly the same if the Jaccard index of their pairs of adjacent words is at least `similarity`.
    Each character of Chinese or Japanese is a word.

    Args:
        openings: The openings, in the order of the plan.
        redraws: Maximum number of times to play a conversation again. Conversations that have reached it are left as
            they are.
        similarity: The smallest Jaccard index of a near-repetition, above 0 and at most 1.
    """
    earlier: dict[str, deque[frozenset[tuple[str, str]]]] = defaultdict(lambda: deque(maxlen=MAX_EARLIER_OPENINGS))
    positions: list[int] = []
    for opening in openings:
        pairs = frozenset(pairwise(["", *_OPENING_WORD.findall(opening.text.lower()), ""]))
        earlier_pairs = earlier[opening.task]
        if opening.redraw_count < redraws and any(
            len(pairs & others) >= similarity * len(pairs | others) for others in earlier_pairs
        ):
            positions.append(opening.position)
        else:
            earlier_pairs.append(pairs)
    return positions


def build_variety_table(openings: list[str]) -> Table:
    """Return a table of the variety of the first n openings, for increasing n.

    Args:
        openings: The users' first messages, in the order of the plan.
    """
    columns = ["n", "distinct openings", "Dist-1", "Dist-2", "Self-BLEU"]
    table = Table("variety", "Variety of openings", columns, decimals=dict.fromkeys(columns[2:], 3))
    for size in [*(size for size in _OPENING_COUNTS if size < len(openings)), len(openings)]:
        first = openings[:size]
        figures = compute_diversity(first)
        distinct = len({" ".join(_OPENING_WORD.findall(text.lower())) for text in first})
        table.rows.append([size, distinct, figures.dist_1, figures.dist_2, figures.self_bleu])
    table.notes.append(
        "Variety of the users' first messages, in the order of the plan. Dist-n: share of distinct n-grams among all, "
        "which falls with n; "
        f"Self-BLEU: how similar an opening is to the others (of at most {MAX_COMPARED_TEXTS:,})."
    )
    return table
