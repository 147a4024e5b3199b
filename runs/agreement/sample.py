"""A sample of judgements for people to label: drawn evenly over what was judged, written as CSV, blind to the judge."""

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
    """What was written: how many items of each group, and how many judgements have no score and were not drawn."""

    counts: Mapping[Group, int]
    unscored: int

    @property
    def n(self) -> int:
        """All items."""
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
    """Draw judgements of finished scenarios that have a score, and write them as a CSV file for people to fill in.

    Args:
        run: The run.
        target: The file; it must not exist.
        size: How many, shared evenly between metrics, targets, and whole conversations and turns.
        annotators: A column for each.
        seed: Of the draw; by default the run's.
        judging: The set of judgements; by default the oldest.
        metrics: Only these; by default all.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not say.
        where: Only of scenarios that this expression holds of.

    Raises:
        RunError: If there is nothing to draw from, a scale is not known, or the file exists.
        OutputError: If it cannot be written.
        StoreError: If there is no such judging.
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
    # The items of a metric stand together: it is easier to keep to one scale at a time.
    ranks = {metric: rank for rank, metric in enumerate(WithJudging.of(recipe).metrics)}
    drawn.sort(key=lambda each: (ranks.get(each.group.metric, len(ranks)), each))
    rows = (_row(run, judging, each, known) for each in drawn)
    # The mark at the beginning (`-sig`) is how a spreadsheet knows that the file is UTF-8.
    with text_output(target, (run.path,), encoding="utf-8-sig", newline="") as file:
        _dump(file, [*COLUMNS, *(LABEL + name for name in annotators)], rows)
    return Sample(Counter(each.group for each in drawn), unscored)


class _Drawn(NamedTuple):
    """Where an item that may be drawn is to be found; they sort by group, then as planned."""

    group: Group
    order: int
    episode: str
    id: str


def _drawn(
    found: Iterable[tuple[Episode, Item]], scales: Scales, size: int, draw: random.Random
) -> tuple[list[_Drawn], int]:
    """The items that were drawn, and how many could not be, for want of a score."""
    pools: dict[Group, _Pool] = {}
    unscored = 0
    for order, (episode, item) in enumerate(found):
        if episode.state != "done":
            continue  # people would judge what was never finished
        if scales.code(item.judgement) is None:
            unscored += 1
        else:
            pool = pools.setdefault(item.group, _Pool(size, draw))
            pool.add(_Drawn(item.group, order, episode.id, item.id))
    chosen: list[_Drawn] = []
    # The smallest first: what one cannot give, the others share.
    for done, (_, pool) in enumerate(sorted(pools.items(), key=lambda each: (len(each[1].held), each[0]))):
        chosen += pool.take((size - len(chosen)) // (len(pools) - done))
    return chosen, unscored


class _Pool:
    """Some of the items of a group, all with the same chance, however many go by (reservoir sampling)."""

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
    """An item's cells, less the annotators'."""
    position = run.resolve(drawn.episode)
    episode = run.episode(position, judging)
    assert episode is not None, "it was finished when it was drawn, and what is finished stays"
    return item_row(run, episode, next(item for item in items_of(episode, run.recipe) if item.id == drawn.id), scales)


def item_row(run: RunFile, episode: Episode, item: Item, scales: Scales) -> list[str]:
    """What a labels file says of an item, by `COLUMNS`: all that people need who label it, and not the judge's word."""
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
    """Plain values as text that people read easily."""
    return yaml.safe_dump(dict(content), allow_unicode=True, sort_keys=False, width=100).strip() if content else ""


def _dump(file: IO[str], header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The header and the rows, each with an empty cell per annotator."""
    writer = csv.writer(file)
    writer.writerow(map(csv_cell, header))
    writer.writerows([*map(csv_cell, row), *[""] * (len(header) - len(row))] for row in rows)
