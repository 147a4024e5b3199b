"""Tables about judges: agreement within a panel, and between two sets of judgements."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dialoom.graphs import Estimate, Judgement, Table, Tally, intervals
from dialoom.graphs.capabilities import WithFacets, WithJudging
from dialoom.graphs.reporting.statistics import FEWEST, RESAMPLES, percentiles, share_of
from dialoom.graphs.reporting.table import Cell
from dialoom.runs.reading.scenarios import Where
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


def comparison(run: RunFile, left: JudgementSet, right: JudgementSet, where: str | None = None) -> Table:
    """Compare two sets on the same items: means where both have a score, and the share of equal scores.

    Args:
        run: The run.
        left: One set.
        right: The other.
        where: Only scenarios that match this expression with the judgements of both.
    """
    wanted = None if where is None else Where.parse(where, run)
    columns = ["metric", "n", f"mean {left.name}", f"mean {right.name}", "mean difference", "equal %", "kappa"]
    name = f"compared-{file_name(left.name)}-{file_name(right.name)}"
    table = Table(name, f"Judgements {left.name!r} and {right.name!r} on the same dialogues", columns)
    table.facets = {"metric": None}
    tallies: dict[str, tuple[Tally, Tally, Tally, Tally]] = defaultdict(
        lambda: (Tally(judged=True), Tally(judged=True), Tally(), Tally())
    )
    pairs: dict[tuple[str, str], Counter[tuple[float, float]]] = defaultdict(Counter)
    person = WithFacets.of(run.recipe).unit_facet
    for one, other in zip(run.episodes(left.name), run.episodes(right.name), strict=True):
        if wanted is not None and not (wanted.keeps(one) and wanted.keeps(other)):
            continue
        theirs = {_key(judgement): judgement.score for judgement in other.outcome.judgements}
        for judgement in one.outcome.judgements:
            score, second = judgement.score, theirs.get(_key(judgement))
            if score is None or second is None:
                continue
            what = what_of(judgement)
            values = (score, second, second - score, score == second)
            pairs[what, judgement.metric][float(score), float(second)] += 1
            for tally, value in zip(tallies[what], values, strict=True):
                tally.add(value, one.id if person is None else one.facets[person])
    for (what, metric), counts in pairs.items():
        estimates = [tally.estimate() for tally in tallies[what]]
        kappa = _kappa(counts, WithJudging.of(run.recipe).scales.get(metric))
        table.rows.append([what, counts.total(), *estimates, kappa])
    units = WithFacets.of(run.recipe).units
    table.notes += ["Only judgements that both sets have a score for; verdicts count as 1 and 0.", intervals(units)]
    table.notes.append(f"{_KAPPA}{'' if _can_measure_of_set_comparison() else f' {NEEDED}'}")
    return table


_KAPPA = (
    "kappa: Cohen's, of scores with quadratic weights; its interval is asymptotic (none for fewer than "
    f"{FEWEST} pairs, and at full agreement). A dash: one of the two gave a single score, and no kappa tells anything."
)


def _kappa(counts: Counter[tuple[float, float]], scale: tuple[int, int] | None) -> Estimate | None:
    """Return Cohen's kappa of pairs of scores; `None` if it is undefined, uninformative or cannot be computed.

    Args:
        counts: The number of each pair of scores.
        scale: The lowest and the highest score; `None` for verdicts.
    """
    low, high = scale or (0, 1)
    if not _can_measure_of_set_comparison() or any(
        not score.is_integer() or not low <= score <= high for pair in counts for score in pair
    ):
        return None
    import numpy as np  # deferred: slow to import, and most reports compare no judges

    from .rater_agreement import cohen

    first, second = (np.array([int(pair[side]) - low for pair in counts.elements()]) for side in (0, 1))
    found = cohen(first, second, high - low + 1, weighted=scale is not None)
    return None if found is None else Estimate(counts.total(), found.value, found.low, found.high)


def _can_measure_of_set_comparison() -> bool:
    return find_spec("statsmodels") is not None


def _key(judgement: Judgement) -> tuple[str, str, int | None]:
    return judgement.metric, judgement.target, judgement.turn


def file_name(name: str) -> str:
    """Return a set's name in a form suitable for a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
