"""Tables of calibrated scores: means, shares and differences between runs, from judges' scores and people's labels."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from dialoom.graphs import Estimate, Table, WithFacets, WithJudging
from dialoom.graphs.tables.statistics import MIN_UNITS, Tally, student_quantile
from dialoom.graphs.tables.table import Cell
from dialoom.grouping import group_pairs
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Group
from dialoom.runs.report.differences import find_differing_users
from dialoom.runs.report.health import assess_health, mark_doubtful
from dialoom.runs.report.labelled_runs import (
    ReportedRun,
    add_offline_column,
    collect_content_notes,
    different_users_warning,
    label_runs,
    title_with_user_differences,
)
from dialoom.runs.store import RunFile

from .calibration import (
    QUANTILE,
    Floats,
    Strata,
    calibrate,
    design_effect,
    labels_to_halve_interval,
    strata_limit,
    stratify,
)
from .items import Scale, Scales
from .labels import default_labels_path, read_labels
from .results import LabelledItems, excluded_label_notes, parse_label_codes


@dataclass(frozen=True, slots=True)
class CalibratedScore:
    """A mean of a judge's scores, or of their differences, calibrated with people's labels.

    Attributes:
        label: The run's label.
        group: The group of judgements.
        labels: The number of labelled items.
        judge: The mean of the judge's scores, with its interval; for a difference, without an interval.
        mean: The calibrated mean; n is the number of judged items.
        labels_only: The mean of the labels without the judge.
        effective_labels: The number of labels that would give the same precision without the judge.
        additional_labels: The number of additional labels that would halve the interval; `None` if even labels for all
            other items are not enough.
        is_paired: For a difference, whether the same items are labelled in both runs.
    """

    label: str
    group: Group
    labels: int
    judge: Cell
    mean: Estimate
    labels_only: Estimate
    effective_labels: float | None
    additional_labels: int | None
    is_paired: bool = True


@dataclass(frozen=True, slots=True)
class _Item:
    """An item: the judge's score, its sampling unit (such as a person), and the mean of its labels, if it has any.

    Attributes:
        scenario: The scenario's id.
    """

    score: float
    unit: Hashable
    scenario: str
    label: float | None


@dataclass(frozen=True, slots=True)
class _ScoredRun:
    """The scored items of a run by group, with their scales and notes; groups without any label are left out.

    Attributes:
        checks: The metrics that checks score rather than judges.
    """

    label: str
    items: Mapping[Group, Mapping[str, _Item]]
    scales: Mapping[Group, Scale]
    notes: Sequence[str]
    checks: Collection[str]


def calibration_tables(
    runs: Sequence[RunFile],
    labels: Sequence[Path | None] = (),
    judging: str | None = None,
    where: str | None = None,
    scales: Iterable[str] = (),
    allow_different_users: bool = False,
) -> list[Table]:
    """Return tables of each run's calibrated means and, for several runs, of their differences from the first run.

    Args:
        runs: Runs of one recipe.
        labels: The labels file of each run; by default the file beside the run.
        judging: The set of judgements; by default each run's oldest.
        where: Only scenarios matching this expression.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
        allow_different_users: Whether differences are computed between runs whose simulated users differ.

    Raises:
        RunError: If the numbers of labels files and runs differ, or no item has a label and a score.
        DataError: If a labels file cannot be read, or does not belong to its run.
        StoreError: If a run has no such set of judgements.
    """
    if labels and len(labels) != len(runs):
        raise RunError(f"labels: {len(labels)} files for {len(runs)} runs; give one for each, in order")
    reported = label_runs(runs, runs[0].recipe, judging)
    scales = [*scales]
    scored = [
        _read_scored_run(*each, where, scales) for each in zip(reported, labels or [None] * len(runs), strict=True)
    ]
    several = len(runs) > 1
    rows = [row for each in scored for row in _calibrate_groups(each)]
    tables = [_build_table("calibrated", "Calibrated scores", rows, several, is_difference=False)]
    differing = find_differing_users(reported, runs[0].recipe) if several else {}
    compared = [each for each in scored[1:] if allow_different_users or each.label not in differing]
    if not allow_different_users:
        notes = (different_users_warning(label, reported[0].label, what) for label, what in differing.items())
        tables[0].warnings += [f"Differences: {each}" for each in notes]
    if several and (rows := [row for each in compared for row in _compare_runs(scored[0], each)]):
        title = f"Calibrated differences from {reported[0].label}"
        if allow_different_users:
            title = title_with_user_differences(title, itertools.chain.from_iterable(differing.values()))
        tables.append(_build_table("calibrated-differences", title, rows, several, is_difference=True))
    verdicts = {str(group) for each in scored for group, scale in each.scales.items() if scale.is_verdict}
    for table in tables:
        table.shares = dict.fromkeys(verdicts, _MEAN_COLUMNS)
    mark_doubtful(tables[:1], [one for each in reported for one in assess_health(each, where)], several, only=["judge"])
    notes_below = [*(note for each in scored for note in each.notes), *collect_content_notes(reported, where)]
    for table in tables:
        table.notes += filter(None, notes_below)
    differences = add_offline_column(tables[1:], reported, with_first=True)
    return [*add_offline_column(tables[:1], reported), *differences]


def calibrate_scores(
    run: RunFile, labels: Path | None, judging: str | None, where: str | None
) -> list[CalibratedScore]:
    """Return the calibrated means of one run; see `calibration_tables`."""
    (reported,) = label_runs([run], run.recipe, judging)
    return [*_calibrate_groups(_read_scored_run(reported, labels, where, ()))]


def _read_scored_run(
    reported: ReportedRun, path: Path | None, where: str | None, overrides: Sequence[str]
) -> _ScoredRun:
    run = reported.run
    default_path = default_labels_path(run.path)
    if path is None and not default_path.exists():
        raise RunError(
            f"labels must be the path of a file of people's labels, as there is no {default_path}", setting="labels"
        )
    labels = read_labels(path or default_path)
    scales, unit = Scales(WithJudging.of(run.recipe).scales, overrides), WithFacets.of(run.recipe).unit_facet
    matched = LabelledItems(run, labels, reported.set_name, where)
    items = [*matched]
    labelled_groups = {item.group for _, item, row in items if row is not None and any(row.cells)}
    groups: dict[Group, dict[str, _Item]] = defaultdict(dict)
    unscored = Counter[Group]()
    for episode, item, row in items:
        if item.group not in labelled_groups or (score := scales.integer_score(item.judgement)) is None:
            unscored[item.group] += row is not None and any(row.cells)
            continue
        scale = scales.get(item.judgement.metric)
        codes = [] if row is None else [each for each in parse_label_codes(labels, row, scale) if each >= 0]
        label = scale.low + sum(codes) / len(codes) if codes else None
        groups[item.group][item.id] = _Item(score, episode.cluster(unit), episode.repeated or episode.scenario, label)
    groups = {group: by_id for group, by_id in groups.items() if any(each.label is not None for each in by_id.values())}
    if not groups:
        raise RunError(f"{labels.path}: no labelled item of {run.path} has a judge's score to calibrate")
    notes = [f"Labels: {labels.path.name}, by {', '.join(labels.annotators)}; several labels of an item are averaged."]
    missing = ((group, count) for group, count in unscored.items() if count)
    notes += [f"{group}: labelled items without a judge's score, left out: {count:,}." for group, count in missing]
    notes += excluded_label_notes(*matched.find_excluded())
    group_scales, checks = (
        {group: scales.get(group.metric) for group in groups},
        WithJudging.of(run.recipe).check_metrics,
    )
    return _ScoredRun(reported.label, groups, group_scales, notes, checks)


def _calibrate_groups(run: _ScoredRun) -> Iterator[CalibratedScore]:
    """Yield the calibrated mean of each group of judgements."""
    for group, items_by_id in run.items.items():
        scale = run.scales[group]
        items = {id_: ((each.score,), each.unit, each.label) for id_, each in items_by_id.items()}
        tally = Tally(judged=group.metric not in run.checks)
        for each in items_by_id.values():
            tally.add(bool(each.score) if scale.is_verdict else each.score, each.unit, each.scenario)
        yield _calibrate_group(run.label, group, items, tally.estimate(), (scale.low, scale.high), scale.is_verdict)


def _compare_runs(first: _ScoredRun, other: _ScoredRun) -> Iterator[CalibratedScore]:
    """Yield each group's difference between two runs: paired if enough items are labelled in both, else unpaired."""
    estimates = [{row.group: row for row in _calibrate_groups(run)} for run in (first, other)]
    for group in (group for group in first.items if group in other.items):
        first_items, other_items, scale = first.items[group], other.items[group], first.scales[group]
        items = {
            id_: (
                (other_items[id_].score - each.score, each.score),
                each.unit,
                None if each.label is None or (label := other_items[id_].label) is None else label - each.label,
            )
            for id_, each in first_items.items()
            if id_ in other_items
        }
        if sum(label is not None for _, _, label in items.values()) >= MIN_UNITS:
            judge = sum(score[0] for score, _, _ in items.values()) / len(items)
            width = scale.high - scale.low
            yield _calibrate_group(other.label, group, items, judge, (-width, width), is_verdict=False)
        else:
            yield _subtract_unpaired(estimates[0][group], estimates[1][group])


def _subtract_unpaired(first: CalibratedScore, other: CalibratedScore) -> CalibratedScore:
    """Return the difference of two independent estimates (Newcombe 1998, Statistics in Medicine 17, method 10)."""

    def difference(one: Estimate, two: Estimate) -> Estimate:
        mean, ends = two.mean - one.mean, (one.low, one.high, two.low, two.high)
        if None in ends:
            return Estimate(min(one.n, two.n), mean, None, None)
        low, high, low2, high2 = (float(end or 0) for end in ends)
        down = ((two.mean - low2) ** 2 + (high - one.mean) ** 2) ** 0.5
        up = ((high2 - two.mean) ** 2 + (one.mean - low) ** 2) ** 0.5
        return Estimate(min(one.n, two.n), mean, mean - down, mean + up)

    return replace(
        other,
        labels=min(first.labels, other.labels),
        judge=_cell_mean(other.judge) - _cell_mean(first.judge),
        mean=difference(first.mean, other.mean),
        labels_only=difference(first.labels_only, other.labels_only),
        effective_labels=None,
        additional_labels=None,
        is_paired=False,
    )


def _cell_mean(cell: Cell) -> float:
    assert isinstance(cell, Estimate)
    return cell.mean


_ItemScores: TypeAlias = "Mapping[str, tuple[tuple[float, ...], Hashable, float | None]]"
"""The judge's score, the label and the sampling unit of each item, by the item's key."""


def _calibrate_group(
    label: str, group: Group, items: _ItemScores, judge: Cell, scale: tuple[float, float], is_verdict: bool
) -> CalibratedScore:
    """Return the calibrated mean of labels from `scale[0]` to `scale[1]`."""
    low, width = scale[0], scale[1] - scale[0]
    labels_by_score = group_pairs(
        (score, (value - low) / width) for score, _, value in items.values() if value is not None
    )
    count = sum(map(len, labels_by_score.values()))
    strata, groups = stratify(
        Counter(score for score, _, _ in items.values()), labels_by_score, max_strata=strata_limit(count)
    )
    stratum_means = {
        score: total / size
        for scores, total, size in zip(groups, strata.sums, strata.labels, strict=True)
        for score in scores
    }
    labelled = [(score, unit, (value - low) / width) for score, unit, value in items.values() if value is not None]
    means = [(unit, stratum_means[score]) for score, unit, _ in items.values()]
    units = {unit for _, unit, _ in labelled}
    quantile = (
        QUANTILE if is_verdict and len(units) == count else max(QUANTILE, student_quantile(max(len(units) - 1, 4)))
    )
    designs = (
        design_effect(
            ((unit, value) for _, unit, value in labelled),
            sum(value for _, _, value in labelled) / count,
        ),
        design_effect(((unit, value - stratum_means[score]) for score, unit, value in labelled), 0.0),
        design_effect(means, sum(mean for _, mean in means) / len(means)),
    )
    calibration = calibrate(strata, step=1 / width, quantile=quantile, designs=designs)
    plain = calibrate(
        Strata.unweighted([value for _, _, value in labelled]), step=1 / width, quantile=quantile, designs=designs
    )
    is_enough = len(units) >= MIN_UNITS

    def estimate(n: int, mean: Floats, *ends: Floats) -> Estimate:
        first, last = (low + width * float(end) if is_enough else None for end in ends)
        return Estimate(n, low + width * float(mean), first, last)

    mean = estimate(len(items), calibration.mean, calibration.low, calibration.high)
    labels_only = estimate(
        count,
        plain.labels_only,
        plain.labels_only_low,
        plain.labels_only_high,
    )
    precision = (
        (float(calibration.effective_labels), labels_to_halve_interval(calibration, count, len(items)))
        if is_enough
        else (None, None)
    )
    return CalibratedScore(label, group, count, judge, mean, labels_only, *precision)


_MEAN_COLUMNS = ("judge", "calibrated", "labels alone")
_CALIBRATION_NOTE = (
    "Calibrated: the judge's scores of all items, corrected by people's labels of some of them (prediction-powered "
    "inference). The estimate is unbiased whatever errors the judge makes, if the labelled items were drawn at random, "
    "or at random among those of equal scores. Labels alone: their plain mean, which is unbiased only if they "
    "were drawn at random among all items. In brackets: 95 % intervals, clustered by scenario or person (none for "
    f"fewer than {MIN_UNITS} of these)."
)
_WORTH_NOTE = (
    "Worth: the number of labels that would give the same interval without the judge. More: the number of further "
    "labels that would halve the interval. A dash: labelling all other items would not suffice; more conversations are "
    "needed."
)
_PAIRED_NOTE = (
    "Paired: the same items are labelled in both runs. Otherwise the interval is that of two independent means, which "
    "is wider; to avoid this, label the same items in both."
)


def _build_table(
    name: str, title: str, rows: Iterable[CalibratedScore], several: bool, *, is_difference: bool
) -> Table:
    columns = ["metric", *(["paired"] if is_difference else []), "labels", *_MEAN_COLUMNS, "worth", "more"]
    table = Table(name, title, [*(["run"] if several else []), *columns], decimals={"worth": 0})
    table.facets = {"metric": None, "paired": None}
    for row in rows:
        paired = ["yes" if row.is_paired else "no"] if is_difference else []
        figures: list[Cell] = [
            row.labels,
            row.judge,
            row.mean,
            row.labels_only,
            row.effective_labels,
            row.additional_labels,
        ]
        table.rows.append([*([row.label] if several else []), str(row.group), *paired, *figures])
    table.notes = [_CALIBRATION_NOTE, _WORTH_NOTE]
    table.notes += [_PAIRED_NOTE] if is_difference else []
    return table
