"""Tables about repeated trials: pass^k and pass@k of verdicts, and the variance between trials and scenarios."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dialoom.graphs import Table, WithFacets, WithJudging
from dialoom.graphs.outcome import scenario_of
from dialoom.graphs.tables.statistics import TRIALS_NOTE, Estimate, Tally, is_constant
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import select_episodes

from .differences import format_subject, omitted_turn_notes
from .labelled_runs import ReportedRun

_PASS_NOTE = (
    "pass^k: the probability that k trials of a scenario all succeed; pass@k: that at least one of k does (tau-bench, "
    "arXiv 2406.12045). Averaged over the scenarios with k verdicts or more; a missing verdict counts neither as "
    "success nor as failure. Where false is the good verdict{which}, it is the success. In brackets: 95 % intervals, "
    "bootstrapped, or Wilson's if each is 0 or 1; scenarios of one person are not treated as independent."
)
_VARIANCE_NOTE = (
    "Shares of the variance of scores: between scenarios, and between trials of one scenario; by a one-way analysis of "
    "variance with random effects, without missing scores. A dash: all scores are equal, or no scenario has two "
    "scores. With "
    "several user models, a scenario counts once with each."
)
_NARROW_WARNING = (
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
    low, by_turn = set[str](), set[str]()
    for each in repeated:
        name = [each.label] if label else []
        for metric, scores in _read_scores(each, where, by_turn).items():
            every = [score for trials in scores.trials.values() for score in trials]
            shares = variance_shares([*scores.trials.values()]) or (None, None)
            spread.rows.append([*name, metric, len(scores.trials), len(every), scores.missing, *shares])
            if scores.kinds == {True}:
                low.update([scores.metric] if scores.lower_is_better else [])
                constant = is_constant(len(every), min(every), max(every)) if scores.is_judged else None
                for k in range(1, each.run.config.trials + 1):
                    both = [estimate_pass_rate(estimator, k, scores.trials) for estimator in (pass_hat, pass_at)]
                    cells = [found and replace(found, is_constant=constant) for found in both]
                    success.rows.append([*name, metric, k, *cells])
    success.notes = [
        _PASS_NOTE.format(which=f" ({', '.join(sorted(low))})" if low else ""),
        *omitted_turn_notes(by_turn),
    ]
    spread.notes = [_VARIANCE_NOTE, *omitted_turn_notes(by_turn)]
    return [table for table in (success, spread) if table.rows]


def warn_about_narrow_intervals(tables: Sequence[Table], reported: Sequence[ReportedRun]) -> None:
    """Add a warning to tables whose intervals do not take repeated scenarios into account."""
    times = max(each.run.config.trials * len(each.run.config.players) for each in reported)
    for table in tables if times > 1 else ():
        cells = (cell for row in table.rows for cell in row if isinstance(cell, Estimate))
        if TRIALS_NOTE not in table.notes and any(cell.low is not None for cell in cells):
            table.warnings.append(_NARROW_WARNING.format(times=times))


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
    return (math.comb(n, k) - math.comb(n - successes, k)) / math.comb(n, k)


def variance_shares(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Return the shares of the variance between groups and within them, from a one-way random-effects ANOVA.

    The estimators are those for groups of unequal size (Searle, Casella and McCulloch, Variance Components, 1992,
    section 3.6); a negative component counts as 0.

    Args:
        groups: The scores of each scenario.

    Returns:
        Two fractions whose sum is 1; `None` if all scores are equal, if there are fewer than two groups, or if no group
        has two scores.
    """
    sizes = [len(group) for group in groups if group]
    total = sum(sizes)
    if len(sizes) < 2 or total == len(sizes) or len({score for group in groups for score in group}) < 2:
        return None
    overall_mean = math.fsum(map(math.fsum, groups)) / total
    between = within = 0.0
    for group in filter(None, groups):
        mean = math.fsum(group) / len(group)
        between += len(group) * (mean - overall_mean) ** 2
        within += math.fsum((score - mean) ** 2 for score in group)
    within /= total - len(sizes)
    size = (total - math.fsum(each**2 for each in sizes) / total) / (len(sizes) - 1)
    component = max(0.0, (between / (len(sizes) - 1) - within) / size)
    return component / (component + within), within / (component + within)


@dataclass(slots=True)
class _Scores:
    """The scores of whole conversations in one metric of one target.

    Attributes:
        metric: The metric.
        lower_is_better: Whether its low scores are good.
        is_judged: Whether a judge gives them rather than a check.
        trials: The scores of each scenario's trials, by its unit of confidence intervals and its id.
        missing: The number of conversations without a score.
        kinds: Whether scores are verdicts; several values if some are and some are not.
    """

    metric: str
    lower_is_better: bool
    is_judged: bool
    trials: dict[tuple[Hashable, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    missing: int = 0
    kinds: set[bool] = field(default_factory=set)


def _read_scores(reported: ReportedRun, where: str | None, by_turn: set[str]) -> dict[str, _Scores]:
    """Return the scores of the conversations that match an expression, by subject of judgement.

    The subjects of scores of single turns are left out, and added to `by_turn`.
    """
    recipe, found = reported.run.recipe, dict[str, _Scores]()
    unit, checks = WithFacets.of(recipe).unit_facet, WithJudging.of(recipe).check_metrics
    low = reported.lower_is_better(recipe)
    for episode in select_episodes(reported.run, reported.set_name, where):
        named = [(format_subject(each), each) for each in episode.outcome.judgements]
        by_turn.update(what for what, each in named if each.turn is not None)
        for what, judgements in group_pairs((what, each) for what, each in named if each.turn is None).items():
            metric = judgements[0].metric
            scores = found.setdefault(what, _Scores(metric, metric in low, metric not in checks))
            values = [each.score for each in judgements if each.score is not None]
            if len(values) < len(judgements):
                scores.missing += 1
                continue
            is_verdict = all(isinstance(value, bool) for value in values)
            scores.kinds.add(is_verdict)
            is_success = all(value != scores.lower_is_better for value in values)
            value = float(is_success) if is_verdict else math.fsum(values) / len(values)
            scores.trials[episode.unit(unit), episode.in_trials].append(value)
    return found


def estimate_pass_rate(
    estimator: Callable[[int, int, int], float], k: int, trials: Mapping[tuple[Hashable, str], Sequence[float]]
) -> Estimate | None:
    """Return the mean of `pass_hat` or `pass_at` over the scenarios with at least k verdicts; `None` if there are none.

    Args:
        estimator: The function.
        k: The number of trials.
        trials: The verdicts, 0 or 1, of the trials of each scenario, by its unit of confidence intervals and its id.
    """
    values = [
        (unit, scenario_of(id_), estimator(len(verdicts), round(sum(verdicts)), k))
        for (unit, id_), verdicts in trials.items()
        if len(verdicts) >= k
    ]
    is_certain = all(value in (0.0, 1.0) for *_, value in values)  # resampling would give an interval of zero width
    tally = Tally()
    for unit, scenario, value in values:
        tally.add(bool(value) if is_certain else value, unit, scenario)
    return tally.estimate()
