"""Calibrated means: many scores of a judge and few labels of people, combined by prediction-powered inference.

The items are divided into strata by the judge's score. The estimate is the mean of the labels of each stratum, weighted
with the stratum's share of all items: the estimator of PPI++ (arXiv 2311.01453) with the tuned weight for verdicts, and
its stratified form (arXiv 2406.04291) for scores. It is unbiased however the judge errs, if labels are drawn at random
among items of equal scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

QUANTILE = 2.0
"""The quantile for Wilson's intervals, as in Agresti and Coull (1998); with 1.96, their coverage falls to 93 %."""
_PRIOR = 2.0
"""Number of labels, from the distribution of all labels, that are added to each stratum when its variance is estimated,
so that a judge that rarely errs does not seem faultless because a few labels all agree with it."""
_NO_SPREAD = 1e-12
"""Maximum variance, or sum of squared deviations, that counts as none, which allows for rounding errors."""
_PER_STRATUM = 10
"""Minimum number of labels for each stratum of scores; with fewer, adjacent scores are merged."""


@dataclass(frozen=True, slots=True)
class Strata:
    """The counts of items and labels in each stratum. Strata are the last axis; other axes are independent data sets.

    Attributes:
        items: The number of judged items.
        labels: The number of labelled items among them; if their weights differ, Kish's effective number.
        sums: The sum of the labels, on a scale from 0 to 1.
        squares: The sum of their squares.
    """

    items: Floats
    labels: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def unweighted(cls, labels: Sequence[float]) -> Strata:
        """Return a single stratum that consists of labelled items only."""
        given = np.asarray(labels, dtype=np.float64)
        number = np.array([float(given.size)])
        return cls(number, number, np.array([given.sum()]), np.array([(given**2).sum()]))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Estimates on a scale from 0 to 1, one for each data set.

    Attributes:
        mean: The calibrated mean.
        low: The lower end of its interval.
        high: The upper end.
        alone: The mean of the labels, as they are weighted in the strata, without the judge.
        alone_low: The lower end of its interval, by the same method.
        alone_high: The upper end.
        effective: The number of labels that would be needed for the same precision without the judge.
        fixed: The share of the variance that more labels cannot reduce, as it depends on the number of items.
    """

    mean: Floats
    low: Floats
    high: Floats
    alone: Floats
    alone_low: Floats
    alone_high: Floats
    effective: Floats
    fixed: Floats


def calibrate(
    strata: Strata, *, step: float = 1.0, quantile: float = QUANTILE, designs: tuple[float, float, float] = (1, 1, 1)
) -> Calibration:
    """Estimate means from labels and a judge's scores.

    The variance is V = sum(w_h^2 s_h^2 / n_h) + sum(w_h (m_h - m)^2) / N for shares w_h of N items, and means m_h and
    variances s_h^2 of n_h labels in stratum h. If V exceeds the variance of the labels alone, s^2 / n, the latter is
    used (in the limit, PPI++ is never worse). The interval is Wilson's for the mean and the effective number of labels
    n* = s^2 / V, multiplied by m (1 - m) / s^2 if labels vary less than verdicts with the same mean.

    Args:
        strata: The data.
        step: The distance between adjacent labels.
        quantile: The quantile of the interval.
        designs: The design effects of clustered items, at least 1, by which three variances are multiplied: of the
            labels, of the labels' differences from the means of their strata, and of these means over all items.
    """
    of_labels, of_residuals, of_items = designs
    total = strata.labels.sum(-1)
    weights = strata.items / strata.items.sum(-1, keepdims=True)
    alone = np.clip(strata.sums.sum(-1) / total, 0.0, 1.0)
    second = strata.squares.sum(-1) / total
    has_all = (strata.labels > 0).all(-1)
    labels = np.maximum(strata.labels, 1)
    mean = np.where(has_all, np.clip((weights * strata.sums / labels).sum(-1), 0.0, 1.0), alone)
    middles = (strata.sums + _PRIOR * alone[..., None]) / (labels + _PRIOR)
    spreads = (strata.squares + _PRIOR * second[..., None]) / (labels + _PRIOR) - middles**2
    between = (weights * (middles - (weights * middles).sum(-1, keepdims=True)) ** 2).sum(-1)
    fixed = of_items * between / strata.items.sum(-1)
    variance = of_residuals * (weights**2 * spreads / labels).sum(-1) + fixed
    own_spread = np.where(second - alone**2 > _NO_SPREAD, second - alone**2, 0.0)
    of_alone = of_labels * own_spread / total
    ratio = np.where(has_all & (of_alone > 0), np.minimum(variance / np.where(of_alone > 0, of_alone, 1), 1), 1.0)
    one_differs = step**2 * (total - 1) / total**2
    spread = np.maximum(own_spread, np.where(alone * (1 - alone) > 0, one_differs, 0.0))
    scatter = np.maximum(alone * (1 - alone) / np.where(spread > 0, spread, 1), 1)
    low, high = _wilson(mean, scatter * total / of_labels / ratio, quantile)
    alone_low, alone_high = _wilson(alone, scatter * total / of_labels, quantile)
    share = np.where(ratio * of_alone > 0, fixed / np.where(of_alone > 0, ratio * of_alone, 1), 0.0)
    return Calibration(mean, low, high, alone, alone_low, alone_high, total / ratio, np.minimum(share, 1))


def _wilson(share: Floats, n: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's score interval (JASA 22, 1927)."""
    spread = quantile**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * np.sqrt(np.maximum(share * (1 - share), 0) / n + spread / (4 * n))
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


def more_labels(found: Calibration, labels: int, items: int) -> int | None:
    """Return how many further labels would halve the confidence interval; `None` if too few items remain.

    Args:
        found: The calibration of one data set.
        labels: The number of labels.
        items: The number of items.
    """
    fixed = float(found.fixed)
    if fixed >= 0.25:
        return None
    needed = int(np.ceil(labels * (1 - fixed) / (0.25 - fixed)))
    return needed - labels if needed <= items else None


def stratified(
    items: Mapping[tuple[float, ...], int], labels: Mapping[tuple[float, ...], Sequence[float]], *, most: int
) -> tuple[Strata, list[list[tuple[float, ...]]]]:
    """Return the strata of items and labels by the judge's score, and the scores of each stratum.

    A score without labels is merged with the nearest score that has labels. Then adjacent strata are merged, beginning
    with those that have the fewest labels, until there are at most `most`. Labels keep the weight of their score.

    Args:
        items: The number of items by score. A score is a tuple, by which the scores are ordered.
        labels: The labels, from 0 to 1, by score.
        most: Maximum number of strata, at least 1.
    """
    keys = sorted(items)
    groups = [[key] for key in keys if labels.get(key)]
    for key in keys:
        if not labels.get(key):
            nearest = min(groups, key=lambda group: min(abs(np.subtract(key, each)).sum() for each in group))
            nearest.append(key)
    while len(groups) > most:
        sizes = [sum(len(labels.get(key, ())) for key in group) for group in groups]
        place = min(range(len(groups) - 1), key=lambda at: sizes[at] + sizes[at + 1])
        groups[place] += groups.pop(place + 1)
    columns = [_stratum(group, items, labels) for group in groups]
    return Strata(*np.array(columns, dtype=np.float64).T), groups


def _stratum(
    scores: Sequence[tuple[float, ...]],
    items: Mapping[tuple[float, ...], int],
    labels: Mapping[tuple[float, ...], Sequence[float]],
) -> tuple[float, float, float, float]:
    """Return the items, effective labels, sum and sum of squares of merged scores."""
    number = sum(items[score] for score in scores)
    unlabelled = sum(items[score] for score in scores if not labels.get(score))
    share = number / (number - unlabelled)
    weights = {score: share * items[score] / len(labels[score]) for score in scores if labels.get(score)}
    given = np.concatenate([np.asarray(labels[score], dtype=np.float64) for score in weights])
    weight = np.concatenate([np.full(len(labels[score]), each) for score, each in weights.items()])
    effective = weight.sum() ** 2 / (weight**2).sum()
    weight *= effective / weight.sum()
    return number, effective, (weight * given).sum(), (weight * given**2).sum()


def most_strata(labels: int) -> int:
    """Return the maximum number of strata for a number of labels."""
    return max(2, labels // _PER_STRATUM)


def design_effect(values: Iterable[tuple[Hashable, float]], mean: float) -> float:
    """Return the design effect of grouped values: the variance of their mean relative to that of independent values.

    Args:
        values: Pairs of a value's unit and the value.
        mean: The mean of the values.
    """
    sums: dict[Hashable, float] = defaultdict(float)
    squares = 0.0
    for unit, value in values:
        sums[unit] += value - mean
        squares += (value - mean) ** 2
    return max(1.0, sum(each**2 for each in sums.values()) / squares) if squares > _NO_SPREAD else 1.0
