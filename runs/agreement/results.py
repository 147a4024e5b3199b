"""Agreement between labels and judgements, as values and as tables."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Episode, Judgement, Table, WithJudging
from dialoom.graphs.tables.statistics import MIN_UNITS, RESAMPLES
from dialoom.inputs import DataError
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Group, Item, iter_items
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.report.labelled_runs import label_runs, offline_note
from dialoom.runs.report.rater_agreement import (
    MISSING,
    Codes,
    Kappa,
    cohen_kappa,
    fleiss_kappa,
    mean_cohen_kappa,
    observed_agreement,
    require_statistics,
)
from dialoom.runs.store import RunFile
from dialoom.text import pluralize

from .items import Scale, Scales, compute_item_digest, find_scenario, iter_run_items
from .labels import LabelRow, Labels


@dataclass(frozen=True, slots=True)
class RaterComparison:
    """The agreement of two or more raters.

    Attributes:
        n: Number of items labelled by all raters.
        kappa: Cohen's or Fleiss' kappa.
        agreement: The share of equal pairs of labels, 0 to 1; `None` without items.
        weighted_kappa: Cohen's kappa with quadratic weights.
        is_unordered: Whether weights do not apply: for verdicts, and for Fleiss' kappa.
    """

    n: int
    kappa: Kappa
    agreement: float | None
    weighted_kappa: Kappa = None
    is_unordered: bool = False


@dataclass(frozen=True, slots=True)
class GroupAgreement:
    """The agreement within one group of judgements.

    Attributes:
        group: Metric, target, and whether turns are judged separately.
        scale: The metric's scale.
        cohen: The judge's agreement with each annotator.
        average: The mean of these kappas; n is the number of items with a score and a label.
        kappa_count: Number of annotators' kappas in that mean.
        fleiss: The annotators' agreement on the items that all of them labelled; `None` for a single annotator.
        missing: Number of missing labels of each annotator.
        unscored: Number of items in the file for which the judge has no score.
    """

    group: Group
    scale: Scale
    cohen: Mapping[str, RaterComparison]
    average: RaterComparison
    kappa_count: int
    fleiss: RaterComparison | None
    missing: Mapping[str, int]
    unscored: int


@dataclass(frozen=True, slots=True)
class ExcludedLabels:
    """Labels that are not counted, for one reason.

    Attributes:
        count: Number of labels.
        scenarios: The ids of their scenarios.
    """

    count: int = 0
    scenarios: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A judgement whose score differs from a label.

    Attributes:
        conversation: The conversation's id.
        group: Metric, target, and whether turns are judged separately.
        turn: The turn that is judged; `None` for the whole conversation.
        judge: The judge's score, written as a label.
        labels: The label of each annotator; empty if there is none.
    """

    conversation: str
    group: Group
    turn: int | None
    judge: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement computed from a labels file.

    Attributes:
        annotators: Names of the annotators.
        groups: The agreement in each group.
        disagreements: The judgements whose score differs from a label, in plan order.
        earlier: Labels of conversations that have since been replaced by others.
        unjudged: Labels of conversations that the judge has not judged.
        offline: A note on roles played by an offline model, if there are any.
    """

    annotators: tuple[str, ...]
    groups: tuple[GroupAgreement, ...]
    disagreements: tuple[Disagreement, ...] = ()
    earlier: ExcludedLabels = ExcludedLabels()
    unjudged: ExcludedLabels = ExcludedLabels()
    offline: str | None = None


def compute_agreement(
    run: RunFile,
    labels: Labels,
    *,
    judging: str | None = None,
    metrics: Collection[str] = (),
    scales: Iterable[str] = (),
    where: str | None = None,
) -> Agreement:
    """Compute kappa between a run's judge and the annotators of a labels file, separately for each group of judgements.

    Args:
        run: The run.
        labels: The labels file.
        judging: The set of judgements; by default the oldest.
        metrics: Only these metrics; by default all metrics in the file.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
        where: Only judgements of scenarios matching this expression.

    Raises:
        DataError: If an item does not belong to the run, or a label is not on its metric's scale; the message states
            the line.
        RunError: If a metric or scale is unknown, or statsmodels is not installed.
        StoreError: If the set of judgements does not exist.
    """
    require_statistics()
    recipe = run.recipe
    known_scales = Scales(WithJudging.of(recipe).scales, scales)
    rows: dict[Group, list[list[int]]] = defaultdict(list)  # the values of labelled items; the judge's comes first
    disagreements: list[Disagreement] = []
    matched = LabelledItems(run, labels, judging, where)
    for episode, item, row in matched:
        if row is not None:
            score, scale = known_scales.integer_score(item.judgement), known_scales.get(item.judgement.metric)
            judge_value, label_values = (
                MISSING if score is None else score - scale.low,
                parse_label_codes(labels, row, scale),
            )
            rows[item.group].append([judge_value, *label_values])
            if score is not None and set(label_values) - {judge_value, MISSING}:
                texts = tuple("" if code == MISSING else scale.text(code + scale.low) for code in label_values)
                turn = item.judgement.turn
                disagreements.append(Disagreement(episode.id, item.group, turn, scale.text(score), texts))
    earlier, unjudged = matched.find_excluded(metrics)
    if missing := set(metrics) - {group.metric for group in rows}:
        known = {matched.find_metric(row) for row in labels.rows}
        if missing := missing - known:
            problem = f"metrics {min(missing)!r}: the items of {labels.path} belong to {', '.join(sorted(known))}"
            raise RunError(problem, setting="metrics")
    rows = {group: codes for group, codes in rows.items() if not metrics or group.metric in metrics}
    ranks = {metric: rank for rank, metric in enumerate(WithJudging.of(recipe).metrics)}
    groups = sorted(rows, key=lambda group: (ranks.get(group.metric, len(ranks)), group))
    return Agreement(
        labels.annotators,
        tuple(
            _compute_group_agreement(group, known_scales.get(group.metric), labels.annotators, np.array(rows[group]))
            for group in groups
        ),
        tuple(each for each in disagreements if each.group in rows),
        earlier,
        unjudged,
        offline_note(label_runs([run], recipe, judging)),
    )


class LabelledItems:
    """The items of a run's scenarios, each with its row of a labels file if it has one.

    Args:
        run: The run.
        labels: The labels file.
        judging: The set of judgements.
        where: Only scenarios matching this expression.
    """

    def __init__(self, run: RunFile, labels: Labels, judging: str | None, where: str | None) -> None:
        self._run, self._labels, self._judging = run, labels, judging
        self._selection = None if where is None else {episode.id for episode in select_episodes(run, judging, where)}
        self._unmatched = {(row.item, row.digest): row for row in labels.rows}
        self._known_scores: set[str] = set()
        self._judged_scores: dict[str, set[str]] = defaultdict(set)

    def __iter__(self) -> Iterator[tuple[Episode, Item, LabelRow | None]]:
        labelled = {row.item for row in self._labels.rows}
        recipe, left = self._run.recipe, self._unmatched
        for episode, item in iter_run_items(self._run, self._judging, ()):
            row = None
            self._known_scores.add(score := _score_key(item.judgement))
            self._judged_scores[episode.id].add(score)
            if item.id in labelled:
                row = left.pop((item.id, ""), None) or left.pop(
                    (item.id, compute_item_digest(episode, recipe, item)), None
                )
            if self._selection is None or episode.id in self._selection:
                yield episode, item, row

    def find_excluded(self, metrics: Collection[str] = ()) -> tuple[ExcludedLabels, ExcludedLabels]:
        """Return the labels of conversations that have been replaced, and of those that the judge has not judged.

        Call this after all items have been read.

        Args:
            metrics: Only labels of these metrics; by default of all.

        Raises:
            DataError: If a row belongs to no judgement of the run.
        """
        earlier, unjudged = Counter[str](), Counter[str]()
        for row in self._unmatched.values():
            scenario = self._find_scenario(row)
            is_judged = _names_score(row.item, scenario, self._judged_scores.get(scenario, ()))
            if is_judged and not row.digest:
                raise DataError(self._labels.path, self._mismatch(row), row.line)
            is_selected = self._selection is None or scenario in self._selection
            is_selected = is_selected and (not metrics or self.find_metric(row) in metrics)
            if (label_count := sum(map(bool, row.cells))) and is_selected:
                (earlier if is_judged else unjudged)[scenario] += label_count
        return ExcludedLabels(earlier.total(), tuple(earlier)), ExcludedLabels(unjudged.total(), tuple(unjudged))

    def check_labels(self) -> None:
        """Check, before the run is judged, that all labels belong to its judges and are on the recipe's scales.

        Raises:
            DataError: If a label is wrong; the message states the line.
        """
        scales = Scales(WithJudging.of(self._run.recipe).scales)
        for row in self._labels.rows:
            if (metric := self.find_metric(row)) in WithJudging.of(self._run.recipe).metrics:
                parse_label_codes(self._labels, row, scales.get(metric))

    def find_metric(self, row: LabelRow) -> str:
        """Return the metric that a row labels.

        Raises:
            DataError: If the row belongs to no judgement of the run.
        """
        return row.item.removeprefix(f"{self._find_scenario(row)}/").partition("/")[0]

    def _mismatch(self, row: LabelRow) -> str:
        return f"item {row.item!r} is not a judgement of {self._run.path}"

    def _find_scenario(self, row: LabelRow) -> str:
        """Return the id of the scenario to which a row belongs.

        Raises:
            DataError: If no conversation of the run can have this item.
        """
        run, problem = self._run, self._mismatch(row)
        located = find_scenario(run, row.item)
        if located is None:
            raise DataError(self._labels.path, problem, row.line)
        _, scenario = located
        if not _names_score(row.item, scenario, self._known_scores):
            # What the recipe's judges and checks score, and what any set of judgements contains.
            judging = WithJudging.of(run.recipe)
            self._known_scores |= {f"{metric}/{judge.target}" for judge in judging.judges for metric in judge.metrics}
            self._known_scores |= {f"{check.metric}/{check.target}" for check in judging.checks}
            sets = (each.name for each in run.judgement_sets() if not each.members)
            for each in itertools.chain.from_iterable(map(run.episodes, sets)):
                self._known_scores |= {_score_key(item.judgement) for item in iter_items(each, run.recipe)}
        if not _names_score(row.item, scenario, self._known_scores):
            known = ", ".join(sorted(self._known_scores))
            raise DataError(
                self._labels.path, f"{problem}; after the scenario's id, it must name one of {known}", row.line
            )
        return scenario


def _score_key(judgement: Judgement) -> str:
    """Return what a judgement scores, as items name it: its metric and target."""
    return f"{judgement.metric}/{judgement.target}"


def _names_score(item: str, scenario: str, scored: Iterable[str]) -> bool:
    """Return whether an item's id consists of the scenario's id, one of the scores, and at most a turn and a number."""
    rest = item.removeprefix(f"{scenario}/")
    return any(rest == each or rest.startswith((f"{each}/", f"{each}#")) for each in scored)


def parse_label_codes(labels: Labels, row: LabelRow, scale: Scale) -> list[int]:
    """Return the labels of an item as distances from the lowest value of its scale, or `MISSING`."""
    codes = []
    for name, cell in zip(labels.annotators, row.cells, strict=True):
        try:
            codes.append(scale.parse(cell) - scale.low if cell else MISSING)
        except ValueError as error:
            raise DataError(labels.path, f"label of {name}: {error}", row.line) from error
    return codes


def _compute_group_agreement(group: Group, scale: Scale, names: tuple[str, ...], rows: Codes) -> GroupAgreement:
    """Return all kappas of a group; the first column of the rows contains the judge's values."""
    judge, annotators = rows[:, 0], rows[:, 1:]
    labelled, is_verdict = annotators != MISSING, scale.is_verdict

    def compare(
        kappa: Callable[..., Kappa], used: NDArray[np.bool_], other: Codes, agreement: float | None
    ) -> RaterComparison:
        raters = judge[used], other[used], scale.size
        weighted = None if is_verdict else kappa(*raters, weighted=True)
        return RaterComparison(int(used.sum()), kappa(*raters), agreement, weighted, is_unordered=is_verdict)

    by_annotator = {
        name: compare(cohen_kappa, (judge != MISSING) & (column != MISSING), column, observed_agreement(judge, column))
        for name, column in zip(names, annotators.T, strict=True)
    }
    mean_agreement = _mean([pair.agreement for pair in by_annotator.values()])
    complete = annotators[labelled.all(axis=1)]
    between = _mean([observed_agreement(first, second) for first, second in itertools.combinations(complete.T, 2)])
    return GroupAgreement(
        group=group,
        scale=scale,
        cohen=by_annotator,
        average=compare(mean_cohen_kappa, (judge != MISSING) & labelled.any(axis=1), annotators, mean_agreement),
        kappa_count=sum(pair.kappa is not None for pair in by_annotator.values()),
        fleiss=RaterComparison(len(complete), fleiss_kappa(complete, scale.size), between, is_unordered=True)
        if len(names) > 1
        else None,
        missing=dict(zip(names, map(int, (~labelled).sum(axis=0)), strict=True)),
        unscored=int((judge == MISSING).sum()),
    )


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None


_KAPPA_NOTE = (
    "Kappa: agreement beyond chance; 0 is chance agreement, 1 is full agreement. Between the judge and an annotator, "
    "it is Cohen's, with the asymptotic 95 % interval. The mean of these, and Fleiss' kappa between annotators over "
    f"the items that all of them labelled, have a bootstrap interval ({RESAMPLES:,} resamples of the items). "
    "Intervals count items as independent, even turns and trials of one scenario. Weighted: a disagreement counts by "
    "the square of its size."
)
_MAX_LISTED_SCENARIOS = 5
"""Maximum number of scenario ids that a note lists."""
_UNDEFINED_NOTE = (
    "A dash although there are labels: a rater used only one value (as always with a single item), so kappa is "
    "undefined, or 0 whatever labels the others gave."
)
_NO_INTERVAL_NOTE = (
    f"Intervals are omitted if they are not informative: for fewer than {MIN_UNITS} items, and if the width is zero, "
    "as at full agreement."
)


def kappa_table(agreement: Agreement) -> Table:
    """Return the kappas as a table, with a few rows per metric and target."""
    columns = ["metric", "between", "n", "kappa", "weighted kappa", "agreement %"]
    table = Table("agreement", "Agreement of the judge and the annotators", columns, notes=agreement_notes(agreement))
    for each in agreement.groups:
        for between, comparison in _comparison_rows(each):
            kappas = map(_format_kappa, (comparison.kappa, comparison.weighted_kappa))
            table.rows.append([str(each.group), between, comparison.n, *kappas, comparison.agreement])
    return table


def disagreement_table(agreement: Agreement) -> Table:
    """Return the judgements whose score differs from a label as a table."""
    columns = ["conversation", "metric", "turn", "judge", *agreement.annotators]
    table = Table("disagreements", "Disagreements of the judge and the annotators", columns)
    for each in agreement.disagreements:
        labels = (label or None for label in each.labels)
        table.rows.append([each.conversation, str(each.group), each.turn, each.judge, *labels])
    return table


def agreement_notes(agreement: Agreement) -> list[str]:
    """Return the notes that explain the kappas and list what they omit."""
    comparisons = [each for group in agreement.groups for _, each in _comparison_rows(group)]
    kappas = [kappa for each in comparisons for kappa in (each.kappa, each.weighted_kappa) if kappa is not None]
    skipped = max((kappa.skipped for kappa in kappas), default=0)
    candidates = (
        (True, _KAPPA_NOTE),
        (any(each.n and each.kappa is None for each in comparisons), _UNDEFINED_NOTE),
        (any(kappa.low is None for kappa in kappas), _NO_INTERVAL_NOTE),
        (
            skipped,
            f"Resamples in which a kappa is undefined are excluded from its interval: at most {skipped:,} for "
            "each kappa.",
        ),
        *((True, note) for note in excluded_label_notes(agreement.earlier, agreement.unjudged)),
        *((True, note) for group in agreement.groups for note in _missing_notes(group, len(agreement.annotators))),
        (agreement.offline, agreement.offline or ""),
    )
    return [note for applies, note in candidates if applies]


def as_json(agreement: Agreement) -> dict[str, Any]:
    """Return the agreement as plain values; a missing kappa or interval is null."""
    return {
        "annotators": list(agreement.annotators),
        "agreement": [
            {
                **each.group._asdict(),
                "scale": "verdict" if each.scale.is_verdict else [each.scale.low, each.scale.high],
                "cohen": {name: _comparison_json(comparison) for name, comparison in each.cohen.items()},
                "average": {**_comparison_json(each.average), "annotators": each.kappa_count},
                "fleiss": None if each.fleiss is None else _comparison_json(each.fleiss),
                "missing": dict(each.missing),
                "unscored": each.unscored,
            }
            for each in agreement.groups
        ],
        "disagreements": [
            {
                "conversation": each.conversation,
                **each.group._asdict(),
                "turn": each.turn,
                "judge": each.judge,
                "labels": dict(zip(agreement.annotators, each.labels, strict=True)),
            }
            for each in agreement.disagreements
        ],
        **{
            reason: {"labels": excluded.count, "scenarios": list(excluded.scenarios)}
            for reason, excluded in (("earlier", agreement.earlier), ("unjudged", agreement.unjudged))
        },
        "notes": agreement_notes(agreement),
    }


def _comparison_rows(group: GroupAgreement) -> Iterator[tuple[str, RaterComparison]]:
    for name, comparison in group.cohen.items():
        yield f"judge, {name}", comparison
    if group.fleiss is not None:
        yield "judge, annotators (mean)", group.average
        yield "annotators (Fleiss)", group.fleiss


_EARLIER_NOTE = (
    "Labels given to an earlier conversation, left out: {count}. In these scenarios, another branch has become the "
    "outcome, or the scenario was played again. The labels count again if the labelled conversation becomes the "
    "outcome again."
)
_UNJUDGED_NOTE = (
    "Labels of conversations that the judge has not judged, left out: {count}. The judging failed or was not "
    "requested, or there was nothing to judge, as where the judged role says nothing."
)


def excluded_label_notes(earlier: ExcludedLabels, unjudged: ExcludedLabels) -> Iterator[str]:
    """Yield the notes on labels of conversations that have been replaced, or that the judge has not judged."""
    for text, excluded in ((_EARLIER_NOTE, earlier), (_UNJUDGED_NOTE, unjudged)):
        if excluded.count:
            shown = [
                *excluded.scenarios[:_MAX_LISTED_SCENARIOS],
                *(["..."] if excluded.scenarios[_MAX_LISTED_SCENARIOS:] else []),
            ]
            scenarios = pluralize(len(excluded.scenarios), "scenarios")
            yield text.format(count=f"{excluded.count:,}, of {scenarios} ({', '.join(shown)})")


def _missing_notes(group: GroupAgreement, annotators: int) -> Iterator[str]:
    """Yield the notes on a group's missing data."""
    if missing := [f"{name} {count:,}" for name, count in group.missing.items() if count]:
        yield f"{group.group}: items without a label, left out: {', '.join(missing)}."
    if group.unscored:
        yield f"{group.group}: items for which the judge has no score, left out of its rows: {group.unscored:,}."
    if 0 < group.kappa_count < annotators:
        over = f"{group.kappa_count} of {annotators}"
        yield f"{group.group}: the mean is over the {over} annotators with a defined kappa."


def _format_kappa(kappa: Kappa) -> str:
    if kappa is None:
        return "–"
    # A kappa of -0.001 is to be shown as 0.00, not as -0.00.
    value, *ends = (f"{round(each, 2) + 0.0:.2f}" for each in (kappa.value, kappa.low, kappa.high) if each is not None)
    return f"{value} [{', '.join(ends)}]" if ends else value


def _comparison_json(comparison: RaterComparison) -> dict[str, Any]:
    return {
        "n": comparison.n,
        **_kappa_json(comparison.kappa),
        "weighted": None if comparison.is_unordered else _kappa_json(comparison.weighted_kappa),
        "agreement": comparison.agreement,
    }


def _kappa_json(kappa: Kappa) -> dict[str, float | None]:
    if kappa is None:
        return dict.fromkeys(("kappa", "low", "high"))
    return {"kappa": kappa.value, "low": kappa.low, "high": kappa.high}
