"""Tables about several user models: scores with each, their share of the variance, and the ranking of assistants."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dialoom.graphs import Estimate, Recipe, Table, WithFacets, WithJudging
from dialoom.graphs.outcome import USER, USER_MODEL
from dialoom.graphs.tables.statistics import (
    CONFIDENCE_LEVEL,
    MIN_UNITS,
    RESAMPLES,
    TRIALS_NOTE,
    Tally,
    intervals,
    percentile_interval,
    widening_factor,
)
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import select_episodes

from .differences import format_subject, omitted_turn_notes
from .labelled_runs import ReportedRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RANKING_TABLE = "user-ranking"
"""The name of the table of rankings; its columns `tau` and `same order` are read by scorecards."""

MIN_UNITS_FOR_VARIANCE = 20
"""Minimum number of people for the interval of a share of the variance; with fewer, it covers too rarely."""

_MAX_ODDS_RATIO = 6.0
"""Maximum ratio of the odds of the highest and of the estimated share. In resamples without any of the few scores that
differ, the odds are infinite.
"""

_SHARES_NOTE = (
    "Shares of the variance of a scenario's score between the user models of this run, between scenarios, and the rest "
    "(the user models' different effects on scenarios, and chance); by a two-way analysis of variance of the scenarios "
    "that were scored with every user model. In brackets: 95 % intervals for these user models, bootstrapped over "
    "{units} and widened for few {units} as by Student's t (none for fewer than {fewest} {units}, because they would "
    "miss the true share too often; here there are {count:,}). A dash: all scores are equal, or those of fewer than "
    "two {units} are known."
)
_TAU_NOTE = (
    "Kendall's tau-b compares the order of the assistants' means with one user model to their order with another: 1 is "
    "the same order, -1 the reverse. It is averaged over the pairs of user models, and covers the scenarios that all "
    "assistants have played with every user model. In brackets: 95 % intervals, bootstrapped over {units} and widened "
    "for few {units} as by Student's t (none for fewer than {fewest} {units}). Chance orders nearly equal assistants "
    "differently with each user model; so for the upper end, two assistants count as ordered equally if the interval "
    "of their difference contains 0. A dash: all means with one user model are equal."
)


def user_tables(reported: Sequence[ReportedRun], recipe: Recipe, where: str | None) -> list[Table]:
    """Return the tables about runs with several user models; empty if no run has several user models.

    Args:
        reported: The runs.
        recipe: Their recipe.
        where: Only episodes that match this expression.
    """
    several = [each for each in reported if each.run.config.users]
    if not several:
        return []
    label = ["run"] if len(reported) > 1 else []
    means = Table("user-models", "Scores by user model", [*label, "metric", "user model", "scenarios", "mean"])
    shares = ["user models %", "scenarios %", "rest %"]
    spread = Table("user-variance", "Variance between user models", [*label, "metric", "scenarios", *shares])
    units = WithFacets.of(recipe).units
    scores_by_run = [_Scores.read(each, where) for each in several]
    left_out = omitted_turn_notes({what for scores in scores_by_run for what in scores.by_turn})
    has_trials = any(each.run.config.trials > 1 for each in several)
    means.notes = [intervals(units), *([TRIALS_NOTE] if has_trials else []), *left_out]
    count = len({(one,) if unit is None else unit for each in scores_by_run for one, unit in each.units.items()})
    spread.notes = [_SHARES_NOTE.format(units=units, fewest=MIN_UNITS_FOR_VARIANCE, count=count), *left_out]
    for each, scores in zip(several, scores_by_run, strict=True):
        name = [each.label] if label else []
        means.shares |= dict.fromkeys(scores.tallies.keys() - scores.numeric, ("mean",))
        for what, tallies in scores.tallies.items():
            for user, tally in tallies.items():
                estimate = tally.estimate(as_scores=what in scores.numeric)
                means.rows.append([*name, what, user, len(scores.means[what][user]), estimate])
            grid, of_units = scores.grid(what, each.run.config.user_models)
            found = user_variance_shares(grid, of_units) if grid else None
            spread.rows.append([*name, what, len(grid), *(found or (None, None, None))])
    tables = [means, spread]
    users = several[0].run.config.user_models
    if len(several) > 1 and all(each.run.config.user_models == users for each in several):
        tables.append(_ranking_table(scores_by_run, users, units))
    return [table for table in tables if table.rows]


@dataclass(slots=True)
class _Scores:
    """A run's scores by subject of judgement and user model, averaged over the trials of each scenario.

    Attributes:
        means: The mean score of each scenario.
        tallies: The sums from which the mean of all scores and its interval are computed.
        units: The independent unit of each scenario, such as the person.
        numeric: The subjects with a score that is not a verdict.
        by_turn: The subjects of scores of single turns, which are left out.
    """

    means: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)
    units: dict[str, Hashable] = field(default_factory=dict)
    numeric: set[str] = field(default_factory=set)
    by_turn: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, reported: ReportedRun, where: str | None) -> _Scores:
        """Read the scores of whole conversations that match an expression."""
        recipe = reported.run.recipe
        scores, unit = cls(), WithFacets.of(recipe).unit_facet
        checked = WithJudging.of(recipe).check_metrics
        found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for episode in select_episodes(reported.run, reported.set_name, where):
            user = str(episode.facets[USER_MODEL])
            for judgement in episode.outcome.judgements:
                if judgement.turn is not None:
                    scores.by_turn.add(format_subject(judgement))
                    continue
                if judgement.score is None:
                    continue
                what, person = format_subject(judgement), episode.unit(unit)
                tally = scores.tallies.setdefault(what, {}).setdefault(
                    user, Tally(judged=judgement.metric not in checked)
                )
                tally.add(judgement.score, person, episode.repeated)
                if not isinstance(judgement.score, bool):
                    scores.numeric.add(what)
                found[what, user, episode.scenario].append(float(judgement.score))
                scores.units[episode.scenario] = person
        for (what, user, scenario), values in found.items():
            by_scenario = scores.means.setdefault(what, {}).setdefault(user, {})
            by_scenario[scenario] = math.fsum(values) / len(values)
        return scores

    def grid(self, what: str, users: Sequence[str]) -> tuple[list[list[float]], list[Hashable]]:
        """Return the means of scenarios that were scored with every user model, and their units."""
        by_user = [self.means.get(what, {}).get(user, {}) for user in users]
        common = [scenario for scenario in by_user[0] if all(scenario in each for each in by_user)]
        return [[each[scenario] for each in by_user] for scenario in common], [self.units[each] for each in common]


def _ranking_table(scores_by_run: Sequence[_Scores], users: Sequence[str], units: str) -> Table:
    """Return the table that compares the rankings of assistants with each user model."""
    columns = ["metric", "assistants", "user models", "scenarios", "tau", "same order"]
    table = Table(RANKING_TABLE, "Ranking of the assistants with each user model", columns)
    table.notes = [_TAU_NOTE.format(units=units, fewest=MIN_UNITS)]
    for what in (
        each for each in scores_by_run[0].means if not each.endswith(f"({USER})")
    ):  # the scores of the assistants
        by_run = [[scores.means.get(what, {}).get(user, {}) for user in users] for scores in scores_by_run]
        first = by_run[0][0]
        common = [scenario for scenario in first if all(scenario in means for of_users in by_run for means in of_users)]
        if not common:
            continue
        scored = [[[means[scenario] for means in of_users] for of_users in by_run] for scenario in common]
        tau = rank_agreement(scored, [scores_by_run[0].units[scenario] for scenario in common])
        same = None if tau is None else "yes" if tau.mean > 1 - 1e-9 else "no"
        table.rows.append([what, len(scores_by_run), len(users), len(common), tau, same])
    return table


def user_variance_shares(
    scores: Sequence[Sequence[float]], units: Sequence[Hashable]
) -> tuple[Estimate, float, float] | None:
    """Return the shares of the variance of scores that are due to user models, to scenarios, and to neither.

    The user models are a fixed set, not a sample. Their component is the variance of their effects minus its part that
    is due to chance, which is estimated from the independent units. The interval is a bootstrap over units; there, the
    part due to chance is subtracted twice, once for the sample and once for the resample. The distances of its ends
    from the share are widened as in `Tally.estimate`. Estimates of large shares are skewed, so the lower end is at most
    the upper end, reflected at the share in log odds, whose odds count as at most `_MAX_ODDS_RATIO` times the share's.
    There is no interval for fewer than `MIN_UNITS_FOR_VARIANCE` units, or if all resamples are equal.

    Args:
        scores: For each scenario, its score with each of at least two user models.
        units: The independent unit of each scenario, such as the person.

    Returns:
        Three fractions whose sum is 1; `None` if there is no variance, or only one unit.
    """
    import numpy as np  # slow to import, and not needed to read a run

    values, groups = np.array(scores, dtype=float), _build_membership(units)
    count, (size, users) = len(groups), values.shape
    if count < 2 or size < 2:
        return None
    middle = values.mean(axis=1)
    deviations_from_mean, centred = values - middle[:, None], middle - middle.mean()
    # Sums over the scenarios of each unit, from which the components of any resample can be computed: the numbers of
    # scenarios, the deviations from the scenarios' means by user model, these means, and squares.
    sizes, deviations, squares = (
        groups.sum(axis=1),
        groups @ deviations_from_mean,
        groups @ (deviations_from_mean**2).sum(axis=1),
    )
    means, squared_means = groups @ centred, groups @ centred**2

    def components(drawn: NDArray[np.float64], times: int) -> tuple[NDArray[np.float64], ...]:
        """Return, for each resample, the variances due to user models, to scenarios, and to neither, all at least 0.

        Args:
            drawn: The number of times that each unit occurs (resamples x units).
            times: The number of times that the part due to chance is subtracted from the variance of user models.
        """
        number = drawn @ sizes
        effects = drawn @ deviations / number[:, None]
        by_chance = drawn @ (deviations**2).sum(axis=1) - 2 * ((drawn * sizes) @ deviations * effects).sum(axis=1)
        by_chance += drawn @ sizes**2 * (effects**2).sum(axis=1)
        by_chance *= count / (count - 1) / number**2
        between = ((effects**2).sum(axis=1) - times * by_chance) / (users - 1)
        rest = (drawn @ squares - number * (effects**2).sum(axis=1)) / ((users - 1) * np.maximum(number - 1, 1))
        spread = (drawn @ squared_means - (drawn @ means) ** 2 / number) / np.maximum(number - 1, 1)
        return tuple(np.maximum(part, 0.0) for part in (between, spread - rest / users, rest))

    user_variance, scenario_variance, rest = (float(part[0]) for part in components(np.ones((1, count)), 1))
    total = user_variance + scenario_variance + rest
    if total <= 1e-12:
        return None
    share, low, high = user_variance / total, None, None
    if count >= MIN_UNITS_FOR_VARIANCE:
        parts = components(_draw_resamples(count), 2)
        first, last = percentile_interval(parts[0] / np.maximum(sum(parts), 1e-12))
        if last - first > 1e-9:
            factor, odds = widening_factor(count), share / max(1 - share, 1e-12)
            reflected = odds * max(odds * (1 - last) / max(last, 1e-12), 1 / _MAX_ODDS_RATIO) ** factor
            low = max(0.0, min(share + factor * (first - share), reflected / (1 + reflected), share))
            high = min(1.0, max(share + factor * (last - share), share))
    return Estimate(size, share, low, high), scenario_variance / total, rest / total


def rank_agreement(scores: Sequence[Sequence[Sequence[float]]], units: Sequence[Hashable]) -> Estimate | None:
    """Return Kendall's tau-b between the rankings of assistants with one user model and another, averaged over pairs.

    The interval is the percentile interval of a bootstrap over units, whose differences of means are widened as in
    `Tally.estimate`. Chance lowers tau, in the sample and more so in resamples: it orders nearly equal assistants
    differently with each user model. So the upper end is at least the tau for which two assistants count as ordered
    equally with two user models unless their order is known with both, i.e. unless the intervals of both differences
    exclude 0.

    Args:
        scores: For each scenario and each assistant, the score with each user model.
        units: The independent unit of each scenario, such as the person.

    Returns:
        The tau with its interval; `None` if all assistants have equal means with some user model. A resample without a
        ranking counts as 0.
    """
    import numpy as np  # slow to import, and not needed to read a run

    values, groups = np.array(scores, dtype=float), _build_membership(units)
    sums, sizes = np.einsum("gs,sau->gau", groups, values), groups.sum(axis=1)

    def differences(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the differences between the means of any two assistants (resamples x pairs x user models)."""
        means = np.einsum("rg,gau->rau", drawn, sums) / (drawn @ sizes)[:, None, None]
        pairs = itertools.combinations(range(means.shape[1]), 2)
        return np.stack([means[:, one] - means[:, other] for one, other in pairs], axis=1)

    def tau(apart: NDArray[np.float64]) -> NDArray[np.float64]:
        signs, found = np.where(np.abs(apart) < 1e-9, 0.0, np.sign(apart)), []
        for one, other in itertools.combinations(range(signs.shape[2]), 2):
            scale = np.sqrt(np.abs(signs[:, :, one]).sum(axis=1) * np.abs(signs[:, :, other]).sum(axis=1))
            agreed = (signs[:, :, one] * signs[:, :, other]).sum(axis=1)
            found.append(np.divide(agreed, scale, out=np.full_like(agreed, np.nan), where=scale > 0))
        averaged: NDArray[np.float64] = np.mean(found, axis=0)
        return averaged

    count = len(sizes)
    apart = differences(np.ones((1, count)))
    whole, low, high = float(tau(apart)[0]), None, None
    if math.isnan(whole):
        return None
    if count >= MIN_UNITS:
        resampled = apart + widening_factor(count) * (differences(_draw_resamples(count)) - apart)
        low, high = percentile_interval(np.nan_to_num(tau(resampled)))
        higher, lower = ((side > 1e-9).mean(axis=0) > (1 + CONFIDENCE_LEVEL) / 2 for side in (resampled, -resampled))
        known = higher.astype(float) - lower  # pairs of assistants x user models
        users = itertools.combinations(range(known.shape[1]), 2)
        products = np.array([known[:, one] * known[:, other] for one, other in users])
        low, high = min(low, whole), max(high, whole, float(np.where(products == 0, 1.0, products).mean()))
    return Estimate(len(scores), whole, low, high)


def _build_membership(units: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return a matrix of the scenarios in each unit (units x scenarios); `None` makes a scenario a unit of its own."""
    import numpy as np  # slow to import, and not needed to read a run

    places = group_pairs(((place,) if unit is None else unit, place) for place, unit in enumerate(units))
    found = np.zeros((len(places), len(units)))
    for row, of_unit in enumerate(places.values()):
        found[row, of_unit] = 1.0
    return found


def _draw_resamples(units: int) -> NDArray[np.float64]:
    """Return the number of times that each unit occurs in each resample; the random seed is fixed."""
    import numpy as np  # slow to import, and not needed to read a run

    shares = np.full(units, 1 / units)
    return np.random.default_rng(0).multinomial(units, shares, size=RESAMPLES).astype(float)
