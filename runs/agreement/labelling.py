"""Labelling one judgement after the other: each label goes into the file that `read_labels` reads, at once."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from dialoom.graphs import Episode
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.shown import cell_text, csv_cell

from .items import Item, items_of
from .labels import ITEM, LABEL, cells_of
from .sample import COLUMNS, item_row
from .scales import Scales

_writing = threading.Lock()


def labels_beside(run: Path) -> Path:
    """Where the labels of a run stand if nobody says otherwise: beside it."""
    return run.with_name(f"{run.stem}.labels.csv")


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
        return [title.strip()[len(LABEL) :].strip() for title in header if title.strip().lower().startswith(LABEL)]

    def items(self) -> list[str]:
        """The items that stand in it, in their order."""
        header, rows = self._read()
        place = _place(header, ITEM)
        return [cell_text(_cell(row, place)) for row in rows] if place is not None else []

    def labels(self, annotator: str) -> dict[str, str]:
        """What an annotator has filled in, by item.

        Raises:
            DataError: If the file cannot be read.
        """
        header, rows = self._read()
        item, label = _place(header, ITEM), _place(header, LABEL + annotator)
        if item is None or label is None:
            return {}
        return {cell_text(_cell(row, item)): found for row in rows if (found := _cell(row, label))}

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
        name, scales = " ".join(annotator.split()), Scales(run.recipe.scales, self._given)
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
            row = next((row for row in rows if cell_text(_cell(row, place)) == item), None)
            if row is None:
                known = dict(zip(COLUMNS, map(csv_cell, item_row(run, episode, found, scales)), strict=True))
                rows.append(row := [known.get(title.strip(), "") for title in header])
            row += [""] * (len(header) - len(row))
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


def _item(run: RunFile, position: int, id_: str) -> tuple[Episode, Item]:
    """An item of a finished scenario, in whichever set of judgements it is found first."""
    for judging in run.judgement_sets():
        if (episode := run.episode(position, judging.name)) is not None and episode.state == "done":
            for item in items_of(episode, run.recipe):
                if item.id == id_:
                    return episode, item
    raise RunError(f"item {id_!r:.120}: scenario {position + 1} has no such judgement to label", setting="item")


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
