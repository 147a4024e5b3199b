"""Shell completion from the words of the line and a run's file. No code that the file refers to is executed."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dialoom.runs.configuration.recipes import is_file_spec, is_study, load_recipe, recipe_names

if TYPE_CHECKING:
    from dialoom.api.run import RunReader
    from dialoom.graphs import Recipe

_COMPLETION_VARIABLE = "_DIALOOM_COMPLETE"
_MAX_SCENARIOS = 50
"""The number of scenarios that are read to find the tables of a report."""


def get_completed_words() -> list[str] | None:
    """Return the words before the one that a shell wants to complete; `None` if no completion is requested.

    The result is empty if a word is a recipe's or a study's file: finding its options would execute its code, which the
    user has not requested yet.
    """
    if _COMPLETION_VARIABLE not in os.environ:
        return None
    words = _read_words()
    return [] if words[:1] == ["export"] or any(is_file_spec(word) or is_study(word) for word in words) else words


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics of the run's judgements."""
    return _complete_from_column("SELECT DISTINCT metric FROM (SELECT metric FROM judgements LIMIT 5000)", incomplete)


def complete_judgings(incomplete: str) -> list[str]:
    """Return the names of the run's sets of judgements."""
    has_words = "SELECT judging FROM judgements LIMIT 5000"
    query = f"SELECT name FROM judgement_sets WHERE models <> '{{}}' OR name IN ({has_words}) ORDER BY rowid"
    return _complete_from_column(query, incomplete)


def complete_export_formats(incomplete: str) -> list[str]:
    """Return the formats to which the run can be exported."""
    from dialoom.runs.export import formats

    return _complete_from_recipe(lambda _run, recipe: formats(recipe), incomplete)


def complete_tables(incomplete: str) -> list[str]:
    """Return the tables of the run's report, as found in its first scenarios."""
    from dialoom.graphs.capabilities import WithReport

    def list_tables(run: RunReader, recipe: Recipe) -> list[str]:
        return [table.name for table in WithReport.of(recipe).tables(islice(run.episodes(), _MAX_SCENARIOS))]

    return _complete_from_recipe(list_tables, incomplete)


def _complete_from_recipe(list_names: Callable[[RunReader, Recipe], Iterable[str]], incomplete: str) -> list[str]:
    """Return names from a run's recipe if it is installed, as a recipe's file must not be executed here."""
    from dialoom.api.run import RunReader

    def read_names(path: Path) -> Iterable[str]:
        with RunReader(path) as run:
            spec = run.config.recipe
            return list(list_names(run, load_recipe(spec))) if spec in recipe_names() else ()

    return _complete_from_run(read_names, incomplete)


def _complete_from_column(query: str, incomplete: str) -> list[str]:
    """Read a column of the run's file with SQL alone, because importing the store would delay completion noticeably."""

    def read_column(path: Path) -> Iterable[str]:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return [str(value) for (value,) in connection.execute(query)]

    return _complete_from_run(read_column, incomplete)


def _complete_from_run(list_names: Callable[[Path], Iterable[str]], incomplete: str) -> list[str]:
    """Return the names with the given beginning in the run of the command line: the first word that is a file.

    An incomplete line is not parsed.
    """
    with suppress(Exception):  # completion must not report errors in files
        for path in filter(Path.is_file, map(Path, _read_words()[1:])):
            return [name for name in list_names(path) if name.startswith(incomplete)]
    return []


def _read_words() -> list[str]:
    """Return the words between the program's name and the word to complete, as the shell passes them."""
    if "COMP_CWORD" in os.environ:
        return _split_words(os.environ.get("COMP_WORDS", ""))[1 : int(os.environ["COMP_CWORD"])]
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return _split_words(line)[1 : None if line.endswith(" ") else -1]


def _split_words(line: str) -> list[str]:
    """Split a line into words, even if its last quotation is not closed."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()
