"""Means with their uncertainty, from counts: nothing that grows with the number of dialogues is held."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, its number of observations and the ends of its 95 % bootstrap interval."""

    n: int
    mean: float
    low: float
    high: float


class Tally:
    """How often each score was given. Scores are few, so a million of them fit in a handful of counts."""

    def __init__(self) -> None:
        self.counts: Counter[float] = Counter()

    def add(self, score: float) -> None:
        """Count one score (a verdict counts as 1 or 0)."""
        self.counts[float(score)] += 1

    @property
    def n(self) -> int:
        """How many scores were counted."""
        return self.counts.total()

    def estimate(self) -> Estimate | None:
        """The mean and its percentile bootstrap interval; `None` without observations.

        Resampling n observations is drawing their counts from a multinomial distribution, which takes the same time
        for any n. The generator's seed is fixed, so that equal scores give equal intervals.
        """
        n = self.n
        if n == 0:
            return None
        values = np.array(sorted(self.counts))
        shares = np.array([self.counts[float(value)] for value in values]) / n
        mean = float(values @ shares)
        means = np.random.default_rng(0).multinomial(n, shares, size=RESAMPLES) @ values / n
        tail = (1.0 - LEVEL) / 2.0
        low, high = np.quantile(means, [tail, 1.0 - tail])
        return Estimate(n=n, mean=mean, low=float(low), high=float(high))
