"""The items that people label, and samples of them."""

from __future__ import annotations

import csv
import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import yaml

from dialoom.errors import Advice
from dialoom.graphs import Episode, Judgement, Recipe, WithJudging, WithLabels, stream
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.reading.conversations import Group, Item, iter_items
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store import RunFile
from dialoom.text import escape_csv_cell


def find_scenario(run: RunFile, item: str) -> tuple[int, str] | None:
    """Return the position and the id of the scenario that an item's id names; `None` if the run does not have it."""
    for end in (place for place, letter in enumerate(item) if letter == "/"):
        if (position := run.position_of(item[:end])) is not None:
            return position, item[:end]
    return None


def iter_run_items(
    run: RunFile, judging: str | None, metrics: Collection[str], where: str | None = None
) -> Iterator[tuple[Episode, Item]]:
    """Yield a run's items in plan order, optionally only those of some metrics or of scenarios matching an expression.

    Raises:
        RunError: If the run has no judgements of such a metric.
        StoreError: If the set of judgements does not exist.
    """
    judged_metrics: set[str] = set()
    chosen = run.judgement_set(judging)
    if chosen is not None and chosen.members:
        names = ", ".join(map(repr, chosen.members))
        raise RunError(
            f"judging {chosen.name!r}: agreement is computed with a single judge, and this is a set of several; name "
            f"one of {names}",
            setting="judging",
        )
    recipe = run.recipe
    for episode in select_episodes(run, judging, where):
        for item in iter_items(episode, recipe):
            judged_metrics.add(item.judgement.metric)
            if not metrics or item.judgement.metric in metrics:
                yield episode, item
    if not judged_metrics and where is not None:
        raise RunError(f"where {where!r} matches no judgement of {run.path}", setting="where")
    if not judged_metrics:
        advice = Advice("judge", "judge the run first", {"path": run.path})
        raise RunError(f"{run.path} has no judgements to compare labels with", advice=advice)
    if unknown := [metric for metric in metrics if metric not in judged_metrics]:
        known = ", ".join(sorted(judged_metrics))
        raise RunError(f"metrics {unknown[0]!r}: {run.path} has judgements of {known}", setting="metrics")


_DIGEST_CHARACTERS = 16


def compute_item_digest(episode: Episode, recipe: Recipe, item: Item) -> str:
    """Return the digest of the lines that people read to label an item; it does not depend on any judgement.

    The digest changes if another branch becomes the scenario's conversation or the scenario is played again, unless the
    part that the item is about, such as the first turns, is unchanged.
    """
    judgements = episode.outcome.judgements
    judgements_without_results = tuple(map(_without_result, judgements))
    index = next((index for index, each in enumerate(judgements) if each is item.judgement), None)
    judgement = _without_result(item.judgement) if index is None else judgements_without_results[index]
    outcome = episode.outcome.model_copy(update={"judgements": judgements_without_results})
    lines = [[line.role, line.spoken] for line in WithLabels.of(recipe).judged_lines(outcome, judgement)]
    content = json.dumps(lines, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # The prefix keeps spreadsheets from parsing it as a number.
    return f"sha256:{sha256(content).hexdigest()[:_DIGEST_CHARACTERS]}"


def _without_result(judgement: Judgement) -> Judgement:
    """Return a judgement without its result, so that the lines shown to annotators cannot quote the judge."""
    return Judgement(metric=judgement.metric, target=judgement.target, turn=judgement.turn, status="unparsed")


_VERDICTS = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of whole numbers from `low` to `high`; a verdict is 0 or 1."""

    low: int
    high: int
    is_verdict: bool = False

    @property
    def size(self) -> int:
        """The number of values on the scale."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        # Not `1-5`: a spreadsheet would parse it as a date.
        return "yes or no" if self.is_verdict else f"{self.low} to {self.high}"

    def text(self, value: int) -> str:
        """Format one of the scale's values as a label."""
        return ("no", "yes")[value] if self.is_verdict else str(value)

    def parse(self, text: str) -> int:
        """Parse a label.

        Raises:
            ValueError: If it is not one of the scale's values; the message lists them.
        """
        # Spreadsheets sometimes write 4 as `4.0`.
        number = re.fullmatch(r"([+-]?\d{1,9})(?:\.0*)?", text, re.ASCII)
        value = _VERDICTS.get(text.lower()) if self.is_verdict else int(number[1]) if number else None
        if value is None or not self.low <= value <= self.high:
            allowed = "yes or no (or true, false, 1, 0)" if self.is_verdict else f"a whole number from {self}"
            raise ValueError(f"{text!r:.60} is not {allowed}")
        return value


VERDICT = Scale(0, 1, is_verdict=True)


class Scales:
    """The scales of a run's metrics: the recipe's, overridden by the user's.

    A metric without a scale is a verdict.

    Args:
        scales: The lowest and the highest score by metric, as in `WithJudging.scales`.
        overrides: Overrides of the form `METRIC=LOW-HIGH`.

    Raises:
        RunError: If a given scale cannot be parsed.
    """

    def __init__(self, scales: Mapping[str, tuple[int, int]], overrides: Iterable[str] = ()) -> None:
        self._scales = {metric: Scale(low, high) for metric, (low, high) in scales.items()}
        for text in overrides:
            match = re.fullmatch(r"(.+?)=(-?\d{1,6})-(-?\d{1,6})", text, re.ASCII)
            if match is None or int(match[2]) >= int(match[3]):
                raise RunError(
                    f"scales {text!r}: expected METRIC=LOW-HIGH with whole numbers, such as naturalness=1-5",
                    setting="scales",
                )
            self._scales[match[1]] = Scale(int(match[2]), int(match[3]))

    def get(self, metric: str) -> Scale:
        """Return the scale of a metric."""
        return self._scales.get(metric, VERDICT)

    def integer_score(self, judgement: Judgement) -> int | None:
        """Return the judge's score as a value of its scale; `None` if there is none.

        Raises:
            RunError: If the score is not on the scale.
        """
        score, scale = judgement.score, self.get(judgement.metric)
        if score is None:
            return None
        if isinstance(score, bool) != scale.is_verdict:
            if scale.is_verdict:
                raise RunError(
                    f"scales: the recipe states no scale for {judgement.metric}, which the judge scored {score}; "
                    f"give {judgement.metric}=LOW-HIGH, such as {judgement.metric}=1-5",
                    setting="scales",
                )
            raise RunError(f"the scale of {judgement.metric} is {scale}, but the judge's score is a verdict, {score}")
        if int(score) != score or not scale.low <= score <= scale.high:
            raise RunError(
                f"scales: the judge's score {score} of {judgement.metric} is not a whole number from {scale}; "
                f"give {judgement.metric}=LOW-HIGH with the scale that the judge's prompt states",
                setting="scales",
            )
        return int(score)


ITEM_COLUMN, LABEL_PREFIX, DIGEST_COLUMN = "item", "label:", "digest"
"""In labels files, the title of the column of ids, the prefix of the titles of annotators' columns, and the title of
the column of digests."""
COLUMNS = (ITEM_COLUMN, "scenario", "metric", "target", "turn", "scale", DIGEST_COLUMN, "about", "conversation")


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of judgements that has been written to a file.

    Attributes:
        counts: The number of items by group.
        unscored: The number of judgements that were excluded because they have no score.
        conversations: The number of conversations that the items are from.
    """

    counts: Mapping[Group, int]
    unscored: int
    conversations: int

    @property
    def n(self) -> int:
        """Number of items in all groups."""
        return sum(self.counts.values())


def write_sample(
    run: RunFile,
    target: Path,
    size: int,
    annotators: Sequence[str],
    *,
    seed: int | None = None,
    judging: str | None = None,
    metrics: Collection[str] = (),
    scales: Iterable[str] = (),
    where: str | None = None,
) -> Sample:
    """Draw judgements with a score from finished scenarios, and write them as a CSV file for people to label.

    Args:
        run: The run.
        target: The file; it must not exist.
        size: Number of items. It is divided evenly between metrics, targets, and whole conversations and turns; within
            each of these, in proportion to the judge's scores, but with at least two items of each score if possible.
            As far as the scores allow, the items of all groups are from the same conversations.
        annotators: Names, each of which gets a column.
        seed: The seed of the draw; by default the run's.
        judging: The set of judgements; by default the oldest.
        metrics: Only these metrics; by default all metrics that are scored by judges and not by checks.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
        where: Only scenarios matching this expression.

    Raises:
        RunError: If there is nothing to draw from, a scale is unknown, or the file exists.
        OutputError: If the file cannot be written.
        StoreError: If the set of judgements does not exist.
    """
    if target.exists() and (target.is_file() or target.is_dir()):
        raise RunError(f"{target} exists and may contain people's labels; give the path of a new file")
    config = run.config
    recipe = run.recipe
    known_scales = Scales(WithJudging.of(recipe).scales, scales)
    excluded = WithJudging.of(recipe).check_metrics - set(metrics)
    candidates = (
        pair for pair in iter_run_items(run, judging, metrics, where) if pair[1].judgement.metric not in excluded
    )
    drawn, unscored = _draw_items(candidates, known_scales, size, config.seed if seed is None else seed)
    if not drawn:
        hint = f"; name a check to sample it: {', '.join(sorted(excluded))}" if excluded else ""
        message = f"{run.path} has no judge's score to sample ({unscored:,} judgements have no score){hint}"
        raise RunError(message, setting="metrics" if excluded else None)
    drawn.sort()  # items of a conversation are adjacent, so that annotators read it once
    # The byte order mark (`-sig`) tells spreadsheets that the file is UTF-8.
    with text_output(target, (run.path,), encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(escape_csv_cell, [*COLUMNS, *(LABEL_PREFIX + name for name in annotators)]))
        for each in drawn:
            episode = run.episode(run.resolve(each.episode), judging)
            assert episode is not None, "a drawn scenario is finished, and stays so"
            item = next(item for item in iter_items(episode, recipe) if item.id == each.id)
            writer.writerow(
                [*map(escape_csv_cell, item_row(run, episode, item, known_scales)), *[""] * len(annotators)]
            )
    return Sample(Counter(each.group for each in drawn), unscored, len({each.episode for each in drawn}))


class _DrawnItem(NamedTuple):
    """The position of an item that may be drawn. Positions are ordered as in the plan."""

    order: int
    group: Group
    episode: str
    id: str


def _draw_items(
    candidates: Iterable[tuple[Episode, Item]], scales: Scales, size: int, seed: int
) -> tuple[list[_DrawnItem], int]:
    """Return the items drawn, and the number excluded because they have no score.

    The samples of the groups are coordinated by permanent random numbers (Ohlsson 1995, in: Business Survey Methods).
    Each conversation and each of its turns has one random number for all metrics. For each score, the items with the
    lowest numbers are drawn. So the items of a score are a simple random sample, and the groups mostly share their
    conversations.
    """
    pools: dict[Group, dict[int, _ItemPool]] = defaultdict(dict)
    unscored = 0
    for order, (episode, item) in enumerate(candidates):
        if episode.state != "done":
            continue  # an unfinished conversation is not labelled
        if (score := scales.integer_score(item.judgement)) is None:
            unscored += 1
        else:
            turn = item.id.removeprefix(f"{episode.id}/{item.judgement.metric}/{item.judgement.target}")
            number = stream(seed, episode.id, f"agreement sample{turn}").random()
            pools[item.group].setdefault(score, _ItemPool(size)).add(
                number, _DrawnItem(order, item.group, episode.id, item.id)
            )
    drawn: list[_DrawnItem] = []
    # The smallest group is first, so that its shortfall is divided among the others.
    smallest_first = sorted(pools.items(), key=lambda each: (sum(pool.seen for pool in each[1].values()), each[0]))
    for group_index, (_, by_score) in enumerate(smallest_first):
        counts = _allocate(by_score, (size - len(drawn)) // (len(pools) - group_index))
        for score, count in counts.items():
            drawn += by_score[score].take(count)
    return drawn, unscored


_MIN_ITEMS_PER_SCORE = 2
"""Minimum number of items with each score, in a sample that is large enough."""


def _allocate(pools: Mapping[int, _ItemPool], size: int) -> dict[int, int]:
    """Return the number of items to draw for each score: proportional to the score's frequency, but at least two.

    Proportional allocation is never less precise than a simple random sample, even if the judge's scores are random.
    """
    total = sum(pool.seen for pool in pools.values())
    minimum = _MIN_ITEMS_PER_SCORE if size >= _MIN_ITEMS_PER_SCORE * len(pools) else 0
    counts = {score: min(minimum, pool.seen) for score, pool in sorted(pools.items())}
    for _ in range(min(size, total) - sum(counts.values())):
        unfilled = [score for score in counts if counts[score] < pools[score].seen]
        counts[max(unfilled, key=lambda score: size * pools[score].seen / total - counts[score])] += 1
    return counts


class _ItemPool:
    """The items with the lowest random numbers; `seen` is the number of all items that have been added."""

    def __init__(self, size: int) -> None:
        self._heap: list[tuple[float, _DrawnItem]] = []  # a heap, with the highest number first
        self.seen = 0
        self._size = size

    def add(self, number: float, item: _DrawnItem) -> None:
        self.seen += 1
        (heapq.heappush if len(self._heap) < self._size else heapq.heappushpop)(self._heap, (-number, item))

    def take(self, count: int) -> list[_DrawnItem]:
        return [item for _, item in heapq.nlargest(count, self._heap)]


def item_row(run: RunFile, episode: Episode, item: Item, scales: Scales) -> list[str]:
    """Return an item's cells in the order of `COLUMNS`: all that annotators need, without the judge's result."""
    recipe, judgement = run.recipe, item.judgement
    labelling = WithLabels.of(recipe)
    about = labelling.judged_about(run.scenario(recipe, run.resolve(episode.id)), judgement)
    return [
        item.id,
        episode.id,
        judgement.metric,
        judgement.target,
        "" if judgement.turn is None else str(judgement.turn),
        str(scales.get(judgement.metric)),
        compute_item_digest(episode, recipe, item),
        yaml.safe_dump(dict(about), allow_unicode=True, sort_keys=False, width=100).strip() if about else "",
        "\n\n".join(f"{line.role}: {line.spoken}" for line in labelling.judged_lines(episode.outcome, judgement)),
    ]
