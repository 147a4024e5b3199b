"""A sample of judgements for people to label: drawn evenly over groups, written as CSV, without the judge's scores."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from dialoom.graphs import Episode, stream
from dialoom.graphs.capabilities import WithJudging, WithLabels
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.shown import csv_cell

from .items import Group, Item, Scales, digest_of, items, items_of
from .labels import DIGEST, ITEM, LABEL

COLUMNS = (ITEM, "scenario", "metric", "target", "turn", "scale", DIGEST, "about", "conversation")


@dataclass(frozen=True, slots=True)
class Sample:
    """The written sample: its items by group, and the number of judgements excluded because they have no score."""

    counts: Mapping[Group, int]
    unscored: int

    @property
    def n(self) -> int:
        """The number of all items."""
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
        size: Number of items, divided evenly between metrics, targets, and whole conversations and turns.
        annotators: Names, each of which gets a column.
        seed: The seed of the draw; by default the run's.
        judging: The set of judgements; by default the oldest.
        metrics: Only these; by default all.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not state.
        where: Only scenarios matching this expression.

    Raises:
        RunError: If there is nothing to draw from, a scale is unknown, or the file exists.
        OutputError: If it cannot be written.
        StoreError: If the set of judgements does not exist.
    """
    if target.exists() and (target.is_file() or target.is_dir()):
        raise RunError(f"{target} exists, and may hold people's labels; a sample is written to a new file")
    config = run.config
    recipe = run.recipe
    known = Scales(WithJudging.of(recipe).scales, scales)
    draw = stream(config.seed if seed is None else seed, "", "agreement sample")
    drawn, unscored = _drawn(items(run, judging, metrics, where), known, size, draw)
    if not drawn:
        raise RunError(f"{run.path} has no judgement with a score to sample ({unscored:,} have none)")
    # Items of a metric are adjacent: annotators need not switch between scales.
    ranks = {metric: rank for rank, metric in enumerate(WithJudging.of(recipe).metrics)}
    drawn.sort(key=lambda each: (ranks.get(each.group.metric, len(ranks)), each))
    rows = (_row(run, judging, each, known) for each in drawn)
    # The byte order mark (`-sig`) tells spreadsheets that the file is UTF-8.
    with text_output(target, (run.path,), encoding="utf-8-sig", newline="") as file:
        _dump(file, [*COLUMNS, *(LABEL + name for name in annotators)], rows)
    return Sample(Counter(each.group for each in drawn), unscored)


class _Drawn(NamedTuple):
    """The place of an item that may be drawn; sorts by group, then in plan order."""

    group: Group
    order: int
    episode: str
    id: str


def _drawn(
    found: Iterable[tuple[Episode, Item]], scales: Scales, size: int, draw: random.Random
) -> tuple[list[_Drawn], int]:
    """Return the items drawn, and the number excluded because they have no score."""
    pools: dict[Group, _Pool] = {}
    unscored = 0
    for order, (episode, item) in enumerate(found):
        if episode.state != "done":
            continue  # an unfinished conversation is not labelled
        if scales.code(item.judgement) is None:
            unscored += 1
        else:
            pool = pools.setdefault(item.group, _Pool(size, draw))
            pool.add(_Drawn(item.group, order, episode.id, item.id))
    chosen: list[_Drawn] = []
    # The smallest pool first: its shortfall is divided among the others.
    for done, (_, pool) in enumerate(sorted(pools.items(), key=lambda each: (len(each[1].held), each[0]))):
        chosen += pool.take((size - len(chosen)) // (len(pools) - done))
    return chosen, unscored


class _Pool:
    """A uniform sample of a group's items, by reservoir sampling."""

    def __init__(self, size: int, draw: random.Random) -> None:
        self.held: list[_Drawn] = []
        self._size, self._draw, self._seen = size, draw, 0

    def add(self, item: _Drawn) -> None:
        self._seen += 1
        if len(self.held) < self._size:
            self.held.append(item)
        elif (place := self._draw.randrange(self._seen)) < self._size:
            self.held[place] = item

    def take(self, count: int) -> list[_Drawn]:
        return self._draw.sample(self.held, min(count, len(self.held)))


def _row(run: RunFile, judging: str | None, drawn: _Drawn, scales: Scales) -> list[str]:
    """Return an item's cells without the annotators'."""
    position = run.resolve(drawn.episode)
    episode = run.episode(position, judging)
    assert episode is not None, "it was finished when it was drawn, and what is finished stays"
    return item_row(run, episode, next(item for item in items_of(episode, run.recipe) if item.id == drawn.id), scales)


def item_row(run: RunFile, episode: Episode, item: Item, scales: Scales) -> list[str]:
    """Return an item's cells by `COLUMNS`: all that annotators need, without the judge's result."""
    recipe, judgement = run.recipe, item.judgement
    labelled = WithLabels.of(recipe)
    return [
        item.id,
        episode.id,
        judgement.metric,
        judgement.target,
        "" if judgement.turn is None else str(judgement.turn),
        str(scales.of(judgement.metric)),
        digest_of(episode, recipe, item),
        _text(labelled.judged_about(run.scenario(recipe, run.resolve(episode.id)), judgement)),
        "\n\n".join(f"{line.role}: {line.spoken}" for line in labelled.judged_lines(episode.outcome, judgement)),
    ]


def _text(content: Mapping[str, Any]) -> str:
    """Return plain values as readable text."""
    return yaml.safe_dump(dict(content), allow_unicode=True, sort_keys=False, width=100).strip() if content else ""


def _dump(file: IO[str], header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write the header and the rows, each with an empty cell per annotator."""
    writer = csv.writer(file)
    writer.writerow(map(csv_cell, header))
    writer.writerows([*map(csv_cell, row), *[""] * (len(header) - len(row))] for row in rows)
