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
_PRIOR_LABELS = 2.0
"""Number of labels, from the distribution of all labels, that are added to each stratum when its variance is estimated,
so that a judge that rarely errs does not seem faultless because a few labels all agree with it."""
_VARIANCE_TOLERANCE = 1e-12
"""Maximum variance, or sum of squared deviations, that counts as none, which allows for rounding errors."""
_MIN_LABELS_PER_STRATUM = 10
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
        values = np.asarray(labels, dtype=np.float64)
        number = np.array([float(values.size)])
        return cls(number, number, np.array([values.sum()]), np.array([(values**2).sum()]))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Estimates on a scale from 0 to 1, one for each data set.

    Attributes:
        mean: The calibrated mean.
        low: The lower end of its interval.
        high: The upper end.
        labels_only: The mean of the labels, as they are weighted in the strata, without the judge.
        labels_only_low: The lower end of its interval, by the same method.
        labels_only_high: The upper end.
        effective_labels: The number of labels that would be needed for the same precision without the judge.
        fixed_share: The share of the variance that more labels cannot reduce, as it depends on the number of items.
    """

    mean: Floats
    low: Floats
    high: Floats
    labels_only: Floats
    labels_only_low: Floats
    labels_only_high: Floats
    effective_labels: Floats
    fixed_share: Floats


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
    label_effect, residual_effect, item_effect = designs
    total = strata.labels.sum(-1)
    weights = strata.items / strata.items.sum(-1, keepdims=True)
    plain = np.clip(strata.sums.sum(-1) / total, 0.0, 1.0)
    mean_square = strata.squares.sum(-1) / total
    all_labelled = (strata.labels > 0).all(-1)
    labels = np.maximum(strata.labels, 1)
    mean = np.where(all_labelled, np.clip((weights * strata.sums / labels).sum(-1), 0.0, 1.0), plain)
    means = (strata.sums + _PRIOR_LABELS * plain[..., None]) / (labels + _PRIOR_LABELS)
    variances = (strata.squares + _PRIOR_LABELS * mean_square[..., None]) / (labels + _PRIOR_LABELS) - means**2
    between = (weights * (means - (weights * means).sum(-1, keepdims=True)) ** 2).sum(-1)
    fixed_variance = item_effect * between / strata.items.sum(-1)
    variance = residual_effect * (weights**2 * variances / labels).sum(-1) + fixed_variance
    own_variance = np.where(mean_square - plain**2 > _VARIANCE_TOLERANCE, mean_square - plain**2, 0.0)
    plain_variance = label_effect * own_variance / total
    ratio = np.where(
        all_labelled & (plain_variance > 0),
        np.minimum(variance / np.where(plain_variance > 0, plain_variance, 1), 1),
        1.0,
    )
    min_variance = step**2 * (total - 1) / total**2
    spread = np.maximum(own_variance, np.where(plain * (1 - plain) > 0, min_variance, 0.0))
    scatter = np.maximum(plain * (1 - plain) / np.where(spread > 0, spread, 1), 1)
    low, high = _wilson(mean, scatter * total / label_effect / ratio, quantile)
    plain_low, plain_high = _wilson(plain, scatter * total / label_effect, quantile)
    fixed_share = np.where(
        ratio * plain_variance > 0,
        fixed_variance / np.where(plain_variance > 0, ratio * plain_variance, 1),
        0.0,
    )
    return Calibration(mean, low, high, plain, plain_low, plain_high, total / ratio, np.minimum(fixed_share, 1))


def _wilson(share: Floats, n: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's score interval (JASA 22, 1927)."""
    spread = quantile**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * np.sqrt(np.maximum(share * (1 - share), 0) / n + spread / (4 * n))
    return np.maximum(0.0, middle - half), np.minimum(1.0, middle + half)


def labels_to_halve_interval(calibration: Calibration, labels: int, items: int) -> int | None:
    """Return how many further labels would halve the confidence interval; `None` if too few items remain.

    Args:
        calibration: The calibration of one data set.
        labels: The number of labels.
        items: The number of items.
    """
    fixed_share = float(calibration.fixed_share)
    if fixed_share >= 0.25:
        return None
    needed = int(np.ceil(labels * (1 - fixed_share) / (0.25 - fixed_share)))
    return needed - labels if needed <= items else None


def stratify(
    items: Mapping[tuple[float, ...], int], labels: Mapping[tuple[float, ...], Sequence[float]], *, max_strata: int
) -> tuple[Strata, list[list[tuple[float, ...]]]]:
    """Return the strata of items and labels by the judge's score, and the scores of each stratum.

    A score without labels is merged with the nearest score that has labels. Then adjacent strata are merged, beginning
    with those that have the fewest labels, until there are at most `most`. Labels keep the weight of their score.

    Args:
        items: The number of items by score. A score is a tuple, by which the scores are ordered.
        labels: The labels, from 0 to 1, by score.
        max_strata: Maximum number of strata, at least 1.
    """
    keys = sorted(items)
    groups = [[key] for key in keys if labels.get(key)]
    for key in keys:
        if not labels.get(key):
            nearest = min(groups, key=lambda group: min(abs(np.subtract(key, each)).sum() for each in group))
            nearest.append(key)
    while len(groups) > max_strata:
        sizes = [sum(len(labels.get(key, ())) for key in group) for group in groups]
        index = min(range(len(groups) - 1), key=lambda at: sizes[at] + sizes[at + 1])
        groups[index] += groups.pop(index + 1)
    columns = [_merge_scores(group, items, labels) for group in groups]
    return Strata(*np.array(columns, dtype=np.float64).T), groups


def _merge_scores(
    scores: Sequence[tuple[float, ...]],
    items: Mapping[tuple[float, ...], int],
    labels: Mapping[tuple[float, ...], Sequence[float]],
) -> tuple[float, float, float, float]:
    """Return the items, effective labels, sum and sum of squares of merged scores."""
    items_count = sum(items[score] for score in scores)
    unlabelled = sum(items[score] for score in scores if not labels.get(score))
    share = items_count / (items_count - unlabelled)
    weights = {score: share * items[score] / len(labels[score]) for score in scores if labels.get(score)}
    values = np.concatenate([np.asarray(labels[score], dtype=np.float64) for score in weights])
    weight = np.concatenate([np.full(len(labels[score]), each) for score, each in weights.items()])
    effective = weight.sum() ** 2 / (weight**2).sum()
    weight *= effective / weight.sum()
    return items_count, effective, (weight * values).sum(), (weight * values**2).sum()


def strata_limit(labels: int) -> int:
    """Return the maximum number of strata for a number of labels."""
    return max(2, labels // _MIN_LABELS_PER_STRATUM)


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
    return max(1.0, sum(each**2 for each in sums.values()) / squares) if squares > _VARIANCE_TOLERANCE else 1.0
