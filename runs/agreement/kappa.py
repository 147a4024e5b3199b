"""Kappa: agreement between raters beyond what chance would give, with 95 % intervals.

Cohen's kappa (Cohen 1960) for two raters, also with quadratic weights (Cohen 1968), and Fleiss' kappa (Fleiss 1971) for
several, all from statsmodels. It is heavy, so it is imported when a kappa is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoom.graphs.reporting.statistics import FEWEST, LEVEL, RESAMPLES
from dialoom.runs.errors import RunError

Codes = npt.NDArray[np.int64]
"""An item a row, a rater a column; values from 0, and -1 where a label is missing."""
MISSING = -1
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_WIDTHLESS = 1e-6
"""The width of an interval that has none but for rounding."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A kappa and the ends of its 95 % interval.

    The ends are `None` where there is no interval that says how sure the kappa is: of fewer than 5 items, and where it
    would have no width, as at full agreement.

    Attributes:
        value: At most 1; 0 is what chance would give.
        skipped: Of the bootstrap's resamples, how many had no kappa and are not in the interval.
    """

    value: float
    low: float | None
    high: float | None
    skipped: int = 0

    @classmethod
    def between(cls, value: float, low: float, high: float, n: int, skipped: int = 0) -> Interval:
        """A kappa of `n` items, with its interval if that tells something."""
        is_telling = n >= FEWEST and high - low > _WIDTHLESS
        return cls(value, low, high, skipped) if is_telling else cls(value, None, None, skipped)


Kappa = Interval | None
"""`None` where there is none: nobody gave a label, or a rater gave one value only, as all do who have one item.

Kappa is then undefined, or 0 whatever the others say.
"""


def require_statistics() -> Any:
    """The library.

    Raises:
        RunError: If it is not installed; says how to install it.
    """
    try:
        return import_module("statsmodels.stats.inter_rater")
    except ImportError as error:
        raise RunError(
            f"kappas need statsmodels, which cannot be imported ({error}); "
            "install it with: pip install 'dialoom[agree]' (in a checkout: pip install '.[agree]')"
        ) from error


def cohen(first: Codes, second: Codes, size: int, weighted: bool = False) -> Kappa:
    """Cohen's kappa of two raters; its interval is asymptotic (Fleiss, Cohen and Everitt 1969), cut off at -1 and 1.

    Args:
        first: One rater's values, from 0 to `size` - 1, or `MISSING`.
        second: The other's, for the same items.
        size: How many values the scale has.
        weighted: Whether a disagreement weighs as much as the square of its distance.
    """
    table = _table(first, second, size)
    if not _tells(table):
        return None
    with np.errstate(all="ignore"):  # a test of zero agreement that comes along divides by zero at times
        result = require_statistics().cohens_kappa(table, wt="quadratic" if weighted else None)
    value, margin = float(result.kappa), _Z * sqrt(max(float(result.var_kappa), 0.0))
    return Interval.between(value, max(value - margin, -1.0), min(value + margin, 1.0), int(table.sum()))


def mean_cohen(judge: Codes, annotators: Codes, size: int, weighted: bool = False) -> Kappa:
    """The mean of the judge's kappas with each annotator, of those that there are; interval by bootstrap over items.

    The annotators read the same items, so their kappas are not independent: items are drawn, with all their labels.
    """
    columns = [column for column in annotators.T if _tells(_table(judge, column, size))]
    if not columns:
        return None
    kappa, wt = require_statistics().cohens_kappa, "quadratic" if weighted else None

    def mean(chosen: Codes) -> float | None:
        tables = [_table(judge[chosen], column[chosen], size) for column in columns]
        if not all(map(_is_defined, tables)):
            return None
        return float(np.mean([kappa(table, wt=wt, return_results=False) for table in tables]))

    return _bootstrap(mean, len(judge))


def fleiss(labels: Codes, size: int) -> Kappa:
    """Fleiss' kappa of several raters who all labelled every item; interval by bootstrap over items."""
    if len(labels) < 2 or labels.shape[1] < 2 or len(np.unique(labels)) < 2:
        return None
    library = require_statistics()
    counts, _ = library.aggregate_raters(labels, size)

    def kappa(chosen: Codes) -> float | None:
        table = counts[chosen]
        return float(library.fleiss_kappa(table)) if np.count_nonzero(table.sum(axis=0)) > 1 else None

    return _bootstrap(kappa, len(labels))


def observed(first: Codes, second: Codes) -> float | None:
    """The share of the items labelled by both on which two raters agree."""
    both = (first != MISSING) & (second != MISSING)
    return float((first == second)[both].mean()) if both.any() else None


def _tells(table: npt.NDArray[np.int64]) -> bool:
    """Whether a kappa tells anything of two raters: not if one of them only ever gave one value."""
    return all(np.count_nonzero(table.sum(axis=axis)) > 1 for axis in (0, 1))


def _is_defined(table: npt.NDArray[np.int64]) -> bool:
    """Whether chance alone could have made them disagree: not if both only ever gave one and the same value."""
    values = (table.sum(axis=0) + table.sum(axis=1)).nonzero()[0]
    return len(values) > 1


def _table(first: Codes, second: Codes, size: int) -> npt.NDArray[np.int64]:
    """How often each pair of values was given to an item that both labelled."""
    both = (first != MISSING) & (second != MISSING)
    return np.bincount(first[both] * size + second[both], minlength=size * size).reshape(size, size)


def _bootstrap(statistic: Callable[[Codes], float | None], n: int) -> Kappa:
    """A statistic of items with a percentile interval; the seed is fixed, so that equal labels give equal intervals."""
    generator = np.random.default_rng(0)
    draws = (statistic(generator.integers(n, size=n)) for _ in range(RESAMPLES))
    values: Sequence[float] = [value for value in draws if value is not None]
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    value = statistic(np.arange(n))
    assert value is not None, "asked for only where it is defined"
    return Interval.between(value, float(low), float(high), n, RESAMPLES - len(values))
