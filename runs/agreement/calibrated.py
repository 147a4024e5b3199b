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
from dialoom.grouping import grouped
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Group
from dialoom.runs.report.differences import differing_users
from dialoom.runs.report.health import health_of, mark_doubtful
from dialoom.runs.report.reported import (
    ReportedRun,
    add_offline_column,
    different_users_warning,
    notes_on_content,
    reported_runs,
    with_different_users,
)
from dialoom.runs.store import RunFile

from .calibration import (
    QUANTILE,
    Floats,
    Strata,
    calibrate,
    design_effect,
    more_labels,
    most_strata,
    stratified,
)
from .items import Scale, Scales
from .labels import labels_beside, read_labels
from .results import LabelledItems, label_codes, left_out_notes


@dataclass(frozen=True, slots=True)
class CalibratedScore:
    """A mean of a judge's scores, or of their differences, calibrated with people's labels.

    Attributes:
        label: The run's label.
        group: The group of judgements.
        labels: The number of labelled items.
        judge: The mean of the judge's scores, with its interval; for a difference, without an interval.
        mean: The calibrated mean; n is the number of judged items.
        alone: The mean of the labels without the judge.
        effective: The number of labels that would give the same precision without the judge.
        more: The number of further labels that would halve the interval; `None` if even labels for all other items
            are not enough.
        is_paired: For a difference, whether the same items are labelled in both runs.
    """

    label: str
    group: Group
    labels: int
    judge: Cell
    mean: Estimate
    alone: Estimate
    effective: float | None
    more: int | None
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
class _Calibrated:
    """The scored items of a run by group, with their scales and notes; groups without any label are left out.

    Attributes:
        checks: The metrics that checks score rather than judges.
    """

    label: str
    items: Mapping[Group, Mapping[str, _Item]]
    scales: Mapping[Group, Scale]
    notes: Sequence[str]
    checks: Collection[str]


def calibrated_tables(
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
    reported = reported_runs(runs, runs[0].recipe, judging)
    scales = [*scales]
    read = [_read(*each, where, scales) for each in zip(reported, labels or [None] * len(runs), strict=True)]
    several = len(runs) > 1
    rows = [row for each in read for row in scores_of(each)]
    tables = [_table("calibrated", "Calibrated scores", rows, several, differ=False)]
    apart = differing_users(reported, runs[0].recipe) if several else {}
    compared = [each for each in read[1:] if allow_different_users or each.label not in apart]
    if not allow_different_users:
        notes = (different_users_warning(label, reported[0].label, what) for label, what in apart.items())
        tables[0].warnings += [f"Differences: {each}" for each in notes]
    if several and (rows := [row for each in compared for row in _differences(read[0], each)]):
        title = f"Calibrated differences from {reported[0].label}"
        if allow_different_users:
            title = with_different_users(title, itertools.chain.from_iterable(apart.values()))
        tables.append(_table("calibrated-differences", title, rows, several, differ=True))
    verdicts = {str(group) for each in read for group, scale in each.scales.items() if scale.is_verdict}
    for table in tables:
        table.shares = dict.fromkeys(verdicts, _MEANS)
    mark_doubtful(tables[:1], [one for each in reported for one in health_of(each, where)], several, only=["judge"])
    below = [*(note for each in read for note in each.notes), *notes_on_content(reported, where)]
    for table in tables:
        table.notes += filter(None, below)
    return add_offline_column(tables, reported)


def calibrated_scores(
    run: RunFile, labels: Path | None, judging: str | None, where: str | None
) -> list[CalibratedScore]:
    """Return the calibrated means of one run; see `calibrated_tables`."""
    (reported,) = reported_runs([run], run.recipe, judging)
    return [*scores_of(_read(reported, labels, where, ()))]


def _read(reported: ReportedRun, path: Path | None, where: str | None, given: Sequence[str]) -> _Calibrated:
    run = reported.run
    beside = labels_beside(run.path)
    if path is None and not beside.exists():
        raise RunError(
            f"labels must be the path of a file of people's labels, as there is no {beside}", setting="labels"
        )
    labels = read_labels(path or beside)
    scales, unit = Scales(WithJudging.of(run.recipe).scales, given), WithFacets.of(run.recipe).unit_facet
    matched = LabelledItems(run, labels, reported.set_name, where)
    found = [*matched]
    labelled = {item.group for _, item, row in found if row is not None and any(row.cells)}
    groups: dict[Group, dict[str, _Item]] = defaultdict(dict)
    unscored = Counter[Group]()
    for episode, item, row in found:
        if item.group not in labelled or (score := scales.code(item.judgement)) is None:
            unscored[item.group] += row is not None and any(row.cells)
            continue
        scale = scales.of(item.judgement.metric)
        codes = [] if row is None else [each for each in label_codes(labels, row, scale) if each >= 0]
        label = scale.low + sum(codes) / len(codes) if codes else None
        groups[item.group][item.id] = _Item(score, episode.cluster(unit), episode.repeated or episode.scenario, label)
    groups = {group: of for group, of in groups.items() if any(each.label is not None for each in of.values())}
    if not groups:
        raise RunError(f"{labels.path}: no labelled item of {run.path} has a judge's score to calibrate")
    notes = [f"Labels: {labels.path.name}, by {', '.join(labels.annotators)}; several labels of an item are averaged."]
    missing = ((group, count) for group, count in unscored.items() if count)
    notes += [f"{group}: labelled items without a judge's score, left out: {count:,}." for group, count in missing]
    notes += left_out_notes(*matched.left_out())
    of_groups, checks = {group: scales.of(group.metric) for group in groups}, WithJudging.of(run.recipe).check_metrics
    return _Calibrated(reported.label, groups, of_groups, notes, checks)


def scores_of(run: _Calibrated) -> Iterator[CalibratedScore]:
    """Yield the calibrated mean of each group of judgements."""
    for group, items in run.items.items():
        scale = run.scales[group]
        keyed = {id_: ((each.score,), each.unit, each.label) for id_, each in items.items()}
        tally = Tally(judged=group.metric not in run.checks)
        for each in items.values():
            tally.add(bool(each.score) if scale.is_verdict else each.score, each.unit, each.scenario)
        yield _calibrated(run.label, group, keyed, tally.estimate(), (scale.low, scale.high), scale.is_verdict)


def _differences(first: _Calibrated, other: _Calibrated) -> Iterator[CalibratedScore]:
    """Yield each group's difference between two runs: paired if enough items are labelled in both, else unpaired."""
    alone = [{row.group: row for row in scores_of(run)} for run in (first, other)]
    for group in (group for group in first.items if group in other.items):
        one, two, scale = first.items[group], other.items[group], first.scales[group]
        keyed = {
            id_: (
                (two[id_].score - each.score, each.score),
                each.unit,
                None if each.label is None or (label := two[id_].label) is None else label - each.label,
            )
            for id_, each in one.items()
            if id_ in two
        }
        if sum(label is not None for _, _, label in keyed.values()) >= MIN_UNITS:
            judge = sum(score[0] for score, _, _ in keyed.values()) / len(keyed)
            reach = scale.high - scale.low
            yield _calibrated(other.label, group, keyed, judge, (-reach, reach), is_verdict=False)
        else:
            yield _unpaired(alone[0][group], alone[1][group])


def _unpaired(first: CalibratedScore, other: CalibratedScore) -> CalibratedScore:
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
        judge=_mean(other.judge) - _mean(first.judge),
        mean=difference(first.mean, other.mean),
        alone=difference(first.alone, other.alone),
        effective=None,
        more=None,
        is_paired=False,
    )


def _mean(cell: Cell) -> float:
    assert isinstance(cell, Estimate)
    return cell.mean


_Keyed: TypeAlias = "Mapping[str, tuple[tuple[float, ...], Hashable, float | None]]"
"""The judge's score, the label and the sampling unit of each item, by the item's key."""


def _calibrated(
    label: str, group: Group, keyed: _Keyed, judge: Cell, scale: tuple[float, float], is_verdict: bool
) -> CalibratedScore:
    """Return the calibrated mean of labels from `scale[0]` to `scale[1]`."""
    low, reach = scale[0], scale[1] - scale[0]
    given = grouped((score, (own - low) / reach) for score, _, own in keyed.values() if own is not None)
    number = sum(map(len, given.values()))
    strata, groups = stratified(Counter(score for score, _, _ in keyed.values()), given, most=most_strata(number))
    mean_of = {
        score: total / size
        for scores, total, size in zip(groups, strata.sums, strata.labels, strict=True)
        for score in scores
    }
    own_labels = [(score, unit, (own - low) / reach) for score, unit, own in keyed.values() if own is not None]
    means = [(unit, mean_of[score]) for score, unit, _ in keyed.values()]
    units = {unit for _, unit, _ in own_labels}
    quantile = (
        QUANTILE if is_verdict and len(units) == number else max(QUANTILE, student_quantile(max(len(units) - 1, 4)))
    )
    designs = (
        design_effect(((unit, own) for _, unit, own in own_labels), sum(own for _, _, own in own_labels) / number),
        design_effect(((unit, own - mean_of[score]) for score, unit, own in own_labels), 0.0),
        design_effect(means, sum(mean for _, mean in means) / len(means)),
    )
    found = calibrate(strata, step=1 / reach, quantile=quantile, designs=designs)
    by_itself = calibrate(
        Strata.unweighted([own for _, _, own in own_labels]), step=1 / reach, quantile=quantile, designs=designs
    )
    is_enough = len(units) >= MIN_UNITS

    def estimate(n: int, mean: Floats, *ends: Floats) -> Estimate:
        first, last = (low + reach * float(end) if is_enough else None for end in ends)
        return Estimate(n, low + reach * float(mean), first, last)

    mean = estimate(len(keyed), found.mean, found.low, found.high)
    alone = estimate(number, by_itself.alone, by_itself.alone_low, by_itself.alone_high)
    worth = (float(found.effective), more_labels(found, number, len(keyed))) if is_enough else (None, None)
    return CalibratedScore(label, group, number, judge, mean, alone, *worth)


_MEANS = ("judge", "calibrated", "labels alone")
_NOTE = (
    "Calibrated: the judge's scores of all items, corrected by people's labels of some of them (prediction-powered "
    "inference). The estimate is unbiased whatever errors the judge makes, if the labelled items were drawn at random, "
    "or at random among those of equal scores. Labels alone: their plain mean, which is unbiased only if they "
    "were drawn at random among all items. In brackets: 95 % intervals, clustered by scenario or person (none for "
    f"fewer than {MIN_UNITS} of these)."
)
_NOTE_OF_WORTH = (
    "Worth: the number of labels that would give the same interval without the judge. More: the number of further "
    "labels that would halve the interval. A dash: labelling all other items would not suffice; more conversations are "
    "needed."
)
_NOTE_OF_PAIRS = (
    "Paired: the same items are labelled in both runs. Otherwise the interval is that of two independent means, which "
    "is wider; to avoid this, label the same items in both."
)


def _table(name: str, title: str, rows: Iterable[CalibratedScore], several: bool, *, differ: bool) -> Table:
    columns = ["metric", *(["paired"] if differ else []), "labels", *_MEANS, "worth", "more"]
    table = Table(name, title, [*(["run"] if several else []), *columns], decimals={"worth": 0})
    table.facets = {"metric": None, "paired": None}
    for row in rows:
        paired = ["yes" if row.is_paired else "no"] if differ else []
        figures: list[Cell] = [row.labels, row.judge, row.mean, row.alone, row.effective, row.more]
        table.rows.append([*([row.label] if several else []), str(row.group), *paired, *figures])
    table.notes = [_NOTE, _NOTE_OF_WORTH]
    table.notes += [_NOTE_OF_PAIRS] if differ else []
    return table
