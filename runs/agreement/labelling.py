"""Labelling one judgement after the other: each label goes into the file that `read_labels` reads, at once."""

from __future__ import annotations

import csv
import io
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dialoom.graphs import Episode
from dialoom.graphs.capabilities import WithJudging
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.runs.store.connections import Signature, signature
from dialoom.shown import cell_text, csv_cell

from .items import Item, Scales, digest_of, items_of, scenario_of
from .labels import DIGEST, ITEM, LABEL, cells_of
from .sample import COLUMNS, item_row

_writing = threading.Lock()
_MOST_KEPT = 8


def labels_beside(run: Path) -> Path:
    """Where the labels of a run stand if nobody says otherwise: beside it."""
    return run.with_name(f"{run.stem}.labels.csv")


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label that stands in a file.

    Attributes:
        position: The scenario's.
        item: What was labelled.
        label: What was said of it.
        is_earlier: Whether it was given to an earlier conversation of the scenario: it does not count then.
    """

    position: int
    item: str
    label: str
    is_earlier: bool


class LabelFile:
    """A labels file that is filled in item by item; what else stands in it stays as it is.

    It may be a sample that was drawn, or begin with nothing: items that it lacks are added to it.

    Args:
        path: The file; it need not be there yet.
        scales: `METRIC=LOW-HIGH`, for metrics whose scale the recipe does not say.
    """

    def __init__(self, path: Path, scales: Iterable[str] = ()) -> None:
        self.path = path
        self._given = tuple(scales)

    def annotators(self) -> list[str]:
        """Who has a column in it."""
        header, _ = self._read()
        return [title.strip()[len(LABEL) :].strip() for title in header if _is_label(title)]

    def items(self) -> list[str]:
        """The items that stand in it, in their order."""
        header, rows = self._read()
        place = _place(header, ITEM)
        return [cell_text(_cell(row, place)) for row in rows] if place is not None else []

    def given(self, run: RunFile, annotator: str, position: int | None = None) -> Iterator[GivenLabel]:
        """What an annotator has filled in.

        Args:
            run: The run.
            annotator: Who.
            position: Only labels of this scenario; by default all that are of scenarios of the run.

        Raises:
            DataError: If the file cannot be read.
        """
        header, rows = self._read()
        item, of, label = _place(header, ITEM), _place(header, DIGEST), _place(header, LABEL + annotator)
        if item is None or label is None:
            return
        known: dict[int, dict[str, str]] = {}
        for row in rows:
            id_, written = cell_text(_cell(row, item)), _cell(row, label)
            found = scenario_of(run, id_) if written else None
            if found is None or position not in (None, found[0]):
                continue
            if found[0] not in known:
                known[found[0]] = {
                    each.id: digest_of(episode, run.recipe, each) for episode, each in _items(run, found[0])
                }
            digest = "" if of is None else _cell(row, of)
            yield GivenLabel(found[0], id_, written, bool(digest) and known[found[0]].get(id_) != digest)

    def put(self, run: RunFile, position: int, item: str, annotator: str, label: str) -> None:
        """Write a label down, in the place of the one that the annotator has given before.

        Args:
            run: The run.
            position: The position of the scenario that the item belongs to.
            item: The item's id; it is the same in every set of judgements.
            annotator: Who labels.
            label: One of the scale's values; empty to take a label back.

        Raises:
            RunError: If there is no such item, it is no value of the scale, or there is no name.
            DataError: If the file cannot be read.
            OutputError: If it cannot be written.
        """
        name, scales = " ".join(annotator.split()), Scales(WithJudging.of(run.recipe).scales, self._given)
        if not name:
            raise RunError("annotator: give the name of whoever labels", setting="annotator")
        episode, found = _item(run, position, item)
        if label:
            try:
                scales.of(found.judgement.metric).parse(label)
            except ValueError as error:
                raise RunError(f"label: {error}", setting="label") from error
        with _writing:
            header, rows = self._read()
            place, column = _column(header, ITEM), _column(header, LABEL + name)
            known = dict(zip(COLUMNS, map(csv_cell, item_row(run, episode, found, scales)), strict=True))
            of = _column(header, DIGEST)
            row = _row_of([row for row in rows if cell_text(_cell(row, place)) == item], of, known[DIGEST])
            if row is None:
                rows.append(row := [known.get(title.strip().lower(), "") for title in header])
            row += [""] * (len(header) - len(row))
            others = [each for number, each in enumerate(row) if number != column and _is_label(header[number])]
            if not any(others):
                row[of] = known[DIGEST]
            row[column] = label
            self._write(run, header, rows)

    def _read(self) -> tuple[list[str], list[list[str]]]:
        """The header and the rows; of a file that is not there, the columns of a sample."""
        if not self.path.exists():
            return list(COLUMNS), []
        header, *rows = cells_of(self.path)
        return header, rows

    def _write(self, run: RunFile, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows([header, *rows])
        with text_output(self.path, (run.path,), encoding="utf-8-sig", newline="") as file:
            file.write(text.getvalue())


class Labelled(NamedTuple):
    """How much of a scenario is labelled.

    Attributes:
        given: How many of its judgements have a label.
        wanted: How many are to have one.
    """

    given: int
    wanted: int

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to label."""
        return self.given >= self.wanted


_Key = tuple[Signature, Signature, str]
_kept: dict[_Key, dict[int, Labelled]] = {}
"""How much was labelled, as long as neither the run's file nor the labels' is another: lists ask page by page."""


def labelled(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str] = (), judging: str | None = None
) -> dict[int, Labelled]:
    """Return how much an annotator has labelled of the conversations that there are, by the scenario's position.

    Args:
        run: The run.
        path: The labels file.
        annotator: Who labels.
        metrics: The metrics that are to be labelled; by default all.
        judging: The set of judgements whose metrics these are; by default the oldest.

    Raises:
        DataError: If the labels file cannot be read.
    """
    asked = "\0".join([str(run.path.resolve()), str(path.resolve()), annotator, judging or "", *sorted(metrics)])
    key = (signature(run.path), signature(path), asked)
    known = _kept.pop(key, None)
    if known is None:
        known = dict(_counted(run, path, annotator, metrics, judging))
    _kept[key] = known  # the last in the line of those that go
    while len(_kept) > _MOST_KEPT:
        _kept.pop(next(iter(_kept)), None)
    return dict(known)


def _counted(
    run: RunFile, path: Path, annotator: str, metrics: Sequence[str], judging: str | None
) -> Iterator[tuple[int, Labelled]]:
    given: dict[int, set[str]] = defaultdict(set)
    for each in LabelFile(path).given(run, annotator):
        if not each.is_earlier:
            given[each.position].add(each.item)
    for position, ids in given.items():
        episode = run.episode(position, judging)
        items = items_of(episode, run.recipe) if episode is not None else ()
        wanted = {item.id for item in items if not metrics or item.judgement.metric in metrics}
        if ids & wanted:
            yield position, Labelled(len(ids & wanted), len(wanted))


def _items(run: RunFile, position: int) -> Iterator[tuple[Episode, Item]]:
    """The items of a scenario, if it is finished, of all its sets of judgements, the oldest last."""
    for judging in reversed(run.judgement_sets()):
        if (episode := run.episode(position, judging.name)) is not None and episode.state == "done":
            yield from ((episode, item) for item in items_of(episode, run.recipe))


def _item(run: RunFile, position: int, id_: str) -> tuple[Episode, Item]:
    """An item of a finished scenario, of the oldest set of judgements that has it."""
    if found := [(episode, item) for episode, item in _items(run, position) if item.id == id_]:
        return found[-1]
    raise RunError(f"item {id_!r:.120}: scenario {position + 1} has no such judgement to label", setting="item")


def _row_of(rows: Sequence[list[str]], of: int, digest: str) -> list[str] | None:
    """Of an item's rows the one of this conversation, else one that does not say of which it is."""
    return next((row for wanted in (digest, "") for row in rows if _cell(row, of) == wanted), None)


def _is_label(title: str) -> bool:
    return title.strip().lower().startswith(LABEL)


def _place(header: Sequence[str], title: str) -> int | None:
    """Where a column is."""
    wanted = title.lower()
    return next((place for place, each in enumerate(header) if each.strip().lower() == wanted), None)


def _column(header: list[str], title: str) -> int:
    """Where a column is; it is added if it is not there."""
    if (place := _place(header, title)) is None:
        header.append(csv_cell(title))
        return len(header) - 1
    return place


def _cell(row: Sequence[str], place: int) -> str:
    return row[place].strip() if place < len(row) else ""
