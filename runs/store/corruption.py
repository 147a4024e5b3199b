"""Corruption of a run file: all functions that read the file report it with the same message."""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from dialoom.errors import Advice, first_problem
from dialoom.roles.gateway.secrets import redact
from dialoom.runs.errors import StoreError, store_error

CORRUPTION_ERRORS = (
    sqlite3.Error,
    ValidationError,
    ValueError,  # invalid JSON, msgpack or UTF-8
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The types of errors that indicate missing or malformed data."""

_JSON_COLUMNS = (
    ("run", "key", "value", "key = 'config'"),
    ("scenarios", "position + 1", "facets", "true"),
    ("scenarios", "position + 1", "content", "true"),
    ("scenarios", "position + 1", "branch", "true"),
    ("documents", "lower(hex(hash))", "content", "true"),
    ("outcomes", "scenario + 1", "counts", "true"),
    ("outcomes", "scenario + 1", "messages", "true"),
    ("outcomes", "scenario + 1", "details", "true"),
    ("judgement_sets", "name", "models", "true"),
    ("judgement_sets", "name", "prompts", "true"),
    ("branches", "scenario + 1", "models", "true"),
    ("calls", "id", "messages", "true"),
    ("kept_texts", "id", "parts", "true"),
)
"""The columns that contain JSON: table, expression that identifies a row, column, and condition for the rows."""

_MAX_CHECK_INSTRUCTIONS = 200_000_000
"""The limit for the check, in instructions of SQLite's virtual machine: about ten seconds. Large files take longer."""


_FIND_MISSING_SET = """
WITH RECURSIVE named (name) AS (
    SELECT min(judging) FROM judged UNION ALL
    SELECT (SELECT min(judging) FROM judged WHERE judging > name) FROM named WHERE name IS NOT NULL
)
SELECT name FROM (
    SELECT name FROM named UNION SELECT judging FROM (SELECT judging FROM judgements LIMIT 5000)
) WHERE name IS NOT NULL AND name NOT IN (SELECT name FROM judgement_sets) LIMIT 1"""


def corruption_error(path: Path, error: BaseException, recipe: str | None = None) -> StoreError:
    """Return the error for a corrupt file, given the error that occurred while reading it.

    Args:
        path: The file.
        error: The error.
        recipe: The name of the recipe whose code was reading; `None` if dialoom's own code was.
    """
    if (isinstance(error, sqlite3.Error) and not _indicates_corruption(error)) or "not a database" in str(error):
        return store_error(path, error)
    found = _diagnose(path)
    if recipe is not None and found is None:
        return StoreError(
            f"{path}: the recipe {recipe!r} cannot read its content: {_format_cause(error)}. Rows are damaged or were "
            "changed, this is not the recipe that wrote them, or an argument has a wrong type"
        )
    return StoreError(
        f"{path} is damaged: {found or _format_cause(error)}",
        advice=Advice(
            "recover", f"recover the undamaged part with SQLite's shell: sqlite3 {path} .recover", {"path": path}
        ),
    )


def check_judgements(path: Path, connection: sqlite3.Connection) -> None:
    """Check that the set of every judgement exists, as a judgement without a set would be left out silently.

    Only the first judgements and the sets of finished scenarios are checked, so that large files open as quickly as
    small ones.

    Raises:
        StoreError: If a set is missing.
    """
    if (row := connection.execute(_FIND_MISSING_SET).fetchone()) is not None:
        raise StoreError(
            f"{path} is damaged: it contains judgements of the set {row[0]!r:.80}, which is missing in the table "
            "judgement_sets",
            advice=Advice(
                "add_judgement_set", "add its row, with empty JSON objects as models and prompts, to read them"
            ),
        )


@contextmanager
def reporting_corruption(path: Path, recipe: str | None = None) -> Iterator[None]:
    """Report errors in a `with` block as corruption of the file whose rows the block reads.

    Args:
        path: The file.
        recipe: The name of the recipe whose code reads the rows, if any.
    """
    try:
        yield
    except CORRUPTION_ERRORS as error:
        raise corruption_error(path, error, recipe) from error


def was_raised_in_store(trace: TracebackType | None) -> bool:
    """Return whether an error was raised by the code that reads runs' files."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(trace)]
    own = [name for name in names if name.startswith("dialoom.")]
    return bool(own) and own[-1].startswith("dialoom.runs.store")


def _indicates_corruption(error: sqlite3.Error) -> bool:
    text = str(error)
    signs = ("malformed", "no such", "not a database", "corrupt", "datatype mismatch", "UTF-8", "too big", "is a view")
    return not isinstance(error, sqlite3.OperationalError) or any(sign in text for sign in signs)


def _format_cause(error: BaseException) -> str:
    """Return an error as one line without secrets, with the place in the code where it was raised."""
    if isinstance(error, ValidationError):
        place, message, _ = first_problem(error)
        text = f"{error.title}, {place or 'it'}: {message}"
    else:
        text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return redact(" ".join(text.split()))[:300] + where


def _diagnose(path: Path) -> str | None:
    """Return a description of the corruption that SQLite or a check of the JSON columns finds; `None` if none."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            left = iter(range(_MAX_CHECK_INSTRUCTIONS // 100_000))
            connection.set_progress_handler(lambda: next(left, None) is None, 100_000)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                return " ".join(str(found).split())[:300]
            for table, name, column, which in _JSON_COLUMNS:
                query = (
                    f"SELECT {name} FROM {table} WHERE {which} AND {column} IS NOT NULL AND NOT json_valid({column})"
                )
                if (row := connection.execute(f"{query} LIMIT 1").fetchone()) is not None:
                    return f"the column {column} of the table {table} has invalid JSON in the row of {row[0]!r:.80}"
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return None if "interrupted" in str(error) else str(error)
    return None
