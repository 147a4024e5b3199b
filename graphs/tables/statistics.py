"""Means with confidence intervals, computed from counts.

Memory use grows with the number of people, not of dialogues.
"""

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
CONFIDENCE_LEVEL = 0.95
MIN_UNITS = 5
"""Minimum number of people for an interval, because resampling fewer is uninformative.

It is also the minimum number of equal scores for which a judge's figure is marked as constant.
"""

_NORMAL_QUANTILE = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


TRIALS_NOTE = "Conversations of one scenario (trials, user models) are not independent, so intervals treat them as one."
"""The note below tables whose intervals take trials into account."""

_INTERVAL_NOTE_START = "In brackets: 95 % intervals"


def is_interval_note(note: str) -> bool:
    """Return whether a note of a table only explains intervals and states nothing else about the figures."""
    return note == TRIALS_NOTE or note.startswith(_INTERVAL_NOTE_START)


def intervals(units: str = "people") -> str:
    """Return the note that explains the intervals in a table.

    Args:
        units: The plural name of the resampled units, e.g. `people`. The argument `person` of `Tally.add` is the unit
            of a score.
    """
    return (
        f"{_INTERVAL_NOTE_START}. For verdicts they are Wilson's, with n divided by the design effect of {units} "
        "(unknown, and "
        f"taken as 1, if all verdicts are equal); for means they are bootstrapped over {units}, drawing all scores of "
        f"a unit together, because they are not independent, and widened for few {units} as by Student's t. "
        f"With fewer than {MIN_UNITS} {units}, verdicts count as independent and means have no interval."
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        n: The number of observations.
        mean: The mean of the observations.
        low: The lower end of the interval; `None` where there is no interval.
        high: The upper end.
        is_constant: Whether a judge gave at least `MIN_UNITS` scores that are all equal; `None` for figures without a
            judge.
        is_doubtful: Whether the judge fails another health check.
    """

    n: int
    mean: float
    low: float | None
    high: float | None
    is_constant: bool | None = None
    is_doubtful: bool = False

    @property
    def has_zero_width(self) -> bool:
        """Return whether the interval is a single value, because all resamples are equal."""
        return self.low is not None and self.high is not None and math.isclose(self.low, self.high, abs_tol=1e-12)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences, with its interval and p-value.

    Attributes:
        estimate: The mean, the number of pairs, and the 95 % interval.
        p: Twice the smaller share of resampled means on one side of 0; `None` without an interval.
    """

    estimate: Estimate
    p: float | None


class Tally:
    """A tally of scores or verdicts by person.

    Args:
        judged: Whether a judge gave the scores. Estimates then state whether all scores are equal.
    """

    def __init__(self, *, judged: bool = False) -> None:
        self._by_person: dict[Hashable, tuple[int, float]] = {}
        self._single_scores: Counter[float] = Counter()
        self._is_all_verdicts = True
        self._is_judged = judged
        self._range: tuple[float, float] | None = None
        self._scenarios: set[str] = set()
        self._unrepeated_count = 0

    def add(self, score: bool | float, person: Hashable = None, scenario: str | None = None) -> None:
        """Add a score.

        Args:
            score: A score, or a verdict, which counts as 1 or 0.
            person: The person of the scored dialogue; `None` if the person has no other score.
            scenario: The scenario, if it may have several scores, e.g. of trials or turns.
        """
        if scenario is None:
            self._unrepeated_count += 1
        else:
            self._scenarios.add(scenario)
        self._is_all_verdicts &= isinstance(score, bool)
        low, high = self._range or (score, score)
        self._range = min(low, score), max(high, score)
        if person is None:
            self._single_scores[float(score)] += 1
        else:
            count, total = self._by_person.get(person, (0, 0.0))
            self._by_person[person] = count + 1, total + float(score)

    @property
    def n(self) -> int:
        """The number of scores."""
        return self._single_scores.total() + sum(count for count, _ in self._by_person.values())

    def estimate(self, *, as_scores: bool = False) -> Estimate | None:
        """Return the mean with its interval; `None` without observations.

        For verdicts, the interval is Wilson's score interval (E. B. Wilson, JASA 22, 1927), whose width is above 0 even
        for shares of 0 and 1, for the effective number of verdicts: those of a scenario count once, and if people have
        several scenarios, n is divided by the design effect of people. For scores, the interval is the percentile
        bootstrap of their mean: people are resampled, and all scores of a person stay together. People with the same
        number and sum of scores are of the same kind, and a multinomial distribution gives how often each kind occurs
        in a resample. The generator's seed is fixed, so that equal scores give equal intervals. The resamples of few
        people vary too little, so their distances from the mean are multiplied by sqrt(m / (m - 1)) for m people, and
        by the ratio of Student's quantile to the normal one (T. Hesterberg, The American Statistician 69, 2015).

        Args:
            as_scores: Whether verdicts count as the scores 0 and 1, because the metric has other scores elsewhere.
        """
        if not self.n:
            return None
        people = Counter(self._by_person.values())
        people.update({(1, score): count for score, count in self._single_scores.items()})
        mean = sum(score * count for (_, score), count in people.items()) / self.n
        scenario_count = len(self._scenarios) + self._unrepeated_count
        lowest, highest = map(float, self._range or (mean, mean))
        mean = max(lowest, min(mean, highest))  # despite rounding
        low, high = (
            wilson(mean, _effective_size(people, scenario_count))
            if self._is_all_verdicts and not as_scores
            else _bootstrap_interval(people, lowest, highest)
        )
        all_equal = is_constant(self.n, lowest, highest) if self._is_judged else None
        return Estimate(self.n, mean, low, high, all_equal)


def is_constant(n: int, lowest: float, highest: float) -> bool:
    """Return whether there are at least `MIN_UNITS` scores and all are equal, given their number and range."""
    return n >= MIN_UNITS and lowest == highest


def paired_difference(differences: Iterable[tuple[Hashable, float]]) -> PairedDifference | None:
    """Return the mean difference between the two scores of each pair; `None` without pairs.

    The interval and p come from a percentile bootstrap that resamples people with all of their pairs, widened as in
    `Tally.estimate`. The generator's seed is fixed.

    Args:
        differences: For each pair, its person, and its second score minus its first.
    """
    by_person: dict[Hashable, tuple[int, float]] = {}
    for person, difference in differences:
        count, total = by_person.get(person, (0, 0.0))
        by_person[person] = count + 1, total + difference
    if not (n := sum(count for count, _ in by_person.values())):
        return None
    mean = math.fsum(total for _, total in by_person.values()) / n
    if len(by_person) < MIN_UNITS:
        return PairedDifference(Estimate(n, mean, None, None), None)
    means = _resample_means(Counter(by_person.values()))
    sides = [int((means <= 0).sum()), int((means >= 0).sum())]
    return PairedDifference(
        Estimate(n, mean, *percentile_interval(means)), min(1.0, 2 * (min(sides) + 1) / (RESAMPLES + 1))
    )


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return the p-values after Holm's correction for multiple tests (S. Holm, Scand. J. Statist. 6, 1979)."""
    places = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(places):
        highest = max(highest, min(1.0, (len(places) - rank) * p))
        corrected[place] = highest
    return corrected


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> Estimate | None:
    """Return Spearman's rank correlation; `None` for fewer than three pairs, or if either side is constant.

    The interval is that of Bonett and Wright (Psychometrika 65, 2000), which assumes independent pairs. There is no
    interval for fewer than ten pairs or for a perfect correlation.
    """
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return None
    import numpy as np  # slow to import, and not needed to read a run

    def ranks(values: Sequence[float]) -> NDArray[np.float64]:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        middles: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
        return middles[place]

    first, second = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    rho = float(np.corrcoef(first, second)[0, 1])
    n = len(pairs)
    if n < 10 or abs(rho) > 1 - 1e-9:
        return Estimate(n, rho, None, None)
    half_width = _NORMAL_QUANTILE * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return Estimate(n, rho, math.tanh(math.atanh(rho) - half_width), math.tanh(math.atanh(rho) + half_width))


def share_of(count: int, n: int, units: int | None = None) -> Estimate | None:
    """Return a share with Wilson's interval; `None` if n is 0.

    Args:
        count: The number of observations with a property.
        n: The number of observations.
        units: The number of independent units, such as scenarios, to which they belong; by default n.
    """
    return Estimate(n, count / n, *wilson(count / n, units or n)) if n else None


def mean_of_shares(groups: Sequence[tuple[int, int]], units: Sequence[int] | None = None) -> Estimate | None:
    """Return the unweighted mean of several groups' shares; `None` without groups, or if a group is empty.

    The interval of the mean m is Wilson's for the effective number of observations, m (1 - m) / V, where V is the sum
    of the groups' variances p (1 - p) / n for n independent units, divided by the squared number of groups. Each p is
    computed with two more units whose mean is m, because a small group with only successes or only failures is not
    certain.

    Args:
        groups: The number of successes and of observations of each group.
        units: The number of independent units in each group, as for `share_of`; by default those of the observations.
    """
    if not groups or not all(n for _, n in groups):
        return None
    units = [n for _, n in groups] if units is None else units
    if len(groups) == 1:
        return share_of(*groups[0], units[0])
    shares = [count / n for count, n in groups]
    mean = math.fsum(shares) / len(groups)
    effective = len(groups) ** 2 / math.fsum(1 / n for n in units)
    if 0.0 < mean < 1.0:
        smoothed = [((share * n + 2 * mean) / (n + 2), n) for share, n in zip(shares, units, strict=True)]
        effective = mean * (1 - mean) * len(groups) ** 2 / math.fsum(share * (1 - share) / n for share, n in smoothed)
    return Estimate(sum(n for _, n in groups), mean, *wilson(mean, max(1.0, effective)))


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share.

    Args:
        share: The share, 0 to 1.
        n: The number of observations, or the effective number, at least 1.
    """
    spread = _NORMAL_QUANTILE**2 / n
    center = (share + spread / 2) / (1 + spread)
    half_width = _NORMAL_QUANTILE / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, min(share, center - half_width)), min(1.0, max(share, center + half_width))  # despite rounding


def _effective_size(people: Counter[tuple[int, float]], n: float) -> float:
    """Return the effective number of verdicts, 1 to n.

    It is p (1 - p) / V, where V is the variance of the share p between people, a ratio estimate (L. Kish, Survey
    Sampling, 1965), and is reduced by the ratio of the normal quantile to Student's, squared (E. L. Korn and B. I.
    Graubard, Survey Methodology 24, 1998). If all verdicts are equal, V is unknown, and only n is reduced. It is n if
    there are no more verdicts than people, or fewer than `MIN_UNITS` people.

    Args:
        people: Counts of people, by the number and the sum of their verdicts.
        n: The number of verdicts of different scenarios.
    """
    score_count, unit_count = sum(count * person_count for (count, _), person_count in people.items()), people.total()
    mean = math.fsum(total * person_count for (_, total), person_count in people.items()) / score_count
    if not MIN_UNITS <= unit_count < n:
        return n
    squares = math.fsum(person_count * (total - mean * count) ** 2 for (count, total), person_count in people.items())
    is_all_equal = mean in (0.0, 1.0)
    if not squares and not is_all_equal:
        return n
    effective: float = (
        n if is_all_equal else mean * (1 - mean) * score_count**2 * (unit_count - 1) / (squares * unit_count)
    )
    factor: float = (_NORMAL_QUANTILE / student_quantile(unit_count - 1)) ** 2
    return min(n, max(1.0, effective * factor))


def student_quantile(degrees: int) -> float:
    """Return the 0.975 quantile of Student's t for at least 4 degrees of freedom (Abramowitz and Stegun, 26.7.5)."""
    z = _NORMAL_QUANTILE
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + math.fsum(term / float(degrees) ** power for power, term in enumerate(terms, start=1))


def widening_factor(units: int) -> float:
    """Return the factor by which distances of resamples from the mean are multiplied; 1 for units without interval."""
    return (
        math.sqrt(units / (units - 1)) * student_quantile(units - 1) / _NORMAL_QUANTILE if units >= MIN_UNITS else 1.0
    )


def _bootstrap_interval(
    people: Counter[tuple[int, float]], lowest: float, highest: float
) -> tuple[float | None, float | None]:
    """Return the interval of the mean, within the range of the scores.

    People are given as counts, by the number and the sum of their scores.
    """
    if people.total() < MIN_UNITS:
        return None, None
    low, high = (max(lowest, min(end, highest)) for end in percentile_interval(_resample_means(people)))
    return low, high


def _resample_means(people: Counter[tuple[int, float]]) -> NDArray[np.float64]:
    """Return the means of resamples, widened as for `Tally.estimate`.

    People are given as counts, by the number and the sum of their scores.
    """
    import numpy as np  # slow to import, and not needed to read a run

    kinds = sorted(people)
    person_count, shares = people.total(), np.array([people[sort] for sort in kinds]) / people.total()
    counts, sums = (np.array(values, dtype=float) for values in zip(*kinds, strict=True))
    drawn = np.random.default_rng(0).multinomial(person_count, shares, size=RESAMPLES)
    center = shares @ sums / (shares @ counts)
    means: NDArray[np.float64] = center + widening_factor(person_count) * (drawn @ sums / (drawn @ counts) - center)
    return means


def percentile_interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the percentile interval."""
    import numpy as np  # slow to import, and not needed to read a run

    tail = (1.0 - CONFIDENCE_LEVEL) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail])
    return float(low), float(high)
