"""Agreement between raters beyond chance, with 95 % intervals: kappas and alpha.

Cohen's kappa for two raters (Cohen 1960), also with quadratic weights (Cohen 1968), and Fleiss' kappa for several
raters (Fleiss 1971) are computed by statsmodels, Krippendorff's alpha (1980) by NLTK. These libraries are slow to
import, so they are imported on first use.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Estimate
from dialoom.graphs.tables.statistics import CONFIDENCE_LEVEL, MIN_UNITS, RESAMPLES, percentile_interval
from dialoom.runs.errors import RunError

Codes = NDArray[np.int64]
"""Labels: a row per item, a column per rater; values from 0, and -1 for a missing label."""
MISSING = -1
_NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)
_MIN_INTERVAL_WIDTH = 1e-6
"""Maximum width of an interval that counts as zero, which allows for rounding."""


@dataclass(frozen=True, slots=True)
class KappaEstimate:
    """A kappa and its 95 % interval.

    The ends are `None` if an interval would not show how certain the kappa is: for fewer than 5 items, or if it would
    have zero width, as with full agreement.

    Attributes:
        value: The kappa: at most 1, and 0 for agreement by chance.
        low: Lower end of the interval.
        high: Upper end of the interval.
        skipped: Number of bootstrap resamples in which kappa is undefined, which the interval omits.
    """

    value: float
    low: float | None
    high: float | None
    skipped: int = 0

    @classmethod
    def with_interval(cls, value: float, low: float, high: float, n: int, skipped: int = 0) -> KappaEstimate:
        """Return a kappa of `n` items, with its interval if that is informative."""
        is_informative = n >= MIN_UNITS and high - low > _MIN_INTERVAL_WIDTH
        return cls(value, low, high, skipped) if is_informative else cls(value, None, None, skipped)


Kappa = KappaEstimate | None
"""A kappa; `None` if it is undefined or uninformative, because there are no labels or a rater used only one value.

With a rater who used only one value, kappa is undefined, or is 0 whatever the other raters' values are.
"""


def require_statistics(module: str = "statsmodels.stats.inter_rater") -> Any:
    """Import and return a module that the optional extra `agree` installs.

    Raises:
        RunError: If it is not installed; the message states how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise RunError(
            f"figures of agreement need {module.partition('.')[0]}, which cannot be imported ({error}); "
            "install it with: pip install 'dialoom[agree]' (in a checkout: pip install '.[agree]')"
        ) from error


def cohen_kappa(first: Codes, second: Codes, size: int, weighted: bool = False) -> Kappa:
    """Return Cohen's kappa of two raters with an asymptotic interval (Fleiss, Cohen and Everitt 1969), within [-1, 1].

    Args:
        first: One rater's values, from 0 to `size` - 1, or `MISSING`.
        second: The other rater's values for the same items.
        size: Number of values on the scale.
        weighted: Whether a disagreement is weighted by the square of its distance.
    """
    table = _contingency_table(first, second, size)
    if not _is_informative(table):
        return None
    with np.errstate(all="ignore"):  # the library's test for zero agreement may divide by zero
        result = require_statistics().cohens_kappa(table, wt="quadratic" if weighted else None)
    value, margin = float(result.kappa), _NORMAL_QUANTILE * math.sqrt(max(float(result.var_kappa), 0.0))
    return KappaEstimate.with_interval(value, max(value - margin, -1.0), min(value + margin, 1.0), int(table.sum()))


def mean_cohen_kappa(judge: Codes, annotators: Codes, size: int, weighted: bool = False) -> Kappa:
    """Return the mean of the judge's defined kappas with each annotator; its interval is a bootstrap over items.

    The annotators label the same items, so their kappas are not independent. Therefore items are resampled with all
    their labels.
    """
    columns = [column for column in annotators.T if _is_informative(_contingency_table(judge, column, size))]
    if not columns:
        return None
    kappa, wt = require_statistics().cohens_kappa, "quadratic" if weighted else None

    def mean_kappa(chosen: Codes) -> float | None:
        tables = [_contingency_table(judge[chosen], column[chosen], size) for column in columns]
        if not all(map(_is_defined, tables)):
            return None
        return float(np.mean([kappa(table, wt=wt, return_results=False) for table in tables]))

    return _bootstrap(mean_kappa, len(judge))


def fleiss_kappa(labels: Codes, size: int) -> Kappa:
    """Return Fleiss' kappa of several raters who all labelled every item; its interval is a bootstrap over items."""
    if len(labels) < 2 or labels.shape[1] < 2 or len(np.unique(labels)) < 2:
        return None
    library = require_statistics()
    counts, _ = library.aggregate_raters(labels, size)

    def compute_kappa(chosen: Codes) -> float | None:
        table = counts[chosen]
        return float(library.fleiss_kappa(table)) if np.count_nonzero(table.sum(axis=0)) > 1 else None

    return _bootstrap(compute_kappa, len(labels))


def observed_agreement(first: Codes, second: Codes) -> float | None:
    """Return the share of equal labels among the items labelled by both raters; `None` without such items."""
    both = (first != MISSING) & (second != MISSING)
    return float((first == second)[both].mean()) if both.any() else None


def _is_informative(table: NDArray[np.int64]) -> bool:
    """Return whether kappa is informative for two raters, which requires that both used more than one value."""
    return all(np.count_nonzero(table.sum(axis=axis)) > 1 for axis in (0, 1))


def _is_defined(table: NDArray[np.int64]) -> bool:
    """Return whether kappa is defined for two raters, which it is unless both used only the same single value."""
    values = (table.sum(axis=0) + table.sum(axis=1)).nonzero()[0]
    return len(values) > 1


def _contingency_table(first: Codes, second: Codes, size: int) -> NDArray[np.int64]:
    """Return the contingency table of two raters over the items that both labelled."""
    both = (first != MISSING) & (second != MISSING)
    return np.bincount(first[both] * size + second[both], minlength=size * size).reshape(size, size)


def _bootstrap(statistic: Callable[[Codes], float | None], n: int) -> Kappa:
    """Return a statistic of items with a percentile interval; the seed is fixed, so results are reproducible."""
    generator = np.random.default_rng(0)
    draws = (statistic(generator.integers(n, size=n)) for _ in range(RESAMPLES))
    values: Sequence[float] = [value for value in draws if value is not None]
    tail = (1.0 - CONFIDENCE_LEVEL) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    value = statistic(np.arange(n))
    assert value is not None, "computed only if it is defined"
    return KappaEstimate.with_interval(value, float(low), float(high), n, RESAMPLES - len(values))


def krippendorff_alpha(item_scores: Sequence[Sequence[float]], units: Sequence[Hashable] = ()) -> Estimate | None:
    """Return Krippendorff's alpha (1980) with the interval metric, by NLTK; `None` where it is undefined.

    Its interval is the percentile bootstrap's: units are resampled with all scores of their items, and resamples whose
    alpha is undefined are left out. There is none for fewer than 5 units. The generator's seed is fixed.

    Args:
        item_scores: The scores of each item, by at least two judges.
        units: The unit of each item, such as its person; by default each item is a unit.
    """
    units = units or range(len(item_scores))
    if len({score for scores in item_scores for score in scores}) < 2:
        return None
    metrics = require_statistics("nltk.metrics")
    labels = [(judge, item, score) for item, scores in enumerate(item_scores) for judge, score in enumerate(scores)]
    value = float(metrics.agreement.AnnotationTask(labels, metrics.interval_distance).alpha())
    if len({*units}) < MIN_UNITS:
        return Estimate(len(item_scores), value, None, None)
    return Estimate(len(item_scores), value, *percentile_interval(_resample_alpha(item_scores, units)))


def _resample_alpha(item_scores: Sequence[Sequence[float]], units: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return alpha for each resample: 1 minus the ratio of distances within items to distances between all scores.

    A unit's contribution is the sum over its items of their number of scores, the scores, their squares, and the
    squared distances of all ordered pairs, divided by the number of scores less 1.
    """
    by_unit: dict[Hashable, list[float]] = defaultdict(lambda: [0.0] * 4)
    for unit, scores in zip(units, item_scores, strict=True):
        size, total, square = len(scores), math.fsum(scores), math.fsum(score**2 for score in scores)
        parts = (size, total, square, 2 * (size * square - total**2) / (size - 1))
        by_unit[unit] = [one + other for one, other in zip(by_unit[unit], parts, strict=True)]
    distinct = Counter(map(tuple, by_unit.values()))
    shares = np.array([*distinct.values()]) / len(by_unit)
    drawn = np.random.default_rng(0).multinomial(len(by_unit), shares, size=RESAMPLES)
    n, total, of_squares, within = (drawn @ np.array([*distinct])).T
    observed_disagreement, expected_disagreement = within / n, 2 * (n * of_squares - total**2) / (n * (n - 1))
    defined = expected_disagreement > 0
    alphas: NDArray[np.float64] = 1 - observed_disagreement[defined] / expected_disagreement[defined]
    return alphas
