"""ALOE's aggregates: the paper's table 1 and figure 4, for one model or several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import FEWEST, Cell, Chart, FittedLine, Runs, Series, Table

from .alignment import Alignment, Scores

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
            "Judgements had and not had",
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
