"""A run's report: the recipe's tables, what compares two sets of judgements, and their writing as Markdown and CSV."""

from __future__ import annotations

import csv
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from dialoom.graphs import Estimate, Judgement, Table, Tally
from dialoom.graphs.table import Cell

from .errors import RunError
from .recipes import load_recipe
from .store import Judging, RunFile

OFFLINE = "Made with an offline model ({roles}): a scripted stand-in, no evidence about any model."


def build(run: RunFile, judging: str | None = None) -> list[Table]:
    """All tables of a run.

    Args:
        run: The run.
        judging: The set of judgements to report; by default each of them, and a comparison if there are several.

    Raises:
        StoreError: If there is no such set.
    """
    recipe = load_recipe(run.config.recipe)
    chosen = run.judging(judging)
    sets: list[Judging | None] = [chosen] if judging is not None else [*run.judgings()] or [None]
    tables: list[Table] = []
    for number, each in enumerate(sets):
        for table in recipe.tables(run.episodes(each.name if each else None)):
            if number and table.name == "dialogues":
                continue  # the dialogues are the same ones
            if len(sets) > 1 and each is not None and table.name != "dialogues":
                table.title += f" (judgements {each.name!r})"
                table.name += f"-{_file_name(each.name)}"
            tables.append(table)
            _warn(table, run, each)
    for left, right in itertools.combinations([each for each in sets if each], 2):
        table = _comparison(run, left, right)
        for each in (left, right):
            _warn(table, run, each)
        tables.append(table)
    return tables


def text_of(cell: Cell, column: str) -> str:
    """A cell as people read it; an estimate as its mean, interval and n."""
    if cell is None:
        return "–"
    if isinstance(cell, Estimate):
        if column.endswith("%"):
            mean, low, high = (100 * value for value in (cell.mean, cell.low, cell.high))
            return f"{mean:.1f} [{low:.1f}, {high:.1f}] n={cell.n:,}"
        return f"{cell.mean:.2f} [{cell.low:.2f}, {cell.high:.2f}] n={cell.n:,}"
    if isinstance(cell, float):
        return f"{100 * cell:.1f}" if column.endswith("%") else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def write(tables: Sequence[Table], folder: Path, title: str) -> list[Path]:
    """Write `report.md` and a CSV file per table; returns the paths.

    Raises:
        RunError: If the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "report.md", *(folder / f"{table.name}.csv" for table in tables)]
        paths[0].write_text(markdown(tables, title), encoding="utf-8")
        for table, path in zip(tables, paths[1:], strict=True):
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(_csv_rows(table))
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror or error}") from error
    return paths


def markdown(tables: Sequence[Table], title: str) -> str:
    """All tables as one Markdown page."""
    return "\n".join([f"# {title}", "", *itertools.chain.from_iterable(map(_markdown_table, tables))])


def _markdown_table(table: Table) -> Iterator[str]:
    yield from (f"## {table.title}", "")
    yield "| " + " | ".join(table.columns) + " |"
    yield "|" + " --- |" * len(table.columns)
    for row in table.rows:
        cells = (text_of(cell, column).replace("|", "\\|") for cell, column in zip(row, table.columns, strict=True))
        yield "| " + " | ".join(cells) + " |"
    yield ""
    for note in table.notes:
        yield from (note, "")


def _csv_rows(table: Table) -> Iterator[list[str | int | float | None]]:
    """A header and the rows; a column that holds estimates becomes four."""
    estimated = [any(isinstance(row[index], Estimate) for row in table.rows) for index in range(len(table.columns))]
    header: list[str | int | float | None] = []
    for column, four in zip(table.columns, estimated, strict=True):
        header += [column, f"{column} low", f"{column} high", f"{column} n"] if four else [column]
    yield header
    for row in table.rows:
        cells: list[str | int | float | None] = []
        for cell, four in zip(row, estimated, strict=True):
            if isinstance(cell, Estimate):
                cells += [cell.mean, cell.low, cell.high, cell.n]
            else:
                cells += [cell, None, None, None] if four else [cell]
        yield cells


def _comparison(run: RunFile, left: Judging, right: Judging) -> Table:
    """What two sets say of the same things: means where both have a score, and how often they are equal."""
    columns = ["metric", "n", f"mean {left.name}", f"mean {right.name}", "mean difference", "equal %"]
    name = f"compared-{_file_name(left.name)}-{_file_name(right.name)}"
    table = Table(name, f"Judgements {left.name!r} and {right.name!r} on the same dialogues", columns)
    tallies: dict[str, tuple[Tally, Tally, Tally, Tally]] = defaultdict(lambda: (Tally(), Tally(), Tally(), Tally()))
    for one, other in zip(run.episodes(left.name), run.episodes(right.name), strict=True):
        theirs = {_key(judgement): judgement.score for judgement in other.outcome.judgements}
        for judgement in one.outcome.judgements:
            score, second = judgement.score, theirs.get(_key(judgement))
            if score is None or second is None:
                continue
            what = f"{judgement.metric} ({judgement.target})" + (" by turn" if judgement.turn else "")
            values = (score, second, second - score, score == second)
            for tally, value in zip(tallies[what], values, strict=True):
                tally.add(value)
    for what, (first, second_, difference, equal) in tallies.items():
        estimates = [tally.estimate() for tally in (first, second_, difference, equal)]
        table.rows.append([what, first.n, *estimates])
    table.notes.append("Only judgements that both sets have a score for; verdicts count as 1 and 0.")
    return table


def _key(judgement: Judgement) -> tuple[str, str, int | None]:
    return judgement.metric, judgement.target, judgement.turn


def _warn(table: Table, run: RunFile, judging: Judging | None) -> None:
    """Say on the table which roles an offline model played."""
    played = run.config.model_names
    if judging is not None:
        played |= judging.model_names
    roles = [role for role, model in played.items() if model.startswith("offline/")]
    note = OFFLINE.format(roles=", ".join(roles))
    if roles and note not in table.notes:
        table.notes.append(note)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
