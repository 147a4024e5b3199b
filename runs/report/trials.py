"""Tables about repeated trials: pass^k and pass@k of verdicts, and the variance between trials and scenarios."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from dialoom.graphs import Table
from dialoom.graphs.capabilities import WithFacets, WithJudging
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.tables.statistics import TRIALS_COUNT_ONCE, Estimate, Tally, is_constant
from dialoom.runs.reading.scenarios import selected

from .differences import subject_of
from .reported import ReportedRun

_PASS = (
    "pass^k: the probability that k trials of a scenario all succeed; pass@k: that at least one of k does (tau-bench, "
    "arXiv 2406.12045). Averaged over the scenarios with k verdicts or more; a missing verdict counts neither as "
    "success nor as failure. Where false is the good verdict{which}, it is the success. In brackets: 95 % intervals, "
    "bootstrapped, or Wilson's if each is 0 or 1; scenarios of one person are not treated as independent."
)
_VARIANCE = (
    "Shares of the variance of scores: between scenarios, and between trials of one scenario; by a one-way analysis of "
    "variance with random effects, without missing scores. A dash: all scores are equal, or no scenario has two "
    "scores. With "
    "several user models, a scenario counts once with each."
)
_TOO_NARROW = (
    "Each scenario was played {times} times, and the intervals of this table treat every trial as a separate "
    "scenario, so they are too narrow."
)


def trials_tables(reported: Sequence[ReportedRun], where: str | None) -> list[Table]:
    """Return the tables about the trials of runs that play each scenario several times.

    Args:
        reported: The runs.
        where: Only episodes that match this expression.
    """
    repeated = [each for each in reported if each.run.config.trials > 1]
    if not repeated:
        return []
    label = ["run"] if len(reported) > 1 else []
    success = Table("pass", "Success in repeated trials", [*label, "metric", "k", "pass^k %", "pass@k %"])
    spread = Table(
        "trials",
        "Variance between trials",
        [*label, "metric", "scenarios", "scores", "missing", "between scenarios %", "between trials %"],
    )
    low = sorted({metric for each in repeated for metric in each.lower_is_better(each.run.recipe)})
    success.notes = [_PASS.format(which=f" ({', '.join(low)})" if low else "")]
    spread.notes = [_VARIANCE]
    for each in repeated:
        name = [each.label] if label else []
        scores = _Scores.read(each, where)
        for metric, by_scenario in scores.by_metric.items():
            shares = variance_shares(list(by_scenario.values())) or (None, None)
            count = sum(map(len, by_scenario.values()))
            spread.rows.append([*name, metric, len(by_scenario), count, scores.missing[metric], *shares])
            if metric in scores.verdicts:
                every = [verdict for verdicts in by_scenario.values() for verdict in verdicts]
                is_judged = metric in scores.judged and bool(every)
                constant = is_constant(len(every), min(every), max(every)) if is_judged else None
                for k in range(1, each.run.config.trials + 1):
                    both = [passed(estimator, k, by_scenario) for estimator in (pass_hat, pass_at)]
                    cells = [found and replace(found, is_constant=constant) for found in both]
                    success.rows.append([*name, metric, k, *cells])
    return [table for table in (success, spread) if table.rows]


def warn_of_narrow_intervals(tables: Sequence[Table], reported: Sequence[ReportedRun]) -> None:
    """Add a warning to tables whose intervals do not take repeated scenarios into account."""
    times = max(each.run.config.trials * len(each.run.config.players) for each in reported)
    for table in tables if times > 1 else ():
        cells = (cell for row in table.rows for cell in row if isinstance(cell, Estimate))
        if TRIALS_COUNT_ONCE not in table.notes and any(cell.low is not None for cell in cells):
            table.warnings.append(_TOO_NARROW.format(times=times))


def pass_hat(n: int, successes: int, k: int) -> float:
    """Return the unbiased estimate of the probability that all of k trials succeed (arXiv 2406.12045, equation 1).

    Args:
        n: The number of trials, at least k.
        successes: The number of successful ones.
        k: The number of trials that must all succeed.
    """
    return math.comb(successes, k) / math.comb(n, k)


def pass_at(n: int, successes: int, k: int) -> float:
    """Return the unbiased estimate of the probability that at least one of k trials succeeds (arXiv 2107.03374)."""
    return 1 - math.comb(n - successes, k) / math.comb(n, k)


def variance_shares(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Return the shares of the variance between groups and within them, from a one-way random-effects ANOVA.

    The estimators are those for groups of unequal size (Searle, Casella and McCulloch, Variance Components, 1992,
    section 3.6); a negative component counts as 0.

    Args:
        groups: The scores of each scenario.

    Returns:
        Two fractions whose sum is 1; `None` if there is no variance, if there are fewer than two groups, or if no group
        has two scores.
    """
    sizes = [len(group) for group in groups if group]
    total = sum(sizes)
    if len(sizes) < 2 or total == len(sizes):
        return None
    whole = math.fsum(map(math.fsum, groups)) / total
    between = within = 0.0
    for group in filter(None, groups):
        mean = math.fsum(group) / len(group)
        between += len(group) * (mean - whole) ** 2
        within += math.fsum((score - mean) ** 2 for score in group)
    within /= total - len(sizes)
    size = (total - math.fsum(each**2 for each in sizes) / total) / (len(sizes) - 1)
    component = max(0.0, (between / (len(sizes) - 1) - within) / size)
    if not component + within:
        return None
    return component / (component + within), within / (component + within)


class _Scores:
    """The scores of whole conversations: by metric and scenario, the scores of the scenario's trials."""

    def __init__(self) -> None:
        self.by_metric: dict[str, dict[tuple[Hashable, str], list[float]]] = defaultdict(lambda: defaultdict(list))
        self.missing: dict[str, int] = defaultdict(int)
        self.verdicts: set[str] = set()
        self.judged: set[str] = set()

    @classmethod
    def read(cls, reported: ReportedRun, where: str | None) -> _Scores:
        scores, numbers = cls(), set[str]()
        unit = WithFacets.of(reported.run.recipe).unit_facet
        checks = {check.metric for check in WithJudging.of(reported.run.recipe).checks}
        low = reported.lower_is_better(reported.run.recipe)
        for episode in selected(reported.run, reported.set_name, where):
            found: dict[str, list[Judgement]] = defaultdict(list)
            for judgement in episode.outcome.judgements:
                if judgement.turn is None:
                    found[subject_of(judgement)].append(judgement)
            scores.judged |= {what for what, judgements in found.items() if judgements[0].metric not in checks}
            for metric, judgements in found.items():
                by_scenario = scores.by_metric[metric]  # creates the entry even if every score is missing
                values = [each.score for each in judgements if each.score is not None]
                if len(values) < len(judgements):
                    scores.missing[metric] += 1
                    continue
                is_verdict = all(isinstance(value, bool) for value in values)
                (scores.verdicts if is_verdict else numbers).add(metric)
                successes = [value != (judgements[0].metric in low) for value in values]
                value = float(all(successes)) if is_verdict else math.fsum(values) / len(values)
                by_scenario[episode.unit(unit), episode.in_trials].append(value)
        scores.verdicts -= numbers
        return scores


def passed(
    estimator: Callable[[int, int, int], float], k: int, trials: Mapping[tuple[Hashable, str], Sequence[float]]
) -> Estimate | None:
    """Return the mean of `pass_hat` or `pass_at` over the scenarios with at least k verdicts; `None` if there are none.

    Args:
        estimator: The function.
        k: The number of trials.
        trials: The verdicts, 0 or 1, of the trials of each scenario, by its unit of confidence intervals and its id.
    """
    values = [
        (unit, estimator(len(verdicts), round(sum(verdicts)), k))
        for (unit, _), verdicts in trials.items()
        if len(verdicts) >= k
    ]
    is_certain = all(value in (0.0, 1.0) for _, value in values)  # resampling would give an interval of zero width
    tally = Tally()
    for unit, value in values:
        tally.add(bool(value) if is_certain else value, unit)
    return tally.estimate()
