"""From a labels file to kappas: which label belongs to which judgement, and what comes of each group of them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dialoom.graphs.capabilities import WithJudging
from dialoom.inputs import DataError
from dialoom.runs.errors import RunError
from dialoom.runs.selection import selected
from dialoom.runs.store import RunFile

from .digest import digest_of
from .items import Group, items, scenario_of
from .kappa import MISSING, Codes, Kappa, cohen, fleiss, mean_cohen, observed, require_statistics
from .labels import LabelRow, Labels
from .scales import Scale, Scales


@dataclass(frozen=True, slots=True)
class RaterComparison:
    """Two raters or more.

    Attributes:
        n: How many items they have in common.
        kappa: Cohen's or Fleiss'.
        agreement: The share of equal pairs of labels, 0 to 1; `None` without items.
        weighted: Cohen's with quadratic weights.
        is_unordered: Whether there is no such thing: verdicts, and Fleiss'.
    """

    n: int
    kappa: Kappa
    agreement: float | None
    weighted: Kappa = None
    is_unordered: bool = False


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """What came of one group.

    Attributes:
        group: Metric, target, and whether by turn.
        scale: The metric's.
        cohen: The judge with each annotator.
        average: The mean of these; n is how many items have a score and a label.
        averaged: How many annotators' kappas are in that mean.
        fleiss: Between the annotators, over the items that all of them labelled; `None` for one annotator.
        missing: Blank labels of each annotator.
        unscored: Items in the file for which the judge has no score.
    """

    group: Group
    scale: Scale
    cohen: Mapping[str, RaterComparison]
    average: RaterComparison
    averaged: int
    fleiss: RaterComparison | None
    missing: Mapping[str, int]
    unscored: int


@dataclass(frozen=True, slots=True)
class EarlierLabels:
    """Labels that were given to another conversation of a scenario than the one that is its outcome now.

    Attributes:
        count: How many labels.
        scenarios: Whose.
    """

    count: int = 0
    scenarios: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """What came of a labels file.

    Attributes:
        annotators: Their names.
        groups: What came of each group.
        earlier: Labels that are in none of it.
    """

    annotators: tuple[str, ...]
    groups: tuple[GroupAgreement, ...]
    earlier: EarlierLabels = EarlierLabels()


def agreement(
    run: RunFile,
    labels: Labels,
    *,
    judging: str | None = None,
    metrics: Collection[str] = (),
    scales: Iterable[str] = (),
    where: str | None = None,
) -> Agreement:
    """Kappas of a run's judge and the annotators of a labels file. Kappas of different scales are not mixed.

    Args:
        run: The run.
        labels: What people filled in.
        judging: The set of judgements; by default the oldest.
        metrics: Only these; by default all that are in the file.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not say.
        where: Only judgements of scenarios that this expression holds of.

    Raises:
        DataError: If an item is not the run's, or a label not on its metric's scale: with the line.
        RunError: If a metric or scale is not known, or statsmodels is not installed.
        StoreError: If there is no such judging.
    """
    require_statistics()
    recipe = run.recipe
    known = Scales(WithJudging.of(recipe).scales, scales)
    rows, earlier = _rows(run, labels, judging, known, where)
    if missing := set(metrics) - {group.metric for group in rows}:
        there = ", ".join(sorted({group.metric for group in rows}))
        raise RunError(f"metrics {min(missing)!r}: the items of {labels.path} are of {there}", setting="metrics")
    rows = {group: codes for group, codes in rows.items() if not metrics or group.metric in metrics}
    ranks = {metric: rank for rank, metric in enumerate(WithJudging.of(recipe).metrics)}
    groups = sorted(rows, key=lambda group: (ranks.get(group.metric, len(ranks)), group))
    return Agreement(
        labels.annotators,
        tuple(_group(group, known.of(group.metric), labels.annotators, np.array(rows[group])) for group in groups),
        earlier,
    )


_Rows = dict[Group, list[list[int]]]
"""The values of the labelled items by group, the judge's first."""


def _rows(
    run: RunFile, labels: Labels, judging: str | None, scales: Scales, where: str | None
) -> tuple[_Rows, EarlierLabels]:
    """The labelled items, and which labels are of other conversations than the scenarios have now."""
    rows: _Rows = defaultdict(list)
    left = {(row.item, row.digest): row for row in labels.rows}
    labelled = {row.item for row in labels.rows}
    recipe = run.recipe
    wanted = None if where is None else {episode.id for episode in selected(run, judging, where)}
    for episode, item in items(run, judging, ()):
        if item.id not in labelled:
            continue
        row = left.pop((item.id, ""), None) or left.pop((item.id, digest_of(episode, recipe, item)), None)
        if row is None or (wanted is not None and episode.id not in wanted):
            continue
        score, scale = scales.code(item.judgement), scales.of(item.judgement.metric)
        rows[item.group].append([MISSING if score is None else score - scale.low, *_codes(labels, row, scale)])
    return rows, _earlier(run, labels.path, left.values(), wanted)


def _earlier(run: RunFile, path: Path, left: Iterable[LabelRow], wanted: Collection[str] | None) -> EarlierLabels:
    """What the rows are that belong to no judgement; a scenario of the run's may have had another conversation."""
    count, scenarios = 0, dict[str, None]()
    for row in left:
        found = scenario_of(run, row.item) if row.digest else None
        if found is None:
            raise DataError(path, f"item {row.item!r} is no judgement of {run.path}", row.line)
        _, scenario = found
        if (given := sum(map(bool, row.cells))) and (wanted is None or scenario in wanted):
            count += given
            scenarios[scenario] = None
    return EarlierLabels(count, tuple(scenarios))


def _codes(labels: Labels, row: LabelRow, scale: Scale) -> list[int]:
    """The labels of an item as values from 0."""
    codes = []
    for name, cell in zip(labels.annotators, row.cells, strict=True):
        try:
            codes.append(scale.parse(cell) - scale.low if cell else MISSING)
        except ValueError as error:
            raise DataError(labels.path, f"label of {name}: {error}", row.line) from error
    return codes


def _group(group: Group, scale: Scale, names: tuple[str, ...], rows: Codes) -> GroupAgreement:
    """All kappas of a group; the rows' first column is the judge."""
    judge, annotators = rows[:, 0], rows[:, 1:]
    each = {name: _pair(judge, column, scale) for name, column in zip(names, annotators.T, strict=True)}
    return GroupAgreement(
        group=group,
        scale=scale,
        cohen=each,
        average=_average(judge, annotators, each.values(), scale),
        averaged=sum(compared.kappa is not None for compared in each.values()),
        fleiss=_fleiss(annotators, scale) if len(names) > 1 else None,
        missing={name: int((column == MISSING).sum()) for name, column in zip(names, annotators.T, strict=True)},
        unscored=int((judge == MISSING).sum()),
    )


def _pair(judge: Codes, annotator: Codes, scale: Scale) -> RaterComparison:
    both = (judge != MISSING) & (annotator != MISSING)
    first, second = judge[both], annotator[both]
    return RaterComparison(
        n=len(first),
        kappa=cohen(first, second, scale.size),
        agreement=observed(first, second),
        weighted=None if scale.is_verdict else cohen(first, second, scale.size, weighted=True),
        is_unordered=scale.is_verdict,
    )


def _average(judge: Codes, annotators: Codes, each: Collection[RaterComparison], scale: Scale) -> RaterComparison:
    used = (judge != MISSING) & (annotators != MISSING).any(axis=1)
    judge, annotators = judge[used], annotators[used]
    return RaterComparison(
        n=len(judge),
        kappa=mean_cohen(judge, annotators, scale.size),
        agreement=_mean([compared.agreement for compared in each]),
        weighted=None if scale.is_verdict else mean_cohen(judge, annotators, scale.size, weighted=True),
        is_unordered=scale.is_verdict,
    )


def _fleiss(annotators: Codes, scale: Scale) -> RaterComparison:
    whole = annotators[(annotators != MISSING).all(axis=1)]
    pairs = itertools.combinations(whole.T, 2)
    return RaterComparison(
        n=len(whole),
        kappa=fleiss(whole, scale.size),
        agreement=_mean([observed(first, second) for first, second in pairs]),
        is_unordered=True,
    )


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None
