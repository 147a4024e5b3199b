"""Descriptions of runs, files and folders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from dialoom.inputs import is_sqlite
from dialoom.outputs import is_stream
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.export import ExportRequest, ExportResult, write_export
from dialoom.runs.export.pushing import CARD, add_section, card_path, read_card_files
from dialoom.runs.report import Report, render_markdown
from dialoom.runs.report.labelled_runs import OFFLINE_NOTE, offline_roles
from dialoom.runs.store import RunFile
from dialoom.settings import PathLike, check_lists
from dialoom.text import pluralize

from .dataset import Dataset, rows_dataset, run_dataset
from .dialogues import describe_dialogues
from .lexical import SimilarTexts
from .people import describe_release
from .user_comparison import compare_users

_CARD_TABLES = frozenset({"sizes", "endings", "lexical", "duplicates", "languages", "personal-data", "facets", "alike"})
_ROW_SUFFIXES = (".jsonl", ".json", ".parquet")


def describe_path(
    path: Path,
    against: Sequence[PathLike] = (),
    *,
    where: str | None = None,
    trust: Trust | None = None,
    embedder: str | None = None,
    alike: float | None = None,
    like: PathLike | None = None,
) -> Report:
    """Describe a dataset in tables and charts.

    Args:
        path: A run, a file of rows (JSON Lines, JSON, Parquet), a folder of such files, or a folder in the layout of
            the PersonaLens release.
        against: Runs or files of rows whose copies in the dataset are reported.
        where: Only a run's scenarios matching this expression.
        trust: The trust in code that a run names.
        embedder: The embedder that finds texts with similar meaning, if these are to be reported.
        alike: The minimum cosine similarity of these texts; by default 0.9.
        like: A run or a file of rows of real conversations, from whose users the simulated users' distance is measured.

    Raises:
        RunError: If the path is none of these, or a library is missing.
        DataError: If a line cannot be read; the message states the line.
    """
    detector = SimilarTexts.from_options(embedder, alike)
    if (path / "data" / "profile").is_dir():
        if against or where or embedder or like:
            setting = "against" if against else "where" if where else "embedder" if embedder else "like"
            raise RunError(
                f"{setting}: {path} is a published dataset of people, which contains no dialogues", setting=setting
            )
        return Report(f"{path.name}: people and tasks", describe_release(path), ())
    if is_sqlite(path):
        with RunFile(path, trust=trust) as file, file.snapshot():
            return _describe(run_dataset(file, where), against, trust, detector, like)
    if where is not None:
        raise RunError(f"where: {path} is not a run; scenarios can be selected only in a run", setting="where")
    return _describe(_open_rows(path), against, trust, detector, like)


def describe_run(
    file: RunFile,
    against: Sequence[PathLike] = (),
    *,
    where: str | None = None,
    trust: Trust | None = None,
    embedder: str | None = None,
    alike: float | None = None,
    like: PathLike | None = None,
) -> Report:
    """Describe an open run, as `describe_path` does."""
    detector = SimilarTexts.from_options(embedder, alike)
    with file.snapshot():
        return _describe(run_dataset(file, where), against, trust, detector, like)


def add_to_card(folder: Path, found: Report) -> Path:
    """Add a description to the card of an exported folder, replacing an earlier one; return the card's path.

    Raises:
        RunError: If it is not an exported folder.
    """
    read_card_files(folder)
    add_section(folder / CARD, _section(found))
    return folder / CARD


def write_described_export(run: RunFile, request: ExportRequest, target: Path) -> ExportResult:
    """Export a run and add a description of the export to its card; return the number of rows in each part.

    Raises:
        RunError: If the export has no card or no rows of dialogues, which is checked before anything is written; if the
            rows contain no dialogues; or in the same cases as `write_export`.
    """
    exporter = request.exporter(run.recipe)
    if exporter is not None and exporter.is_folder:
        raise RunError(
            f"card: format {request.format!r} writes a folder of its own files, but a card can describe only rows of "
            "dialogues",
            setting="card",
        )
    if is_stream(target) or (exporter is None and request.test_share is None):
        raise RunError(
            "card: this export has no card, because it is a stream, or a file of the format 'dialogues', whose rows "
            "contain their provenance; write to a file, and give test_share or another format",
            setting="card",
        )

    def complete(path: Path) -> None:
        add_section(path / CARD if path.is_dir() else card_path(path), _section(describe_path(path)))

    return write_export(run, request, target, complete)


def _section(found: Report) -> str:
    """Return the section that describes a dataset in its card."""
    tables = [table for table in found.tables if table.name in _CARD_TABLES]
    return render_markdown(tables, "What is in it").replace("\n## ", "\n### ").replace("# What", "## What", 1)


def _describe(
    dataset: Dataset,
    against: Sequence[PathLike],
    trust: Trust | None,
    alike: SimilarTexts | None,
    like: PathLike | None,
) -> Report:
    check_lists(against=against)
    with ExitStack() as opened:
        others = [
            _open_run(path, trust, opened) if is_sqlite(path) else _open_rows(path)
            for path in map(Path, (*against, *([like] if like else [])))
        ]
        tables, charts = describe_dialogues(dataset, others[: len(against)], alike)
        count = next((int(str(row[1])) for table in tables if table.name == "sizes" for row in table.rows), 0)
        if not count:
            raise RunError(f"{dataset.name} has no dialogues to describe yet")
        if not any(table.name == "lexical" for table in tables):
            raise RunError(
                f"{dataset.name} holds no dialogues: none of its {count:,} scenarios or rows has a message. "
                "If the run generates people, describe the folder to which it is exported"
            )
        if like is not None:
            table, chart = compare_users(dataset, others[-1])
            roles = offline_roles(dataset.users)
            for shown in (table, chart) if roles else ():
                shown.notes.insert(0, OFFLINE_NOTE.format(roles=roles))
            tables, charts = [table, *tables], [chart, *charts]
        return Report(f"{dataset.name}: {pluralize(count, 'dialogues')}", tables, charts)


def _open_run(path: Path, trust: Trust | None, opened: ExitStack) -> Dataset:
    """Return the dialogues of a run, as of one moment."""
    file = opened.enter_context(RunFile(path, trust=trust))
    opened.enter_context(file.snapshot())
    return run_dataset(file)


def _open_rows(path: Path) -> Dataset:
    """Return the dialogues of a file of rows, or of all such files of a folder."""
    if not path.is_dir():
        return rows_dataset(path)
    if is_ours := (path / CARD).is_file():
        files = [path / file for file in read_card_files(path)[0]]
    else:
        files = sorted(file for file in path.rglob("*") if file.suffix in _ROW_SUFFIXES and file.is_file())
    if not files:
        kinds = ", ".join(f"*{kind}" for kind in _ROW_SUFFIXES)
        raise RunError(
            f"{path} contains neither files of rows ({kinds}) nor a published dataset of people (data/profile)"
        )
    parts = [rows_dataset(file, skips_wordless=not is_ours) for file in files]
    return Dataset(path.name, lambda: itertools.chain.from_iterable(part.dialogues() for part in parts))
