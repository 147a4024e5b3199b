"""Means with their uncertainty, from counts: what is held grows with the people, not with their dialogues."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95
FEWEST = 5
"""Of the scores of fewer people no interval is made: resampling them says next to nothing. Nor are fewer equal scores
of a judge called constant."""

_Z = 1.959963984540054
"""The normal distribution's quantile of 0.975."""


def intervals(units: str = "people") -> str:
    """What a table says of the intervals of its tallies.

    Args:
        units: What is resampled, in the plural: those of which each was told apart when scores were added.
    """
    return (
        f"In brackets: 95 % intervals. Of verdicts they are Wilson's; of means they are bootstrapped over {units}, as "
        f"scores of one and the same are not independent (none for fewer than {FEWEST} {units})."
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        n: The number of observations.
        mean: Their mean.
        low: The lower end of the interval; `None` where there is no interval.
        high: The upper end.
        is_constant: Whether it is of at least `FEWEST` scores of a judge, all equal; `None` if of no judge's scores.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    is_constant: bool | None = None


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences with its interval, and how easily chance alone would make as much of them.

    Attributes:
        estimate: The mean, over how many pairs, and its 95 % interval.
        p: Twice the smaller share of resampled means on one side of 0; `None` where there is no interval.
    """

    estimate: Estimate
    p: float | None


class Tally:
    """Scores or verdicts of people, counted.

    Args:
        judged: Whether a judge gave them: then an estimate says whether all are equal.
    """

    def __init__(self, *, judged: bool = False) -> None:
        self._by_person: dict[Hashable, tuple[int, float]] = {}
        self._alone: Counter[float] = Counter()
        self._is_of_verdicts = True
        self._is_judged = judged
        self._range: tuple[float, float] | None = None

    def add(self, score: bool | float, person: Hashable = None) -> None:
        """Count a score.

        Args:
            score: A score, or a verdict, which counts as 1 or 0.
            person: Whose dialogue was scored; `None` if no other score is of the same person.
        """
        self._is_of_verdicts &= isinstance(score, bool)
        low, high = self._range or (score, score)
        self._range = min(low, score), max(high, score)
        if person is None:
            self._alone[float(score)] += 1
        else:
            count, total = self._by_person.get(person, (0, 0.0))
            self._by_person[person] = count + 1, total + float(score)

    @property
    def n(self) -> int:
        """How many scores were counted."""
        return self._alone.total() + sum(count for count, _ in self._by_person.values())

    def estimate(self) -> Estimate | None:
        """Return the mean with its interval; `None` without observations.

        Verdicts: Wilson's score interval (E. B. Wilson, JASA 22, 1927), which has a width at 0 and at 1 as well.
        Scores: the percentile bootstrap of their mean, with people resampled and all scores of a person taken
        together. Resampling is drawing from a multinomial distribution how often each sort of person (as many scores
        of the same sum) comes up. The generator's seed is fixed, so that equal scores give equal intervals.
        """
        if not self.n:
            return None
        people = Counter(self._by_person.values())
        people.update({(1, score): count for score, count in self._alone.items()})
        total = sum(score * count for (_, score), count in people.items())
        mean = total / self.n
        low, high = wilson(mean, self.n) if self._is_of_verdicts else _bootstrap(people)
        constant = is_constant(self.n, *self._range) if self._is_judged and self._range else None
        return Estimate(self.n, mean, low, high, constant)


def is_constant(n: int, lowest: float, highest: float) -> bool:
    """Return whether a judge's n scores, of which these are the lowest and the highest, are enough and all equal."""
    return n >= FEWEST and lowest == highest


def paired_difference(differences: Iterable[tuple[Hashable, float]]) -> PairedDifference | None:
    """The mean of differences between the two scores of each pair; `None` without pairs.

    Interval and p are the percentile bootstrap's, with people resampled and all pairs of a person taken together. The
    generator's seed is fixed.

    Args:
        differences: Whose pair it is, and how much more its second score is than its first.
    """
    by_person: dict[Hashable, tuple[int, float]] = {}
    for person, difference in differences:
        count, total = by_person.get(person, (0, 0.0))
        by_person[person] = count + 1, total + difference
    n = sum(count for count, _ in by_person.values())
    if not n:
        return None
    mean = math.fsum(total for _, total in by_person.values()) / n
    if len(by_person) < FEWEST:
        return PairedDifference(Estimate(n, mean, None, None), None)
    means = _resampled(Counter(by_person.values()))
    sides = [int((means <= 0).sum()), int((means >= 0).sum())]
    return PairedDifference(Estimate(n, mean, *percentiles(means)), min(1.0, 2 * (min(sides) + 1) / (RESAMPLES + 1)))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Each p after Holm's correction for how many are tested together (S. Holm, Scand. J. Statist. 6, 1979)."""
    places = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(places):
        highest = max(highest, min(1.0, (len(places) - rank) * p))
        corrected[place] = highest
    return corrected


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Spearman's rank correlation; `None` of fewer than three pairs, or where either side never changes.

    The interval is that of Bonett and Wright (Psychometrika 65, 2000), which takes the pairs as independent; there is
    none for fewer than ten, nor for a full correlation.
    """
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return None
    import numpy as np  # slow to import, and looking at a run needs no interval

    def ranks(values: Sequence[float]) -> NDArray[np.float64]:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        middles: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
        return middles[place]

    first, second = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    rho = float(np.corrcoef(first, second)[0, 1])
    n = len(pairs)
    if n < 10 or abs(rho) > 1 - 1e-9:
        return Estimate(n, rho, None, None)
    half = _Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return Estimate(n, rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))


def share_of(count: int, n: int) -> Estimate | None:
    """A share with Wilson's interval; `None` of nothing."""
    return Estimate(n, count / n, *wilson(count / n, n)) if n else None


def mean_of_shares(groups: Sequence[tuple[int, int]]) -> Estimate | None:
    """The unweighted mean of several groups' shares; `None` if a group is empty, or there is none.

    The interval is the percentile bootstrap's, with observations resampled within each group: how many successes come
    up is binomial. There is none for fewer than 5 observations, nor where no group has both successes and failures, as
    nothing changes then. A single group's is Wilson's. The generator's seed is fixed.

    Args:
        groups: The successes and the observations of each.
    """
    if not groups or not all(n for _, n in groups):
        return None
    if len(groups) == 1:
        return share_of(*groups[0])
    shares = [count / n for count, n in groups]
    total, mean = sum(n for _, n in groups), math.fsum(shares) / len(groups)
    if total < FEWEST or all(share in (0.0, 1.0) for share in shares):
        return Estimate(total, mean, None, None)
    import numpy as np  # slow to import, and looking at a run needs no interval

    counts, sizes = np.array(sorted(groups)).T
    drawn = np.random.default_rng(0).binomial(sizes, counts / sizes, size=(RESAMPLES, len(groups)))
    return Estimate(total, mean, *percentiles((drawn / sizes).mean(axis=1)))


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval of a share.

    Args:
        share: Of n observations, 0 to 1.
        n: At least 1.
    """
    spread = _Z**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _bootstrap(people: Counter[tuple[int, float]]) -> tuple[float | None, float | None]:
    """The interval of the mean, from how many people have as many scores of the same sum."""
    return (None, None) if people.total() < FEWEST else percentiles(_resampled(people))


def _resampled(people: Counter[tuple[int, float]]) -> NDArray[np.float64]:
    """The means of resamples of so many people who have as many scores of the same sum."""
    import numpy as np  # slow to import, and looking at a run needs no interval

    sorts = sorted(people)
    shares = np.array([people[sort] for sort in sorts]) / people.total()
    counts, sums = (np.array(values, dtype=float) for values in zip(*sorts, strict=True))
    drawn = np.random.default_rng(0).multinomial(people.total(), shares, size=RESAMPLES)
    means: NDArray[np.float64] = drawn @ sums / (drawn @ counts)
    return means


def percentiles(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the percentile interval."""
    import numpy as np  # slow to import, and looking at a run needs no interval

    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    return float(low), float(high)
