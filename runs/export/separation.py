"""The separation of chosen and rejected replies by a classifier of the reply alone, tested on other people."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Estimate

FOLDS = 10
MOST_WORDS = 500

_Z = 1.959963984540054
"""The normal distribution's quantile of 0.975."""

_DECIMALS = 9
"""Scores that differ by less are equal: the order of sums in a matrix product is not a difference between replies."""

_LEAST_SPREAD = 1e-9
"""Standard deviation up to which a feature counts as constant but for rounding."""

_WORD = re.compile(r"[぀-ヿ㐀-鿿฀-๿]|[^\W_]+(?:['’][^\W_]+)*")  # scripts without spaces: one character each
_MARKS = [
    re.compile(mark)
    for mark in (r"\.", ",", "!", r"\?", "[:;]", "…", "[-–—]", "[()]", '["“”„«»]', "[*_#`~|]", r"\n", r"[^\w\s!-~]")
]

Matrix: TypeAlias = NDArray[np.float64]


def lengths(texts: Sequence[str]) -> Matrix:
    """Return the logarithms of each text's numbers of characters and of words, plus one; a row per text."""
    counts: Matrix = np.array([[len(text), len(text.split())] for text in texts], dtype=float)
    return np.log1p(counts)


def punctuation(texts: Sequence[str]) -> Matrix:
    """Return the shares of each kind of mark among each text's characters; a row per text."""
    return np.array([[len(mark.findall(text)) / (len(text) or 1) for mark in _MARKS] for text in texts])


def words(texts: Sequence[str]) -> Matrix:
    """Return which of the commonest words occur in each text, as 0 or 1; a row per text."""
    found = [frozenset(_WORD.findall(text.lower())) for text in texts]
    counts = Counter(word for each in found for word in each)
    commonest = sorted(counts, key=lambda word: (-counts[word], word))[:MOST_WORDS]
    places = {word: place for place, word in enumerate(commonest)}
    matrix = np.zeros((len(texts), len(places)))
    for number, each in enumerate(found):
        matrix[number, [places[word] for word in each if word in places]] = 1
    return matrix


def separation(
    people: Sequence[Sequence[Mapping[bool, str]]], features: Callable[[Sequence[str]], Matrix]
) -> tuple[Estimate | None, Estimate | None]:
    """Return the cross-validated AUC, and the share of prompts whose chosen reply scores higher (ties count half).

    Args:
        people: For each person, the chosen (`True`) and the rejected reply by prompt. A person's replies are
            all in the same fold.
        features: A function from texts to a row of features per text.
    """
    replies = [
        (text, label, person, prompt)
        for person, prompts in enumerate(people)
        for prompt, each in enumerate(prompts)
        for label, text in sorted(each.items())
    ]
    is_chosen, person = (np.array([reply[place] for reply in replies]) for place in (1, 2))
    scores = _scores(features([reply[0] for reply in replies]), is_chosen, person % FOLDS)
    pairs: dict[tuple[int, int], dict[bool, float]] = {}
    for (_, label, of, prompt), score in zip(replies, scores, strict=True):
        pairs.setdefault((of, prompt), {})[label] = score
    whole = [(of, pair[True] - pair[False]) for (of, _), pair in pairs.items() if len(pair) == 2]
    return _auc(scores, is_chosen, person), _share_of_pairs(whole)


def _scores(features: Matrix, is_chosen: NDArray[np.bool_], fold: NDArray[np.int_]) -> Matrix:
    """Return the score of each reply by a linear discriminant fitted on the other folds.

    It is the least-squares fit to labels of 1 and -1 (Bishop, Pattern Recognition and Machine Learning, 4.1.5), with a
    ridge penalty equal to the number of standardised features.
    """
    spread = features.std(axis=0)
    varied = spread > _LEAST_SPREAD
    features = (features - features.mean(axis=0))[:, varied] / spread[varied]
    labels = np.where(is_chosen, 1.0, -1.0)
    scores = np.zeros(len(labels))
    ridge = max(1, features.shape[1]) * np.eye(features.shape[1])
    products, sums = features.T @ features, features.sum(axis=0)
    for test in (fold == number for number in range(FOLDS)):
        held_out, train = features[test], ~test
        mean = (sums - held_out.sum(axis=0)) / train.sum()
        scatter = products - held_out.T @ held_out - train.sum() * np.outer(mean, mean)
        weights = np.linalg.solve(scatter + ridge, features[train].T @ (labels[train] - labels[train].mean()))
        scores[test] = held_out @ weights
    return scores.round(_DECIMALS)


def _auc(scores: Matrix, is_chosen: NDArray[np.bool_], person: NDArray[np.int_]) -> Estimate | None:
    """Return the mean AUC of the folds, weighted by their replies; `None` if no fold has replies of both kinds.

    The variance is that of the influence function (LeDell, Petersen, van der Laan, Electronic Journal of Statistics 9,
    2015), summed by person (Obuchowski, Biometrics 53, 1997).
    """
    placements, weights = np.zeros(len(scores)), np.zeros(len(scores))
    for number in range(FOLDS):
        fold = person % FOLDS == number
        chosen, rejected = fold & is_chosen, fold & ~is_chosen
        if chosen.any() and rejected.any():
            placements[chosen] = _share_below(scores[chosen], scores[rejected])
            placements[rejected] = 1 - _share_below(scores[rejected], scores[chosen])
            weights[chosen], weights[rejected] = fold.sum() / chosen.sum(), fold.sum() / rejected.sum()
    used = weights > 0
    if not used.any():
        return None
    n = int(used.sum())
    auc = float((weights * placements)[is_chosen].sum()) / n
    return _clustered(n, auc, (weights * (placements - auc) / n)[used], person[used])


def _share_of_pairs(pairs: Sequence[tuple[int, float]]) -> Estimate | None:
    """Return the share of people's pairs with a difference above 0; 0 counts half. `None` without pairs."""
    if not pairs:
        return None
    person, differences = np.array([of for of, _ in pairs]), np.array([difference for _, difference in pairs])
    is_higher = (np.sign(differences) + 1) / 2
    share = float(is_higher.mean())
    return _clustered(len(pairs), share, (is_higher - share) / len(pairs), person)


def _clustered(n: int, mean: float, influence: Matrix, person: NDArray[np.int_]) -> Estimate:
    """Return an estimate from 0 to 1 with its interval, from each observation's influence, summed by person.

    The interval is symmetric on the logit scale; there is none at 0 and 1, nor if all people have equal influence.
    """
    people = len(np.unique(person))
    sums = np.bincount(person, influence)
    variance = people / (people - 1) * float(sums @ sums) if people > 1 else 0.0
    if variance == 0 or not 0 < mean < 1:
        return Estimate(n, mean, None, None)
    half = _Z * math.sqrt(variance) / (mean * (1 - mean))
    low, high = (1 / (1 + (1 - mean) / mean * math.exp(-side * half)) for side in (-1, 1))
    return Estimate(n, mean, low, high)


def _share_below(scores: Matrix, others: Matrix) -> Matrix:
    """Return the share of the others that each score exceeds; ties count half."""
    ordered = np.sort(others)
    both = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return both / (2 * len(others))
