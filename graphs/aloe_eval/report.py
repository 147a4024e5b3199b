"""ALOE's aggregates: the paper's table 1 and figure 4, for one model or several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.chart import Chart, FittedLine, Series
from dialoom.graphs.reporting.statistics import FEWEST, Estimate
from dialoom.graphs.reporting.table import Cell, Table

from .alignment import Alignment, Scores

METRIC, TARGET = "alignment", "assistant"
"""The judgements that are reported; their turn is the round, from 1."""

SCALE = (1.0, 5.0)

Runs: TypeAlias = Sequence[tuple[str, Iterable[Episode]]]
"""Each run's label, e.g. its model, and its finished dialogues; these are read once, one at a time."""

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


def compared(runs: Runs) -> list[Table]:
    """Levels by round, improvement, judgements and dialogues: a row for each run, in one pass over its dialogues."""
    models = [_Model(label, episodes) for label, episodes in runs]
    found = (_by_round(models), _improvement(models), _judgements(models), _dialogues(models))
    for table in found:
        table.facets = {"model": None}
    return [table for table in found if table.rows]


def charts(runs: Runs) -> list[Chart]:
    """AL over the rounds with its intervals and fitted lines; none while no run has a score."""
    models = [_Model(label, episodes) for label, episodes in runs]
    chart = Chart("alignment", "Alignment level by round", "round k", "AL(k), mean score from 1 to 5", y_range=SCALE)
    chart.series = [_series(model.label, model.alignment) for model in models if model.alignment]
    chart.notes.append("Bands: 95 % bootstrap intervals. Dashed: least-squares lines, whose slope is IR.")
    return [chart] if chart.series else []


class _Model:
    """All that is shown of one run."""

    def __init__(self, label: str, episodes: Iterable[Episode]) -> None:
        self.label = label
        self.dialogues = self.failed = self.unsampled = self.replies = self.tokens = self.rounds = 0
        self.tokens_known = True
        self.statuses: Counter[str] = Counter()
        scores = Scores()
        for episode in episodes:
            self._count(episode)
            scores.add(self._scores(episode))
        self.alignment = scores.alignment()

    def _scores(self, episode: Episode) -> dict[int, float]:
        """One dialogue's scores by round."""
        scores: dict[int, float] = {}
        judgements = [each for each in episode.outcome.judgements if (each.metric, each.target) == (METRIC, TARGET)]
        self.unsampled += episode.state == "done" and not judgements
        for judgement in judgements:
            if judgement.turn is None:
                continue
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
        self.tokens_known = self.tokens_known and tokens is not None
        self.tokens += tokens or 0


def _by_round(models: list[_Model]) -> Table:
    last = max((len(model.alignment.levels) for model in models if model.alignment), default=0)
    table = Table("alignment", "Alignment level by round", ["model", *(f"k={k}" for k in range(1, last + 1))])
    for model in models if last else ():
        levels: list[Cell] = [*model.alignment.levels] if model.alignment else []
        table.rows.append([model.label, *levels, *[None] * (last - len(levels))])
    table.scales = dict.fromkeys(table.columns[1:], SCALE)
    table.notes.append(_LEVELS)
    return table


def _improvement(models: list[_Model]) -> Table:
    columns = ["model", "average AL", "IR", "N-IR", "R²"]
    table = Table("improvement", "Average alignment and improvement over the rounds", columns)
    table.decimals, table.scales = {"IR": 3, "N-IR": 3, "R²": 3}, {"average AL": SCALE}
    table.rows = [[model.label, *_figures(model.alignment)] for model in models]
    if not any(model.alignment for model in models):
        table.rows.clear()
    table.notes += [_FIGURES, _ASKEW]
    return table


def _figures(found: Alignment | None) -> list[Estimate | None]:
    return [found.average, found.rate, found.normalized_rate, found.r_squared] if found else [None] * 4


def _judgements(models: list[_Model]) -> Table:
    columns = ["model", "ok", "unparsed", "error", "not sampled", "not reached"]
    table = Table("judgements", "Judgements had and not had", columns)
    for model in models:
        counts = [model.statuses[status] for status in ("ok", "unparsed", "error")]
        if sum(counts):
            counts.append(model.rounds * model.unsampled)
            table.rows.append([model.label, *counts, model.rounds * model.dialogues - sum(counts)])
    table.notes.append(
        "Not sampled: rounds of finished dialogues of which this set of judgements has none (outside a sample that "
        "was judged, or their judging failed). Not reached: rounds that a failed dialogue did not come to. Only "
        "those that are ok have a score."
    )
    return table


def _dialogues(models: list[_Model]) -> Table:
    table = Table("dialogues", "The dialogues", ["model", "dialogues", "failed", "rounds", "tokens per reply"])
    for model in models:
        done = model.dialogues - model.failed
        rounds = model.replies / done if done else None
        tokens = model.tokens / model.replies if model.tokens_known and model.replies else None
        if model.dialogues:
            table.rows.append([model.label, model.dialogues, model.failed, rounds, tokens])
    table.notes.append(
        "Rounds and tokens are means over finished dialogues; tokens are those that the assistant wrote, as its "
        "provider counted them."
    )
    return table


def _series(label: str, found: Alignment) -> Series:
    line = None
    if found.rate is not None and found.intercept is not None:
        fit = f", R² {found.r_squared.mean:.3f}" if found.r_squared is not None else ""
        line = FittedLine(found.intercept, found.rate.mean, f"IR {found.rate.mean:.3f}{fit}")
    return Series(
        label=label,
        x=range(1, len(found.levels) + 1),
        y=[level.mean if level else None for level in found.levels],
        low=[level.low if level else None for level in found.levels],
        high=[level.high if level else None for level in found.levels],
        line=line,
    )
