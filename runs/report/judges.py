"""Agreement between judges, and of each judge with itself where it judged more than once."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dialoom.graphs import Estimate, Table
from dialoom.graphs.reporting.statistics import FEWEST, RESAMPLES, percentiles, share_of
from dialoom.graphs.reporting.table import Cell
from dialoom.runs.scenario_pages import Where
from dialoom.runs.store import JudgementSet, RunFile, judges_of

from .differences import what_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Votes = list[float]
"""The scores that different sets give to one item, without missing ones."""

NEEDED = "Alpha and kappa are computed by libraries that are not installed here: pip install 'dialoom[agree]'."
_ALPHA = (
    "alpha: Krippendorff's, over what at least two sets have a score of, with the square of the distance between "
    "scores; 1 is full agreement, 0 as much as by chance. A dash: undefined, as where all scores are the same. "
    "Verdicts count as 1 and 0. In brackets: 95 % intervals, bootstrapped over the things that were judged (none for "
    f"fewer than {FEWEST})."
)


def judges_tables(run: RunFile, where: str | None) -> list[Table]:
    """Return a table of all judges, and one of each judge's own sets; no table without anything to compare."""
    groups = judges_of(run.judgement_sets())
    columns = ["metric", "judges", "n", "alpha", "all equal %"]
    between = Table("judges", "How far the judges agree", columns)
    if len(groups) > 1:
        between.rows = [[what, len(groups), *row] for what, row in _rows(run, [group[0] for group in groups], where)]
    own = Table("repeats", "How far each judge agrees with itself", ["judgements", "times", *columns[:1], *columns[2:]])
    for group in groups:
        if len(group) > 1:
            own.rows += [[group[0].name, len(group), what, *row] for what, row in _rows(run, group, where)]
    for table in (between, own):
        table.facets = {"metric": None, "judgements": None}
        table.notes += [_ALPHA, *([] if _can_measure() else [NEEDED])]
    return [table for table in (between, own) if table.rows]


def alpha(things: Sequence[Votes]) -> Estimate | None:
    """Return Krippendorff's alpha (1980) with the interval metric, by NLTK; `None` where it is undefined.

    Its interval is the percentile bootstrap's: items are resampled with all of their scores, and resamples whose alpha
    is
    undefined are left out. There is none for fewer than 5 items. The generator's seed is fixed.

    Args:
        things: The scores of each item, by at least two judges.
    """
    if not _can_measure() or len({score for scores in things for score in scores}) < 2:
        return None
    metrics = import_module("nltk.metrics")
    labels = [(judge, thing, score) for thing, scores in enumerate(things) for judge, score in enumerate(scores)]
    found = float(metrics.agreement.AnnotationTask(labels, metrics.interval_distance).alpha())
    if len(things) < FEWEST:
        return Estimate(len(things), found, None, None)
    return Estimate(len(things), found, *percentiles(_resampled(things)))


def _resampled(things: Sequence[Votes]) -> NDArray[np.float64]:
    """Return alpha of resamples: 1 minus the ratio of distances within items to those between all scores.

    An item's contribution depends on the number of its scores, their sum and the sum of their squares.
    """
    import numpy as np  # deferred: slow to import, and most reports have one judge

    sorts = Counter((len(each), math.fsum(each), math.fsum(score**2 for score in each)) for each in things)
    sizes, sums, squares = (np.array(values, dtype=float) for values in zip(*sorts, strict=True))
    within = 2 * (sizes * squares - sums**2) / (sizes - 1)  # the squared distances of all ordered pairs
    shares = np.array([*sorts.values()]) / len(things)
    drawn = np.random.default_rng(0).multinomial(len(things), shares, size=RESAMPLES)
    n, total, of_squares = drawn @ sizes, drawn @ sums, drawn @ squares
    observed, expected = drawn @ within / n, 2 * (n * of_squares - total**2) / (n * (n - 1))
    defined = expected > 0
    found: NDArray[np.float64] = 1 - observed[defined] / expected[defined]
    return found


def _rows(run: RunFile, sets: Sequence[JudgementSet], where: str | None) -> list[tuple[str, list[Cell]]]:
    """Return the rows of what was judged, with the number of items and the agreement of these sets."""
    found = _scores(run, sets, where)
    return [
        (what, [len(things), alpha(things), share_of(sum(len({*scores}) == 1 for scores in things), len(things))])
        for what, things in found.items()
    ]


def _scores(run: RunFile, sets: Sequence[JudgementSet], where: str | None) -> dict[str, list[Votes]]:
    wanted = None if where is None else Where.parse(where, run)
    found: dict[str, list[Votes]] = defaultdict(list)
    for episodes in zip(*(run.episodes(each.name) for each in sets), strict=True):
        if wanted is not None and not all(map(wanted.keeps, episodes)):
            continue
        by_thing: dict[tuple[str, str, int | None], Votes] = defaultdict(list)
        names: dict[tuple[str, str, int | None], str] = {}
        for episode in episodes:
            for each in episode.outcome.judgements:
                if each.score is not None:
                    thing = (each.metric, each.target, each.turn)
                    by_thing[thing].append(float(each.score))
                    names[thing] = what_of(each)
        for thing, scores in by_thing.items():
            if len(scores) > 1:
                found[names[thing]].append(scores)
    return found


def _can_measure() -> bool:
    return find_spec("nltk") is not None
