"""Differences between the scores of runs, paired by scenario, and the correlation between score and length."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialoom.graphs import Judgement, Outcome, Recipe, Table, WithFacets, WithJudging
from dialoom.graphs.outcome import find_turn_ends, parse_episode_numbers
from dialoom.graphs.tables.statistics import (
    MIN_UNITS,
    PairedDifference,
    holm,
    is_constant,
    paired_difference,
    rank_correlation,
)
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store.references import encode_canonical
from dialoom.text import count_words

from .labelled_runs import ReportedRun, different_users_warning, find_user_differences, title_with_user_differences

SIGNIFICANCE_LEVEL = 0.05
"""A difference is reported as significant if its p value after Holm's correction is below this level."""


@dataclass(frozen=True, slots=True)
class _ScoredEpisode:
    """One conversation's facets, its person, its scenario, and its mean scores by subject of judgement.

    Attributes:
        scenario: The scenario's id, which all of its trials share.
        verdicts: The subjects whose scores are verdicts.
        checked_subjects: The subjects that a check scores rather than a judge.
    """

    facets: Mapping[str, Any]
    person: str
    scenario: str
    means: Mapping[str, float]
    verdicts: Collection[str]
    checked_subjects: Collection[str]


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """The difference between a run and the first one in one metric, on the same scenarios.

    Attributes:
        label: The run's label.
        subject: The metric and target, as named by `format_subject`.
        before: The mean in the first run, over these scenarios.
        after: The mean in this run.
        paired: The tested difference; marked as constant if all scores of either run are equal.
        is_share: Whether the scores are verdicts, so that the means are shares.
        unpaired: The number of conversations of each run (the first, this one) for which the other has no score.
        scenarios: The number of scenarios to which the pairs belong; each may have several trials.
    """

    label: str
    subject: str
    before: float
    after: float
    paired: PairedDifference
    is_share: bool
    unpaired: tuple[int, int]
    scenarios: int


def format_subject(judgement: Judgement) -> str:
    """Return the subject of a judgement (metric and target) as the name of a column or row."""
    return f"{judgement.metric} ({judgement.target})" + (" by turn" if judgement.turn else "")


def omitted_turn_notes(left_out: Collection[str]) -> list[str]:
    """Return the note on the judgements by turn that a table of whole conversations leaves out.

    The list is empty if it leaves out none.
    """
    listed = ", ".join(sorted(left_out))
    return [f"Not in this table, which is about whole conversations: {listed}."] if left_out else []


def difference_tables(
    reported: Sequence[ReportedRun], recipe: Recipe, where: str | None, allow_different_users: bool = False
) -> list[Table]:
    """Return a table of each further run's differences from the first; empty if no scenario was scored in both.

    Scenarios are paired if their content is equal. If two runs have no such scenarios, those are paired whose facets
    are equal, ignoring facets that are constant within each run and differ between the runs, such as the setting.

    Args:
        reported: The runs.
        recipe: Their recipe.
        where: Only episodes that match this expression.
        allow_different_users: Whether runs are compared whose simulated users differ; the title then says so.
    """
    first, differing = reported[0].label, find_differing_users(reported, recipe)
    compared = [each for each in reported if allow_different_users or each.label not in differing]
    rows, by_facets = compute_differences(compared, recipe, where)
    refused = {} if allow_different_users else differing
    if not rows and not refused:
        return []
    adjusted_p = holm([row.paired.p for row in rows])
    title = f"Differences from {first} on the same scenarios"
    if allow_different_users:
        title = title_with_user_differences(title, itertools.chain.from_iterable(differing.values()))
    table = Table("differences", title, [*_COLUMNS])
    table.warnings += [different_users_warning(label, first, what) for label, what in refused.items()]
    if not rows:
        return [table]
    table.decimals = {"p": 3}
    table.shares = {row.subject: MEAN_COLUMNS for row in rows if row.is_share}
    for row, p in zip(rows, adjusted_p, strict=True):
        table.rows.append([row.label, row.subject, row.before, row.after, row.paired.estimate, p])
    table.notes += [*_significance_notes(rows, adjusted_p, first), *_unpaired_notes(rows, first)]
    units = WithFacets.of(recipe).units
    if any(p is not None for p in adjusted_p):
        additional = f"about {3 * max(row.scenarios for row in rows):,} more"
        from_units = "" if units == "scenarios" else f", from further {units} too"
        table.notes.append(
            f"An interval half as wide would take about four times as many scenarios: {additional}{from_units}."
        )
    table.notes += turn_score_notes(rows)
    table.notes += [*([_PAIRED_BY_FACETS_NOTE] if by_facets else []), _TEST_NOTE.format(units=units, fewest=MIN_UNITS)]
    return [table]


def find_differing_users(reported: Sequence[ReportedRun], recipe: Recipe) -> dict[str, list[str]]:
    """Return the labels of the runs whose simulated users differ from the first run's, each with the differences."""
    found = {each.label: find_user_differences(reported[0], each, recipe) for each in reported[1:]}
    return {label: what for label, what in found.items() if what}


def compute_differences(
    reported: Sequence[ReportedRun], recipe: Recipe, where: str | None
) -> tuple[list[ScoreDifference], bool]:
    """Return the differences of each further run from the first, and whether scenarios were paired by facets."""
    runs = [_read_scores(each, recipe, where) for each in reported]
    rows: list[ScoreDifference] = []
    by_facets = False
    for each, scored in zip(reported[1:], runs[1:], strict=True):
        pairs, is_by_facets = _pair_episodes(runs[0], scored)
        by_facets |= is_by_facets
        rows += _compute_run_differences(each.label, pairs, (runs[0], scored))
    return rows, by_facets


MEAN_COLUMNS = ("mean of the first", "mean", "difference")
_COLUMNS = ("run", "metric", *MEAN_COLUMNS, "p")
_TEST_NOTE = (
    "Differences of percentages are in percentage points. In brackets: 95 % intervals, bootstrapped over {units}, "
    "drawing all differences of a unit together, because they are not independent, and widened for few {units} as by "
    "Student's t (none for fewer than {fewest} {units}). p: from the same bootstrap, with Holm's correction for all "
    "rows together."
)
_PAIRED_BY_FACETS_NOTE = "Scenarios are paired if they differ only in facets in which the runs as a whole differ."


def _read_scores(reported: ReportedRun, recipe: Recipe, where: str | None) -> dict[str, _ScoredEpisode]:
    unit, found = WithFacets.of(recipe).unit_facet, dict[str, _ScoredEpisode]()
    checks = WithJudging.of(recipe).check_metrics
    for episode in select_episodes(reported.run, reported.set_name, where):
        judged = ((format_subject(each), each.score) for each in episode.outcome.judgements)
        scores = group_pairs((what, score) for what, score in judged if score is not None)
        if scores:
            means = {what: sum(values) / len(values) for what, values in scores.items()}
            verdicts = {what for what, values in scores.items() if all(isinstance(each, bool) for each in values)}
            checked = {format_subject(each) for each in episode.outcome.judgements if each.metric in checks}
            found[episode.id] = _ScoredEpisode(
                episode.facets, str(episode.cluster(unit)), episode.scenario, means, verdicts, checked
            )
    return found


def _pair_episodes(
    first: dict[str, _ScoredEpisode], second: dict[str, _ScoredEpisode]
) -> tuple[list[tuple[_ScoredEpisode, _ScoredEpisode]], bool]:
    """Return the common scenarios of two runs, and whether they were paired by their facets."""
    if common := [id_ for id_ in first if id_ in second]:
        return [(first[id_], second[id_]) for id_ in common], False
    values: tuple[dict[str, set[str]], ...] = (defaultdict(set), defaultdict(set))
    for found, scored in zip(values, (first, second), strict=True):
        for name, value in (facet for each in scored.values() for facet in each.facets.items()):
            found[name].add(encode_canonical(value))
    ignored = {
        name
        for name, first_values in values[0].items()
        if len(first_values) == len(values[1][name]) == 1 and first_values != values[1][name]
    }
    left, right = (_index_by_facets(scored, ignored) for scored in (first, second))
    return [(left[key], right[key]) for key in left if key in right], True


def _index_by_facets(scored: Mapping[str, _ScoredEpisode], ignored: set[str]) -> dict[str, _ScoredEpisode]:
    """Return the scenarios whose facets other than `apart` no other scenario shares, by these facets and the trial."""
    keys = {
        id_: encode_canonical(
            [parse_episode_numbers(id_)[0], {name: value for name, value in each.facets.items() if name not in ignored}]
        )
        for id_, each in scored.items()
    }
    counts = Counter(keys.values())
    return {keys[id_]: each for id_, each in scored.items() if counts[keys[id_]] == 1}


def _compute_run_differences(
    label: str,
    pairs: Sequence[tuple[_ScoredEpisode, _ScoredEpisode]],
    runs: tuple[Mapping[str, _ScoredEpisode], Mapping[str, _ScoredEpisode]],
) -> list[ScoreDifference]:
    rows = []
    counts = [Counter(what for each in run.values() for what in each.means) for run in runs]
    for what in dict.fromkeys(what for one, _ in pairs for what in one.means):
        both = [(one, other) for one, other in pairs if what in one.means and what in other.means]
        found = paired_difference((one.person, other.means[what] - one.means[what]) for one, other in both)
        if found is not None:
            means = [[each[side].means[what] for each in both] for side in (0, 1)]
            before, after = (sum(of_run) / len(both) for of_run in means)
            is_judged = not any(what in one.checked_subjects for one, _ in both)
            constant = any(is_constant(len(both), min(of_run), max(of_run)) for of_run in means) if is_judged else None
            found = replace(found, estimate=replace(found.estimate, is_constant=constant))
            alone = counts[0][what] - len(both), counts[1][what] - len(both)
            is_share = all(what in each.verdicts for of_pair in both for each in of_pair)
            scenarios = len({one.scenario for one, _ in both})
            rows.append(ScoreDifference(label, what, before, after, found, is_share, alone, scenarios))
    return rows


def _significance_notes(rows: Sequence[ScoreDifference], adjusted_p: Sequence[float | None], first: str) -> list[str]:
    """Return a sentence for each significant difference, and one for all others."""
    notes, insignificant = [], []
    several = len({row.label for row in rows}) > 1
    for row, p in zip(rows, adjusted_p, strict=True):
        found = row.paired.estimate
        if p is not None and p < SIGNIFICANCE_LEVEL:
            word = "higher" if found.mean > 0 else "lower"
            factor, places, unit = (100, 1, " percentage points") if row.is_share else (1, 2, "")
            by, low, high = (
                f"{factor * each:.{places}f}" for each in (abs(found.mean), found.low or 0, found.high or 0)
            )
            notes.append(
                f"{row.subject} is {word} in {row.label} than in {first}: by {by}{unit} "
                f"(95 % interval {low} to {high}, p {p:.3f})."
            )
        elif p is not None:
            insignificant.append(f"{row.subject} of {row.label}" if several else row.subject)
    if insignificant:
        notes.append(
            f"No significant difference in {', '.join(insignificant)}: differences this large often arise by chance."
        )
    return notes


def turn_score_notes(rows: Iterable[ScoreDifference]) -> list[str]:
    """Return the note on scores of turns, which other tables do not average by conversation; empty without them."""
    is_by_turn = any(row.subject.endswith(" by turn") for row in rows)
    return ["Scores by turn: each conversation counts once, with the mean of its turns."] if is_by_turn else []


def _unpaired_notes(rows: Sequence[ScoreDifference], first: str) -> Iterator[str]:
    """Yield a sentence for each reason why conversations could not be paired, with their number."""
    metrics = group_pairs(((row.label, row.unpaired), row.subject) for row in rows)
    for (label, alone), of in metrics.items():
        if any(alone):
            counts = f"{first} {alone[0]:,}, {label} {alone[1]:,}"
            yield f"{', '.join(of)}: conversations that are scored in one run only are left out: {counts}."


_LENGTH_NOTE = (
    "Spearman's rank correlation between a score and the number of words judged: the words of the judged role in the "
    "whole conversation, or in the judged turn. In brackets: 95 % intervals (Bonett and Wright's, as if all scores "
    "were independent). An interval without 0 may show that the judge is biased, or that longer replies are better; a "
    "different kind of judge can show which of the two is true."
)


def length_table(reported: Sequence[ReportedRun], labels: Sequence[str], where: str | None) -> list[Table]:
    """Return a table of correlations of a judge's score and length, by scaled metric and set; empty without results.

    Args:
        reported: The runs, each with a set.
        labels: Their labels.
        where: Only scenarios matching this expression.
    """
    several = len(reported) > 1
    table = Table("length", "Length bias", [*(["judgements"] if several else []), "metric", "correlation"])
    table.facets = {"judgements": None, "metric": None}
    for each, label in zip(reported, labels, strict=True):
        judging = WithJudging.of(each.run.recipe)
        scaled = judging.scales.keys() - judging.check_metrics
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for episode in select_episodes(each.run, each.set_name, where):
            for judgement in episode.outcome.judgements:
                if judgement.metric not in scaled or judgement.score is None:
                    continue
                for words in _count_judged_words(episode.outcome, judgement):
                    pairs[format_subject(judgement)].append((words, float(judgement.score)))
        rows = [(what, rank_correlation(found)) for what, found in pairs.items()]
        table.rows += [[*([label] if several else []), what, found] for what, found in rows if found is not None]
    table.notes.append(_LENGTH_NOTE)
    return [table] if table.rows else []


def _count_judged_words(outcome: Outcome, judgement: Judgement) -> Iterator[float]:
    """Yield the number of words in the judged lines, if these lines are known."""
    if judgement.turn is None:
        lines = [line.content for line in outcome.messages if line.role == judgement.target]
    else:
        ends = find_turn_ends(outcome.messages, judgement.target)[judgement.turn - 1 : judgement.turn]
        lines = [outcome.messages[end - 1].content for end in ends]
    if lines:
        yield math.fsum(map(count_words, lines))
