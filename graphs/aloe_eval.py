"""The ALOE benchmark: it measures how well an assistant adapts to a user who reveals their persona gradually.

The conversations, judge and alignment levels of "Aligning LLMs with Individual Preferences via Interaction" (COLING
2025), in our own words and code.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dialoom.graphs.aloe import strip_stage_directions
from dialoom.graphs.aloe.tree import MAX_MESSAGE_TOKENS, PersonaOptions, PersonaScenario
from dialoom.graphs.conversation import DialogueState
from dialoom.graphs.dialogue import DialogueRecipe, Turns
from dialoom.graphs.judge import Case, Graph, Judge, add_judges
from dialoom.graphs.outcome import Episode, Outcome, Status
from dialoom.graphs.recipe import AbsolutePath, RecipeError
from dialoom.graphs.stage import Stage, node
from dialoom.graphs.tables import (
    MIN_UNITS,
    RESAMPLES,
    Cell,
    Chart,
    Estimate,
    Facet,
    FittedLine,
    Runs,
    ScenarioFilter,
    Series,
    Table,
)
from dialoom.graphs.tables.statistics import TRIALS_NOTE, is_constant, percentile_interval, widening_factor
from dialoom.personas.pools import Persona, read_personas

Floats: TypeAlias = NDArray[np.float64]

_MAX_BATCH_WEIGHTS = 2**20


@dataclass(frozen=True, slots=True)
class Alignment:
    """The alignment figures of a model, each with its 95 % interval; a figure is `None` if it is undefined.

    Attributes:
        levels: AL(k) for k = 1, ..., K; each n is the number of dialogues with a score at that round. A round without a
            level is left out of all other figures.
        average: The mean of the levels. Its n, and that of all following figures, is the number of dialogues with any
            score.
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
    """Scores of many dialogues, stored as one number per dialogue and round."""

    def __init__(self) -> None:
        self._rounds: list[array[float]] = []
        self._scenarios: list[Hashable] = []

    def add(self, scores: Mapping[int, float], scenario: Hashable = None) -> None:
        """Add one dialogue's scores by round, counted from 1. Rounds without a score do not count in AL.

        Args:
            scores: The scores.
            scenario: The scenario, if it may have several dialogues.
        """
        while len(self._rounds) < max(scores, default=0):
            self._rounds.append(array("d", [np.nan]) * len(self._scenarios))
        for number, column in enumerate(self._rounds, start=1):
            column.append(scores.get(number, np.nan))
        self._scenarios.append(len(self._scenarios) if scenario is None else scenario)

    def alignment(self) -> Alignment | None:
        """Return all figures with percentile bootstrap intervals; `None` without any score.

        A resample draws as many scenarios as there are, with replacement, and computes every figure again. The scores
        of one dialogue, and the dialogues of one scenario, stay together, because they depend on each other. The levels
        of few scenarios vary too little, so they are widened as in `Tally.estimate`, within the range of the scores of
        each round; so are the average and the rate, which are sums of levels. If a figure is undefined for a resample
        (e.g. the N-IR of flat levels), that resample is left out of the figure's interval. The generator's seed is
        fixed and the dialogues are sorted first, so equal scores give equal intervals regardless of their order.
        """
        table, sizes = self._table()
        if not len(table):
            return None
        levels = _compute_levels(np.ones((1, len(table))), table)
        resampled = _resample_levels(table, sizes)
        scenario = np.repeat(np.arange(len(sizes)), sizes)
        units = [len(np.unique(scenario[~np.isnan(scores)])) for scores in table.T]
        widened = levels + [*map(widening_factor, units)] * (resampled - levels)
        widened = np.clip(widened, np.fmin.reduce(table), np.fmax.reduce(table))
        estimates = [
            _build_estimate(n, value, values, scores)
            for n, value, values, scores in zip(units, levels[0], widened.T, table.T, strict=True)
        ]
        figures = zip(
            _compute_figures(levels), (*_compute_figures(widened)[:3], *_compute_figures(resampled)[3:]), strict=True
        )
        average, rate, intercept, normalized, r_squared = (
            _build_estimate(len(sizes), value[0], values, table) for value, values in figures
        )
        assert average is not None
        line = None if intercept is None else intercept.mean
        return Alignment(tuple(estimates), average, rate, normalized, r_squared, line)

    def _table(self) -> tuple[Floats, list[int]]:
        """Return sorted scores by dialogue and round, NaN where missing, and the number of dialogues of each scenario.

        The dialogues of a scenario are adjacent, and dialogues without any score are left out.
        """
        by_scenario: dict[Hashable, list[tuple[float, ...]]] = defaultdict(list)
        for scenario, *scores in zip(self._scenarios, *self._rounds, strict=True):
            if not all(map(math.isnan, scores)):
                by_scenario[scenario].append(tuple(math.inf if math.isnan(each) else each for each in scores[::-1]))
        ordered = sorted(map(sorted, by_scenario.values()))
        table = np.array([scores[::-1] for dialogues in ordered for scores in dialogues])
        return np.where(np.isinf(table), np.nan, table), [*map(len, ordered)]


def _resample_levels(table: Floats, sizes: Sequence[int]) -> Floats:
    """Return levels by resample and round. They are computed in batches, so that the weights fit in a few megabytes.

    Args:
        table: Scores by dialogue and round.
        sizes: The number of dialogues of each scenario; all of a scenario are drawn together.
    """
    n = len(sizes)
    draw = np.random.default_rng(0)
    at_once = max(1, min(RESAMPLES, _MAX_BATCH_WEIGHTS // len(table)))
    levels = np.empty((RESAMPLES, table.shape[1]))
    for start in range(0, RESAMPLES, at_once):
        some = min(at_once, RESAMPLES - start)
        # The number of times that each scenario was drawn.
        weights = np.stack([np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(some)])
        levels[start : start + some] = _compute_levels(np.repeat(weights, sizes, axis=1).astype(np.float64), table)
    return levels


def _compute_levels(weights: Floats, table: Floats) -> Floats:
    """Return AL for each row of weights and each round; NaN where no dialogue with a weight above 0 has a score."""
    present = ~np.isnan(table)
    return _divide(weights @ np.where(present, table, 0.0), weights @ present.astype(np.float64))


def _compute_figures(levels: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the average, slope, intercept, normalized slope and R^2 of each row of levels; NaN where undefined."""
    present = ~np.isnan(levels)
    n = present.sum(axis=1).astype(np.float64)
    rounds = np.where(present, np.arange(1.0, levels.shape[1] + 1), 0.0)
    values = np.where(present, levels, 0.0)
    mean_round, average = _divide(rounds.sum(axis=1), n), _divide(values.sum(axis=1), n)
    x = np.where(present, rounds - mean_round[:, None], 0.0)
    y = np.where(present, values - average[:, None], 0.0)
    xx, xy, yy = (x * x).sum(axis=1), (x * y).sum(axis=1), (y * y).sum(axis=1)
    # Flatness is tested on the range: due to rounding, the sum of squares of equal levels may not be exactly 0.
    spread = np.where(present, levels, -np.inf).max(axis=1) - np.where(present, levels, np.inf).min(axis=1)
    flat = ~(spread > 0)
    slope = _divide(np.where(flat, 0.0, xy), xx)
    normalized = _divide(slope, np.where(flat, 0.0, spread))
    r_squared = _divide(xy * xy, np.where(flat, 0.0, xx * yy))
    return average, slope, average - slope * mean_round, normalized, r_squared


def _divide(above: Floats, below: Floats) -> Floats:
    """Return the quotient; NaN where the divisor is 0."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)
    return quotient


def _is_constant(scores: Floats) -> bool:
    """Return whether a judge gave enough scores and all of them are equal. Missing scores are NaN."""
    had = scores[~np.isnan(scores)]
    return bool(had.size) and is_constant(had.size, float(had.min()), float(had.max()))


def _build_estimate(units: int, value: float, resampled: Floats, scores: Floats) -> Estimate | None:
    """Return a figure with its interval, or `None` if it is undefined. Fewer than 5 scenarios give no interval.

    Args:
        units: The number of scenarios with such scores.
        value: The figure.
        resampled: The figure of each resample.
        scores: The scores that the figure is computed from, by dialogue (and round).
    """
    n = int(np.count_nonzero(~np.isnan(scores).reshape(len(scores), -1).all(axis=1)))
    had = resampled[~np.isnan(resampled)]
    if np.isnan(value) or not len(had):
        return None
    constant = _is_constant(scores)
    if units < MIN_UNITS:
        return Estimate(n, float(value), None, None, constant)
    return Estimate(n, float(value), *percentile_interval(had), constant)


METRIC, TARGET = "alignment", "assistant"
"""The metric and the target of the reported judgements. The turn of such a judgement is the round, from 1."""

SCALE = (1.0, 5.0)
_STATUSES: tuple[Status, ...] = ("ok", "unparsed", "error")

_LEVELS_NOTE = (
    "AL(k): mean score of the replies of round k, 1 to 5, over the n dialogues that have one. In brackets: 95 % "
    f"bootstrap intervals; whole dialogues are resampled (none for fewer than {MIN_UNITS}). Those of AL(k), the "
    "average "
    "and IR are widened for few dialogues as by Student's t."
)
_FIGURES_NOTE = (
    "Average: mean of AL(k) over the rounds. IR: slope of the least-squares line through AL(k), in points per round. "
    "N-IR: the same slope with the lowest AL(k) as 0 and the highest as 1. R²: how well the line fits. "
    "A dash: the figure is undefined, such as N-IR and R² if AL(k) is constant."
)
_BIAS_NOTE = (
    "Resampling adds noise, which widens the range of AL(k) and worsens the fit of the line: if AL(k) hardly changes, "
    "the intervals of N-IR and R² are biased."
)
_JUDGEMENTS_NOTE = (
    "Not sampled: rounds of finished dialogues without a judgement in this set (not in the judged sample, or the "
    "judging failed). Not reached: all rounds of failed dialogues, which are not judged. Only judgements with the "
    "status ok have a score."
)
_MEANS_NOTE = (
    "Rounds: the mean over finished dialogues. Tokens per reply: those that the assistant wrote in all of these, as "
    "counted by its provider, divided by all of its replies."
)


class _ModelResults:
    """The figures of one run."""

    def __init__(self, label: str, episodes: Iterable[Episode]) -> None:
        self.label = label
        self.dialogues = self.failed = self.unsampled = self.replies = self.rounds = 0
        self.tokens: int | None = 0
        self.statuses: Counter[str] = Counter()
        self.has_trials = False
        scores = Scores()
        for episode in episodes:
            self._count(episode)
            scores.add(self._scores(episode), episode.repeated)
            self.has_trials |= episode.repeated is not None
        self.alignment = scores.alignment()

    def _scores(self, episode: Episode) -> dict[int, float]:
        """Return one dialogue's scores by round."""
        judgements = [each for each in episode.outcome.judgements if (each.metric, each.target) == (METRIC, TARGET)]
        self.unsampled += episode.state == "done" and not judgements
        by_turn = [(each.turn, each) for each in judgements if each.turn is not None]
        self.statuses.update(each.status for _, each in by_turn)
        self.rounds = max([self.rounds, *(turn for turn, _ in by_turn)])
        return {turn: float(each.score) for turn, each in by_turn if each.score is not None}

    def _count(self, episode: Episode) -> None:
        self.dialogues += 1
        if episode.state != "done":
            self.failed += 1
            return
        self.replies += sum(line.role == "assistant" for line in episode.outcome.messages)
        tokens = episode.output_tokens.get("assistant")
        self.tokens = None if self.tokens is None or tokens is None else self.tokens + tokens

    def levels(self, last: int) -> list[Cell]:
        """Return the alignment levels AL(k) from round 1 to a round."""
        levels: list[Cell] = [*self.alignment.levels] if self.alignment else []
        return [*levels, *[None] * (last - len(levels))]

    @property
    def improvement(self) -> list[Cell]:
        """The cells with the average level, IR, N-IR and R²."""
        found = self.alignment
        return [found.average, found.rate, found.normalized_rate, found.r_squared] if found else [None] * 4

    @property
    def judgements(self) -> list[Cell]:
        """The cells with the number of judgements by status, and the number of missing judgements."""
        counts = [*(self.statuses[status] for status in _STATUSES), self.rounds * self.unsampled]
        return [*counts, self.rounds * self.dialogues - sum(counts)]

    @property
    def sizes(self) -> list[Cell]:
        """The cells with the numbers of dialogues and of failed dialogues, and the mean sizes of finished dialogues."""
        done = self.dialogues - self.failed
        tokens = None if self.tokens is None or not self.replies else self.tokens / self.replies
        return [self.dialogues, self.failed, self.replies / done if done else None, tokens]


def _build_series(label: str, found: Alignment) -> Series:
    line = None
    if found.rate is not None and found.intercept is not None:
        fit = f", R² {found.r_squared.mean:.3f}" if found.r_squared is not None else ""
        line = FittedLine(found.intercept, found.rate.mean, f"IR {found.rate.mean:.3f}{fit}")
    return Series.of(label, range(1, len(found.levels) + 1), found.levels, line)


class AloeEvalOptions(PersonaOptions):
    """The options of the recipe `aloe-eval`."""

    unlike: AbsolutePath | None = Field(
        None,
        description="JSONL of personas used in training; personas with the same profiles are left out.",
    )


def _build_cases(scenario: PersonaScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield each answer as a case, with the message before it and the persona."""
    for turn in range(1, len(outcome.messages) // 2 + 1):
        message, answer = (line.content for line in outcome.messages[2 * turn - 2 : 2 * turn])
        yield Case(turn, {"message": message, "answer": answer, **scenario.persona()})


class AloeEval(DialogueRecipe):
    """A benchmark of how well an assistant adapts, round by round, to users who reveal themselves gradually (ALOE)."""

    name = "aloe-eval"
    languages = ("en",)
    roles = {"user": 0.8, "assistant": 0.0, "judge": 0.0}
    reply_limits = dict.fromkeys(("user", "assistant"), MAX_MESSAGE_TOKENS)
    prompts = ("aloe/user", "aloe/assistant")
    turns = Turns(max_turns="rounds", unit="round", limit_reason="all_rounds")
    judges = (Judge("alignment", prompt="aloe/judge-alignment", scale=(1, 5), cases=_build_cases, node="judge"),)
    options_type = AloeEvalOptions
    scenario_type = PersonaScenario
    facets = (Facet("persona", splits=True),)
    evaluated = "assistant"

    def scenarios(
        self, options: AloeEvalOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonaScenario]:
        """Yield a conversation for each persona, in the file's order."""
        for person in _exclude_trained(options.people(), options.unlike, note)[: options.limit]:
            yield PersonaScenario(
                person=person.id, profile=person.profile, personality=person.personality, rounds=options.rounds
            )

    def graph(self, options: AloeEvalOptions) -> Graph:
        """Return the graph: user and assistant speak in turn.

        The judge scores each answer while the next message is written.
        """
        from langgraph.graph import START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(DialogueState, context_schema=Stage)
        for role in self.turns.order:
            builder.add_node(role, node(self.speaker(role)))
        after = add_judges(builder, self, self.judges_used(options))

        async def after_assistant(state: DialogueState) -> list[str]:
            return after if state["ended_by"] else [*after, "user"]

        builder.add_edge(START, "user")
        builder.add_edge("user", "assistant")
        builder.add_conditional_edges("assistant", after_assistant, [*after, "user"])
        return builder

    def user_instructions(self, scenario: PersonaScenario) -> Mapping[str, str]:
        """Return the persona that the simulated user played."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """Return a user's message without stage directions."""
        return strip_stage_directions(reply)

    def report_tables(self, runs: Runs) -> list[Table]:
        """Return the tables of levels by round, improvement, judgements and dialogues, with a row per run.

        Each run is read once.
        """
        models = [_ModelResults(label, episodes) for label, episodes in runs]
        last = max((len(model.alignment.levels) for model in models if model.alignment), default=0)
        scored = models if last else []
        improvement = ["average AL", "IR", "N-IR", "R²"]
        tables = levels, improved, judgements, dialogues = (
            Table(
                "alignment",
                "Alignment level by round",
                ["model", *(f"k={k}" for k in range(1, last + 1))],
                [[model.label, *model.levels(last)] for model in scored],
                [_LEVELS_NOTE],
                scales={f"k={k}": SCALE for k in range(1, last + 1)},
            ),
            Table(
                "improvement",
                "Average alignment and improvement over the rounds",
                ["model", *improvement],
                [[model.label, *model.improvement] for model in scored],
                [_FIGURES_NOTE, _BIAS_NOTE],
                decimals=dict.fromkeys(improvement[1:], 3),
                scales={"average AL": SCALE},
            ),
            Table(
                "judgements",
                "Judgements by status",
                ["model", *_STATUSES, "not sampled", "not reached"],
                [[model.label, *model.judgements] for model in models if any(map(model.statuses.get, _STATUSES))],
                [_JUDGEMENTS_NOTE],
            ),
            Table(
                "dialogues",
                "Dialogues",
                ["model", "dialogues", "failed", "rounds", "tokens per reply"],
                [[model.label, *model.sizes] for model in models if model.dialogues],
                [_MEANS_NOTE],
            ),
        )
        for table in tables:
            table.facets = {"model": None}
        for table in (levels, improved):
            table.notes += [TRIALS_NOTE] if any(model.has_trials for model in models) else []
            table.judged = {column: [f"{METRIC} ({TARGET}) by turn"] for column in table.columns[1:]}
            table.population = ScenarioFilter(METRIC, TARGET)
        for found in (model.alignment for model in models if model.alignment):
            fewer = (k for k, level in enumerate(found.levels, start=1) if level is None or level.n < found.average.n)
            levels.chosen |= dict.fromkeys(f"k={k}" for k in fewer)  # facets cannot select the dialogues with a score
        judgements.counted = {status: ScenarioFilter(METRIC, TARGET, status) for status in _STATUSES}
        judgements.chosen = dict.fromkeys(("not sampled", "not reached"))
        done = ScenarioFilter(state="done")
        dialogues.counted = {"failed": ScenarioFilter(state="failed"), "rounds": done, "tokens per reply": done}
        return [table for table in tables if table.rows]

    def charts(self, runs: Runs) -> list[Chart]:
        """Return a chart of AL by round with intervals and fitted lines; no chart if no run has a score."""
        models = [_ModelResults(label, episodes) for label, episodes in runs]
        chart = Chart(
            "alignment", "Alignment level by round", "round k", "AL(k), mean score from 1 to 5", y_range=SCALE
        )
        chart.series = [_build_series(model.label, model.alignment) for model in models if model.alignment]
        chart.notes.append("Bands: 95 % bootstrap intervals. Dashed: least-squares lines, whose slope is IR.")
        return [chart] if chart.series else []


def _exclude_trained(people: Sequence[Persona], trained: Path | None, note: Callable[[str], None]) -> list[Persona]:
    if trained is None:
        return list(people)
    profiles = {person.profile for person in read_personas(trained)}
    left = [person for person in people if person.profile not in profiles]
    note(f"{len(people) - len(left):,} personas left out, because {trained.name} contains their profiles")
    if not left:
        raise RecipeError(
            f"unlike {trained}: the file contains the profile of every persona, so none is left", setting="unlike"
        )
    return left


RECIPE = AloeEval()
