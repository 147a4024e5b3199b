"""ALOE's alignment levels and their improvement, with intervals: the paper's table 1 and figure 4."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import FEWEST, RESAMPLES, Cell, Chart, Estimate, FittedLine, Runs, Series, Table
from dialoom.graphs.reporting.statistics import is_constant, percentiles

Floats: TypeAlias = NDArray[np.float64]

_WEIGHTS_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Alignment:
    """A model's alignment, each figure with its 95 % interval; `None` where it is undefined.

    Attributes:
        levels: AL(k) for k = 1, ..., K; each n is the number of dialogues with a score at that round. A round without a
            level is left out of all other figures.
        average: Their mean; its n, as that of the following, is the number of dialogues with any score.
        rate: IR, the slope of the least-squares line through the levels (equation 3); points per round. `None` with
            fewer than two levels.
        normalized_rate: N-IR, the slope after min-max normalization over **all** rounds. Equation 4 writes a running
            minimum and maximum, but only the global ones give the figures of table 1. `None` for flat levels.
        r_squared: R^2 of the line, the same before and after normalization. `None` for flat levels.
        intercept: The line's value at k = 0.
    """

    levels: tuple[Estimate | None, ...]
    average: Estimate
    rate: Estimate | None
    normalized_rate: Estimate | None
    r_squared: Estimate | None
    intercept: float | None


class Scores:
    """Scores of many dialogues by round, held as one number per dialogue and round."""

    def __init__(self) -> None:
        self._rounds: list[array[float]] = []
        self._dialogues = 0

    def add(self, scores: Mapping[int, float]) -> None:
        """Add one dialogue's scores by round, from 1; rounds without a score do not count in their AL."""
        while len(self._rounds) < max(scores, default=0):
            self._rounds.append(array("d", [np.nan]) * self._dialogues)
        for number, column in enumerate(self._rounds, start=1):
            column.append(scores.get(number, np.nan))
        self._dialogues += 1

    def alignment(self) -> Alignment | None:
        """Return all figures with percentile bootstrap intervals; `None` without any score.

        A resample draws as many dialogues as there are, with replacement, and computes every figure anew: the scores of
        one dialogue stay together, as they depend on each other. A figure that a resample does not have (e.g. the
        N-IR of levels that came out flat) is left out of that figure's interval. The generator's seed is fixed
        and the dialogues are sorted first, so that equal scores give equal intervals in whatever order they come.
        """
        table = self._table()
        if not len(table):
            return None
        levels = _levels(np.ones((1, len(table))), table)
        resampled = _resampled(table)
        rows = [*levels[0]], [*resampled.T]
        counts = np.count_nonzero(~np.isnan(table), axis=0)
        estimates = [
            _estimate(int(n), value, values, scores)
            for n, value, values, scores in zip(counts, *rows, table.T, strict=True)
        ]
        figures = zip(_figures(levels), _figures(resampled), strict=True)
        average, rate, intercept, normalized, r_squared = (
            _estimate(len(table), value[0], values) for value, values in figures
        )
        assert average is not None
        average = replace(average, is_constant=_is_constant(table))
        line = None if intercept is None else intercept.mean
        return Alignment(tuple(estimates), average, rate, normalized, r_squared, line)

    def _table(self) -> Floats:
        """Return scores by dialogue and round, NaN where missing, sorted, without dialogues that have none."""
        if not self._rounds:
            return np.empty((0, 0))
        table = np.column_stack([np.frombuffer(column) for column in self._rounds])
        table = table[~np.isnan(table).all(axis=1)]
        return table[np.lexsort(table.T)]


def _resampled(table: Floats) -> Floats:
    """Return levels by resample and round, in batches whose weights fit in a few megabytes."""
    n = len(table)
    draw = np.random.default_rng(0)
    at_once = max(1, min(RESAMPLES, _WEIGHTS_AT_ONCE // n))
    levels = np.empty((RESAMPLES, table.shape[1]))
    for start in range(0, RESAMPLES, at_once):
        some = min(at_once, RESAMPLES - start)
        # The number of times that each dialogue was drawn.
        weights = np.stack([np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(some)])
        levels[start : start + some] = _levels(weights.astype(np.float64), table)
    return levels


def _levels(weights: Floats, table: Floats) -> Floats:
    """Return AL by row of weights and round; NaN where no dialogue with a weight has a score."""
    present = ~np.isnan(table)
    return _divided(weights @ np.where(present, table, 0.0), weights @ present.astype(np.float64))


def _figures(levels: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return average, slope, intercept, normalized slope and R^2 of each row of levels; NaN where undefined."""
    present = ~np.isnan(levels)
    n = present.sum(axis=1).astype(np.float64)
    rounds = np.where(present, np.arange(1.0, levels.shape[1] + 1), 0.0)
    values = np.where(present, levels, 0.0)
    mean_round, average = _divided(rounds.sum(axis=1), n), _divided(values.sum(axis=1), n)
    x = np.where(present, rounds - mean_round[:, None], 0.0)
    y = np.where(present, values - average[:, None], 0.0)
    xx, xy, yy = (x * x).sum(axis=1), (x * y).sum(axis=1), (y * y).sum(axis=1)
    # Flatness is tested on the range: due to rounding, the sum of squares of equal levels may not be exactly 0.
    spread = np.where(present, levels, -np.inf).max(axis=1) - np.where(present, levels, np.inf).min(axis=1)
    flat = ~(spread > 0)
    slope = _divided(np.where(flat, 0.0, xy), xx)
    intercept = average - slope * mean_round
    normalized = _divided(slope, np.where(flat, 0.0, spread))
    return average, slope, intercept, normalized, _divided(xy * xy, np.where(flat, 0.0, xx * yy))


def _divided(above: Floats, below: Floats) -> Floats:
    """Return the quotient; NaN where the divisor is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)
    return quotient


def _is_constant(scores: Floats) -> bool:
    """Return whether a judge's scores, NaN where missing, are enough and all equal."""
    had = scores[~np.isnan(scores)]
    return bool(had.size) and is_constant(had.size, float(had.min()), float(had.max()))


def _estimate(n: int, value: float, resampled: Floats, scores: Floats | None = None) -> Estimate | None:
    """Return a figure with its interval, `None` if undefined; with fewer than 5 dialogues it has no interval.

    Args:
        n: The number of dialogues.
        value: The figure.
        resampled: The figure of each resample.
        scores: The scores that the figure is the mean of, if it is one.
    """
    had = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(had):
        return None
    constant = None if scores is None else _is_constant(scores)
    if n < FEWEST:
        return Estimate(n, float(value), None, None, constant)
    return Estimate(n, float(value), *percentiles(had), constant)


METRIC, TARGET = "alignment", "assistant"
"""The metric and the target of the reported judgements; their turn is the round, from 1."""

SCALE = (1.0, 5.0)
_STATUSES = ("ok", "unparsed", "error")

_LEVELS = (
    "AL(k): mean score of the replies of round k, 1 to 5, over the n dialogues that have one. In brackets: 95 % "
    f"bootstrap intervals; whole dialogues are resampled (none for fewer than {FEWEST})."
)
_FIGURES = (
    "Average: mean of AL(k) over the rounds. IR: slope of the least-squares line through AL(k), in points per round. "
    "N-IR: the same slope with the lowest AL(k) as 0 and the highest as 1. R²: how well the line fits. "
    "A dash: undefined, as the N-IR and R² of a flat AL are."
)
_ASKEW = (
    "Resampling adds noise, and noise widens the range of AL(k) and makes it less of a line: where AL(k) hardly "
    "changes, the intervals of N-IR and R² lie askew."
)
_HAD = (
    "Not sampled: rounds of finished dialogues of which this set of judgements has none (outside a sample that "
    "was judged, or their judging failed). Not reached: rounds that a failed dialogue did not come to. Only "
    "those that are ok have a score."
)
_MEANS = (
    "Rounds and tokens are means over finished dialogues; tokens are those that the assistant wrote, as its "
    "provider counted them."
)


def compared(runs: Runs) -> list[Table]:
    """Return levels by round, improvement, judgements and dialogues: a row for each run, in one pass over each."""
    models = [_Model(label, episodes) for label, episodes in runs]
    last = max((len(model.alignment.levels) for model in models if model.alignment), default=0)
    scored = models if last else []
    improvement = ["average AL", "IR", "N-IR", "R²"]
    found = [
        Table(
            "alignment",
            "Alignment level by round",
            ["model", *(f"k={k}" for k in range(1, last + 1))],
            [[model.label, *model.levels(last)] for model in scored],
            [_LEVELS],
            scales={f"k={k}": SCALE for k in range(1, last + 1)},
        ),
        Table(
            "improvement",
            "Average alignment and improvement over the rounds",
            ["model", *improvement],
            [[model.label, *model.improvement] for model in scored],
            [_FIGURES, _ASKEW],
            decimals=dict.fromkeys(improvement[1:], 3),
            scales={"average AL": SCALE},
        ),
        Table(
            "judgements",
            "Judgements by status",
            ["model", *_STATUSES, "not sampled", "not reached"],
            [[model.label, *model.judgements] for model in models if any(map(model.statuses.get, _STATUSES))],
            [_HAD],
        ),
        Table(
            "dialogues",
            "The dialogues",
            ["model", "dialogues", "failed", "rounds", "tokens per reply"],
            [[model.label, *model.sizes] for model in models if model.dialogues],
            [_MEANS],
        ),
    ]
    for table in found:
        table.facets = {"model": None}
    return [table for table in found if table.rows]


def charts(runs: Runs) -> list[Chart]:
    """Return AL over the rounds with its intervals and fitted lines; no chart if no run has a score."""
    models = [_Model(label, episodes) for label, episodes in runs]
    chart = Chart("alignment", "Alignment level by round", "round k", "AL(k), mean score from 1 to 5", y_range=SCALE)
    chart.series = [_series(model.label, model.alignment) for model in models if model.alignment]
    chart.notes.append("Bands: 95 % bootstrap intervals. Dashed: least-squares lines, whose slope is IR.")
    return [chart] if chart.series else []


class _Model:
    """The figures of one run."""

    def __init__(self, label: str, episodes: Iterable[Episode]) -> None:
        self.label = label
        self.dialogues = self.failed = self.unsampled = self.replies = self.rounds = 0
        self.tokens: int | None = 0
        self.statuses: Counter[str] = Counter()
        scores = Scores()
        for episode in episodes:
            self._count(episode)
            scores.add(self._scores(episode))
        self.alignment = scores.alignment()

    def _scores(self, episode: Episode) -> dict[int, float]:
        """Return one dialogue's scores by round."""
        scores: dict[int, float] = {}
        judgements = [each for each in episode.outcome.judgements if (each.metric, each.target) == (METRIC, TARGET)]
        self.unsampled += episode.state == "done" and not judgements
        for judgement in judgements:
            if judgement.turn is not None:
                self.statuses[judgement.status] += 1
                self.rounds = max(self.rounds, judgement.turn)
                if judgement.score is not None:
                    scores[judgement.turn] = float(judgement.score)
        return scores

    def _count(self, episode: Episode) -> None:
        self.dialogues += 1
        if episode.state != "done":
            self.failed += 1
            return
        self.replies += sum(line.role == "assistant" for line in episode.outcome.messages)
        tokens = episode.output_tokens.get("assistant")
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens

    def levels(self, last: int) -> list[Cell]:
        """Return AL(k) up to a round."""
        levels: list[Cell] = [*self.alignment.levels] if self.alignment else []
        return [*levels, *[None] * (last - len(levels))]

    @property
    def improvement(self) -> list[Cell]:
        """Average, IR, N-IR and R²."""
        found = self.alignment
        return [found.average, found.rate, found.normalized_rate, found.r_squared] if found else [None] * 4

    @property
    def judgements(self) -> list[Cell]:
        """The number of judgements by status, and the numbers of missing ones."""
        counts = [*(self.statuses[status] for status in _STATUSES), self.rounds * self.unsampled]
        return [*counts, self.rounds * self.dialogues - sum(counts)]

    @property
    def sizes(self) -> list[Cell]:
        """The number of dialogues, and the means of their sizes."""
        done = self.dialogues - self.failed
        tokens = None if self.tokens is None or not self.replies else self.tokens / self.replies
        return [self.dialogues, self.failed, self.replies / done if done else None, tokens]


def _series(label: str, found: Alignment) -> Series:
    line = None
    if found.rate is not None and found.intercept is not None:
        fit = f", R² {found.r_squared.mean:.3f}" if found.r_squared is not None else ""
        line = FittedLine(found.intercept, found.rate.mean, f"IR {found.rate.mean:.3f}{fit}")
    return Series.of(label, range(1, len(found.levels) + 1), found.levels, line)
