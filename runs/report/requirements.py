"""Requirements on a run's scores, such as `resolved >= 80%`, and checks with the reasons why they are not met."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dialoom.errors import Advice
from dialoom.graphs import Episode, Estimate, Recipe, WithFacets, WithJudging, WithRoles
from dialoom.graphs.outcome import USER
from dialoom.graphs.simulation import Simulation
from dialoom.graphs.tables.statistics import Tally, holm
from dialoom.graphs.tables.table import DOUBTFUL_MARK
from dialoom.roles import ModelBinding
from dialoom.runs.configuration.trust import recipe_references
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import check_selection, select_episodes
from dialoom.runs.store import RunFile
from dialoom.settings import parse_names

from .differences import SIGNIFICANCE_LEVEL, compute_differences, format_subject
from .health import assess_health
from .labelled_runs import (
    ReportedRun,
    differing_keys,
    find_user_differences,
    label_runs,
    offline_roles,
    select_prompt_hashes,
    title_with_user_differences,
    unjudged_note,
)
from .trials import estimate_pass_rate, pass_hat

ALLOWABLE_CONDITIONS = ("constant", "missing", "offline", "unfinished", "unhealthy")
"""Conditions that make a requirement fail unless the user allows them: all scores of a judge are equal, scores are
missing, an offline model affects the scores, scenarios failed or were not played, or the judge fails another check of
its health.
"""

_REQUIREMENT = re.compile(
    r"(?:pass\^(?P<k>[1-9]\d*)\((?P<passed>.+)\)|(?P<metric>.+?))\s*(?P<sign>[<>]=?)\s*(?P<bound>\S+)"
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on the mean score of a metric.

    Attributes:
        metric: The metric, with or without a target, such as `tone (assistant)` or `tone`.
        sign: `>=`, `>`, `<=` or `<`.
        bound: The bound; a percentage as a fraction.
        is_share: Whether the bound was given as a percentage, which is valid for verdicts and not for scores; `None`
            for a number that is valid for both, as the share of a verdict or the mean of a score.
        k: If set, the bound is for pass^k, the probability that k trials of a scenario all succeed.
    """

    metric: str
    sign: str
    bound: float
    is_share: bool | None
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Parse a requirement such as `resolved >= 80%` or `pass^3(resolved) >= 60%`.

        Raises:
            RunError: If the text is not a requirement.
        """
        found = _REQUIREMENT.fullmatch(text.strip())
        number = None if found is None else re.fullmatch(r"(-?\d+(?:\.\d+)?)(%?)", found["bound"])
        if found is None or number is None:
            raise RunError(f"{text!r} is not of the form 'METRIC >= NUMBER', 'METRIC >= N%' or 'pass^K(METRIC) >= N%'")
        share = bool(number[2])
        bound = float(number[1]) / 100 if share else float(number[1])
        k = None if found["k"] is None else int(found["k"])
        if k is not None and not share:
            raise RunError(f"{text!r}: pass^{k} is a probability: give a percentage, such as 60%")
        return cls((found["passed"] or found["metric"]).strip(), found["sign"], bound, share, k)

    def __str__(self) -> str:
        name = self.metric if self.k is None else f"pass^{self.k}({self.metric})"
        return f"{name} {self.sign} {_format_number(self.bound, bool(self.is_share))}"


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """The result of a check of a requirement.

    Attributes:
        requirement: The requirement as text.
        estimate: The value (for a comparison, the difference) with its interval and n; `None` if there is no score.
        is_share: Whether the value is a share.
        reasons: The reasons why the requirement is not met; empty if it is met.
        metric: The metric.
        is_upper: Whether the bound is an upper bound, so that high scores are bad.
        unpaired: For a comparison, the number of conversations of each run (the baseline, this one) for which the other
            has no score.
    """

    requirement: str
    estimate: Estimate | None
    is_share: bool
    reasons: tuple[str, ...]
    metric: str = ""
    is_upper: bool = False
    unpaired: tuple[int, int] | None = None

    @property
    def is_met(self) -> bool:
        """Return whether the requirement is met."""
        return not self.reasons

    def __str__(self) -> str:
        line = f"{'met' if self.is_met else 'NOT MET'}: {self.requirement}: {self.value}"
        return line if self.is_met else f"{line}: {'; '.join(self.reasons)}"

    @property
    def value(self) -> str:
        """The value with its interval and n as text; for a comparison, also how many conversations have no pair."""
        if self.estimate is None:
            return "no score"
        found, text = self.estimate, _format_number if self.unpaired is None else _format_change
        ends = [text(end, self.is_share) for end in (found.low, found.high) if end is not None]
        mark, interval = DOUBTFUL_MARK if found.is_doubtful else "", f"[{', '.join(ends)}]" if ends else "no interval"
        mean = text(found.mean, self.is_share)
        if self.unpaired is None:
            return f"{mean}{mark} {interval} n={found.n}"
        points, noun = " percentage points" if self.is_share else "", "pair" if found.n == 1 else "pairs"
        before, now = self.unpaired
        pairs = f"{noun} (without a pair: {before:,} of the baseline, {now:,} of this run)"
        return f"{mean}{points}{mark} {interval} n={found.n} {pairs}"


def parse_allowed(allowed: Iterable[str]) -> frozenset[str]:
    """Return the conditions to accept, given as names or as comma-separated strings.

    Raises:
        RunError: If a condition is unknown.
    """
    named = [name for each in ([allowed] if isinstance(allowed, str) else allowed) for name in parse_names(each)]
    if unknown := [each for each in named if each not in ALLOWABLE_CONDITIONS]:
        raise RunError(f"allow must be one of {', '.join(ALLOWABLE_CONDITIONS)}, got {unknown[0]!r}", setting="allow")
    return frozenset(named)


def check_requirements(
    run: RunFile,
    requirements: Sequence[str | Requirement],
    baseline: RunFile | None,
    metrics: Collection[str],
    judging: str | None,
    where: str | None,
    is_confident: bool,
    allowed: Collection[str],
    allow_different_users: bool = False,
) -> list[RequirementResult]:
    """Check requirements on a run, and that it is not worse than a baseline run; return the results.

    Args:
        run: The run.
        requirements: The requirements, as values or texts.
        baseline: The run to compare with, if there is one.
        metrics: Metrics to compare besides those of the requirements; all metrics if there are no requirements either.
        judging: The set of judgements in each run; by default the oldest.
        where: Only scenarios that match this expression.
        is_confident: Whether the worse end of the confidence interval must meet the requirements, too.
        allowed: Those conditions of `ALLOWABLE_CONDITIONS` that do not fail a requirement.
        allow_different_users: Whether the simulated users of the two runs may differ.

    Raises:
        RunError: If nothing is required, a requirement cannot be checked, or the runs cannot be compared.
        StoreError: If a run has no such set.
    """
    allowed = parse_allowed(allowed)
    if invalid := [each for each in requirements if not isinstance(each, str | Requirement)]:
        form = "a requirement must be a text such as 'resolved >= 80%'"
        raise RunError(f"{form}, got {invalid[0]!r:.60}", setting="requirements")
    parsed = [Requirement.parse(each) if isinstance(each, str) else each for each in requirements]
    if not parsed and baseline is None:
        raise RunError("give at least one requirement, such as 'resolved >= 80%'", setting="requirements")
    recipe = run.recipe
    reported = label_runs([run], recipe, judging)[0]
    for each in filter(None, (run, baseline)):
        check_selection([each], judging, where)
    scores = _tally_scores(select_episodes(run, reported.set_name, where), recipe, reported.lower_is_better(recipe))
    objections, doubts = _find_objections(reported, where, allowed), _find_doubts(reported, where)
    results = [_check_requirement(each, scores, recipe, objections, is_confident, allowed, doubts) for each in parsed]
    if baseline is not None:
        before = label_runs([baseline], recipe, judging)[0]
        results += check_not_worse(
            before,
            reported,
            recipe,
            {*metrics, *(each.metric for each in parsed)},
            {each.metric for each in parsed if each.sign[0] == "<"},
            where,
            allowed,
            allow_different_users,
        )
    return results


def check_outcome(
    episode: Episode,
    recipe: Recipe,
    models: Mapping[str, ModelBinding],
    requirements: Sequence[Requirement],
    is_confident: bool,
    allowed: Collection[str],
) -> list[RequirementResult]:
    """Check requirements on one conversation, such as a case that was played again; return the results.

    Raises:
        RunError: If a metric is unknown, or is given a bound of the wrong kind.
    """
    scores = _tally_scores([episode], recipe, WithJudging.of(recipe).lower_is_better)
    allowed = {*parse_allowed(allowed), "constant"}
    objections = _find_offline_objections(models.items(), allowed)
    return [_check_requirement(each, scores, recipe, objections, is_confident, allowed, {}) for each in requirements]


def check_not_worse(
    baseline: ReportedRun,
    reported: ReportedRun,
    recipe: Recipe,
    metrics: Collection[str],
    lower_is_better: Collection[str],
    where: str | None,
    allowed: Collection[str],
    allow_different_users: bool = False,
) -> list[RequirementResult]:
    """Check, for each metric, that a run is not worse than a baseline run, by the paired test of differences.

    Args:
        baseline: The baseline run.
        reported: The run.
        recipe: The recipe of both runs.
        metrics: The metrics; all if none are given.
        lower_is_better: Metrics of which lower scores are better, in addition to those that the recipe declares.
        where: Only scenarios that match this expression.
        allowed: Those conditions of `ALLOWABLE_CONDITIONS` that do not fail a requirement.
        allow_different_users: Whether the runs' simulated users may differ; each result then states that they do.

    Raises:
        RunError: If the runs differ in something other than the role under evaluation, or a metric has no pair.
    """
    differing_users = find_user_differences(baseline, reported, recipe)
    _ensure_comparable(baseline, reported, recipe, differing_users, allow_different_users)
    rows, by_facets = compute_differences([baseline, reported], recipe, where)
    all_subjects = {
        format_subject(judgement)
        for each in (baseline, reported)
        for episode in select_episodes(each.run, each.set_name, where)
        for judgement in episode.outcome.judgements
    }
    known = [row.subject for row in rows]
    named = {metric: _match_subjects(metric, known) for metric in metrics or sorted(all_subjects)}
    if missing := [metric for metric, results in named.items() if not results]:
        raise RunError(f"{baseline.run.path} and {reported.run.path} have no scores of {missing[0]!r} to compare")
    rows = [row for row in rows if not metrics or any(row.subject in results for results in named.values())]
    if not rows or by_facets:
        raise RunError(f"{baseline.run.path} and {reported.run.path} have no scores of the same scenarios to compare")
    objections = list(
        dict.fromkeys(why for each in (baseline, reported) for why in _find_objections(each, where, allowed))
    )
    doubts = [(each.run.path, _find_doubts(each, where)) for each in (baseline, reported)]
    units = WithFacets.of(recipe).units
    results, lower_is_better = [], {*lower_is_better, *reported.lower_is_better(recipe)}
    for row, p in zip(rows, holm([row.paired.p for row in rows]), strict=True):
        doubted = [f"{why} in {path}" for path, each in doubts if (why := each.get(row.subject))]
        reasons = [*objections, *([] if "unhealthy" in allowed else doubted)]
        is_low_good = not lower_is_better.isdisjoint(_subject_names(row.subject))
        word, change, sign = ("higher", "rise", 1) if is_low_good else ("lower", "loss", -1)
        is_worse = sign * row.paired.estimate.mean > 0 and not _are_equal(row.before, row.after)
        if is_worse and (p is None or p < SIGNIFICANCE_LEVEL):
            why = f" and there are too few {units} for a significance test" if p is None else f" p {p:.3f}"
            reasons.append(f"{word},{why}")
        name = title_with_user_differences(f"no significant {change} of {row.subject}", differing_users)
        estimate = replace(row.paired.estimate, is_doubtful=bool(doubted))
        results.append(
            RequirementResult(name, estimate, row.is_share, tuple(reasons), row.subject, is_low_good, row.unpaired)
        )
    return results


def _ensure_comparable(
    baseline: ReportedRun,
    reported: ReportedRun,
    recipe: Recipe,
    differing_users: Sequence[str],
    allow_different_users: bool,
) -> None:
    """Raise `RunError` if anything but the role under evaluation differs: models, prompts, options, code, or users."""
    evaluated = WithRoles.of(recipe).evaluated
    if differing_users and not allow_different_users:
        raise RunError(
            f"{reported.run.path} cannot be compared with {baseline.run.path}: their simulated users differ "
            f"({', '.join(differing_users)}), so a difference might not come from the {evaluated or 'model'}",
            advice=Advice("different_users", "allow different users to compare them anyway"),
        )
    ignored = {evaluated, USER} if allow_different_users else {evaluated}
    sides: list[Mapping[str, Any]] = []
    for each in (baseline, reported):
        models = {role: binding for role, binding in each.models.items() if role not in ignored}
        side: dict[str, Mapping[str, Any]] = {"prompt": select_prompt_hashes(each, models), "model of": models}
        side |= {"option": each.run.config.options, "code of": _recipe_code_hashes(each.run)}
        sides.append({f"{what} {name}": value for what, values in side.items() for name, value in values.items()})
    if differing := differing_keys(sides):
        raise RunError(
            f"{reported.run.path} cannot be compared with {baseline.run.path}: they also differ in "
            f"{', '.join(differing)}, so a difference might not come from the {evaluated or 'model'}"
        )


def _recipe_code_hashes(run: RunFile) -> dict[str, str | None]:
    """Return the hashes of the Python code of a run's recipe, except that of the assistant's tools and environment."""
    config, recipe = run.config, run.recipe
    own = (*recipe.study.assistant.tools, recipe.study.assistant.environment) if isinstance(recipe, Simulation) else ()
    named = (each.spec for each in recipe_references(config.recipe, recipe=recipe))
    return {spec: config.code.get(spec) for spec in named if spec not in own}


@dataclass(slots=True)
class _Scores:
    """The scores of a metric and target in a run.

    Attributes:
        tally: All scores.
        is_verdict: Whether all are verdicts; `None` without scores.
        missing: The number of judgements without a score.
        trials: Whether each trial of a scenario succeeded, by the scenario.
    """

    tally: Tally = field(default_factory=Tally)
    is_verdict: bool | None = None
    missing: int = 0
    trials: dict[tuple[Hashable, str], list[bool]] = field(default_factory=lambda: defaultdict(list))


def _tally_scores(episodes: Iterable[Episode], recipe: Recipe, lower_is_better: Collection[str]) -> dict[str, _Scores]:
    """Return the scores by subject. The turns of one conversation belong to one unit of intervals."""
    unit, checks = WithFacets.of(recipe).unit_facet, WithJudging.of(recipe).check_metrics
    found: dict[str, _Scores] = {}
    for episode in episodes:
        person, successes = episode.unit(unit), defaultdict[str, list[bool | None]](list)
        for each in episode.outcome.judgements:
            what = format_subject(each)
            scores = found.setdefault(what, _Scores(Tally(judged=each.metric not in checks)))
            if each.turn is None:
                successes[what].append(
                    None if each.score is None else bool(each.score) != (each.metric in lower_is_better)
                )
            if each.score is None:
                scores.missing += 1
                continue
            if each.turn is None:
                scores.tally.add(each.score, person, episode.repeated)
            else:
                scores.tally.add(each.score, episode.cluster(unit), episode.repeated or episode.scenario)
            scores.is_verdict = scores.is_verdict is not False and isinstance(each.score, bool)
        for what, of_trial in successes.items():
            if None not in of_trial:
                found[what].trials[person, episode.in_trials].append(all(of_trial))
    return found


def _check_requirement(
    requirement: Requirement,
    scored: Mapping[str, _Scores],
    recipe: Recipe,
    objections: Sequence[str],
    is_confident: bool,
    allowed: Collection[str],
    doubts: Mapping[str, str],
) -> RequirementResult:
    subject, scores = _find_scores(requirement.metric, scored, recipe)
    is_verdict = bool(requirement.is_share) if scores.is_verdict is None else scores.is_verdict
    requirement = replace(requirement, is_share=is_verdict) if requirement.is_share is None else requirement
    if is_verdict != requirement.is_share:
        kind = "gives verdicts: give a percentage" if is_verdict else "gives scores: give a number"
        raise RunError(f"'{requirement}': {requirement.metric} {kind}")
    if is_verdict and not 0 <= requirement.bound <= 1:
        raise RunError(f"'{requirement}': a share must be from 0 to 1, that is from 0 % to 100 %")
    scale = None if is_verdict else _scales(recipe).get(subject.partition(" (")[0])
    if scale is not None and not scale[0] <= requirement.bound <= scale[1]:
        form = f"has scores from {scale[0]} to {scale[1]}; give a number in this range"
        raise RunError(f"'{requirement}': {requirement.metric} {form}")
    estimate = (
        scores.tally.estimate() if requirement.k is None else estimate_pass_rate(pass_hat, requirement.k, scores.trials)
    )
    doubt = doubts.get(subject, "")
    no_scores = (
        "there are no scores" if requirement.k is None else f"no scenario has {requirement.k} trials with a verdict"
    )
    reasons = [no_scores] if estimate is None else _find_misses(requirement, estimate, is_confident)
    is_constant = estimate is not None and estimate.is_constant and not is_verdict
    conditions = (
        ("missing", scores.missing, f"missing: {scores.missing} without a score"),
        ("constant", is_constant, "constant: all scores are equal"),
        ("unhealthy", doubt, doubt),
    )
    reasons += [reason for condition, applies, reason in conditions if applies and condition not in allowed]
    if estimate is not None and doubt:
        estimate = replace(estimate, is_doubtful=True)
    all_reasons, is_upper = (*reasons, *objections), requirement.sign[0] == "<"
    return RequirementResult(str(requirement), estimate, is_verdict, all_reasons, requirement.metric, is_upper)


def _scales(recipe: Recipe) -> dict[str, tuple[int, int] | None]:
    judging = WithJudging.of(recipe)
    scales = {metric: judge.scale for judge in judging.judges for metric in judge.metrics}
    return {**scales, **{check.metric: check.scale for check in judging.checks}}


def _find_objections(reported: ReportedRun, where: str | None, allowed: Collection[str]) -> list[str]:
    """Return the reasons why a run's scores are not accepted as evidence; empty if there are none."""
    reasons, status = _find_offline_objections(reported.role_bindings, allowed), reported.run.status()
    if (unfinished := status.total - status.done) and "unfinished" not in allowed:
        reasons.append(f"unfinished: {unfinished} {reported.run.config.units} failed or were not played")
    if "missing" not in allowed and (note := unjudged_note(reported, where, is_labelled=False)):
        reasons.append(f"missing: {note[0].lower()}{note[1:-1]}")
    return reasons


def _find_doubts(reported: ReportedRun, where: str | None) -> dict[str, str]:
    """Return the failed checks of each subject's judge; subjects whose judge fails no check are left out."""
    return {
        each.subject: f"unhealthy: {'; '.join(each.doubts)}" for each in assess_health(reported, where) if each.doubts
    }


def _find_offline_objections(players: Iterable[tuple[str, ModelBinding]], allowed: Collection[str]) -> list[str]:
    roles = "" if "offline" in allowed else offline_roles(players)
    return [f"offline: {roles} played by a scripted model, so the scores are not evidence"] if roles else []


def _find_misses(requirement: Requirement, found: Estimate, is_confident: bool) -> list[str]:
    mean, bound, is_least = found.mean, requirement.bound, requirement.sign[0] == ">"
    if not _meets(mean, requirement):
        is_share = bool(requirement.is_share)
        value = "the value"
        if not _are_equal(mean, bound) and _format_number(mean, is_share) == _format_number(bound, is_share):
            value = f"{100 * mean:.8g} %" if is_share else f"{mean:.8g}"  # both are rounded to one figure
        return [f"{value} is too {'low' if is_least else 'high'}"]
    if not is_confident:
        return []
    end, which = (found.low, "lower") if is_least else (found.high, "upper")
    if end is None:
        return ["there is no interval"]
    return [] if _meets(end, requirement) else [f"the interval's {which} end does not meet the requirement"]


def _meets(value: float, requirement: Requirement) -> bool:
    if _are_equal(value, requirement.bound):
        return requirement.sign.endswith("=")
    return (value > requirement.bound) == (requirement.sign[0] == ">")


def _are_equal(value: float, other: float) -> bool:
    """Return whether two values are equal apart from rounding errors: the mean of 0.6, 0.7 and 0.8 is not 0.7."""
    return math.isclose(value, other, rel_tol=1e-12, abs_tol=1e-12)


def _find_scores(metric: str, scored: Mapping[str, _Scores], recipe: Recipe) -> tuple[str, _Scores]:
    """Return the subject that a metric names, with or without a target, and its scores."""
    found = _match_subjects(metric, scored)
    if len(found) > 1:
        raise RunError(f"{metric!r} names several scores; give one of {', '.join(found)}")
    if found:
        return found[0], scored[found[0]]
    if metric in WithJudging.of(recipe).check_metrics:
        return metric, _Scores()
    known = ", ".join(dict.fromkeys(each.rpartition(" (")[0] for each in scored))
    raise RunError(f"unknown metric {metric!r}; the run has {known or 'no scores'}", setting="metrics")


def _match_subjects(metric: str, subjects: Collection[str]) -> list[str]:
    """Return the subject that a metric names exactly or, if there is none, all that it names without their ends."""
    return [metric] if metric in subjects else [each for each in subjects if metric in _subject_names(each)]


def _subject_names(subject: str) -> set[str]:
    """Return the names of a subject: with its target and whether turns are judged, without the latter, without both."""
    without_turn = subject.removesuffix(" by turn")
    return {subject, without_turn, without_turn.rpartition(" (")[0]}


def _format_change(value: float, is_share: bool) -> str:
    return f"{100 * value:+.1f}" if is_share else f"{value:+.2f}"


def _format_number(value: float, is_share: bool) -> str:
    return f"{100 * value:.1f} %" if is_share else f"{value:.2f}"
