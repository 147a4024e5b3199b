"""The description of whatever a path leads to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from dialoom.runs.errors import RunError
from dialoom.runs.export.exported import CARD, ExportedFolder
from dialoom.runs.report import Report
from dialoom.runs.report.writing import markdown
from dialoom.runs.store import RunFile
from dialoom.runs.trust import Trust

from .dataset import Dataset, RowsDataset, RunDataset, SeveralDataset
from .dialogues import describe_dialogues
from .people import describe_release

_ON_CARDS = frozenset({"sizes", "endings", "lexical", "duplicates", "languages", "personal-data", "facets"})
_SQLITE = b"SQLite format 3\x00"


def describe_path(
    path: Path, against: Sequence[Path] = (), *, where: str | None = None, trust: Trust | None = None
) -> Report:
    """Tables and charts of what is in a dataset.

    Args:
        path: A run, an exported folder, a file of rows (JSON Lines, Parquet), or a folder in the PersonaLens release's
            layout.
        against: Runs or files of rows in which copies of its dialogues are looked for.
        where: Only scenarios of a run that this expression holds of.
        trust: What of the code that a run names may be used.

    Raises:
        RunError: If it is none of these, or a library is missing.
        DataError: Naming the line that cannot be read.
    """
    if (path / "data" / "profile").is_dir():
        if against or where:
            setting = "against" if against else "where"
            raise RunError(f"{setting}: {path} is a release, which holds no dialogues", setting=setting)
        return Report(f"{path.name}: people and tasks", describe_release(path), ())
    with ExitStack() as opened:
        if _is_run(path):
            file = opened.enter_context(RunFile(path, trust=trust))
            return describe_run(file, against, where=where, trust=trust)
        if where is not None:
            raise RunError(f"where: {path} is no run, and only a run's scenarios can be chosen", setting="where")
        return _described(_opened(path, opened, trust), against, opened, trust)


def describe_run(
    file: RunFile, against: Sequence[Path] = (), *, where: str | None = None, trust: Trust | None = None
) -> Report:
    """As `describe_path`, of a run that is open."""
    with ExitStack() as opened:
        return _described(RunDataset(file, where), against, opened, trust)


def add_to_card(folder: Path, found: Report) -> Path:
    """Put what was found in an exported folder into its card, once; returns the card's path.

    Raises:
        RunError: If it is no exported folder.
    """
    tables = [table for table in found.tables if table.name in _ON_CARDS]
    text = markdown(tables, "What is in it").replace("\n## ", "\n### ").replace("# What", "## What", 1)
    return ExportedFolder.of(folder).add_to_card(text)


def _described(dataset: Dataset, against: Sequence[Path], opened: ExitStack, trust: Trust | None) -> Report:
    tables, charts = describe_dialogues(dataset, [_opened(each, opened, trust) for each in against])
    count = next((row[1] for table in tables if table.name == "sizes" for row in table.rows), 0)
    if not count:
        raise RunError(f"{dataset.name} has no dialogues to describe yet")
    if not any(table.name == "lexical" for table in tables):
        raise RunError(
            f"{dataset.name} holds no dialogues: in none of its {count:,} scenarios or rows is anything said. "
            "Where a run makes people, describe the folder to which it is exported"
        )
    return Report(f"{dataset.name}: {count:,} dialogues", tables, charts)


def _opened(path: Path, opened: ExitStack, trust: Trust | None) -> Dataset:
    if path.is_dir():
        if not (path / CARD).is_file():
            raise RunError(
                f"{path} is neither an exported folder of rows, with a {CARD}, nor a release of people, with "
                "data/profile"
            )
        return SeveralDataset(path.name, [RowsDataset(path / file) for file in ExportedFolder.of(path).files])
    return RunDataset(opened.enter_context(RunFile(path, trust=trust))) if _is_run(path) else RowsDataset(path)


def _is_run(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
