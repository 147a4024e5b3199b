"""Comparison of two sets of judgements of one run."""

from __future__ import annotations

from collections import Counter, defaultdict
from importlib.util import find_spec

from dialoom.graphs import Estimate, Judgement, Table, Tally, intervals
from dialoom.graphs.capabilities import WithJudging
from dialoom.graphs.reporting.facet import unit_facet, units_of
from dialoom.graphs.reporting.statistics import FEWEST
from dialoom.runs.scenario_pages import Where
from dialoom.runs.store import JudgementSet, RunFile

from .differences import what_of
from .judges import NEEDED


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
    person = unit_facet(run.recipe.facets)
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
    units = units_of(run.recipe.facets)
    table.notes += ["Only judgements that both sets have a score for; verdicts count as 1 and 0.", intervals(units)]
    table.notes.append(f"{_KAPPA}{'' if _can_measure() else f' {NEEDED}'}")
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
    if not _can_measure() or any(
        not score.is_integer() or not low <= score <= high for pair in counts for score in pair
    ):
        return None
    import numpy as np  # deferred: slow to import, and most reports compare no judges

    from dialoom.runs.agreement.kappa import cohen

    first, second = (np.array([int(pair[side]) - low for pair in counts.elements()]) for side in (0, 1))
    found = cohen(first, second, high - low + 1, weighted=scale is not None)
    return None if found is None else Estimate(counts.total(), found.value, found.low, found.high)


def _can_measure() -> bool:
    return find_spec("statsmodels") is not None


def _key(judgement: Judgement) -> tuple[str, str, int | None]:
    return judgement.metric, judgement.target, judgement.turn


def file_name(name: str) -> str:
    """Return a set's name in a form suitable for a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
