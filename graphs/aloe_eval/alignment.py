"""Alignment levels and their improvement over the rounds, with bootstrap intervals over dialogues (ALOE, section 3)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs.reporting.statistics import FEWEST, RESAMPLES, Estimate, is_constant, percentiles

Floats: TypeAlias = NDArray[np.float64]

_WEIGHTS_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Alignment:
    """A model's alignment, each figure with its 95 % interval; `None` where it is undefined.

    Attributes:
        levels: AL(k) for k = 1, ..., K; each n is the number of dialogues with a score at that round. A round without a
            level is left out of all other figures.
        average: Their mean; its n, as that of the following, is the number of dialogues with any score.
        rate: IR, the slope of the least-squares line through the levels (equation 3); points per round. `None` with
            fewer than two levels.
        normalized_rate: N-IR, the slope after min-max normalization over **all** rounds. Equation 4 writes a running
            minimum and maximum, but only the global ones give the figures of table 1. `None` for flat levels.
        r_squared: R^2 of the line, the same before and after normalization. `None` for flat levels.
        intercept: The line's value at k = 0.
    """

    levels: tuple[Estimate | None, ...]
    average: Estimate
    rate: Estimate | None
    normalized_rate: Estimate | None
    r_squared: Estimate | None
    intercept: float | None


class Scores:
    """Scores of many dialogues by round, held as one number per dialogue and round."""

    def __init__(self) -> None:
        self._rounds: list[array[float]] = []
        self._dialogues = 0

    def add(self, scores: Mapping[int, float]) -> None:
        """Add one dialogue's scores by round, from 1; rounds without a score do not count in their AL."""
        while len(self._rounds) < max(scores, default=0):
            self._rounds.append(array("d", [np.nan]) * self._dialogues)
        for number, column in enumerate(self._rounds, start=1):
            column.append(scores.get(number, np.nan))
        self._dialogues += 1

    def alignment(self) -> Alignment | None:
        """Return all figures with percentile bootstrap intervals; `None` without any score.

        A resample draws as many dialogues as there are, with replacement, and computes every figure anew: the scores of
        one dialogue stay together, as they depend on each other. A figure that a resample does not have (e.g. the
        N-IR of levels that came out flat) is left out of that figure's interval. The generator's seed is fixed
        and the dialogues are sorted first, so that equal scores give equal intervals in whatever order they come.
        """
        table = self._table()
        if not len(table):
            return None
        levels = _levels(np.ones((1, len(table))), table)
        resampled = _resampled(table)
        rows = [*levels[0]], [*resampled.T]
        counts = np.count_nonzero(~np.isnan(table), axis=0)
        estimates = [
            _estimate(int(n), value, values, scores)
            for n, value, values, scores in zip(counts, *rows, table.T, strict=True)
        ]
        figures = zip(_figures(levels), _figures(resampled), strict=True)
        average, rate, intercept, normalized, r_squared = (
            _estimate(len(table), value[0], values) for value, values in figures
        )
        assert average is not None
        average = replace(average, is_constant=_is_constant(table))
        line = None if intercept is None else intercept.mean
        return Alignment(tuple(estimates), average, rate, normalized, r_squared, line)

    def _table(self) -> Floats:
        """Return scores by dialogue and round, NaN where missing, sorted, without dialogues that have none."""
        if not self._rounds:
            return np.empty((0, 0))
        table = np.column_stack([np.frombuffer(column) for column in self._rounds])
        table = table[~np.isnan(table).all(axis=1)]
        return table[np.lexsort(table.T)]


def _resampled(table: Floats) -> Floats:
    """Return levels by resample and round, in batches whose weights fit in a few megabytes."""
    n = len(table)
    draw = np.random.default_rng(0)
    at_once = max(1, min(RESAMPLES, _WEIGHTS_AT_ONCE // n))
    levels = np.empty((RESAMPLES, table.shape[1]))
    for start in range(0, RESAMPLES, at_once):
        some = min(at_once, RESAMPLES - start)
        # The number of times that each dialogue was drawn.
        weights = np.stack([np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(some)])
        levels[start : start + some] = _levels(weights.astype(np.float64), table)
    return levels


def _levels(weights: Floats, table: Floats) -> Floats:
    """Return AL by row of weights and round; NaN where no dialogue with a weight has a score."""
    present = ~np.isnan(table)
    return _divided(weights @ np.where(present, table, 0.0), weights @ present.astype(np.float64))


def _figures(levels: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return average, slope, intercept, normalized slope and R^2 of each row of levels; NaN where undefined."""
    present = ~np.isnan(levels)
    n = present.sum(axis=1).astype(np.float64)
    rounds = np.where(present, np.arange(1.0, levels.shape[1] + 1), 0.0)
    values = np.where(present, levels, 0.0)
    mean_round, average = _divided(rounds.sum(axis=1), n), _divided(values.sum(axis=1), n)
    x = np.where(present, rounds - mean_round[:, None], 0.0)
    y = np.where(present, values - average[:, None], 0.0)
    xx, xy, yy = (x * x).sum(axis=1), (x * y).sum(axis=1), (y * y).sum(axis=1)
    # Flatness is tested on the range: due to rounding, the sum of squares of equal levels may not be exactly 0.
    spread = np.where(present, levels, -np.inf).max(axis=1) - np.where(present, levels, np.inf).min(axis=1)
    flat = ~(spread > 0)
    slope = _divided(np.where(flat, 0.0, xy), xx)
    intercept = average - slope * mean_round
    normalized = _divided(slope, np.where(flat, 0.0, spread))
    return average, slope, intercept, normalized, _divided(xy * xy, np.where(flat, 0.0, xx * yy))


def _divided(above: Floats, below: Floats) -> Floats:
    """Return the quotient; NaN where the divisor is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)
    return quotient


def _is_constant(scores: Floats) -> bool:
    """Return whether a judge's scores, NaN where missing, are enough and all equal."""
    had = scores[~np.isnan(scores)]
    return bool(had.size) and is_constant(had.size, float(had.min()), float(had.max()))


def _estimate(n: int, value: float, resampled: Floats, scores: Floats | None = None) -> Estimate | None:
    """Return a figure with its interval, `None` if undefined; with fewer than 5 dialogues it has no interval.

    Args:
        n: The number of dialogues.
        value: The figure.
        resampled: The figure of each resample.
        scores: The scores that the figure is the mean of, if it is one.
    """
    had = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(had):
        return None
    constant = None if scores is None else _is_constant(scores)
    if n < FEWEST:
        return Estimate(n, float(value), None, None, constant)
    return Estimate(n, float(value), *percentiles(had), constant)
